/* SPDX-License-Identifier: BSD-3-Clause */
/* What a look for something else brings in is news for slmpm_arm; what slmpm_progress takes in it
 * counts. */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"

#define HANDLER 7

static const slmpm_ctx none;
static int handled;

/* A word, which the look takes; two messages and a stop, each time it is told to. */
static int role_talk(slmpm_peer host, char **words)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_MORE};
	struct slmpm_iov iov = {(char *)(uintptr_t) "1234", 4};

	(void)words;
	while (slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE) == 0) {
		OK(slmpm_sendv(host, 2, &iov, 1, &how, NULL));
		OK(slmpm_send(host, 2, "5678", 4, PATIENCE));
		raise(SIGSTOP);
	}
	return 0;
}

/* Active messages and messages as each word says: a letter each. Then a stop. */
static int role_write(slmpm_peer host, char **words)
{
	char word[8] = "";

	(void)words;
	while (slmpm_recv(host, 0, word, sizeof(word), NULL, PATIENCE) > 0) {
		for (const char *letter = word; *letter; letter++)
			OK(*letter == 'a' ? slmpm_am(host, HANDLER, NULL, 0, "x", 1, NULL, NULL) :
					    slmpm_send(host, 2, letter, 1, PATIENCE));
		raise(SIGSTOP);
	}
	return 0;
}

static void count(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
	handled++;
}

/* Until arming finds nothing, as a loop would do before it sleeps; and awake again: no bell rings
 * for what comes. */
static void settle(void)
{
	do
		(void)slmpm_progress(none);
	while (slmpm_arm(none) == 1);
	(void)slmpm_progress(none);
}

static void tell(slmpm_peer child, int pid)
{
	OK(kill(pid, SIGCONT));
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_await_state(pid, "T");
}

static void ask(slmpm_peer child, int pid, const char *word)
{
	OK(kill(pid, SIGCONT));
	OK(slmpm_send(child, 0, word, strlen(word) + 1, PATIENCE));
	actor_await_state(pid, "T");
}

/* Packets come out of the ring two at a time. */
static void progress_counts(void)
{
	static const char *const words[] = {"a", "aa", "aaa", "aaaa", "aam", "am", "maa", NULL};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child = actor_spawn("write", NULL, NULL);
	char letter;

	OK(slmpm_peer_query(child, &info));
	OK(slmpm_am_handler(none, HANDLER, count, NULL));
	for (const char *const *word = words; *word; word++) {
		int taken = 0;

		settle();
		handled = 0;
		ask(child, info.pid, *word);
		for (int found = 1; found;) {
			int before = handled;

			found = slmpm_progress(none);
			CHECK(found || handled == before, "%s: %d handled beside", *word,
			      handled - before);
			taken += found;
		}
		CHECK(taken >= (int)strlen(*word), "%s: %d", *word, taken);
		if (strchr(*word, 'm'))
			EXPECT(slmpm_recv(child, 2, &letter, 1, NULL, 0), 1);
	}

	/* Handlers run in a look for a message. */
	settle();
	ask(child, info.pid, "am");
	EXPECT(slmpm_recv(child, 2, &letter, 1, NULL, 0), 1);
	EXPECT(slmpm_arm(none), 1);
	(void)slmpm_progress(none);
	OK(kill(info.pid, SIGCONT));
	actor_join(child, 0);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"talk", role_talk}, {"write", role_write}, {NULL, NULL}};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child;
	slmpm_req req;
	char buf[8];

	actor_begin(argc, argv, roles);
	child = actor_spawn("talk", NULL, NULL);
	OK(slmpm_peer_query(child, &info));
	settle();

	/* into the messages nobody has asked for */
	tell(child, info.pid);
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_arm(none), 1);
	EXPECT(slmpm_recv(child, 2, buf, 8, NULL, 0), 4);
	EXPECT(slmpm_recv(child, 2, buf, 8, NULL, 0), 4);
	settle();

	/* into a receive that was posted */
	OK(slmpm_recvv(child, 2, &(struct slmpm_iov){buf, 8}, 1, NULL, &req));
	settle();
	tell(child, info.pid);
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, 0), -SLMPM_EAGAIN);
	EXPECT(slmpm_arm(none), 1);
	EXPECT(slmpm_test(&req, NULL), 1);
	settle();

	OK(kill(info.pid, SIGCONT));
	actor_join(child, 0);
	progress_counts();
	return 0;
}
