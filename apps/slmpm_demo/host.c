/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host: keeps a window of files on their way to every accelerator, takes digests as they come,
 * and gives a lost accelerator's unfinished files to the others. Nothing here blocks but one
 * slmpm_wait over all requests: an accelerator's receive and the send of each of its slots.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/slmpm_demo/host.h"
#include "apps/slmpm_demo/stress.h"

static void sample_ring(struct host *h)
{
	struct slmpm_stats s = {.size = sizeof(s)};
	double share;

	for (unsigned a = 0; a < h->options->accelerators; a++) {
		if (h->accel[a].gone || slmpm_peer_stats(h->accel[a].peer, &s, sizeof(s)) < 0 ||
		    !s.out_segments)
			continue;
		share = (double)(s.out_produced - s.out_consumed) / (double)s.out_segments;
		share = share > 1 ? 1 :
				    share; /* of several rings the smallest one's size is told */
		h->tally->ring_sum += share;
		h->tally->ring_samples++;
		if (share > h->tally->ring_most)
			h->tally->ring_most = share;
	}
}

static void take_answer(struct host *h, unsigned a, const struct slmpm_done *done)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[done->imm % WINDOW_MAX];
	struct given g;

	if (done->imm == IMM_READY) {
		crew_ready(h, a);
		return;
	}
	if (done->imm & IMM_TAKEN && done->imm - IMM_TAKEN < h->options->window &&
	    s->taken < s->put) {
		s->taken++;
		crew_receive(h, a);
		return;
	}
	if (done->len != ANSWER_SIZE || done->imm >= h->options->window || s->first == s->next) {
		crew_bury(h, a, "a wrong answer");
		return;
	}
	g = s->given[s->first++ % GIVEN_MAX];
	memcpy(h->ledger.files->at[g.file].digest, acc->answer, DIGEST_SIZE);
	hist_add(&h->tally->latency, now_ns() - g.sent_ns);
	counts_add(&acc->counts, count_read(acc->answer + DIGEST_SIZE));
	ledger_done(&h->ledger, g.file, count_read(acc->answer + DIGEST_SIZE));
	crew_receive(h, a);
}

static void complete(struct host *h, unsigned a, unsigned k, const struct slmpm_done *done)
{
	struct accelerator *acc = &h->accel[a];

	acc->moved = true;
	/* A failed send only stops the feeding: answers that came before are still to be read. */
	if (k && done->status < 0)
		acc->broken = true;
	else if (!k && done->status < 0)
		crew_bury(h, a, slmpm_strerror(done->status));
	else if (!k)
		take_answer(h, a, done);
	if (!k)
		return;
	crew_count(h, a, done);
	if (done->status == 0 && done->op == SLMPM_OP_PUT)
		slot_say(acc, k - 1, req_of(h, a, k));
}

/* ---- the loop ---- */

static bool step(struct host *h, unsigned a, unsigned k)
{
	slmpm_req *req = req_of(h, a, k);
	struct slmpm_done done;

	if (h->accel[a].gone)
		return false;
	if (req->id) {
		if (slmpm_test(req, &done) != 1)
			return false;
		complete(h, a, k, &done);
		return true;
	}
	if (!k || !h->accel[a].ready || h->accel[a].broken || stress_holds(h, a) ||
	    !slot_feed(&h->accel[a], k - 1, &h->ledger, req))
		return false;
	h->accel[a].moved = true;
	return true;
}

static bool step_all(struct host *h)
{
	bool moved = false;

	crew_count_loans(h);
	for (unsigned k = 0; k <= h->options->window; k++)
		for (unsigned a = 0; a < h->options->accelerators; a++)
			moved |= step(h, a, k);
	for (unsigned a = 0; a < h->options->accelerators; a++) {
		moved |= stress_step(h, a, h->accel[a].moved);
		h->accel[a].moved = false;
	}
	return moved;
}

static void wait_any(struct host *h)
{
	unsigned each = h->options->window + 1;
	struct slmpm_done done;
	int i;

	output_flush(); /* whoever reads the digests waits as well */
	i = slmpm_wait(h->req, (int)(h->options->accelerators * each), &done,
		       stress_busy(h) ? 1 : 100);

	if (i >= 0)
		complete(h, (unsigned)i / each, (unsigned)i % each, &done);
}

/* Nobody waits for digests any more. */
static bool is_over(const struct host *h)
{
	h->tally->interrupted = ending() != 0;
	return h->tally->interrupted || output_error();
}

static int work(struct host *h)
{
	uint64_t begin = now_ns(), passes = 0;

	while (h->ledger.finished < h->ledger.files->count && h->living && !is_over(h)) {
		if (!step_all(h))
			wait_any(h);
		if (passes++ % 64 == 0) {
			sample_ring(h);
			output_flush();
		}
		screen_progress(h->ledger.files, h->tally);
	}
	if (h->ledger.finished < h->ledger.files->count && !is_over(h))
		ledger_hash_here(&h->ledger);
	h->tally->seconds = (double)(now_ns() - begin) / 1e9;
	return h->ledger.finished < h->ledger.files->count;
}

/* The files are found while accelerators get ready. */
static int run(struct host *h, char **paths, unsigned n)
{
	struct ledger *l = &h->ledger;
	int failed;

	hist_clear(&h->tally->latency);
	failed = crew_start(h) || files_walk(l->files, paths);
	l->again = failed ? NULL : calloc(l->files->count + 1, sizeof(*l->again));
	traffic_begin(&h->tally->traffic);
	if (l->again)
		failed = work(h);
	else if (!failed)
		failed = slmpm_perror("slmpm_demo: out of memory");
	if (is_over(h))
		crew_kill(h);
	else
		crew_part(h);
	slmpm_shut(h->ctx, 1000);
	for (unsigned a = 0; a < n; a++)
		for (unsigned k = 0; k < h->options->window; k++)
			free(h->accel[a].slot[k].chunk);
	return failed;
}

int host_run(const struct options *options, char **paths, struct files *files, struct tally *tally)
{
	unsigned n = options->accelerators;
	struct host h = {
		.options = options,
		.tally = tally,
		.ledger = {.options = options, .files = files, .tally = tally},
	};
	int failed;

	h.accel = calloc(n, sizeof(*h.accel));
	h.req = calloc((size_t)n * (options->window + 1), sizeof(*h.req));
	if (!h.accel || !h.req || slmpm_open(&h.ctx, NULL) < 0 ||
	    slmpm_cq_create(h.ctx, &h.sent) < 0)
		failed = slmpm_perror("slmpm_demo: open");
	else
		failed = run(&h, paths, n);
	free(h.accel);
	free(h.req);
	free(h.ledger.again);
	return failed;
}
