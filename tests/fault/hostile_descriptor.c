/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * A peer of the same user that sends a descriptor which nobody can close: of a file of its own file
 * system, which does not answer to that. At each place where descriptors arrive, and before. Its
 * victim goes on, with others; SIGKILL ends it, and its name is free again, all while that file
 * system lives.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/mire.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/raw_region.h"

#define NOBODY 65534
#define NAME   "hostile-descriptor"

static struct {
	_Atomic int listening, through, no_file, server;
} * common;

static void become_nobody(void)
{
	CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
		      prctl(PR_SET_PDEATHSIG, SIGKILL) == 0,
	      "another user");
}

/* ---- the offender ---------------------------------------------------------------------------- */

static struct raw_peer *begin(struct raw_peer *p, enum raw_step upto)
{
	raw_begin(p, raw_connect(NAME));
	p->hello.features = LITTLE_64(WIRE_FEATURES);
	if (upto != RAW_HELLO)
		raw_steps(p, RAW_HELLO, upto);
	return p;
}

static void before_the_hello(int fd)
{
	struct raw_peer p;

	begin(&p, RAW_HELLO);
	(void)raw_say_packet(p.fd, WIRE_BYE, &(struct wire_bye){.error = 0},
			     sizeof(struct wire_bye), fd);
	raw_end(&p);
}

static void with_the_hello(int fd)
{
	struct raw_peer p;

	begin(&p, RAW_HELLO);
	(void)raw_say_packet(p.fd, WIRE_HELLO, &p.hello, sizeof(p.hello), fd);
	raw_end(&p);
}

static void with_the_nonce(int fd)
{
	struct wire_nonce nonce = {.nonce = 0};
	struct raw_peer p;

	begin(&p, RAW_NONCE);
	(void)raw_say_packet(p.fd, WIRE_NONCE, &nonce, sizeof(nonce), fd);
	raw_end(&p);
}

static void as_a_ring(int fd)
{
	struct raw_peer p;

	begin(&p, RAW_OFFER);
	(void)raw_say_round(&p, 0, &p.offer, sizeof(p.offer), fd);
	raw_end(&p);
}

static void as_many(int fd)
{
	struct wire_bye bye = {.error = 0};
	int fds[6] = {fd, fd, fd, fd, fd, fd};
	struct raw_peer p;

	begin(&p, RAW_UP);
	(void)raw_say(p.fd, &bye, sizeof(bye), fds, 6);
	raw_end(&p);
}

static void as_a_region(int fd)
{
	struct raw_peer p;
	struct wire_grant g;

	raw_region_begin(&p, NAME, WIRE_FEATURE_MEMORY);
	g = raw_grant_of(1);
	(void)raw_say_packet(p.fd, WIRE_GRANT, &g, sizeof(g), fd);
	raw_region_leave(&p);
}

static void as_an_area(int fd)
{
	struct wire_area area = {.area = LITTLE_32(1), .size = LITTLE_64(65536)};
	struct raw_peer p;

	begin(&p, RAW_UP);
	(void)raw_say_packet(p.fd, WIRE_AREA, &area, sizeof(area), fd);
	raw_end(&p);
}

static void as_a_link(int fd)
{
	struct wire_round link = {.round = 0};
	struct raw_peer p;

	begin(&p, RAW_UP);
	(void)raw_say_packet(p.fd, WIRE_ROUND, &link, sizeof(link), fd);
	raw_end(&p);
}

static void (*const places[])(int fd) = {
	before_the_hello, with_the_hello, with_the_nonce, as_a_ring,
	as_many,          as_a_region,    as_an_area,     as_a_link,
};
#define PLACES (sizeof(places) / sizeof(*places))

static int offend(void *arg)
{
	int fd = mire_file(MIRE_FLUSH);

	(void)arg;
	if (fd < 0) {
		common->no_file = 1;
		return 0;
	}
	common->server = mire_server();
	become_nobody();
	while (!common->listening)
		usleep(1000);
	for (size_t i = 0; i < PLACES; i++) {
		struct raw_peer honest;

		places[i](fd);
		/* Who is stuck answers nobody. */
		begin(&honest, RAW_UP);
		raw_end(&honest);
		common->through++;
	}
	pause();
	return 0;
}

/* ---- its victim ------------------------------------------------------------------------------ */

static int suffer(void *arg)
{
	slmpm_ctx ctx;
	slmpm_listener listener;
	slmpm_peer peer;

	(void)arg;
	become_nobody();
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "shm:" NAME));
	common->listening++;
	for (;;) {
		if (slmpm_accept(listener, &peer, 10) == 0)
			(void)slmpm_close(peer, 0);
		(void)slmpm_progress(ctx);
	}
}

static void kill_one(pid_t pid, const char *what)
{
	int64_t until = actor_now_ms() + 5000 * actor_slow();

	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		CHECK(actor_now_ms() < until, "%s", what);
		usleep(1000);
	}
}

/* The name is free: another can listen at it. */
static void listen_again(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	int before = common->listening;

	while (common->listening == before) {
		pid_t next = child_start(suffer, NULL, 60);

		while (common->listening == before && waitpid(next, NULL, WNOHANG) == 0)
			usleep(1000);
		if (common->listening != before)
			kill_one(next, "nor the next one");
		CHECK(actor_now_ms() < until, "its name is still taken");
	}
}

static int meet(void *arg)
{
	pid_t offender = child_start(offend, NULL, 60), victim = child_start(suffer, NULL, 60);
	int64_t until = actor_now_ms() + 40000;

	(void)arg;
	while (!common->no_file && common->through < (int)PLACES) {
		CHECK(actor_now_ms() < until && waitpid(victim, NULL, WNOHANG) == 0 &&
			      waitpid(offender, NULL, WNOHANG) == 0,
		      "stuck at place %d", common->through);
		usleep(1000);
	}
	kill_one(victim, "the victim cannot be killed");
	if (!common->no_file)
		listen_again();
	if (common->server)
		kill(common->server, SIGKILL);
	kill_one(offender, "the offender cannot be killed");
	return 0;
}

int main(void)
{
	if (geteuid() != 0) {
		printf("only root can mount a file system of its own, and be another user\n");
		return 77;
	}
	common = child_common(sizeof(*common));
	EXPECT(child_run(meet, NULL, 90), 0);
	if (common->no_file) {
		printf("no file system of its own can be had here\n");
		return 77;
	}
	return 0;
}
