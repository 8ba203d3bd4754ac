/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Groups whose members have no memory together, for some are connected by TCP: what they disagree
 * in is named, and what the root alone knows is none; unauthenticated connections to where a member
 * listens.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/apart.h"
#include "tests/lib/child.h"
#include "tests/lib/crew.h"
#include "tests/lib/settings.h"

#define CROWD 100

/* ---- they disagree -------------------------------------------------------------------------- */

struct dispute {
	uint32_t kind, type, op;
	int root;
	uint64_t count;
	const char *text;
};

static void dispute(slmpm_peer founder, int i, void *arg)
{
	const struct dispute *d = arg;
	slmpm_group group = apart_join(founder);
	uint64_t from[8] = {0}, to[8 * APART_MEMBERS] = {0};
	int rc;

	if (i == 1)
		rc = slmpm_collect(group, d->kind, from, to, d->count, d->type, d->op, d->root,
				   PATIENCE);
	else
		rc = slmpm_allreduce(group, from, to, 4, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE);
	if (rc == -SLMPM_EINVAL)
		CHECK(strstr(slmpm_error_detail(), "rank 1 (") &&
			      strstr(slmpm_error_detail(), d->text),
		      "%s", slmpm_error_detail());
	/* Who was through before has done its part. */
	CHECK(rc == 0 || rc == -SLMPM_EINVAL, "%d: %s", rc, slmpm_error_detail());
	apart_stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputes(void *arg)
{
	return apart_play(dispute, arg, -1);
}

/* What the one that is in a barrier sends goes to a member which waits for the root alone, and the
 * root gets nothing of it: one of those two names it. */
static void dispute_aside(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
	uint64_t from[4] = {0}, to[4] = {0};
	int rc;

	(void)unused;
	if (i == 1)
		rc = slmpm_barrier(group, PATIENCE);
	else
		rc = slmpm_allreduce(group, from, to, 4, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE);
	CHECK(rc == -SLMPM_EINVAL && strstr(slmpm_error_detail(), "rank "), "%d: %s", rc,
	      slmpm_error_detail());
	if (strstr(slmpm_error_detail(), " does "))
		CHECK(strstr(slmpm_error_detail(), "barrier") &&
			      strstr(slmpm_error_detail(), "allreduce"),
		      "%s", slmpm_error_detail());
	apart_stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputed_aside(void *unused)
{
	(void)unused;
	settings_set("SLMPM_COLL_ALGORITHM", "allreduce:star");
	return apart_play(dispute_aside, NULL, -1);
}

/* ---- the root alone knows all counts --------------------------------------------------------- */

static void scatter_and_gather(slmpm_peer founder, int i, void *unused)
{
	static const uint64_t counts[APART_MEMBERS] = {3, 0, 2, 1};
	slmpm_group group = apart_join(founder);
	uint64_t all[6] = {10, 11, 12, 13, 14, 15}, block[3] = {0}, again[6] = {0};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_SCATTER,
			       .type = SLMPM_UINT64,
			       .root = 2,
			       .from = all,
			       .to = block,
			       .counts = i == 2 ? counts : NULL,
			       .count = counts[i]};

	(void)unused;
	OK(slmpm_collective(group, &c, PATIENCE));
	c.kind = SLMPM_COLL_GATHER;
	c.from = block;
	c.to = again;
	OK(slmpm_collective(group, &c, PATIENCE));
	CHECK(i != 2 || memcmp(again, all, sizeof(all)) == 0, "what comes back is not what went");
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int root_counts(void *unused)
{
	(void)unused;
	return apart_play(scatter_and_gather, NULL, -1);
}

/* What rank 1 sends to rank 0 is LESS than that one expects, or more. */
static void dispute_blocks(slmpm_peer founder, int i, void *less)
{
	uint64_t from[2 * APART_MEMBERS] = {0}, to[2 * APART_MEMBERS] = {0};
	uint64_t counts[APART_MEMBERS] = {1, 1, 1, 1}, to_counts[APART_MEMBERS] = {1, 1, 1, 1};
	const struct slmpm_coll alltoall = {.size = sizeof(alltoall),
					    .kind = SLMPM_COLL_ALLTOALL,
					    .type = SLMPM_UINT64,
					    .from = from,
					    .to = to,
					    .counts = counts,
					    .to_counts = to_counts};
	slmpm_group group = apart_join(founder);
	int rc;

	if (i == 1)
		counts[0] = less ? 1 : 2;
	if (i == 0)
		to_counts[1] = less ? 2 : 1;
	rc = slmpm_collective(group, &alltoall, PATIENCE);
	if (i == 0)
		CHECK(rc == -SLMPM_EINVAL &&
			      strstr(slmpm_error_detail(),
				     less ? "sends is shorter: count 1, at rank 0 (" :
					    "sends is longer: count 2, at rank 0 (") &&
			      strstr(slmpm_error_detail(), less ? ") count 2" : ") count 1"),
		      "%d: %s", rc, slmpm_error_detail());
	CHECK(rc == 0 || rc == -SLMPM_EINVAL, "%d: %s", rc, slmpm_error_detail());
	apart_stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputed_blocks(void *less)
{
	return apart_play(dispute_blocks, less, -1);
}

/* ---- unauthenticated connections ------------------------------------------------------------ */

/* The port of the Nth one that listens in this process. */
static uint16_t own_port(int n)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in at;
		socklen_t size = sizeof(int), room = sizeof(at);
		int listens = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
		    getsockname(fd, (struct sockaddr *)&at, &room) == 0 &&
		    at.sin_family == AF_INET && n-- == 0)
			return ntohs(at.sin_port);
	}
	return 0;
}

static void be_found(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
	slmpm_ctx other;
	slmpm_peer peer;
	char url[100];
	int up;

	(void)unused;
	(void)i;
	up = actor_events(circle_own, SLMPM_EVENT_UP);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u#0123456789abcdef0123456789abcdef",
		 own_port(0));
	OK(slmpm_open(&other, &(struct slmpm_options){.size = sizeof(struct slmpm_options),
						      .flags = SLMPM_THREADS}));
	/* Nothing answers but by this thread. */
	REFUSED(slmpm_connect(&peer, other, url, 100), SLMPM_ETIMEOUT, "");
	for (int k = 0; k < 3; k++)
		actor_nap(circle_own);
	OK(slmpm_shut(other, PATIENCE));
	up = actor_events(circle_own, SLMPM_EVENT_UP);
	CHECK(up == 0, "%d unauthenticated", up);
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int unauthenticated(void *unused)
{
	(void)unused;
	return apart_play(be_found, NULL, -1);
}

static int refused; /* lines of the log */

static void count_refused(int level, const char *text, void *unused)
{
	(void)unused;
	if (!strstr(text, "too many handshakes"))
		return;
	CHECK(level > SLMPM_LOG_WARN, "a warning: %s", text);
	refused++;
}

/* More than may be amid their handshakes: they say nothing. */
static void come_at_once(int *fds)
{
	for (int i = 0; i < CROWD; i++) {
		struct sockaddr_in at = {.sin_family = AF_INET,
					 .sin_port = htons(own_port(i % CREW_GROUPS)),
					 .sin_addr = {htonl(INADDR_LOOPBACK)}};

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		OK(connect(fds[i], (struct sockaddr *)&at, sizeof(at)));
	}
}

/* At each of the groups of one process: there is a line for all of those. */
static void crowd(const struct crew *crew, int rank)
{
	const int64_t begun = actor_now_ms();
	int fds[CROWD];

	slmpm_log(SLMPM_LOG_INFO, rank == 1 ? count_refused : NULL, NULL);
	while (rank == 1 && !refused) {
		come_at_once(fds);
		for (int i = 0; i < 3; i++)
			actor_nap(crew->ctx);
		for (int i = 0; i < CROWD; i++)
			close(fds[i]);
	}
	CHECK(refused <= 1 + (actor_now_ms() - begun) / 1000, "%d lines", refused);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

int main(void)
{
	static struct dispute all[] = {
		{SLMPM_COLL_ALLREDUCE, SLMPM_DOUBLE, SLMPM_CALC_SUM, 0, 4, "double"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_MAX, 0, 4, "max"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_SUM, 0, 3, "count 3"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_SUM, 0, 8, "count 8"},
		{SLMPM_COLL_BARRIER, 0, 0, 0, 0, "barrier"},
		{SLMPM_COLL_ALLTOALL, SLMPM_UINT64, 0, 0, 1, "alltoall"},
	};
	const struct crew crowded = {
		.members = 2, .groups = CREW_GROUPS, .apart = APART_ALL, .body = crowd};
	bool yes = true;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		EXPECT(child_run(disputes, &all[i], 60), 0);
	EXPECT(child_run(disputed_aside, NULL, 60), 0);
	EXPECT(child_run(root_counts, NULL, 60), 0);
	EXPECT(child_run(disputed_blocks, NULL, 60), 0);
	EXPECT(child_run(disputed_blocks, &yes, 60), 0);
	EXPECT(child_run(unauthenticated, NULL, 60), 0);
	crew_run(&crowded, 60);
	return 0;
}
