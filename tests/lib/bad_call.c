/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers in every state (bad_call.h). */
#include "tests/lib/bad_call.h"

#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#define SECONDS 30

struct with with;

static char byte;

void says(int line, const char *what, int64_t rc, int error, const char *word)
{
	const char *text = slmpm_strerror(error), *detail = slmpm_error_detail();

	CHECK(rc == -error, "line %d: %s: %lld instead of -%d (%s)", line, what, (long long)rc,
	      error, detail);
	CHECK(!strncmp(detail, text, strlen(text)), "line %d: %s: \"%s\"", line, what, detail);
	CHECK(strstr(detail, word), "line %d: %s: \"%s\" does not say \"%s\"", line, what, detail,
	      word);
}

/* ---- the other side ------------------------------------------------------------------------- */

/* Holds the connection, or closes it when it is told to. */
static int accelerator(void)
{
	const slmpm_ctx forged = {UINT64_C(5) << 32};
	slmpm_peer host;
	char text[8];
	int64_t n;

	SAYS(slmpm_parent_in(forged, &host), SLMPM_EHANDLE, "no such context");
	OK(slmpm_parent(&host));
	SAYS(slmpm_join(host, NULL, 0), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_kill(host, 0), SLMPM_ESTATE, "not started by slmpm_spawn");
	OK(slmpm_send(host, 1, "up", 2, -1));
	n = slmpm_recv(host, 7, text, sizeof(text), NULL, -1);
	if (n < 0)
		return n == -SLMPM_ECLOSED ? 0 : 1;
	OK(slmpm_close(host, MS));
	return 0;
}

static slmpm_peer start(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .ctx = with.mine};
	slmpm_peer peer;
	char text[8];

	OK(slmpm_spawn(&peer, "/proc/self/exe", NULL, &o));
	CHECK(slmpm_recv(peer, 1, text, sizeof(text), NULL, MS) == 2, "%s", slmpm_error_detail());
	return peer;
}

static void set_up(void)
{
	OK(slmpm_default(&with.mine));
	OK(slmpm_open(&with.stale_ctx, NULL));
	OK(slmpm_shut(with.stale_ctx, 0));
	with.live = start();
	with.stale = start();
	OK(slmpm_close(with.stale, MS));
	CHECK(slmpm_join(with.stale, NULL, MS) == 0, "%s", slmpm_error_detail());
	with.closed = start();
	OK(slmpm_send(with.closed, 7, "close", 5, MS));
	SAYS(slmpm_recv(with.closed, 0, &byte, 1, NULL, MS), SLMPM_ECLOSED, "accelerator");
	with.dead = start();
	OK(slmpm_kill(with.dead, 0));
	SAYS(slmpm_recv(with.dead, 0, &byte, 1, NULL, MS), SLMPM_EDEAD, "signal 9");
}

/* join(0) must not find it running. */
static void await_end(slmpm_peer ending)
{
	struct slmpm_peer_info peer = {.size = sizeof(peer)};
	siginfo_t info;

	OK(slmpm_peer_query(ending, &peer));
	CHECK(waitid(P_PID, (id_t)peer.pid, &info, WEXITED | WNOWAIT) == 0, "waitid");
}

void bad_begin(void)
{
	if (getenv("SLMPM_PARENT"))
		exit(accelerator());
	alarm(SECONDS);
	set_up();
	await_end(with.closed);
	await_end(with.dead);
}

void bad_try(const struct bad_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool first = cases[i].exists != NULL;

		for (size_t k = 0; k < i; k++)
			first &= cases[k].body != cases[i].body;
		if (first)
			cases[i].body();
	}
}

void bad_end(void)
{
	OK(slmpm_send(with.live, 7, "close", 5, MS));
	CHECK(slmpm_join(with.live, NULL, MS) == 0, "%s", slmpm_error_detail());
	OK(slmpm_shut(with.mine, MS));
}
