/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads in one runtime: each waits for its own, one sleeps for all. */
#include "tests/dacs/pair.h"

#include <pthread.h>

#define THREADS 6
#define TURNS   200

/* ---- roles ---- */

/* Sends back each word on the stream it came on, from as many threads as the host has. */
static void *echo_thread(void *arg)
{
	uint32_t stream = (uint32_t)(uintptr_t)arg, word;

	do {
		OK(pair_recv(pair_parent(), stream, &word, 4, DACS_BYTE_SWAP_WORD));
		OK(pair_send(pair_parent(), stream, &word, 4, DACS_BYTE_SWAP_WORD));
	} while (word);
	return NULL;
}

static void run_threads(void *(*run)(void *), int count)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) == 0, "thread");
	for (int i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "join");
}

static int role_echo(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	run_threads(echo_thread, THREADS);
	OK(dacs_exit());
	return 0;
}

/* Sends each mailbox word back until 0. */
static int role_mail(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	do {
		OK(dacs_mailbox_read(&word, UP));
		OK(dacs_mailbox_write(&word, UP));
	} while (word);
	OK(dacs_exit());
	return 0;
}

/* Never writes, and ends when its host has closed. */
static int role_silent(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mailbox_write(&word, UP));
	(void)dacs_mailbox_read(&word, UP);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static struct child partner, partners[4];

static void *ping(void *arg)
{
	uint32_t stream = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = TURNS; i-- > 0;) {
		uint32_t word = i ? i * 64 + stream : 0, back = 99;

		OK(pair_send(partner, stream, &word, 4, DACS_BYTE_SWAP_WORD));
		OK(pair_recv(partner, stream, &back, 4, DACS_BYTE_SWAP_WORD));
		CHECK(back == word, "stream %u: %u instead of %u", stream, back, word);
	}
	return NULL;
}

static int threads_share_a_partner(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(DACS_INIT_FLAGS_NONE));
	partner = pair_start("echo", NULL);
	run_threads(ping, THREADS);
	pair_end(partner, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Each thread starts, talks to, and reaps a child of its own. */
static void *own_child(void *arg)
{
	struct child c = pair_start("mail", NULL);
	int32_t status;

	for (uint32_t i = TURNS; i-- > 0;) {
		uint32_t word = i;

		OK(dacs_mailbox_write(&word, AT(c)));
		OK(dacs_mailbox_read(&word, AT(c)));
		CHECK(word == i, "%u instead of %u", word, i);
	}
	EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_FINISHED);
	OK(dacs_release_de_list(1, &c.de));
	(void)arg;
	return NULL;
}

static int threads_have_children(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	run_threads(own_child, THREADS);
	OK(dacs_exit());
	return 0;
}

static void *blocked(void *arg)
{
	int i = (int)(uintptr_t)arg;
	int32_t status;
	uint32_t word;
	dacs_wid_t wid;

	switch (i % 3) {
	case 0: EXPECT(dacs_mailbox_read(&word, AT(partners[i])), DACS_ERR_NOT_INITIALIZED); break;
	case 1: EXPECT(dacs_de_wait(AT(partners[i]), &status), DACS_ERR_NOT_INITIALIZED); break;
	case 2:
		OK(dacs_wid_reserve(&wid));
		OK(dacs_recv(&word, 4, AT(partners[i]), 1, wid, DACS_BYTE_SWAP_WORD));
		OK(dacs_mailbox_write(&word, AT(partners[3]))); /* tells the exiting thread */
		EXPECT(dacs_wait(wid), DACS_ERR_NOT_INITIALIZED);
		break;
	}
	return NULL;
}

/* dacs_exit while others are blocked ends their calls. */
static int exit_ends_blocked_calls(int argc, char **argv)
{
	pthread_t threads[3];
	int32_t room = 1;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (int i = 0; i < 4; i++) {
		partners[i] = pair_start("silent", NULL);
		OK(dacs_mailbox_read(&word, AT(partners[i])));
	}
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, blocked, (void *)(uintptr_t)i) == 0,
		      "thread");
	/* The third has started once its word has made the fourth child end. */
	while (dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(partners[3]), &room) == DACS_SUCCESS)
		;
	OK(dacs_exit());
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "join");
	return 0;
}

static const struct pair_entry roles[] = {
	{"echo", role_echo}, {"mail", role_mail}, {"silent", role_silent}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"threads share a partner", threads_share_a_partner},
	{"threads have children", threads_have_children},
	{"exit ends blocked calls", exit_ends_blocked_calls},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
