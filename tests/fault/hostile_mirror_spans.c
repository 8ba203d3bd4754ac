/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/*
 * Changes of a mirror of which only some spans are shared: what lies before, between, behind or
 * across these ends the channel by its name, and no byte outside of them is touched.
 */
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"

#define TAG   7
#define BYTES 4096
#define PLACE "place of a change"

static _Alignas(8) unsigned char room[BYTES];
static unsigned char noise[BYTES];
static slmpm_mirror mirror;

static const struct slmpm_span spans[] = {{64, 64}, {192, 64}, {BYTES - 128, 64}};

/* ---- the offender ---------------------------------------------------------------------------- */

/* What the victim has asked for: its sum of the spans is the only one that fits. */
static void hear_asked(struct raw_peer *p, struct wire_mirror *asked)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct ring_packet packet;

	for (uint8_t kind = 0; kind != WIRE_MIRROR_ASK;) {
		while (ring_peek(&p->r, &packet) != 1)
			CHECK(actor_now_ms() < until, "nothing was asked for");
		kind = packet.kind;
		if (kind == WIRE_MIRROR_ASK)
			memcpy(asked, packet.data + 24, sizeof(*asked));
		ring_release(&p->r, &packet);
	}
}

/* And a legal publication, which fills one of them. */
static void join(struct raw_peer *p)
{
	struct wire_mirror w;

	hear_asked(p, &w);
	w.how = LITTLE_32(SLMPM_MIRROR_LEAD);
	w.slot = 0;
	raw_post(p, WIRE_MIRROR_ASK, 0, 0, 0, &w, sizeof(w));
	raw_post(p, WIRE_MIRROR_LAST, 1, wire_route(0, 0), spans[1].offset, noise,
		 (uint32_t)spans[1].len);
}

static void change(struct raw_peer *p, uint64_t at, uint32_t n)
{
	join(p);
	raw_post(p, WIRE_MIRROR_LAST, 2, wire_route(0, 0), at, noise, n);
}

static void list(struct raw_peer *p, uint64_t at, uint32_t n)
{
	const uint64_t runs[4] = {LITTLE_64(WIRE_MIRROR_RUN(192, 8)), UINT64_MAX,
				  LITTLE_64(WIRE_MIRROR_RUN(at, n)), 0};

	memcpy(noise, runs, sizeof(runs));
	join(p);
	raw_post(p, WIRE_MIRROR_LIST_LAST, 2, wire_route(0, 0), 0, noise, sizeof(runs));
}

#define OFFENCE(name, what)                                                                        \
	static void name(struct raw_peer *p)                                                       \
	{                                                                                          \
		what;                                                                              \
	}

OFFENCE(before, change(p, 0, 8))
OFFENCE(into_one, change(p, 184, 16))
OFFENCE(between, change(p, 128, 8))
OFFENCE(out_of_one, change(p, 248, 16))
OFFENCE(across, change(p, 64, 192))
OFFENCE(behind, change(p, BYTES - 8, 8))
OFFENCE(beyond, change(p, BYTES, 8))
OFFENCE(run_between, list(p, 136, 8))
OFFENCE(run_into_one, list(p, 191, 2))
OFFENCE(run_behind, list(p, BYTES - 64, 8))

static const struct offence offences[] = {
	{"R5", "before all spans", before, PLACE, 0},
	{"R5", "from outside into one", into_one, PLACE, 0},
	{"R5", "between two", between, PLACE, 0},
	{"R5", "out of one", out_of_one, PLACE, 0},
	{"R5", "across two", across, PLACE, 0},
	{"R5", "behind all", behind, PLACE, 0},
	{"R5", "behind the mirror", beyond, PLACE, 0},
	{"R5", "a run between two", run_between, PLACE, 0},
	{"R5", "a run into one", run_into_one, PLACE, 0},
	{"R5", "a run behind all", run_behind, PLACE, 0},
};

/* ---- the victim ------------------------------------------------------------------------------ */

/* The call that asks for the mirror has taken the answer and the offence, too: none is attached. */
static bool seen_at_once;

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	const struct slmpm_mirror_options options = {
		.size = sizeof(options),
		.spans = spans,
		.span_count = sizeof(spans) / sizeof(spans[0]),
	};
	slmpm_peer peer;
	int rc;

	memset(room, 0x5a, sizeof(room));
	*pid = child_start(body, arg, 30);
	OK(slmpm_accept(v->listener, &peer, PATIENCE));
	OK(slmpm_mirror_create(v->ctx, room, BYTES, &options, &mirror));
	rc = slmpm_mirror_attach(mirror, peer, TAG, SLMPM_MIRROR_FOLLOW, 0);
	CHECK(rc == 0 || rc == -SLMPM_EAGAIN || rc == -SLMPM_EPROTO, "%s: %d", o->name, rc);
	seen_at_once = rc == -SLMPM_EPROTO;
	return peer;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	if (!seen_at_once) {
		OK(slmpm_mirror_query(mirror, peer, &info));
		CHECK(info.state == SLMPM_MIRROR_STALE && info.sequence == 1,
		      "%s: state %u, publication %d", o->name, info.state, (int)info.sequence);
	}
	for (size_t i = 0; i < BYTES; i++)
		CHECK((room[i] == 0x5a) == (i < 192 || i >= 256), "%s: byte %zu", o->name, i);
	OK(slmpm_mirror_destroy(mirror));
}

int main(void)
{
	static const struct trial trial = {.meet = meet, .see = see};
	struct victim v;

	memset(noise, 0xee, sizeof(noise));
	victim_begin(&v, "hostile-mirror-spans");
	SURVIVE(&v, &trial, offences);
	victim_end(&v);
	return 0;
}
