/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* libs: -Wl,--wrap=groups_send,--wrap=dial_say_close,--wrap=progress_drain,--wrap=endpoint_end */
/* libs: -Wl,--wrap=bootstrap_stop,--wrap=context_forget_events,--wrap=event_find */
/* libs: -Wl,--wrap=context_changed,--wrap=dial_has_left */
/*
 * slmpm/group/release.c as it is: in which order two sides say RELEASED and CLOSE of a connection
 * that no group has any more, also where there is no memory for the one, or no room for the other.
 */
#include <string.h>

#include "slmpm/group/pairing.h"
#include "tests/lib/test.h"

static struct context ctx;
static struct endpoint ep;
static struct rooms rooms;
static struct life life;
static struct pair pair;
static struct list packet; /* CLOSE, where there is no room */
static bool memoryless, full;
static char done[16]; /* R: RELEASED is said, r: and dropped, C: CLOSE, E: it has ended */

/* ---- in place of the library's --------------------------------------------------------------- */

bool __wrap_groups_send(struct endpoint *to, struct wire_group *p);
void __wrap_dial_say_close(struct endpoint *to);
bool __wrap_dial_has_left(struct endpoint *of);
bool __wrap_progress_drain(struct endpoint *from);
void __wrap_endpoint_end(struct endpoint *of, uint32_t state, int error, const char *why);
void __wrap_bootstrap_stop(struct endpoint *of, const char *reason);
void __wrap_context_forget_events(struct endpoint *of);
struct event *__wrap_event_find(const struct endpoint *of, uint32_t type, uint32_t link);
void __wrap_context_changed(struct context *c);

static void note(char what)
{
	done[strlen(done)] = what;
}

bool __wrap_groups_send(struct endpoint *to, struct wire_group *p)
{
	CHECK(to == &ep && LITTLE_32(p->step) == GROUP_RELEASED, "another packet");
	note(memoryless ? 'r' : 'R');
	return !memoryless;
}

void __wrap_dial_say_close(struct endpoint *to)
{
	note('C');
	to->life->sent_end = true;
	if (full)
		list_append(&to->link.deferred, &packet);
}

bool __wrap_dial_has_left(struct endpoint *of)
{
	return list_empty(&of->link.deferred);
}

bool __wrap_progress_drain(struct endpoint *from)
{
	(void)from;
	return false;
}

void __wrap_endpoint_end(struct endpoint *of, uint32_t state, int error, const char *why)
{
	(void)error, (void)why;
	note('E');
	of->state = state;
	of->rooms->pair->known = true; /* it is another's to free */
}

void __wrap_bootstrap_stop(struct endpoint *of, const char *reason)
{
	(void)of, (void)reason;
}

void __wrap_context_forget_events(struct endpoint *of)
{
	(void)of;
}

/* The application has not taken it. */
struct event *__wrap_event_find(const struct endpoint *of, uint32_t type, uint32_t link)
{
	(void)of, (void)type, (void)link;
	return (struct event *)&packet;
}

void __wrap_context_changed(struct context *c)
{
	(void)c;
}

/* ---- a connection whose group has just gone -------------------------------------------------- */

static void set_up(bool own)
{
	list_init(&ctx.groups);
	list_init(&ctx.paired);
	list_init(&packet);
	list_init(&ep.link.deferred);
	life = (struct life){.was_up = true};
	rooms = (struct rooms){.pair = &pair};
	ep.ctx = &ctx;
	ep.life = &life;
	ep.rooms = &rooms;
	ep.state = SLMPM_PEER_UP;
	pair = (struct pair){.ep = &ep, .own = own};
	list_append(&ctx.paired, &pair.node);
	ctx.unpaired = true;
	memoryless = full = false;
	memset(done, 0, sizeof(done));
}

/* Progress does so as long as there is something to do. */
static void reap(void)
{
	for (int i = 0; ctx.unpaired && i < 3; i++)
		pairs_reap(&ctx);
}

static void has_done(const char *what)
{
	CHECK(!strcmp(done, what), "\"%s\", not \"%s\"", done, what);
}

/* Who made it says it first, and closes behind the other's word. */
static void by_its_maker(void)
{
	set_up(true);
	reap();
	has_done("R");
	CHECK(pair_released(&ep) == 0, "it is refused");
	reap();
	has_done("RCE");
}

static void by_the_other(void)
{
	set_up(false);
	reap();
	has_done("");
	CHECK(pair_released(&ep) == 0, "it is refused");
	reap();
	has_done("R");
}

/* It stays until CLOSE has gone. */
static void without_room(void)
{
	set_up(true);
	full = true;
	CHECK(pair_released(&ep) == 0, "it is refused");
	reap();
	has_done("RC");
	CHECK(ctx.unpaired, "nothing closes it");
	list_remove(&packet);
	reap();
	has_done("RCE");
}

/* It is said again. */
static void without_memory(bool own)
{
	set_up(own);
	memoryless = true;
	if (!own)
		CHECK(pair_released(&ep) == 0, "it is refused");
	pairs_reap(&ctx);
	has_done(own ? "r" : "rr");
	CHECK(ctx.unpaired, "nothing says it again");
	memoryless = false;
	pairs_reap(&ctx);
	has_done(own ? "rR" : "rrR");
	CHECK(!ctx.unpaired, "it is said without end");
}

int main(void)
{
	by_its_maker();
	by_the_other();
	without_room();
	without_memory(false);
	without_memory(true);
	return 0;
}
