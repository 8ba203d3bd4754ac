/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of files, and their reduction (counts.h). */
#include "apps/slmpm_demo/counts.h"

#include <stdio.h>

#define NUMBERS (sizeof(struct counts) / sizeof(uint64_t))

static unsigned size_of(uint64_t bytes)
{
	unsigned i = bytes ? 1 : 0;

	for (uint64_t limit = 1024; i && i < COUNTS_SIZES - 1 && bytes >= limit; limit *= 4)
		i++;
	return i;
}

void counts_add(struct counts *c, uint64_t bytes)
{
	c->files++;
	c->bytes += bytes;
	c->sizes[size_of(bytes)]++;
}

void counts_subtract(struct counts *c, const struct counts *what)
{
	c->files -= what->files;
	c->bytes -= what->bytes;
	for (unsigned i = 0; i < COUNTS_SIZES; i++)
		c->sizes[i] -= what->sizes[i];
}

const char *counts_text(const struct counts *c, char *text, size_t size)
{
	static const char *const names[COUNTS_SIZES] = {
		"empty",         "below 1 KiB", "below 4 KiB", "below 16 KiB", "below 64 KiB",
		"below 256 KiB", "below 1 MiB", "below 4 MiB", "below 16 MiB", "larger"};
	size_t at = 0;

	*text = 0;
	for (unsigned i = 0; i < COUNTS_SIZES && at < size; i++)
		if (c->sizes[i])
			at += (size_t)snprintf(text + at, size - at, "%s%llu %s", at ? ", " : "",
					       (unsigned long long)c->sizes[i], names[i]);
	return text;
}

/* ---- the reduction -------------------------------------------------------------------------- */

/* All members get the sum, so that none is through while another finds one dead. */
static int reduce(slmpm_group group, const struct counts *own, struct counts *all)
{
	const struct slmpm_coll coll = {
		.size = sizeof(coll),
		.kind = SLMPM_COLL_ALLREDUCE,
		.type = SLMPM_UINT64,
		.op = SLMPM_CALC_SUM,
		.from = own,
		.to = all,
		.count = NUMBERS,
	};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = COUNTS_MS};
	struct slmpm_done done;
	slmpm_req req = {0};
	int rc = slmpm_collective_start(group, &coll, &how, &req);

	if (rc == 0)
		rc = slmpm_wait(&req, 1, &done, -1);
	return rc < 0 ? rc : done.status;
}

int counts_reduce(slmpm_group group, const struct counts *own, struct counts *all)
{
	int rc = reduce(group, own, all);

	while (rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED) {
		rc = slmpm_group_shrink(group, COUNTS_MS);
		if (rc == 0)
			rc = reduce(group, own, all);
	}
	return rc;
}
