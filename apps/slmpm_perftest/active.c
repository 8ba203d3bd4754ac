/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of active messages: the handler brings the data to where a receive would. */
#include "apps/slmpm_perftest/perftest.h"

#include <poll.h>
#include <string.h>

#define AM_ID    1
#define PATIENCE 20000 /* looks at an idle library before going to sleep */
#define NAP_MS   1000

static void arrived(const struct slmpm_am *am, void *arg)
{
	struct pair *p = arg;

	/* As a receive does: a word without a call. */
	if (am->data_len == sizeof(uint64_t))
		memcpy(p->rx, am->data, sizeof(uint64_t));
	else
		memcpy(p->rx, am->data, am->data_len);
	p->ams++;
}

static int sleep_until_work(struct pair *p)
{
	struct pollfd ready = {.fd = slmpm_fd(p->ctx), .events = POLLIN};
	struct slmpm_peer_info info = {.size = sizeof(info)};

	if (slmpm_arm(p->ctx) == 0)
		poll(&ready, 1, NAP_MS);
	slmpm_progress(p->ctx);
	if (slmpm_peer_query(p->peer, &info) < 0 || info.state > SLMPM_PEER_UP)
		return -SLMPM_EDEAD;
	return 0;
}

/* After a pass that has brought nothing. */
static __attribute__((noinline)) int nothing(struct pair *p, uint64_t *idle, uint64_t *spins)
{
	if (p->wait == SLMPM_WAIT_SPIN || ++*idle < PATIENCE)
		return pair_idle(p, spins);
	return sleep_until_work(p);
}

/* Handlers run inside of what makes progress; there is no call that waits for one. */
static ALWAYS_INLINE int await(struct pair *p, uint64_t want)
{
	uint64_t idle = p->wait == SLMPM_WAIT_BLOCK ? PATIENCE : 0, spins = 0;
	int rc = 0;

	while (p->ams < want && rc >= 0)
		if (slmpm_progress(p->ctx) <= 0)
			rc = nothing(p, &idle, &spins);
	return rc;
}

static int begin(struct pair *p)
{
	int rc = slmpm_am_handler(p->ctx, AM_ID, arrived, p);

	p->no_thread = true;
	/* No message must come before its handler is there. */
	if (rc >= 0)
		rc = p->side ? pair_signal(p) : pair_signaled(p);
	return rc;
}

static ALWAYS_INLINE int say(struct pair *p, const struct job *j, uint64_t i, bool touch)
{
	if (touch)
		fill(p->tx, j->size, i);
	return slmpm_am(p->peer, AM_ID, NULL, 0, p->tx, j->size, NULL, NULL);
}

static ALWAYS_INLINE int hear(struct pair *p, const struct job *j, uint64_t want, bool touch)
{
	int rc = await(p, want);

	if (touch)
		consume(p->rx, j->size);
	return rc;
}

static ALWAYS_INLINE int ping(struct pair *p, const struct job *j, struct hist *stamps, bool touch,
			      uint64_t have)
{
	uint64_t before = stamps ? now_ns() : 0, now;
	int rc = 0;

	for (uint64_t i = 0; i < 2 * j->count && rc >= 0; i++) {
		rc = (i & 1) == (uint64_t)p->side ? say(p, j, i, touch) : hear(p, j, ++have, touch);
		if (stamps && (i & 1)) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return rc;
}

int loop_am_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t have = p->ams; /* before it begins: the first may come while the signal is sent */
	int rc = begin(p);

	if (rc < 0)
		return rc;
	if (stamps)
		return j->touch ? ping(p, j, stamps, true, have) : ping(p, j, stamps, false, have);
	return j->touch ? ping(p, j, NULL, true, have) : ping(p, j, NULL, false, have);
}

/* Each until its sender knows that its handler has run. */
int loop_am_remote(struct pair *p, const struct job *j, struct hist *stamps)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	uint64_t before, now, have = p->ams;
	int rc = begin(p);

	if (p->side)
		return rc < 0 ? rc : await(p, have + j->count);
	before = stamps ? now_ns() : 0;
	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		if (j->touch)
			fill(p->tx, j->size, i);
		rc = slmpm_am(p->peer, AM_ID, NULL, 0, p->tx, j->size, &how, NULL);
		if (stamps) {
			now = now_ns();
			hist_add(stamps, now - before);
			before = now;
		}
	}
	return rc;
}

int loop_am_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	const struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = -1};
	uint64_t have = p->ams;
	int rc = begin(p);

	(void)stamps;
	if (p->side)
		return rc < 0 ? rc : await(p, have + j->count);
	for (uint64_t i = 1; i <= j->count && rc >= 0; i++)
		if (i % j->burst && i < j->count)
			rc = slmpm_am(p->peer, AM_ID, NULL, 0, p->tx, j->size, &more, NULL);
		else
			rc = say(p, j, i, j->touch);
	return rc;
}
