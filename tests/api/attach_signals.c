/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* Signals amid puts into attached memory: none of them is taken for the end of the peer. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIGNALS 2000
#define WORD    8

enum { ENDS = 1 }; /* streams */

static volatile sig_atomic_t signals;

static void note(int number)
{
	(void)number;
	signals++;
}

static int lends(slmpm_peer host, char **words)
{
	static unsigned char memory[4096];
	slmpm_mem mem;

	(void)words;
	OK(slmpm_mem_register((slmpm_ctx){0}, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_share(mem, host, SLMPM_READ_WRITE, PATIENCE));
	EXPECT(slmpm_recv(host, ENDS, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"lends", lends}, {NULL, NULL}};
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = note, .sa_flags = SA_RESTART};
	struct slmpm_mem_info info = {.size = sizeof(info)};
	unsigned char word[WORD] = {0};
	slmpm_rmem there;
	slmpm_peer peer;

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	peer = actor_spawn("lends", NULL, NULL);
	OK(slmpm_mem_accept(peer, &there, PATIENCE));
	OK(slmpm_put(there, 0, word, WORD, NULL, NULL));
	OK(slmpm_rmem_query(there, &info));
	if (strcmp(info.path, "attach"))
		test_skip("cross-memory attach is refused here");
	CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0,
	      "no timer");
	while (signals < SIGNALS) {
		memset(word, signals & 0xff, WORD);
		OK(slmpm_put(there, 0, word, WORD, NULL, NULL));
	}
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0, "the timer stays");
	OK(slmpm_send(peer, ENDS, NULL, 0, PATIENCE));
	actor_join(peer, 0);
	return 0;
}
