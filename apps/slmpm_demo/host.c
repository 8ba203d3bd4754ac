/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host: keeps a window of files on their way to every accelerator, takes digests as they come,
 * and gives a lost accelerator's unfinished files to the others. Nothing here blocks but one
 * slmpm_wait over all requests: an accelerator's receive and the send of each of its slots.
 */
#include "apps/slmpm_demo/slot.h"

#include <stdlib.h>
#include <string.h>

struct host {
	const struct options *options;
	struct tally *tally;
	struct ledger ledger;
	slmpm_ctx ctx;
	struct accelerator *accel;
	slmpm_req *req;  /* accelerator by accelerator: its receive, then its slots' sends */
	unsigned living; /* accelerators */
};

static slmpm_req *req_of(const struct host *h, unsigned a, unsigned k)
{
	return &h->req[a * (h->options->window + 1) + k];
}

static void sample_ring(struct host *h)
{
	struct slmpm_stats s = {.size = sizeof(s)};
	double share;

	for (unsigned a = 0; a < h->options->accelerators; a++) {
		if (h->accel[a].gone || slmpm_peer_stats(h->accel[a].peer, &s, sizeof(s)) < 0 ||
		    !s.out_segments)
			continue;
		share = (double)(s.out_produced - s.out_consumed) / (double)s.out_segments;
		h->tally->ring_sum += share;
		h->tally->ring_samples++;
		if (share > h->tally->ring_most)
			h->tally->ring_most = share;
	}
}

static void count_protocol(struct tally *t, enum protocol p, uint64_t messages, uint64_t bytes)
{
	t->protocol_messages[p] += messages;
	t->protocol_bytes[p] += bytes;
}

static void count(struct host *h, const struct accelerator *acc)
{
	struct slmpm_stats s = {.size = sizeof(s)};

	if (slmpm_peer_stats(acc->peer, &s, sizeof(s)) < 0)
		return;
	h->tally->messages += s.sent_messages + s.received_messages;
	count_protocol(h->tally, SMT, s.sent_messages + s.received_messages - s.rget_messages,
		       s.sent_bytes + s.received_bytes - s.rget_bytes - s.push_bytes);
	count_protocol(h->tally, RGET, s.rget_messages, s.rget_bytes + s.push_bytes);
	count_protocol(h->tally, RGET_SHARED, s.push_messages, s.push_bytes);
	count_protocol(h->tally, PUT, s.puts, s.put_bytes);
	h->tally->remote_writes += s.remote_writes;
	h->tally->remote_reads += s.remote_reads;
}

static void drop(slmpm_req *req)
{
	struct slmpm_done done;

	if (req->id && slmpm_test(req, &done) == 0) {
		slmpm_cancel(*req);
		slmpm_test(req, &done);
	}
	*req = (slmpm_req){0};
}

/* What the library knows of accelerators' ends, kept with each. */
static void take_events(struct host *h)
{
	struct slmpm_event e = {.size = sizeof(e)};

	while (slmpm_next_event(h->ctx, &e, 0) == 1)
		for (unsigned a = 0; a < h->options->accelerators; a++)
			if (h->accel[a].peer.id == e.peer.id && e.type >= SLMPM_EVENT_CLOSED)
				snprintf(h->accel[a].fate, sizeof(h->accel[a].fate), "%s",
					 e.detail);
}

/* Its unfinished files go back; what it had finished before has been received. */
static void bury(struct host *h, unsigned a, const char *why)
{
	struct accelerator *acc = &h->accel[a];
	size_t left = 0;

	for (unsigned k = 0; k < h->options->window; k++) {
		struct slot *s = &acc->slot[k];

		slot_close(s, &h->ledger);
		for (; s->first < s->next; s->first++, left++)
			ledger_again(&h->ledger, s->given[s->first % GIVEN_MAX].file);
		drop(req_of(h, a, k + 1));
	}
	acc->gone = acc->broken = true;
	drop(req_of(h, a, 0));
	h->living--;
	h->tally->lost++;
	h->tally->redone += left;
	count(h, acc);
	take_events(h);
	screen_clear();
	fprintf(stderr,
		"slmpm_demo: lost %s: %s; its unfinished files (%zu) are done again by %s\n",
		acc->name, *acc->fate ? acc->fate : why, left,
		h->living ? "the others" : "the host itself");
	slmpm_kill(acc->peer, 0); /* should it still run, as after breaking the protocol */
	slmpm_join(acc->peer, NULL, 1000);
}

static void receive_next(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	const struct slmpm_iov piece = {.base = acc->answer, .len = sizeof(acc->answer) - 1};
	int64_t rc = slmpm_recvv(acc->peer, ANSWER_STREAM, &piece, 1, NULL, req_of(h, a, 0));

	if (rc < 0)
		bury(h, a, slmpm_strerror((int)rc));
}

static void take_answer(struct host *h, unsigned a, const struct slmpm_done *done)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[done->imm % WINDOW_MAX];
	struct given g;

	if (done->imm & IMM_TAKEN && done->imm - IMM_TAKEN < h->options->window &&
	    s->taken < s->put) {
		s->taken++;
		receive_next(h, a);
		return;
	}
	if (done->len != ANSWER_SIZE || done->imm >= h->options->window || s->first == s->next) {
		bury(h, a, "a wrong answer");
		return;
	}
	g = s->given[s->first++ % GIVEN_MAX];
	memcpy(h->ledger.files->at[g.file].digest, acc->answer, DIGEST_SIZE);
	hist_add(&h->tally->latency, now_ns() - g.sent_ns);
	ledger_done(&h->ledger, g.file, count_read(acc->answer + DIGEST_SIZE));
	receive_next(h, a);
}

static void complete(struct host *h, unsigned a, unsigned k, const struct slmpm_done *done)
{
	/* A failed send only stops the feeding: answers that came before are still to be read. */
	if (k && done->status < 0)
		h->accel[a].broken = true;
	else if (!k && done->status < 0)
		bury(h, a, slmpm_strerror(done->status));
	else if (!k)
		take_answer(h, a, done);
}

static int accelerator_start(struct host *h, unsigned a)
{
	char slots[32];
	char *const argv[] = {slots, NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct accelerator *acc = &h->accel[a];

	how.ctx = h->ctx;
	snprintf(slots, sizeof(slots), "--accelerator=%u",
		 h->options->way == WAY_PUT ? h->options->window : 0);
	if (slmpm_spawn(&acc->peer, "/proc/self/exe", argv, &how) < 0)
		return slmpm_perror("slmpm_demo: start of an accelerator");
	slmpm_peer_query(acc->peer, &info);
	snprintf(acc->name, sizeof(acc->name), "accelerator %u (pid %d)", a + 1, info.pid);
	acc->gone = false;
	h->living++;
	receive_next(h, a);
	return 0;
}

/* Their regions, without which an accelerator is of no use. */
static void accept_places(struct host *h)
{
	for (unsigned a = 0; a < h->options->accelerators; a++)
		if (!h->accel[a].gone &&
		    slmpm_mem_accept(h->accel[a].peer, &h->accel[a].places, 5000) < 0)
			bury(h, a, slmpm_error_detail());
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
	return k && !h->accel[a].broken && slot_feed(&h->accel[a], k - 1, &h->ledger, req);
}

static bool step_all(struct host *h)
{
	bool moved = false;

	for (unsigned k = 0; k <= h->options->window; k++)
		for (unsigned a = 0; a < h->options->accelerators; a++)
			moved |= step(h, a, k);
	return moved;
}

static void wait_any(struct host *h)
{
	unsigned each = h->options->window + 1;
	struct slmpm_done done;
	int i;

	fflush(stdout); /* whoever reads the digests waits as well */
	i = slmpm_wait(h->req, (int)(h->options->accelerators * each), &done, 100);

	if (i >= 0)
		complete(h, (unsigned)i / each, (unsigned)i % each, &done);
}

/* The accelerators' own counters, then their end. */
static void part(struct host *h)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_BYE, .timeout_ms = 5000};
	unsigned long long writes, reads;
	struct accelerator *acc;
	struct slmpm_done done;
	slmpm_req *req;

	for (unsigned a = 0; a < h->options->accelerators; a++)
		if (!h->accel[a].gone)
			slmpm_sendv(h->accel[a].peer, 0, NULL, 0, &how, NULL);
	for (unsigned a = 0; a < h->options->accelerators; a++) {
		acc = &h->accel[a];
		req = req_of(h, a, 0);
		if (acc->gone)
			continue;
		if (slmpm_wait(req, 1, &done, 5000) == 0 && done.status == 0 &&
		    done.imm == IMM_COUNTERS && done.len < sizeof(acc->answer)) {
			acc->answer[done.len] = '\0';
			if (sscanf((char *)acc->answer, "%llu %llu", &writes, &reads) == 2) {
				h->tally->remote_writes += writes;
				h->tally->remote_reads += reads;
			}
		}
		count(h, acc);
		if (slmpm_join(acc->peer, NULL, 5000) < 0)
			slmpm_kill(acc->peer, 0);
	}
}

static int work(struct host *h)
{
	uint64_t begin = now_ns(), passes = 0;

	while (h->ledger.finished < h->ledger.files->count && h->living) {
		if (!step_all(h))
			wait_any(h);
		if (passes++ % 64 == 0) {
			sample_ring(h);
			fflush(stdout);
		}
		screen_progress(h->ledger.files, h->tally);
	}
	if (h->ledger.finished < h->ledger.files->count)
		ledger_hash_here(&h->ledger);
	h->tally->seconds = (double)(now_ns() - begin) / 1e9;
	return h->ledger.finished < h->ledger.files->count;
}

static int run(struct host *h, unsigned n)
{
	int failed = 0;

	hist_clear(&h->tally->latency);
	for (unsigned a = 0; a < n; a++)
		h->accel[a].gone = true;
	for (unsigned a = 0; a < n && !failed; a++)
		failed = accelerator_start(h, a);
	h->tally->accelerators = n;
	if (!failed && h->options->way == WAY_PUT)
		accept_places(h);
	if (!failed)
		failed = work(h);
	part(h);
	slmpm_shut(h->ctx, 1000);
	for (unsigned a = 0; a < n; a++)
		for (unsigned k = 0; k < h->options->window; k++)
			free(h->accel[a].slot[k].chunk);
	return failed;
}

int host_run(const struct options *options, struct files *files, struct tally *tally)
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
	h.ledger.again = calloc(files->count + 1, sizeof(*h.ledger.again));
	if (!h.accel || !h.req || !h.ledger.again || slmpm_open(&h.ctx, NULL) < 0)
		failed = slmpm_perror("slmpm_demo: open");
	else
		failed = run(&h, n);
	free(h.accel);
	free(h.req);
	free(h.ledger.again);
	return failed;
}
