/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts of stress, accelerator by accelerator (stress.h). Each waits for events. */
#include "apps/slmpm_demo/stress.h"

#include <signal.h>
#include <sys/wait.h>

#include "apps/slmpm_demo/host.h"

#define BURSTS       8                    /* in a run, about */
#define BURSTS_MORE  64                   /* where they do not move anything */
#define LOADS        64                   /* of the engine, in one burst, at most */
#define PATIENCE_NS  UINT64_C(5000000000) /* with an accelerator that does not get ready */
#define LIGHT_WEIGHT 8192                 /* a message that no threshold speaks of */

static unsigned char junk[PLACE];

static const enum slmpm_reason wanted[STRESSES] = {[STRESS_RING] = SLMPM_REASON_RING,
						   [STRESS_QUEUE] = SLMPM_REASON_QUEUE,
						   [STRESS_LINK] = SLMPM_REASON_LINK};

static bool stops_reader(const struct host *h)
{
	return h->options->stress != STRESS_QUEUE;
}

bool stress_holds(const struct host *h, unsigned a)
{
	enum strain_state state = h->accel[a].strain.state;

	return h->options->stress && state != STRAIN_CALM && state != STRAIN_PRESSES;
}

void stress_see(struct host *h, unsigned a, int reason)
{
	struct strain *s = &h->accel[a].strain;

	if (reason == SLMPM_REASON_BOTH) /* a link is left for its queue, too */
		reason = SLMPM_REASON_LINK;
	if (s->state == STRAIN_PRESSES && reason == (int)wanted[h->options->stress])
		s->seen++;
}

bool stress_busy(const struct host *h)
{
	for (unsigned a = 0; h->options->stress && a < h->options->accelerators; a++)
		if (!h->accel[a].gone && h->accel[a].strain.state != STRAIN_CALM)
			return true;
	return false;
}

/* ---- ballast -------------------------------------------------------------------------------- */

static bool is_full(const struct host *h, unsigned a)
{
	struct slmpm_stats s = {.size = sizeof(s)};

	return slmpm_peer_stats(h->accel[a].peer, &s, sizeof(s)) == 0 &&
	       (s.out_produced - s.out_consumed) * 100 >= s.out_segments * 80;
}

static void count_ballast(struct host *h, unsigned a, const struct slmpm_done *done)
{
	h->accel[a].broken |= done->status < 0;
	if (done->status < 0)
		return;
	*(done->op == SLMPM_OP_PUT ? &h->tally->ballast_puts : &h->tally->ballast_messages) += 1;
	h->tally->ballast_bytes += done->len;
}

/* One message of ballast. A reader that is stopped leaves it in the ring: so that is full in the
 * end, or, where there is another link, the selector takes that. */
static bool load_ring(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_BALLAST, .timeout_ms = -1};
	bool links = h->options->stress == STRESS_LINK;
	const struct slmpm_iov piece = {.base = junk, .len = links ? CHUNK : LIGHT_WEIGHT};
	struct slmpm_done done;

	if (acc->strain.req[0].id) {
		if (slmpm_test(acc->strain.req, &done) != 1)
			return false;
		count_ballast(h, a, &done);
		if (links ? done.reason == SLMPM_REASON_LINK : is_full(h, a))
			acc->strain.state = STRAIN_PRESSES;
		return true;
	}
	if (slmpm_sendv(acc->peer, BALLAST_STREAM, &piece, 1, &how, acc->strain.req) < 0)
		acc->broken = true;
	return true;
}

/* As many puts as there are handles for; the engine has them all before anybody asks for
 * progress. */
static bool load_engine(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	/* Strict: or the engine's being busy would send the last of them another way, too. */
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_STRICT, .timeout_ms = -1};
	uint64_t place = place_of(h->options->window, 0);

	for (unsigned i = 0; i < BALLAST_PUTS; i++)
		acc->broken |=
			slmpm_put(acc->places, place, junk, PLACE, &how, &acc->strain.req[i]) < 0;
	acc->strain.state = STRAIN_PRESSES;
	return true;
}

/* Is there any left? */
static bool engine_moves(struct host *h, unsigned a)
{
	struct strain *s = &h->accel[a].strain;
	struct slmpm_done done;
	bool moves = false;

	for (unsigned i = 0; i < BALLAST_PUTS; i++) {
		if (!s->req[i].id)
			continue;
		if (slmpm_test(&s->req[i], &done) == 1)
			count_ballast(h, a, &done);
		else
			moves = true;
	}
	return moves;
}

/* ---- bursts --------------------------------------------------------------------------------- */

/* Both ends are there, and the links that it takes. */
static bool is_ready(const struct host *h, unsigned a)
{
	struct slmpm_link_info link = {.size = sizeof(link)};
	struct slmpm_peer_info info = {.size = sizeof(info)};

	if (slmpm_peer_query(h->accel[a].peer, &info) < 0 || info.state != SLMPM_PEER_UP)
		return false;
	return h->options->stress != STRESS_LINK ||
	       (slmpm_link_query(h->accel[a].peer, 1, &link) == 0 && link.state == SLMPM_LINK_UP);
}

static bool begin(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];

	acc->strain.seen = 0;
	acc->strain.state = STRAIN_LOADS;
	h->tally->bursts++;
	if (!stops_reader(h))
		return true;
	acc->strain.state = STRAIN_STOPS;
	acc->broken |= kill(acc->pid, SIGSTOP) != 0;
	return true;
}

static bool has_stopped(const struct accelerator *acc)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)acc->pid, &info, WSTOPPED | WNOHANG) == 0 &&
	       info.si_pid == acc->pid;
}

static bool end_burst(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	uint64_t all = h->ledger.files->bytes;

	if (stops_reader(h))
		kill(acc->pid, SIGCONT);
	h->tally->moved += acc->strain.seen > 0;
	acc->strain.due =
		h->tally->traffic.bytes + 1 + all / (acc->strain.seen ? BURSTS : BURSTS_MORE);
	acc->strain.state = STRAIN_CALM;
	return true;
}

/* Operations under way have been decided about, too. */
static void inspect(struct host *h, unsigned a)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	for (unsigned k = 1; k <= h->options->window; k++)
		if (req_of(h, a, k)->id && slmpm_req_mode(*req_of(h, a, k), &mode) == 0 && mode.op)
			stress_see(h, a, (int)mode.reason);
}

/* Until nothing moves: no file's bytes with the reader stopped, no ballast in the engine. */
static bool press(struct host *h, unsigned a, bool moved)
{
	inspect(h, a);
	if (stops_reader(h) ? moved : engine_moves(h, a))
		return false;
	return end_burst(h, a);
}

/* There is a long piece to be sent or put, about which the selector can be asked. */
static bool has_cause(const struct host *h, unsigned a)
{
	for (unsigned k = 0; k < h->options->window; k++)
		if (!req_of(h, a, k + 1)->id && slot_is_long(&h->accel[a].slot[k]))
			return true;
	return false;
}

/* A process of this machine that may be stopped: a child. */
static bool is_here(const struct accelerator *acc)
{
	siginfo_t info;

	return acc->pid > 0 &&
	       waitid(P_PID, (id_t)acc->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* One that cannot be stressed works all the same. */
static bool wait_for(struct host *h, unsigned a)
{
	bool here = is_here(&h->accel[a]);

	if (here && is_ready(h, a))
		return begin(h, a);
	if (here && now_ns() - h->tally->traffic.began < PATIENCE_NS)
		return false;
	screen_clear();
	fprintf(stderr, "slmpm_demo: %s: no stress, for it %s\n", h->accel[a].name,
		here ? "lacks a link" : "is not on this machine");
	h->accel[a].strain.due = UINT64_MAX;
	h->accel[a].strain.state = STRAIN_CALM;
	return true;
}

bool stress_step(struct host *h, unsigned a, bool moved)
{
	struct accelerator *acc = &h->accel[a];
	struct strain *s = &acc->strain;

	if (!h->options->stress || acc->gone || acc->broken)
		return false;
	switch (s->state) {
	case STRAIN_WAITS: return wait_for(h, a);
	case STRAIN_CALM:
		return h->tally->traffic.bytes >= s->due && has_cause(h, a) && begin(h, a);
	case STRAIN_STOPS:
		if (!has_stopped(acc))
			return false;
		s->state = STRAIN_LOADS;
		return true;
	case STRAIN_LOADS:
		if (!stops_reader(h))
			return load_engine(h, a);
		return load_ring(h, a) || end_burst(h, a);
	case STRAIN_PRESSES: return press(h, a, moved);
	}
	return false;
}

/* ---- the end -------------------------------------------------------------------------------- */

void stress_settle(struct host *h, unsigned a)
{
	struct strain *s = &h->accel[a].strain;
	struct slmpm_done done;

	if (!h->options->stress)
		return;
	if (s->state > STRAIN_CALM)
		end_burst(h, a);
	for (unsigned i = 0; i < BALLAST_PUTS; i++)
		if (s->req[i].id && slmpm_wait(&s->req[i], 1, &done, 5000) == 0)
			count_ballast(h, a, &done);
}

void stress_end(struct host *h, unsigned a)
{
	for (unsigned i = 0; i < BALLAST_PUTS; i++)
		crew_drop(&h->accel[a].strain.req[i]);
	h->accel[a].strain.state = STRAIN_CALM;
}
