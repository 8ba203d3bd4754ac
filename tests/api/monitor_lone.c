/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* Messages that each come behind a silence are measured all the same, by echoes and samples. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define SILENCE_US 100000

static char bytes[8];

static int answer(slmpm_peer host, char **words)
{
	(void)words;
	while (slmpm_recv(host, 1, bytes, sizeof(bytes), NULL, -1) >= 0)
		OK(slmpm_send(host, 1, bytes, sizeof(bytes), PATIENCE));
	return 0;
}

static bool is_measured(slmpm_peer peer)
{
	struct slmpm_monitor m;

	OK(slmpm_monitor(peer, &m, sizeof(m)));
	return m.echoes && (m.timing[SLMPM_BY_SMT][0][SLMPM_WARM].samples ||
			    m.timing[SLMPM_BY_SMT][0][!SLMPM_WARM].samples);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"answer", answer}, {NULL, NULL}};
	int64_t until;
	slmpm_peer peer;

	CHECK(!setenv("SLMPM_MONITOR_MS", "100", 1), "environment");
	actor_begin(argc, argv, roles);
	peer = actor_spawn("answer", NULL, NULL);
	until = actor_now_ms() + PATIENCE;
	while (!is_measured(peer)) {
		CHECK(actor_now_ms() < until, "nothing has been measured");
		OK(slmpm_send(peer, 1, bytes, sizeof(bytes), PATIENCE));
		EXPECT(slmpm_recv(peer, 1, bytes, sizeof(bytes), NULL, PATIENCE), sizeof(bytes));
		usleep(SILENCE_US);
	}
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}
