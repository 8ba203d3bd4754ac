/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Every call on messages in random order, both ways at once, beside a model that knows which
 * receive each message belongs to. SLMPM_TEST_SEED repeats a run, SLMPM_TEST_MS lengthens each
 * setting's share.
 */
#include <stdlib.h>

#include "tests/lib/duo.h"
#include "tests/lib/settings.h"

static uint64_t operations;

static void step(struct duo_side *s)
{
	uint32_t stream = duo_below(4) ? duo_below(4) : ANY;

	operations++;
	switch (duo_below(20)) {
	case 0:
	case 1:
	case 2: duo_send_later(s); break;
	case 3: duo_below(2) ? duo_send_burst(s) : duo_send_together(s); break;
	case 4: duo_receive_later(s); break;
	case 5:
	case 6: duo_look_at_receive(s); break;
	case 7: duo_look_at_send(s); break;
	case 8:
	case 9: duo_receive_now(s, stream); break;
	case 10: duo_receive_together(s, stream); break;
	case 11: duo_look(s, stream); break;
	case 12: duo_hold(s, stream); break;
	case 13: duo_let_go(s); break;
	case 14: duo_borrow(s); break;
	case 15:
	case 16: duo_give_back(s); break;
	case 17: duo_take_send_back(s); break;
	case 18: duo_take_receive_back(s); break;
	default: (void)slmpm_progress(duo.ctx); break;
	}
}

/* Everything comes to its end: what is lent is given, what was sent is received. */
static void settle(void)
{
	for (struct duo_side *s = duo.sides; s < duo.sides + 2; s++)
		while (s->helds)
			duo_let_go(s);
	while (duo_lending() || duo.sides[0].sents || duo.sides[1].sents || duo.sides[0].posteds ||
	       duo.sides[1].posteds) {
		for (struct duo_side *s = duo.sides; s < duo.sides + 2; s++) {
			int before = s->posteds;

			duo_give_back(s);
			for (int i = 0; i < 2 * before; i++) {
				duo_look_at_receive(s);
				duo_take_receive_back(s);
			}
			if (duo_first_free(s, ANY) >= 0)
				duo_receive_now(s, ANY);
		}
	}
	for (struct duo_side *s = duo.sides; s < duo.sides + 2; s++) {
		while (s->outgoings)
			duo_report(s, s->outgoings - 1, 0);
		message_none(s->peer, ANY);
	}
}

static void take_figures(struct slmpm_stats *stats)
{
	for (int i = 0; i < 2; i++) {
		OK(slmpm_peer_stats(duo.sides[i].peer, &stats[i], sizeof(stats[i])));
		CHECK(!stats[i].violations && !stats[i].checksum_errors, "violations or damage");
	}
}

static void figures_add_up(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_stats stats[2];

	do { /* a credit may be on its way still */
		(void)slmpm_progress(duo.ctx);
		take_figures(stats);
	} while ((stats[0].sent_packets != stats[1].received_packets ||
		  stats[1].sent_packets != stats[0].received_packets) &&
		 actor_now_ms() < until);
	for (int i = 0; i < 2; i++)
		CHECK(stats[i].sent_messages == stats[!i].received_messages &&
			      stats[i].sent_packets == stats[!i].received_packets,
		      "%llu messages in %llu packets sent, %llu in %llu received",
		      (unsigned long long)stats[i].sent_messages,
		      (unsigned long long)stats[i].sent_packets,
		      (unsigned long long)stats[!i].received_messages,
		      (unsigned long long)stats[!i].received_packets);
}

static int test(const struct setting *s)
{
	const char *ms = getenv("SLMPM_TEST_MS");
	int64_t until = actor_now_ms() + (ms ? atoll(ms) : 100);

	(void)s;
	duo.aloud = getenv("SLMPM_TEST_TRACE");
	OK(slmpm_open(&duo.ctx, NULL));
	actor_pair(duo.ctx, &duo.sides[0].peer, &duo.sides[1].peer);
	duo.packet = message_packet(duo.sides[0].peer);
	duo.eager = message_eager(duo.sides[0].peer);
	do {
		for (int i = 0; i < 1000; i++)
			step(&duo.sides[duo_below(2)]);
		settle();
		figures_add_up();
	} while (actor_now_ms() < until);
	OK(slmpm_shut(duo.ctx, PATIENCE));
	printf("%llu operations\n", (unsigned long long)operations);
	return 0;
}

int main(void)
{
	duo.chance.state = rng_run_seed((uint64_t)actor_now_ms());
	return settings_each(test, 60);
}
