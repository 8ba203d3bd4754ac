/* SPDX-License-Identifier: BSD-3-Clause */
/* Offended about links (raw_link_trial.h). */
#include "tests/lib/raw_link_trial.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_link.h"

static int still; /* messages that came after a refusal */

void link_trial_come(struct raw_peer *p, const char *at)
{
	raw_begin(p, raw_connect(at));
	p->hello.features = LITTLE_64(WIRE_FEATURES | WIRE_FEATURE_LINKS);
	raw_steps(p, RAW_HELLO, RAW_UP);
}

int64_t link_trial_look(slmpm_peer peer, const struct offence *o)
{
	unsigned char got[64];
	int64_t n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5);

	if (n >= 0)
		CHECK(n == 5 && !memcmp(got, "still", 5), "%s: a message of %lld bytes", o->name,
		      (long long)n);
	still += n >= 0;
	return n;
}

void link_trial_see(slmpm_peer peer, const struct offence *o)
{
	(void)peer;
	CHECK(still == o->note, "%s: %d messages came behind it", o->name, still);
	still = 0;
}

void link_trial_see_standing(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	link_trial_see(peer, o);
	OK(slmpm_link_query(peer, 1, &info));
	CHECK(!info.reason[0], "%s: it was lost: %s", o->name, info.reason);
}

void link_trial_leave(struct raw_peer *p)
{
	raw_end(p);
	mapping_destroy(&raw_link_memory);
}

/* The honest peer's links are made, and none comes later. */
static void await_links(const struct victim *v)
{
	struct slmpm_link_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;
	uint32_t link = 0;

	while (slmpm_link_query(v->honest, link, &info) == 0) {
		CHECK(actor_now_ms() < until, "the honest peer's link %u does not come", link);
		honest_works(v->honest);
		link += info.state == SLMPM_LINK_UP;
	}
	CHECK(link > 1, "the honest peer has %u links", link);
}

static void settings(const char *fabric, const char *links)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	setenv("SLMPM_LINKS", links, 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	unsetenv("SLMPM_LINK");
}

void link_victim_begin(struct victim *v, const char *name)
{
	settings("shm", "2");
	victim_open(v, name);
	await_links(v);
}

void link_victim_begin_tcp(struct victim *v)
{
	settings("tcp", "3");
	unsetenv("SLMPM_SECRET");
	victim_open(v, "tcp:");
	await_links(v);
}

void link_victim_end(struct victim *v)
{
	await_links(v);
	victim_end(v);
}
