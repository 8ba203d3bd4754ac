/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child is started with: its directory, its program, its environment. */
#ifndef SLMPM_DACS_START_H
#define SLMPM_DACS_START_H

#include "slmpm/dacsbase/dacs_internal.h"

/* ---- dacs_cwd.c ---- */

/* What the system's ERROR means to who starts a process. */
DACS_ERR_T dacsi_start_code(int error, DACS_ERR_T otherwise);
/* Makes a private directory below PREFIX: its path (to be freed) and the lock that keeps it. */
DACS_ERR_T dacsi_cwd_make(const char *prefix, bool keep, char **path, int *lock);
/* Removes it with all that is in it (unless it is to be kept), and frees PATH. */
void dacsi_cwd_remove(char *path, int lock, bool keep);
/* Removes those below PREFIX that nobody holds any more; returns how many. */
int dacsi_cwd_sweep(const char *prefix);
/* An accelerator's hold on its own directory: the lock, or -1. */
int dacsi_cwd_hold(const char *path);

/* ---- dacs_program.c ---- */

/* Puts the program into CWD as FLAGS want it; *PATH is what is to be executed, to be freed. */
DACS_ERR_T dacsi_program_stage(const void *prog, DACS_PROC_CREATION_FLAG_T flags, const char *cwd,
			       char **path);
/* Whether the file is a program of another machine. */
bool dacsi_program_foreign(const char *path);

/* ---- dacs_env.c ---- */

struct dacsi_env_source {
	char *const *base; /* the client's, or the host's own */
	char *const *host; /* where names of LIST are looked up */
	const char *list;  /* DACS_START_ENV_LIST, or NULL */
	const char *cwd;   /* replaces $AE_CWD, and becomes AE_CWD */
	bool libraries;    /* CWD is to be searched for shared libraries */
	bool lenient;      /* BASE is not the client's: skip what is malformed */
};
/* A new environment, one block to be freed, or NULL with *RC set. */
char **dacsi_env_build(const struct dacsi_env_source *source, DACS_ERR_T *rc);
/* Whether VECTOR (or NULL) can be handed to a program. */
bool dacsi_env_fits(char const *const *vector);

#endif
