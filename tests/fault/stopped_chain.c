/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 90 */
/*
 * One queue with 64 chains over four peers, of which one is stopped amidst long messages: the
 * chains of the others all end, and the process sleeps meanwhile; once the stopped one goes on, its
 * chains end, too.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define PEERS  4
#define CHAINS 64
#define ROUNDS 4
#define SMALL  64
#define LONG   (1 << 20)

static slmpm_peer peers[PEERS];
static slmpm_rmem far[PEERS];
static slmpm_ctr all, stopped; /* ends of chains; of the stopped peer's */
static slmpm_cq cq;
static slmpm_wq wq;
static unsigned char bytes[LONG];
static uint64_t words[CHAINS];

static int role_target(slmpm_peer host, char **arguments)
{
	static unsigned char data[LONG];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	(void)arguments;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, CHAINS * 8, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 0, &key, sizeof(key), PATIENCE));
	while (slmpm_recv(host, 1, data, sizeof(data), NULL, -1) >= 0)
		;
	return 0;
}

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
	struct slmpm_iov small = {bytes, SMALL}, whole = {bytes, LONG}, word = {&words[c], 8};
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

static int start(uint32_t p)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	peers[p] = actor_spawn("target", NULL, NULL);
	EXPECT(slmpm_recv(peers[p], 0, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peers[p], &key, &far[p]));
	OK(slmpm_peer_query(peers[p], &info));
	return info.pid;
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
	int pid = 0;

	settings_set("SLMPM_FABRIC", fabric);
	for (uint32_t p = PEERS; p-- > 0;)
		pid = start(p);
	create();
	OK(kill(pid, SIGSTOP));
	actor_await_state(pid, "T");
	for (uint32_t c = 0; c < CHAINS; c++)
		post_chain(c);
	OK(slmpm_ctr_wait(all, CHAINS / PEERS * (PEERS - 1), PATIENCE));
	CHECK(counted(stopped) == 0, "%llu chains of the stopped peer have ended",
	      (unsigned long long)counted(stopped));
	sleeps();
	REFUSED(slmpm_wq_drain(wq, 50), SLMPM_ETIMEOUT, "entries");
	OK(kill(pid, SIGCONT));
	OK(slmpm_ctr_wait(stopped, CHAINS / PEERS, PATIENCE));
	OK(slmpm_wq_drain(wq, PATIENCE));
	OK(slmpm_wq_destroy(wq));
	for (uint32_t p = 0; p < PEERS; p++)
		EXPECT(slmpm_join(peers[p], NULL, PATIENCE), 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"target", role_target}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		settings_run(fabrics[i], chains, fabrics[i]);
	return 0;
}
