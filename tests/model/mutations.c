/* SPDX-License-Identifier: BSD-3-Clause */
/* Which weakening of which site is noticed where. */
#include "tests/model/mutations.h"

const struct mutation mutations[] = {
	/* ring: orders */
	{SITE_commit, WEAK_RELAXED, "four"},
	{SITE_commit, WEAK_OMITTED, "four"},
	{SITE_peek, WEAK_RELAXED, "four"},
	{SITE_consumed, WEAK_RELAXED, "four"},
	{SITE_consumed, WEAK_OMITTED, "four"},
	{SITE_consumed_in, WEAK_RELAXED, "four"},
	{SITE_produced, WEAK_RELAXED, "four"},
	{SITE_produced, WEAK_OMITTED, "four"},
	{SITE_produced_in, WEAK_RELAXED, "four"},
	{SITE_clear, WEAK_OMITTED, "stale words of four"},
	{SITE_pad, WEAK_OMITTED, "four"},

	/* ring: rules of the writer */
	{SITE_room, WEAK_OMITTED, "four"},
	{SITE_pad_room, WEAK_OMITTED, "four"},
	{SITE_wrap, WEAK_OMITTED, "four"},
	{SITE_mark_interior, WEAK_OMITTED, "stale words of four"},
	{SITE_mark_replaced, WEAK_OMITTED, "aborted"},
	{SITE_mark_aborted, WEAK_OMITTED, "aborted"},
	{SITE_mark_pad, WEAK_OMITTED, "stale words of sixteen"},
	{SITE_clear_successor, WEAK_OMITTED, "stale words of four"},
	{SITE_ahead_room, WEAK_OMITTED, "stale words of four"},
	{SITE_lag, WEAK_OMITTED, "four"},

	/* ring: rules of the reader */
	{SITE_open_tag, WEAK_OMITTED, "tag 0 on a fresh page"},
	{SITE_open_tag, WEAK_OMITTED, "tag 0 on a cleared word"},
	{SITE_consider, WEAK_OMITTED, "four"},
	{SITE_live_threshold, WEAK_OMITTED, "thresholds of four"},
	{SITE_live_batch, WEAK_OMITTED, "thresholds of four"},
	{SITE_gap, WEAK_OMITTED, "held"},
	{SITE_settle_threshold, WEAK_OMITTED, "both sleep, fences"},
	{SITE_check_tag, WEAK_OMITTED, "hostile writer"},
	{SITE_check_length, WEAK_OMITTED, "hostile writer"},
	{SITE_check_length, WEAK_OMITTED, "hostile overrun"},
	{SITE_check_pad, WEAK_OMITTED, "hostile writer"},
	{SITE_check_pad, WEAK_OMITTED, "hostile overrun"},
	{SITE_check_produced, WEAK_OMITTED, "hostile writer"},
	{SITE_check_consumed, WEAK_OMITTED, "hostile reader"},

	/* doorbell */
	{SITE_bell_fence, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_bell_fence, WEAK_ACQ_REL, "reader sleeps, fences"},
	{SITE_bell_fence, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_announce_fence, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_announce_fence, WEAK_ACQ_REL, "reader sleeps, fences"},
	{SITE_announce_fence, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_announce_fence, WEAK_OMITTED, "both sleep, membarrier"},
	{SITE_announce_fence, WEAK_ACQ_REL, "both sleep, membarrier"},
	{SITE_announced_fence, WEAK_OMITTED, "both sleep, membarrier"},
	{SITE_asleep_seen, WEAK_RELAXED, "both sleep, membarrier"},
	{SITE_announce, WEAK_RELAXED, "both sleep, membarrier"},
	{SITE_retract_fence, WEAK_OMITTED, "both sleep, membarrier"},
	{SITE_retract_fence, WEAK_ACQ_REL, "both sleep, membarrier"},
	{SITE_bell_order, WEAK_OMITTED, "reader sleeps, membarrier"},
	{SITE_announce, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_retract, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_announce_odd, WEAK_OMITTED, "announced twice"},
	{SITE_retract_odd, WEAK_OMITTED, "announced late"},

	/* what their user has deferred */
	{SITE_barrier, WEAK_OMITTED, "reader sleeps, membarrier"},
	{SITE_barrier, WEAK_OMITTED, "writer sleeps, membarrier"},
	{SITE_look_again, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_look_again, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_check_commit, WEAK_OMITTED, "reader sleeps, fences"},
	{SITE_check_waiting, WEAK_OMITTED, "reader sleeps, fences, two"},
	{SITE_check_quiet, WEAK_OMITTED, "reader sleeps, fences, two"},
	{SITE_check_release, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_check_peek, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_check_asleep, WEAK_OMITTED, "both sleep, fences"},
	{SITE_publish_asleep, WEAK_OMITTED, "thresholds, both sleep"},
	{SITE_publish_waiting, WEAK_OMITTED, "writer sleeps, fences"},
	{SITE_publish_closing, WEAK_OMITTED, "four"},
};
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
