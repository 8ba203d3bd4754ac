/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of files to hash: given paths, folders walked, in the order of their names. */
#include "apps/slmpm_demo/demo.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void files_warn(struct files *f, const char *path, const char *why)
{
	screen_clear();
	fprintf(stderr, "slmpm_demo: %s: %s\n", path, why);
	f->failed++;
}

static int add(struct files *f, const char *path, uint64_t size)
{
	struct file *more;

	if (f->count == f->room) {
		f->room = f->room ? 2 * f->room : 1024;
		more = realloc(f->at, f->room * sizeof(*more));
		if (!more)
			return -1;
		f->at = more;
	}
	f->at[f->count] = (struct file){.path = strdup(path), .size = size};
	if (!f->at[f->count].path)
		return -1;
	f->count++;
	f->bytes += size;
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int visit(struct files *f, const FTSENT *e)
{
	switch (e->fts_info) {
	case FTS_F: return add(f, e->fts_path, (uint64_t)e->fts_statp->st_size);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS: files_warn(f, e->fts_path, strerror(e->fts_errno)); return 0;
	case FTS_DEFAULT:
	case FTS_SL:
	case FTS_SLNONE: /* inside a folder these are nobody's wish */
		if (e->fts_level == FTS_ROOTLEVEL)
			files_warn(f, e->fts_path, "no file and no folder");
		return 0;
	default: return 0;
	}
}

static int walk_one(struct files *f, const char *path)
{
	char *one = strdup(path), *roots[] = {one, NULL};
	FTS *walk;
	FTSENT *e;
	int rc = 0;

	if (!one)
		return -1;
	if (!*path) {
		files_warn(f, "\"\"", strerror(ENOENT));
		free(one);
		return 0;
	}
	walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	while (walk && rc == 0 && !ending() && (e = fts_read(walk))) {
		rc = visit(f, e);
		screen_walk(f, path);
	}
	if (!walk || rc)
		rc = -1;
	if (walk)
		fts_close(walk);
	free(one);
	return rc;
}

int files_walk(struct files *f, char **paths)
{
	int rc = 0;

	for (; *paths && !rc; paths++)
		rc = walk_one(f, *paths);
	screen_clear();
	if (rc)
		fprintf(stderr, "slmpm_demo: out of memory for the list of files\n");
	return rc != 0;
}

void files_free(struct files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->at[i].path);
	free(f->at);
}
