/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a page of the monitor lies in memory: sealed, so that its owner alone writes, and read by any
 * process with access to the owner's /proc entry. Each entry is a record of two places.
 */
#ifndef SLMPM_MONITOR_LAYOUT_H
#define SLMPM_MONITOR_LAYOUT_H

#include <slmpm.h>

#include "slmpm/base/places.h"

#define MONITOR_LABEL   "slmpm-monitor"
#define MONITOR_MAGIC   UINT64_C(0x314e4d4d504d4c53) /* "SLMPMMN1" */
#define MONITOR_VERSION 3
#define MONITOR_ENTRIES 8  /* of a page */
#define MONITOR_PAGES   32 /* of a process, that are looked at */

struct monitor_page {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;        /* of the owner, as itself sees it */
	uint32_t entries;    /* that follow */
	uint32_t entry_size; /* bytes */
	uint32_t place_size; /* of each of its two places */
	uint32_t known;      /* bytes of a struct slmpm_monitor, as the owner knows it */
	/* Behind the entries one for the job's aggregate. */
	uint32_t aggregate_place, aggregate_known;
	uint32_t absent; /* a bit for each entry that has no memory yet, and was never used */
	uint32_t none;
	uint64_t zero[2];
};
_Static_assert(MONITOR_ENTRIES <= 32, "each has a bit of absent");
_Static_assert(sizeof(struct monitor_page) == 64, "page layout");

struct monitor_entry {
	_Atomic uint64_t turn; /* its lowest bit: the whole place; 0: never used */
	uint64_t zero[7];      /* the two places follow */
};
_Static_assert(sizeof(struct monitor_entry) == 64, "page layout");
_Static_assert(sizeof(struct slmpm_monitor) % 8 == 0 && sizeof(struct slmpm_aggregate) % 8 == 0,
	       "page layout");

#endif
