/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the selector does to puts, gets and atomic operations: a busy engine sends others through
 * the ring; hints, and what cannot be had; settings that decide for all.
 */
#include <string.h>

#include "tests/lib/chosen.h"
#include "tests/lib/settings.h"

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *there;

/* False: nothing is mapped over this fabric. */
static bool open_pair(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, sizeof(chosen_bytes), SLMPM_READ_WRITE, &mem, &base));
	there = base;
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	actor_fill(chosen_bytes, 5, sizeof(chosen_bytes));
	return info.mapped;
}

static void close_pair(void)
{
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

static void put_it(size_t len, uint32_t flags, slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};

	OK(slmpm_put(rmem, 0, chosen_bytes, len, &how, req));
}

static void put_so(size_t len, uint32_t flags, int protocol, enum slmpm_reason reason,
		   struct chosen *sent)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	put_it(len, flags, &sent->req);
	OK(slmpm_req_mode(sent->req, &mode));
	CHECK(mode.op == SLMPM_OP_PUT, "a put");
	chosen_expect(&mode, "under way", protocol, reason);
	sent->protocol = protocol;
	sent->reason = reason;
}

/* Transfers wait in the engine, which progress alone moves; beyond four others go by the ring. */
static int busy_engine(void *unused)
{
	uint32_t strict = SLMPM_STRICT;
	struct chosen s[10];

	(void)unused;
	if (!open_pair()) {
		close_pair();
		return 0;
	}
	for (int i = 0; i < 5; i++)
		put_so(KIB(100), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[i]);
	put_so(KIB(100), 0, SLMPM_BY_REQUEST, SLMPM_REASON_QUEUE, &s[5]);
	put_so(KIB(300), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[6]); /* too long for the ring */
	put_so(KIB(100), strict, SLMPM_BY_PUT, SLMPM_REASON_STRICT, &s[7]);
	put_so(KIB(100), SLMPM_VIA(SLMPM_BY_PUT), SLMPM_BY_REQUEST, SLMPM_REASON_QUEUE, &s[8]);
	put_so(8, 0, SLMPM_BY_PUT, SLMPM_REASON_SHORT, &s[9]); /* the engine is not asked */
	for (int i = 0; i < 10; i++)
		chosen_end(&s[i]);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(actor_filled(there, 5, KIB(300)), "what was put");
	put_so(KIB(100), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE, &s[0]);
	chosen_end(&s[0]);
	close_pair();
	return 0;
}

static struct slmpm_mode last(void)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	OK(slmpm_peer_mode(a, &mode));
	return mode;
}

/* What the flags ask for, of puts, gets and atomic operations. */
static void obeyed(uint32_t ring)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = ring, .timeout_ms = PATIENCE};
	struct slmpm_mode mode = last();
	uint64_t old = 0, was;

	CHECK(mode.protocol == -1 && mode.op == 0 && mode.reason == SLMPM_REASON_NONE, "none yet");
	put_it(8, ring | SLMPM_REMOTE, NULL);
	mode = last();
	CHECK(mode.op == SLMPM_OP_PUT, "operation %u", mode.op);
	chosen_expect(&mode, "put", SLMPM_BY_REQUEST, SLMPM_REASON_HINT);
	CHECK(!memcmp(there, chosen_bytes, 8), "bytes");
	put_it(8, SLMPM_VIA(SLMPM_BY_SMT) | SLMPM_STRICT, NULL);
	mode = last();
	chosen_expect(&mode, "strict", SLMPM_BY_REQUEST, SLMPM_REASON_STRICT);
	memcpy(&was, there, sizeof(was));
	OK(slmpm_get(rmem, 0, &old, sizeof(old), &how, NULL));
	CHECK(old == was, "got");
	mode = last();
	CHECK(mode.op == SLMPM_OP_GET, "operation %u", mode.op);
	chosen_expect(&mode, "get", SLMPM_BY_REQUEST, SLMPM_REASON_HINT);
	OK(slmpm_atomic(rmem, 0, SLMPM_SWAP, 64, 77, 0, &old, &how, NULL));
	CHECK(old == was, "swapped");
	OK(slmpm_get(rmem, 0, &old, sizeof(old), NULL, NULL));
	CHECK(old == 77, "in its place");
}

static void told_in_a_queue(uint32_t ring)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = ring};
	struct slmpm_done done;

	OK(slmpm_cq_create(ctx, &how.cq));
	OK(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL));
	EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
	CHECK(done.protocol == SLMPM_BY_REQUEST && done.reason == SLMPM_REASON_HINT, "queued");
	OK(slmpm_cq_destroy(how.cq));
}

/* What they cannot have. */
static void refused(uint32_t ring, bool maps)
{
	const struct slmpm_iov iov = {chosen_bytes, 8};
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};

	how.flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_STRICT; /* what no put can have */
	REFUSED(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL), SLMPM_ENOTSUP, "protocol");
	how.flags = SLMPM_VIA(SLMPM_BY_PUT) | SLMPM_STRICT;
	if (maps)
		OK(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL));
	else
		REFUSED(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL), SLMPM_ENOTSUP, "protocol");
	how.flags = SLMPM_VIA(SLMPM_PROTOCOLS);
	REFUSED(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL), SLMPM_EINVAL, "flags");
	REFUSED(slmpm_sendv(a, 1, &iov, 1, &how, NULL), SLMPM_EINVAL, "flags");
	how.flags = SLMPM_FIFO | ring;
	REFUSED(slmpm_put(rmem, 0, chosen_bytes, 8, &how, NULL), SLMPM_EINVAL, "flags");
	how.flags = SLMPM_VIA(SLMPM_BY_GET) | SLMPM_STRICT; /* nor a message */
	REFUSED(slmpm_sendv(a, 1, &iov, 1, &how, NULL), SLMPM_ENOTSUP, "protocol");
}

static void asked_wrongly(void)
{
	struct slmpm_mode mode = {.size = 4};

	REFUSED(slmpm_peer_mode(a, &mode), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_peer_mode(a, NULL), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_req_mode((slmpm_req){0}, &mode), SLMPM_EINVAL, ".size");
	mode.size = sizeof(mode);
	EXPECT(slmpm_req_mode((slmpm_req){0}, &mode), -SLMPM_EHANDLE);
	EXPECT(slmpm_peer_mode((slmpm_peer){12345}, &mode), -SLMPM_EHANDLE);
}

static int hint(void *unused)
{
	const uint32_t ring = SLMPM_VIA(SLMPM_BY_REQUEST);
	bool maps = open_pair();

	(void)unused;
	obeyed(ring);
	told_in_a_queue(ring);
	refused(ring, maps);
	asked_wrongly();
	close_pair();
	return 0;
}

/* SLMPM_MODE decides for all that asks for nothing. */
static int forced(void *way)
{
	bool smt = !strcmp(way, "smt"), maps = open_pair();
	struct slmpm_mode mode = {.size = sizeof(mode)};

	put_it(KIB(64), 0, NULL);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(actor_filled(there, 5, KIB(64)), "bytes");
	OK(slmpm_peer_mode(a, &mode));
	if (smt)
		chosen_expect(&mode, "put", SLMPM_BY_REQUEST, SLMPM_REASON_SETTING);
	put_it(8, SLMPM_VIA(SLMPM_BY_PUT), NULL);
	OK(slmpm_peer_mode(a, &mode));
	chosen_expect(&mode, "hint", maps ? SLMPM_BY_PUT : SLMPM_BY_REQUEST,
		      maps ? SLMPM_REASON_HINT : SLMPM_REASON_ONLY);
	close_pair();
	return 0;
}

int main(void)
{
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_EAGER_MAX", "16k");
	settings_set("SLMPM_MODE_RING", "101");
	settings_set("SLMPM_MODE_QUEUE", "4");
	settings_set("SLMPM_EAGER_CREDIT", "64k");
	settings_set("SLMPM_MODE_DMA", "4");
	settings_set("SLMPM_ENGINE", "inline");
	settings_set("SLMPM_ENGINE_MIN", "64k");
	settings_run("a busy engine", busy_engine, NULL);
	settings_set("SLMPM_ENGINE", "none");
	settings_run("hints", hint, NULL);
	settings_set("SLMPM_MODE", "smt");
	settings_run("all by SMT", forced, (void *)(uintptr_t) "smt");
	settings_set("SLMPM_MODE", "dma");
	settings_run("all by DMA", forced, (void *)(uintptr_t) "dma");
	return 0;
}
