/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * A managed receive queue of any peer, and four processes that send to it: as many messages are
 * taken as entries are enabled, each sender's in its order, and all others are refused; what is
 * reserved for one that dies, stops or thinks better of it is not lost.
 */
#include <signal.h>
#include <slmpm_queue.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define SENDERS 4
#define STREAM  9
#define ORDERS  1
#define ANSWERS 2
#define OVER    3
#define ENTRIES 600

enum order { SEND, LONG, POST, DONE, TRY, HOLD, LEAVE, RACE };

struct word {
	uint64_t order, value;
};

static slmpm_cq cq;

/* ---- a sender -------------------------------------------------------------------------------- */

static slmpm_peer host;
static slmpm_wq wq;

/* One that is claimed, and taken back before the answer has come. */
static int64_t claim_in_vain(uint64_t value)
{
	const struct slmpm_iov piece = {&value, sizeof(value)};
	slmpm_req req;

	OK(slmpm_sendv(host, STREAM, &piece, 1, NULL, &req));
	OK(slmpm_cancel(req));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	return 0;
}

static int64_t post_one(uint64_t value, uint64_t *place)
{
	const struct slmpm_iov piece = {place, sizeof(*place)};
	const struct slmpm_wr wr = {.size = sizeof(wr),
				    .op = SLMPM_OP_SEND,
				    .peer = host,
				    .stream = STREAM,
				    .iov = &piece,
				    .iov_count = 1,
				    .timeout_ms = -1};

	*place = value;
	return slmpm_post(wq, &wr, 1);
}

static size_t long_size(slmpm_peer peer)
{
	return message_eager(peer) + 1000;
}

/* More than what comes unasked. */
static int64_t send_long(uint64_t value)
{
	size_t n = long_size(host);
	uint64_t *data = calloc(1, n);
	int rc;

	CHECK(data, "out of memory");
	data[0] = value;
	rc = slmpm_send(host, STREAM, data, n, PATIENCE);
	free(data);
	return rc;
}

/* Numbers, each until it is taken, in each way of sending; how many were. */
static int64_t race(uint64_t who)
{
	struct slmpm_done done;
	uint64_t value = who << 32;
	unsigned times = 0;
	int rc;

	while (slmpm_recv(host, OVER, NULL, 0, NULL, 0) < 0) {
		const struct slmpm_iov piece = {&value, sizeof(value)};
		slmpm_req req;

		switch (value % 4) {
		case 0: rc = slmpm_send(host, STREAM, &value, sizeof(value), PATIENCE); break;
		case 1:
			OK(slmpm_sendv(host, STREAM, &piece, 1, NULL, &req));
			EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
			rc = done.status;
			break;
		case 2: rc = (int)send_long(value); break;
		default: /* without patience: until it has gone, or ... */
			rc = slmpm_send(host, STREAM, &value, sizeof(value), 0);
			rc = rc == -SLMPM_EAGAIN ? -SLMPM_EDISABLED : rc;
		}
		CHECK(rc == 0 || rc == -SLMPM_EDISABLED, "%d: %s", rc, slmpm_error_detail());
		value += rc == 0;
		if (rc)
			actor_idle((slmpm_ctx){0}, &times);
		else
			times = 0;
	}
	return (int64_t)(value - (who << 32));
}

static int64_t obey(struct word w, uint64_t *place)
{
	struct slmpm_done done;

	switch (w.order) {
	case SEND: return slmpm_send(host, STREAM, &w.value, sizeof(w.value), PATIENCE);
	case LONG: return send_long(w.value);
	case POST: return post_one(w.value, place);
	case DONE: EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1); return done.status;
	case TRY: return slmpm_send(host, STREAM, &w.value, sizeof(w.value), 0);
	case HOLD: return claim_in_vain(w.value);
	default: return race(w.value);
	}
}

static int sender(slmpm_peer parent, char **words)
{
	static uint64_t values[16];
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct word w;

	(void)words;
	host = parent;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	o.cq = cq;
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	for (uint64_t i = 0;; i++) {
		int64_t answer;

		EXPECT(slmpm_recv(host, ORDERS, &w, sizeof(w), NULL, -1), sizeof(w));
		if (w.order == LEAVE)
			return 0;
		answer = obey(w, &values[i % 16]);
		OK(slmpm_send(host, ANSWERS, &answer, sizeof(answer), PATIENCE));
		if (w.order == HOLD && w.value) /* reads no more of what comes */
			pause();
	}
}

/* ---- the owner ------------------------------------------------------------------------------- */

static slmpm_peer senders[SENDERS];
static slmpm_wq receives;
static unsigned char *places;
static size_t room; /* of each */
static uint64_t posted;

static void order(int who, enum order what, uint64_t value)
{
	const struct word w = {what, value};

	OK(slmpm_send(senders[who], ORDERS, &w, sizeof(w), PATIENCE));
}

static int64_t answer_of(int who)
{
	int64_t answer;

	EXPECT(slmpm_recv(senders[who], ANSWERS, &answer, sizeof(answer), NULL, PATIENCE),
	       sizeof(answer));
	return answer;
}

static int64_t obeyed(int who, enum order what, uint64_t value)
{
	order(who, what, value);
	return answer_of(who);
}

static void post_receives(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, posted++) {
		void *place = places + posted % ENTRIES * room;
		const struct slmpm_iov piece = {place, room};
		const struct slmpm_wr wr = {.size = sizeof(wr),
					    .op = SLMPM_OP_RECV,
					    .iov = &piece,
					    .iov_count = 1,
					    .cookie = posted % ENTRIES};

		EXPECT(slmpm_post(receives, &wr, 1), 1);
	}
}

static void enable(uint64_t index)
{
	OK(slmpm_wq_enable(receives, index));
}

/* What the next entry has, and its sender. */
static uint64_t next_value(slmpm_peer *from)
{
	struct slmpm_done done;
	uint64_t value;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	EXPECT(done.status, 0);
	memcpy(&value, places + done.cookie * room, sizeof(value));
	*from = done.peer;
	return value;
}

/* That is WHO's VALUE. */
static void expect(int who, uint64_t value)
{
	slmpm_peer from;

	EXPECT(next_value(&from), value);
	CHECK(from.id == senders[who].id, "it is another's");
}

static void nothing_comes(void)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, 30), -SLMPM_ETIMEOUT);
}

static void begin(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .depth = ENTRIES,
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
				     .stream = STREAM};

	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	o.cq = cq;
	o.peer = slmpm_any((slmpm_ctx){0});
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = actor_spawn("sends", NULL, NULL);
		if (i == SENDERS / 2) /* the others come later */
			OK(slmpm_wq_create((slmpm_ctx){0}, &o, &receives));
	}
	for (int i = 0; i < SENDERS; i++) /* each knows of the queue */
		(void)obeyed(i, HOLD, 0);
	room = long_size(senders[0]);
	places = calloc(ENTRIES, room);
	CHECK(places, "out of memory");
}

static void refused(void)
{
	int64_t answer;

	post_receives(8);
	for (int i = 0; i < SENDERS; i++) {
		EXPECT(obeyed(i, SEND, 1), -SLMPM_EDISABLED);
		EXPECT(obeyed(i, LONG, 1), -SLMPM_EDISABLED);
	}
	nothing_comes();
	enable(2);
	EXPECT(obeyed(1, SEND, 11), 0);
	EXPECT(obeyed(2, LONG, 12), 0);
	expect(1, 11);
	expect(2, 12);
	for (int i = 0; i < SENDERS; i++)
		EXPECT(obeyed(i, SEND, 1), -SLMPM_EDISABLED);
	/* Without patience: the owner's answer comes behind the call, as a rule. */
	answer = obeyed(0, TRY, 1);
	CHECK(answer == -SLMPM_EAGAIN || answer == -SLMPM_EDISABLED, "%lld", (long long)answer);
	enable(3);
	while (obeyed(0, TRY, 13))
		;
	expect(0, 13);
}

/* They go in the order in which they claimed, one for each entry that is enabled. */
static void wait_for_theirs(void)
{
	for (int i = 0; i < 3; i++) {
		EXPECT(obeyed(i, POST, 20 + (uint64_t)i), 1);
		nothing_comes();
	}
	EXPECT(obeyed(3, SEND, 1), -SLMPM_EDISABLED); /* cannot wait, and passes none */
	for (int i = 0; i < 3; i++) {
		enable(4 + (uint64_t)i);
		expect(i, 20 + (uint64_t)i);
		nothing_comes();
		EXPECT(obeyed(i, DONE, 0), 0);
	}
}

/* What is reserved and not used goes back; by the end of its peer, too. */
static void given_back(void)
{
	enable(7);
	EXPECT(obeyed(0, HOLD, 0), 0);
	EXPECT(obeyed(1, POST, 30), 1);
	expect(1, 30);
	EXPECT(obeyed(1, DONE, 0), 0);

	enable(8);
	EXPECT(obeyed(3, HOLD, 1), 0); /* has claimed it */
	nothing_comes();
	EXPECT(obeyed(1, SEND, 1), -SLMPM_EDISABLED);
	EXPECT(obeyed(0, POST, 31), 1);
	nothing_comes();
	OK(slmpm_kill(senders[3], SIGKILL));
	expect(0, 31);
	EXPECT(obeyed(0, DONE, 0), 0);
	EXPECT(obeyed(1, SEND, 1), -SLMPM_EDISABLED);
	OK(slmpm_close(senders[3], PATIENCE));
}

/* Who has stopped keeps what is its, and holds up no other. */
static void stopped(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	post_receives(4);
	EXPECT(obeyed(2, POST, 40), 1);
	nothing_comes();
	OK(slmpm_peer_query(senders[2], &info));
	CHECK(kill(info.pid, SIGSTOP) == 0, "it does not stop");
	actor_await_state(info.pid, "T");
	enable(9);
	EXPECT(obeyed(0, SEND, 1), -SLMPM_EDISABLED);
	enable(11);
	EXPECT(obeyed(0, SEND, 41), 0);
	EXPECT(obeyed(1, SEND, 42), 0);
	expect(0, 41);
	expect(1, 42);
	EXPECT(obeyed(1, SEND, 1), -SLMPM_EDISABLED);
	CHECK(kill(info.pid, SIGCONT) == 0, "it does not go on");
	expect(2, 40);
	EXPECT(obeyed(2, DONE, 0), 0);
	enable(12);
	EXPECT(obeyed(2, SEND, 43), 0);
	expect(2, 43);
}

/* All try all the time, while entries are enabled some at a time. */
static void many(void)
{
	uint64_t next[SENDERS] = {0}, base = posted, got = 0;

	post_receives(ENTRIES);
	for (uint64_t i = 0; i < 3; i++)
		order((int)i, RACE, i);
	for (uint64_t on = 0; got < ENTRIES; got++) {
		slmpm_peer from;
		uint64_t value;

		if (got == on) {
			on += 1 + on % 7;
			on = on < ENTRIES ? on : ENTRIES;
			enable(base + on);
		}
		value = next_value(&from);
		CHECK(from.id == senders[value >> 32].id, "it is another's");
		CHECK((uint32_t)value == next[value >> 32], "%u of %llu, not %llu", (uint32_t)value,
		      (unsigned long long)(value >> 32), (unsigned long long)next[value >> 32]);
		next[value >> 32]++;
	}
	for (int i = 0; i < 3; i++) {
		OK(slmpm_send(senders[i], OVER, NULL, 0, PATIENCE));
		EXPECT(answer_of(i), (int64_t)next[i]);
		CHECK(next[i], "%d had none", i);
	}
	nothing_comes();
}

static int everything(void *fabric)
{
	setenv("SLMPM_FABRIC", fabric, 1);
	begin();
	refused();
	wait_for_theirs();
	given_back();
	stopped();
	many();
	for (int i = 0; i < 3; i++) {
		order(i, LEAVE, 0);
		actor_join(senders[i], 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"sends", sender}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		int rc = child_run(everything, fabrics[i], 50);

		CHECK(rc == 0, "SLMPM_FABRIC=%s: %d", fabrics[i], rc);
	}
	return 0;
}
