/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 240 */
/*
 * Counters of peers, in work queues: added to and set, moved by each kind of request once what it
 * does is there; given, refused, taken back, ended. Over both fabrics, by each way that one-sided
 * operations can go.
 */
#include <endian.h>
#include <signal.h>
#include <unistd.h>

#include "tests/api/workqueue.h"
#include "tests/lib/settings.h"

#define MANY 300

static slmpm_ctr counter;
static slmpm_mem word;
static slmpm_rmem rctr;

static void give(void)
{
	struct slmpm_key key;

	OK(slmpm_ctr_create(ctx, &counter));
	OK(slmpm_ctr_mem(counter, &word));
	OK(slmpm_mem_key(word, b, SLMPM_COUNT, &key));
	OK(slmpm_mem_open(a, &key, &rctr));
	settle();
}

static uint64_t now(void)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(counter, &info));
	EXPECT(info.posted, info.done);
	return info.done;
}

static struct slmpm_wr counts(uint64_t value, uint32_t flags, uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_COUNT,
				 .flags = flags,
				 .rctr = rctr,
				 .value = value,
				 .cookie = cookie};
}

static struct slmpm_wr counted(struct slmpm_wr wr)
{
	wr.rctr = rctr;
	return wr;
}

/* ---- what moves it -------------------------------------------------------------------------- */

static void count(void)
{
	begin(0, 0);
	give();
	post(counts(5, SLMPM_RELATIVE, 1));
	next(1, SLMPM_OP_COUNT, 0);
	EXPECT(now(), 5);
	post(counts(1000, 0, 2));
	post(counts(UINT64_MAX, SLMPM_RELATIVE, 3)); /* wraps, as the local one does */
	post(counts(0, SLMPM_RELATIVE | SLMPM_SILENT, 4));
	next(2, SLMPM_OP_COUNT, 0);
	next(3, SLMPM_OP_COUNT, 0);
	OK(slmpm_wq_drain(wq, PATIENCE));
	EXPECT(now(), 999);
	OK(slmpm_ctr_wait(counter, 999, PATIENCE));
	EXPECT(slmpm_ctr_wait(counter, 1000, 0), -SLMPM_EAGAIN);
	empty();
	end();
}

/* By the calls, which block. */
static void atomically(void)
{
	uint64_t old = 0;

	begin(0, 0);
	give();
	OK(slmpm_atomic(rctr, 0, SLMPM_FETCH_ADD, 64, 7, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rctr, 0, SLMPM_COMPARE_SWAP, 64, 9, 6, &old, NULL, NULL));
	CHECK(old == 7 && now() == 7, "%llu", (unsigned long long)old);
	OK(slmpm_atomic(rctr, 0, SLMPM_COMPARE_SWAP, 64, 9, 7, &old, NULL, NULL));
	OK(slmpm_atomic(rctr, 0, SLMPM_SWAP, 64, 11, 0, &old, NULL, NULL));
	CHECK(old == 9 && now() == 11, "%llu", (unsigned long long)old);
	end();
}

static int runs;

static void handle(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
	runs++;
}

static void each_kind(void)
{
	struct slmpm_iov value = {here, 8}, back = {here + 1, 8};
	struct slmpm_wr wr;
	uint64_t got = 0;

	begin(0, 0);
	give();
	here[0] = 77;
	post(counted(message(1, &value, 1)));
	CHECK(next(1, SLMPM_OP_SEND, 0).stream == 1 && now() == 1, "send");
	EXPECT(slmpm_recv(b, 1, &got, 8, NULL, 0), 8);
	post(counted(one_sided(SLMPM_OP_PUT, 5, &value, 2)));
	next(2, SLMPM_OP_PUT, 0);
	CHECK(now() == 2 && there[5] == 77 && got == 77, "put");
	post(counted(one_sided(SLMPM_OP_GET, 5, &back, 3)));
	next(3, SLMPM_OP_GET, 0);
	CHECK(now() == 3 && here[1] == 77, "get");
	post(counted(add(5, 3, &got, 4)));
	next(4, SLMPM_OP_ATOMIC, 0);
	CHECK(now() == 4 && there[5] == 80 && got == 77, "atomic");
	OK(slmpm_am_handler(ctx, 9, handle, NULL));
	wr = counted(message(9, &value, 5));
	wr.op = SLMPM_OP_AM;
	wr.imm = 0;
	post(wr);
	next(5, SLMPM_OP_AM, 0);
	CHECK(now() == 5 && runs == 1, "am");
	/* What ends at once is in its own counter, too. */
	wr = counted(message(1, &value, 6));
	OK(slmpm_ctr_create(ctx, &wr.ctr));
	wr.flags = SLMPM_SILENT;
	post(wr);
	OK(slmpm_ctr_wait(wr.ctr, 1, PATIENCE));
	EXPECT(now(), 6);
	end();
}

/* When it counts, what it counts is there; a long message has been received. */
static void never_before(void)
{
	struct slmpm_iov whole, value = {here, 8};
	struct slmpm_wr wr;
	char *to;

	begin(0, 0);
	give();
	whole = long_one();
	to = calloc(1, whole.len);
	memset(whole.base, 3, whole.len);
	post(counted(message(1, &whole, 1)));
	post(message(2, &value, 2)); /* behind the count */
	settle();
	EXPECT(now(), 0);
	EXPECT(slmpm_recv(b, 2, here, 8, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_recv(b, 1, to, whole.len, NULL, PATIENCE), whole.len);
	EXPECT(slmpm_recv(b, 2, here, 8, NULL, PATIENCE), 8);
	CHECK(now() == 1 && to[whole.len - 1] == 3, "%llu", (unsigned long long)now());
	next(1, SLMPM_OP_SEND, 0);
	next(2, SLMPM_OP_SEND, 0);
	/* Staged ones go in front. */
	for (uint64_t i = 0; i < 20; i++) {
		wr = i == 19 ? counted(message(3, &value, i)) : message(3, &value, i);
		wr.flags = SLMPM_MORE;
		here[0] = i;
		post(wr);
	}
	OK(slmpm_ctr_wait(counter, 2, PATIENCE));
	for (uint64_t i = 0; i < 20; i++)
		EXPECT(slmpm_recv(b, 3, here, 8, NULL, 0), 8);
	free(to);
	free(whole.base);
	end();
}

/* A stream of puts, or of messages of all lengths: as many are there as are counted. */
static void stream(uint32_t op)
{
	static unsigned char from[20000], to[20000];
	uint64_t sent = 0, seen = 0;

	begin(0, SLMPM_WQ_UNACKNOWLEDGED);
	give();
	while (seen < MANY) {
		struct slmpm_iov iov = {from, 8 + sent * 97 % (message_eager(a) - 8)},
				 number = {&here[sent % MANY], 8};
		struct slmpm_wr wr = counted(op == SLMPM_OP_PUT ? one_sided(op, 9, &number, 0) :
								  message(1, &iov, 0));

		here[sent % MANY] = sent + 1;
		iov.len = iov.len < sizeof(from) ? iov.len : sizeof(from);
		wr.flags = SLMPM_SILENT;
		if (sent < MANY && slmpm_post(wq, &wr, 1) == 1)
			sent++;
		(void)slmpm_progress(ctx);
		for (uint64_t n = now(); seen < n; seen++)
			CHECK(op == SLMPM_OP_PUT ? there[9] >= n :
						   slmpm_recv(b, 1, to, sizeof(to), NULL, 0) >= 8,
			      "%llu are counted, %llu are there", (unsigned long long)n,
			      (unsigned long long)(op == SLMPM_OP_PUT ? there[9] : seen));
	}
	OK(slmpm_wq_drain(wq, PATIENCE));
	EXPECT(now(), MANY);
	end();
}

/* In its channel the next is counted behind the one before. */
static void in_order(void)
{
	struct slmpm_iov value = {here, 8};
	uint64_t got;

	begin(MANY, 0);
	give();
	for (uint64_t i = 0; i < MANY; i++)
		post(i % 2 ? counts(i + 1, 0, i) : counted(message(1, &value, i)));
	for (uint64_t i = 0; i < MANY; i++)
		next(i, i % 2 ? SLMPM_OP_COUNT : SLMPM_OP_SEND, 0);
	for (uint64_t i = 0; i < MANY / 2; i++)
		EXPECT(slmpm_recv(b, 1, &got, 8, NULL, PATIENCE), 8);
	EXPECT(now(), MANY);
	end();
}

/* Though several are under way together, where the counts are requests in the ring. */
static void behind_the_count(const char *way)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};
	struct slmpm_iov value = {here, 8};
	bool in_ring = !strcmp(way, "auto") || !strcmp(way, "ring");
	uint64_t got;

	begin(MANY, 0);
	give();
	for (uint64_t i = 0; i < MANY; i++)
		post(counted(message(1, &value, i)));
	OK(slmpm_wq_query(wq, &info));
	CHECK(info.begun >= (in_ring ? 16 : 1), "%llu under way together",
	      (unsigned long long)info.begun);
	for (uint64_t i = 0; i < MANY; i++) {
		EXPECT(slmpm_recv(b, 1, &got, 8, NULL, PATIENCE), 8);
		CHECK(now() >= i, "%llu are there, %llu were counted", (unsigned long long)i,
		      (unsigned long long)now());
	}
	for (uint64_t i = 0; i < MANY; i++)
		next(i, SLMPM_OP_SEND, 0);
	EXPECT(now(), MANY);
	end();
}

/* ---- who waits for it ------------------------------------------------------------------------ */

static void waited_for(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_wr wait = {.size = sizeof(wait),
				.op = SLMPM_OP_WAIT,
				.flags = SLMPM_RELATIVE,
				.channel = 1,
				.value = 1};
	struct slmpm_done done;
	uint64_t got;

	begin(MANY, SLMPM_WQ_KEPT);
	give();
	wait.ctr = counter;
	post(counted(message(1, &value, 1)));
	post(wait);
	for (int i = 0; i < MANY; i++) {
		for (int n = 0; n < 2; n++)
			EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(slmpm_recv(b, 1, &got, 8, NULL, PATIENCE), 8);
		EXPECT(now(), (uint64_t)i + 1);
		OK(slmpm_wq_arm(wq));
	}
	OK(slmpm_wq_drain(wq, PATIENCE));
	end();
}

/* Of a closed program: what peers may move, and no other. */
static void closed(void)
{
	slmpm_wq queues[1];
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_WAIT, .value = 3};

	begin(0, 0);
	queues[0] = wq;
	OK(slmpm_ctr_create(ctx, &counter));
	wr.ctr = counter;
	REFUSED(slmpm_program_post(queues, &wr, 1), SLMPM_EINVAL, "never run");
	OK(slmpm_ctr_destroy(counter));
	give();
	wr.ctr = counter;
	OK(slmpm_program_post(queues, &wr, 1));
	wr = counts(3, SLMPM_RELATIVE, 7);
	wr.channel = 1;
	OK(slmpm_program_post(queues, &wr, 1));
	OK(slmpm_wq_drain(wq, PATIENCE));
	end();
}

static void written(void)
{
	struct slmpm_name names[3] = {
		{.name = "far", .kind = SLMPM_NAME_RMEM},
		{.name = "it", .kind = SLMPM_NAME_PEER},
		{.name = "bytes", .kind = SLMPM_NAME_MEMORY, .base = here, .len = sizeof(here)}};
	static const char text[] = "count rctr=far value=4 relative\n"
				   "send peer=it stream=1 from=bytes+0:8 rctr=far\n";
	char again[256];

	begin(0, SLMPM_WQ_KEPT);
	give();
	names[0].id = rctr.id;
	names[1].id = a.id;
	EXPECT(slmpm_wq_load(wq, text, names, 3, SLMPM_PROGRAM_CLOSED), 2);
	OK(slmpm_wq_drain(wq, PATIENCE));
	EXPECT(now(), 5);
	CHECK(slmpm_wq_dump(&wq, 1, names, 3, 0, again, sizeof(again)) > 0 &&
		      strstr(again, "rctr=far"),
	      "%s", again);
	end();
}

/* ---- given, and refused ---------------------------------------------------------------------- */

static void refusals(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_iov value = {here, 8};
	struct slmpm_key key;
	struct slmpm_wr wr;
	slmpm_peer c, d;
	slmpm_rmem no;
	slmpm_mem again;
	void *base;

	begin(0, 0);
	give();
	OK(slmpm_ctr_mem(counter, &again));
	EXPECT(again.id, word.id);
	REFUSED(slmpm_ctr_mem(counter, NULL), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_ctr_mem((slmpm_ctr){77}, &again), SLMPM_EHANDLE, "counter");
	REFUSED(slmpm_mem_alloc(ctx, 8, SLMPM_COUNT, &again, &base), SLMPM_EINVAL, "access");
	REFUSED(slmpm_mem_key(mem, b, SLMPM_COUNT, &key), SLMPM_EACCES, "access");
	REFUSED(slmpm_mem_key(word, b, SLMPM_READ_WRITE, &key), SLMPM_EACCES, "access");
	REFUSED(slmpm_put(rctr, 0, here, 8, NULL, NULL), SLMPM_EACCES, "a counter");
	REFUSED(slmpm_get(rctr, 0, here, 8, NULL, NULL), SLMPM_EACCES, "a counter");
	REFUSED(slmpm_atomic(rctr, 0, SLMPM_FETCH_ADD, 32, 1, 0, NULL, NULL, NULL), SLMPM_EACCES,
		"64-bit");
	EXPECT(slmpm_atomic(rctr, 8, SLMPM_FETCH_ADD, 64, 1, 0, NULL, NULL, NULL), -SLMPM_EINVAL);
	OK(slmpm_rmem_query(rctr, &info));
	CHECK(info.access == SLMPM_COUNT && info.length == 8 && !info.mapped && !info.address,
	      "access %u", info.access);
	OK(slmpm_mem_query(word, &info));
	EXPECT(info.acceptors, 1);
	/* Who was not given it cannot open it, nor count with the handle of who was. */
	actor_pair(ctx, &c, &d);
	OK(slmpm_mem_key(word, b, SLMPM_COUNT, &key));
	REFUSED(slmpm_mem_open(c, &key, &no), SLMPM_EACCES, "no such key");
	wr = counted(message(1, &value, 1));
	wr.peer = c;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a counter of");
	wr = message(1, &value, 1);
	wr.rctr = far;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "no counter");
	wr.rctr = (slmpm_rmem){77};
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "region");
	wr = counted(receive(1, &value, 1));
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".rctr of a RECV is set");
	wr = counts(1, 0, 1);
	wr.ctr = counter;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "names one counter");
	wr = counts(1, 0, 1);
	wr.op = SLMPM_OP_WAIT;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".rctr of a WAIT is set");
	EXPECT(now(), 0);
	end();
}

/* As far as is known here nothing leaves. */
static void known_to_be_gone(bool destroyed)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_wr wr = {.size = 0};

	begin(0, 0);
	give();
	post(counts(2, SLMPM_RELATIVE, 1));
	next(1, SLMPM_OP_COUNT, 0);
	if (destroyed)
		OK(slmpm_ctr_destroy(counter));
	else
		OK(slmpm_mem_revoke(word, b, 0));
	settle();
	wr = counted(message(1, &value, 2));
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EACCES, "taken its counter back");
	post(counts(1, SLMPM_RELATIVE, 3));
	next(3, SLMPM_OP_COUNT, -SLMPM_EACCES);
	settle();
	EXPECT(slmpm_recv(b, 1, here, 8, NULL, 0), -SLMPM_EAGAIN);
	if (destroyed)
		REFUSED(slmpm_mem_key(word, b, SLMPM_COUNT, &(struct slmpm_key){{0}}),
			SLMPM_EHANDLE, "region");
	else
		EXPECT(now(), 2);
	OK(slmpm_mem_release(rctr));
	wr.channel = 1; /* the other has stopped */
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "region");
	end();
}

static void cancelled(void)
{
	struct slmpm_iov whole;

	begin(0, 0);
	give();
	whole = long_one();
	post(counted(message(1, &whole, 1)));
	settle();
	OK(slmpm_wq_cancel(wq, 1));
	next(1, SLMPM_OP_SEND, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(wq));
	post(counts(1, SLMPM_RELATIVE, 2));
	next(2, SLMPM_OP_COUNT, 0);
	EXPECT(now(), 1);
	free(whole.base);
	end();
}

/* What has not been sent yet is not; the channels' first steps may have been. */
static void cancelled_at_once(void)
{
	enum { CHANNELS = 600 };
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = CHANNELS, .channels = CHANNELS};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	static struct slmpm_wr all[CHANNELS];

	begin(0, 0);
	give();
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	for (uint32_t i = 0; i < CHANNELS; i++) {
		all[i] = counts(1, SLMPM_RELATIVE, i);
		all[i].channel = i;
	}
	EXPECT(slmpm_post(wq, all, CHANNELS), CHANNELS);
	OK(slmpm_wq_cancel(wq, 0));
	OK(slmpm_wq_query(wq, &info));
	CHECK(info.done + info.failed == CHANNELS && info.failed > 100,
	      "%llu are done, %llu have failed", (unsigned long long)info.done,
	      (unsigned long long)info.failed);
	settle();
	CHECK(now() >= info.done && now() < CHANNELS, "%llu are counted",
	      (unsigned long long)now());
	end();
}

/* The message has gone, its count has not: no completion of such a one says a length. */
static void cancelled_between(void)
{
	enum { CHANNELS = 300 };
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = CHANNELS, .channels = CHANNELS};
	struct slmpm_iov value = {here, 8};
	static struct slmpm_wr all[CHANNELS];
	uint64_t told = 0, done = 0;
	struct slmpm_done end_of;

	begin(0, 0);
	give();
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	for (uint32_t i = 0; i < CHANNELS; i++) {
		all[i] = counted(message(1, &value, i));
		all[i].channel = i;
	}
	EXPECT(slmpm_post(wq, all, CHANNELS), CHANNELS);
	for (uint64_t i = CHANNELS; i; i--)
		(void)slmpm_wq_cancel(wq, i);
	for (; told < CHANNELS; told++) {
		EXPECT(slmpm_cq_wait(cq, &end_of, 1, PATIENCE), 1);
		done += end_of.status == 0;
		CHECK(end_of.len == (end_of.status ? 0 : 8), "status %d, length %llu",
		      end_of.status, (unsigned long long)end_of.len);
	}
	CHECK(done < CHANNELS && now() >= done, "%llu done, %llu counted", (unsigned long long)done,
	      (unsigned long long)now());
	end();
}

/* The region alone can end, and be again. */
static void ended_alone(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	slmpm_mem again;

	begin(0, 0);
	give();
	REFUSED(slmpm_mem_destroy(word, 0), SLMPM_EAGAIN, "1 acceptors");
	OK(slmpm_mem_release(rctr));
	actor_settle(a, b);
	OK(slmpm_mem_destroy(word, 0));
	OK(slmpm_ctr_mem(counter, &again));
	OK(slmpm_mem_query(again, &info));
	EXPECT(info.access, SLMPM_COUNT);
	OK(slmpm_ctr_destroy(counter));
	REFUSED(slmpm_mem_destroy(again, 0), SLMPM_EHANDLE, "region");
	end();
}

/* ---- in another process ---------------------------------------------------------------------- */

enum { GO = 1, OVER, TEXT };

/* Gives its counter and then does as it is told: 'd' destroys it, 'k' dies. */
static int role_owner(slmpm_peer host, char **words)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr c;
	slmpm_mem m;
	uint64_t got;

	OK(slmpm_ctr_create((slmpm_ctx){0}, &c));
	OK(slmpm_ctr_mem(c, &m));
	OK(slmpm_mem_share(m, host, SLMPM_COUNT, PATIENCE));
	OK(slmpm_ctr_wait(c, 1, PATIENCE));
	if (words[0][0] == 'k')
		(void)raise(SIGKILL);
	OK(slmpm_ctr_query(c, &info));
	EXPECT(info.done, 1);
	actor_tell(host, GO);
	usleep(50000); /* what follows is not taken in before the end */
	OK(slmpm_ctr_destroy(c));
	EXPECT(slmpm_recv(host, TEXT, &got, 8, NULL, PATIENCE), 8);
	actor_tell(host, OVER);
	EXPECT(slmpm_recv(host, TEXT, &got, 8, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

static void open_and_count(const char *how)
{
	a = actor_spawn("owner", how, NULL);
	ctx = (slmpm_ctx){0};
	OK(slmpm_mem_accept(a, &rctr, PATIENCE));
	OK(slmpm_cq_create(ctx, &cq));
	create(0, 0);
	post(counts(1, SLMPM_RELATIVE, 1));
	next(1, SLMPM_OP_COUNT, 0);
}

/* What was sent before it is known is there, not counted, and fails by name. */
static void destroyed_there(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_wr wr;

	open_and_count("d");
	actor_hear(a, GO);
	wr = counted(message(TEXT, &value, 2));
	wr.flags = SLMPM_SILENT; /* a failure is told all the same, in full */
	post(wr);
	next(2, SLMPM_OP_SEND, -SLMPM_EACCES);
	actor_hear(a, OVER);
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_close(a, PATIENCE));
	actor_join(a, 0);
}

/* Has memory as well, and takes that back before it takes in what follows. */
static int role_refuser(slmpm_peer host, char **words)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	slmpm_ctr c;
	slmpm_mem m, bytes;
	void *base;

	(void)words;
	OK(slmpm_ctr_create((slmpm_ctx){0}, &c));
	OK(slmpm_ctr_mem(c, &m));
	OK(slmpm_mem_share(m, host, SLMPM_COUNT, PATIENCE));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, 64, SLMPM_READ_WRITE, &bytes, &base));
	OK(slmpm_mem_share(bytes, host, SLMPM_READ_WRITE, PATIENCE));
	actor_tell(host, GO);
	usleep(50000);
	OK(slmpm_mem_revoke(bytes, host, PATIENCE));
	actor_tell(host, GO);
	actor_hear(host, OVER);
	OK(slmpm_ctr_query(c, &info));
	EXPECT(info.done, 0);
	return 0;
}

/* A put that its target refuses is not counted, though no answer was asked for. */
static void put_refused_there(void)
{
	bool at_once = !strcmp(getenv("SLMPM_RMA"), "auto"); /* done before it is taken back */
	struct slmpm_iov value = {here, 8};
	struct slmpm_done done;
	struct slmpm_wr wr;

	a = actor_spawn("refuser", NULL, NULL);
	ctx = (slmpm_ctx){0};
	OK(slmpm_mem_accept(a, &rctr, PATIENCE));
	OK(slmpm_mem_accept(a, &far, PATIENCE));
	OK(slmpm_cq_create(ctx, &cq));
	create(0, SLMPM_WQ_UNACKNOWLEDGED);
	actor_hear(a, GO);
	if (at_once)
		actor_hear(a, GO);
	wr = counted(one_sided(SLMPM_OP_PUT, 0, &value, 1));
	if (slmpm_post(wq, &wr, 1) == 1) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		EXPECT(done.status, -SLMPM_EACCES);
	}
	if (!at_once)
		actor_hear(a, GO);
	actor_tell(a, OVER);
	OK(slmpm_wq_destroy(wq));
	actor_join(a, 0);
}

static void dead_there(void)
{
	struct slmpm_iov value = {here, 8};
	struct slmpm_done done;
	int failed = 0;

	open_and_count("k");
	for (uint32_t i = 0; i < 8; i++) {
		struct slmpm_wr wr = i % 2 ? counts(1, 0, i) : counted(message(TEXT, &value, i));

		wr.channel = i;
		failed += slmpm_post(wq, &wr, 1) != 1; /* it is known already */
	}
	for (; failed < 8; failed++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 || done.status == -SLMPM_EDEAD, "status %d", done.status);
	}
	OK(slmpm_wq_destroy(wq));
	(void)slmpm_join(a, NULL, PATIENCE);
}

/* ---- asleep ---------------------------------------------------------------------------------- */

static int ends[2]; /* of a pipe */

static void wake(int signal)
{
	ssize_t n = write(ends[1], "", 1);

	(void)signal, (void)n;
}

/* Each count sends a word back, while the only thread sleeps in read(). */
static int role_asleep(slmpm_peer host, char **words)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = 2 * MANY};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	slmpm_ctr c;
	slmpm_mem m;
	char byte;

	(void)words;
	CHECK(pipe(ends) == 0, "pipe");
	signal(SIGUSR1, wake);
	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	OK(slmpm_ctr_create((slmpm_ctx){0}, &c));
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	for (uint64_t i = 0; i < MANY; i++) {
		struct slmpm_iov value = {&here[i], 8};
		struct slmpm_wr wr[2] = {
			{.op = SLMPM_OP_WAIT, .flags = SLMPM_RELATIVE | SLMPM_SILENT, .value = 1},
			{.op = SLMPM_OP_SEND, .flags = SLMPM_SILENT, .iov = &value, .iov_count = 1},
		};

		here[i] = htole64(i);
		wr[0].size = wr[1].size = sizeof(wr[0]);
		wr[0].ctr = c;
		wr[1].peer = host;
		wr[1].stream = TEXT;
		EXPECT(slmpm_post(wq, wr, 2), 2);
	}
	OK(slmpm_ctr_mem(c, &m));
	OK(slmpm_mem_share(m, host, SLMPM_COUNT, PATIENCE));
	while (read(ends[0], &byte, 1) < 0)
		;
	OK(slmpm_wq_query(wq, &info));
	CHECK(info.done == 2 * (uint64_t)MANY && info.by_engine >= MANY,
	      "%llu are done, %llu begun by the engine", (unsigned long long)info.done,
	      (unsigned long long)info.by_engine);
	return 0;
}

static int asleep(void *fabric)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_iov value = {here, 8};
	uint64_t got;

	settings_set("SLMPM_FABRIC", fabric);
	settings_set("SLMPM_ENGINE", "thread");
	a = actor_spawn("asleep", NULL, NULL);
	OK(slmpm_mem_accept(a, &rctr, PATIENCE));
	OK(slmpm_cq_create(ctx, &cq));
	create(MANY, 0); /* however slow the peer is */
	for (uint64_t i = 0; i < MANY; i++) {
		struct slmpm_wr wr =
			i % 2 ? counts(1, SLMPM_RELATIVE, i) : counted(message(GO, &value, i));

		post(wr);
		if (i % 7)
			continue;
		usleep((useconds_t)(i % 3 * 1000));
	}
	for (uint64_t i = 0; i < MANY; i++) {
		EXPECT(slmpm_recv(a, TEXT, &got, 8, NULL, PATIENCE), 8);
		EXPECT(le64toh(got), i);
		next(i, i % 2 ? SLMPM_OP_COUNT : SLMPM_OP_SEND, 0);
	}
	OK(slmpm_peer_query(a, &info));
	CHECK(kill(info.pid, SIGUSR1) == 0, "kill");
	actor_join(a, 0);
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

static int everything(void *way)
{
	settings_set("SLMPM_RMA", way);
	count();
	atomically();
	each_kind();
	never_before();
	stream(SLMPM_OP_PUT);
	stream(SLMPM_OP_SEND);
	in_order();
	behind_the_count(way);
	waited_for();
	closed();
	written();
	refusals();
	known_to_be_gone(false);
	known_to_be_gone(true);
	cancelled();
	cancelled_at_once();
	cancelled_between();
	ended_alone();
	destroyed_there();
	put_refused_there();
	dead_there();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", role_owner},
					     {"refuser", role_refuser},
					     {"asleep", role_asleep},
					     {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		settings_set("SLMPM_FABRIC", fabrics[i]);
		by_each_way(everything);
		CHECK(child_run(asleep, fabrics[i], 25) == 0, "%s: see above", fabrics[i]);
	}
	return 0;
}
