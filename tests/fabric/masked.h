/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics that lack something, in place of the library's list: shared memory without one-sided operations
 * at all, without READ, and without ATOMIC. Whoever includes this has them, and what is linked with it;
 * once a program.
 */
#ifndef TESTS_FABRIC_MASKED_H
#define TESTS_FABRIC_MASKED_H

#include <string.h>

#include "fabrics/registry.h"

#define MASK(op) (UINT64_C(1) << FABRIC_##op)

extern const struct fabric fabric_shm, fabric_tcp;

static struct fabric masked_sendonly, masked_noread, masked_noatomic;

static int masked_probe(const struct fabric_config *config, struct fabric_caps *caps,
			uint64_t without)
{
	int rc = fabric_shm.probe(config, caps);

	caps->ops &= ~without;
	return rc;
}

/* Of a peer's memory only what is left may be asked for: shm refuses the rest. */
static int masked_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		      struct fabric_blob *blob, uint64_t without)
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

/* ---- the list, for fabrics/registry.c ---- */

static const struct fabric *const masked[] = {
	&masked_noatomic, &masked_noread, &masked_sendonly, &fabric_shm, &fabric_tcp, NULL,
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
