/* SPDX-License-Identifier: BSD-3-Clause */
/* What the selector chose for each operation of a load, and how full queue and ring were: --modes
 * FILE. */
#include <stdlib.h>

#include "apps/slmpm_perftest/perftest.h"

#define NOTES 200000 /* of a run; later ones are not kept */

struct note {
	uint64_t ns, queue, one_sided;
	uint32_t ring; /* thousandths of the peer's ring */
	int16_t protocol;
	uint16_t reason;
};

struct trace {
	const char *path;
	uint64_t n;
	struct note note[NOTES];
};

struct trace *trace_open(const char *path)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t)
		t->path = path;
	return t;
}

void trace_begin(struct trace *t)
{
	t->n = 0;
}

/* DONE, or NULL: the last operation of a call that blocked. */
static void fill_in(struct note *n, slmpm_peer peer, const struct slmpm_done *done)
{
	struct slmpm_mode mode = {.size = sizeof(mode), .protocol = -1};

	if (!done) {
		(void)slmpm_peer_mode(peer, &mode);
		n->protocol = (int16_t)mode.protocol;
		n->reason = (uint16_t)mode.reason;
	} else {
		n->protocol = (int16_t)done->protocol;
		n->reason = done->reason;
	}
}

void trace_note(struct trace *t, slmpm_peer peer, const struct slmpm_done *done)
{
	struct slmpm_monitor m;
	struct note *n = &t->note[t->n];

	if (t->n == NOTES || slmpm_monitor(peer, &m, offsetof(struct slmpm_monitor, timing)) < 0)
		return;
	t->n++;
	n->ns = now_ns();
	n->queue = m.queue_depth;
	n->one_sided = m.one_sided;
	n->ring = m.out_segments ? (uint32_t)(m.out_unread * 1000 / m.out_segments) : 0;
	fill_in(n, peer, done);
}

int trace_write(const struct trace *t)
{
	FILE *f = fopen(t->path, "we");

	if (!f)
		return -1;
	fprintf(f, "us\tqueue\tring\tone_sided\tprotocol\treason\n");
	for (const struct note *n = t->note; n < t->note + t->n; n++) {
		const char *protocol = slmpm_protocol_name(n->protocol);

		fprintf(f, "%.3f\t%llu\t%.3f\t%llu\t%s\t%s\n", (double)(n->ns - t->note->ns) / 1e3,
			(unsigned long long)n->queue, n->ring / 1e3,
			(unsigned long long)n->one_sided, protocol ? protocol : "none",
			slmpm_reason_name(n->reason));
	}
	return fclose(f);
}
