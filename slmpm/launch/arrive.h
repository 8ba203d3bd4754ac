/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back of an accelerator that was started elsewhere: a listening socket of its own. Callers
 * send 24 bytes first, of which 16 were given to it alone; then the handshake begins.
 * Unauthenticated connections never come near the endpoint.
 */
#ifndef SLMPM_ARRIVE_H
#define SLMPM_ARRIVE_H

#include "slmpm/endpoint.h"
#include "slmpm/base/log.h"
#include "slmpm/net/secret.h"
#include "slmpm/watch.h"

#define ARRIVAL_MAGIC   "SLMPMWAY"
#define UNAUTHENTICATED 8 /* at once */

struct caller {
	struct watch watch; /* first */
	uint64_t since;
	size_t have;
	struct arrival {
		char magic[8];
		unsigned char ticket[SECRET_SIZE];
	} said;
};

struct arrive {
	struct endpoint *ep;
	struct watch listening, process; /* process: -1 once it is the control connection's */
	struct caller unauthenticated[UNAUTHENTICATED];
	struct secret ticket, secret; /* what it says first; what the handshake proves */
	struct log_limit knocks;
};

/* Listens at ADDRESS (a name or number, NULL: any), makes ticket and secret. Negative SLMPM_E*. */
int arrive_listen(struct arrive *a, const char *address);
/* "tcp://address:port,.../ticket" of it, as SLMPM_PARENT says it: to be freed; NULL: no memory, or
 * this machine has no address that others can reach. ADDRESS as above. */
char *arrive_url(const struct arrive *a, const char *address);
/* EP, whose process runs, waits for it. Negative errno; A is of EP's process, which frees it. */
int arrive_begin(struct arrive *a, struct endpoint *ep);
void arrive_free(struct arrive *a);
/* In the child after fork: closes its copies of the descriptors, nothing else. */
void arrive_forked(struct arrive *a);

/* ---- the accelerator's side ---- */

/* A socket to the host at URL, as above, the ticket shown. Negative SLMPM_E*. */
int arrive_connect(const char *url, uint64_t deadline);

#endif
