/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * PIPE entries: messages go through few buffers to another peer, in order, as they came; a slow
 * target holds up the source; its cost is its buffers' alone.
 */
#include "tests/api/workqueue_pipe.h"

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

/* ---- what goes through ----------------------------------------------------------------------- */

static size_t any_up_to_a_piece(int i, void *rng)
{
	return i % 9 ? rng_below(rng, PIECE + 1) : i % 2 ? PIECE : 0;
}

/* Some come only when they are asked for, and end behind those sent later. */
static size_t long_and_short(int i, void *arg)
{
	return i % 3 ? 100 + (size_t)i : *(size_t *)arg - (size_t)i;
}

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
	wr.wq = wq;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "no receive queue");
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
	REFUSE(value, 0, SLMPM_EINVAL, "a PIPE of 0 messages");
	REFUSE(iov_count, 0, SLMPM_EINVAL, "a PIPE's buffers, is 0");
	REFUSE(iov_count, -1, SLMPM_EINVAL, "is -1, less than 1");
	REFUSE(iov, NULL, SLMPM_EINVAL, ".iov is NULL, .iov_count 2");
	REFUSE(stream, SLMPM_ANY_STREAM, SLMPM_EINVAL, "stream");
	REFUSE(from.id, 0, SLMPM_EHANDLE, "peer");
	REFUSE(peer.id, 0, SLMPM_EHANDLE, "peer");
	REFUSE(peer, slmpm_any(ctx), SLMPM_EINVAL, "it names one peer");
	REFUSE(flags, SLMPM_RELATIVE, SLMPM_EINVAL, "flags");
	REFUSE(cq, cq, SLMPM_EINVAL, ".cq of a PIPE is set: it is for WAIT");
	REFUSE(wq.id, 1, SLMPM_EHANDLE, "work queue");
	REFUSE(reserved, 1, SLMPM_EINVAL, ".reserved");
	REFUSE(op, 14, SLMPM_EINVAL, "operation 14");
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
	throttled();
	to_receive_queue();
	refusals();
	return 0;
}

int main(void)
{
	over_both(everything);
	return 0;
}
