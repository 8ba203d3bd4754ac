/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of call with handles by address: what can choose a link goes by theirs, in one order with
 * all else; to the others such a handle is the peer.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/links.h"

#define ROUNDS 12
#define REGION 65536
#define LONG   (300 << 10) /* a loan in an area */

enum { ECHO, TAKE, STORE, MIRROR, REVOKE, END }; /* streams to the mate */
enum { ASK = 7, ANSWER };                        /* handlers */

static slmpm_peer peer, by[2]; /* its plain handle, those of its links */

/* ---- the mate ------------------------------------------------------------------------------- */

static void answer(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	OK(slmpm_am_reply(am, ANSWER, am->head, am->head_len, am->data, am->data_len));
}

static void give_key(slmpm_mem mem, slmpm_peer host)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, TAKE, &key, sizeof(key), PATIENCE));
}

static void store_one(slmpm_peer host, slmpm_mem mem)
{
	struct slmpm_fifo entry;

	OK(slmpm_fifo_take(host, &entry, PATIENCE));
	OK(slmpm_fifo_store(&entry, mem, entry.offset, NULL, NULL));
}

static void follow(slmpm_peer host, uint64_t *words, slmpm_mirror *mirror)
{
	uint64_t sequence = 0;

	OK(slmpm_mirror_create((slmpm_ctx){0}, words, 4096, NULL, mirror));
	OK(slmpm_mirror_attach(*mirror, host, 5, SLMPM_MIRROR_FOLLOW, PATIENCE));
	while (words[0] != 77)
		OK(slmpm_mirror_wait(*mirror, host, &sequence, PATIENCE));
}

/* A region, handlers and a mirror; sends back what it is sent. */
static int mate(slmpm_peer host, char **words)
{
	static unsigned char got[LONG];
	static uint64_t mirrored[512];
	struct slmpm_done done = {.stream = ECHO};
	slmpm_mirror mirror;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	(void)words;
	OK(slmpm_am_handler((slmpm_ctx){0}, ASK, answer, NULL));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 3; i++)
		give_key(mem, host);
	while (done.stream != END) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);

		CHECK(n >= 0, "mate: %s", slmpm_error_detail());
		switch (done.stream) {
		case TAKE:
			OK(slmpm_mem_accept(host, &rmem, PATIENCE));
			OK(slmpm_mem_release(rmem));
			break;
		case STORE: store_one(host, mem); break;
		case MIRROR: follow(host, mirrored, &mirror); break;
		default: break;
		}
		OK(slmpm_send(host, done.stream, got, (size_t)n, PATIENCE));
	}
	return 0;
}

static void expect_back(uint32_t stream, uint64_t seed, size_t len)
{
	static unsigned char back[LONG];

	EXPECT(slmpm_recv(by[seed % 2], stream, back, sizeof(back), NULL, PATIENCE), len);
	CHECK(actor_filled(back, seed, len), "other bytes came back");
}

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
		expect_peer_mode(link, SLMPM_REASON_WISH);
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

static slmpm_cq cq;

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
		expect_peer_mode(link, SLMPM_REASON_WISH);
	}
	REFUSED(slmpm_abort(by[0], buf), SLMPM_ESTATE, "no such loan");
}

/* ---- work queues ---------------------------------------------------------------------------- */

static slmpm_rmem regions[3]; /* by plain handle, by those of the links */

static void post(slmpm_wq wq, struct slmpm_wr wr, uint64_t cookie)
{
	wr.cookie = cookie;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void next(uint64_t cookie, int link, int protocol)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.status == 0 && done.cookie == cookie && done.peer.id == peer.id,
	      "cookie %llu, status %d in place of %llu", (unsigned long long)done.cookie,
	      done.status, (unsigned long long)cookie);
	CHECK(links_told(&done) == link, "work %llu by link %d, not %d", (unsigned long long)cookie,
	      links_told(&done), link);
	CHECK(done.protocol == protocol, "work %llu by protocol %d, not %d",
	      (unsigned long long)cookie, done.protocol, protocol);
}

/* Each waits for those before it, of another kind; over the link that is not the memory's by request. */
static void work_over(int link)
{
	static unsigned char bytes[1000], back[1000];
	static uint64_t number;
	const struct slmpm_wq_options o = {.size = sizeof(o), .cq = cq};
	const struct slmpm_iov all = {bytes, sizeof(bytes)}, there = {back, sizeof(back)};
	const struct slmpm_wr send = {.op = SLMPM_OP_SEND, .iov = &all, .iov_count = 1},
			      put = {.op = SLMPM_OP_PUT,
				     .rmem = regions[0],
				     .iov = &all,
				     .iov_count = 1};
	struct slmpm_wr other = send;
	int moves = link ? SLMPM_BY_REQUEST : SLMPM_BY_PUT;
	slmpm_wq wq;

	OK(slmpm_wq_create(by[link], &o, &wq));
	actor_fill(bytes, 4, sizeof(bytes));
	post(wq, put, 1);
	post(wq, send, 2);
	post(wq,
	     (struct slmpm_wr){
		     .op = SLMPM_OP_GET, .rmem = regions[0], .iov = &there, .iov_count = 1},
	     3);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_AM,
			       .stream = ASK,
			       .head = &answers,
			       .head_len = sizeof(answers)},
	     4);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_ATOMIC,
			       .atomic = SLMPM_FETCH_ADD,
			       .bits = 64,
			       .rmem = regions[0],
			       .offset = 2048,
			       .operand = 1,
			       .old = &number},
	     5);
	other.flags = SLMPM_ON_LINK(1 - link);
	post(wq, other, 6);
	next(1, link, moves);
	next(2, link, SLMPM_BY_SMT);
	next(3, link, link ? SLMPM_BY_REQUEST : SLMPM_BY_GET);
	next(4, link, SLMPM_BY_SMT);
	next(5, link, moves);
	next(6, 1 - link, SLMPM_BY_SMT);
	CHECK(actor_filled(back, 4, sizeof(back)), "what was put");
	expect_back(ECHO, 4, sizeof(bytes));
	expect_back(ECHO, 4, sizeof(bytes));
	OK(slmpm_wq_destroy(wq));
}

/* ---- memory --------------------------------------------------------------------------------- */

static void open_regions(void)
{
	const slmpm_peer handles[3] = {peer, by[0], by[1]};
	struct slmpm_key key;

	for (int i = 0; i < 3; i++) {
		EXPECT(slmpm_recv(handles[i], TAKE, &key, sizeof(key), NULL, PATIENCE),
		       sizeof(key));
		OK(slmpm_mem_open(handles[i], &key, &regions[i]));
	}
}

static void atomics_and_gets(void)
{
	uint64_t old, word;

	for (int i = 0; i < 3; i++) {
		struct slmpm_how how = {.size = sizeof(how)};
		int told = i == 2 ? 1 : -1; /* directly, which is nobody's choice */
		slmpm_req req;

		OK(slmpm_atomic(regions[i], 4096, SLMPM_FETCH_ADD, 64, 1, 0, &old, &how, &req));
		links_expect(req, told, "an atomic operation");
		EXPECT(old, i);
		OK(slmpm_get(regions[i], 4096, &word, sizeof(word), &how, &req));
		links_expect(req, told, "a get");
		EXPECT(word, i + 1);
	}
	OK(slmpm_flush(by[1], PATIENCE));
}

/* Into the target's FIFO: an active message. */
static void fifo_puts(void)
{
	uint64_t word = 0;

	for (uint64_t i = 1; i <= 6; i++) {
		struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_FIFO | SLMPM_REMOTE};
		int link = (int)i % 2, told = i > 4 ? 1 - link : link;
		slmpm_req req;

		if (i > 4)
			how.flags |= SLMPM_ON_LINK(1 - link);
		OK(slmpm_send(peer, STORE, NULL, 0, PATIENCE));
		OK(slmpm_put(regions[1 + link], 8192, &i, sizeof(i), &how, &req));
		links_expect(req, told, "a put into a FIFO");
		EXPECT(slmpm_recv(by[link], STORE, NULL, 0, NULL, PATIENCE), 0);
		OK(slmpm_get(regions[0], 8192, &word, sizeof(word), NULL, NULL));
		EXPECT(word, i);
	}
}

/* ---- where the peer alone counts ------------------------------------------------------------ */

static void mirrors(void)
{
	static uint64_t words[512];
	slmpm_mirror mirror;

	OK(slmpm_mirror_create((slmpm_ctx){0}, words, sizeof(words), NULL, &mirror));
	OK(slmpm_send(peer, MIRROR, NULL, 0, PATIENCE));
	OK(slmpm_mirror_attach(mirror, by[1], 5, SLMPM_MIRROR_LEAD, PATIENCE));
	OK(slmpm_mirror_store64(mirror, &words[0], 77));
	OK(slmpm_mirror_flush(mirror, PATIENCE));
	EXPECT(slmpm_recv(peer, MIRROR, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_mirror_detach(mirror, by[0]));
	OK(slmpm_mirror_destroy(mirror));
}

static void shares(void)
{
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ, &mem, &base));
	OK(slmpm_send(peer, TAKE, NULL, 0, PATIENCE));
	OK(slmpm_mem_share(mem, by[1], SLMPM_READ, PATIENCE));
	EXPECT(slmpm_recv(peer, TAKE, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_mem_revoke(mem, by[0], PATIENCE));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void looks(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_link_info link = {.size = sizeof(link)};
	struct slmpm_done done;
	const void *held;

	for (uint64_t i = 0; i < 2; i++) {
		unsigned char bytes[100];

		actor_fill(bytes, i, sizeof(bytes));
		OK(slmpm_peer_query(by[i], &info));
		OK(slmpm_link_query(by[i], 1, &link));
		OK(slmpm_link_use(by[i], 0)); /* of what asks for none */
		OK(slmpm_send(peer, ECHO, bytes, sizeof(bytes), PATIENCE));
		EXPECT(slmpm_probe(by[i], ECHO, &done, PATIENCE), 1);
		CHECK(done.peer.id == peer.id, "told with another handle");
		EXPECT(slmpm_hold(by[1 - i], ECHO, &held, &done, PATIENCE), sizeof(bytes));
		CHECK(actor_filled(held, i, sizeof(bytes)) && done.peer.id == peer.id, "held");
		OK(slmpm_release(by[i], held));
	}
}

static void spawn(void)
{
	const struct slmpm_spawn_options how = {.size = sizeof(how), .element = 1};

	peer = actor_spawn_with(&how, "mate", NULL, NULL);
	links_await();
}

static void find(const char *first, const char *second)
{
	OK(slmpm_peer_find(&by[0], (slmpm_ctx){0}, first));
	if (second)
		OK(slmpm_peer_find(&by[1], (slmpm_ctx){0}, second));
	else /* it has the same address: the handle that an address of its own would give */
		by[1].id = by[0].id + (UINT64_C(1) << 24);
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	open_regions();
}

static void end(void)
{
	OK(slmpm_send(by[1], END, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(by[0], END, NULL, 0, NULL, PATIENCE), 0);
	EXPECT(slmpm_join(by[1], NULL, PATIENCE), 0);
	EXPECT(slmpm_am(by[1], ASK, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
}

static int every_call(void *unused)
{
	(void)unused;
	spawn();
	find("pci:0000:03:00.0", "ip:127.0.0.1");
	active_messages();
	loans(true);
	work_over(0);
	work_over(1);
	atomics_and_gets();
	fifo_puts();
	mirrors();
	shares();
	looks();
	OK(slmpm_kill(by[0], 0));
	EXPECT(slmpm_join(by[1], NULL, PATIENCE), 128 + SIGKILL);
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

/* One-sided operations in each form of request, by the link of the region's handle, not the usual one. */
static int by_requests(void *form)
{
	static unsigned char bytes[20000];

	CHECK(setenv("SLMPM_RMA", form, 1) == 0 && setenv("SLMPM_LINK", "1", 1) == 0, "setenv");
	spawn();
	find("pci:0000:03:00.0", "ip:127.0.0.1");
	for (int i = 0; i < ROUNDS; i++) {
		const struct slmpm_how how = {.size = sizeof(how)};
		slmpm_req req;
		int link = i % 3 ? i % 3 - 1 : 1;

		OK(slmpm_put(regions[i % 3], 0, bytes, sizeof(bytes), &how, &req));
		links_expect(req, link, form);
		OK(slmpm_get(regions[i % 3], 0, bytes, sizeof(bytes), &how, &req));
		links_expect(req, link, form);
	}
	end();
	return 0;
}

static void set(const char *name, const char *value)
{
	CHECK(setenv(name, value, 1) == 0, "setenv");
}

static void run(int (*body)(void *), const char *what)
{
	static char word[8];

	printf("%s\n", what);
	fflush(stdout);
	snprintf(word, sizeof(word), "%s", what);
	CHECK(child_run(body, word, 10 * (unsigned)actor_slow()) == 0, "%s: see above", what);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"mate", mate}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	set("SLMPM_PCI", "03:00.0");
	set("SLMPM_LINKS_AFTER", "0");
	set("SLMPM_FABRIC", "shm");
	set("SLMPM_LINKS", "shm,tcp");
	run(every_call, "every call");
	run(by_requests, "ring");
	run(by_requests, "am");
	run(by_requests, "tag");
	set("SLMPM_FABRIC", "tcp");
	set("SLMPM_LINKS", "tcp,tcp");
	run(over_networks, "over networks");
	return 0;
}
