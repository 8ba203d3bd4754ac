/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's page, as it lies in memory: a sealed object of its process, found by its label. */
#ifndef SLMPM_GROUP_PAGE_LAYOUT_H
#define SLMPM_GROUP_PAGE_LAYOUT_H

#include <slmpm_group.h>
#include <stdatomic.h>

#define PAGE_LABEL   "slmpm-group"
#define PAGE_MAGIC   UINT64_C(0x31505247504d4c53) /* "SLMPGRP1" */
#define PAGE_VERSION 1u                           /* changes with what stands in those structures */

struct shown_page {
	_Atomic uint64_t magic; /* stored last */
	uint32_t version, size; /* of a place */
	_Atomic uint64_t turn;
	struct slmpm_group_shown places[2];
};
_Static_assert(sizeof(struct slmpm_group_shown) % 8 == 0, "page layout");

#endif
