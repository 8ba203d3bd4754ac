/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of slmpm_info share: JSON values that they make, and how these are printed. */
#ifndef INFO_H
#define INFO_H

#include <jansson.h>
#include <slmpm.h>
#include <stdbool.h>

json_t *info_fabrics(void);
json_t *info_settings(void);
/* *GOOD becomes false where something needed is missing. */
json_t *info_checks(bool *good);
json_t *info_memory(long peers);
/* Every context of the process, every peer of a context; NULL: explained on standard error. */
json_t *info_stats(long pid);
json_t *info_queues(long pid); /* and their work queues */
/* Thresholds as this machine would have them, measured for about so many seconds; likewise. */
json_t *info_calibration(int seconds);

/* By which protocol each size goes, and why, tried by a pair of processes; likewise. */
json_t *info_protocols(void);

/* Text of unknown encoding. */
json_t *info_text(const char *s);
const char *info_string(const json_t *object, const char *key);
/* A setting is named as its variable, or without what all have in common. */
const char *info_prefix(const char *name);
void info_print_queues(const json_t *all);
void info_print_protocols(const json_t *all);
void info_print_calibration(const json_t *all);
/* All parts that there are. */
void info_print(const json_t *all);

#endif
