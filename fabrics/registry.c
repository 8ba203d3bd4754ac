/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of fabrics, made by the Makefile from the files in this folder. */
#include "fabrics/registry.h"

#include <string.h>

#define FABRIC(name) extern const struct fabric fabric_##name;
#include "fabric_list.h"
#undef FABRIC

static const struct fabric *const fabrics[] = {
#define FABRIC(name) &fabric_##name,
#include "fabric_list.h"
#undef FABRIC
	NULL,
};

const struct fabric *fabric_at(int i)
{
	if (i < 0 || (size_t)i >= sizeof(fabrics) / sizeof(fabrics[0]))
		return NULL;
	return fabrics[i];
}

const struct fabric *fabric_find(const char *name)
{
	for (int i = 0; fabrics[i]; i++)
		if (!strcmp(fabrics[i]->name, name))
			return fabrics[i];
	return NULL;
}
