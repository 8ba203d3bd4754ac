/* SPDX-License-Identifier: BSD-3-Clause */
/* The mutation table: each site of hooks.h, weakened, and a scenario that must notice. */
#ifndef TESTS_MODEL_MUTATIONS_H
#define TESTS_MODEL_MUTATIONS_H

#include "tests/model/hooks.h"

struct mutation {
	enum model_site site;
	enum model_weakening how;
	const char *scenario;
};

extern const struct mutation mutations[];
extern const unsigned mutation_count;

/* What the weakening does, in words. */
const char *weakening_name(enum model_weakening how);
/* A site that the table forgets, or SITE_none. */
enum model_site site_without_mutation(void);

#endif
