/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a page of the monitor lies in memory: sealed, so that its owner alone writes, and read by any
 * process with access to the owner's /proc entry. Each entry has two places; `turn` says which is
 * whole, also when the owner ends, or stops, while it writes the other. Words are atomic; the
 * fences are a sequence lock's.
 */
#ifndef SLMPM_MONITOR_LAYOUT_H
#define SLMPM_MONITOR_LAYOUT_H

#include <slmpm.h>
#include <stdatomic.h>
#include <string.h>

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
	uint64_t zero[3];
};
_Static_assert(sizeof(struct monitor_page) == 64, "page layout");

struct monitor_entry {
	_Atomic uint64_t turn; /* its lowest bit: the whole place; 0: never used */
	uint64_t zero[7];      /* the two places follow */
};
_Static_assert(sizeof(struct monitor_entry) == 64, "page layout");
_Static_assert(sizeof(struct slmpm_monitor) % 8 == 0 && sizeof(struct slmpm_aggregate) % 8 == 0,
	       "page layout");

/* Place N of E. */
static inline void *monitor_place(struct monitor_entry *e, uint64_t n, size_t place_size)
{
	return (unsigned char *)(e + 1) + (n & 1) * place_size;
}

/* SIZE bytes, in words of which each is stored, or loaded, as one. */
static inline void words_store(void *to, const void *from, size_t size)
{
	_Atomic uint64_t *words = to;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t word;

		memcpy(&word, (const unsigned char *)from + at, 8);
		atomic_store_explicit(words++, word, memory_order_relaxed);
	}
}

static inline void words_load(void *to, const void *from, size_t size)
{
	const _Atomic uint64_t *words = from;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = atomic_load_explicit(words++, memory_order_relaxed);

		memcpy((unsigned char *)to + at, &word, 8);
	}
}

#endif
