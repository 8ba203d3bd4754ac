/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles by address: each of a peer's addresses finds it, and the link that it stands for carries
 * what is sent with that handle; messages by several handles come in one order.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define MESSAGES 300
#define REGION   100000

/* Echoes words, in order, until the end. */
static int echo(slmpm_peer host, char **words)
{
	uint32_t number, next = 0;

	(void)words;
	for (;; next++) {
		int64_t n =
			slmpm_recv(host, SLMPM_ANY_STREAM, &number, sizeof(number), NULL, PATIENCE);

		if (n == -SLMPM_ECLOSED)
			return 0;
		EXPECT(n, sizeof(number));
		CHECK(number == next, "message %u in place of %u", number, next);
		OK(slmpm_send(host, 1, &number, sizeof(number), PATIENCE));
	}
}

static void expect_echo(slmpm_peer peer, uint32_t number)
{
	uint32_t back;

	EXPECT(slmpm_recv(peer, 1, &back, sizeof(back), NULL, PATIENCE), sizeof(back));
	CHECK(back == number, "%u came back as %u", number, back);
}

static slmpm_peer spawn(uint32_t element)
{
	const struct slmpm_spawn_options how = {.size = sizeof(how), .element = element};

	return actor_spawn_with(&how, "echo", NULL, NULL);
}

/* All that the library says of a peer finds it again. */
static int count_addresses(slmpm_peer peer)
{
	struct slmpm_address a = {.size = sizeof(a)};
	slmpm_peer found;
	int n = 0;

	for (; slmpm_peer_address(peer, n, &a) == 0; n++) {
		struct slmpm_peer_info mine = {.size = sizeof(mine)}, its = mine;

		printf("  %s: link %d %s\n", a.text, (int)a.link, a.fabric);
		OK(slmpm_peer_find(&found, (slmpm_ctx){0}, a.text));
		OK(slmpm_peer_query(peer, &mine));
		OK(slmpm_peer_query(found, &its));
		CHECK(its.pid == mine.pid, "%s finds another", a.text);
	}
	REFUSED(slmpm_peer_address(peer, n, &a), SLMPM_ENOENT, "no more");
	return n;
}

static void expect_link(slmpm_req req, uint32_t link, const char *fabric)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	struct slmpm_done done;

	OK(slmpm_req_mode(req, &mode));
	CHECK(mode.link == link && !strcmp(mode.fabric, fabric), "by link %u, over %s", mode.link,
	      mode.fabric);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	CHECK(done.reason == SLMPM_REASON_HINT, "because: %s", slmpm_reason_name((int)done.reason));
}

/* One message after the other, each by another handle. */
static void send_by(const slmpm_peer handles[3])
{
	static const char *const fabrics[] = {"shm", "tcp"};
	uint32_t numbers[MESSAGES];

	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct slmpm_iov piece = {&numbers[i], sizeof(numbers[i])};
		uint32_t link = i % 3;
		slmpm_req req;

		numbers[i] = i;
		switch (i % 4) {
		case 0: OK(slmpm_send(handles[link], i % 5, &i, sizeof(i), PATIENCE)); break;
		case 1: OK(slmpm_sendv(handles[link], i % 5, &piece, 1, NULL, NULL)); break;
		case 2:
			EXPECT(slmpm_send_burst(handles[link], i % 5, &piece, 1, PATIENCE), 1);
			break;
		default:
			OK(slmpm_sendv(handles[link], i % 5, &piece, 1, NULL, &req));
			if (link < 2) {
				expect_link(req, link, fabrics[link]);
				break;
			}
			EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
		}
		expect_echo(handles[(i + 1) % 3], i);
	}
}

/* Memory that the host may reach, by two keys. */
static int lend(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	char end;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 2; i++) {
		OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
		OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	}
	EXPECT(slmpm_recv(host, 1, &end, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static slmpm_rmem open_by(slmpm_peer peer, slmpm_peer handle)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(handle, &key, &rmem));
	return rmem;
}

static void put_by(slmpm_rmem rmem, uint32_t flags, uint32_t link, int protocol,
		   enum slmpm_reason reason)
{
	static unsigned char to[REGION], back[REGION];
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};
	struct slmpm_mode mode = {.size = sizeof(mode)};
	static uint64_t seed;
	slmpm_req req;
	struct slmpm_done done;

	actor_fill(to, ++seed, REGION);
	OK(slmpm_put(rmem, 0, to, REGION, &how, &req));
	OK(slmpm_req_mode(req, &mode));
	CHECK(mode.link == link && mode.protocol == protocol && mode.reason == reason,
	      "link %u, protocol %d, %s", mode.link, mode.protocol,
	      slmpm_reason_name((int)mode.reason));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(done.status);
	OK(slmpm_flush(done.peer, PATIENCE)); /* by whatever way the next one goes */
	OK(slmpm_get(rmem, 0, back, REGION, NULL, NULL));
	CHECK(actor_filled(back, seed, REGION), "what was put");
}

/* A region that was opened by such a handle is reached by its link. */
static int memory_by_link(void *unused)
{
	const struct slmpm_spawn_options how = {.size = sizeof(how), .element = 2};
	const uint32_t strict = SLMPM_STRICT;
	slmpm_peer peer, handles[2];
	slmpm_rmem bus, net;

	(void)unused;
	peer = actor_spawn_with(&how, "lend", NULL, NULL);
	links_await();
	OK(slmpm_peer_find(&handles[0], (slmpm_ctx){0}, "pci:0000:04:00.0"));
	OK(slmpm_peer_find(&handles[1], (slmpm_ctx){0}, "ip:127.0.0.1"));
	bus = open_by(peer, handles[0]);
	net = open_by(peer, handles[1]);
	for (int i = 0; i < 3; i++) {
		put_by(bus, 0, 0, SLMPM_BY_PUT, SLMPM_REASON_SHORT);
		put_by(net, 0, 1, SLMPM_BY_REQUEST, SLMPM_REASON_HINT);
		put_by(net, SLMPM_ON_LINK(0), 0, SLMPM_BY_PUT, SLMPM_REASON_HINT);
		put_by(bus, SLMPM_ON_LINK(1), 1, SLMPM_BY_REQUEST, SLMPM_REASON_HINT);
		put_by(bus, SLMPM_VIA(SLMPM_BY_REQUEST) | strict | SLMPM_ON_LINK(1), 1,
		       SLMPM_BY_REQUEST, SLMPM_REASON_STRICT);
	}
	OK(slmpm_mem_release(bus));
	OK(slmpm_mem_release(net));
	OK(slmpm_close(handles[1], PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int by_link(void *unused)
{
	struct slmpm_address a = {.size = sizeof(a)};
	slmpm_peer peer, handles[3];
	uint32_t i = MESSAGES;
	char id[96];

	(void)unused;
	peer = spawn(2);
	links_await();
	CHECK(count_addresses(peer) >= 3, "too few addresses");
	OK(slmpm_peer_find(&handles[0], (slmpm_ctx){0}, "pci:04:00.0"));
	OK(slmpm_peer_find(&handles[1], (slmpm_ctx){0}, "ip:127.0.0.1/2"));
	for (int k = 0; slmpm_peer_address(peer, k, &a) == 0; k++)
		strcpy(id, a.text);
	CHECK(a.link == SLMPM_LINK_ANY && strstr(id, "id:") && strstr(id, "/2"), "%s", id);
	OK(slmpm_peer_find(&handles[2], (slmpm_ctx){0}, id));
	CHECK(handles[2].id == peer.id, "an id asks for a link");
	CHECK(handles[0].id != handles[1].id && handles[0].id != peer.id, "the links' handles");
	for (uint64_t link = 5; link < 8; link++) { /* a peer has four at most */
		slmpm_peer none = {peer.id | link << 24};

		EXPECT(slmpm_send(none, 0, &i, sizeof(i), 0), -SLMPM_EHANDLE);
		EXPECT(slmpm_sendv(none, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
		EXPECT(slmpm_peer_address(none, 0, &a), -SLMPM_EHANDLE);
	}
	send_by(handles);

	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, "pci:03:00.0"), SLMPM_ENOENT, "no peer");
	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, "ip:127.0.0.1/1"), SLMPM_ENOENT, "no peer");
	OK(slmpm_send(handles[1], 0, &i, sizeof(i),
		      PATIENCE)); /* as the find that failed left it */
	expect_echo(handles[0], i);
	OK(slmpm_close(handles[0], PATIENCE));
	actor_join(handles[1], 0);
	EXPECT(slmpm_send(handles[0], 0, &i, sizeof(i), PATIENCE), -SLMPM_EHANDLE);
	EXPECT(slmpm_send_burst(handles[0], 0, NULL, 0, PATIENCE), -SLMPM_EHANDLE);
	EXPECT(slmpm_sendv(handles[2], 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, id), SLMPM_ENOENT, "no peer");
	return 0;
}

/* Two elements, one machine: what both have says which. One link: its handle is the plain one. */
static int by_element(void *unused)
{
	slmpm_peer peers[2], found = {0};
	uint32_t number = 0;

	(void)unused;
	for (uint32_t i = 0; i < 2; i++) {
		peers[i] = spawn(i + 1);
		OK(slmpm_send(peers[i], 0, &number, sizeof(number), PATIENCE));
		expect_echo(peers[i], number);
	}
	REFUSED(slmpm_peer_find(&found, (slmpm_ctx){0}, "ip:127.0.0.1"), SLMPM_EINVAL, "2 peers");
	CHECK(!found.id, "a handle in spite of that");
	for (uint32_t i = 0; i < 2; i++) {
		OK(slmpm_peer_find(&found, (slmpm_ctx){0},
				   i ? "ip:127.0.0.1/2" : "ip:127.0.0.1/1"));
		CHECK(found.id == peers[i].id, "another handle for the only link");
		REFUSED(slmpm_peer_find(&found, (slmpm_ctx){0}, "pci:04:00.0"), SLMPM_ENOENT,
			"no peer"); /* it has no such link */
		OK(slmpm_close(peers[i], PATIENCE));
		actor_join(peers[i], 0);
	}
	return 0;
}

/* What LINKS of a peer have in common leaves open which of them; others of it are not meant. */
static int in_common(void *links)
{
	struct slmpm_address a = {.size = sizeof(a)};
	int n = *(int *)links, same = 0;
	slmpm_peer peer = spawn(1), found;
	uint32_t number = 0;
	slmpm_req req;

	for (int i = 1; i < n; i++)
		links_await();
	for (int i = 0; slmpm_peer_address(peer, i, &a) == 0; i++)
		same += !strcmp(a.text, "ip:127.0.0.1");
	CHECK(same == 2, "%d links have it", same);
	OK(slmpm_peer_find(&found, (slmpm_ctx){0}, "ip:127.0.0.1"));
	CHECK((found.id == peer.id) == (n == 2), "of %d links: a handle of %s", n,
	      found.id == peer.id ? "none" : "one");
	if (n > 2) {
		struct slmpm_iov piece = {&number, sizeof(number)};

		OK(slmpm_sendv(found, 0, &piece, 1, NULL, &req));
		expect_link(req, 0, "tcp");
		expect_echo(peer, number);
	}
	OK(slmpm_close(found, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

/* A link that does not stand has no address yet. */
static int not_yet(void *unused)
{
	struct slmpm_link_info link = {.size = sizeof(link)};
	int64_t until = actor_now_ms() + PATIENCE;
	slmpm_peer peer, found;
	uint32_t number = 0;

	(void)unused;
	peer = spawn(1);
	OK(slmpm_send(peer, 0, &number, sizeof(number), PATIENCE));
	expect_echo(peer, number);
	OK(slmpm_link_query(peer, 1, &link));
	CHECK(!*link.fabric && !*link.where && !*link.reason, "known of it: \"%s\" \"%s\" \"%s\"",
	      link.fabric, link.where, link.reason);
	REFUSED(slmpm_peer_find(&found, (slmpm_ctx){0}, "pci:03:00.0"), SLMPM_ENOENT, "no peer");
	OK(slmpm_link_use(peer, 1));
	while (slmpm_peer_find(&found, (slmpm_ctx){0}, "pci:03:00.0") == -SLMPM_ENOENT) {
		CHECK(actor_now_ms() < until, "it never comes");
		(void)slmpm_progress((slmpm_ctx){0});
	}
	OK(slmpm_link_query(found, 1, &link));
	CHECK(link.state == SLMPM_LINK_UP, "found in state %u", link.state);
	OK(slmpm_close(found, PATIENCE));
	actor_join(peer, 0);
	return 0;
}

static int wrongly(void *unused)
{
	struct slmpm_address a = {.size = sizeof(a)};
	slmpm_peer peer = {0};

	(void)unused;
	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, "usb:1"), SLMPM_EADDRESS, "usb:1");
	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, NULL), SLMPM_EADDRESS, "null");
	REFUSED(slmpm_peer_find(NULL, (slmpm_ctx){0}, "ip:127.0.0.1"), SLMPM_EINVAL, "no peer");
	REFUSED(slmpm_peer_find(&peer, (slmpm_ctx){0}, "ip:127.0.0.1"), SLMPM_ENOENT, "no peer");
	EXPECT(slmpm_peer_find(&peer, (slmpm_ctx){77}, "ip:127.0.0.1"), -SLMPM_EHANDLE);
	EXPECT(slmpm_peer_address(peer, 0, &a), -SLMPM_EHANDLE);
	REFUSED(slmpm_peer_address(peer, -1, &a), SLMPM_EINVAL, "-1");
	REFUSED(slmpm_peer_address(peer, 0, NULL), SLMPM_EINVAL, ".size");
	a.size = 4;
	REFUSED(slmpm_peer_address(peer, 0, &a), SLMPM_EINVAL, ".size");
	/* Bits of a link make no handle of what is none. */
	for (uint64_t bits = 1; bits < 8; bits++) {
		slmpm_peer none = {UINT64_C(3) << 32 | bits << 24 | 999};

		EXPECT(slmpm_send(none, 0, "x", 1, 0), -SLMPM_EHANDLE);
		EXPECT(slmpm_recv(none, 0, &a, 1, NULL, 0), -SLMPM_EHANDLE);
		EXPECT(slmpm_am(none, 1, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
		EXPECT(slmpm_close(none, 0), -SLMPM_EHANDLE);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"echo", echo}, {"lend", lend}, {NULL, NULL}};
	int all = 2, some = 3;

	actor_begin(argc, argv, roles);
	settings_run("wrongly", wrongly, NULL);
	settings_set("SLMPM_PCI", "03:00.0,0000:04:00.0");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,tcp");
	settings_run("by a link", by_link, NULL);
	settings_run("memory by a link", memory_by_link, NULL);
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,tcp");
	settings_run("an address of all", in_common, &all);
	settings_set("SLMPM_LINKS", "tcp,tcp,shm");
	settings_run("an address of some", in_common, &some);
	settings_set("SLMPM_LINKS", "tcp,shm");
	settings_set("SLMPM_LINKS_AFTER", "1g");
	settings_run("not yet", not_yet, NULL);
	settings_set("SLMPM_LINKS", "1");
	settings_run("by an element", by_element, NULL);
	return 0;
}
