/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/* native-only */
/*
 * Each allocation of a pair's life fails once, one after the other: calls may fail, connections may
 * end, the process goes on. Bursts are sent whole without memory to collect them in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SIZE  ((size_t)1 << 20)
#define BRIEF 20 /* ms: what comes comes at once */
#define MEET  200
#define BURST 40

/* ---- memory that is refused once ------------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t n);

static long left = -1; /* allocations until then; negative: none is refused */
static long asked;

static bool is_refused(void)
{
	asked++;
	if (left < 0 || left-- > 0)
		return false;
	left = -1;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	return is_refused() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *at, size_t n)
{
	return is_refused() ? NULL : __libc_realloc(at, n);
}

/* ---- a pair's life --------------------------------------------------------------------------- */

static slmpm_ctx ctx;
static slmpm_peer a, b;
static unsigned char bytes[SIZE], got[SIZE];

static void reply(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	(void)slmpm_am_reply(am, 2, "head", 4, am->data, am->data_len < 100 ? am->data_len : 100);
}

static bool meet(const char *url)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener l;
	char at[400];
	bool met;

	if (slmpm_listen(&l, ctx, url) < 0)
		return false;
	(void)slmpm_listener_query(l, &info);
	snprintf(at, sizeof(at), info.port ? "%s#%s" : "%s", info.url, info.secret);
	met = slmpm_connect(&a, ctx, at, MEET) == 0;
	if (met)
		(void)slmpm_am(a, 1, "early", 5, bytes, 100, NULL, NULL);
	met = met && slmpm_accept(l, &b, MEET) == 0;
	(void)slmpm_unlisten(l);
	return met;
}

static void progress(int times)
{
	while (times--)
		(void)slmpm_progress(ctx);
}

static void messages(void)
{
	static const size_t sizes[] = {8, 9000, 600000};
	const struct slmpm_how remote = {
		.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = BRIEF};
	void *loan;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		slmpm_req req = {0};
		struct slmpm_iov iov = {bytes, sizes[i]};

		if (slmpm_sendv(a, 1, &iov, 1, NULL, &req) < 0)
			continue;
		progress(5);
		(void)slmpm_recv(b, 1, got, sizeof(got), NULL, BRIEF);
		(void)slmpm_wait(&req, 1, NULL, BRIEF);
		if (slmpm_am(a, 1, "head", 4, bytes, sizes[i], NULL, &req) == 0)
			(void)slmpm_wait(&req, 1, NULL, BRIEF);
		(void)slmpm_am(a, 1, "head", 4, bytes, sizes[i], &remote, NULL);
		(void)slmpm_am(a, 5, NULL, 0, bytes, sizes[i], &remote, NULL);
		if (slmpm_loan(a, 2, sizes[i], &loan, BRIEF) == 0)
			(void)slmpm_commit(a, loan, sizes[i], NULL);
		(void)slmpm_recv(b, 2, got, sizeof(got), NULL, BRIEF);
	}
}

static void memory(void)
{
	struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_REMOTE | SLMPM_NOTIFY, .timeout_ms = BRIEF};
	struct slmpm_fifo e;
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_mem mem;
	slmpm_ctr ctr;
	slmpm_cq cq;
	void *base;
	uint64_t old;

	if (slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base) < 0)
		return;
	if (slmpm_ctr_create(ctx, &ctr) == 0 && slmpm_cq_create(ctx, &cq) == 0)
		(void)slmpm_mem_notify(mem, ctr, cq);
	if (slmpm_mem_key(mem, b, SLMPM_READ_WRITE, &key) < 0)
		return;
	progress(5);
	if (slmpm_mem_open(a, &key, &rmem) < 0)
		return;
	for (size_t n = 8; n <= SIZE; n *= 16) {
		(void)slmpm_put(rmem, 0, bytes, n, &how, NULL);
		(void)slmpm_get(rmem, 0, got, n, NULL, NULL);
	}
	(void)slmpm_atomic(rmem, 8, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL);
	how.flags = SLMPM_FIFO;
	(void)slmpm_put(rmem, 0, bytes, 100, &how, NULL);
	if (slmpm_fifo_take(b, &e, BRIEF) == 0)
		(void)slmpm_fifo_store(&e, mem, e.offset, NULL, NULL);
	(void)slmpm_mem_release(rmem);
	(void)slmpm_mem_destroy(mem, BRIEF);
}

static void live(const char *url)
{
	struct slmpm_totals all[3];
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_monitor m;

	if (slmpm_open(&ctx, NULL) < 0)
		return;
	(void)slmpm_am_handler(ctx, 1, reply, NULL);
	if (meet(url)) {
		(void)slmpm_peer_id(a, "one");
		messages();
		memory();
		(void)slmpm_monitor(a, &m, sizeof(m));
		(void)slmpm_totals(ctx, all, sizeof(*all), 3);
		(void)slmpm_next_event(ctx, &event, 0);
		(void)slmpm_close(a, BRIEF);
		(void)slmpm_recv(b, 1, got, sizeof(got), NULL, BRIEF);
		(void)slmpm_close(b, BRIEF);
	}
	(void)slmpm_shut(ctx, BRIEF);
}

struct order {
	const char *url;
	long fails, asked;
};

static int once(void *arg)
{
	struct order *o = arg;

	left = o->fails;
	asked = 0;
	live(o->url);
	left = -1;
	o->asked = asked;
	return 0;
}

static int sweep(void *arg)
{
	struct order *o = child_common(sizeof(*o));

	o->url = arg;
	o->fails = -1;
	CHECK(child_run(once, o, 20) == 0, "without a failure: see above");
	for (long n = o->asked - 1; n >= 0; n--) {
		int rc;

		o->fails = n;
		rc = child_run(once, o, 20);
		CHECK(rc == 0, "allocation %ld fails: %d", n, rc);
	}
	return 0;
}

/* Short messages with MORE, and from buffers that lie apart. */
static int bursts(void *unused)
{
	const struct slmpm_how more = {
		.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = PATIENCE};
	struct slmpm_iov m[BURST];

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	asked = 0;
	for (int i = 0; i < BURST; i++) {
		m[i] = (struct slmpm_iov){bytes + 512 * (size_t)i, 256};
		bytes[512 * i] = (unsigned char)i;
		left = 0;
		OK(slmpm_sendv(a, 3, &m[i], 1, i + 1 < BURST ? &more : NULL, NULL));
	}
	CHECK(asked >= BURST - 1, "memory was asked for %ld times", asked);
	left = 0;
	EXPECT(slmpm_send_burst(a, 3, m, BURST, PATIENCE), BURST);
	CHECK(left < 0, "none was asked for by the other burst");
	for (int i = 0; i < 2 * BURST; i++) {
		EXPECT(slmpm_recv(b, 3, got, sizeof(got), NULL, PATIENCE), 256);
		EXPECT(got[0], i % BURST);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	static char shm[] = "shm:no-memory", tcp[] = "tcp://127.0.0.1:0";

	settings_one_link("shm");
	settings_run("bursts", bursts, NULL);
	settings_run("over shared memory", sweep, shm);
	settings_set("SLMPM_RMA", "am");
	settings_run("by active messages", sweep, shm);
	unsetenv("SLMPM_RMA");
	settings_one_link("tcp");
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("over TCP, with an engine", sweep, tcp);
	settings_set("SLMPM_LINKS", "2");
	settings_set("SLMPM_HEADER", "address");
	settings_set("SLMPM_CHECK", "1");
	settings_run("by two links, all that packets can have", sweep, tcp);
	return 0;
}
