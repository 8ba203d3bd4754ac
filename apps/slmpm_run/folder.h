/* SPDX-License-Identifier: BSD-3-Clause */
/* Private folders that are locked while they are in use, and removed afterwards, by others if need
 * be. */
#ifndef SLMPM_RUN_FOLDER_H
#define SLMPM_RUN_FOLDER_H

#include <limits.h>

struct folder {
	char path[PATH_MAX];
	int lock; /* the folder itself, open and locked; -1: none */
};

/* Makes ROOT/STARTxxxxxx for this user alone. Negative errno. */
int folder_make(struct folder *f, const char *root, const char *start);
/* Removes it and all that lies in it. */
void folder_remove(struct folder *f);
/* Removes those of this user that nobody holds; how many. */
int folder_sweep(const char *root, const char *start);

#endif
