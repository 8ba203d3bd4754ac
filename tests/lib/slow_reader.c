/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader whose ring its partner can fill. */
#include "tests/lib/slow_reader.h"

#include <signal.h>
#include <string.h>

#define PAUSE 2 /* a stream */

int slow_reader(slmpm_peer host, char **words)
{
	static unsigned char got[KIB(64)];
	struct slmpm_done done;

	(void)words;
	for (uint32_t next = 0;;) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);

		if (n == -SLMPM_ECLOSED)
			return 0;
		CHECK(n >= 0, "%s", slmpm_error_detail());
		if (done.stream == PAUSE)
			CHECK(raise(SIGSTOP) == 0, "not stopped");
		else if (done.imm) /* some may have been refused */
			CHECK(done.imm > next && actor_filled(got, 7, (size_t)n),
			      "message %u behind number %u", done.imm, next);
		next = done.imm ? done.imm : next;
	}
}

void slow_reader_pause(slmpm_peer reader, int pid)
{
	OK(slmpm_send(reader, PAUSE, "p", 1, PATIENCE));
	actor_await_state(pid, "T");
}

bool slow_reader_fetches(slmpm_peer reader)
{
	struct slmpm_done done;
	struct chosen s;

	chosen_post(reader, 100, SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_STRICT, &s);
	EXPECT(slmpm_wait(&s.req, 1, &done, PATIENCE), 0);
	if (done.status == 0)
		CHECK(done.protocol == SLMPM_BY_RGET && done.reason == SLMPM_REASON_STRICT,
		      "strict");
	else
		CHECK(done.status == -SLMPM_ENOTSUP && strstr(slmpm_error_detail(), "protocol"),
		      "%d: %s", done.status, slmpm_error_detail());
	return done.status == 0;
}

slmpm_peer slow_reader_begin(int *pid)
{
	slmpm_peer reader = actor_spawn("reader", NULL, NULL);
	struct slmpm_peer_info info = {.size = sizeof(info)};

	actor_fill(chosen_bytes, 7, sizeof(chosen_bytes));
	OK(slmpm_send(reader, 1, chosen_bytes, 8, PATIENCE));
	OK(slmpm_peer_query(reader, &info));
	*pid = info.pid;
	return reader;
}

void slow_reader_end(slmpm_peer reader)
{
	OK(slmpm_close(reader, PATIENCE));
	actor_join(reader, 0);
}
