/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/*
 * With SLMPM_ENGINE=thread programs go on while every thread of the application sleeps in read(),
 * in a context that was not opened for threads; and nothing wakes up while nothing arrives.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define WORDS   200
#define MOST    7      /* relays: eight processes */
#define QUIET   200000 /* us of a measurement */
#define TRIES   20
#define WAKE_US 1000 /* of the processor in that time */
#define WAKES   2    /* of the thread that measures */

enum { WORD = 1, SAID };

static int ends[2]; /* of a pipe */

static void wake(int signal)
{
	ssize_t n = write(ends[1], "", 1);

	(void)signal, (void)n;
}

static void sleep_in_read(void)
{
	char byte;
	ssize_t n;

	do
		n = read(ends[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	CHECK(n == 1, "read");
}

/* Each word comes, is waited for, and goes back: no call of the application's between. */
static void post_relay(slmpm_wq wq, slmpm_ctr came, slmpm_peer host, uint64_t *words)
{
	for (int i = 0; i < WORDS; i++) {
		struct slmpm_iov place = {&words[i], sizeof(words[i])};
		struct slmpm_wr wr = {.size = sizeof(wr),
				      .op = SLMPM_OP_RECV,
				      .flags = SLMPM_SILENT,
				      .channel = 1,
				      .peer = host,
				      .stream = WORD,
				      .iov = &place,
				      .iov_count = 1,
				      .ctr = came};
		struct slmpm_wr wait = {.size = sizeof(wait),
					.op = SLMPM_OP_WAIT,
					.flags = SLMPM_SILENT | SLMPM_RELATIVE,
					.value = 1,
					.ctr = came};

		EXPECT(slmpm_post(wq, &wr, 1), 1);
		EXPECT(slmpm_post(wq, &wait, 1), 1);
		wr.op = SLMPM_OP_SEND;
		wr.channel = 0;
		wr.ctr.id = 0;
		EXPECT(slmpm_post(wq, &wr, 1), 1);
	}
}

static long switches(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return u.ru_nvcsw + u.ru_nivcsw;
}

static uint64_t processor_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* What it takes of the processor, and how often it is woken, while nothing arrives: the least of
 * some times, for others may compute here. Once with a sanitizer: it
 * is not looked at. */
static void measure(uint64_t said[2])
{
	const struct timespec while_ = {.tv_nsec = QUIET * 1000L};
	const int tries = actor_slow() > 1 ? 1 : TRIES;

	said[0] = said[1] = UINT64_MAX;
	for (int i = 0; i < tries && (said[0] > WAKE_US || said[1] > WAKES); i++) {
		uint64_t used = processor_us(), woken = (uint64_t)switches();

		nanosleep(&while_, NULL);
		said[0] = processor_us() - used;
		said[1] = (uint64_t)switches() - woken;
	}
}

static int role_relays(slmpm_peer host, char **words)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .depth = 3 * WORDS};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	static uint64_t places[WORDS];
	uint64_t said[2];
	slmpm_ctr came;
	slmpm_wq wq;

	(void)words;
	CHECK(pipe(ends) == 0, "pipe");
	signal(SIGUSR1, wake);
	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	OK(slmpm_ctr_create((slmpm_ctx){0}, &came));
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	post_relay(wq, came, host, places);
	measure(said);
	OK(slmpm_send(host, SAID, said, sizeof(said), PATIENCE));
	sleep_in_read();
	OK(slmpm_wq_query(wq, &info));
	CHECK(info.done == 3 * WORDS && info.by_engine >= 2 * WORDS,
	      "%llu are done, %llu begun by the engine", (unsigned long long)info.done,
	      (unsigned long long)info.by_engine);
	OK(slmpm_wq_destroy(wq));
	return 0;
}

static void relay(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	uint64_t word, said[2];

	EXPECT(slmpm_recv(peer, SAID, said, sizeof(said), NULL, PATIENCE), sizeof(said));
	/* Sanitizers have threads of their own. */
	CHECK(actor_slow() > 1 || (said[0] <= WAKE_US && said[1] <= WAKES),
	      "%llu us of the processor and %llu switches while nothing arrived",
	      (unsigned long long)said[0], (unsigned long long)said[1]);
	for (uint64_t i = 0; i < WORDS; i++) {
		OK(slmpm_send(peer, WORD, &i, sizeof(i), PATIENCE));
		if (i % 7) /* some by turns, some at once */
			continue;
		usleep((useconds_t)(i % 3 * 1000));
	}
	for (uint64_t i = 0; i < WORDS; i++) {
		EXPECT(slmpm_recv(peer, WORD, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		CHECK(word == i, "%llu for %llu", (unsigned long long)word, (unsigned long long)i);
	}
	OK(slmpm_peer_query(peer, &info));
	CHECK(kill(info.pid, SIGUSR1) == 0, "kill");
}

struct run {
	const char *fabric;
	int relays;
};

static int run(void *arg)
{
	const struct run *r = arg;
	slmpm_peer peers[MOST];

	settings_set("SLMPM_FABRIC", r->fabric);
	settings_set("SLMPM_ENGINE", "thread");
	for (int i = 0; i < r->relays; i++)
		peers[i] = actor_spawn("relays", NULL, NULL);
	for (int i = 0; i < r->relays; i++)
		relay(peers[i]);
	for (int i = 0; i < r->relays; i++)
		actor_join(peers[i], 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"relays", role_relays}, {NULL, NULL}};
	static struct run runs[] = {{"shm", 1}, {"shm", MOST}, {"tcp", 1}, {"tcp", MOST}};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 4; i++)
		CHECK(child_run(run, &runs[i], 25) == 0, "%d over %s: see above", runs[i].relays,
		      runs[i].fabric);
	return 0;
}
