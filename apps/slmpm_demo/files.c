/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of files to hash: given paths, folders walked, in the order of their names. */
#include "apps/slmpm_demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* At the next of the paths; false: there is none. */
static bool begin_path(struct files *f)
{
	char *path = *f->paths, *roots[] = {path, NULL};

	if (!path)
		return false;
	f->paths++;
	f->path = path;
	if (!*path) {
		files_warn(f, "\"\"", strerror(ENOENT));
		return true;
	}
	f->walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	f->lacks |= !f->walk;
	return true;
}

static int reserve = -1;

void files_reserve(void)
{
	if (reserve < 0)
		reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool files_may_retry(int error)
{
	if (reserve < 0 || (error != EMFILE && error != ENFILE))
		return false;
	close(reserve);
	reserve = -1;
	return true;
}

/* The next entry, or the end of this path. */
static void walk_on(struct files *f)
{
	FTSENT *e = fts_read(f->walk);

	if (e && e->fts_info == FTS_DNR && files_may_retry(e->fts_errno)) {
		(void)fts_set(f->walk, e, FTS_AGAIN);
		return;
	}
	if (e) {
		f->lacks |= visit(f, e) != 0;
		screen_walk(f, f->path);
		return;
	}
	fts_close(f->walk);
	f->walk = NULL;
}

bool files_more(struct files *f)
{
	size_t had = f->count;

	files_reserve();
	while (f->count == had && !f->all && !ending()) {
		if (f->walk)
			walk_on(f);
		else
			f->all = !begin_path(f);
		if (!f->lacks)
			continue;
		screen_clear();
		fprintf(stderr, "slmpm_demo: out of memory for the list of files\n");
		f->all = true;
	}
	return f->count != had;
}

void files_free(struct files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->at[i].path);
	free(f->at);
	if (f->walk)
		fts_close(f->walk);
}
