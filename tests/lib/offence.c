/* SPDX-License-Identifier: BSD-3-Clause */
/* Offender and victim (offence.h). */
#include "tests/lib/offence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/settings.h"

void victim_begin(struct victim *v, const char *name)
{
	settings_one_link("shm"); /* as the raw peer's */
	victim_open(v, name);
}

void victim_open(struct victim *v, const char *name)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	bool tcp = !strcmp(name, "tcp:");
	char url[80];

	setenv("SLMPM_LOG_LEVEL", "none", 1);
	snprintf(v->address, sizeof(v->address), "%s-%d", name, (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", v->address);
	OK(slmpm_open(&v->ctx, NULL));
	OK(slmpm_listen(&v->listener, v->ctx, tcp ? "tcp://127.0.0.1:0" : url));
	OK(slmpm_listener_query(v->listener, &info));
	if (tcp)
		snprintf(v->address, sizeof(v->address), "tcp://127.0.0.1:%u#%.32s", info.port,
			 info.secret);
	v->honest_pid = child_start(honest_peer, v->address, 60);
	OK(slmpm_accept(v->listener, &v->honest, PATIENCE));
}

void victim_end(struct victim *v)
{
	honest_works(v->honest);
	OK(slmpm_shut(v->ctx, PATIENCE));
	CHECK(child_wait(v->honest_pid) == 0, "the honest peer came to harm");
}

/* ---- after a message ------------------------------------------------------------------------ */

static int legal; /* messages that have come */

static void say_legal(struct raw_peer *p, const char *at)
{
	raw_begin(p, raw_connect(at));
	raw_steps(p, RAW_HELLO, RAW_UP);
	raw_send(p, 1, "legal", 5);
	raw_ring_bell(p);
	raw_await_packet(p);
}

/* Asleep and awake, with a look at the figures and without. */
static int64_t take_legal(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_stats stats;
	unsigned char got[64];
	int64_t n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5);

	if (legal == 0 && n > 0) {
		CHECK(n == 5 && memcmp(got, "legal", 5) == 0, "%s: the legal message", o->name);
		OK(slmpm_send(peer, 1, "go on", 5, PATIENCE));
	}
	legal += n > 0;
	if (n == -SLMPM_ETIMEOUT && legal)
		OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	return n;
}

static void see_legal(slmpm_peer peer, const struct offence *o)
{
	(void)peer;
	CHECK(legal > 0, "%s: the legal message was lost", o->name);
	legal = 0;
}

const struct trial trial_legal = {.come = say_legal, .inspect = take_legal, .see = see_legal};

/* ---- the offender --------------------------------------------------------------------------- */

struct offender {
	const struct offence *offence;
	const struct trial *trial;
	const char *address;
};

static int offend(void *arg)
{
	const struct offender *me = arg;
	const struct offence *o = me->offence;
	struct raw_peer p;
	char reason[112];

	if (me->trial->come) {
		me->trial->come(&p, me->address);
	} else {
		raw_begin(&p, raw_connect(me->address));
		p.hello.features = LITTLE_64(WIRE_FEATURES);
		raw_steps(&p, RAW_HELLO, RAW_UP);
	}
	o->commit(&p);
	raw_ring_bell(&p);
	if (me->trial->hear_end)
		me->trial->hear_end(&p, reason);
	else
		raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, o->word), "%s: the answer was \"%s\"", o->name, reason);
	(me->trial->leave ? me->trial->leave : raw_end)(&p);
	return 0;
}

/* ---- who is offended ------------------------------------------------------------------------ */

static uint64_t counted(const char *word)
{
	uint64_t sum = 0, count;
	const char *name;

	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		if (strstr(name, word))
			sum += count;
	return sum;
}

static slmpm_peer meet(const struct victim *v, struct offender *offender, pid_t *pid)
{
	slmpm_peer peer;

	if (offender->trial->meet)
		return offender->trial->meet(v, offender->offence, offend, offender, pid);
	*pid = child_start(offend, offender, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	return peer;
}

static int64_t inspect(const struct trial *t, slmpm_peer peer, const struct offence *o)
{
	unsigned char got[64];

	return t->inspect ? t->inspect(peer, o) : slmpm_recv(peer, 1, got, sizeof(got), NULL, 5);
}

static void expect_poisoned(slmpm_ctx ctx, slmpm_peer peer, const struct offence *o)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event e = {.size = sizeof(e)};
	struct slmpm_stats stats;
	bool notified = false;

	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(info.state == SLMPM_PEER_POISONED && stats.violations == 1,
	      "%s: state %u, %llu violations", o->name, info.state,
	      (unsigned long long)stats.violations);
	while (slmpm_next_event(ctx, &e, 0) == 1)
		if (e.peer.id == peer.id && e.type != SLMPM_EVENT_UP &&
		    e.type != SLMPM_EVENT_LINK_UP && e.type != SLMPM_EVENT_LINK_LOST) {
			CHECK(e.type == SLMPM_EVENT_POISONED && e.error == -SLMPM_EPROTO &&
				      !notified,
			      "%s: event %u, error %d: %s", o->name, e.type, e.error, e.detail);
			notified = true;
		}
	CHECK(notified, "%s: no event", o->name);
	EXPECT(slmpm_send(peer, 1, "x", 1, PATIENCE), -SLMPM_EPROTO);
}

/* A fabric may hear a connection out for a while. */
static void nothing_is_left(const struct victim *v, struct holdings before, const char *name)
{
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();
	struct holdings now;

	do {
		honest_works(v->honest);
		now = holdings_now();
	} while ((now.descriptors > before.descriptors || now.mappings > before.mappings) &&
		 actor_now_ms() < until);
	holdings_expect(before, name);
}

static void survive(const struct victim *v, const struct trial *t, const struct offence *o)
{
	struct offender offender = {o, t, v->address};
	struct holdings before = holdings_now();
	int64_t until = actor_now_ms() + PATIENCE * actor_slow(), n;
	uint64_t count = counted(o->word);
	slmpm_peer peer;
	pid_t pid;

	peer = meet(v, &offender, &pid);
	while ((n = inspect(t, peer, o)) != -SLMPM_EPROTO) {
		CHECK(actor_now_ms() < until, "%s was not noticed", o->name);
		CHECK(n >= 0 || n == -SLMPM_ETIMEOUT || n == -SLMPM_ETRUNC, "%s: %lld (%s)",
		      o->name, (long long)n, slmpm_error_detail());
		honest_works(v->honest);
	}
	CHECK(strstr(slmpm_error_detail(), o->word), "%s: \"%s\"", o->name, slmpm_error_detail());
	CHECK(counted(o->word) == count + 1, "%s: counted %llu times", o->name,
	      (unsigned long long)(counted(o->word) - count));
	expect_poisoned(v->ctx, peer, o);
	CHECK(child_wait(pid) == 0, "%s: see above", o->name);
	if (t->see)
		t->see(peer, o);
	OK(slmpm_close(peer, PATIENCE));
	nothing_is_left(v, before, o->name);
	printf("%-3s %-30s %s\n", o->rule, o->name, o->word);
}

void offence_survive(const struct victim *v, const struct trial *t, const struct offence *all,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		survive(v, t, &all[i]);
}
