/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of tests. */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

#define GROUP(name, what, size)                                                                    \
	{                                                                                          \
		name, what, KIND_SINGLE, BY_GROUP, size, loop_collective,                          \
			TAKES_MEMBERS | TAKES_SHARED | TAKES_TOUCH                                 \
	}

const struct test tests[] = {
	{"send_lat", "one way of a message, half a ping-pong", KIND_LATENCY, BY_MESSAGE, 8,
	 loop_send_lat, TAKES_IDLE | TAKES_TOUCH},
	{"send_bw", "stream of messages, in bytes a second", KIND_STREAM, BY_MESSAGE, 65536,
	 loop_bursts, TAKES_FEW | TAKES_MORE | TAKES_TOUCH},
	{"send_rate", "the same in messages a second", KIND_STREAM, BY_MESSAGE, 8, loop_bursts,
	 TAKES_FEW | TAKES_MORE | TAKES_TOUCH},
	{"loan_lat", "one way of a message built and read in place", KIND_LATENCY, BY_LOAN, 8,
	 loop_loan_lat, TAKES_STEP | TAKES_TOUCH},
	{"loan_bw", "stream of such messages", KIND_STREAM, BY_LOAN, 65536, loop_loan_stream,
	 TAKES_STEP | TAKES_TOUCH},
	{"put_lat", "one way of a put that the target polls for, half a ping-pong", KIND_LATENCY,
	 BY_PUT, 8, loop_put_lat, TAKES_TOUCH},
	{"put_bw", "stream of puts, in bytes a second", KIND_STREAM, BY_PUT, 65536, loop_put_stream,
	 TAKES_FEW | TAKES_TOUCH},
	{"put_rate", "the same in puts a second", KIND_STREAM, BY_PUT, 8, loop_put_stream,
	 TAKES_FEW | TAKES_TOUCH},
	{"get_lat", "a get", KIND_SINGLE, BY_GET, 8, loop_get_lat, TAKES_TOUCH},
	{"get_bw", "stream of gets", KIND_STREAM, BY_GET, 65536, loop_get_stream,
	 TAKES_FEW | TAKES_TOUCH},
	{"fadd", "fetch-and-add on a word there, and the bare instruction", KIND_SINGLE, BY_ATOMIC,
	 8, loop_fetch_add, 0},
	{"cswap", "compare-and-swap likewise", KIND_SINGLE, BY_ATOMIC, 8, loop_compare_swap, 0},
	{"am_lat", "one way of an active message, half a ping-pong", KIND_LATENCY, BY_AM, 8,
	 loop_am_lat, TAKES_TOUCH},
	{"am_rate", "stream of active messages", KIND_STREAM, BY_AM, 8, loop_am_stream,
	 TAKES_BURST | TAKES_TOUCH},
	{"am_remote", "active message, until its sender knows that it is handled", KIND_SINGLE,
	 BY_AM, 8, loop_am_remote, TAKES_TOUCH},
	{"fifo_lat", "one way of a put into a FIFO, taken and stored", KIND_LATENCY, BY_FIFO, 8,
	 loop_fifo_lat, TAKES_TOUCH},
	{"fifo_bw", "stream of those", KIND_STREAM, BY_FIFO, 4096, loop_fifo_stream, TAKES_TOUCH},
	{"mirror_lat", "one way of a change to a place where a plain load sees it", KIND_LATENCY,
	 BY_MIRROR, 8, loop_mirror_lat, TAKES_TRACK | TAKES_TOUCH},
	{"mirror_rate", "stream of changes, each flushed, or a burst of them", KIND_STREAM,
	 BY_MIRROR, 8, loop_mirror_stream, TAKES_BURST | TAKES_TRACK},
	{"mirror_read", "a load of what is changed there, and one of private memory", KIND_SINGLE,
	 BY_MIRROR, 8, loop_mirror_read, TAKES_TRACK},
	{"mirror_reads", "stream of such loads, with the progress that lets changes in",
	 KIND_STREAM, BY_MIRROR, 8, loop_mirror_reads, TAKES_TRACK},
	{"get_reads", "stream of gets of what the other side changes", KIND_STREAM, BY_GET, 8,
	 loop_get_reads, 0},
	{"mixed", "puts, each with eight small messages and an answer beside it", KIND_STREAM,
	 BY_PUT, 65536, loop_mixed, TAKES_MODES | TAKES_TOUCH},
	{"slow_reader", "stream of messages to one who computes after each", KIND_STREAM,
	 BY_MESSAGE, 65536, loop_slow_reader, TAKES_FEW | TAKES_WORK | TAKES_MODES | TAKES_TOUCH},
	{"tide", "the same, now quick, now slow", KIND_STREAM, BY_MESSAGE, 65536, loop_tide,
	 TAKES_FEW | TAKES_WORK | TAKES_MODES | TAKES_TOUCH},
	{"duplex", "streams of messages both ways at once, in turns of a burst", KIND_STREAM,
	 BY_MESSAGE, 65536, loop_duplex, TAKES_FEW | TAKES_MODES | TAKES_TOUCH},
	{"overlap", "how much of a put hides behind a computation", KIND_OVERLAP, BY_PUT, 64 * MIB,
	 loop_overlap, 0},
	{"wq_chain", "an entry of a work queue that depends on the one before", KIND_SINGLE,
	 BY_QUEUE, 8, loop_wq_chain, 0},
	{"wq_hop", "a hop by a work queue that waits for a message, and by hand", KIND_SINGLE,
	 BY_QUEUE, 8, loop_wq_hop, 0},
	{"wq_calc", "a sum of vectors of doubles by a CALC entry, and by a bare loop", KIND_SINGLE,
	 BY_QUEUE, 32768, loop_wq_calc, 0},
	{"wq_apart", "the same of every second element", KIND_SINGLE, BY_QUEUE, 32768,
	 loop_wq_apart, 0},
	{"offload",
	 "a chain of sends by the engine beside a computation, and alone; with --members a sum at "
	 "all, likewise",
	 KIND_SINGLE, BY_QUEUE, 8, loop_offload, TAKES_MEMBERS},
	{"wq_pipe", "stream of messages through side 1 to a third process, and straight to side 1",
	 KIND_STREAM, BY_MESSAGE, 65536, loop_wq_pipe, TAKES_TOUCH},
	GROUP("barrier", "a barrier of a group of --members processes", 0),
	GROUP("bcast", "a broadcast, each member the root in turn", 8),
	GROUP("reduce", "a sum at a root, likewise", 8),
	GROUP("allreduce", "a sum at all members", 8),
	GROUP("scatter", "a block for each member from a root, each in turn", 8),
	GROUP("gather", "a block of each at a root, likewise", 8),
	GROUP("allgather", "a block of each at all members", 8),
	GROUP("alltoall", "a block of each for each", 8),
	GROUP("put_all", "one put to all others, each member in turn", 8),
	{"mailbox_lat", "one way of a DaCS mailbox word", KIND_MAILBOX, BY_NOTHING, 4, NULL, 0},
	{"pause_lat", "one way after a pause: the messages behind the first of a burst", KIND_PAUSE,
	 BY_MESSAGE, 8, loop_pause_lat, TAKES_BURST | TAKES_IDLE},
	{"pause_rate", "a message of a one-way burst after a pause, behind the first", KIND_PAUSE,
	 BY_MESSAGE, 8, loop_pause_stream, TAKES_BURST | TAKES_IDLE},
	{"line_lat", "limit: one way of a cache line between the CPUs", KIND_LINE, BY_NOTHING, 64,
	 loop_nothing, 0},
	{"copy_bw", "limit: memcpy between private buffers", KIND_COPY, BY_NOTHING, 65536,
	 loop_copy, TAKES_TOUCH},
	{NULL, NULL, KIND_LATENCY, BY_NOTHING, 0, NULL, 0},
};

static const struct test group_offload =
	GROUP("offload", "a sum at all members beside a computation, and alone", 65536);

const struct test *test_find(const char *name)
{
	for (const struct test *t = tests; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

const struct test *test_in_group(const struct test *t)
{
	return t->loop == loop_offload ? &group_offload : t;
}

bool test_offloads(const struct test *t)
{
	return t == &group_offload;
}

bool test_has_region(const struct test *t)
{
	return t->by == BY_PUT || t->by == BY_GET || t->by == BY_ATOMIC || t->by == BY_FIFO;
}

bool test_calculates(const struct test *t)
{
	return t->loop == loop_wq_calc || t->loop == loop_wq_apart;
}

bool test_has_one_size(const struct test *t)
{
	return t->kind == KIND_LINE || t->kind == KIND_MAILBOX || t->by == BY_ATOMIC ||
	       (t->by == BY_GROUP && !t->size) || t->loop == loop_wq_chain ||
	       t->loop == loop_mirror_read || t->loop == loop_mirror_reads ||
	       t->loop == loop_get_reads;
}
