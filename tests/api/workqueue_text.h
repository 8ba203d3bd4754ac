/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queues in which nothing begins, names for all there is, and what is read and written. */
#ifndef TESTS_API_WORKQUEUE_TEXT_H
#define TESTS_API_WORKQUEUE_TEXT_H

#include "tests/lib/random.h"
#include "tests/api/workqueue.h"

#define LONG 65536

static slmpm_wq held, other; /* managed, so that nothing begins */
static slmpm_ctr answers;
static struct slmpm_name names[12];
static int named;
static char text[LONG], again[LONG];

static inline void name(const char *is, uint32_t kind, uint64_t id)
{
	names[named++] = (struct slmpm_name){.name = is, .kind = kind, .id = id};
}

static inline void name_memory(const char *is, void *base, size_t len)
{
	name(is, SLMPM_NAME_MEMORY, 0);
	names[named - 1].base = base;
	names[named - 1].len = len;
}

static inline slmpm_wq managed(uint32_t flags)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = flags | SLMPM_WQ_MANAGED, .channels = 8, .cq = cq};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

static inline void begin_text(void)
{
	begin(0, 0);
	OK(slmpm_ctr_create(ctx, &answers));
	held = managed(0);
	other = managed(0);
	named = 0;
	name("next", SLMPM_NAME_PEER, a.id);
	name("far", SLMPM_NAME_RMEM, far.id);
	name("answers", SLMPM_NAME_CTR, answers.id);
	name("ends", SLMPM_NAME_CQ, cq.id);
	name("held", SLMPM_NAME_WQ, held.id);
	name("other", SLMPM_NAME_WQ, other.id);
	name_memory("buf", here, 4096);
	name_memory("rest", here + 512, 4096);
}

static inline int load(slmpm_wq to, const char *of)
{
	return slmpm_wq_load(to, of, names, named, 0);
}

static inline int64_t dump(slmpm_wq of, char *into)
{
	int64_t n = slmpm_wq_dump(&of, 1, names, named, 0, into, LONG);

	CHECK(n >= 0 && (size_t)n == strlen(into), "%lld: %s", (long long)n, slmpm_error_detail());
	return n;
}

#endif
