/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * A queue that is spread over several links (SLMPM_WQ_SPREAD), to another process: each has a fair
 * part of its messages, puts and active messages, and order holds within each channel. One that is
 * not spread, or asks for a link, goes as it did.
 */
#include <endian.h>
#include <string.h>

#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define CHANNELS 7u  /* stream 7 is for words */
#define ROUNDS   40u /* of each channel: a put, a message, an active message */
#define LONGEST  KIB(300)
#define KIB(n)   ((size_t)(n)*1024)

enum { KEY = 40, READY, SHORT = 50 /* the handler */ };

static uint64_t *words;            /* the reader's region: a put's number of each channel */
static uint32_t handled[CHANNELS]; /* active messages */

static size_t length_of(uint32_t round)
{
	static const size_t lengths[] = {8, 100, 3000, 8, 20000, LONGEST, 64, 70000};

	return lengths[round % 8];
}

/* ---- the reader ----------------------------------------------------------------------------- */

static void take_short(const struct slmpm_am *am, void *arg)
{
	uint32_t channel, round;

	(void)arg;
	CHECK(am->head_len == 8, "a head of %zu bytes", am->head_len);
	memcpy(&channel, am->head, 4);
	memcpy(&round, (const char *)am->head + 4, 4);
	channel = le32toh(channel);
	round = le32toh(round);
	CHECK(channel < CHANNELS && handled[channel] == round, "channel %u: %u behind %u", channel,
	      round, handled[channel]);
	handled[channel]++;
}

static void take_message(slmpm_peer host, unsigned char *room, uint32_t *rounds)
{
	struct slmpm_done msg;
	int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, room, LONGEST, &msg, PATIENCE);
	uint32_t c = msg.stream, round;

	CHECK(n >= 0, "recv: %lld (%s)", (long long)n, slmpm_error_detail());
	CHECK(c < CHANNELS, "stream %u", c);
	round = rounds[c]++;
	CHECK(msg.imm == round && (size_t)n == length_of(c + round), "channel %u: %u instead of %u",
	      c, msg.imm, round);
	CHECK(actor_filled(room, c + round, (size_t)n), "channel %u, %u: other bytes", c, round);
	CHECK(le64toh(words[c]) >= round + 1, "channel %u: the put before message %u is not there",
	      c, round);
	CHECK(handled[c] >= round, "channel %u: %u handled before message %u", c, handled[c],
	      round);
}

static int role_reader(slmpm_peer host, char **argv)
{
	int turns = atoi(argv[0]);
	static unsigned char room[LONGEST];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	OK(slmpm_am_handler((slmpm_ctx){0}, SHORT, take_short, NULL));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, 4096, SLMPM_READ_WRITE, &mem, &base));
	words = base;
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	for (int i = 0; i < turns; i++) {
		uint32_t rounds[CHANNELS] = {0};

		memset(words, 0, 4096);
		memset(handled, 0, sizeof(handled));
		actor_tell(host, READY);
		for (unsigned n = 0; n < CHANNELS * ROUNDS; n++)
			take_message(host, room, rounds);
		for (unsigned c = 0; c < CHANNELS; c++)
			while (handled[c] < ROUNDS)
				CHECK(slmpm_progress((slmpm_ctx){0}) >= 0, "progress");
	}
	actor_hear(host, READY);
	return 0;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static unsigned char *bytes[CHANNELS][ROUNDS];
static uint64_t numbers[CHANNELS][ROUNDS];
static uint32_t heads[CHANNELS][ROUNDS][2];

static void post(slmpm_wq wq, struct slmpm_wr wr, uint32_t channel, uint32_t flags)
{
	wr.size = sizeof(wr);
	wr.channel = channel;
	wr.flags = flags;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

/* How many bytes. */
static uint64_t post_round(slmpm_wq wq, slmpm_peer peer, slmpm_rmem far, uint32_t c, uint32_t round,
			   uint32_t flags)
{
	uint64_t *number = &numbers[c][round];
	uint32_t *head = heads[c][round];
	struct slmpm_iov put = {number, 8}, whole = {bytes[c][round], length_of(c + round)};

	*number = htole64(round + 1);
	head[0] = htole32(c);
	head[1] = htole32(round);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_PUT,
			       .rmem = far,
			       .offset = (uint64_t)c * 8,
			       .iov = &put,
			       .iov_count = 1},
	     c, flags);
	post(wq,
	     (struct slmpm_wr){.op = SLMPM_OP_SEND,
			       .peer = peer,
			       .stream = c,
			       .imm = round,
			       .iov = &whole,
			       .iov_count = 1},
	     c, flags);
	post(wq,
	     (struct slmpm_wr){
		     .op = SLMPM_OP_AM, .peer = peer, .stream = SHORT, .head = head, .head_len = 8},
	     c, flags);
	return 8 + whole.len;
}

/* What others see of it, now that it has slept. */
static void expect_shown(slmpm_wq wq, const uint64_t by_link[SLMPM_LINK_ROOM])
{
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue q = {.size = 0};

	actor_nap((slmpm_ctx){0});
	OK(slmpm_stats_attach(getpid(), 0, &page));
	for (uint32_t i = 0; q.queue != wq.id; i++)
		CHECK(slmpm_stats_queue(page, i, &q, sizeof(q)) >= 0, "it is not shown");
	CHECK(!memcmp(q.by_link, by_link, sizeof(q.by_link)), "other figures are shown");
	slmpm_stats_detach(page);
}

/* What a queue with FLAGS has put on each link; its requests have others. */
static uint64_t run(slmpm_peer peer, slmpm_rmem far, uint32_t flags, uint32_t request,
		    uint64_t by_link[SLMPM_LINK_ROOM])
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = flags, .depth = 3 * CHANNELS * ROUNDS};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	struct slmpm_done done;
	uint64_t total = 0;
	slmpm_wq wq;

	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	actor_hear(peer, READY);
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t c = 0; c < CHANNELS; c++)
			total += post_round(wq, peer, far, c, round, request);
	OK(slmpm_wq_drain(wq, PATIENCE));
	for (uint32_t i = 0; i < o.depth; i++) {
		EXPECT(slmpm_cq_wait(o.cq, &done, 1, PATIENCE), 1);
		OK(done.status);
	}
	OK(slmpm_wq_query(wq, &info));
	memcpy(by_link, info.by_link, sizeof(info.by_link));
	expect_shown(wq, by_link);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_cq_destroy(o.cq));
	return total;
}

static int spread(void *reached)
{
	uint64_t by[SLMPM_LINK_ROOM], total, puts = 8 * CHANNELS * ROUNDS;
	slmpm_peer peer = actor_spawn("reader", "3", NULL);
	struct slmpm_key key;
	slmpm_rmem far;

	EXPECT(slmpm_recv(peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &far));
	links_await();
	for (uint32_t c = 0; c < CHANNELS; c++)
		for (uint32_t i = 0; i < ROUNDS; i++) {
			bytes[c][i] = malloc(LONGEST);
			CHECK(bytes[c][i], "out of memory");
			actor_fill(bytes[c][i], c + i, length_of(c + i));
		}
	total = run(peer, far, SLMPM_WQ_SPREAD, 0, by);
	printf("%llu and %llu of %llu bytes\n", (unsigned long long)by[0],
	       (unsigned long long)by[1], (unsigned long long)total);
	CHECK(by[0] + by[1] == total - (reached ? puts : 0) && !by[2], "not all of them");
	CHECK(by[0] > total / 4 && by[1] > total / 4, "not by both");
	(void)run(peer, far, 0, 0, by);
	CHECK(!by[0] && !by[1], "a queue that is not spread");
	(void)run(peer, far, SLMPM_WQ_SPREAD, SLMPM_ON_LINK(1), by);
	CHECK(!by[0] && !by[1], "requests that ask for a link");
	actor_tell(peer, READY);
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", role_reader}, {NULL, NULL}};
	static char direct[] = "directly";

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_FABRIC", "tcp");
	settings_set("SLMPM_LINKS", "tcp,tcp");
	settings_run("two links over TCP", spread, NULL);
	settings_set("SLMPM_LINKS", "tcp,shm");
	settings_run("one over TCP, one over shared memory", spread, NULL);
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,shm");
	settings_run("two links over shared memory", spread, direct);
	return 0;
}
