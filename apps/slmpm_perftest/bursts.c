/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams in bursts: several messages a call, each with a buffer of its own, or a call each with
 * MORE. */
#include "apps/slmpm_perftest/perftest.h"

#define TOGETHER_BYTES (UINT64_C(4) << 20)

/* Each buffer on cache lines of its own. */
uint64_t burst_stride(const struct job *j)
{
	return (j->size + 63) & ~UINT64_C(63);
}

uint64_t burst_of(const struct job *j)
{
	uint64_t n = j->burst < BURST_MAX ? j->burst : BURST_MAX, stride = burst_stride(j);

	if (j->more || j->verify || j->test->kind != KIND_STREAM || j->test->by != BY_MESSAGE)
		return 1;
	return n * stride <= TOGETHER_BYTES || n == 1 ? n : 1 + TOGETHER_BYTES / (j->size + 1);
}

uint64_t burst_room(const struct job *j)
{
	uint64_t n = burst_of(j);

	if (j->test->by == BY_GROUP)
		return collective_room(j);
	return n > 1 ? n * burst_stride(j) : j->size;
}

static int with_more(struct pair *p, const struct job *j)
{
	const struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = -1};
	const struct slmpm_iov piece = {.base = p->tx, .len = j->size};
	uint64_t left = j->count, n;
	int rc;

	while (left) {
		n = left < j->burst ? left : j->burst;
		left -= n;
		for (uint64_t i = 1; i <= n; i++) {
			if (j->touch)
				fill(p->tx, j->size, left + i);
			rc = i < n ? slmpm_sendv(p->peer, STREAM_DATA, &piece, 1, &more, NULL) :
				     slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static ALWAYS_INLINE int give(struct pair *p, const struct job *j, struct slmpm_iov *m, uint64_t n,
			      bool touch)
{
	for (uint64_t left = j->count; left;) {
		uint64_t now = left < n ? left : n;
		int rc;

		for (uint64_t i = 0; touch && i < now; i++)
			fill(m[i].base, j->size, left - i);
		rc = slmpm_send_burst(p->peer, STREAM_DATA, m, (int)now, -1);
		if (rc < 0)
			return rc;
		left -= (uint64_t)rc;
	}
	return 0;
}

static ALWAYS_INLINE int take(struct pair *p, const struct job *j, struct slmpm_iov *m, uint64_t n,
			      bool touch)
{
	for (uint64_t left = j->count; left;) {
		int rc = slmpm_recv_burst(p->peer, STREAM_DATA, m, (int)(left < n ? left : n), NULL,
					  -1);

		if (rc < 0)
			return rc;
		for (int i = 0; touch && i < rc; i++)
			consume(m[i].base, m[i].len);
		left -= (uint64_t)rc;
	}
	return 0;
}

static int bursts(struct pair *p, const struct job *j)
{
	struct slmpm_iov m[BURST_MAX];
	uint64_t n = burst_of(j);
	char *buf = p->side ? p->rx : p->tx;

	if (j->more)
		return with_more(p, j);
	for (uint64_t i = 0; i < n; i++)
		m[i] = (struct slmpm_iov){buf + i * burst_stride(j), j->size};
	if (p->side == 0)
		return j->touch ? give(p, j, m, n, true) : give(p, j, m, n, false);
	return j->touch ? take(p, j, m, n, true) : take(p, j, m, n, false);
}

int loop_bursts(struct pair *p, const struct job *j, struct hist *stamps)
{
	if (j->burst > 1 && (p->side == 0 || !j->more))
		return bursts(p, j);
	return loop_send_stream(p, j, stamps);
}
