/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Work queues: what begins when and ends in order, whoever posts it; by each way that one-sided
 * operations can go.
 */
#include <pthread.h>

#include "tests/api/workqueue.h"

#define MANY 200

/* ---- order ---------------------------------------------------------------------------------- */

/* The message behind a put finds it there; the put behind a message does not come before it. */
static void put_and_tell(void)
{
	begin(0, 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		struct slmpm_iov value = {&here[i], 8}, word = {&here[i], 8};

		here[i] = i;
		post(one_sided(SLMPM_OP_PUT, 0, &value, 2 * i));
		post(message(1, &word, 2 * i + 1));
		if (i % 3 == 0)
			settle();
		if (i % 20)
			continue;
		for (uint64_t k = i - 19; k <= i; k++) {
			uint64_t notified;

			EXPECT(slmpm_recv(b, 1, &notified, 8, NULL, PATIENCE), 8);
			CHECK(notified == k && there[0] >= k, "told %llu, there %llu",
			      (unsigned long long)notified, (unsigned long long)there[0]);
		}
	}
	for (uint64_t i = 1; i <= MANY; i++) {
		next(2 * i, SLMPM_OP_PUT, 0);
		CHECK(next(2 * i + 1, SLMPM_OP_SEND, 0).len == 8, "length");
	}
	empty();
	OK(slmpm_wq_destroy(wq));
	end();
}

static unsigned handled;

static void count(const struct slmpm_am *am, void *arg)
{
	unsigned number;

	(void)arg;
	CHECK(am->head_len == sizeof(number) && am->data_len == 8, "%zu and %zu bytes",
	      am->head_len, am->data_len);
	memcpy(&number, am->head, sizeof(number));
	CHECK(number == handled && !memcmp(am->data, "message", 8), "number %u behind %u", number,
	      handled);
	handled++;
}

static void await_handled(unsigned n)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (handled < n) {
		CHECK(actor_now_ms() < until, "%u of %u handled", handled, n);
		(void)slmpm_progress(ctx);
	}
	settle();
	CHECK(handled == n, "%u handled", handled);
}

/* Everything at once: the ends come as posted, each operation sees those before it. */
static void mixed(void)
{
	static uint64_t got[MANY], old[MANY];
	struct slmpm_iov text = {"message", 8};

	begin(MANY, 0);
	OK(slmpm_am_handler(ctx, 7, count, NULL));
	handled = 0;
	for (unsigned i = 0; i < MANY; i++) {
		struct slmpm_iov value = {&here[i], 8}, result = {&got[i], 8};
		unsigned head = i / 5;
		struct slmpm_wr am = {
			.size = sizeof(am), .op = SLMPM_OP_AM, .peer = a, .stream = 7, .cookie = i};

		here[i] = 1000 + i;
		am.head = &head;
		am.head_len = sizeof(head);
		am.iov = &text;
		am.iov_count = 1;
		switch (i % 5) {
		case 0: post(one_sided(SLMPM_OP_PUT, 3, &value, i)); break;
		case 1: post(one_sided(SLMPM_OP_GET, 3, &result, i)); break;
		case 2: post(add(4, 1, &old[i], i)); break;
		case 3: post(message(5, &text, i)); break;
		default: post(am); break;
		}
	}
	for (unsigned i = 0; i < MANY; i++) {
		static const uint32_t ops[] = {SLMPM_OP_PUT, SLMPM_OP_GET, SLMPM_OP_ATOMIC,
					       SLMPM_OP_SEND, SLMPM_OP_AM};

		next(i, ops[i % 5], 0);
		CHECK(i % 5 != 1 || got[i] == here[i - 1], "get %u: %llu", i,
		      (unsigned long long)got[i]);
		CHECK(i % 5 != 2 || old[i] == i / 5, "atomic %u: %llu", i,
		      (unsigned long long)old[i]);
	}
	for (unsigned i = 0; i < MANY / 5; i++)
		EXPECT(slmpm_recv(b, 5, here, 8, NULL, PATIENCE), 8);
	await_handled(MANY / 5);
	empty();
	end();
}

/* A long message waits for its receive, and the put behind it for the message; what waits was
 * copied. Blocking calls to the peer go on meanwhile. */
static void behind_a_long_one(void)
{
	size_t n;
	unsigned char *out, *in;
	struct slmpm_iov whole, value = {here, 8}, pieces[2] = {{"mess", 4}, {"age", 4}};
	struct slmpm_wr am = {.size = sizeof(am), .op = SLMPM_OP_AM, .stream = 7, .cookie = 4};
	unsigned head = 0;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = malloc(n);
	in = malloc(n);
	CHECK(out && in, "out of memory");
	actor_fill(out, 9, n);
	OK(slmpm_am_handler(ctx, 7, count, NULL));
	handled = 0;
	there[0] = 1;
	here[0] = 2;
	whole = (struct slmpm_iov){out, n};
	am.peer = a;
	am.head = &head;
	am.head_len = sizeof(head);
	am.iov = pieces;
	am.iov_count = 2;
	post(message(1, &whole, 1));
	post(message(2, &value, 2));
	post(one_sided(SLMPM_OP_PUT, 0, &value, 3));
	post(am);
	memset(pieces, 0, sizeof(pieces));
	head = 77;
	settle();
	EXPECT(slmpm_recv(b, 2, here + 1, 8, NULL, PATIENCE), 8);
	CHECK(there[0] == 1 && !handled, "the put did not wait");
	OK(slmpm_send(a, 3, "beside", 7, PATIENCE));
	EXPECT(slmpm_recv(b, 3, here + 2, 8, NULL, PATIENCE), 7);
	REFUSED(slmpm_cq_destroy(cq), SLMPM_EBUSY, "work queue");
	EXPECT(slmpm_recv(b, 1, in, n, NULL, PATIENCE), (int64_t)n);
	CHECK(actor_filled(in, 9, n), "other bytes");
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_SEND, 0);
	next(3, SLMPM_OP_PUT, 0);
	CHECK(there[0] == 2, "there %llu", (unsigned long long)there[0]);
	next(4, SLMPM_OP_AM, 0);
	await_handled(1);
	free(out);
	free(in);
	end();
}

/* With a fence even what is of one kind waits. */
static void fenced(void)
{
	struct slmpm_iov value = {here, 8}, whole;
	struct slmpm_wr wr;
	unsigned char *out;
	size_t n;

	begin(0, 0);
	n = message_eager(a) * 2;
	out = calloc(1, n);
	CHECK(out, "out of memory");
	whole = (struct slmpm_iov){out, n};
	post(message(1, &whole, 1));
	wr = message(2, &value, 2);
	wr.flags = SLMPM_FENCE;
	post(wr);
	settle();
	message_none(b, 2);
	EXPECT(slmpm_recv(b, 1, out, n, NULL, PATIENCE), (int64_t)n);
	EXPECT(slmpm_recv(b, 2, here, 8, NULL, PATIENCE), 8);
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_SEND, 0);
	free(out);
	end();
}

/* A put is not to overtake a message that is staged for the next. */
static void behind_a_burst(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_stats s;
	struct slmpm_wr wr;
	uint64_t notified;

	begin(0, 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		here[0] = i;
		wr = message(1, &value, 2 * i);
		wr.flags = SLMPM_MORE;
		post(wr);
		post(one_sided(SLMPM_OP_PUT, 0, &value, 2 * i + 1));
		next(2 * i, SLMPM_OP_SEND, 0);
		next(2 * i + 1, SLMPM_OP_PUT, 0);
		OK(slmpm_peer_stats(a, &s, sizeof(s)));
		CHECK(s.sent_messages >= i, "%llu messages have left",
		      (unsigned long long)s.sent_messages);
		EXPECT(slmpm_recv(b, 1, &notified, 8, NULL, 0), 8);
		CHECK(notified == i && there[0] == i, "told %llu", (unsigned long long)notified);
	}
	end();
}

/* From inside a handler, while others begin and end. */
static void post_again(const struct slmpm_am *am, void *arg)
{
	static const struct slmpm_iov text = {"handled", 8};
	unsigned *posted = arg;

	(void)am;
	post(message(6, &text, 1000 + (*posted)++));
}

static void from_a_handler(void)
{
	struct slmpm_iov value = {here, 8};
	unsigned posted = 0;
	uint64_t again = 0, at = 0;

	begin(0, 0);
	OK(slmpm_am_handler(ctx, 7, post_again, &posted));
	for (uint64_t i = 0; i < 50; i++) {
		OK(slmpm_am(b, 7, NULL, 0, NULL, 0, NULL, NULL));
		post(one_sided(i % 2 ? SLMPM_OP_PUT : SLMPM_OP_GET, i, &value, i));
	}
	while (again + at < 100) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.cookie == (done.cookie < 1000 ? at : 1000 + again),
		      "status %d, cookie %llu", done.status, (unsigned long long)done.cookie);
		at += done.cookie < 1000;
		again += done.cookie >= 1000;
	}
	CHECK(at == 50 && again == 50, "%llu and %llu", (unsigned long long)at,
	      (unsigned long long)again);
	for (int i = 0; i < 50; i++)
		EXPECT(slmpm_recv(b, 6, here, 8, NULL, PATIENCE), 8);
	end();
}

/* ---- threads -------------------------------------------------------------------------------- */

#define EACH 300

static void *post_many(void *arg)
{
	uint64_t first = *(uint64_t *)arg;
	struct slmpm_iov value = {&here[first ? 1 : 0], 8};

	for (uint64_t i = 0; i < EACH; i++) {
		struct slmpm_wr wr =
			i % 3 ? one_sided(SLMPM_OP_PUT, first ? 1 : 0, &value, first + i) :
				add(2, 1, NULL, first + i);
		int rc;

		while ((rc = slmpm_post(wq, &wr, 1)) == -SLMPM_EAGAIN)
			sched_yield();
		EXPECT(rc, 1);
	}
	return NULL;
}

/* Two post, one polls: the order of each is kept. */
static void threads(void)
{
	uint64_t first[2] = {0, EACH}, at[2] = {0, EACH};
	pthread_t posters[2];

	begin_in(SLMPM_THREADS, 16, 0);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&posters[i], NULL, post_many, &first[i]), "a thread");
	for (int i = 0; i < 2 * EACH; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && done.cookie == at[done.cookie >= EACH],
		      "status %d, cookie %llu", done.status, (unsigned long long)done.cookie);
		at[done.cookie >= EACH]++;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	OK(slmpm_flush(a, PATIENCE));
	CHECK(there[2] == 2 * EACH / 3, "%llu added", (unsigned long long)there[2]);
	end();
}

static int everything(void *way)
{
	setenv("SLMPM_RMA", way, 1);
	put_and_tell();
	mixed();
	behind_a_long_one();
	fenced();
	behind_a_burst();
	from_a_handler();
	threads();
	return 0;
}

int main(void)
{
	by_each_way(everything);
	return 0;
}
