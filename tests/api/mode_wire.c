/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts fill one of two network links to a reader that has stopped: the next ones go by the other,
 * because it has less to do; nothing is lost, and later ones come back.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/chosen.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define PUTS 48
#define LEN  KIB(24)

/* Lends memory, and stops when it is told to. */
static int lend(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	int64_t n;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, PUTS * LEN, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	while ((n = slmpm_recv(host, 1, NULL, 0, NULL, PATIENCE)) == 0)
		CHECK(raise(SIGSTOP) == 0, "not stopped");
	EXPECT(n, -SLMPM_ECLOSED);
	for (int i = 0; i < PUTS; i++)
		CHECK(actor_filled((unsigned char *)base + (size_t)i * LEN, 5, LEN), "put %d", i);
	return 0;
}

static struct slmpm_mode put(slmpm_rmem rmem, int i, slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_put(rmem, (uint64_t)i * LEN, chosen_bytes, LEN, &how, req));
	OK(slmpm_req_mode(*req, &mode));
	CHECK(mode.protocol == SLMPM_BY_REQUEST && !strcmp(mode.fabric, "tcp"),
	      "by protocol %d over %s", mode.protocol, mode.fabric);
	return mode;
}

/* Until one has left, and then to the end by the other one. */
static void fill(slmpm_rmem rmem)
{
	slmpm_req req[PUTS];
	int left = 0;

	for (int i = 0; i < PUTS; i++) {
		struct slmpm_mode mode = put(rmem, i, &req[i]);

		left += mode.reason == SLMPM_REASON_LINK;
		if (mode.reason == SLMPM_REASON_LINK)
			CHECK(mode.link == 1, "by link %u", mode.link);
		else if (!left)
			CHECK(mode.link == 0, "by link %u already", mode.link);
	}
	CHECK(left, "none has left a full link");
}

static int by_the_other(void *unused)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_peer peer;

	(void)unused;
	actor_fill(chosen_bytes, 5, LEN);
	peer = actor_spawn("lend", NULL, NULL);
	links_await();
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
	actor_await_state(info.pid, "T");
	fill(rmem);
	CHECK(kill(info.pid, SIGCONT) == 0, "not resumed");
	OK(slmpm_flush(peer, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"lend", lend}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,tcp");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_RING_SEGMENTS", "128");
	settings_set("SLMPM_MODE_RING", "25");
	settings_set("SLMPM_MODE_LINK", "any"); /* rather than packets of each by both */
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_run("past a full network link", by_the_other, NULL);
	return 0;
}
