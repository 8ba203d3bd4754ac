/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * PIPE entries: messages go through few buffers to another peer, in order, as they came; a slow
 * target holds up the source, a dead one of either ends the entry and says which; its cost is its
 * buffers' alone.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define IN     3 /* the streams */
#define OUT    4
#define PIECE  8192
#define PIECES 128 /* 1 MiB */
#define MOST   16  /* buffers */

/* ---- allocations are counted ----------------------------------------------------------------- */

static long allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t n);

void *malloc(size_t n)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

void *realloc(void *at, size_t n)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return __libc_realloc(at, n);
}

#endif

/* ---- what all of them have ------------------------------------------------------------------ */

static slmpm_ctx ctx;
static slmpm_peer source, up, down, target; /* source to up: the pipe: down to target */
static slmpm_cq cq;
static slmpm_wq wq;
static unsigned char *memory; /* of the buffers */
static struct slmpm_iov buffers[MOST];

static void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static void create(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};

	OK(slmpm_wq_create(ctx, &o, &wq));
}

static void begin(uint32_t flags)
{
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &source, &up);
	actor_pair(ctx, &down, &target);
	OK(slmpm_cq_create(ctx, &cq));
	create(flags);
}

static void end(void)
{
	OK(slmpm_wq_reset(wq));
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_shut(ctx, PATIENCE));
	free(memory);
	memory = NULL;
}

static struct slmpm_wr piping(int count, size_t room, uint64_t messages)
{
	free(memory);
	memory = malloc((size_t)count * room);
	CHECK(memory && count <= MOST, "buffers");
	for (int i = 0; i < count; i++)
		buffers[i] = (struct slmpm_iov){memory + (size_t)i * room, room};
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_PIPE,
				 .peer = down,
				 .stream = OUT,
				 .cookie = 9,
				 .iov = buffers,
				 .iov_count = count,
				 .value = messages,
				 .from = up,
				 .from_stream = IN};
}

static void post(struct slmpm_wr wr)
{
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static struct slmpm_done ended(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status, "cookie %llu, %d instead of %d",
	      (unsigned long long)done.cookie, done.status, status);
	return done;
}

static void piped(int status, uint64_t messages, slmpm_peer who)
{
	struct slmpm_done done = ended(9, status);

	CHECK(done.op == SLMPM_OP_PIPE && done.len == messages && done.peer.id == who.id &&
		      done.stream == OUT,
	      "op %u, %llu messages, stream %u, peer %llx", done.op, (unsigned long long)done.len,
	      done.stream, (unsigned long long)done.peer.id);
}

static void nothing_ended(void)
{
	struct slmpm_done done;

	settle();
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

static struct slmpm_wq_info look(void)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(wq, &info));
	return info;
}

/* Messages from the source, to be taken at the target. */
struct flow {
	struct message *all;
	size_t *sizes;
	int n;
};

static struct flow flow_start(int n, size_t (*size)(int i, void *arg), void *arg)
{
	struct flow f = {calloc((size_t)n, sizeof(*f.all)), calloc((size_t)n, sizeof(*f.sizes)), n};

	CHECK(f.all && f.sizes, "out of memory");
	for (int i = 0; i < n; i++) {
		f.sizes[i] = size(i, arg);
		message_start(&f.all[i], source, IN, (uint64_t)i * 1000, f.sizes[i]);
	}
	return f;
}

static void flow_end(struct flow *f)
{
	for (int i = 0; i < f->n; i++)
		(void)message_take(target, OUT, (uint64_t)i * 1000, f->sizes[i]);
	for (int i = 0; i < f->n; i++)
		message_end(&f->all[i], 0);
	free(f->all);
	free(f->sizes);
}

static size_t same(int i, void *arg)
{
	(void)i;
	return *(size_t *)arg;
}

static size_t any_up_to_a_piece(int i, void *rng)
{
	return i % 9 ? rng_below(rng, PIECE + 1) : i % 2 ? PIECE : 0;
}

/* Some come only when they are asked for, and end behind those sent later. */
static size_t long_and_short(int i, void *arg)
{
	return i % 3 ? 100 + (size_t)i : *(size_t *)arg - (size_t)i;
}

/* ---- what goes through ----------------------------------------------------------------------- */

/* Posted before anything has come; and when all is there already. */
static void goes_through(int count, size_t room, int n, size_t (*size)(int i, void *arg), void *arg)
{
	for (int late = 0; late < 2; late++) {
		struct flow f;

		begin(0);
		if (!late)
			post(piping(count, room, (uint64_t)n));
		f = flow_start(n, size, arg);
		if (late) {
			settle();
			post(piping(count, room, (uint64_t)n));
		}
		flow_end(&f);
		piped(0, (uint64_t)n, down);
		nothing_ended();
		CHECK(look().done == 1 && look().posted == 1 && look().begun == 1, "totals");
		end();
	}
}

static void through(void)
{
	struct rng rng = {rng_run_seed(18)};
	size_t piece = PIECE, most;

	goes_through(4, PIECE, PIECES, same, &piece);
	goes_through(1, PIECE, PIECES, same, &piece);
	goes_through(5, PIECE, 300, any_up_to_a_piece, &rng);
	begin(0);
	most = message_eager(source) * 2;
	end();
	goes_through(3, most, 12, long_and_short, &most);
	goes_through(1, most, 6, long_and_short, &most);
}

/* Once more, from whatever peer, silently, each run counted. */
static void again(void)
{
	struct slmpm_wr wr;
	slmpm_ctr runs;
	size_t piece = 1000;

	begin(SLMPM_WQ_KEPT);
	OK(slmpm_ctr_create(ctx, &runs));
	wr = piping(2, PIECE, 20);
	wr.from = slmpm_any(ctx);
	wr.flags = SLMPM_SILENT;
	wr.ctr = runs;
	post(wr);
	for (int run = 0; run < 3; run++) {
		struct flow f;

		if (run)
			OK(slmpm_wq_arm(wq));
		f = flow_start(20, same, &piece);
		flow_end(&f);
		OK(slmpm_ctr_wait(runs, (uint64_t)run + 1, PATIENCE));
	}
	nothing_ended();
	end();
}

static struct slmpm_wr receiving(struct slmpm_iov *room, uint64_t cookie)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_RECV,
				 .peer = up,
				 .stream = IN,
				 .cookie = cookie,
				 .iov = room,
				 .iov_count = 1};
}

/* It begins behind all others of its channel, and those behind it, receives too, wait. */
static void in_its_turn(void)
{
	unsigned char data[PIECE];
	struct slmpm_iov room = {data, sizeof(data)};
	struct slmpm_wr wait = {.size = sizeof(wait),
				.op = SLMPM_OP_WAIT,
				.value = 1,
				.timeout_ms = 1,
				.cookie = 11},
			first = wait;
	slmpm_ctr never, go;

	begin(0);
	OK(slmpm_ctr_create(ctx, &never));
	OK(slmpm_ctr_create(ctx, &go));
	post(piping(2, PIECE, 3));
	first.ctr = go;
	first.timeout_ms = 0;
	first.flags = SLMPM_SILENT;
	post(first);
	post(receiving(&room, 10));
	wait.ctr = never;
	post(wait);
	for (uint64_t i = 0; i < 2; i++) {
		message_send(source, IN, i, 100, 0);
		(void)message_take(target, OUT, i, 100);
	}
	usleep(5000);
	nothing_ended();
	CHECK(look().begun == 1, "%llu have begun", (unsigned long long)look().begun);
	message_send(source, IN, 2, 100, 0);
	message_send(source, IN, 3, 100, 0);
	(void)message_take(target, OUT, 2, 100);
	piped(0, 3, down);
	CHECK(look().begun == 2 && look().waiting == 1, "the WAIT behind it has begun");
	first.op = SLMPM_OP_COUNT;
	first.channel = 1;
	post(first);
	(void)ended(10, 0);
	CHECK(actor_filled(data, 3, 100), "the receive behind it");
	(void)ended(11, -SLMPM_ETIMEOUT);
	message_none(target, OUT);
	end();
}

/* ---- the same as a program ------------------------------------------------------------------- */

static struct slmpm_wr step(uint32_t op, uint32_t channel)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = op,
				 .channel = channel,
				 .flags = SLMPM_SILENT};
}

static void enable(slmpm_wq which, uint32_t channel)
{
	struct slmpm_wr wr = step(SLMPM_OP_ENABLE, channel);

	wr.flags |= SLMPM_RELATIVE;
	wr.value = 1;
	wr.wq = which;
	post(wr);
}

static void wait_for(slmpm_ctr ctr, uint32_t channel)
{
	struct slmpm_wr wr = step(SLMPM_OP_WAIT, channel);

	wr.flags |= SLMPM_RELATIVE;
	wr.value = 1;
	wr.ctr = ctr;
	post(wr);
}

/* Receives and sends wait to be enabled: a send by its message, a receive by the send before it out
 * of the same buffer. */
static void program(int count, int n)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_MANAGED, .depth = (uint32_t)n, .cq = cq};
	struct slmpm_wr wr = piping(count, PIECE, 1);
	slmpm_ctr came, gone;
	slmpm_wq receives, sends;

	OK(slmpm_ctr_create(ctx, &came));
	OK(slmpm_ctr_create(ctx, &gone));
	OK(slmpm_wq_create(ctx, &o, &receives));
	OK(slmpm_wq_create(ctx, &o, &sends));
	for (int i = 0; i < n; i++) {
		wr = step(SLMPM_OP_RECV, 0);
		wr.peer = up;
		wr.stream = IN;
		wr.iov = &buffers[i % count];
		wr.iov_count = 1;
		wr.ctr = came;
		EXPECT(slmpm_post(receives, &wr, 1), 1);
		wr.op = SLMPM_OP_SEND;
		wr.peer = down;
		wr.stream = OUT;
		wr.ctr = gone;
		EXPECT(slmpm_post(sends, &wr, 1), 1);
		wait_for(came, 0);
		enable(sends, 0);
		if (i + count < n) {
			wait_for(gone, 1);
			enable(receives, 1);
		}
	}
	OK(slmpm_wq_enable(receives, (uint64_t)count));
}

static void as_a_program(void)
{
	size_t piece = PIECE;
	struct flow f;

	begin(0);
	program(4, 60);
	f = flow_start(60, same, &piece);
	/* A SEND of an entry has no imm of a message's: bytes alone are the same. */
	for (int i = 0; i < f.n; i++) {
		static unsigned char got[PIECE];

		EXPECT(slmpm_recv(target, OUT, got, sizeof(got), NULL, PATIENCE), PIECE);
		CHECK(actor_filled(got, (uint64_t)i * 1000, PIECE), "message %d", i);
	}
	for (int i = 0; i < f.n; i++)
		message_end(&f.all[i], 0);
	free(f.all);
	free(f.sizes);
	nothing_ended();
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
	free(memory);
	memory = NULL;
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Allocations, and entries and steps are the same for one message and for 2^32. */
static long cost_of(uint64_t messages)
{
	struct slmpm_wr wr;
	long before;

	wr = piping(4, PIECE, messages);
	wr.channel = 1; /* it stands behind a WAIT: posting alone is counted */
	before = allocations;
	post(wr);
	return allocations - before;
}

static void costs(void)
{
	struct slmpm_wr wait = {
		.size = sizeof(wait), .op = SLMPM_OP_WAIT, .channel = 1, .value = 1};
	slmpm_ctr never;
	long one, many;

	begin(0);
	OK(slmpm_ctr_create(ctx, &never));
	wait.ctr = never;
	for (int i = 0; i < 20; i++) /* the completion queue has room for them all */
		post(wait);
	one = cost_of(1);
	many = cost_of(UINT64_C(1) << 32);
	CHECK(one == many && one <= 1, "%ld allocations for one message, %ld for 2^32", one, many);
	OK(slmpm_wq_cancel(wq, 0));
	end();
}

/* Of so many; what it has posted is taken back, and the buffers are the caller's. */
static void cancelled(void)
{
	size_t most;
	struct message held;
	struct slmpm_wr wr;
	struct slmpm_done done;

	begin(0);
	most = message_eager(source) * 2;
	wr = piping(4, most, UINT64_C(1) << 32);
	post(wr);
	wr.cookie = 10;
	post(wr);
	for (uint64_t i = 0; i < 10; i++) {
		message_send(source, IN, i, 77, 0);
		(void)message_take(target, OUT, i, 77);
	}
	nothing_ended();
	OK(slmpm_wq_cancel(wq, 1));
	piped(-SLMPM_ECANCELED, 10, down);
	done = ended(10, -SLMPM_ECANCELED);
	CHECK(done.len == 1, "the one behind it names %llu", (unsigned long long)done.len);
	message_send(source, IN, 10, 77, 0);
	(void)message_take(up, IN, 10, 77);
	message_none(target, OUT);

	/* While one waits for its receive at the target. */
	OK(slmpm_wq_reset(wq));
	post(piping(2, most, UINT64_C(1) << 32));
	message_start(&held, source, IN, 11, most);
	settle();
	OK(slmpm_wq_reset(wq));
	piped(-SLMPM_ECANCELED, 0, down);
	message_end(&held, 0);
	message_send(down, OUT, 12, 5, 0);
	(void)message_take(target, OUT, 12, 5);
	end();
}

static void stop(const struct slmpm_am *am, void *rc)
{
	(void)am;
	*(int *)rc = slmpm_wq_cancel(wq, 0);
}

/* By a handler that runs while the entry goes on; nothing is left under way, and it runs again. */
static void cancelled_by_handler(void)
{
	int rc = 1;

	begin(SLMPM_WQ_KEPT);
	OK(slmpm_am_handler(ctx, 5, stop, &rc));
	for (int run = 0; run < 3; run++) {
		post(piping(3, PIECE, 100));
		for (uint64_t i = 0; i < 5; i++) {
			message_send(source, IN, i, 200, 0);
			(void)message_take(target, OUT, i, 200);
		}
		OK(slmpm_am(source, 5, NULL, 0, NULL, 0, NULL, NULL));
		piped(-SLMPM_ECANCELED, 5, down);
		EXPECT(rc, 0);
		message_send(source, IN, 6, 200, 0);
		(void)message_take(up, IN, 6, 200);
		OK(slmpm_wq_reset(wq));
	}
	end();
}

/* What is there at PEER: the one behind *LAST, by its imm. False: nothing. */
static bool take_any(slmpm_peer peer, uint32_t stream, unsigned char *room, size_t most,
		     uint64_t *last)
{
	struct slmpm_done done;

	if (slmpm_probe(peer, stream, NULL, 0) != 1)
		return false;
	EXPECT(slmpm_recv(peer, stream, room, most, &done, PATIENCE), done.len);
	CHECK(done.imm > *last, "%u behind %llu", done.imm, (unsigned long long)*last);
	message_check(room, &done, (uint64_t)done.imm << 8, done.len);
	*last = done.imm;
	return true;
}

/* Of N sent the pipe has forwarded as many as it says, up to one in each buffer is lost, and all
 * others are there for others, in order. */
static void cancelled_amidst(struct rng *rng, uint64_t *number, size_t most, unsigned char *room)
{
	int count = 1 + (int)rng_below(rng, 4), n = 1 + (int)rng_below(rng, 12), busy, left = n;
	struct message all[12];
	uint64_t last = *number, forwarded = 0, direct = 0;
	struct slmpm_done done = {.op = 0};
	int rc, cancels = (int)rng_below(rng, 60);

	post(piping(count, most, (uint64_t)n + rng_below(rng, 2)));
	for (int i = 0; i < n; i++) {
		size_t size = rng_one_in(rng, 4) ? most - (size_t)i : rng_below(rng, PIECE);

		message_start(&all[i], source, IN, ++*number << 8, size);
	}
	for (int i = 0; left || !done.op; i++) {
		if (i == cancels) {
			rc = slmpm_wq_cancel(wq, 0);
			CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%d", rc);
			actor_settle(down, target); /* a send that is taken back is gone */
		}
		busy = 0;
		if (rng_one_in(rng, 2) && take_any(target, OUT, room, most, &last))
			forwarded++;
		else if (done.op && done.len == forwarded && take_any(up, IN, room, most, &last))
			direct++;
		if (!done.op)
			(void)slmpm_cq_poll(cq, &done, 1);
		for (int k = 0; k < n; k++) {
			if (all[k].req.id && slmpm_test(&all[k].req, NULL) == 1)
				free(all[k].data);
			busy += all[k].req.id != 0;
		}
		left = busy;
	}
	actor_settle(source, up);
	actor_settle(down, target);
	while (take_any(target, OUT, room, most, &last))
		forwarded++;
	while (take_any(up, IN, room, most, &last))
		direct++;
	CHECK(done.op == SLMPM_OP_PIPE && done.len == forwarded, "%llu are not %llu",
	      (unsigned long long)done.len, (unsigned long long)forwarded);
	CHECK(forwarded + direct <= (uint64_t)n &&
		      forwarded + direct + (uint64_t)(done.status ? count : 0) >= (uint64_t)n,
	      "%llu and %llu of %d", (unsigned long long)forwarded, (unsigned long long)direct, n);
	OK(slmpm_wq_reset(wq));
}

static void at_any_moment(void)
{
	struct rng rng = {rng_run_seed(81)};
	uint64_t number = 0;
	unsigned char *room;
	size_t most;

	begin(0);
	most = message_eager(source) * 2;
	room = malloc(most);
	CHECK(room, "out of memory");
	for (int i = 0; i < 300 / actor_slow(); i++)
		cancelled_amidst(&rng, &number, most, room);
	free(room);
	end();
}

/* The target takes nothing: the source can send only what may lie unreceived on both ways. */
static void throttled(void)
{
	const size_t most = 2 * message_credit() + 8 * PIECE;
	struct message *all = calloc(most / PIECE + 2, sizeof(*all));
	size_t n, taken = 0;
	long before;

	CHECK(all, "out of memory");
	begin(0);
	post(piping(4, PIECE, UINT64_C(1) << 32));
	for (n = 0; n * PIECE < most; n++) {
		message_start(&all[n], source, IN, n, PIECE);
		settle();
		if (slmpm_test(&all[n].req, NULL) == 0)
			break;
		free(all[n].data);
	}
	CHECK(n > 4 && n * PIECE < most, "%zu messages of %d: nothing held it up", n, PIECE);
	before = allocations;
	for (int i = 0; i < 1000; i++)
		(void)slmpm_progress(ctx);
	CHECK(allocations == before, "%ld allocations while it waits", allocations - before);
	nothing_ended();
	for (; taken <= n; taken++)
		(void)message_take(target, OUT, taken, PIECE);
	message_end(&all[n], 0);
	free(all);
	OK(slmpm_wq_cancel(wq, 0));
	piped(-SLMPM_ECANCELED, n + 1, down);
	end();
}

static slmpm_wq receive_queue(slmpm_peer of, uint32_t stream, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = flags | SLMPM_WQ_RECEIVE,
				     .cq = cq,
				     .peer = of,
				     .stream = stream};
	slmpm_wq made;

	OK(slmpm_wq_create(ctx, &o, &made));
	return made;
}

/* From a receive queue to one whose entries are enabled by and by: nothing is refused, or lost. */
static void to_receive_queue(void)
{
	static unsigned char rooms[40][PIECE];
	struct slmpm_iov room = {NULL, PIECE};
	struct slmpm_wr wr;
	struct slmpm_done done;
	slmpm_wq from, to;
	size_t piece = PIECE;
	struct flow f;

	begin(0);
	from = receive_queue(up, IN, 0);
	to = receive_queue(target, OUT, SLMPM_WQ_MANAGED);
	actor_settle(down, target);
	wr = piping(4, PIECE, 40);
	wr.wq = from;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "stands for .from");
	wr.from.id = wr.from_stream = 0;
	wr.wq = to;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "not managed");
	wr.wq = wq;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a receive queue");
	wr.wq = from;
	post(wr);
	f = flow_start(40, same, &piece);
	nothing_ended();
	for (int i = 0; i < 40; i++) {
		room.base = rooms[i];
		wr = (struct slmpm_wr){.size = sizeof(wr),
				       .op = SLMPM_OP_RECV,
				       .cookie = 100 + (uint64_t)i,
				       .iov = &room,
				       .iov_count = 1};
		EXPECT(slmpm_post(to, &wr, 1), 1);
		settle();
		OK(slmpm_wq_enable(to, (uint64_t)i + 1));
		if (i == 39)
			break;
		done = ended(wr.cookie, 0);
		message_check(rooms[i], &done, (uint64_t)i * 1000, PIECE);
	}
	for (int ends = 0; ends < 2; ends++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0 && (done.cookie == 9 || done.cookie == 139), "the last");
	}
	for (int i = 0; i < f.n; i++)
		message_end(&f.all[i], 0);
	free(f.all);
	free(f.sizes);

	/* Cancelled, or at its end, while it waits for an entry. */
	for (int i = 0; i < 2; i++) {
		post(piping(2, PIECE, 10));
		message_send(source, IN, 1, 10, 0);
		settle();
		if (i == 0)
			OK(slmpm_wq_cancel(wq, 0));
		else
			OK(slmpm_close(target, PATIENCE));
		piped(i ? -SLMPM_ECLOSED : -SLMPM_ECANCELED, 0, down);
		OK(slmpm_wq_reset(wq));
	}
	end();
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void truncated(void)
{
	struct slmpm_wr wr;

	begin(0);
	wr = piping(4, 100, 10);
	post(wr);
	wr.channel = 1;
	wr.cookie = 8;
	message_send(source, IN, 0, 100, 0);
	message_send(source, IN, 1, 3, 0);
	message_send(source, IN, 2, 101, 0);
	(void)message_take(target, OUT, 0, 100);
	(void)message_take(target, OUT, 1, 3);
	piped(-SLMPM_ETRUNC, 2, up);
	message_none(target, OUT);
	wr.channel = 0;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_ETRUNC, "channel 0 has stopped at entry 1");
	message_send(source, IN, 3, 50, 0); /* its receives are taken back */
	(void)message_take(up, IN, 3, 50);
	end();
}

/* What is under way before it is seen through. */
static void truncated_behind(void)
{
	struct message all[3];
	size_t most;

	begin(0);
	most = message_eager(source) * 2;
	post(piping(4, most, 10));
	for (uint64_t i = 0; i < 3; i++)
		message_start(&all[i], source, IN, i, most + i / 2);
	for (int i = 0; i < 3; i++)
		message_end(&all[i], 0);
	nothing_ended();
	(void)message_take(target, OUT, 0, most);
	nothing_ended();
	(void)message_take(target, OUT, 1, most);
	piped(-SLMPM_ETRUNC, 2, up);
	end();
}

/* What had come before the source closed still goes on. */
static void closed(bool source_closes)
{
	begin(0);
	post(piping(4, PIECE, 100));
	for (uint64_t i = 0; i < 3; i++)
		message_send(source, IN, i, 500, 0);
	if (source_closes) {
		OK(slmpm_close(source, PATIENCE));
		for (uint64_t i = 0; i < 3; i++)
			(void)message_take(target, OUT, i, 500);
		piped(-SLMPM_ECLOSED, 3, up);
	} else {
		for (uint64_t i = 0; i < 3; i++)
			(void)message_take(target, OUT, i, 500);
		settle();
		OK(slmpm_close(target, PATIENCE)); /* nothing is under way */
		piped(-SLMPM_ECLOSED, 3, down);
		message_send(source, IN, 4, 50, 0);
		(void)message_take(up, IN, 4, 50);
	}
	end();
}

/* This process closes one itself. */
static void closed_here(bool towards_target)
{
	begin(0);
	post(piping(4, PIECE, 100));
	message_send(source, IN, 0, 500, 0);
	(void)message_take(target, OUT, 0, 500);
	settle();
	OK(slmpm_close(towards_target ? down : up, PATIENCE));
	piped(-SLMPM_ECLOSED, 1, towards_target ? down : up);
	end();
}

static void refusals(void)
{
	struct slmpm_wr good, wr;

	begin(0);
	good = piping(2, PIECE, 1);
#define REFUSE(member, content, error, word)                                                       \
	do {                                                                                       \
		wr = good;                                                                         \
		wr.member = content;                                                               \
		REFUSED(slmpm_post(wq, &wr, 1), error, word);                                      \
	} while (0)
	REFUSE(value, 0, SLMPM_EINVAL, "a PIPE of 0 messages in 2 buffers");
	REFUSE(iov_count, 0, SLMPM_EINVAL, "a PIPE of 1 messages in 0 buffers");
	REFUSE(iov_count, -1, SLMPM_EINVAL, "in -1 buffers");
	REFUSE(iov, NULL, SLMPM_EINVAL, "2 pieces");
	REFUSE(stream, SLMPM_ANY_STREAM, SLMPM_EINVAL, "stream");
	REFUSE(from.id, 0, SLMPM_EHANDLE, "peer");
	REFUSE(peer.id, 0, SLMPM_EHANDLE, "peer");
	REFUSE(peer, slmpm_any(ctx), SLMPM_EHANDLE, "peer");
	REFUSE(flags, SLMPM_RELATIVE, SLMPM_EINVAL, "flags");
	REFUSE(cq, cq, SLMPM_EINVAL, ".cq and .wq");
	REFUSE(wq.id, 1, SLMPM_EHANDLE, "work queue");
	REFUSE(reserved, 1, SLMPM_EINVAL, ".reserved");
	REFUSE(op, 12, SLMPM_EINVAL, "operation 12");
	buffers[1].base = NULL;
	REFUSED(slmpm_post(wq, &good, 1), SLMPM_EINVAL, "piece 1 is NULL");
	end();
}

static int everything(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	through();
	again();
	in_its_turn();
	as_a_program();
	costs();
	cancelled();
	cancelled_by_handler();
	at_any_moment();
	throttled();
	to_receive_queue();
	truncated();
	truncated_behind();
	for (int i = 0; i < 2; i++) {
		closed(i);
		closed_here(i);
	}
	refusals();
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

#define WORDS 50

/* Sends without end; or until it is through. */
static int role_sends(slmpm_peer host, char **words)
{
	(void)words;
	for (uint64_t i = 0; i < WORDS; i++)
		message_send(host, IN, i, 300, 0);
	actor_tell(host, 1);
	while (pause() < 0)
		;
	return 0;
}

static int role_takes(slmpm_peer host, char **words)
{
	(void)words;
	for (uint64_t i = 0; i < WORDS; i++)
		(void)message_take(host, OUT, i, 300);
	actor_tell(host, 2);
	while (pause() < 0)
		;
	return 0;
}

static void dies(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	CHECK(kill(info.pid, SIGKILL) == 0, "kill");
}

/* One of both dies, all that was sent having been forwarded. */
static int death(void *which)
{
	OK(slmpm_default(&ctx));
	OK(slmpm_cq_create(ctx, &cq));
	create(0);
	up = actor_spawn("sends", NULL, NULL);
	down = actor_spawn("takes", NULL, NULL);
	post(piping(4, PIECE, UINT64_C(1) << 32));
	actor_hear(up, 1);
	actor_hear(down, 2);
	dies(which ? up : down);
	piped(-SLMPM_EDEAD, WORDS, which ? up : down);
	dies(which ? down : up);
	return 0;
}

/* By the engine's thread, while the application sleeps in pause(); from a peer back to it. */
static void on_signal(int signal)
{
	(void)signal;
}

static int role_relays(slmpm_peer host, char **words)
{
	sigset_t usr1;
	int got;

	(void)words;
	signal(SIGUSR1, on_signal);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	up = down = host;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	create(0);
	post(piping(4, PIECE, PIECES));
	actor_tell(host, 3);
	CHECK(sigwait(&usr1, &got) == 0, "sigwait");
	for (int ms = 0; look().done == 0 && ms < PATIENCE; ms++) /* which makes no progress */
		usleep(1000);
	CHECK(look().done == 1, "it is done without us");
	piped(0, PIECES, host);
	return 0;
}

static int asleep(void *fabric)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	size_t piece = PIECE;
	slmpm_peer relay;
	struct flow f;

	settings_set("SLMPM_FABRIC", fabric);
	settings_set("SLMPM_ENGINE", "thread");
	OK(slmpm_default(&ctx));
	relay = actor_spawn("relays", NULL, NULL);
	actor_hear(relay, 3);
	source = target = relay;
	f = flow_start(PIECES, same, &piece);
	flow_end(&f);
	OK(slmpm_peer_query(relay, &info));
	CHECK(kill(info.pid, SIGUSR1) == 0, "kill");
	actor_join(relay, 0);
	return 0;
}

static int dead(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(death, i ? &ctx : NULL, 25) == 0, "death %d", i);
	return 0;
}

/* ---- from one fabric to the other ------------------------------------------------------------ */

#define LONGEST ((size_t)1 << 20) /* it comes when it is asked for */
#define GUESTS  2 /* the source and the target, each a process that comes over its fabric */

static char *const fabrics[] = {"shm", "tcp"};
static int urls[GUESTS][2]; /* pipes */

static size_t long_now_and_then(int i)
{
	return i % 10 == 7 ? LONGEST : (size_t)(i * 37 % 3000);
}

static slmpm_peer visit(int which, const char *fabric)
{
	slmpm_peer host;
	char url[400];

	setenv("SLMPM_FABRIC", fabric, 1);
	CHECK(read(urls[which][0], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	return host;
}

static int guest_sends(void *fabric)
{
	slmpm_peer host = visit(0, fabric);

	for (int i = 0; i < PIECES; i++)
		message_send(host, IN, (uint64_t)i, long_now_and_then(i), 0);
	actor_hear(host, 1);
	return 0;
}

static int guest_takes(void *fabric)
{
	slmpm_peer host = visit(1, fabric);

	actor_hear(host, 2);
	for (int i = 0; i < PIECES; i++)
		(void)message_take(host, OUT, (uint64_t)i, long_now_and_then(i));
	return 0;
}

static slmpm_peer welcome(int which, const char *fabric)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct slmpm_link_info link = {.size = sizeof(link)};
	char url[400] = "shm:", own[64];
	slmpm_listener listener;
	slmpm_peer guest;
	bool tcp = !strcmp(fabric, "tcp");

	snprintf(own, sizeof(own), "shm:pipe-%d-%d", (int)getpid(), which);
	OK(slmpm_listen(&listener, ctx, tcp ? "tcp://127.0.0.1:0" : own));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s%s%s", tcp ? info.url : own, tcp ? "#" : "", info.secret);
	CHECK(write(urls[which][1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &guest, PATIENCE));
	OK(slmpm_unlisten(listener));
	OK(slmpm_link_query(guest, 0, &link));
	CHECK(!strcmp(link.fabric, fabric), "%s, not %s", link.fabric, fabric);
	return guest;
}

static int mixed(void *ways)
{
	char *from = fabrics[(uintptr_t)ways & 1], *to = fabrics[(uintptr_t)ways >> 1];
	pid_t guests[GUESTS];

	unsetenv("SLMPM_LINKS");
	unsetenv("SLMPM_FABRIC");
	for (int i = 0; i < GUESTS; i++)
		CHECK(pipe(urls[i]) == 0, "pipe");
	guests[0] = child_start(guest_sends, from, 90);
	guests[1] = child_start(guest_takes, to, 90);
	OK(slmpm_default(&ctx));
	OK(slmpm_cq_create(ctx, &cq));
	create(0);
	up = welcome(0, from);
	down = welcome(1, to);
	CHECK(message_eager(up) < LONGEST && message_eager(down) < LONGEST, "what is long");
	post(piping(4, LONGEST, PIECES));
	actor_tell(down, 2);
	piped(0, PIECES, down);
	actor_tell(up, 1);
	for (int i = 0; i < GUESTS; i++)
		EXPECT(child_wait(guests[i]), 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"sends", role_sends},
					     {"takes", role_takes},
					     {"relays", role_relays},
					     {NULL, NULL}};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		CHECK(child_run(everything, fabrics[i], 100) == 0, "%s: see above", fabrics[i]);
		CHECK(child_run(dead, fabrics[i], 100) == 0, "%s: see above", fabrics[i]);
		CHECK(child_run(asleep, fabrics[i], 100) == 0, "%s: see above", fabrics[i]);
	}
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(child_run(mixed, (void *)i, 100) == 0, "%s to %s: see above", fabrics[i & 1],
		      fabrics[i >> 1]);
	return 0;
}
