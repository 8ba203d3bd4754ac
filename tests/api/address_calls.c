/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages and loans with handles by address: each goes by its handle's link, in one order
 * with all else.
 */
#include "tests/api/addressed.h"

/* ---- active messages ------------------------------------------------------------------------ */

static uint64_t answers;

static void answered(const struct slmpm_am *am, void *arg)
{
	uint64_t number;

	(void)arg;
	CHECK(am->peer.id == peer.id, "of another handle");
	memcpy(&number, am->head, sizeof(number));
	CHECK(number == answers, "answer %llu in place of %llu", (unsigned long long)number,
	      (unsigned long long)answers);
	CHECK(actor_filled(am->data, number, am->data_len), "its data");
	answers++;
}

static void ask(slmpm_peer handle, uint64_t number, size_t len, uint32_t flags, slmpm_req *req)
{
	static unsigned char data[ROUNDS * 8][9000];
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};

	actor_fill(data[number], number, len);
	OK(slmpm_am(handle, ASK, &number, sizeof(number), data[number], len, flags ? &how : NULL,
		    req));
}

static void expect_peer_mode(int link, enum slmpm_reason reason)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_peer_mode(by[1 - link], &mode));
	CHECK((int)mode.link == link && mode.reason == reason && mode.op == SLMPM_OP_SEND &&
		      mode.protocol == SLMPM_BY_SMT,
	      "by link %u, protocol %d, because: %s", mode.link, mode.protocol,
	      slmpm_reason_name((int)mode.reason));
}

static void active_messages(void)
{
	uint64_t n = 0;
	slmpm_req req;

	OK(slmpm_am_handler((slmpm_ctx){0}, ANSWER, answered, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		int link = i % 2;
		size_t len = i % 3 ? 9000 : 8; /* several packets */

		ask(by[link], n++, len, 0, &req);
		links_expect(req, link, "an active message");
		ask(by[link], n++, len, 0, NULL);
		expect_peer_mode(link, SLMPM_REASON_HINT);
		ask(peer, n++, 8, 0, NULL);
		ask(by[link], n++, len, SLMPM_ON_LINK(1 - link), &req);
		links_expect(req, 1 - link, "whose flags prevail");
		ask(peer, n++, len, SLMPM_ON_LINK(link) | SLMPM_STRICT, &req);
		links_expect(req, link, "a strict one");
	}
	for (unsigned idle = 0; answers < n;)
		if (slmpm_progress((slmpm_ctx){0}) == 0)
			actor_idle((slmpm_ctx){0}, &idle);
	for (uint32_t flags = SLMPM_VIA(SLMPM_BY_SMT); flags <= SLMPM_VIA(SLMPM_BY_REQUEST);
	     flags += SLMPM_VIA(SLMPM_BY_SMT)) {
		const struct slmpm_how how = {.size = sizeof(how), .flags = flags};

		REFUSED(slmpm_am(by[0], ASK, NULL, 0, NULL, 0, &how, NULL), SLMPM_EINVAL, "flags");
	}
}

/* ---- loans ---------------------------------------------------------------------------------- */

static void expect_loan(slmpm_peer commits, void *buf, size_t len, int link)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .cq = cq, .cookie = len, .timeout_ms = PATIENCE};
	struct slmpm_done done;

	OK(slmpm_commit(commits, buf, len, &how));
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == 0 && done.cookie == len && done.peer.id == peer.id, "its end");
	CHECK(links_told(&done) == link, "a loan of %zu bytes by link %d, not %d", len,
	      links_told(&done), link);
}

/* Bytes that lie in the ring, and more than a packet, which lie in an area; by who lends, whoever
 * commits. One that is copied has its turn after the end is told. */
static void loans(bool mapped)
{
	const struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	void *buf;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		size_t len = i % 3 ? 1000 : LONG;
		int link = i % 2;

		OK(slmpm_loan(by[link], ECHO, len, &buf, PATIENCE));
		actor_fill(buf, i, len);
		if (len == LONG && i % 6)
			OK(slmpm_commit(peer, buf, len / 2, &part));
		expect_loan(by[1 - link], buf, len, len < LONG || mapped ? link : -1);
		OK(slmpm_loan(by[1 - link], ECHO, 8, &buf, PATIENCE));
		OK(slmpm_abort(by[link], buf));
		expect_back(ECHO, i, len);
		expect_peer_mode(link, SLMPM_REASON_HINT);
	}
	REFUSED(slmpm_abort(by[0], buf), SLMPM_ESTATE, "no such loan");
}

static int over_both(void *unused)
{
	(void)unused;
	spawn();
	find("pci:0000:03:00.0", "ip:127.0.0.1");
	active_messages();
	loans(true);
	end();
	return 0;
}

/* Nothing is mapped: loans are copied. */
static int over_networks(void *unused)
{
	(void)unused;
	spawn();
	find("ip:127.0.0.1", NULL);
	loans(false);
	active_messages();
	end();
	return 0;
}

static void play(void)
{
	settings_run("over both fabrics", over_both, NULL);
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,tcp");
	settings_run("over networks", over_networks, NULL);
}

int main(int argc, char **argv)
{
	return addressed_main(argc, argv, play);
}
