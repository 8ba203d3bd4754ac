/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/*
 * One listener and many processes that come, talk and go: in order, abruptly, in the middle, or
 * without a word. Whoever talks to its end is heard to the end, the others harm nobody, and nothing
 * of them stays. Over TCP who does not close may take along what he said last.
 * SLMPM_TEST_SECONDS says for how long.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/links.h"
#include "tests/lib/random.h"
#include "tests/lib/way.h"

#define AT_ONCE 16
#define MS      20000
#define LONG    ((size_t)60000)

enum manner { IN_ORDER, AT_ONCE_GONE, KILLED, IN_THE_MIDDLE, MUTE, MANNERS };

struct word { /* what a comer says first: what will follow */
	uint32_t manner, count;
	uint64_t seed;
};

static const slmpm_ctx none = {0};
static char url[64];
static int ready[2];
static unsigned char buf[LONG];
static uint64_t seen[MANNERS];

static size_t length_of(struct rng *g)
{
	return rng_one_in(g, 20) ? LONG : rng_below(g, 3000);
}

/* ---- one that comes ------------------------------------------------------------------------- */

/* Connects without knowing how to. */
static int mutter(struct rng *g)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "slmpm/%u/%s", getuid(),
			 url + 4);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&sa,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					     (size_t)n)) == 0,
	      "connect");
	if (rng_one_in(g, 2))
		(void)!send(fd, buf, rng_below(g, 300), MSG_NOSIGNAL);
	if (rng_one_in(g, 2))
		(void)poll(NULL, 0, 5);
	close(fd);
	return 0;
}

static int come(void *arg)
{
	struct rng g = {(uint64_t)(uintptr_t)arg};
	struct word word = {.manner = rng_below(&g, MANNERS), .seed = rng_next(&g)};
	struct rng said = {word.seed};
	slmpm_peer host;

	if (word.manner == MUTE)
		return mutter(&g);
	word.count = 1 + rng_below(&g, 50);
	OK(slmpm_connect(&host, none, url, MS));
	OK(slmpm_send(host, 0, &word, sizeof(word), MS));
	for (uint32_t i = 0; i < word.count; i++) {
		size_t n = length_of(&said);

		if (word.manner == IN_THE_MIDDLE && i == word.count / 2) {
			slmpm_req req;
			struct slmpm_iov iov = {buf, LONG};

			OK(slmpm_sendv(host, 1, &iov, 1, NULL, &req));
			_exit(0);
		}
		memset(buf, (int)i, n);
		OK(slmpm_send(host, 1, buf, n, MS));
	}
	if (word.manner == KILLED)
		(void)raise(SIGKILL);
	if (word.manner == AT_ONCE_GONE)
		_exit(0);
	OK(slmpm_recv(host, 2, buf, sizeof(buf), NULL, MS) == 2 ? 0 : 1);
	OK(slmpm_close(host, MS));
	return 0;
}

/* ---- the listener --------------------------------------------------------------------------- */

/* How many of its messages must come. */
static uint32_t least_of(const struct word *word)
{
	if (word->manner == IN_ORDER)
		return word->count;
	if (!way_maps()) /* what a peer's machine has not got yet ends with a process */
		return 0;
	return word->manner == IN_THE_MIDDLE ? word->count / 2 : word->count;
}

/* Reads one to its end; the next is already knocking. */
static void hear(slmpm_peer peer)
{
	struct word word;
	struct rng said;
	int64_t n = slmpm_recv(peer, 0, &word, sizeof(word), NULL, MS);
	uint32_t heard = 0;

	if (n == -SLMPM_EDEAD && !way_maps()) {
		OK(slmpm_close(peer, MS));
		return;
	}
	CHECK(n == sizeof(word) && word.manner < MUTE, "%s", slmpm_error_detail());
	said.state = word.seed;
	seen[word.manner]++;
	while (heard < word.count) {
		size_t length = length_of(&said);

		n = slmpm_recv(peer, 1, buf, sizeof(buf), NULL, MS);
		if (n < 0 || (word.manner == IN_THE_MIDDLE && heard == word.count / 2 && n == LONG))
			break; /* cut, or where packets are that long, one of them */
		CHECK((size_t)n == length, "%lld bytes instead of %zu", (long long)n, length);
		CHECK(!n || (buf[0] == (unsigned char)heard && buf[n - 1] == (unsigned char)heard),
		      "damaged");
		heard++;
	}
	CHECK(heard >= least_of(&word), "of %u messages %u came: %s", word.count, heard,
	      slmpm_error_detail());
	if (word.manner == IN_ORDER)
		OK(slmpm_send(peer, 2, "ok", 2, MS));
	n = slmpm_recv(peer, 1, buf, sizeof(buf), NULL, MS);
	CHECK(n == (word.manner == IN_ORDER ? -SLMPM_ECLOSED : -SLMPM_EDEAD), "%u: %s", word.manner,
	      slmpm_error_detail());
	OK(slmpm_close(peer, MS));
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir, "no /proc");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Events are for who wants them; here they must not pile up. */
static void forget_events(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	while (slmpm_next_event(none, &event, 0) == 1)
		;
}

static void reap(pid_t *pids, bool wait)
{
	for (int i = 0; i < AT_ONCE; i++) {
		int status;

		if (!pids[i] || waitpid(pids[i], &status, wait ? 0 : WNOHANG) != pids[i])
			continue;
		CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
		      "a comer ended with %x", status);
		pids[i] = 0;
	}
}

/* Children first, the library's state afterwards: they start with none. */
static int listen_to_all(void *arg)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	uint64_t end = now_ms() + 1000 * (seconds ? strtoull(seconds, NULL, 10) : 2);
	slmpm_listener listener;
	slmpm_peer peer, other;
	int before;

	(void)arg;
	actor_pair(none, &peer, &other);
	links_warm(none, peer, other);
	forget_events();
	OK(slmpm_listen(&listener, none, url));
	CHECK(write(ready[1], "x", 1) == 1, "no one to tell");
	before = open_descriptors();
	while (slmpm_accept(listener, &peer, now_ms() < end ? MS : 1000) == 0) {
		hear(peer);
		forget_events();
	}
	CHECK(now_ms() >= end, "%s", slmpm_error_detail());
	(void)slmpm_accept(listener, &peer, 0); /* forgets those that never were */
	CHECK(open_descriptors() == before, "%d descriptors instead of %d", open_descriptors(),
	      before);
	OK(slmpm_unlisten(listener));
	for (int i = 0; i < MUTE; i++) {
		printf("%llu ", (unsigned long long)seen[i]);
		CHECK(seen[i], "nobody of manner %d", i);
	}
	printf("came in order, left at once, were killed, died in the middle\n");
	return 0;
}

int main(void)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	uint64_t seed = rng_run_seed(1);
	uint64_t end;
	pid_t pids[AT_ONCE] = {0}, listener;
	char byte;

	setenv("SLMPM_EAGER_MAX", "32k",
	       1); /* the LONG message shall not go before it is asked for */
	snprintf(url, sizeof(url), "shm:stress-comers-%d", (int)getpid());
	CHECK(pipe(ready) == 0, "pipe");
	listener = child_start(listen_to_all, NULL, 300);
	CHECK(read(ready[0], &byte, 1) == 1, "no listener");
	end = now_ms() + 1000 * (seconds ? strtoull(seconds, NULL, 10) : 2);
	while (now_ms() < end) {
		for (int i = 0; i < AT_ONCE; i++)
			if (!pids[i])
				pids[i] = child_start(come, (void *)(uintptr_t)(++seed * 7919), 60);
		(void)poll(NULL, 0, 1);
		reap(pids, false);
	}
	reap(pids, true);
	CHECK(child_wait(listener) == 0, "the listener");
	return 0;
}
