/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 150 */
/*
 * A get that ends at its deadline because its peer has stopped, at any moment of it: the buffer is
 * the caller's again, whatever comes when the peer goes on. Where the peer's engine has it in hand
 * the call says so, and the buffer is the caller's once a flush has returned. By every way there
 * is.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

/* With a thread sanitizer each byte that is set is several of its own. */
#ifdef __SANITIZE_THREAD__
#define LONG ((size_t)4 << 20)
#else
#define LONG ((size_t)16 << 20)
#endif
#define MINE  0xa5
#define STOPS 6

struct cell {
	const char *what, *fabric, *rma;
	bool asked, mapped; /* the peer has an engine; and maps the caller's buffer */
};

static const slmpm_ctx none;

static int role_owner(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_rmem theirs = {0};
	slmpm_mem mem;
	void *base;

	(void)words;
	OK(slmpm_mem_alloc(none, LONG, SLMPM_READ_WRITE, &mem, &base));
	actor_fill(base, 1, LONG);
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(host, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(host, &key, &theirs));
	while (slmpm_recv(host, 2, NULL, 0, NULL, PATIENCE) == 0)
		OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	return 0;
}

static slmpm_peer owner;
static slmpm_rmem rmem;
static unsigned char *mapped;

static void meet(const struct cell *c)
{
	char *with[] = {(char *)(uintptr_t)(c->asked ? "SLMPM_ENGINE=thread" : "SLMPM_ENGINE=none"),
			NULL};
	const struct slmpm_spawn_options options = {
		.size = sizeof(options), .flags = SLMPM_SPAWN_DIE_WITH_HOST, .envp = with};
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	owner = actor_spawn_with(&options, "owner", NULL, NULL);
	OK(slmpm_mem_alloc(none, LONG, SLMPM_READ_WRITE, &mem, &base));
	mapped = base;
	OK(slmpm_mem_key(mem, owner, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(owner, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(owner, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(owner, &key, &rmem));
}

/* It is stopped US microseconds from now; 0: already. */
static pid_t stop_in(int pid, int us)
{
	pid_t stopper;

	if (!us) {
		kill(pid, SIGSTOP);
		actor_await_state(pid, "T");
		return 0;
	}
	stopper = fork();
	if (!stopper) {
		usleep((useconds_t)us);
		kill(pid, SIGSTOP);
		_exit(0);
	}
	return stopper;
}

static bool is_mine(const unsigned char *at)
{
	return at[0] == MINE && !memcmp(at, at + 1, LONG - 1);
}

/* What was on its way has come. */
static void come(void)
{
	int64_t until = actor_now_ms() + 20;

	OK(slmpm_send(owner, 2, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(owner, 2, NULL, 0, NULL, PATIENCE), 0);
	while (actor_now_ms() < until)
		CHECK(slmpm_progress(none) >= 0, "%s", slmpm_error_detail());
}

static int get_and_stop(const struct cell *c, int pid, unsigned char *to, int us)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 120};
	pid_t stopper = stop_in(pid, us);
	int rc = slmpm_get(rmem, 0, to, LONG, &how, NULL);

	CHECK(!rc || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EBUSY, "%s: %s", c->what,
	      slmpm_error_detail());
	CHECK(rc != -SLMPM_EBUSY || strstr(slmpm_error_detail(), "slmpm_flush"), "%s: %s", c->what,
	      slmpm_error_detail());
	if (rc == -SLMPM_ETIMEOUT)
		memset(to, MINE, LONG);
	if (stopper)
		CHECK(waitpid(stopper, NULL, 0) == stopper, "the stopper");
	kill(pid, SIGCONT);
	if (rc == -SLMPM_EBUSY)
		OK(slmpm_flush(owner, PATIENCE));
	if (rc)
		memset(to, MINE, LONG);
	come();
	CHECK(!rc || is_mine(to), "%s: written %d us into a get that had ended (%d)", c->what, us,
	      rc);
	return rc;
}

static int by(void *arg)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	const struct cell *c = arg;
	int ended[2] = {0, 0};
	unsigned char *to;

	meet(c);
	to = c->mapped ? mapped : malloc(LONG);
	CHECK(to, "no memory");
	memset(to, 0, LONG);
	OK(slmpm_peer_query(owner, &info));
	for (int i = 0; i < STOPS; i++) {
		int rc = get_and_stop(c, info.pid, to, i * (c->asked ? 400 : 700));

		ended[0] += rc == -SLMPM_ETIMEOUT;
		ended[1] += rc == -SLMPM_EBUSY;
		OK(slmpm_get(rmem, 0, to, LONG, NULL, NULL));
		CHECK(actor_filled(to, 1, LONG), "%s: the next get", c->what);
	}
	printf("%-24s %d at the deadline, %d in the peer's hands\n", c->what, ended[0], ended[1]);
	CHECK(c->asked || ended[0], "%s: none has met a stopped peer", c->what);
	OK(slmpm_close(owner, PATIENCE));
	actor_join(owner, 0);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", role_owner}, {NULL, NULL}};
	static const struct cell cells[] = {
		{"shm, by packets", "shm", "ring", false, false},
		{"shm, active messages", "shm", "am", false, false},
		{"shm, by tag", "shm", "tag", false, false},
		{"tcp, by packets", "tcp", "auto", false, false},
		{"tcp, active messages", "tcp", "am", false, false},
		{"tcp, by tag", "tcp", "tag", false, false},
		{"the peer's engine, mapped", "shm", "auto", true, true},
		{"the peer's engine", "shm", "auto", true, false},
	};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	settings_set("SLMPM_ASK_MIN", "1m");
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		settings_set("SLMPM_FABRIC", cells[i].fabric);
		settings_set("SLMPM_RMA", cells[i].rma);
		settings_run(cells[i].what, by, &cells[i]);
	}
	return 0;
}
