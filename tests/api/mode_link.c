/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which link messages go: the one that is asked for, the default one, past one whose ring is
 * full and back; links of one fabric, and of two.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/links.h"
#include "tests/lib/settings.h"
#include "tests/lib/slow_reader.h"

#define FILL 40 /* of 16 KiB, more than half of a ring */

static bool mixed;    /* link 0 is over shared memory, link 1 over TCP */
static bool over_tcp; /* both: what is long fills no ring then */

static void expect_link(const struct chosen *sent, uint32_t link)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_req_mode(sent->req, &mode));
	CHECK(mode.link == link, "by link %u, not %u", mode.link, link);
	if (mixed)
		CHECK(!strcmp(mode.fabric, link ? "tcp" : "shm"), "over %s", mode.fabric);
}

/* Once the reader has told what it has read: with each lap of the ring at the latest. */
static void come_back(slmpm_peer reader)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	int64_t until = actor_now_ms() + PATIENCE;
	struct chosen s;

	do {
		chosen_post(reader, KIB(24), 0, &s);
		OK(slmpm_req_mode(s.req, &mode));
		s.protocol = mode.protocol;
		s.reason = (enum slmpm_reason)mode.reason;
		chosen_end(&s);
	} while (mode.link && actor_now_ms() < until);
	CHECK(!mode.link, "it stays on link %u", mode.link);
}

/* Past one whose ring is full. */
static void leave_full_link(slmpm_peer reader, int pid)
{
	struct chosen fill[FILL], s[2];

	slow_reader_pause(reader, pid);
	for (int i = 0; i < FILL; i++) {
		chosen_send(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &fill[i]);
		expect_link(&fill[i], 0);
	}
	chosen_send(reader, KIB(24), 0, SLMPM_BY_SMT, SLMPM_REASON_LINK, &s[0]);
	expect_link(&s[0], 1);
	chosen_send(reader, KIB(24), 0, SLMPM_BY_SMT, SLMPM_REASON_LINK,
		    &s[1]); /* it stays there */
	expect_link(&s[1], 1);
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < FILL; i++)
		chosen_end(&fill[i]);
	chosen_end(&s[0]);
	chosen_end(&s[1]);
	come_back(reader);
}

/* What asks for no link goes by the default one, whatever others have asked for. */
static void come_back_to_default(slmpm_peer reader)
{
	struct chosen s[2];

	chosen_send(reader, 100, SLMPM_ON_LINK(1), SLMPM_BY_SMT, SLMPM_REASON_HINT, &s[0]);
	expect_link(&s[0], 1);
	chosen_send(reader, 100, 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[1]);
	expect_link(&s[1], 0);
	chosen_end(&s[0]);
	chosen_end(&s[1]);
}

/* By the link that is asked for, and by the default one; always in order. */
static int change_link(void *unused)
{
	const uint32_t strict = SLMPM_STRICT;
	struct slmpm_done done;
	struct chosen s[6];
	slmpm_peer reader;
	int pid;

	(void)unused;
	reader = slow_reader_begin(&pid);
	links_await();
	for (uint32_t i = 0; i < 6; i++) {
		chosen_send(reader, 100, SLMPM_ON_LINK(i % 2), SLMPM_BY_SMT, SLMPM_REASON_HINT,
			    &s[i]);
		expect_link(&s[i], i % 2);
		chosen_end(&s[i]);
	}
	for (uint32_t i = 0; i < 6; i++) {
		chosen_post(reader, 100, SLMPM_ON_LINK(i / 2) | strict, &s[i]);
		EXPECT(slmpm_wait(&s[i].req, 1, &done, PATIENCE), 0);
		CHECK(done.status == (i / 2 < 2 ? 0 : -SLMPM_ENOTSUP), "%d", done.status);
	}
	chosen_send(reader, 8, SLMPM_ON_LINK(0) | strict, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[0]);
	chosen_end(&s[0]);
	OK(slmpm_link_use(reader, 1));
	chosen_send(reader, 100, SLMPM_VIA(SLMPM_BY_SMT), SLMPM_BY_SMT, SLMPM_REASON_HINT, &s[0]);
	expect_link(&s[0], 1); /* the default one now */
	chosen_end(&s[0]);
	OK(slmpm_link_use(reader, 0));
	chosen_send(reader, 100, SLMPM_VIA(SLMPM_BY_SMT), SLMPM_BY_SMT, SLMPM_REASON_HINT, &s[0]);
	expect_link(&s[0], 0);
	chosen_end(&s[0]);
	come_back_to_default(reader);
	OK(slmpm_link_use(reader, SLMPM_LINK_ANY));
	if (!over_tcp)
		leave_full_link(reader, pid);
	slow_reader_end(reader);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", slow_reader}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_EAGER_MAX", "16k");
	settings_set("SLMPM_MODE_RING", "50");
	settings_set("SLMPM_FETCH", "never");
	settings_set("SLMPM_LINKS", "2");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_MODE_LINK", "any");
	over_tcp = getenv("SLMPM_FABRIC") && !strcmp(getenv("SLMPM_FABRIC"), "tcp");
	settings_run("links", change_link, NULL);
	settings_set("SLMPM_LINKS", "shm,tcp");
	mixed = true;
	if (!over_tcp)
		settings_run("links of two fabrics", change_link, NULL);
	return 0;
}
