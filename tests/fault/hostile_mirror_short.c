/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Changes that lie elsewhere, or whose numbers cannot be, to a process that has no other peer and
 * calls slmpm_progress alone: there changes are taken by a fast path, which checks by itself. Each
 * ends the channel by its name, behind a legal one, and no byte outside of the mirror is touched.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define TAG   7
#define BYTES 4096
#define GUARD 8192

static _Alignas(8) unsigned char room[GUARD + BYTES + GUARD];
static unsigned char noise[BYTES + 8];
static char address[64];

struct change {
	const char *name, *word;
	uint64_t number, place;
	uint32_t slot, stored, length;
	uint8_t opcode;
};

#define PLACE  "place of a change"
#define NUMBER "publication's number"

static const struct change changes[] = {
	{"beyond", PLACE, 3, BYTES - 7, 0, 0, 8, WIRE_MIRROR_LAST},
	{"right behind", PLACE, 3, BYTES, 0, 0, 8, WIRE_MIRROR_LAST},
	{"beyond, and long", PLACE, 3, 8, 0, 0, BYTES, WIRE_MIRROR_LAST},
	{"longer than all of it", PLACE, 3, 0, 0, 0, BYTES + 8, WIRE_MIRROR_LAST},
	{"far beyond", PLACE, 3, WIRE_LENGTH_MASK - 7, 0, 0, 8, WIRE_MIRROR_LAST},
	{"nothing", PLACE, 3, 0, 0, 0, 0, WIRE_MIRROR_LAST},
	{"a number again", NUMBER, 2, 0, 0, 0, 8, WIRE_MIRROR_LAST},
	{"number 0", NUMBER, 0, 0, 0, 0, 8, WIRE_MIRROR_LAST},
	{"no slot of any", "change of no mirror", 3, 0, 1, 0, 8, WIRE_MIRROR_LAST},
	{"no slot", "change of no mirror", 3, 0, UINT32_MAX, 0, 8, WIRE_MIRROR_LAST},
	{"more stored than sent", "count of changes", 3, 0, 0, 1, 8, WIRE_MIRROR_LAST},
	{"a flag", "unknown flag", 3, UINT64_C(1) << 63, 0, 0, 8, WIRE_MIRROR_LAST},
	{"amidst another", NUMBER, 4, 0, 0, 0, 8, WIRE_MIRROR_LAST},
	{"a part beyond", PLACE, 3, BYTES, 0, 0, 8, WIRE_MIRROR_PART},
};

/* ---- the offender ---------------------------------------------------------------------------- */

static int offend(void *arg)
{
	const struct change *c = arg;
	const struct wire_mirror ask = {.size = LITTLE_64(BYTES),
					.tag = LITTLE_32(TAG),
					.how = LITTLE_32(SLMPM_MIRROR_LEAD)};
	struct raw_peer p;
	char reason[112];

	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_await_packet(&p); /* the victim asks */
	raw_post(&p, WIRE_MIRROR_ASK, 0, 0, 0, &ask, sizeof(ask));
	raw_post(&p, WIRE_MIRROR_LAST, 1, 0, 0, noise, 8);
	raw_ring_bell(&p);
	raw_await_packet(&p); /* it has joined */
	raw_post(&p, WIRE_MIRROR_LAST, 2, 0, 8, noise, 8);
	if (c->number > 3) /* one that is here in part */
		raw_post(&p, WIRE_MIRROR_PART, 3, 0, 8, noise, 8);
	raw_post(&p, c->opcode, c->number, wire_route(c->slot, c->stored), c->place, noise,
		 c->length);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, c->word), "%s: the answer was \"%s\"", c->name, reason);
	raw_end(&p);
	return 0;
}

/* ---- the victim ------------------------------------------------------------------------------ */

static void await_end(slmpm_ctx ctx, slmpm_peer peer, const struct change *c)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + 5000 * actor_slow();

	do {
		(void)slmpm_progress(ctx);
		OK(slmpm_peer_query(peer, &info));
		CHECK(actor_now_ms() < until, "%s was not noticed", c->name);
	} while (info.state == SLMPM_PEER_UP);
	CHECK(info.state == SLMPM_PEER_POISONED, "%s: state %u", c->name, info.state);
	EXPECT(slmpm_recv(peer, 1, &info, 1, NULL, 0), -SLMPM_EPROTO);
	CHECK(strstr(slmpm_error_detail(), c->word), "%s: \"%s\"", c->name, slmpm_error_detail());
}

static void inspect(const struct change *c)
{
	for (size_t i = 0; i < sizeof(room); i++)
		CHECK(room[i] == (i >= GUARD && i < GUARD + 16 ? 0xee : 0x5a), "%s: byte %zd",
		      c->name, (ssize_t)i - GUARD);
}

static void survive(const struct change *c)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_mirror mirror;
	slmpm_ctx ctx;
	slmpm_peer peer;
	char url[80];
	uint64_t turn;
	pid_t pid;

	memset(room, 0x5a, sizeof(room));
	OK(slmpm_open(&ctx, NULL));
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(offend, (void *)(uintptr_t)c, 20);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mirror_create(ctx, room + GUARD, BYTES, NULL, &mirror));
	OK(slmpm_mirror_attach(mirror, peer, TAG, SLMPM_MIRROR_FOLLOW, PATIENCE));
	OK(slmpm_mirror_enter(mirror, &turn));
	OK(slmpm_send(peer, 1, "joined", 6, PATIENCE));
	await_end(ctx, peer, c);
	EXPECT(slmpm_mirror_leave(mirror, turn), -SLMPM_EAGAIN);
	OK(slmpm_mirror_query(mirror, peer, &info));
	CHECK(info.state == SLMPM_MIRROR_STALE && info.error == -SLMPM_EPROTO && info.sequence == 2,
	      "%s: state %u, error %d, publication %d", c->name, info.state, info.error,
	      (int)info.sequence);
	inspect(c);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "%s: see above", c->name);
	printf("%-24s %s\n", c->name, c->word);
}

/* ---- to who has none ------------------------------------------------------------------------- */

static const struct change bare = {"to who has no mirror", "change of no mirror", 1, 0, 0, 0, 8,
				   WIRE_MIRROR_LAST};

static int offend_bare(void *unused)
{
	struct raw_peer p;
	char reason[112];

	(void)unused;
	raw_begin(&p, raw_connect(address));
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_post(&p, bare.opcode, bare.number, wire_route(0, 0), 0, noise, bare.length);
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, bare.word), "%s: the answer was \"%s\"", bare.name, reason);
	raw_end(&p);
	return 0;
}

static void survive_bare(void)
{
	slmpm_listener listener;
	slmpm_peer peer;
	slmpm_ctx ctx;
	char url[80];
	pid_t pid;

	OK(slmpm_open(&ctx, NULL));
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(offend_bare, NULL, 20);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	await_end(ctx, peer, &bare);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "%s: see above", bare.name);
}

int main(void)
{
	settings_one_link("shm"); /* as the raw peer's */
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	snprintf(address, sizeof(address), "hostile-mirror-short-%d", (int)getpid());
	memset(noise, 0xee, sizeof(noise));
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		survive(&changes[i]);
	survive_bare();
	return 0;
}
