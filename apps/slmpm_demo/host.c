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

static void take_digest(struct host *h, struct accelerator *acc, struct slot *s,
			const unsigned char *answer)
{
	struct given g = s->given[s->first++ % LENT_MAX];

	memcpy(h->ledger.files->at[g.file].digest, answer, DIGEST_SIZE);
	hist_add(&h->tally->latency, now_ns() - g.sent_ns);
	counts_add(&acc->counts, count_read(answer + DIGEST_SIZE));
	ledger_done(&h->ledger, g.file, count_read(answer + DIGEST_SIZE));
}

/* One digest; or a place, or loan, is free again, of which there are some, or none. */
static bool is_answer(const struct host *h, const struct slot *s, const struct slmpm_done *done)
{
	bool taken = done->imm & IMM_TAKEN;

	return (done->imm & ~IMM_TAKEN) < h->options->window && done->len % ANSWER_SIZE == 0 &&
	       done->len / ANSWER_SIZE <= s->next - s->first &&
	       (taken ? s->taken < s->put : done->len == ANSWER_SIZE);
}

static void take_answer(struct host *h, unsigned a, const struct slmpm_done *done)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[done->imm % WINDOW_MAX];

	if (done->imm == IMM_READY) {
		crew_ready(h, a);
		return;
	}
	if (!is_answer(h, s, done)) {
		crew_bury(h, a, "a wrong answer");
		return;
	}
	s->taken += (done->imm & IMM_TAKEN) != 0;
	for (size_t at = 0; at < done->len; at += ANSWER_SIZE)
		take_digest(h, acc, s, acc->answer + at);
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

	while (!ledger_is_over(&h->ledger) && h->living && !is_over(h)) {
		if (!step_all(h) && !files_more(h->ledger.files))
			wait_any(h);
		if (passes++ % 64 == 0) {
			sample_ring(h);
			output_flush();
		}
		screen_progress(h->ledger.files, h->tally);
	}
	if (!ledger_is_over(&h->ledger) && !is_over(h))
		ledger_hash_here(&h->ledger);
	h->tally->seconds = (double)(now_ns() - begin) / 1e9;
	return !ledger_is_over(&h->ledger) || h->ledger.files->lacks;
}

/* With loans few files are open at once: others are found when there is nothing else to do. */
static void find_files(struct files *files, const struct options *o)
{
	while ((o->stress || (o->way != WAY_NONE && o->way != WAY_LOAN)) && files_more(files))
		;
}

static int run(struct host *h, char **paths, unsigned n)
{
	struct ledger *l = &h->ledger;
	int failed;

	hist_clear(&h->tally->latency);
	l->files->paths = paths;
	files_reserve();
	failed = crew_start(h);
	if (!failed)
		find_files(l->files, h->options);
	traffic_begin(&h->tally->traffic);
	if (!failed)
		failed = work(h);
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
		.ledger = {.options = options, .files = files, .tally = tally, .again = NO_FILE},
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
	return failed;
}
