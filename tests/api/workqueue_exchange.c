/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * CALC entries whose results go to peers: to all of them and to own memory, whichever way puts go;
 * a peer that does not look holds the calculation up, one that is gone or took its region back ends
 * the entry, which names it.
 */
#include <signal.h>
#include <string.h>

#include "tests/api/workqueue_calc.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/message.h"
#include "tests/lib/way.h"

#define MOST  50000 /* elements: many pieces */
#define BYTES (MOST * sizeof(uint64_t))
#define FROM  24 /* bytes: where results begin in a region */

static slmpm_ctx ctx;
static slmpm_peer a, b, c, d; /* a to b, c to d: all here */
static slmpm_mem mem[2];
static slmpm_rmem far[2];
static unsigned char *there[2];
static uint64_t x[MOST], y[MOST], z[2 * MOST];
static struct slmpm_operand args[2], targets[4];

static void create(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};

	OK(slmpm_wq_create(ctx, &o, &wq));
}

static void fill(uint64_t seed)
{
	for (uint64_t i = 0; i < MOST; i++) {
		x[i] = i * seed;
		y[i] = i + (seed << 40);
	}
	memset(z, 0, sizeof(z));
}

static void describe(uint64_t n)
{
	memset(args, 0, sizeof(args));
	memset(targets, 0, sizeof(targets));
	args[0].at = x;
	args[1].at = y;
	calc = (struct slmpm_calc){.size = sizeof(calc),
				   .op = SLMPM_CALC_SUM,
				   .type = SLMPM_UINT64,
				   .count = {n},
				   .args = args,
				   .targets = targets,
				   .arg_count = 2};
}

static struct slmpm_operand *one_more(void)
{
	return &targets[calc.target_count++];
}

static void to_memory(int64_t stride)
{
	struct slmpm_operand *o = one_more();

	o->at = z;
	o->stride[0] = stride;
}

static void to_peer(int i, uint64_t offset, uint32_t flags)
{
	struct slmpm_operand *o = one_more();

	o->rmem = far[i];
	o->offset = offset;
	o->flags = flags;
}

static void begin(uint32_t flags)
{
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	actor_pair(ctx, &c, &d);
	OK(slmpm_cq_create(ctx, &cq));
	create(flags);
	for (int i = 0; i < 2; i++) {
		there[i] = way_region(ctx, BYTES + 64, SLMPM_READ_WRITE, &mem[i]);
		memset(there[i], 0xee, BYTES + 64);
		far[i] = way_reach(mem[i], i ? d : b, i ? c : a, SLMPM_READ_WRITE);
	}
	fill(3);
}

static uint64_t big(uint64_t value)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap64(value);
}

/* N sums at AT, and nothing around them. */
static void sums(const unsigned char *at, uint64_t n, bool turned)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t value;

		memcpy(&value, at + i * sizeof(value), sizeof(value));
		value = turned ? big(value) : value;
		CHECK(value == x[i] + y[i], "element %llu is %llx", (unsigned long long)i,
		      (unsigned long long)value);
	}
	CHECK(at[-1] == 0xee && at[n * sizeof(uint64_t)] == 0xee, "bytes around");
}

static void clear(void)
{
	memset(there[0], 0xee, BYTES + 64);
	memset(there[1], 0xee, BYTES + 64);
	memset(z, 0, sizeof(z));
}

/* ---- whichever way ------------------------------------------------------------------------- */

static void to_all(uint64_t n)
{
	clear();
	describe(n);
	to_peer(0, FROM, 0);
	to_memory(0);
	to_peer(1, FROM + 5, SLMPM_OPERAND_BIG_ENDIAN);
	post(n);
	memset(targets, 0, sizeof(targets)); /* they were copied */
	(void)ended(n, 0);
	sums(there[0] + FROM, n, false);
	sums(there[1] + FROM + 5, n, true);
	for (uint64_t i = 0; i < n; i++)
		CHECK(z[i] == x[i] + y[i], "own element %llu", (unsigned long long)i);
}

/* What is here has gaps, or nothing is, or it is an argument. */
static void otherwise(void)
{
	clear();
	describe(MOST);
	to_memory(16);
	to_peer(0, FROM, 0);
	to_peer(1, FROM, 0);
	post(1);
	(void)ended(1, 0);
	sums(there[0] + FROM, MOST, false);
	sums(there[1] + FROM, MOST, false);
	for (uint64_t i = 0; i < MOST; i++)
		CHECK(z[2 * i] == x[i] + y[i] && !z[2 * i + 1], "own %llu", (unsigned long long)i);
	clear();
	describe(1);
	to_peer(0, FROM, 0);
	post(2);
	(void)ended(2, 0);
	sums(there[0] + FROM, 1, false);
	/* The argument alone, which is the target here, too. */
	clear();
	describe(3000);
	calc.arg_count = 1;
	one_more()->at = x;
	to_peer(0, FROM, 0);
	memset(y, 0, sizeof(y));
	post(3);
	(void)ended(3, 0);
	sums(there[0] + FROM, 3000, false);
	fill(3);
}

static int every_way(const struct way *w)
{
	uint64_t most = w->slow ? 5000 : MOST;

	begin(0);
	to_all(1);
	to_all(2048);
	to_all(2049);
	to_all(most);
	otherwise();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- again, unacknowledged, beside others ---------------------------------------------------- */

static void again(void)
{
	begin(SLMPM_WQ_KEPT);
	describe(MOST);
	to_peer(0, FROM, 0);
	to_peer(1, FROM, 0);
	post(1);
	for (uint64_t run = 1; run <= 5; run++) {
		(void)ended(1, 0);
		sums(there[0] + FROM, MOST, false);
		sums(there[1] + FROM, MOST, false);
		fill(run + 7);
		OK(slmpm_wq_arm(wq));
	}
	(void)ended(1, 0);
	OK(slmpm_shut(ctx, PATIENCE));
}

/* What stands behind it finds all of it there. */
static void in_order(void)
{
	struct slmpm_iov none = {NULL, 0};
	struct slmpm_wr wr = {.size = sizeof(wr),
			      .op = SLMPM_OP_SEND,
			      .peer = a,
			      .stream = 5,
			      .iov = &none,
			      .iov_count = 1,
			      .cookie = 2};

	begin(SLMPM_WQ_UNACKNOWLEDGED);
	wr.peer = a;
	describe(MOST);
	to_peer(0, FROM, 0);
	post(1);
	EXPECT(slmpm_post(wq, &wr, 1), 1);
	EXPECT(slmpm_recv(b, 5, NULL, 0, NULL, PATIENCE), 0);
	sums(there[0] + FROM, MOST, false);
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- those that fail ------------------------------------------------------------------------- */

static void taken_back(void)
{
	struct slmpm_done done;

	begin(0);
	describe(MOST);
	to_peer(0, FROM, 0);
	to_memory(0);
	to_peer(1, FROM, 0);
	OK(slmpm_mem_revoke(mem[1], d, PATIENCE));
	while (slmpm_progress(ctx) > 0)
		;
	post(1);
	done = ended(1, -SLMPM_EACCES);
	CHECK(done.peer.id == c.id && done.len == 2, "peer %llx, target %llu",
	      (unsigned long long)done.peer.id, (unsigned long long)done.len);
	OK(slmpm_shut(ctx, PATIENCE));
}

static int one_that_left(void *way)
{
	struct slmpm_done done;
	struct slmpm_wr wait = {.size = sizeof(wait), .op = SLMPM_OP_WAIT, .value = 1};
	slmpm_ctr go;

	(void)way;
	begin(0);
	OK(slmpm_ctr_create(ctx, &go));
	wait.ctr = go;
	wait.flags = SLMPM_SILENT;
	EXPECT(slmpm_post(wq, &wait, 1), 1);
	describe(MOST);
	to_peer(0, FROM, 0);
	to_peer(1, FROM, 0);
	post(1);
	OK(slmpm_close(b, PATIENCE));
	while (slmpm_progress(ctx) > 0)
		;
	wait.op = SLMPM_OP_COUNT;
	wait.channel = 1;
	EXPECT(slmpm_post(wq, &wait, 1), 1);
	done = ended(1, -SLMPM_ECLOSED);
	CHECK(done.peer.id == a.id && done.len == 0, "peer %llx, target %llu",
	      (unsigned long long)done.peer.id, (unsigned long long)done.len);
	return 0;
}

static void refused(const char *why)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &calc};

	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, why);
	describe(4);
	to_peer(0, 0, 0);
}

static void refusals(void)
{
	slmpm_rmem before;

	begin(0);
	describe(4);
	to_peer(0, 0, 0);
	targets[0].at = z;
	refused("target 0 is here and at a peer");
	targets[0].stride[0] = 8;
	refused("target 0, at a peer, has strides");
	calc.op = SLMPM_CALC_MAX;
	targets[0].indices = z;
	refused("target 0, at a peer, has indices");
	targets[0].reserved[1] = 1;
	refused("of target 0");
	targets[0].flags = 3;
	refused("flags 0x3");
	targets[0].offset = BYTES + 64 - 31;
	refused("of a region of");
	targets[0].offset = UINT64_MAX - 7;
	refused("of a region of");
	to_peer(0, 24, 0);
	refused("target 1 overlaps target 0");
	to_peer(0, 32, 0);
	to_peer(0, 63, 0);
	refused("target 2 overlaps target 1");
	args[1].rmem = far[0];
	refused("argument 1 has a region");
	args[0].offset = 8;
	refused("argument 0 has a region or an offset");
	one_more()->at = z;
	targets[1].offset = 8;
	refused("target 1 has a region or an offset");
	before = far[1];
	OK(slmpm_mem_release(far[1]));
	to_peer(1, 0, 0);
	EXPECT(before.id, targets[1].rmem.id);
	{
		struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &calc};

		REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EHANDLE, "");
	}
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- another process ------------------------------------------------------------------------- */

static slmpm_ctx own_context(void)
{
	slmpm_ctx own;

	OK(slmpm_default(&own));
	return own;
}

static int owner(slmpm_peer host, char **words)
{
	slmpm_mem region;
	unsigned char *at = way_region(own_context(), BYTES, SLMPM_READ_WRITE, &region);

	(void)words;
	way_give(region, host, 1);
	actor_hear(host, 1);
	for (uint64_t i = 0; i < MOST; i++) {
		uint64_t value;

		memcpy(&value, at + i * 8, 8);
		CHECK(value == 3 * i + i + (UINT64_C(3) << 40), "element %llu there",
		      (unsigned long long)i);
	}
	return 0;
}

static uint64_t calculated(void)
{
	uint64_t n = 0;

	while (n < MOST && z[2 * n])
		n++;
	return n;
}

static void process_begin(slmpm_peer *peer)
{
	*peer = actor_spawn("owner", NULL, NULL);
	ctx = own_context();
	OK(slmpm_cq_create(ctx, &cq));
	create(0);
	far[0] = way_open(*peer, 1);
	fill(3);
	describe(MOST);
	to_memory(16);
	to_peer(0, 0, 0);
}

/* To who does not look: only what a few pieces have is calculated, or all, without requests. */
static void stop_and_post(slmpm_peer peer)
{
	struct slmpm_done done;

	OK(kill(pid_of(peer), SIGSTOP));
	actor_await_state(pid_of(peer), "T");
	post(1);
	for (int i = 0; i < 1000; i++)
		(void)slmpm_progress(ctx);
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
	CHECK(calculated() && calculated() <= 4 * 2048, "%llu elements",
	      (unsigned long long)calculated());
}

static void who_sleeps(void)
{
	slmpm_peer peer;

	process_begin(&peer);
	if (way_is_direct()) {
		post(1);
	} else {
		stop_and_post(peer);
		OK(kill(pid_of(peer), SIGCONT));
	}
	(void)ended(1, 0);
	CHECK(calculated() == MOST, "%llu elements", (unsigned long long)calculated());
	actor_tell(peer, 1);
	actor_join(peer, 0);
}

/* What is on its way ends first; then the queue may be used again. */
static void who_sleeps_too_long(void)
{
	slmpm_peer peer;
	int rc;

	process_begin(&peer);
	stop_and_post(peer);
	rc = slmpm_wq_cancel(wq, 1);
	CHECK(rc == 0 || rc == -SLMPM_EBUSY, "%d", rc);
	EXPECT(slmpm_wq_cancel(wq, 2), -SLMPM_EINVAL);
	OK(kill(pid_of(peer), SIGCONT));
	(void)ended(1, -SLMPM_ECANCELED);
	OK(slmpm_wq_reset(wq));
	post(2);
	(void)ended(2, 0);
	actor_tell(peer, 1);
	actor_join(peer, 0);
}

static void who_dies(void)
{
	struct slmpm_done done;
	slmpm_peer peer;

	process_begin(&peer);
	stop_and_post(peer);
	OK(kill(pid_of(peer), SIGKILL));
	done = ended(1, -SLMPM_EDEAD);
	CHECK(done.peer.id == peer.id && done.len == 1, "peer %llx, target %llu",
	      (unsigned long long)done.peer.id, (unsigned long long)done.len);
	CHECK(calculated() < MOST, "all of it was calculated");
}

static int asleep(const struct way *w)
{
	(void)w;
	who_sleeps();
	if (!way_is_direct())
		who_sleeps_too_long();
	if (!way_is_direct())
		who_dies();
	return 0;
}

static const struct actor roles[] = {{"owner", owner}, {NULL, NULL}};

static int everything(void *engine)
{
	setenv("SLMPM_ENGINE", engine, 1);
	again();
	in_order();
	taken_back();
	refusals();
	return one_that_left(NULL);
}

static int alone(const struct way *w)
{
	static char *const engines[] = {"none", "thread"};

	(void)w;
	for (int i = 0; i < 2; i++)
		CHECK(child_run(everything, engines[i], 60) == 0, "%s: see above", engines[i]);
	return 0;
}

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	CHECK(way_each(every_way, 25) == 0, "see above");
	CHECK(way_each(asleep, 25) == 0, "asleep: see above");
	CHECK(way_each(alone, 60) == 0, "alone: see above");
	return 0;
}
