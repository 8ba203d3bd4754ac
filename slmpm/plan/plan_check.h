/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what a caller asks for is a plan. */
#ifndef SLMPM_PLAN_CHECK_H
#define SLMPM_PLAN_CHECK_H

#include <slmpm_plan.h>

/* 0, or -SLMPM_EINVAL: the detail has the kind and the member that is wrong. */
int plan_check(const struct slmpm_plan_spec *spec);

#endif
