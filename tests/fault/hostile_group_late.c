/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that is honest about groups at first, and reads nothing, or late, or is refused; then what
 * it says is seen through (hostile_group.c).
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_group.h"
#include "tests/lib/test.h"

static struct victim v;

/* ---- who reads nothing ----------------------------------------------------------------------- */

#define FLOOD 2000

/* An honest one: no more joins are under way than may be, for each that goes wrong is withdrawn. It
 * does not hear that they are refused, until there is no room to say so. */
static void withdraw_each(struct raw_peer *p)
{
	struct wire_group g;
	int memory = raw_group_right_board(), ring = raw_group_bell(SOCK_DGRAM);

	for (uint32_t i = 1; i <= FLOOD; i++) {
		raw_group_say_join(p, i, memory, ring);
		raw_group_step(p, GROUP_WITHDRAWN, i);
	}
	g = raw_group_of(GROUP_JOIN, 1);
	raw_say_packet(p->fd, 99, &g, sizeof(g), -1); /* the offence, at last */
}

/* None of its descriptors is to be had. */
static int64_t refuse_joins(slmpm_peer peer, const struct offence *o)
{
	struct rlimit limit, before;
	int64_t n;

	(void)o;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	limit = before;
	limit.rlim_cur = (rlim_t)actor_descriptors();
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
	n = slmpm_recv(peer, 1, NULL, 0, NULL, 5);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	return n;
}

/* There may be no room for the reason. */
static void read_on(struct raw_peer *p, char reason[112])
{
	struct wire_group g;

	while (raw_hear(p->fd, &g, sizeof(g), NULL) > 0)
		;
	strcpy(reason, "out of turn");
}

static const struct trial trial_deaf = {.inspect = refuse_joins, .hear_end = read_on};

static const struct offence deaf[] = {
	{"R6", "packet 99 behind many joins", withdraw_each, "out of turn", 0},
};

/* ---- who is joined, and reads late ----------------------------------------------------------- */

static _Atomic uint32_t *joined; /* so many, until no more may be under way */

static void step_is(struct raw_peer *p, enum wire_group_step want, uint32_t number)
{
	struct wire_group g;

	CHECK(raw_hear(p->fd, &g, sizeof(g), NULL) == sizeof(g), "nothing came");
	CHECK(LITTLE_32(g.step) == want && LITTLE_32(g.number) == number,
	      "step %u of join %u came, not %u of %u", LITTLE_32(g.step), LITTLE_32(g.number), want,
	      number);
}

/* An honest one until then: of each join both its steps come. */
static void read_late(struct raw_peer *p)
{
	while (!*joined)
		usleep(1000);
	for (uint32_t i = 1; i <= *joined; i++) {
		step_is(p, GROUP_JOIN, i);
		step_is(p, GROUP_WITHDRAWN, i);
	}
	raw_group_step(p, 0, 1);
}

static int64_t join_until_full(slmpm_peer peer, const struct offence *o)
{
	slmpm_group group;
	uint32_t n = 0;
	int rc = -SLMPM_ETIMEOUT;

	(void)o;
	for (int fd = 0; fd < 64; fd++) /* of this process's, the pair's */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
	while (!*joined && rc == -SLMPM_ETIMEOUT && n < FLOOD) {
		rc = slmpm_group_join(&group, peer, RAW_GROUP_TAG, 1);
		n += rc == -SLMPM_ETIMEOUT;
	}
	if (!*joined)
		EXPECT(rc, -SLMPM_ELIMIT);
	if (!*joined)
		*joined = n;
	return slmpm_recv(peer, 1, NULL, 0, NULL, 5);
}

static const struct trial trial_full = {.inspect = join_until_full};

static const struct offence late[] = {
	{"R6", "step 0 behind joins that were stuck", read_late, RAW_GROUP_RULE, 0},
};

/* ---- who fails to join, and is refused another join ------------------------------------------ */

#define OTHER 6 /* a tag */

static void fail_join(struct raw_peer *p, uint32_t number, uint32_t tag, const char *text)
{
	struct wire_group g = raw_group_of(GROUP_JOIN, number);

	g.tag = LITTLE_32(tag);
	g.error = LITTLE_32(1);
	strcpy(g.text, text);
	raw_group_say(p, g, NULL, 0);
}

/* An honest one until then. */
static void fail_both(struct raw_peer *p)
{
	fail_join(p, 1, RAW_GROUP_TAG, "the first");
	raw_group_await(p, GROUP_FAILED);
	fail_join(p, 2, OTHER, "the other");
	raw_group_await(p, GROUP_FAILED);
	raw_group_step(p, 0, 1);
}

static void give_up_other(const slmpm_peer *both)
{
	slmpm_group group;

	CHECK(slmpm_group_create_start(&group, v.ctx, both, 2, OTHER) == 0 &&
		      slmpm_group_destroy(group) == 0,
	      "%s", slmpm_error_detail());
}

static int64_t found_both(slmpm_peer peer, const struct offence *o)
{
	const slmpm_peer both[] = {peer, {0}};
	static bool found;
	slmpm_group group;

	if (!found) {
		give_up_other(both);
		(void)slmpm_recv(peer, 1, NULL, 0, NULL, 20);
		CHECK(slmpm_group_create(&group, v.ctx, both, 2, RAW_GROUP_TAG,
					 2000 * actor_slow()) < 0 &&
			      strstr(slmpm_error_detail(), "it says: the first"),
		      "%s: %s", o->name, slmpm_error_detail());
		give_up_other(both);
		found = true;
	}
	return slmpm_recv(peer, 1, NULL, 0, NULL, 5);
}

static const struct trial trial_refused = {.inspect = found_both};

static const struct offence refused[] = {
	{"R6", "step 0 behind joins that failed", fail_both, RAW_GROUP_RULE, 0},
};

int main(void)
{
	joined = child_common(sizeof(*joined));
	victim_begin(&v, "hostile-late");
	SURVIVE(&v, &trial_deaf, deaf);
	SURVIVE(&v, &trial_full, late);
	SURVIVE(&v, &trial_refused, refused);
	victim_end(&v);
	return 0;
}
