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

#define CHUNK (16U << 10)

static DACS_ERR_T program_code(int error)
{
	if (error == ENOENT || error == ENOTDIR)
		return DACS_ERR_NOT_FOUND;
	return dacsi_start_code(error, DACS_ERR_INVALID_PROG);
}

/* FOLDER/NAME, to be freed, or NULL. */
static char *join_path(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static int write_all(int to, const char *data, size_t left)
{
	while (left) {
		ssize_t n = write(to, data, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Not every file can be sent by sendfile, nor to every file system. */
static int copy_all(int to, int from)
{
	char chunk[CHUNK];
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = read(from, chunk, sizeof(chunk))) != 0)
		if (n > 0)
			rc = write_all(to, chunk, (size_t)n);
		else if (errno != EINTR)
			rc = -errno;
	return rc;
}

/* Into a new file: SIZE bytes of DATA, or, where that is NULL, what FROM has. */
static DACS_ERR_T write_program(const char *path, mode_t mode, int from, const char *data,
				size_t size)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int rc = to < 0 ? -errno : data ? write_all(to, data, size) : copy_all(to, from);

	if (to >= 0 && close(to) != 0 && rc == 0)
		rc = -errno;
	return rc ? program_code(-rc) : DACS_SUCCESS;
}

/* Copies a file under its last name into CWD; *PATH is the copy's. */
static DACS_ERR_T ship(const char *file, const char *cwd, char **path)
{
	const char *slash = strrchr(file, '/');
	int from = open(file, O_RDONLY | O_CLOEXEC);
	DACS_ERR_T rc = DACS_ERR_INVALID_PROG;
	struct stat st;

	if (from < 0)
		return program_code(errno);
	if (fstat(from, &st) == 0 && S_ISREG(st.st_mode)) {
		*path = join_path(cwd, slash ? slash + 1 : file);
		rc = *path ? write_program(*path, (st.st_mode & 0700) | 0400, from, NULL, 0) :
			     DACS_ERR_NO_RESOURCE;
	}
	close(from);
	return rc;
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
	uint64_t address = handle->word[0] | (uint64_t)handle->word[1] << 32;
	uint64_t size = handle->word[2] | (uint64_t)handle->word[3] << 32;

	if (!address || address > UINTPTR_MAX || !size || size > SSIZE_MAX)
		return DACS_ERR_INVALID_PROG;
	*path = join_path(cwd, "program");
	if (!*path)
		return DACS_ERR_NO_RESOURCE;
	return write_program(*path, 0700, -1, (const char *)(uintptr_t)address, (size_t)size);
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

		*path = here ? join_path(here, file) : NULL;
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

/* The machine of an ELF file, in that file's byte order; -1: it is none. */
static int elf_machine(const char *path)
{
	unsigned char head[EI_NIDENT + 4];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return -1;
	return head[EI_DATA] == ELFDATA2MSB ? head[18] << 8 | head[19] : head[19] << 8 | head[18];
}

bool dacsi_program_foreign(const char *path)
{
	int mine = elf_machine("/proc/self/exe"), its = elf_machine(path);

	return mine >= 0 && its >= 0 && its != mine;
}
