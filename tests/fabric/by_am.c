/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * One-sided operations between two processes over fabrics that lack some of them: what each lacks
 * goes by active messages or packets, the caller sees the right bytes, and completions, figures and
 * the region's path say how it went. A setting prevails.
 */
#include <stdlib.h>

#include "tests/fabric/masked.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE (4u << 20)

static const slmpm_ctx none;
static unsigned char from[SIZE], to[SIZE];

static const size_t sizes[] = {0, 1, 8, 63, 4096, 16336, 16384, 70000, 262144, 1 << 20, SIZE - 16};

struct check { /* by the owner: that its bytes are so */
	uint64_t offset, seed, length;
};

/* The owner: looks at its own memory, and tells of what notifies it. */
static int role_owner(slmpm_peer host, char **words)
{
	struct slmpm_done done;
	const slmpm_ctr no = {0};
	struct slmpm_key key;
	unsigned char *memory;
	struct check c;
	slmpm_mem mem;
	slmpm_cq cq;
	void *base;

	(void)words;
	OK(slmpm_mem_alloc(none, SIZE, SLMPM_READ_WRITE, &mem, &base));
	memory = base;
	OK(slmpm_cq_create(none, &cq));
	OK(slmpm_mem_notify(mem, no, cq));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	while (slmpm_recv(host, 2, &c, sizeof(c), NULL, PATIENCE) == sizeof(c)) {
		CHECK(actor_filled(memory + c.offset, c.seed, c.length), "%llu bytes at %llu",
		      (unsigned long long)c.length, (unsigned long long)c.offset);
		OK(slmpm_send(host, 3, NULL, 0, PATIENCE));
	}
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.op == SLMPM_OP_NOTIFY && done.imm == 5 && done.len == 70000, "op %u", done.op);
	OK(slmpm_send(host, 4, &done.protocol, sizeof(done.protocol), PATIENCE));
	EXPECT(slmpm_recv(host, 5, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

struct masks { /* what it goes by */
	const char *fabric, *rma, *path;
	int put, get, atomic;
	bool am_writes, am_reads, am_atomics;
};

static const struct masks *now;
static slmpm_peer owner;
static slmpm_rmem rmem;
static slmpm_cq cq;

static void ended(uint32_t op, int protocol)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	OK(done.status);
	CHECK(done.op == op && done.protocol == protocol &&
		      (protocol != SLMPM_BY_REQUEST ||
		       done.reason == (now->rma ? SLMPM_REASON_SETTING : SLMPM_REASON_ONLY)),
	      "%s: op %u by %s, %s", now->fabric, done.op, slmpm_protocol_name(done.protocol),
	      slmpm_reason_name(done.reason));
}

static void every_size(void)
{
	struct slmpm_how how = {.size = sizeof(how), .cq = cq};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct check c = {i, i + 3, sizes[i]};

		actor_fill(from, c.seed, c.length);
		if (i % 2) {
			OK(slmpm_put(rmem, c.offset, from, c.length, &how, NULL));
			ended(SLMPM_OP_PUT, now->put);
		} else {
			OK(slmpm_put(rmem, c.offset, from, c.length, NULL, NULL));
		}
		OK(slmpm_send(owner, 2, &c, sizeof(c), PATIENCE));
		EXPECT(slmpm_recv(owner, 3, NULL, 0, NULL, PATIENCE), 0);
		memset(to, 0xee, c.length + 1);
		if (i % 2) {
			OK(slmpm_get(rmem, c.offset, to, c.length, &how, NULL));
			ended(SLMPM_OP_GET, now->get);
		} else {
			OK(slmpm_get(rmem, c.offset, to, c.length, NULL, NULL));
		}
		CHECK(actor_filled(to, c.seed, c.length) && to[c.length] == 0xee,
		      "%s: a get of %zu bytes", now->fabric, sizes[i]);
	}
}

/* The bytes from there on are those of WANT, in this byte order: owner and origin have one. */
static void is_there(uint64_t at, const void *want, size_t n)
{
	OK(slmpm_get(rmem, at, to, n, NULL, NULL));
	CHECK(memcmp(to, want, n) == 0, "%s: another word at %llu", now->fabric,
	      (unsigned long long)at);
}

static void atomics(void)
{
	const struct slmpm_how how = {.size = sizeof(how), .cq = cq};
	uint64_t word = 0x1122334455667788, old = 0;
	uint32_t half = 0xfffffffe, before = 0;

	OK(slmpm_put(rmem, 64, &word, sizeof(word), NULL, NULL));
	OK(slmpm_atomic(rmem, 64, SLMPM_FETCH_ADD, 64, 0x10, 0, &old, NULL, NULL));
	CHECK(old == word, "%llx", (unsigned long long)old);
	word += 0x10;
	OK(slmpm_atomic(rmem, 64, SLMPM_COMPARE_SWAP, 64, 9, 8, &old, &how, NULL));
	ended(SLMPM_OP_ATOMIC, now->atomic);
	CHECK(old == word, "%llx", (unsigned long long)old);
	is_there(64, &word, sizeof(word));
	OK(slmpm_atomic(rmem, 64, SLMPM_COMPARE_SWAP, 64, 9, word, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 64, SLMPM_SWAP, 64, UINT64_MAX, 0, &old, NULL, NULL));
	CHECK(old == 9, "%llx", (unsigned long long)old);
	OK(slmpm_put(rmem, 128, &half, sizeof(half), NULL, NULL));
	OK(slmpm_atomic(rmem, 128, SLMPM_FETCH_ADD, 32, 3, 0, &before, NULL, NULL));
	CHECK(before == half, "%x", before);
	half += 3;
	is_there(128, &half, sizeof(half));
	OK(slmpm_atomic(rmem, 128, SLMPM_COMPARE_SWAP, 32, 7, half, &before, NULL, NULL));
	OK(slmpm_atomic(rmem, 128, SLMPM_SWAP, 32, 8, 0, &before, NULL, NULL));
	CHECK(before == 7, "%x", before);
}

/* Fenced and flushed: a get behind a put sees it. */
static void in_order(void)
{
	const struct slmpm_how later = {.size = sizeof(later), .cq = cq};
	struct slmpm_how fence = {.size = sizeof(fence), .flags = SLMPM_FENCE, .cq = cq};
	uint64_t got = 0;

	for (uint64_t i = 1; i <= 50; i++) {
		OK(slmpm_put(rmem, 256, &i, sizeof(i), &later, NULL));
		OK(slmpm_get(rmem, 256, &got, sizeof(got), &fence, NULL));
		ended(SLMPM_OP_PUT, now->put);
		ended(SLMPM_OP_GET, now->get);
		CHECK(got == i, "%llu behind %llu", (unsigned long long)got, (unsigned long long)i);
	}
	OK(slmpm_flush(owner, PATIENCE));
}

static void figures(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_stats s = actor_stats(owner);
	struct slmpm_monitor m;

	OK(slmpm_rmem_query(rmem, &info));
	CHECK(!strcmp(info.path, now->path), "%s: reached by %s", now->fabric, info.path);
	CHECK(!!s.am_writes == now->am_writes && !!s.am_reads == now->am_reads &&
		      !!s.am_atomics == now->am_atomics && !s.tag_writes && !s.tag_reads,
	      "%s: %llu writes, %llu reads, %llu atomics", now->fabric,
	      (unsigned long long)s.am_writes, (unsigned long long)s.am_reads,
	      (unsigned long long)s.am_atomics);
	OK(slmpm_monitor(owner, &m, sizeof(m)));
	CHECK(now->get != SLMPM_BY_REQUEST ||
		      m.reasons[SLMPM_BY_REQUEST]
			       [now->rma ? SLMPM_REASON_SETTING : SLMPM_REASON_ONLY],
	      "%s: the monitor shows no request", now->fabric);
}

static int over(void *arg)
{
	const struct slmpm_how notify = {
		.size = sizeof(notify), .flags = SLMPM_NOTIFY, .imm = 5, .timeout_ms = PATIENCE};
	struct slmpm_key key;
	uint16_t by;

	now = arg;
	OK(slmpm_cq_create(none, &cq));
	owner = actor_spawn("owner", NULL, NULL);
	EXPECT(slmpm_recv(owner, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	every_size();
	atomics();
	in_order();
	OK(slmpm_put(rmem, 0, from, 70000, &notify, NULL));
	OK(slmpm_send(owner, 2, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(owner, 4, &by, sizeof(by), NULL, PATIENCE), sizeof(by));
	EXPECT(by, strcmp(now->path, "fabric") ? now->put : SLMPM_BY_REQUEST);
	figures();
	OK(slmpm_send(owner, 5, NULL, 0, PATIENCE));
	actor_join(owner, 0);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

#define PUT     SLMPM_BY_PUT
#define GET     SLMPM_BY_GET
#define REQUEST SLMPM_BY_REQUEST

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", role_owner}, {NULL, NULL}};
	static const struct masks all[] = {
		{"sendonly", NULL, "am", REQUEST, REQUEST, REQUEST, true, true, true},
		{"noread", NULL, "map", PUT, REQUEST, PUT, false, true, false},
		{"later", NULL, "fabric", PUT, GET, PUT, true, false, false},
		{"noatomic", NULL, "map", PUT, GET, REQUEST, false, false, false},
		{"shm", NULL, "map", PUT, GET, PUT, false, false, false},
		{"tcp", NULL, "ring", REQUEST, REQUEST, REQUEST, false, false, false},
		{"sendonly", "ring", "ring", REQUEST, REQUEST, REQUEST, false, false, false},
		{"shm", "am", "am", REQUEST, REQUEST, REQUEST, true, true, true},
	};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		settings_set("SLMPM_FABRIC", all[i].fabric);
		settings_set("SLMPM_RMA", all[i].rma ? all[i].rma : "auto");
		settings_run(all[i].fabric, over, &all[i]);
	}
	return 0;
}
