/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What shm/order.h becomes in the checker's build: every access to a shared word, every fence and
 * every rule of the protocol calls the scheduler under the name of its site.
 */
#ifndef TESTS_MODEL_HOOKS_H
#define TESTS_MODEL_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One line a site; the mutation table must weaken each of them. */
#define MODEL_SITES(SITE)                                                                          \
	/* ring.h, ring.c: accesses */                                                             \
	SITE(clear)                                                                                \
	SITE(commit)                                                                               \
	SITE(peek)                                                                                 \
	SITE(produced)                                                                             \
	SITE(consumed)                                                                             \
	SITE(consumed_in)                                                                          \
	SITE(produced_in)                                                                          \
	SITE(pad)                                                                                  \
	/* ring.h, ring.c: rules */                                                                \
	SITE(room)                                                                                 \
	SITE(wrap)                                                                                 \
	SITE(pad_room)                                                                             \
	SITE(mark_interior)                                                                        \
	SITE(mark_replaced)                                                                        \
	SITE(mark_aborted)                                                                         \
	SITE(mark_pad)                                                                             \
	SITE(clear_successor)                                                                      \
	SITE(ahead_room)                                                                           \
	SITE(open_tag)                                                                             \
	SITE(lag)                                                                                  \
	SITE(consider)                                                                             \
	SITE(live_threshold)                                                                       \
	SITE(live_batch)                                                                           \
	SITE(settle_threshold)                                                                     \
	SITE(gap)                                                                                  \
	SITE(check_tag)                                                                            \
	SITE(check_length)                                                                         \
	SITE(check_pad)                                                                            \
	SITE(check_produced)                                                                       \
	SITE(check_consumed)                                                                       \
	/* doorbell.h */                                                                           \
	SITE(bell_fence)                                                                           \
	SITE(bell_order)                                                                           \
	SITE(asleep_in)                                                                            \
	SITE(announce)                                                                             \
	SITE(announce_fence)                                                                       \
	SITE(announced_fence)                                                                      \
	SITE(asleep_seen)                                                                          \
	SITE(retract_fence)                                                                        \
	SITE(announce_odd)                                                                         \
	SITE(retract_odd)                                                                          \
	SITE(retract)                                                                              \
	/* what their caller has deferred (sides.c does as the shm fabric does) */                 \
	SITE(barrier)                                                                              \
	SITE(look_again)                                                                           \
	SITE(check_commit)                                                                         \
	SITE(check_waiting)                                                                        \
	SITE(check_release)                                                                        \
	SITE(check_peek)                                                                           \
	SITE(check_asleep)                                                                         \
	SITE(publish_asleep)                                                                       \
	SITE(publish_waiting)                                                                      \
	SITE(publish_closing)                                                                      \
	SITE(check_quiet)                                                                          \
	/* the checker's own accesses */                                                           \
	SITE(hostile)

enum model_site {
#define MODEL_SITE(name) SITE_##name,
	SITE_none,
	MODEL_SITES(MODEL_SITE)
#undef MODEL_SITE
		SITE_COUNT
};

/* How one site is weakened for a run of the mutation table. */
enum model_weakening {
	WEAK_NONE,
	WEAK_RELAXED, /* acquire or release -> relaxed */
	WEAK_ACQ_REL, /* a seq_cst fence -> acq_rel */
	WEAK_OMITTED  /* the store, fence or rule left out */
};

extern enum model_site model_weak_site;
extern enum model_weakening model_weak_how;

const char *model_site_name(enum model_site site);

uint64_t model_load(enum model_site site, const volatile void *word, memory_order order);
void model_store(enum model_site site, volatile void *word, uint64_t value, memory_order order);
void model_fence(enum model_site site, memory_order order);
/* A compiler barrier; left out, the loads behind it may move before the store in front of it. */
void model_compiler_fence(enum model_site site);

static inline bool model_weakened(enum model_site site, enum model_weakening how)
{
	return model_weak_site == site && model_weak_how == how;
}

#define ORDER_LOAD(site, word, order)         model_load(SITE_##site, (word), (order))
#define ORDER_STORE(site, word, value, order) model_store(SITE_##site, (word), (value), (order))
#define ORDER_FENCE(site, order)              model_fence(SITE_##site, (order))
#define ORDER_COMPILER_FENCE(site)            model_compiler_fence(SITE_##site)
#define ORDER_RULE(site)                      (!model_weakened(SITE_##site, WEAK_OMITTED))

#endif
