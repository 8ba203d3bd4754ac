/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means over all instances of a job, and over the jobs around it.
 *
 * A job is a process and those it has started (slmpm_spawn), and so on: a tree, so each link of it needs
 * to hear nothing but what all on this side of it come to, and each process has the sum of what it
 * hears and its own. Jobs that are joined by slmpm_connect form any graph: there each job is a voice with
 * a number, is told on from job to job, and counts once, by the youngest that has been heard of it.
 */
#ifndef SLMPM_MEANS_H
#define SLMPM_MEANS_H

#include <slmpm.h>

#include "slmpm/endpoint.h"
#include "slmpm/base/list.h"

#define MEANS_FABRICS   SLMPM_MEANS_FABRICS
#define MEANS_INSTANCES 65536                /* that one telling may speak for */
#define MEANS_LATENCY   UINT64_C(4000000000) /* ns: beyond it is none */
#define MEANS_VOICES    32                   /* jobs that are kept; half of them by one link */
#define MEANS_TOLD      8                    /* of these over a link at a time */
#define MEANS_AGE       10                   /* periods after which a voice has fallen silent */

struct head;
struct monitor_load;

struct means_cell { /* sum over so many instances */
	uint64_t ns;
	uint32_t count;
};

struct means_fabric {
	char name[8];
	uint64_t requests, links;
	uint64_t queue, busy; /* requests queued; links that have much to do, ... */
	uint64_t load;        /* ... and the sum of these rings' thousandths */
	uint64_t out, in;     /* sums of the links' thousandths */
	struct means_cell echo, latency[SLMPM_PROTOCOLS];
};

struct means {
	uint64_t instances, links, queue;
	uint64_t out, in;
	struct means_fabric fabrics[MEANS_FABRICS];
	struct means_cell cells[SLMPM_PROTOCOLS][SLMPM_SIZE_CLASSES];
};

struct means_part { /* what a context sees itself, or hears over a link of the job */
	struct list node;
	struct means sum;
};

struct voice {         /* another job */
	uint64_t job;  /* 0: a free place */
	uint64_t born; /* ns: as old as what it says */
	const struct endpoint *via;
	struct means sum;
};

/* ---- sums (means_sum.c) ----------------------------------------------------------------------- */

void means_add_cell(struct means_cell *to, uint64_t ns, uint32_t count);
void means_add(struct means *to, const struct means *m);
/* 0: nothing has been measured. */
uint64_t means_mean(const struct means_cell *c);
/* What the context's links show. */
void means_of_links(struct context *ctx, struct means *sum);

/* ---- a job's (means.c) --------------------------------------------------------------------------- */

/* The context's own, once in a period. */
void means_look(struct context *ctx, uint64_t ns);
void means_shut(struct context *ctx);
void means_forked(void);
/* What has been agreed (WIRE_FEATURE_*); and the peer's end. */
void means_agreed(struct endpoint *ep, uint64_t features);
void means_end(struct endpoint *ep);
/* Is the peer of this process's job? */
static inline bool means_is_kin(const struct endpoint *ep)
{
	return ep->is_parent || ep->process;
}
/* The job's number, 0: not known yet. The first of a job's processes gives it, the others hear it. */
uint64_t means_job(void);
void means_set_job(uint64_t job);
/* Of the job: but for what was heard over EP; NULL: all of it. */
void means_of_job(const struct endpoint *ep, struct means *sum);
/* SET changes what has been heard, with ARG: of EP's side of the job, or of another job. */
void means_change(struct endpoint *ep, uint64_t job, uint64_t born,
		  void (*set)(struct means *m, const void *arg), const void *arg);
/* What LENGTH bytes by PROTOCOL take on the mean, over all instances: false where none has measured.
 * One relaxed load. */
bool monitor_mean(int protocol, uint64_t length, uint64_t *ns);
uint32_t means_instances(void);
/* Has some fabric much to do, as far as known here? */
bool means_is_busy(void);
/* Of a fabric, over all instances. */
struct means_known {
	uint32_t busy;                /* links that have much to do; of these, on the mean: */
	uint32_t queue, out_permille; /* requests; of the rings */
	uint32_t echo;                /* ns, 0: not measured */
};
/* Without the share of OWN, a link over that fabric. False: no link is over it. */
bool means_fabric_known(const char *name, const struct monitor_load *own,
			struct means_known *known);
/* For others than the program itself. */
void means_take(struct slmpm_means *out);

/* ---- voices (voices.c), with the lock of means.c ---------------------------------------------- */

/* Where JOB's is to be written: it is heard over EP, BORN then; or NULL: no room, or a younger one is
 * known. */
struct means *voices_place(const struct endpoint *ep, uint64_t job, uint64_t born);
/* Adds those that have not fallen silent: how many. */
uint32_t voices_add(struct means *sum, uint64_t ns);
/* From place *AT on the next that is to be told to EP: its job and age in ms; false: none. */
bool voices_next(const struct endpoint *ep, uint64_t ns, uint32_t *at, uint64_t *job, uint64_t *age,
		 struct means *sum);
void voices_forget(const struct endpoint *ep);

/* ---- the wire (means_wire.c) ------------------------------------------------------------------ */

/* Tells the peer. */
void means_tell(struct endpoint *ep);
/* And hears it. */
void means_heard(struct endpoint *ep, const struct head *h);
/* As voices_next, for means_wire.c, which has no lock. */
bool means_next_voice(const struct endpoint *ep, uint32_t *at, uint64_t *job, uint64_t *age,
		      struct means *sum);

#endif
