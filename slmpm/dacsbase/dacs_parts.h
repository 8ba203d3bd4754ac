/* SPDX-License-Identifier: BSD-3-Clause */
/* What the families of calls do whenever any call is made, waits or ends, and when a process is gone: dacs_parts.c fills it in,
 * so that what all of them stand on needs none of them. */
#ifndef SLMPM_DACS_PARTS_H
#define SLMPM_DACS_PARTS_H

#include "slmpm/dacsbase/dacs_internal.h"

struct dacsi_kind;

struct dacsi_parts {
	const struct dacsi_kind *kinds[4]; /* by family of objects */
	/* Moves transfers on; settles objects that are due: did anything happen? */
	bool (*attend)(void);
	bool (*settle)(void);
	/* Of a partner: credits to be returned, messages for receives that are posted. */
	void (*settle_mail)(struct dacsi_process *process);
	bool (*match)(struct dacsi_process *process);

	/* A process ends: receives from it do with ERROR. It is gone. */
	void (*fail)(struct dacsi_process *process, DACS_ERR_T error);
	void (*gone)(struct dacsi_process *process);
};

extern const struct dacsi_parts dacsi_parts;

#endif
