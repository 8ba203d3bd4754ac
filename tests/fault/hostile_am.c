/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that breaks a rule of active messages: its channel ends with the violation's name, an
 * honest peer works on, and no memory goes to what it only promised. R5, R6, R8 and R10 of
 * doc/reliability.md.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_key.h"

#define EAGER   32768
#define ASK     1
#define ANSWER  2
#define NOBODYS 3
#define OWN     0xff00 /* the first number of the library's */
#define DONE    0xff11
#define CONFIRM 0xff12
#define PREPARE 0xff30 /* of a driven operation; a word of it is the next */
#define ANSWERS "256k"

static unsigned char bytes[64 << 10];
static const char *address;

static void only(struct raw_peer *p, uint16_t id, uint32_t head, uint32_t length)
{
	raw_active(p, WIRE_SEND_ONLY, 0, id, head, length, bytes, length);
}

/* ---- heads, lengths, numbers ---- */

static void head_too_long(struct raw_peer *p)
{
	only(p, ASK, SLMPM_AM_HEAD_MAX + 1, 4000);
}

static void head_longer_than_all(struct raw_peer *p)
{
	only(p, ASK, 9, 8);
}

static void head_of_65535(struct raw_peer *p)
{
	only(p, 0xfffe, 0xffff, 8);
}

static void first_with_long_head(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_FIRST, 0, ASK, 0xfff0, 30000, bytes, RAW_PACKET);
}

static void first_within_another(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_FIRST, 0, ASK, 0, 30000, bytes, RAW_PACKET);
	raw_active(p, WIRE_SEND_FIRST, 0, ASK, 0, 30000, bytes, RAW_PACKET);
}

static void announced_flood(struct raw_peer *p)
{
	for (int i = 0; i < 100; i++)
		raw_active(p, WIRE_SEND_FIRST, WIRE_FLAG_ANNOUNCED, ASK, 0, SLMPM_MESSAGE_MAX,
			   bytes, RAW_PACKET);
}

static void own_in_packets(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_FIRST, 0, OWN, 48, 30000, bytes, RAW_PACKET);
}

static void no_such_number(struct raw_peer *p)
{
	only(p, 0xffff, 0, 8);
}

static void drive_without_head(struct raw_peer *p)
{
	only(p, PREPARE, 0, 80);
}

static void drive_with_data(struct raw_peer *p)
{
	only(p, PREPARE + 1, 136, 144);
}

static void drive_word(struct raw_peer *p, uint32_t word, uint32_t error)
{
	struct {
		uint64_t group, number;
		uint32_t join, rank, word, error, culprit, zero;
		char text[96];
	} w = {.group = UINT64_MAX,
	       .number = LITTLE_64(1),
	       .rank = UINT32_MAX,
	       .word = LITTLE_32(word),
	       .error = LITTLE_32(error)};

	memset(w.text, 'x', sizeof(w.text));
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, PREPARE + 1, sizeof(w), sizeof(w), &w,
		   sizeof(w));
}

/* Of groups that there are not. */
static void drive_words(struct raw_peer *p)
{
	for (uint32_t word = 1; word <= 6; word++)
		drive_word(p, word, 0);
	drive_word(p, 7, 0);
}

static void drive_error(struct raw_peer *p)
{
	drive_word(p, 4, 26);
}

static void rest_elsewhere(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_FIRST, 0, ASK, 0, 30000, bytes, RAW_PACKET);
	raw_post(p, WIRE_SEND_MIDDLE, p->sent, wire_route(ASK, 0), RAW_PACKET + 1, bytes,
		 RAW_PACKET);
}

static void active_and_tagged(struct raw_peer *p)
{
	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_TAGGED, ASK, 0, 8, bytes, 8);
}

static void tagged_in_packets(struct raw_peer *p)
{
	raw_post(p, WIRE_SEND_FIRST, ++p->sent, 0, wire_extent(30000, WIRE_FLAG_TAGGED), bytes,
		 RAW_PACKET);
}

/* Nobody reads the answers over here. */
static void asks_without_end(struct raw_peer *p)
{
	for (uint32_t charged = 0; charged <= 5 << 18; charged += 8 + WIRE_ENVELOPE)
		only(p, ASK, 0, 8);
}

/* Nobody reads here that the rest is wanted; it comes all the same. */
static void rest_unasked(struct raw_peer *p)
{
	const uint64_t total = 5 * RAW_PACKET;

	for (int i = 0; i < 2 * RAW_SEGMENTS; i++) {
		raw_active(p, WIRE_SEND_FIRST, WIRE_FLAG_ANNOUNCED, NOBODYS, 0, total, bytes,
			   RAW_PACKET);
		for (uint64_t at = RAW_PACKET; at < total; at += RAW_PACKET)
			raw_post(p, at + RAW_PACKET < total ? WIRE_SEND_MIDDLE : WIRE_SEND_LAST,
				 p->sent, wire_route(NOBODYS, 0), at, bytes, RAW_PACKET);
	}
}

/* ---- those whose sender is told, and what it is told ---- */

struct confirm {
	uint64_t tag;
	uint16_t id, head_len;
	uint32_t zero;
	unsigned char bytes[RAW_PACKET];
};

static void confirm(struct raw_peer *p, struct confirm c, uint32_t flags, uint32_t head)
{
	c.tag = LITTLE_64(c.tag);
	c.id = LITTLE_16(c.id);
	c.head_len = LITTLE_16(c.head_len);
	raw_active(p, WIRE_SEND_ONLY, flags, CONFIRM, head, 24, &c, 24);
}

static void confirm_nothing(struct raw_peer *p)
{
	confirm(p, (struct confirm){.id = NOBODYS}, 0, 16);
}

static void confirm_own(struct raw_peer *p)
{
	confirm(p, (struct confirm){.tag = 1, .id = OWN}, 0, 16);
}

static void confirm_head_long(struct raw_peer *p)
{
	confirm(p, (struct confirm){.tag = 1, .id = ASK, .head_len = 9}, 0, 16);
}

static void confirm_no_zero(struct raw_peer *p)
{
	confirm(p, (struct confirm){.tag = 1, .id = ASK, .zero = 1}, 0, 16);
}

static void confirm_other_head(struct raw_peer *p)
{
	confirm(p, (struct confirm){.tag = 1, .id = ASK}, 0, 15);
}

static void confirm_free(struct raw_peer *p)
{
	confirm(p, (struct confirm){.tag = 1, .id = ASK}, WIRE_FLAG_UNCHARGED, 16);
}

static void confirm_first_free(struct raw_peer *p)
{
	struct confirm c = {.tag = LITTLE_64(1), .id = LITTLE_16(ASK)};

	raw_active(p, WIRE_SEND_FIRST, WIRE_FLAG_UNCHARGED, CONFIRM, 16, 20000, &c, RAW_PACKET);
}

/* Of a handler that is not there: what is wrong with the head is found all the same. */
static void confirm_long(struct raw_peer *p)
{
	struct confirm c = {.tag = 0, .id = LITTLE_16(NOBODYS)};

	raw_active(p, WIRE_SEND_FIRST, 0, CONFIRM, 16, RAW_PACKET + 8, &c, RAW_PACKET);
	raw_post(p, WIRE_SEND_LAST, p->sent, wire_route(CONFIRM | 16u << 16, 0), RAW_PACKET, &c, 8);
}

static void answer(struct raw_peer *p, uint64_t tag, uint32_t error, uint32_t length)
{
	const uint64_t words[3] = {LITTLE_64(tag), LITTLE_64((uint64_t)error)};

	raw_active(p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, DONE, 16, length, words, length);
}

/* The victim has sent one of tag 1, which is here, and a long one of tag 2, of which the rest
 * waits. */
static void answer_twice(struct raw_peer *p)
{
	raw_await_packet(p);
	answer(p, 1, 0, 16);
	answer(p, 1, 0, 16);
}

static void answer_early(struct raw_peer *p)
{
	raw_await_packet(p);
	answer(p, 2, 0, 16);
}

static void answer_next(struct raw_peer *p)
{
	raw_await_packet(p);
	answer(p, 3, 0, 16);
}

static void answer_long(struct raw_peer *p)
{
	raw_await_packet(p);
	answer(p, 1, 0, 24);
}

static void answer_no_error(struct raw_peer *p)
{
	raw_await_packet(p);
	answer(p, 1, WIRE_ERROR_LAST + 1, 16);
}

#define WAITS 1 /* the victim has sent such */

static const struct offence offences[] = {
	{"R5", "a head too long", head_too_long, "head of an active message", 0},
	{"R5", "a head longer than all", head_longer_than_all, "head of an active message", 0},
	{"R5", "a head of 65535", head_of_65535, "head of an active message", 0},
	{"R5", "First with a head too long", first_with_long_head, "head of an active message", 0},
	{"R5", "active and tagged", active_and_tagged, "head of an active message", 0},
	{"R8", "First within another", first_within_another, "within another", 0},
	{"R8", "announced without end", announced_flood, "within another", 0},
	{"R8", "the library's number, long", own_in_packets, "within another", 0},
	{"R8", "the rest elsewhere", rest_elsewhere, "continuation", 0},
	{"R8", "no such number", no_such_number, "number of a handler", 0},
	{"R5", "driven without a head", drive_without_head, "length of a driven", 0},
	{"R5", "driven with data", drive_with_data, "length of a driven", 0},
	{"R8", "words of what is not driven", drive_words, "word of a driven", 0},
	{"R8", "driven, no such error", drive_error, "word of a driven", 0},
	{"R5", "First, tagged", tagged_in_packets, "length of First", 0},
	{"R10", "asks without end", asks_without_end, "credit overrun", 0},
	{"R8", "the rest, unasked", rest_unasked, "nobody has asked for", 0},
	{"R5", "confirmed, without tag", confirm_nothing, "head of an active message", 0},
	{"R5", "confirmed, the library's number", confirm_own, "head of an active message", 0},
	{"R5", "confirmed, a head too long", confirm_head_long, "head of an active message", 0},
	{"R5", "confirmed, no zero", confirm_no_zero, "head of an active message", 0},
	{"R5", "confirmed, another head", confirm_other_head, "head of an active message", 0},
	{"R6", "confirmed, free of charge", confirm_free, "credit of a FIFO entry", 0},
	{"R8", "confirmed, First, free of charge", confirm_first_free, "within another", 0},
	{"R5", "confirmed, long, without tag", confirm_long, "head of an active message", 0},
	{"R8", "answered twice", answer_twice, "answer to no request", WAITS},
	{"R8", "answered before it is out", answer_early, "answer to no request", WAITS},
	{"R8", "answered and never asked", answer_next, "answer to no request", WAITS},
	{"R5", "a long answer", answer_long, "length of an answer", WAITS},
	{"R5", "an answer that is no error", answer_no_error, "answer to no request", WAITS},
};

/* ---- both processes ---- */

static slmpm_mem mem;
static uint64_t asked, limited;

/* Asked by whom it may be: answers more than it got. */
static void ask(const struct slmpm_am *am, void *arg)
{
	int rc = slmpm_am_reply(am, ANSWER, NULL, 0, bytes, 1000);

	(void)arg;
	asked++;
	limited += rc == -SLMPM_ELIMIT;
	CHECK(rc == 0 || rc == -SLMPM_ELIMIT, "%s", slmpm_error_detail());
}

/* kB of memory that this process could touch. */
static long size_now(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(f && fscanf(f, "%ld", &pages) == 1, "statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long before; /* that offence */
static slmpm_req waiting[2];

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);

	if (o->note == WAITS) {
		OK(slmpm_am(peer, ASK, NULL, 0, bytes, 8, &how, &waiting[0]));
		OK(slmpm_am(peer, ASK, NULL, 0, bytes, sizeof(bytes), &how, &waiting[1]));
	}
	before = size_now();
	raw_keys->ready = 1;
	return peer;
}

static int64_t inspect(slmpm_peer peer, const struct offence *o)
{
	unsigned char got[64];
	int64_t n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5);

	CHECK(actor_slow() > 1 || size_now() < before + 65536, "%s: it took %ld kB", o->name,
	      size_now() - before);
	return n;
}

/* What waited for an answer has ended, and only the first may have had one. */
static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_done done;

	(void)peer;
	for (int i = 0; o->note == WAITS && i < 2; i++) {
		EXPECT(slmpm_wait(&waiting[i], 1, &done, PATIENCE), 0);
		CHECK(done.status == -SLMPM_EPROTO || (i == 0 && !done.status), "%s: %d of %d",
		      o->name, done.status, i);
	}
}

/* ---- legal, but annoying ---- */

/* Promises 8 GiB and sends a packet of it; asks as if it answered, and takes no answer. */
static int annoy(void *arg)
{
	struct raw_peer p;

	(void)arg;
	raw_keys_come(&p, address);
	for (int i = 0; i < 20000; i++)
		raw_active(&p, WIRE_SEND_ONLY, WIRE_FLAG_UNCHARGED, ASK, 0, 8, bytes, 8);
	raw_active(&p, WIRE_SEND_FIRST, WIRE_FLAG_ANNOUNCED | WIRE_FLAG_UNCHARGED, ASK, 0,
		   SLMPM_MESSAGE_MAX, bytes, RAW_PACKET);
	only(&p, 4711, 0, 8);
	raw_send(&p, 2, "over", 4);
	raw_push(&p);
	raw_end(&p);
	return 0;
}

static void annoyed(slmpm_listener listener, slmpm_peer honest)
{
	int64_t until = actor_now_ms() + 10000 * actor_slow();
	long size = size_now();
	struct slmpm_stats stats;
	unsigned char got[8];
	slmpm_peer peer;
	int64_t n;
	pid_t pid;

	asked = limited = 0;
	peer = raw_keys_meet(listener, mem, annoy, NULL, &pid);
	raw_keys->ready = 1;
	while ((n = slmpm_recv(peer, 2, got, sizeof(got), NULL, 5)) == -SLMPM_ETIMEOUT) {
		CHECK(actor_now_ms() < until, "annoyance has no end");
		CHECK(actor_slow() > 1 || size_now() < size + 65536, "it took %ld kB",
		      size_now() - size);
		honest_works(honest);
	}
	CHECK(n == 4, "%lld (%s)", (long long)n, slmpm_error_detail());
	CHECK(asked == 20000 && limited, "%llu asked, %llu beyond the limit",
	      (unsigned long long)asked, (unsigned long long)limited);
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.am_unhandled == 1 && !stats.violations, "%llu unhandled",
	      (unsigned long long)stats.am_unhandled);
	CHECK(child_wait(pid) == 0, "see above");
	OK(slmpm_close(peer, PATIENCE));
	honest_works(honest);
}

/* ---- behind a violation ---- */

static int break_and_call(void *arg)
{
	struct raw_peer p;
	char reason[112];

	raw_begin(&p, raw_connect(arg));
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	raw_await_packet(&p);
	CHECK(ring_reserve(&p.w, 8), "no room");
	ring_commit(&p.w, 8, WIRE_SEND_ONLY); /* not even a head */
	only(&p, ASK, 0, 8);
	CHECK(raise(SIGSTOP) == 0, "it does not stop");
	raw_hear_end(p.fd, reason);
	CHECK(strstr(reason, "packet length"), "\"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* No handler runs for a peer whose channel has ended; where one call looks several times, too. */
static void unheard(void)
{
	slmpm_listener listener;
	slmpm_peer peer;
	char url[80];
	slmpm_ctx ctx;
	pid_t pid;

	snprintf(url, sizeof(url), "shm:hostile-am-alone-%d", (int)getpid());
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_am_handler(ctx, ASK, ask, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	pid = child_start(break_and_call, url + 4, 20);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	asked = 0;
	OK(slmpm_send(peer, 1, "go", 2, PATIENCE));
	actor_await_state((int)pid, "T");
	CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
	REFUSED(slmpm_recv(peer, 1, bytes, 1, NULL, PATIENCE), SLMPM_EPROTO, "packet length");
	EXPECT(asked, 0);
	CHECK(kill(pid, SIGCONT) == 0, "it has gone");
	CHECK(child_wait(pid) == 0, "see above");
	OK(slmpm_shut(ctx, PATIENCE));
}

int main(void)
{
	static const struct trial trial = {
		.come = raw_keys_come, .meet = meet, .inspect = inspect, .see = see};
	struct victim v;

	setenv("SLMPM_AM_ANSWERS", ANSWERS, 1);
	raw_keys_make();
	victim_begin(&v, "hostile-am");
	address = v.address;
	OK(slmpm_am_handler(v.ctx, ASK, ask, NULL));
	OK(slmpm_mem_register(v.ctx, bytes, sizeof(bytes), SLMPM_READ_WRITE, &mem));
	SURVIVE(&v, &trial, offences);
	annoyed(v.listener, v.honest);
	victim_end(&v);
	unheard();
	return 0;
}
