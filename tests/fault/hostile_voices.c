/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that speak for jobs without end: two of them take all places for other jobs'
 * contributors, and one that speaks for a single job is heard all the same; each gets its share.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/settings.h"

#define VOICES 32

/* ---- who speaks, started by slmpm_spawn ------------------------------------------------------ */

/* For job NUMBER, of so many instances. */
static void tell(struct raw_peer *p, uint64_t number, uint32_t instances)
{
	const uint64_t words[8] = {LITTLE_64(instances), LITTLE_64(1)};

	raw_post(p, WIRE_AGGREGATE, 0, number, 0, words, sizeof(words));
}

/* WORDS: the first job's number; instances of each, and how many jobs each time the host asks. */
static int speak(slmpm_peer none, char **words)
{
	uint64_t first = strtoull(words[0], NULL, 10);
	char *at = words[1], reason[112];
	uint32_t instances = (uint32_t)strtoul(at, &at, 10);
	struct raw_peer p;

	(void)none;
	raw_begin(&p, raw_inherited());
	p.hello.features = LITTLE_64(WIRE_FEATURES);
	raw_steps(&p, RAW_HELLO, RAW_UP);
	while (*at) {
		uint64_t jobs = strtoull(at + 1, &at, 10);

		raw_await_packet(&p);
		for (uint64_t i = 0; i < jobs; i++)
			tell(&p, first + i, instances);
		raw_send(&p, 1, "", 1);
		raw_ring_bell(&p);
	}
	raw_hear_end(p.fd, reason);
	CHECK(!*reason, "the end was \"%s\"", reason);
	raw_end(&p);
	return 0;
}

/* ---- who hears ------------------------------------------------------------------------------- */

enum { LIAR, OTHER, HONEST, SPEAKERS };

static slmpm_peer peers[SPEAKERS];

static void ask(int who)
{
	char byte;

	OK(slmpm_send(peers[who], 1, "", 0, PATIENCE));
	EXPECT(slmpm_recv(peers[who], 1, &byte, 1, NULL, PATIENCE), 1);
}

/* As many contributors each; instances tell whose they are. */
static void expect(const char *when, uint32_t least_liar, uint32_t least_other,
		   uint32_t least_honest)
{
	struct slmpm_aggregate m;
	uint32_t n[SPEAKERS];

	OK(slmpm_aggregate(&m, sizeof(m)));
	m.instances--;
	n[LIAR] = m.instances % 100;
	n[OTHER] = m.instances / 100 % 100;
	n[HONEST] = m.instances / 10000;
	printf("%s: %u, %u, %u\n", when, n[LIAR], n[OTHER], n[HONEST]);
	CHECK(n[LIAR] + n[OTHER] + n[HONEST] == m.jobs - 1 && m.jobs <= 1 + VOICES, "%u jobs",
	      m.jobs);
	CHECK(n[LIAR] >= least_liar && n[OTHER] >= least_other && n[HONEST] >= least_honest,
	      "%s: that is not fair", when);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-speak", speak}, {NULL, NULL}};

	settings_one_link("shm"); /* as the raw peer\'s */
	CHECK(!setenv("SLMPM_MONITOR_MS", "3600000", 1), "environment");
	actor_begin(argc, argv, roles);
	peers[LIAR] = actor_spawn("-speak", "1", "1:1000,1000,1000");
	peers[OTHER] = actor_spawn("-speak", "10001", "100:1000,1000");
	peers[HONEST] = actor_spawn("-speak", "20001", "10000:1,5,1000");
	ask(LIAR);
	expect("one liar", VOICES / 2, 0, 0);
	ask(OTHER);
	expect("two", VOICES / 2, VOICES / 2, 0);
	ask(HONEST);
	expect("one contributor beside them", VOICES / 2 - 1, VOICES / 2 - 1, 1);
	ask(LIAR);
	ask(OTHER);
	expect("when they repeat it all", VOICES / 2 - 1, VOICES / 2 - 1, 1);
	ask(HONEST);
	expect("five contributors", 10, 10, 5);
	ask(HONEST);
	expect("a third liar", VOICES / SPEAKERS, VOICES / SPEAKERS, VOICES / SPEAKERS);
	ask(LIAR);
	expect("and again", VOICES / SPEAKERS, VOICES / SPEAKERS, VOICES / SPEAKERS);
	for (int i = 0; i < SPEAKERS; i++) {
		OK(slmpm_close(peers[i], PATIENCE));
		actor_join(peers[i], 0);
	}
	return 0;
}
