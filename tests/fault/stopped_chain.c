/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 90 */
/*
 * One queue with 64 chains over four peers, of which one is stopped amidst long messages: the
 * chains of the others all end, and the process sleeps meanwhile; once the stopped one goes on, its
 * chains end, too.
 */
#define PEERS 4
#include "tests/fault/chain.h"

#define CHAINS 64
#define ROUNDS 4
#define SMALL  64

static slmpm_ctr all, stopped; /* ends of chains; of the stopped peer's */
static slmpm_cq cq;
static slmpm_wq wq;
static unsigned char bytes[LONGEST];
static uint64_t words[CHAINS];

static void post(uint32_t chain, struct slmpm_wr wr)
{
	wr.size = sizeof(wr);
	wr.channel = chain;
	wr.cookie = chain;
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

/* Staged messages, a long one, what waits for both, and the next round. */
static void post_chain(uint32_t c)
{
	struct slmpm_iov small = {bytes, SMALL}, whole = {bytes, LONGEST}, word = {&words[c], 8};
	slmpm_peer peer = peers[c % PEERS];
	struct slmpm_wr send = {.op = SLMPM_OP_SEND,
				.flags = SLMPM_SILENT,
				.peer = peer,
				.stream = 1,
				.iov_count = 1};
	struct slmpm_wr put = {.op = SLMPM_OP_PUT,
			       .flags = SLMPM_SILENT,
			       .rmem = far[c % PEERS],
			       .offset = 8 * (uint64_t)c,
			       .iov = &word,
			       .iov_count = 1};
	struct slmpm_wr count = {.op = SLMPM_OP_COUNT,
				 .flags = SLMPM_SILENT | SLMPM_RELATIVE,
				 .ctr = c % PEERS ? all : stopped,
				 .value = 1};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		send.iov = &small;
		send.flags |= SLMPM_MORE;
		post(c, send);
		post(c, put);
		send.iov = &whole;
		send.flags &= ~SLMPM_MORE;
		post(c, send);
	}
	post(c, count);
}

static uint64_t counted(slmpm_ctr ctr)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};

	OK(slmpm_ctr_query(ctr, &info));
	return info.done;
}

static void create(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = CHAINS * (3 * ROUNDS + 1)};

	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	OK(slmpm_ctr_create((slmpm_ctx){0}, &all));
	OK(slmpm_ctr_create((slmpm_ctx){0}, &stopped));
	o.cq = cq;
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
}

/* With what stands there is nothing to do. */
static void sleeps(void)
{
	int news = 1;

	for (int i = 0; i < 1000 && news; i++) {
		usleep(1000);
		news = slmpm_arm((slmpm_ctx){0});
	}
	CHECK(!news, "news without end, while nothing can go on");
}

static int chains(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	for (uint32_t p = 0; p < PEERS; p++)
		start(p);
	create();
	OK(kill(pids[0], SIGSTOP));
	actor_await_state(pids[0], "T");
	for (uint32_t c = 0; c < CHAINS; c++)
		post_chain(c);
	OK(slmpm_ctr_wait(all, CHAINS / PEERS * (PEERS - 1), PATIENCE));
	CHECK(counted(stopped) == 0, "%llu chains of the stopped peer have ended",
	      (unsigned long long)counted(stopped));
	sleeps();
	REFUSED(slmpm_wq_drain(wq, 50), SLMPM_ETIMEOUT, "entries");
	OK(kill(pids[0], SIGCONT));
	OK(slmpm_ctr_wait(stopped, CHAINS / PEERS, PATIENCE));
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_wq_destroy(wq));
	for (uint32_t p = 0; p < PEERS; p++)
		join(p, 0);
	return 0;
}

int main(int argc, char **argv)
{
	return over_both(argc, argv, chains);
}
