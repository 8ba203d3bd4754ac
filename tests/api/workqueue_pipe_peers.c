/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 240 */
/*
 * PIPE entries between processes: one that dies ends the entry, which says which; an engine passes
 * messages on while the application sleeps; from one fabric to the other.
 */
#include <signal.h>

#include "tests/api/workqueue_pipe.h"

#define WORDS 50

/* Sends without end; or until it is through. */
static int role_sends(slmpm_peer host, char **words)
{
	(void)words;
	for (uint64_t i = 0; i < WORDS; i++)
		message_send(host, IN, i, 300, 0);
	actor_tell(host, 1);
	while (pause() < 0)
		;
	return 0;
}

static int role_takes(slmpm_peer host, char **words)
{
	(void)words;
	for (uint64_t i = 0; i < WORDS; i++)
		(void)message_take(host, OUT, i, 300);
	actor_tell(host, 2);
	while (pause() < 0)
		;
	return 0;
}

static void dies(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	CHECK(kill(info.pid, SIGKILL) == 0, "kill");
}

/* One of both dies, all that was sent having been forwarded. */
static int death(void *which)
{
	OK(slmpm_default(&ctx));
	OK(slmpm_cq_create(ctx, &cq));
	create(0);
	up = actor_spawn("sends", NULL, NULL);
	down = actor_spawn("takes", NULL, NULL);
	post(piping(4, PIECE, UINT64_C(1) << 32));
	actor_hear(up, 1);
	actor_hear(down, 2);
	dies(which ? up : down);
	piped(-SLMPM_EDEAD, WORDS, which ? up : down);
	dies(which ? down : up);
	return 0;
}

/* By the engine's thread, while the application sleeps in pause(); from a peer back to it. */
static void on_signal(int signal)
{
	(void)signal;
}

static int role_relays(slmpm_peer host, char **words)
{
	sigset_t usr1;
	int got;

	(void)words;
	signal(SIGUSR1, on_signal);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	up = down = host;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	create(0);
	post(piping(4, PIECE, PIECES));
	actor_tell(host, 3);
	CHECK(sigwait(&usr1, &got) == 0, "sigwait");
	for (int ms = 0; look().done == 0 && ms < PATIENCE; ms++) /* which makes no progress */
		usleep(1000);
	CHECK(look().done == 1, "it is done without us");
	piped(0, PIECES, host);
	return 0;
}

static int asleep(void *fabric)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	size_t piece = PIECE;
	slmpm_peer relay;
	struct flow f;

	settings_set("SLMPM_FABRIC", fabric);
	settings_set("SLMPM_ENGINE", "thread");
	OK(slmpm_default(&ctx));
	relay = actor_spawn("relays", NULL, NULL);
	actor_hear(relay, 3);
	source = target = relay;
	f = flow_start(PIECES, same, &piece);
	flow_end(&f);
	OK(slmpm_peer_query(relay, &info));
	CHECK(kill(info.pid, SIGUSR1) == 0, "kill");
	actor_join(relay, 0);
	return 0;
}

static int dead(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(death, i ? &ctx : NULL, 25) == 0, "death %d", i);
	return 0;
}

/* ---- from one fabric to the other ------------------------------------------------------------ */

#define LONGEST ((size_t)1 << 20) /* it comes when it is asked for */
#define GUESTS  2 /* the source and the target, each a process that comes over its fabric */

static int urls[GUESTS][2]; /* pipes */

static size_t long_now_and_then(int i)
{
	return i % 10 == 7 ? LONGEST : (size_t)(i * 37 % 3000);
}

static slmpm_peer visit(int which, const char *fabric)
{
	slmpm_peer host;
	char url[400];

	setenv("SLMPM_FABRIC", fabric, 1);
	CHECK(read(urls[which][0], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	return host;
}

static int guest_sends(void *fabric)
{
	slmpm_peer host = visit(0, fabric);

	for (int i = 0; i < PIECES; i++)
		message_send(host, IN, (uint64_t)i, long_now_and_then(i), 0);
	actor_hear(host, 1);
	return 0;
}

static int guest_takes(void *fabric)
{
	slmpm_peer host = visit(1, fabric);

	actor_hear(host, 2);
	for (int i = 0; i < PIECES; i++)
		(void)message_take(host, OUT, (uint64_t)i, long_now_and_then(i));
	return 0;
}

static slmpm_peer welcome(int which, const char *fabric)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct slmpm_link_info link = {.size = sizeof(link)};
	char url[400] = "shm:", own[64];
	slmpm_listener listener;
	slmpm_peer guest;
	bool tcp = !strcmp(fabric, "tcp");

	snprintf(own, sizeof(own), "shm:pipe-%d-%d", (int)getpid(), which);
	OK(slmpm_listen(&listener, ctx, tcp ? "tcp://127.0.0.1:0" : own));
	OK(slmpm_listener_query(listener, &info));
	snprintf(url, sizeof(url), "%s%s%s", tcp ? info.url : own, tcp ? "#" : "", info.secret);
	CHECK(write(urls[which][1], url, sizeof(url)) == (ssize_t)sizeof(url), "the address");
	OK(slmpm_accept(listener, &guest, PATIENCE));
	OK(slmpm_unlisten(listener));
	OK(slmpm_link_query(guest, 0, &link));
	CHECK(!strcmp(link.fabric, fabric), "%s, not %s", link.fabric, fabric);
	return guest;
}

static char *fabric_of(uintptr_t way)
{
	return way & 1 ? "tcp" : "shm";
}

static int mixed(void *ways)
{
	char *from = fabric_of((uintptr_t)ways), *to = fabric_of((uintptr_t)ways >> 1);
	pid_t guests[GUESTS];

	unsetenv("SLMPM_LINKS");
	unsetenv("SLMPM_FABRIC");
	for (int i = 0; i < GUESTS; i++)
		CHECK(pipe(urls[i]) == 0, "pipe");
	guests[0] = child_start(guest_sends, from, 90);
	guests[1] = child_start(guest_takes, to, 90);
	OK(slmpm_default(&ctx));
	OK(slmpm_cq_create(ctx, &cq));
	create(0);
	up = welcome(0, from);
	down = welcome(1, to);
	CHECK(message_eager(up) < LONGEST && message_eager(down) < LONGEST, "what is long");
	post(piping(4, LONGEST, PIECES));
	actor_tell(down, 2);
	piped(0, PIECES, down);
	actor_tell(up, 1);
	for (int i = 0; i < GUESTS; i++)
		EXPECT(child_wait(guests[i]), 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"sends", role_sends},
					     {"takes", role_takes},
					     {"relays", role_relays},
					     {NULL, NULL}};

	actor_begin(argc, argv, roles);
	over_both(dead);
	over_both(asleep);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(child_run(mixed, (void *)i, 100) == 0, "%s to %s: see above", fabric_of(i),
		      fabric_of(i >> 1));
	return 0;
}
