/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs on their way to an accelerator: the four kinds of dacs_de_start. */
#include "slmpm/dacsbase/dacs_start.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1U << 20)

static DACS_ERR_T program_code(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR: return DACS_ERR_NOT_FOUND;
	case ENAMETOOLONG: return DACS_ERR_TOO_LONG;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case ENOMEM:
	case EMFILE:
	case ENFILE: return DACS_ERR_NO_RESOURCE;
	default: return DACS_ERR_INVALID_PROG;
	}
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int copy_all(int from, int to)
{
	char *chunk = malloc(CHUNK);
	ssize_t n = 1;
	int rc = chunk ? 0 : -ENOMEM;

	while (rc == 0 && n > 0) {
		n = read(from, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			rc = -errno;
		else
			rc = write_all(to, chunk, (size_t)n);
	}
	free(chunk);
	return rc;
}

/* Copies a file under its last name into CWD; *PATH is the copy's. */
static DACS_ERR_T ship(const char *file, const char *cwd, char **path)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	int from = open(file, O_RDONLY | O_CLOEXEC), to, rc;
	struct stat st;

	if (from < 0)
		return program_code(errno);
	if (fstat(from, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(from);
		return DACS_ERR_INVALID_PROG;
	}
	if (asprintf(path, "%s/%s", cwd, name) < 0) {
		*path = NULL;
		close(from);
		return DACS_ERR_NO_RESOURCE;
	}
	to = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (st.st_mode & 0700) | 0400);
	rc = to < 0 ? -errno : copy_all(from, to);
	close(from);
	if (to >= 0 && close(to) != 0 && rc == 0)
		rc = -errno;
	return rc ? program_code(-rc) : DACS_SUCCESS;
}

/* One name a line: the program, then what it needs. */
static DACS_ERR_T ship_list(const char *list, const char *cwd, char **path)
{
	FILE *file = fopen(list, "re");
	DACS_ERR_T rc = DACS_SUCCESS;
	char *line = NULL, *copy;
	size_t size = 0;
	ssize_t n;

	if (!file)
		return program_code(errno);
	while (rc == DACS_SUCCESS && (n = getline(&line, &size, file)) >= 0) {
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r' || line[n - 1] == ' '))
			line[--n] = 0;
		if (!n)
			continue;
		copy = NULL;
		rc = ship(line, cwd, &copy);
		if (*path)
			free(copy);
		else
			*path = copy;
	}
	if (rc == DACS_SUCCESS && (ferror(file) || !*path))
		rc = DACS_ERR_INVALID_PROG;
	free(line);
	fclose(file);
	return rc;
}

static DACS_ERR_T ship_image(const dacs_program_handle_t *handle, const char *cwd, char **path)
{
	const char *image;
	uint64_t address = handle->word[0] | (uint64_t)handle->word[1] << 32;
	uint64_t size = handle->word[2] | (uint64_t)handle->word[3] << 32;
	int fd, rc;

	if (!address || address > UINTPTR_MAX || !size || size > SSIZE_MAX)
		return DACS_ERR_INVALID_PROG;
	image = (const char *)(uintptr_t)address;
	if (asprintf(path, "%s/program", cwd) < 0) {
		*path = NULL;
		return DACS_ERR_NO_RESOURCE;
	}
	fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	rc = fd < 0 ? -errno : write_all(fd, image, (size_t)size);
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc ? program_code(-rc) : DACS_SUCCESS;
}

/* The path as it is, but independent of the working directory; a bare name that is no file here
 * is left to the search path. */
static DACS_ERR_T find_program(const char *file, char **path)
{
	struct stat st;

	if (stat(file, &st) != 0) {
		if (strchr(file, '/') || !*file || errno != ENOENT)
			return program_code(errno);
		*path = strdup(file);
		return *path ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
	}
	if (!S_ISREG(st.st_mode))
		return DACS_ERR_INVALID_PROG;
	if (file[0] == '/') {
		*path = strdup(file);
	} else {
		char *here = getcwd(NULL, 0);

		if (!here || asprintf(path, "%s/%s", here, file) < 0)
			*path = NULL;
		free(here);
	}
	return *path ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
}

DACS_ERR_T dacsi_program_stage(const void *prog, DACS_PROC_CREATION_FLAG_T flags, const char *cwd,
			       char **path)
{
	switch (flags) {
	case DACS_PROC_LOCAL_FILE: return ship(prog, cwd, path);
	case DACS_PROC_LOCAL_FILE_LIST: return ship_list(prog, cwd, path);
	case DACS_PROC_REMOTE_FILE: return find_program(prog, path);
	case DACS_PROC_EMBEDDED: return ship_image(prog, cwd, path);
	}
	return DACS_ERR_INVALID_ATTR;
}

/* The first bytes and the machine of an ELF file, in its own byte order. */
static bool read_ident(const char *path, unsigned char ident[EI_NIDENT], unsigned *machine)
{
	unsigned char head[EI_NIDENT + 4];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	memcpy(ident, head, EI_NIDENT);
	*machine = ident[EI_DATA] == ELFDATA2MSB ? (unsigned)(head[18] << 8 | head[19]) :
						   (unsigned)(head[19] << 8 | head[18]);
	return true;
}

bool dacsi_program_foreign(const char *path)
{
	unsigned char mine[EI_NIDENT], its[EI_NIDENT];
	unsigned my_machine, its_machine;

	return read_ident("/proc/self/exe", mine, &my_machine) &&
	       read_ident(path, its, &its_machine) && its_machine != my_machine;
}
