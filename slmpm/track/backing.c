/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's list of mappings, as far as it is about one piece of memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slmpm/track/finder.h"

struct reading {
	uintptr_t at, hi; /* what is left */
	bool inside;      /* the lines are about a mapping of it */
	int protection;   /* of the first, */
	int rc;
	uint64_t page;
};

/* A mapping's first line. */
static void read_mapping(struct reading *r, uintptr_t lo, uintptr_t hi, const char *rights)
{
	int protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
			 (rights[2] == 'x' ? PROT_EXEC : 0);

	r->inside = r->at < r->hi && lo <= r->at && r->at < hi;
	if (!r->inside)
		return;
	if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
		r->rc = -EACCES;
	else if (r->protection && r->protection != protection)
		r->rc = -ENOTSUP;
	r->protection = protection;
	r->at = hi;
}

static void read_line(struct reading *r, const char *line)
{
	uintptr_t lo, hi;
	char rights[5];
	uint64_t kib;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &lo, &hi, rights) == 3)
		read_mapping(r, lo, hi, rights);
	else if (r->inside && sscanf(line, "KernelPageSize: %" SCNu64, &kib) == 1 &&
		 kib * 1024 > r->page)
		r->page = kib * 1024;
}

int finder_range(uintptr_t lo, uintptr_t hi, struct range *range)
{
	struct reading r = {.at = lo, .hi = hi, .page = (uint64_t)sysconf(_SC_PAGESIZE)};
	FILE *f = fopen("/proc/self/smaps", "re");
	size_t size = 0;
	char *line = NULL;

	*range = (struct range){.page = r.page, .protection = PROT_READ | PROT_WRITE};
	if (f) { /* else it is as most memory */
		while (r.rc == 0 && (r.at < hi || r.inside) && getline(&line, &size, f) > 0)
			read_line(&r, line);
		if (r.rc == 0 && r.at < hi)
			r.rc = -ENOMEM;
		free(line);
		fclose(f);
		range->page = r.page;
		range->protection = r.protection;
	}
	range->lo = (lo + r.page - 1) / r.page * r.page;
	range->hi = hi / r.page * r.page;
	return r.rc < 0 ? r.rc : range->lo < range->hi;
}
