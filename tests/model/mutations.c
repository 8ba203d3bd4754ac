/* SPDX-License-Identifier: BSD-3-Clause */
/* Which weakening of which site is noticed where. */
#include "tests/model/mutations.h"

#define ACCESS(site, how, scenario) {SITE_##site, WEAK_##how, scenario},
#define RULE(site, scenario)        {SITE_##site, WEAK_OMITTED, scenario},

const struct mutation mutations[] = {
	/* ring: orders */
	ACCESS(commit, RELAXED, "four") ACCESS(commit, OMITTED, "four")
		ACCESS(peek, RELAXED, "four") ACCESS(consumed, RELAXED, "four")
			ACCESS(consumed, OMITTED, "four") ACCESS(consumed_in, RELAXED, "four")
				ACCESS(produced, RELAXED, "four") ACCESS(produced, OMITTED, "four")
					ACCESS(produced_in, RELAXED, "four")
						ACCESS(clear, OMITTED, "stale words of four")
							ACCESS(pad, OMITTED, "four")

	/* ring: rules of the writer */
	RULE(room, "four") RULE(pad_room, "four") RULE(wrap, "four")
		RULE(mark_interior, "stale words of four") RULE(mark_replaced, "aborted")
			RULE(mark_aborted, "aborted") RULE(mark_pad, "stale words of sixteen")
				RULE(clear_successor, "stale words of four") RULE(lag, "four")

	/* ring: rules of the reader */
	RULE(open_tag, "tag 0 on a fresh page") RULE(open_tag, "tag 0 on a cleared word") RULE(
		consider, "four") RULE(live_threshold,
				       "thresholds of four") RULE(live_batch, "thresholds of four")
		RULE(ask, "asked") RULE(gap, "held") RULE(check_tag, "hostile writer")
			RULE(check_length, "hostile writer") RULE(check_length, "hostile overrun")
				RULE(check_pad, "hostile writer") RULE(check_pad, "hostile overrun")
					RULE(check_produced, "hostile writer")
						RULE(check_consumed, "hostile reader")

	/* doorbell */
	ACCESS(bell_fence, OMITTED, "reader sleeps, fences") ACCESS(bell_fence, ACQ_REL,
								    "reader sleeps, fences")
		ACCESS(bell_fence, OMITTED, "writer sleeps, fences") ACCESS(announce_fence, OMITTED,
									    "reader sleeps, fences")
			ACCESS(announce_fence, ACQ_REL, "reader sleeps, fences")
				ACCESS(announce_fence, OMITTED, "writer sleeps, fences") ACCESS(
					bell_order, OMITTED, "reader sleeps, membarrier")
					ACCESS(announce, OMITTED, "reader sleeps, fences")
						ACCESS(retract, OMITTED, "reader sleeps, fences")
	RULE(announce_odd, "announced twice")
	RULE(retract_odd, "announced late")

	/* what their user owes */
	RULE(barrier, "reader sleeps, membarrier") RULE(barrier, "writer sleeps, membarrier") RULE(
		look_again, "reader sleeps, fences") RULE(look_again, "writer sleeps, fences")
		RULE(check_commit, "reader sleeps, fences") RULE(check_waiting,
								 "reader sleeps, fences, two")
			RULE(check_quiet, "reader sleeps, fences, two") RULE(
				check_release, "writer sleeps, fences")
				RULE(check_peek, "writer sleeps, fences") RULE(check_asleep,
									       "both sleep, fences")
					RULE(publish_asleep, "both sleep, fences")
						RULE(publish_waiting, "writer sleeps, fences")
							RULE(publish_closing, "four")};
const unsigned mutation_count = sizeof(mutations) / sizeof(mutations[0]);

const char *weakening_name(enum model_weakening how)
{
	switch (how) {
	case WEAK_RELAXED: return "relaxed";
	case WEAK_ACQ_REL: return "acq_rel";
	case WEAK_OMITTED: return "left out";
	default: return "as it is";
	}
}

enum model_site site_without_mutation(void)
{
	for (int site = SITE_none + 1; site < SITE_hostile; site++) {
		unsigned i = 0;

		/* Relaxed as it is; left out, it would be check_commit. */
		if (site == SITE_asleep_in)
			continue;
		while (i < mutation_count && mutations[i].site != (enum model_site)site)
			i++;
		if (i == mutation_count)
			return (enum model_site)site;
	}
	return SITE_none;
}
