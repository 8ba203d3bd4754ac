/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the selector does to messages: a peer that does not read fills its ring, then the queue, and
 * each time the choice moves, but for strict ones.
 */
#include <signal.h>

#include "tests/lib/settings.h"
#include "tests/lib/slow_reader.h"

#define MANY 64

/* Messages of 16 KiB, below the eager limit, fill the ring beyond its half; those of 32 KiB show
 * what is chosen then. */
static int fill_ring(void *unused)
{
	uint32_t smt = SLMPM_VIA(SLMPM_BY_SMT);
	struct chosen fill[MANY], s[6];
	slmpm_peer reader;
	bool fetches;
	int pid, past, full, hinted;

	(void)unused;
	reader = slow_reader_begin(&pid);
	fetches = slow_reader_fetches(reader);
	past = fetches ? SLMPM_BY_RGET : SLMPM_BY_SMT;
	full = fetches ? SLMPM_REASON_RING : SLMPM_REASON_CALL;
	hinted = fetches ? SLMPM_REASON_RING : SLMPM_REASON_HINT;
	slow_reader_pause(reader, pid);
	chosen_send(reader, KIB(32), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[0]);
	for (int i = 0; i < 40; i++)
		chosen_send(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &fill[i]);
	chosen_send(reader, KIB(32), 0, past, (enum slmpm_reason)full, &s[1]);
	chosen_send(reader, KIB(32), smt, past, (enum slmpm_reason)hinted, &s[2]);
	chosen_send(reader, KIB(32), smt | SLMPM_STRICT, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[3]);
	chosen_send(reader, KIB(32), SLMPM_STRICT, SLMPM_BY_SMT, SLMPM_REASON_STRICT, &s[4]);
	chosen_send(reader, KIB(16), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[5]); /* too short */
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < 6; i++)
		chosen_end(&s[i]);
	for (int i = 0; i < 40; i++)
		chosen_end(&fill[i]);
	chosen_send(reader, KIB(32), 0, SLMPM_BY_SMT, SLMPM_REASON_CALL, &s[0]);
	chosen_end(&s[0]);
	slow_reader_end(reader);
	return 0;
}

/* Credit for few: the others queue up, and when it comes back some go past the ring. */
static int fill_queue(void *unused)
{
	struct chosen s[MANY];
	struct slmpm_done done;
	slmpm_peer reader;
	int pid, past = 0;
	bool fetches;

	(void)unused;
	reader = slow_reader_begin(&pid);
	fetches = slow_reader_fetches(reader);
	slow_reader_pause(reader, pid);
	for (int i = 0; i < MANY; i++)
		chosen_post(reader, KIB(16) + (size_t)(i % 2) * KIB(8), 0, &s[i]);
	CHECK(kill(pid, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < MANY; i++) {
		EXPECT(slmpm_wait(&s[i].req, 1, &done, PATIENCE), 0);
		CHECK(done.status == 0, "ended with %d", done.status);
		past += done.reason == SLMPM_REASON_QUEUE && done.protocol == SLMPM_BY_RGET;
	}
	CHECK(!fetches || past, "none has gone past the queue");
	slow_reader_end(reader);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", slow_reader}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_FETCH_MIN", "64k");
	settings_set("SLMPM_MODE_BULK", "20k");
	settings_set("SLMPM_EAGER_MAX", "16k");
	settings_set("SLMPM_MODE_RING", "50");
	settings_run("a full ring", fill_ring, NULL);
	settings_set("SLMPM_MODE_LINK", "any");
	settings_set("SLMPM_MODE_RING", "101");
	settings_set("SLMPM_MODE_QUEUE", "4");
	settings_set("SLMPM_EAGER_CREDIT", "64k");
	settings_run("a long queue", fill_queue, NULL);
	return 0;
}
