/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared libraries that a program brings along: its ELF file names them, and the folders where
 * they lie. Those in the system's own folders are the other machine's to have. 64-bit files of
 * either byte order; others bring nothing.
 */
#include "apps/slmpm_run/ship.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES 64 /* more are not looked for */

struct image { /* a file, mapped; all of it is checked where it is used */
	const unsigned char *at;
	size_t size;
	bool swapped; /* its byte order is not this machine's */
};

struct search {
	const char *paths; /* LD_LIBRARY_PATH */
	char *found[LIBRARIES];
	size_t count;
};

static bool map_file(struct image *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size > (off_t)sizeof(Elf64_Ehdr))
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return false;
	*m = (struct image){at, (size_t)st.st_size, false};
	m->swapped = m->at[EI_DATA] !=
		     (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
	if (!memcmp(m->at, ELFMAG, SELFMAG) && m->at[EI_CLASS] == ELFCLASS64)
		return true;
	munmap(at, m->size);
	return false;
}

/* A number of N bytes at OFFSET; 0 beyond the file. */
static uint64_t number(const struct image *m, uint64_t offset, unsigned n)
{
	uint64_t value = 0;

	if (offset > m->size || n > m->size - offset)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		bool low_first = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != m->swapped;

		value |= (uint64_t)m->at[offset + i] << 8 * (low_first ? i : n - 1 - i);
	}
	return value;
}

#define FIELD(m, base, type, field)                                                                \
	number(m, (base) + offsetof(type, field), (unsigned)sizeof(((type *)0)->field))

/* Where the segment of TYPE begins in the file, and how long it is. */
static bool find_segment(const struct image *m, uint32_t type, uint64_t holding, uint64_t *begin,
			 uint64_t *length, uint64_t *address)
{
	uint64_t table = FIELD(m, 0, Elf64_Ehdr, e_phoff), n = FIELD(m, 0, Elf64_Ehdr, e_phnum);

	for (uint64_t i = 0; i < n && i < 1024; i++) {
		uint64_t at = table + i * sizeof(Elf64_Phdr);

		if (FIELD(m, at, Elf64_Phdr, p_type) != type)
			continue;
		*begin = FIELD(m, at, Elf64_Phdr, p_offset);
		*length = FIELD(m, at, Elf64_Phdr, p_filesz);
		*address = FIELD(m, at, Elf64_Phdr, p_vaddr);
		if (type != PT_LOAD || (holding >= *address && holding - *address < *length))
			return *begin <= m->size && *length <= m->size - *begin;
	}
	return false;
}

/* The text at OFFSET of the strings, or NULL. */
static const char *text_at(const struct image *m, uint64_t strings, uint64_t offset)
{
	uint64_t at = strings + offset;

	if (at < strings || at >= m->size || !memchr(m->at + at, 0, m->size - at))
		return NULL;
	return (const char *)m->at + at;
}

/* ---- one library ---- */

static bool is_system(const char *path)
{
	static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])))
			return true;
	return false;
}

/* NAME in one of PATHS, where $ORIGIN is the folder of OWNER. */
static char *find_in(const char *paths, const char *owner, const char *name)
{
	while (paths && *paths) {
		size_t n = strcspn(paths, ":");
		const char *slash = strrchr(owner, '/');
		char path[PATH_MAX], real[PATH_MAX];
		int length;

		if (n >= 7 && !strncmp(paths, "$ORIGIN", 7))
			length = snprintf(path, sizeof(path), "%.*s%.*s/%s", (int)(slash - owner),
					  owner, (int)n - 7, paths + 7, name);
		else if (n >= 9 && !strncmp(paths, "${ORIGIN}", 9))
			length = snprintf(path, sizeof(path), "%.*s%.*s/%s", (int)(slash - owner),
					  owner, (int)n - 9, paths + 9, name);
		else
			length = snprintf(path, sizeof(path), "%.*s/%s", (int)n, paths, name);
		if (n && length < (int)sizeof(path) && path[0] == '/' && realpath(path, real) &&
		    access(real, R_OK) == 0 && !is_system(real))
			return strdup(real);
		paths += n;
		paths += *paths == ':';
	}
	return NULL;
}

typedef int each_fn(const char *path, const char *name, void *arg);

static int walk(struct search *s, const char *path, each_fn *each, void *arg, int depth);

static int take(struct search *s, const char *owner, const char *own, const char *name,
		each_fn *each, void *arg, int depth)
{
	char *path = strchr(name, '/') ? NULL : find_in(s->paths, owner, name);
	int rc;

	if (!path && !strchr(name, '/'))
		path = find_in(own, owner, name);
	for (size_t i = 0; path && i < s->count; i++)
		if (!strcmp(s->found[i], path)) {
			free(path);
			return 0;
		}
	if (!path || s->count == LIBRARIES) {
		free(path);
		return 0;
	}
	s->found[s->count++] = path;
	rc = each(path, name, arg);
	return rc < 0 ? rc : walk(s, path, each, arg, depth + 1);
}

static int walk_image(struct search *s, const struct image *m, const char *path, each_fn *each,
		      void *arg, int depth)
{
	uint64_t begin, length, address, strings = 0, held, base;
	const char *own = NULL, *name;
	int rc = 0;

	if (!find_segment(m, PT_DYNAMIC, 0, &begin, &length, &address))
		return 0;
	for (uint64_t at = begin; at + sizeof(Elf64_Dyn) <= begin + length; at += sizeof(Elf64_Dyn))
		if (FIELD(m, at, Elf64_Dyn, d_tag) == DT_STRTAB)
			strings = FIELD(m, at, Elf64_Dyn, d_un.d_val);
	if (!find_segment(m, PT_LOAD, strings, &base, &held, &address))
		return 0;
	strings = base + (strings - address);
	for (uint64_t at = begin; at + sizeof(Elf64_Dyn) <= begin + length;
	     at += sizeof(Elf64_Dyn)) {
		uint64_t tag = FIELD(m, at, Elf64_Dyn, d_tag);

		if (tag == DT_RUNPATH || (tag == DT_RPATH && !own))
			own = text_at(m, strings, FIELD(m, at, Elf64_Dyn, d_un.d_val));
	}
	for (uint64_t at = begin; rc >= 0 && at + sizeof(Elf64_Dyn) <= begin + length;
	     at += sizeof(Elf64_Dyn)) {
		if (FIELD(m, at, Elf64_Dyn, d_tag) != DT_NEEDED)
			continue;
		name = text_at(m, strings, FIELD(m, at, Elf64_Dyn, d_un.d_val));
		if (name && *name)
			rc = take(s, path, own, name, each, arg, depth);
	}
	return rc;
}

static int walk(struct search *s, const char *path, each_fn *each, void *arg, int depth)
{
	struct image m;
	int rc;

	if (depth > 16 || !strchr(path, '/') || !map_file(&m, path))
		return 0;
	rc = walk_image(s, &m, path, each, arg, depth);
	munmap((void *)(uintptr_t)m.at, m.size);
	return rc;
}

int needed_each(const char *program, const char *paths, each_fn *each, void *arg)
{
	struct search s = {.paths = paths};
	int rc = walk(&s, program, each, arg, 0);

	for (size_t i = 0; i < s.count; i++)
		free(s.found[i]);
	return rc;
}
