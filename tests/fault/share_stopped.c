/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 160 */
/*
 * A target that is stopped within a piece of a put that both sides copy. The put ends at its
 * deadline and says why; what the target still copies later overtakes nothing that was put after
 * it; when it goes on, or has died, all is as before. Without a deadline the put ends with the
 * target.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/settings.h"
#include "tests/lib/share_pair.h"

#define SIZE     (1u << 20)
#define DEADLINE 300              /* ms */
#define WITHIN   (2 * SHARE_PAGE) /* of the first piece: where the target stops */
#define SHORT    1000
#define TRIES    20
#define CROWD    100

enum { ORDER = 1, DONE };
enum what { CHECK_IT, STOP_WITHIN, END };

struct order {
	uint32_t what;
	uint64_t seed, offset, length;
};

/* ---- the target ------------------------------------------------------------------------------ */

static unsigned char *trap;

static void stop(int signal)
{
	if (!trap)
		_exit(128 + signal);
	(void)mprotect(trap, SHARE_PAGE, PROT_READ | PROT_WRITE);
	trap = NULL;
	(void)raise(SIGSTOP);
}

static int target(slmpm_peer host, char **words)
{
	struct sigaction action = {.sa_handler = stop};
	struct order o = {.what = CHECK_IT};
	struct share_side s;
	slmpm_ctx ctx;

	(void)words;
	OK(slmpm_default(&ctx));
	OK(sigaction(SIGSEGV, &action, NULL));
	share_side_open(&s, ctx, host, SIZE);
	while (o.what != END) {
		EXPECT(slmpm_recv(host, ORDER, &o, sizeof(o), NULL, PATIENCE), sizeof(o));
		if (o.what == STOP_WITHIN) {
			trap = s.landed + WITHIN;
			OK(mprotect(trap, SHARE_PAGE, PROT_READ));
		} else if (o.what == CHECK_IT) {
			CHECK(actor_filled(s.landed + o.offset, o.seed, o.length), "%d bytes at %d",
			      (int)o.length, (int)o.offset);
		}
		OK(slmpm_send(host, DONE, NULL, 0, PATIENCE));
	}
	share_side_close(&s);
	return 0;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static const struct slmpm_how in_time = {.size = sizeof(in_time), .timeout_ms = DEADLINE};

static void tell(const struct share_side *s, uint32_t what, uint64_t seed, uint64_t offset,
		 uint64_t length)
{
	struct order o = {what, seed, offset, length};

	OK(slmpm_send(s->peer, ORDER, &o, sizeof(o), PATIENCE));
	share_side_await(s, DONE);
}

/* It is in its piece, and goes no further. Asked within a signal's handler, too. */
static bool is_stopped(void *arg)
{
	char path[64], line[256], *after;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(const pid_t *)arg);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	after = strrchr(line, ')');
	return after && after[1] == ' ' && after[2] == 'T';
}

static void begin(struct share_side *s)
{
	slmpm_peer peer = actor_spawn("target", NULL, NULL);
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	share_side_open(s, ctx, peer, SIZE);
}

/* Beside load a wait tells that others want the processor: then some puts are not shared. */
static void let_crowd_pass(const struct share_side *s)
{
	for (int i = 0; i < CROWD; i++)
		OK(slmpm_put(s->to, SIZE / 2, s->from, SIZE / 16, NULL, NULL));
}

/* What a put says whose target stops within its piece. */
static int put_and_stop(struct share_side *s, const struct slmpm_how *how)
{
	int64_t until = actor_now_ms() + PATIENCE / 4;
	pid_t pid = pid_of(s->peer);
	int rc = 0;

	tell(s, STOP_WITHIN, 0, 0, 0);
	let_crowd_pass(s);
	for (int i = 0; i < TRIES && !is_stopped(&pid) && actor_now_ms() < until; i++) {
		share_gate(s->from + SIZE - SHARE_PAGE, is_stopped, &pid);
		rc = slmpm_put(s->to, 0, s->from, SIZE, how, NULL);
		share_gate_open();
	}
	if (rc == 0 && !is_stopped(&pid))
		_exit(TEST_SKIPPED); /* the scene: its target never had a processor in time */
	return rc;
}

/* Nothing that is put now is overtaken by what the target copies when it goes on. */
static void put_behind(struct share_side *s)
{
	struct slmpm_how there = {sizeof(there), SLMPM_REMOTE, 0, DEADLINE, {0}, {0}, 0};
	struct slmpm_stats before, after;
	slmpm_req req;

	OK(slmpm_peer_stats(s->peer, &before, sizeof(before)));
	memset(s->from, 0xdd, SIZE);
	actor_fill(s->from, 2, SHORT);
	OK(slmpm_put(s->to, WITHIN + 10, s->from, SHORT, NULL, NULL));
	actor_fill(s->from + SHORT, 3, SHORT);
	OK(slmpm_put(s->to, WITHIN + 5000, s->from + SHORT, SHORT, NULL, &req));
	REFUSED(slmpm_put(s->to, SIZE / 2, s->from, SHORT, &there, NULL), SLMPM_ETIMEOUT,
		"suspect");
	OK(kill(pid_of(s->peer), SIGCONT));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	OK(slmpm_flush(s->peer, PATIENCE));
	tell(s, CHECK_IT, 2, WITHIN + 10, SHORT);
	tell(s, CHECK_IT, 3, WITHIN + 5000, SHORT);
	OK(slmpm_peer_stats(s->peer, &after, sizeof(after)));
	EXPECT(after.shared_puts, before.shared_puts);
}

static bool is_past(void *time)
{
	return actor_now_ms() > *(const int64_t *)time;
}

/* Until one is shared. */
static void put_again(struct share_side *s)
{
	struct slmpm_stats before, now;
	int64_t until = actor_now_ms() + PATIENCE, soon;
	uint64_t seed = 10;

	OK(slmpm_peer_stats(s->peer, &before, sizeof(before)));
	do {
		let_crowd_pass(s);
		actor_fill(s->from, ++seed, SIZE);
		soon = actor_now_ms() + 1;
		share_gate(s->from + SIZE - SHARE_PAGE, is_past, &soon);
		OK(slmpm_put(s->to, 0, s->from, SIZE, NULL, NULL));
		share_gate_open();
		memset(s->from, 0xdd, SIZE);
		tell(s, CHECK_IT, seed, 0, SIZE);
		OK(slmpm_peer_stats(s->peer, &now, sizeof(now)));
	} while (now.shared_puts == before.shared_puts && actor_now_ms() < until);
	CHECK(now.shared_puts > before.shared_puts, "nothing is shared any more");
}

static int at_deadline(void *unused)
{
	struct share_side s;
	int64_t began;

	(void)unused;
	begin(&s);
	for (int i = 0; i < 2; i++) {
		actor_fill(s.from, 1, SIZE);
		began = actor_now_ms();
		REFUSED(put_and_stop(&s, &in_time), SLMPM_ETIMEOUT, "suspect");
		CHECK(actor_now_ms() - began >= DEADLINE - 1, "too early");
		put_behind(&s);
		put_again(&s);
	}
	tell(&s, END, 0, 0, 0);
	actor_join(s.peer, 0);
	share_side_close(&s);
	return 0;
}

/* Kills whom it finds stopped. */
static int kill_stopped(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	actor_await_state(pid, "T");
	OK(kill(pid, SIGKILL));
	return 0;
}

static int without_deadline(void *unused)
{
	struct share_side s;
	pid_t pid, killer;

	(void)unused;
	begin(&s);
	pid = pid_of(s.peer);
	killer = child_start(kill_stopped, &pid, 20);
	(void)put_and_stop(&s, NULL);
	CHECK(child_wait(killer) == 0, "it was not killed");
	EXPECT(slmpm_flush(s.peer, PATIENCE), -SLMPM_EDEAD);
	EXPECT(slmpm_join(s.peer, NULL, PATIENCE), 128 + SIGKILL);
	share_side_close(&s);
	return 0;
}

/* Who is about to leave has no time for another's copy; nor has who does not wait at all. */
static int alone(void *unused)
{
	const struct slmpm_how at_once = {.size = sizeof(at_once), .timeout_ms = 10};
	struct slmpm_stats before, after;
	struct share_side s;
	slmpm_req req;

	(void)unused;
	begin(&s);
	OK(slmpm_peer_stats(s.peer, &before, sizeof(before)));
	actor_fill(s.from, 5, SIZE);
	OK(slmpm_put(s.to, 0, s.from, SIZE, &at_once, NULL));
	OK(slmpm_put(s.to, 0, s.from, SIZE, NULL, &req));
	OK(slmpm_wait(&req, 1, NULL, 0));
	OK(slmpm_peer_stats(s.peer, &after, sizeof(after)));
	EXPECT(after.shared_puts, before.shared_puts);
	tell(&s, CHECK_IT, 5, 0, SIZE);
	tell(&s, END, 0, 0, 0);
	actor_join(s.peer, 0);
	share_side_close(&s);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"target", target}, {NULL, NULL}};
	static const struct {
		const char *name;
		int (*body)(void *);
	} scenes[] = {
		{"at the deadline", at_deadline},
		{"without one", without_deadline},
		{"alone", alone},
	};
	int failed = 0, skipped = 0;

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	setenv("SLMPM_SHARE", "always", 1);
	setenv("SLMPM_SHARE_MIN", "32k", 1);
	setenv("SLMPM_WAIT", "spin", 1); /* the target is there in time, if it has a processor */
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		int rc = child_run(scenes[i].body, NULL, 50 * (unsigned)actor_slow());

		printf("%s: %s\n", scenes[i].name,
		       rc == TEST_SKIPPED ? "nothing was shared beside so much load" :
		       rc                 ? "FAILED" :
					    "ok");
		skipped |= rc == TEST_SKIPPED;
		failed |= rc && rc != TEST_SKIPPED;
	}
	return failed ? 1 : skipped ? TEST_SKIPPED : 0;
}
