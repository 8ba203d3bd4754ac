/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics that lack something, in place of the library's list: shared memory without one-sided
 * operations at all, without READ, without ATOMIC, and with all of them done by a later poll alone.
 * Whoever includes this has them, and what is linked with it; once a program.
 */
#ifndef TESTS_FABRIC_MASKED_H
#define TESTS_FABRIC_MASKED_H

#include <errno.h>
#include <string.h>

#include "fabrics/registry.h"

#define MASK(op) (UINT32_C(1) << FABRIC_##op)

extern const struct fabric fabric_shm, fabric_tcp;

static struct fabric masked_sendonly, masked_noread, masked_noatomic, masked_later;

static int masked_probe(const struct fabric_config *config, struct fabric_caps *caps,
			uint32_t without)
{
	int rc = fabric_shm.probe(config, caps);

	caps->ops &= ~without;
	return rc;
}

/* Of a peer's memory only what is left may be asked for: shm refuses the rest. */
static int masked_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		      struct fabric_blob *blob, uint32_t without)
{
	int rc = fabric_shm.reg(link, m, own, writable, blob);

	if (!own)
		m->ops &= ~without;
	return rc;
}

#define MASKED(which, without)                                                                     \
	static int which##_probe(const struct fabric_config *config, struct fabric_caps *caps)     \
	{                                                                                          \
		return masked_probe(config, caps, without);                                        \
	}                                                                                          \
	static int which##_reg(struct fabric_link *link, struct fabric_memory *m, bool own,        \
			       bool writable, struct fabric_blob *blob)                            \
	{                                                                                          \
		return masked_reg(link, m, own, writable, blob, without);                          \
	}                                                                                          \
	__attribute__((constructor)) static void which##_make(void)                                \
	{                                                                                          \
		masked_##which = fabric_shm;                                                       \
		masked_##which.name = #which;                                                      \
		masked_##which.probe = which##_probe;                                              \
		masked_##which.reg = which##_reg;                                                  \
	}

MASKED(noread, MASK(READ))
MASKED(noatomic, MASK(ATOMIC))

static int sendonly_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	return masked_probe(config, caps, MASK(WRITE) | MASK(READ) | MASK(ATOMIC));
}

/* Nor does anybody map what the other one has. */
__attribute__((constructor)) static void sendonly_make(void)
{
	masked_sendonly = fabric_shm;
	masked_sendonly.name = "sendonly";
	masked_sendonly.probe = sendonly_probe;
	masked_sendonly.alloc = NULL;
	masked_sendonly.reg = NULL;
	masked_sendonly.dereg = NULL;
}

/* ---- operations that complete later ---- */

#define LATER_OPS (MASK(WRITE) | MASK(READ) | MASK(ATOMIC))
#define LATER_MAX 5 /* fewer than the core may have under way */

/* Peers' memory as shared memory reaches it, by own[3], and what is to be done on it. */
static struct fabric_memory later_real[64];
static struct later {
	struct fabric_link *link;
	struct fabric_wr wr;
	struct fabric_atomic atomic;
} later_pending[LATER_MAX];

/* As a test wants it: nothing is done for now; it is done in post, and told of by the next poll;
 * the link takes places for what arrives, so that requests are packets of their own; the link is
 * lost. */
static bool later_stalls, later_hurries, later_lands, later_cut;
/* What was last said of each grant, by its access word. */
static unsigned char later_words[FABRIC_ACCESS_WORDS];

static int later_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	int rc = masked_probe(config, caps, LATER_OPS);

	caps->later = LATER_OPS;
	if (later_lands)
		caps->land_min = UINT32_MAX;
	return rc;
}

static int later_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		     struct fabric_blob *blob)
{
	int rc = fabric_shm.reg(link, m, own, writable, blob);
	unsigned i = 1;

	if (own || rc < 0)
		return rc;
	while (i < 63 && later_real[i].ops)
		i++;
	later_real[i] = *m;
	*m = (struct fabric_memory){.size = m->size, .writable = m->writable, .later = m->ops};
	m->own[3] = i;
	return 0;
}

static void later_dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	uint64_t i = m->own[3];

	if (i && !m->base) {
		fabric_shm.dereg(domain, &later_real[i]);
		later_real[i].ops = 0;
		m->own[3] = 0;
	} else if (m->base) {
		fabric_shm.dereg(domain, m);
	}
}

/* In another order than they were begun. */
static void later_do(struct fabric_link *link, bool cancel)
{
	for (int i = LATER_MAX - 1; i >= 0 && (cancel || !later_stalls); i--) {
		struct later *l = &later_pending[i];
		int status;

		if (l->link != link)
			continue;
		l->link = NULL;
		if (cancel)
			continue;
		status = fabric_shm.post(link, &l->wr);
		link->ops[l->wr.length].old = l->atomic.old;
		link->ops[l->wr.length].status = status;
	}
}

static int later_begin(struct fabric_link *link, const struct fabric_wr *wr)
{
	for (int i = 0; i < LATER_MAX; i++) {
		struct later *l = &later_pending[i];

		if (l->link)
			continue;
		*l = (struct later){.link = link, .wr = *wr};
		if (wr->op == FABRIC_ATOMIC) {
			memcpy(&l->atomic, wr->into, sizeof(l->atomic));
			l->wr.into = &l->atomic;
		}
		l->wr.memory = &later_real[wr->memory->own[3]];
		if (later_hurries)
			later_do(link, false);
		return 0;
	}
	return -EAGAIN;
}

static int later_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	if (wr->op == FABRIC_FLUSH && wr->flags & FABRIC_CANCEL) {
		later_do(link, true);
		return 1;
	}
	if (wr->op == FABRIC_ATOMIC && wr->memory == link->peer_access)
		later_words[wr->offset] =
			(unsigned char)((const struct fabric_atomic *)wr->into)->operand;
	return wr->op <= FABRIC_ATOMIC && wr->op >= FABRIC_WRITE && wr->memory->later ?
		       later_begin(link, wr) :
		       fabric_shm.post(link, wr);
}

static int later_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	if (later_cut) {
		link->lost = "the cable is cut";
		return -EPIPE;
	}
	later_do(link, false);
	return fabric_shm.poll(link, arrivals, n);
}

__attribute__((constructor)) static void later_make(void)
{
	masked_later = fabric_shm;
	masked_later.name = "later";
	masked_later.probe = later_probe;
	masked_later.reg = later_reg;
	masked_later.dereg = later_dereg;
	masked_later.post = later_post;
	masked_later.poll = later_poll;
}

/* ---- the list, for fabrics/registry.c ---- */

static const struct fabric *const masked[] = {
	&masked_later, &masked_noatomic, &masked_noread, &masked_sendonly,
	&fabric_shm,   &fabric_tcp,      NULL,
};

const struct fabric *fabric_at(int i)
{
	return i >= 0 && (size_t)i < sizeof(masked) / sizeof(*masked) ? masked[i] : NULL;
}

const struct fabric *fabric_find(const char *name)
{
	for (int i = 0; masked[i]; i++)
		if (!strcmp(masked[i]->name, name))
			return masked[i];
	return NULL;
}

#endif
