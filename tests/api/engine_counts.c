/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Which puts and gets the engine takes, and which the call copies: those that nobody waits for,
 * from SLMPM_ENGINE_MIN on, or of any length where they are hinted past the ring, or a FIFO's entry
 * is stored without waiting; and that the statistics, slmpm_monitor's too, say so: the operations
 * and bytes that the test has counted itself, by direction and by who moved them.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE  ((size_t)1 << 20)
#define LEAST 65536
#define TIMES 3

struct moved {
	uint64_t puts, put_bytes, gets, get_bytes;
};

static slmpm_ctx ctx;
static slmpm_peer a, b;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char bytes[SIZE];
static bool engine;
static struct moved copied, moved; /* by the calls, by the engine */
static uint64_t all_puts, all_gets;

static const size_t lengths[] = {1, 8, 4096, LEAST - 1, LEAST, SIZE};
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static bool open_pair(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(a, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	return info.mapped;
}

static void count(struct moved *m, bool put, size_t n)
{
	*(put ? &m->puts : &m->gets) += 1;
	*(put ? &m->put_bytes : &m->get_bytes) += n;
}

/* Its protocol and reason, of one that was not waited for. */
static struct slmpm_mode operate(bool put, size_t n, uint32_t flags, bool waits)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags, .timeout_ms = PATIENCE};
	struct slmpm_mode mode = {.size = sizeof(mode)};
	struct slmpm_done done = {.status = 1};
	slmpm_req req = {0}, *r = waits ? NULL : &req;

	OK(put ? slmpm_put(rmem, 0, bytes, n, &how, r) : slmpm_get(rmem, 0, bytes, n, &how, r));
	*(put ? &all_puts : &all_gets) += 1;
	if (waits)
		return mode;
	OK(slmpm_req_mode(req, &mode));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0 && done.len == n, "status %d, %llu bytes", done.status,
	      (unsigned long long)done.len);
	return mode;
}

static void check_mode(const struct slmpm_mode *m, int protocol, int reason, size_t n)
{
	CHECK(m->protocol == protocol && (int)m->reason == reason,
	      "%zu bytes: by %d, for reason %d, not %d", n, m->protocol, (int)m->reason, reason);
}

/* One that is waited for, one that is not, one that is hinted past the ring, one through it. */
static void each(bool put, size_t n)
{
	const uint32_t hint = SLMPM_VIA(put ? SLMPM_BY_PUT : SLMPM_BY_GET);
	const int way = put ? SLMPM_BY_PUT : SLMPM_BY_GET;
	struct slmpm_mode mode;

	(void)operate(put, n, 0, true);
	(void)operate(put, n, hint, true);
	count(&copied, put, n);
	count(&copied, put, n);
	mode = operate(put, n, 0, false);
	count(engine && n >= LEAST ? &moved : &copied, put, n);
	check_mode(&mode, way, engine && n >= LEAST ? SLMPM_REASON_SIZE : SLMPM_REASON_SHORT, n);
	mode = operate(put, n, hint, false);
	count(engine ? &moved : &copied, put, n);
	check_mode(&mode, way, SLMPM_REASON_HINT, n);
	mode = operate(put, n, SLMPM_VIA(SLMPM_BY_REQUEST) | SLMPM_STRICT, false);
	check_mode(&mode, SLMPM_BY_REQUEST, SLMPM_REASON_STRICT, n);
}

static void by_direction(const struct slmpm_stats *s)
{
	struct slmpm_monitor m = {.size = sizeof(m)};

	EXPECT(s->copied_puts, copied.puts);
	EXPECT(s->copied_put_bytes, copied.put_bytes);
	EXPECT(s->copied_gets, copied.gets);
	EXPECT(s->copied_get_bytes, copied.get_bytes);
	EXPECT(s->engine_out, moved.puts);
	EXPECT(s->engine_in, moved.gets);
	EXPECT(s->engine_out_bytes + s->helped_out_bytes, moved.put_bytes);
	EXPECT(s->engine_in_bytes + s->helped_in_bytes, moved.get_bytes);
	EXPECT(s->puts, all_puts);
	EXPECT(s->gets, all_gets);
	OK(slmpm_monitor(a, &m, sizeof(m)));
	CHECK(m.copied_puts == s->copied_puts && m.copied_put_bytes == s->copied_put_bytes &&
		      m.copied_gets == s->copied_gets && m.copied_get_bytes == s->copied_get_bytes,
	      "the monitor knows of other copies");
	CHECK(m.engine_out == s->engine_out && m.engine_out_bytes == s->engine_out_bytes &&
		      m.engine_in == s->engine_in && m.engine_in_bytes == s->engine_in_bytes &&
		      m.helped_out_bytes == s->helped_out_bytes &&
		      m.helped_in_bytes == s->helped_in_bytes,
	      "the monitor knows another engine");
}

static int operations(void *unused)
{
	struct slmpm_stats s;

	(void)unused;
	if (!open_pair())
		return 0;
	for (int i = 0; i < TIMES; i++)
		for (size_t k = 0; k < LENGTHS; k++) {
			each(true, lengths[k]);
			each(false, lengths[k]);
		}
	s = actor_stats(a);
	by_direction(&s);
	s = actor_stats(b); /* who owns the memory moves nothing */
	EXPECT(s.copied_puts + s.copied_gets + s.engine_out + s.engine_in, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* Entries of a FIFO are stored by the engine, however short, unless the call waits. */
static int entries(void *unused)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_FIFO, .timeout_ms = PATIENCE};
	struct slmpm_stats s;
	uint64_t sum = 0;

	(void)unused;
	(void)open_pair();
	for (size_t k = 0; k < LENGTHS; k++)
		for (int waits = 0; waits < 2; waits++) {
			slmpm_req put, store = {0};
			struct slmpm_done done;
			struct slmpm_fifo e;

			OK(slmpm_put(rmem, 0, bytes, lengths[k], &how, &put));
			OK(slmpm_fifo_take(b, &e, PATIENCE));
			OK(slmpm_fifo_store(&e, mem, 0, NULL, waits ? NULL : &store));
			if (!waits)
				EXPECT(slmpm_wait(&store, 1, &done, PATIENCE), 0);
			EXPECT(slmpm_wait(&put, 1, &done, PATIENCE), 0);
			OK(done.status);
			sum += waits ? 0 : lengths[k];
		}
	s = actor_stats(b);
	EXPECT(s.engine_in, engine ? LENGTHS : 0);
	EXPECT(s.engine_in_bytes + s.helped_in_bytes, engine ? sum : 0);
	EXPECT(s.engine_out + s.engine_out_bytes + s.helped_out_bytes, 0);
	s = actor_stats(a);
	EXPECT(s.fifo_puts, 2 * LENGTHS);
	EXPECT(s.copied_puts + s.copied_put_bytes + s.engine_out, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};
	static const char *const kinds[] = {"none", "inline", "thread"};
	const unsigned seconds = 15 * (unsigned)actor_slow();

	actor_begin(argc, argv, roles);
	settings_one_link(NULL);
	CHECK(setenv("SLMPM_ENGINE_MIN", "64k", 1) == 0, "setenv");
	for (int i = 0; i < 3; i++) {
		CHECK(setenv("SLMPM_ENGINE", kinds[i], 1) == 0, "setenv");
		engine = i > 0;
		printf("%s\n", kinds[i]);
		fflush(stdout);
		CHECK(child_run(operations, NULL, seconds) == 0, "puts and gets: see above");
		CHECK(child_run(entries, NULL, seconds) == 0, "entries: see above");
	}
	return 0;
}
