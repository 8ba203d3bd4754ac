/* SPDX-License-Identifier: BSD-3-Clause */
/* The accelerators as the host has them: started, counted, lost, parted with. */
#include <sched.h>
#include <string.h>

#include "apps/slmpm_demo/host.h"
#include "apps/slmpm_demo/stress.h"

/* ---- what they carry ------------------------------------------------------------------------ */

/* Of link LINK, which is asked for once. */
static const char *fabric_of(struct accelerator *acc, uint32_t link)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	if (!*acc->fabrics[link] && slmpm_link_query(acc->peer, link, &info) == 0)
		snprintf(acc->fabrics[link], sizeof(acc->fabrics[link]), "%s", info.fabric);
	return *acc->fabrics[link] ? acc->fabrics[link] : "?";
}

void crew_count(struct host *h, unsigned a, const struct slmpm_done *done)
{
	uint32_t link = (done->flags & SLMPM_ON_LINK_MASK) / SLMPM_ON_LINK(0);
	struct accelerator *acc = &h->accel[a];

	if (done->status < 0)
		return;
	traffic_add(&h->tally->traffic, fabric_of(acc, link ? link - 1 : 0), done->protocol,
		    done->reason, done->len);
	stress_see(h, a, done->reason);
}

void crew_count_loans(struct host *h)
{
	struct slmpm_done done;

	while (slmpm_cq_poll(h->sent, &done, 1) == 1) {
		done.protocol = TRAFFIC_LOAN;
		crew_count(h, (unsigned)done.cookie, &done);
	}
}

static void take_stats(struct host *h, const struct accelerator *acc)
{
	struct slmpm_stats s = {.size = sizeof(s)};

	if (slmpm_peer_stats(acc->peer, &s, sizeof(s)) < 0)
		return;
	h->tally->sent += s.sent_messages;
	h->tally->received += s.received_messages;
	h->tally->puts += s.puts;
	h->tally->pushed_messages += s.push_messages;
	h->tally->pushed_bytes += s.push_bytes;
	h->tally->remote_writes += s.remote_writes;
	h->tally->remote_reads += s.remote_reads;
}

void crew_receive(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	const struct slmpm_iov piece = {.base = acc->answer, .len = sizeof(acc->answer) - 1};
	int64_t rc = slmpm_recvv(acc->peer, ANSWER_STREAM, &piece, 1, NULL, req_of(h, a, 0));

	if (rc < 0)
		crew_bury(h, a, slmpm_strerror((int)rc));
}

/* Without memory in reach of both a loan would be copied twice more. */
void crew_ready(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];

	acc->ready = true;
	acc->sent = h->sent;
	acc->index = a;
	acc->lends = h->options->way == WAY_LOAN ||
		     (h->options->way == WAY_NONE && !strcmp(fabric_of(acc, 0), "shm"));
	crew_receive(h, a);
}

/* ---- start ---------------------------------------------------------------------------------- */

static int start(struct host *h, unsigned a)
{
	char slots[32];
	char *const argv[] = {slots, h->options->reduce ? "--reduce" : NULL, NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct accelerator *acc = &h->accel[a];

	how.ctx = h->ctx;
	snprintf(slots, sizeof(slots), "--accelerator=%u",
		 h->options->way == WAY_PUT ? h->options->window : 0);
	if (slmpm_spawn(&acc->peer, "/proc/self/exe", argv, &how) < 0)
		return slmpm_perror("slmpm_demo: start of an accelerator");
	slmpm_peer_query(acc->peer, &info);
	acc->pid = info.pid;
	snprintf(acc->name, sizeof(acc->name), "accelerator %u (pid %d)", a + 1, info.pid);
	acc->gone = false;
	h->living++;
	crew_receive(h, a);
	return 0;
}

/* Their regions, without which an accelerator is of no use. */
static void accept_places(struct host *h)
{
	for (unsigned a = 0; a < h->options->accelerators; a++)
		if (!h->accel[a].gone &&
		    slmpm_mem_accept(h->accel[a].peer, &h->accel[a].places, 5000) < 0)
			crew_bury(h, a, slmpm_error_detail());
}

static int form_group(struct host *h)
{
	slmpm_peer members[1 + ACCELERATORS_MAX] = {{0}};
	unsigned n = h->options->accelerators;

	for (unsigned a = 0; a < n; a++)
		members[1 + a] = h->accel[a].peer;
	if (slmpm_group_create(&h->group, h->ctx, members, (int)n + 1, COUNTS_TAG, COUNTS_MS) < 0)
		return slmpm_perror("slmpm_demo: --reduce");
	return 0;
}

/* What has been woken does not interrupt what hashes: on few processors that is worth more. */
static void share_processors(void)
{
	const struct sched_param none = {0};

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
}

int crew_start(struct host *h)
{
	unsigned n = h->options->accelerators;

	share_processors();
	h->tally->accelerators = n;
	for (unsigned a = 0; a < n; a++)
		h->accel[a].gone = true;
	for (unsigned a = 0; a < n; a++)
		if (start(h, a))
			return 1;
	if (h->options->way == WAY_PUT)
		accept_places(h);
	return h->options->reduce ? form_group(h) : 0;
}

/* ---- loss ----------------------------------------------------------------------------------- */

void crew_drop(slmpm_req *req)
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
			if (h->accel[a].peer.id == e.peer.id && e.error < 0)
				snprintf(h->accel[a].fate, sizeof(h->accel[a].fate), "%s",
					 e.detail);
}

static void end_requests(struct host *h, unsigned a)
{
	for (unsigned k = 0; k <= h->options->window; k++)
		crew_drop(req_of(h, a, k));
	stress_end(h, a);
}

static void tell_loss(const struct host *h, const struct accelerator *acc, const char *why,
		      size_t left)
{
	screen_clear();
	fprintf(stderr,
		"slmpm_demo: lost %s: %s; its unfinished files (%zu) are done again by %s\n",
		acc->name, *acc->fate ? acc->fate : why, left,
		h->living ? "the others" : "the host itself");
}

/* What it had finished before has been received. */
void crew_bury(struct host *h, unsigned a, const char *why)
{
	struct accelerator *acc = &h->accel[a];
	size_t left = 0;

	for (unsigned k = 0; k < h->options->window; k++) {
		struct slot *s = &acc->slot[k];

		slot_close(s, &h->ledger);
		for (; s->first < s->next; s->first++, left++)
			ledger_again(&h->ledger, s->given[s->first % LENT_MAX].file);
	}
	acc->gone = acc->broken = true;
	end_requests(h, a);
	h->living--;
	h->tally->lost++;
	h->tally->redone += left;
	take_stats(h, acc);
	take_events(h);
	if (!ending()) /* else they may have been asked to end, too */
		tell_loss(h, acc, why, left);
	slmpm_kill(acc->peer, 0); /* should it still run, as after breaking the protocol */
	slmpm_join(acc->peer, NULL, 1000);
}

/* ---- parting -------------------------------------------------------------------------------- */

/* Operations whose end nobody has asked about yet: their files are done all the same. */
static void settle(struct host *h, unsigned a)
{
	struct slmpm_done done;

	for (unsigned k = 1; k <= h->options->window; k++)
		if (req_of(h, a, k)->id && slmpm_wait(req_of(h, a, k), 1, &done, 5000) == 0)
			crew_count(h, a, &done);
	stress_settle(h, a);
}

static void take_counters(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	unsigned long long writes, reads;
	struct slmpm_done done;

	if (slmpm_wait(req_of(h, a, 0), 1, &done, 5000) != 0)
		return;
	if (done.status == 0 && done.imm == IMM_READY) { /* it has had no file */
		crew_receive(h, a);
		if (slmpm_wait(req_of(h, a, 0), 1, &done, 5000) != 0)
			return;
	}
	if (done.status != 0 || done.imm != IMM_COUNTERS || done.len >= sizeof(acc->answer))
		return;
	acc->answer[done.len] = '\0';
	if (sscanf((char *)acc->answer, "%llu %llu", &writes, &reads) == 2) {
		h->tally->remote_writes += writes;
		h->tally->remote_reads += reads;
	}
}

/* The accelerators' own counts, added up. For those that are gone the host has its own, and for
 * what it has hashed itself. */
static void reduce(struct host *h)
{
	struct counts own = h->tally->counts;

	for (unsigned a = 0; a < h->options->accelerators; a++)
		if (!h->accel[a].gone)
			counts_subtract(&own, &h->accel[a].counts);
	if (counts_reduce(h->group, &own, &h->tally->reduced) < 0)
		snprintf(h->tally->not_reduced, sizeof(h->tally->not_reduced), "%s",
			 slmpm_error_detail());
	slmpm_group_destroy(h->group);
}

void crew_part(struct host *h)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_BYE, .timeout_ms = 5000};
	unsigned n = h->options->accelerators;

	crew_count_loans(h);
	for (unsigned a = 0; a < n; a++) {
		if (h->accel[a].gone)
			continue;
		settle(h, a);
		slmpm_sendv(h->accel[a].peer, 0, NULL, 0, &how, req_of(h, a, 1));
	}
	if (h->group.id)
		reduce(h);
	for (unsigned a = 0; a < n; a++) {
		if (h->accel[a].gone)
			continue;
		settle(h, a);
		take_counters(h, a);
		take_stats(h, &h->accel[a]);
		if (slmpm_join(h->accel[a].peer, NULL, 5000) < 0)
			slmpm_kill(h->accel[a].peer, 0);
	}
}

void crew_kill(struct host *h)
{
	for (unsigned a = 0; a < h->options->accelerators; a++) {
		if (h->accel[a].gone)
			continue;
		h->accel[a].gone = true;
		end_requests(h, a);
		take_stats(h, &h->accel[a]);
		slmpm_kill(h->accel[a].peer, 0);
		slmpm_join(h->accel[a].peer, NULL, 1000);
	}
}
