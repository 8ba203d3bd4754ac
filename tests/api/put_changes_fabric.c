/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * A put changes the fabric: the engine's queue is over its threshold and the ring lightly used,
 * through the ring; the ring is over its own, too, the other link. Its bytes are in that link's
 * counters, and what follows finds it landed: a fence, a notification, a message, by whatever link.
 * By default nothing leaves.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define LENGTH 100000 /* of a put that the engine takes */
#define LOADED 8      /* of these: a short call moves one, now and then, on a busy machine */
#define PUTS   (LOADED + 4)
#define FILL   40 /* messages of 16 KiB: more than half of a ring */
#define LAST   (PUTS * LENGTH)

enum { KEY = 1, STOP, BALLAST, CHECKS, END };

static unsigned char bytes[PUTS][LENGTH];

/* ---- whose memory it is --------------------------------------------------------------------- */

static void stop(void)
{
	CHECK(raise(SIGSTOP) == 0, "not stopped");
}

/* The put of number I is whole. */
static void expect_landed(const unsigned char *base, unsigned i, const char *when)
{
	CHECK(actor_filled(base + (size_t)i * LENGTH, i + 1, LENGTH), "put %u is not there %s", i,
	      when);
}

/* A notification finds what was put before it. */
static void expect_notified(slmpm_cq cq, const unsigned char *base)
{
	struct slmpm_done done;

	while (slmpm_cq_poll(cq, &done, 1) == 1)
		expect_landed(base, done.imm, "with a notification");
}

/* A message says which put is to be there; notified and fenced ones come with another's number. */
static int owner(slmpm_peer host, char **words)
{
	static unsigned char got[24 << 10];
	struct slmpm_done done = {.stream = KEY};
	struct slmpm_key key;
	unsigned char *base;
	uint32_t number;
	slmpm_mem mem;
	slmpm_cq cq;

	(void)words;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, LAST + 8, SLMPM_READ_WRITE, &mem, (void **)&base));
	OK(slmpm_mem_notify(mem, (slmpm_ctr){0}, cq));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	while (done.stream != END) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, 1);

		expect_notified(cq, base);
		if (n == -SLMPM_ETIMEOUT)
			continue;
		CHECK(n >= 0, "%s", slmpm_error_detail());
		memcpy(&number, got, sizeof(number));
		if (done.stream == STOP)
			stop();
		if (done.stream == BALLAST)
			usleep(2000); /* what waits for the ring is chosen for while it is still full */
		if (done.stream != CHECKS)
			continue;
		expect_landed(base, number, "behind a message");
		OK(slmpm_send(host, CHECKS, NULL, 0, PATIENCE));
	}
	return 0;
}

/* ---- who puts ------------------------------------------------------------------------------- */

static struct {
	slmpm_peer peer;
	slmpm_rmem rmem;
	int pid;
	slmpm_req fill[FILL], put[PUTS];
	unsigned puts;
} at;

static void begin(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	at.peer = actor_spawn("owner", NULL, NULL);
	links_await();
	EXPECT(slmpm_recv(at.peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(at.peer, &key, &at.rmem));
	OK(slmpm_peer_query(at.peer, &info));
	at.pid = info.pid;
	for (unsigned i = 0; i < PUTS; i++)
		actor_fill(bytes[i], i + 1, LENGTH);
}

static void halt(void)
{
	OK(slmpm_send(at.peer, STOP, "stop", 4, PATIENCE));
	actor_await_state(at.pid, "T");
}

static void fill_ring(void)
{
	static unsigned char ballast[16 << 10];
	const struct slmpm_iov piece = {ballast, sizeof(ballast)};

	for (int i = 0; i < FILL; i++)
		OK(slmpm_sendv(at.peer, BALLAST, &piece, 1, NULL, &at.fill[i]));
}

static uint64_t written(uint32_t link)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	OK(slmpm_link_query(at.peer, link, &info));
	return info.written;
}

static void expect_put(uint32_t flags, uint32_t link, int protocol, enum slmpm_reason reason)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags};
	struct slmpm_mode mode = {.size = sizeof(mode)};
	unsigned i = at.puts++;

	OK(slmpm_put(at.rmem, (uint64_t)i * LENGTH, bytes[i], LENGTH, &how, &at.put[i]));
	OK(slmpm_req_mode(at.put[i], &mode));
	CHECK(mode.reason == reason && mode.protocol == protocol && mode.link == link,
	      "put %u by protocol %d and link %u, because: %s", i, mode.protocol, mode.link,
	      slmpm_reason_name((int)mode.reason));
}

static void settle(void)
{
	struct slmpm_done done;

	for (int i = 0; i < FILL; i++)
		if (at.fill[i].id)
			EXPECT(slmpm_wait(&at.fill[i], 1, &done, PATIENCE), 0);
	for (unsigned i = 0; i < at.puts; i++) {
		EXPECT(slmpm_wait(&at.put[i], 1, &done, PATIENCE), 0);
		OK(done.status);
	}
}

/* The owner finds put I there behind this message. */
static void expect_message(uint32_t i)
{
	OK(slmpm_send(at.peer, CHECKS, &i, sizeof(i), PATIENCE));
	EXPECT(slmpm_recv(at.peer, CHECKS, NULL, 0, NULL, PATIENCE), 0);
}

static void finish(void)
{
	OK(slmpm_send(at.peer, END, "end", 4, PATIENCE));
	OK(slmpm_close(at.peer, PATIENCE));
	actor_join(at.peer, 0);
}

/* More than SLMPM_MODE_DMA are the engine's. */
static void load_engine(void)
{
	for (int i = 0; i < LOADED; i++)
		expect_put(SLMPM_STRICT, 0, SLMPM_BY_PUT, SLMPM_REASON_STRICT);
}

static int changes(void *unused)
{
	const struct slmpm_how notified = {
		.size = sizeof(notified), .flags = SLMPM_NOTIFY, .imm = 6, .timeout_ms = PATIENCE};
	const struct slmpm_how behind = {.size = sizeof(behind),
					 .flags = SLMPM_FENCE | SLMPM_NOTIFY,
					 .imm = 5,
					 .timeout_ms = PATIENCE};
	uint64_t before, shm;
	uint64_t word = 1;

	(void)unused;
	begin();
	halt();
	load_engine();
	expect_put(0, 0, SLMPM_BY_REQUEST, SLMPM_REASON_QUEUE); /* a light ring */
	fill_ring();
	before = written(1);
	shm = written(0);
	expect_put(0, 1, SLMPM_BY_REQUEST, SLMPM_REASON_BOTH);
	expect_put(SLMPM_REMOTE, 1, SLMPM_BY_REQUEST, SLMPM_REASON_BOTH);
	expect_put(SLMPM_VIA(SLMPM_BY_PUT), 1, SLMPM_BY_REQUEST, SLMPM_REASON_BOTH);
	CHECK(written(1) > before, "nothing has gone by the other link");
	CHECK(written(0) - shm < 500, "they have gone by the first link");
	CHECK(kill(at.pid, SIGCONT) == 0, "not resumed");
	OK(slmpm_put(at.rmem, LAST, &word, sizeof(word), &behind, NULL));
	OK(slmpm_put(at.rmem, LAST, &word, sizeof(word), &notified, NULL));
	expect_message(PUTS - 1);
	OK(slmpm_flush(at.peer, PATIENCE));
	settle();
	expect_message(PUTS - 1);
	finish();
	return 0;
}

static int stays(void *unused)
{
	(void)unused;
	begin();
	halt();
	load_engine();
	fill_ring();
	expect_put(0, 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE);
	CHECK(kill(at.pid, SIGCONT) == 0, "not resumed");
	settle();
	expect_message(LOADED);
	finish();
	return 0;
}

/* Sends whose queue and ring are over their thresholds, likewise. */
static int sends(void *leaves)
{
	static unsigned char longer[24 << 10];
	const struct slmpm_iov piece = {longer, sizeof(longer)};
	static slmpm_req more[40];
	struct slmpm_done done;
	int by[2] = {0, 0}, both = 0;

	begin();
	halt();
	fill_ring();
	for (int i = 0; i < 40; i++)
		OK(slmpm_sendv(at.peer, BALLAST, &piece, 1, NULL, &more[i]));
	CHECK(kill(at.pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < 40; i++) {
		EXPECT(slmpm_wait(&more[i], 1, &done, PATIENCE), 0);
		OK(done.status);
		by[links_told(&done)]++;
		both += done.reason == SLMPM_REASON_BOTH;
	}
	printf("  %d by the first link, %d by the other, %d because of both\n", by[0], by[1], both);
	CHECK(leaves ? both && by[1] : !both && !by[1], "see above");
	settle();
	finish();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", owner}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,tcp");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_ENGINE", "inline");
	settings_set("SLMPM_FETCH", "never");
	settings_set("SLMPM_PACKET_MAX", "16k");
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_EAGER_CREDIT", "4m");
	settings_run("sends by default", sends, NULL);
	settings_set("SLMPM_MODE_DMA", "2");
	settings_run("puts, with one threshold", stays, NULL);
	settings_set("SLMPM_MODE_RING", "50");
	settings_run("puts, with both", changes, NULL);
	settings_set("SLMPM_MODE_QUEUE", "4");
	settings_run("sends, with both", sends, "leaves");
	settings_set("SLMPM_MODE_LINK", "never");
	settings_run("where none may leave", stays, NULL);
	settings_run("nor messages", sends, NULL);
	return 0;
}
