/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabrics built in, in the order of their names. */
#ifndef FABRICS_REGISTRY_H
#define FABRICS_REGISTRY_H

#include "fabrics/fabric.h"

/* NULL behind the last. */
const struct fabric *fabric_at(int i);
/* NULL: none has the name. */
const struct fabric *fabric_find(const char *name);

#endif
