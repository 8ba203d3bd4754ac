/* SPDX-License-Identifier: BSD-3-Clause */
/* Is it really transferred? One transfer of each size class carries a pattern that is checked. */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

static unsigned char pattern(uint64_t i, uint64_t size)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + size + 3);
}

static void draw(void *buf, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		((unsigned char *)buf)[i] = pattern(i, size);
}

static int check(const struct job *j, const void *got, uint64_t len)
{
	const unsigned char *bytes = got;

	for (uint64_t i = 0; i < j->size; i++)
		if (len != j->size || bytes[i] != pattern(i, j->size)) {
			fprintf(stderr,
				"slmpm_perftest: %s of %llu bytes: wrong data at %llu of %llu\n",
				j->test->name, (unsigned long long)j->size, (unsigned long long)i,
				(unsigned long long)len);
			return -SLMPM_ECHECKSUM;
		}
	return 0;
}

static int verify_message(struct pair *p, const struct job *j)
{
	int64_t len;

	if (p->side == 0) {
		draw(p->tx, j->size);
		return slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
	}
	memset(p->rx, 0, j->size);
	len = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);
	return len < 0 ? (int)len : check(j, p->rx, (uint64_t)len);
}

static int verify_loan(struct pair *p, const struct job *j)
{
	struct slmpm_done done = {0};
	const void *held;
	void *buf;
	int64_t len;
	int rc;

	if (p->side == 0) {
		rc = slmpm_loan(p->peer, STREAM_DATA, j->size, &buf, -1);
		if (rc < 0)
			return rc;
		draw(buf, j->size);
		return slmpm_commit(p->peer, buf, j->size, NULL);
	}
	len = slmpm_hold(p->peer, STREAM_DATA, &held, &done, -1);
	while (len >= 0 && done.flags & SLMPM_PART)
		len = slmpm_more(p->peer, held, (uint64_t)len, &done, -1);
	if (len < 0)
		return (int)len;
	rc = check(j, held, (uint64_t)len);
	return rc < 0 ? rc : slmpm_release(p->peer, held);
}

/* What is sent after a put has been told done arrives after it. */
static int verify_put(struct pair *p, const struct job *j)
{
	int rc;

	if (p->side) {
		rc = pair_signaled(p);
		if (rc >= 0)
			rc = check(j, p->region.base, j->size);
		return rc;
	}
	draw(p->region.source, j->size);
	rc = slmpm_put(p->region.remote, 0, p->region.source, j->size, NULL, NULL);
	return rc < 0 ? rc : pair_signal(p);
}

static int verify_get(struct pair *p, const struct job *j)
{
	int rc;

	if (p->side) {
		draw(p->region.base, j->size);
		rc = pair_signal(p);
		return rc < 0 ? rc : pair_signaled(p);
	}
	memset(p->rx, 0, j->size);
	rc = pair_signaled(p);
	if (rc >= 0)
		rc = slmpm_get(p->region.remote, 0, p->rx, j->size, NULL, NULL);
	if (rc >= 0)
		rc = check(j, p->rx, j->size);
	return rc < 0 ? rc : pair_signal(p);
}

static int verify_am(struct pair *p, const struct job *j)
{
	struct job once = *j;
	int rc;

	once.touch = false;
	once.count = once.burst = 1;
	if (p->side == 0)
		draw(p->tx, j->size);
	memset(p->rx, 0, j->size);
	rc = loop_am_stream(p, &once, NULL);
	return rc < 0 || p->side == 0 ? rc : check(j, p->rx, j->size);
}

static int verify_fifo(struct pair *p, const struct job *j)
{
	struct job once = *j;
	int rc;

	once.touch = false;
	once.count = 1;
	if (p->side == 0)
		draw(p->region.source, j->size);
	memset(p->region.base, 0, j->size);
	rc = loop_fifo_stream(p, &once, NULL);
	return rc < 0 || p->side == 0 ? rc : check(j, p->region.base, j->size);
}

static int verify_mirror(struct pair *p, const struct job *j)
{
	struct mirrored *m = &p->mirror[0];
	int rc;

	if (p->side) {
		rc = pair_signaled(p);
		return rc < 0 ? rc : check(j, m->base, j->size);
	}
	draw(p->tx, j->size);
	rc = slmpm_mirror_copy(m->mirror, m->base, p->tx, j->size);
	if (rc >= 0)
		rc = slmpm_mirror_flush(m->mirror, -1);
	return rc < 0 ? rc : pair_signal(p);
}

/* What the queue has sent, or waited for, has come whole. */
static int verify_queue(struct pair *p, const struct job *j)
{
	struct job once = *j;
	int rc;

	once.count = 1;
	if (p->side == 0)
		draw(p->tx, j->size);
	memset(p->rx, 0, j->size);
	rc = j->test->loop(p, &once, NULL);
	return rc < 0 || p->side ? rc : check(j, p->rx, j->size);
}

int loop_verify(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	if (test_calculates(j->test))
		return 0;
	switch (j->test->by) {
	case BY_MESSAGE: return verify_message(p, j);
	case BY_LOAN: return verify_loan(p, j);
	case BY_PUT: return verify_put(p, j);
	case BY_GET: return verify_get(p, j);
	case BY_AM: return verify_am(p, j);
	case BY_MIRROR: return verify_mirror(p, j);
	case BY_FIFO: return verify_fifo(p, j);
	case BY_QUEUE: return verify_queue(p, j);
	case BY_GROUP: return loop_collective(p, j, NULL);
	default: return 0; /* atomic operations check themselves */
	}
}
