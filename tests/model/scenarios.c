/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios: each small enough to be searched to its end. */
#include "tests/model/sides.h"

#include <stddef.h>
#include <string.h>

/* An epoch that keeps every tag from 0, and two totals that soon wrap around. */
#define EPOCH     (UINT32_C(1) << 20)
#define NEAR_2_32 UINT64_C(0xfffffffb)
#define NEAR_2_64 UINT64_C(0xfffffffffffffffb)

const struct scenario scenarios[] = {
	/* name, N, segments sent, what varies, threshold, batch, lag, start, epoch */
	{"two", 2, 8, LENGTHS | COUNT, 1, 1, 0, 0, EPOCH},
	{"four", 4, 9, LENGTHS | COUNT, 2, 1, 0, 0, EPOCH},
	{"four, store by store", 4, 9, LENGTHS | COUNT | EACH_STORE, 2, 1, 0, 0, EPOCH},
	{"eight", 8, 13, LENGTHS, 6, 2, 4, 0, EPOCH},
	{"bytes of two", 2, 2, BYTES, 1, 1, 2, 0, EPOCH},
	{"bytes of four", 4, 2, BYTES, 2, 1, 4, 0, EPOCH},

	{"stale words of four", 4, 9, LENGTHS | MIMIC, 2, 1, 4, 0, EPOCH},
	{"stale words of eight", 8, 23, SECOND_LAP | MIMIC, 4, 4, 8, 0, EPOCH},
	{"stale words of sixteen", 16, 47, SECOND_LAP, 4, 4, 16, 0, EPOCH},
	{"shortened", 4, 6, LENGTHS | SHORTEN | MIMIC, 2, 1, 4, 0, EPOCH},
	{"aborted", 4, 5, LENGTHS | ABORT | MIMIC, 2, 1, 4, 0, EPOCH},
	{"tags around 2^32", 4, 9, LENGTHS | MIMIC, 2, 1, 4, NEAR_2_32, EPOCH},
	{"totals around 2^64", 4, 9, LENGTHS | MIMIC, 2, 1, 4, NEAR_2_64, EPOCH},
	{"tag 0 on a fresh page", 4, 7, LENGTHS, 2, 1, 4, 0, 2},
	{"tag 0 on a cleared word", 4, 9, LENGTHS, 2, 1, 4, NEAR_2_32, 2},

	{"thresholds of two", 2, 7, LENGTHS | THRESHOLDS, 0, 0, 0, 0, EPOCH},
	{"thresholds of four", 4, 9, LENGTHS | THRESHOLDS, 0, 0, 0, 0, EPOCH},
	{"thresholds of eight", 8, 10, LENGTHS | THRESHOLDS, 0, 0, 8, 0, EPOCH},
	{"thresholds of eight, from 3", 8, 9, LENGTHS | THRESHOLDS, 0, 0, 8, 3, EPOCH},
	{"thresholds of eight, from 5", 8, 10, LENGTHS | THRESHOLDS, 0, 0, 8, 5, EPOCH},
	{"thresholds, writer sleeps", 4, 6, LENGTHS | THRESHOLDS | WRITER_SLEEPS, 0, 0, 4, 0,
	 EPOCH},
	{"thresholds, both sleep", 4, 3, LENGTHS | THRESHOLDS | WRITER_SLEEPS | READER_SLEEPS, 0, 0,
	 4, 2, EPOCH},
	{"held, writer sleeps", 4, 8, HOLD | LENGTHS | WRITER_SLEEPS, 4, 4, 4, 0, EPOCH},
	{"held, both sleep", 4, 4, HOLD | READER_SLEEPS | WRITER_SLEEPS | MEMBARRIER, 4, 4, 4, 0,
	 EPOCH},
	{"held", 4, 8, LENGTHS | HOLD, 2, 1, 4, 0, EPOCH},
	{"held, eight", 8, 10, HOLD, 6, 2, 8, 0, EPOCH},

	{"reader sleeps, fences, two", 2, 5, READER_SLEEPS | MORE, 2, 2, 2, 0, EPOCH},
	{"reader sleeps, fences", 4, 5, LENGTHS | READER_SLEEPS, 4, 4, 4, 0, EPOCH},
	{"writer sleeps, fences", 4, 9, LENGTHS | WRITER_SLEEPS, 4, 4, 4, 0, EPOCH},
	{"both sleep, fences, two", 2, 4, READER_SLEEPS | WRITER_SLEEPS, 2, 2, 2, 0, EPOCH},
	{"both sleep, fences", 4, 4, LENGTHS | READER_SLEEPS | WRITER_SLEEPS, 4, 4, 4, 0, EPOCH},
	{"reader sleeps, membarrier, two", 2, 5, READER_SLEEPS | MORE | MEMBARRIER, 2, 2, 2, 0,
	 EPOCH},
	{"reader sleeps, membarrier", 4, 5, LENGTHS | READER_SLEEPS | MEMBARRIER, 4, 4, 4, 0,
	 EPOCH},
	{"writer sleeps, membarrier", 4, 9, LENGTHS | WRITER_SLEEPS | MEMBARRIER, 4, 4, 4, 0,
	 EPOCH},
	{"both sleep, membarrier, two", 2, 4, READER_SLEEPS | WRITER_SLEEPS | MEMBARRIER, 2, 2, 2,
	 0, EPOCH},
	{"both sleep, membarrier", 4, 4, LENGTHS | READER_SLEEPS | WRITER_SLEEPS | MEMBARRIER, 4, 4,
	 4, 0, EPOCH},

	{"killed", 4, 8, LENGTHS | KILL | MIMIC, 2, 1, 4, 0, EPOCH},
	{"killed, shortened", 4, 5, LENGTHS | KILL | SHORTEN | MIMIC, 2, 1, 2, 0, EPOCH},
	{"killed, reader sleeps", 4, 4, LENGTHS | KILL | READER_SLEEPS, 4, 4, 4, 0, EPOCH},
	{"killed, membarrier", 4, 4, LENGTHS | KILL | READER_SLEEPS | MEMBARRIER, 4, 4, 4, 0,
	 EPOCH},

	{"announced late", 2, 4, READER_SLEEPS | LATE, 2, 2, 2, 0, EPOCH},
	{"announced twice", 2, 3, READER_SLEEPS | TWICE | MEMBARRIER, 2, 2, 2, 0, EPOCH},
	{"a ring each way, fences", 2, 3, DUPLEX, 2, 2, 2, 0, EPOCH},
	{"a ring each way, membarrier", 2, 2, DUPLEX | MEMBARRIER, 2, 2, 2, 0, EPOCH},

	{"a favoured owner and a guest", 0, 3, LOCK, 0, 0, 0, 0, 0},

	{"hostile writer", 4, 0, HOSTILE_WRITER, 2, 1, 0, 0, EPOCH},
	{"hostile overrun", 2, 0, HOSTILE_WRITER | HOLD, 2, 1, 0, 0, EPOCH},
	{"hostile reader", 4, 0, HOSTILE_READER, 2, 1, 0, 0, EPOCH},
};
const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

const struct scenario *scenario_named(const char *name)
{
	for (unsigned i = 0; i < scenario_count; i++) {
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	}
	return NULL;
}
