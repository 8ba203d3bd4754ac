/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections among the members of a group, as its files see them. */
#ifndef SLMPM_PAIRING_H
#define SLMPM_PAIRING_H

#include "slmpm/connect/listener.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/group.h"

#define PAIR_MS       UINT64_C(1000000)
#define PAIR_AGAIN_MS 20  /* after a connection that has not come to be */
#define PAIR_SAID_MS  200 /* until others have said why a member does not listen */

/* The connection of this process with a member. */
struct pair {
	struct list node; /* of the context's */
	struct endpoint *ep;
	struct member *member; /* NULL: its group has gone, or has another one with it */
	bool known;            /* the application has its handle */
	bool own;              /* this side made it */
	bool older; /* than the calls that want it now, and not up then: its end is no answer to these */
	bool released;     /* it is needed no more here, ... */
	bool said, theirs; /* ... as the other side has been sent, and has sent */
};

/* Where a member is that has no board. */
struct distant {
	char url[96];
	struct secret key; /* of this process and that member alone */
	struct attempt *attempt;
	struct watch answered;
	bool has_answered;
	bool stays;   /* not by memory, though it is on this machine */
	bool refused; /* nothing listens there any more, ... */
	uint64_t refused_at;
	char why[96];      /* the last attempt has come to nothing; or "" */
	uint64_t reset_at; /* since one was up, amid the handshake: the first time; or 0 */
	enum { STAYS, LEFT_AT_END, LEFT_IN_ORDER } left; /* as it has said, ... */
	uint32_t left_in; /* ... in which generation, when it had done so many operations: ... */
	uint64_t did[2];  /* ... without tags, and of the lane */
	/* A connection has, not in order: the group is broken; whether it lives another one shows. */
	bool lost;
	/* As of that with who founds: it has died if nothing listens there any more, either. */
	bool founder_lost;
	/* It has said that the group is broken: of which generation, why, and by which rank + 1. */
	struct {
		uint32_t generation, rank;
		int error;
	} broke;
	/* What it has of this member, while that connection lasts: which version of the view, which
	 * verdict (survivors.c). */
	uint64_t has_view, has_verdict;
	/* Meetings that it has come to, as far as is known; whether it is gone, as this member has
	 * found, and in which version of what is shown: attendance.c. */
	uint64_t came, noted, fact; /* fact: to how many, as others say */
	bool gone;
	bool questioned; /* another says that it is gone: until an attempt shows it or not */
	bool called;     /* a connection is wanted until all others have shown that */
	bool agrees;     /* one is wanted until a shrink is over */
	/* What it has shown, and up to which version it has been shown that; the last split that any
	 * is through, and the last meeting that any had passed, as it says. */
	uint64_t view, has;
	uint64_t through, passed;
	uint32_t broken;
	uint64_t begun; /* then; so many operations without tags, and 1: of that generation; or 0 */
	struct stand *stands; /* in the group and its lane (stalled.c); or NULL */
};

/* BOARD_NONE: it has been left out of the group. */
static inline uint32_t pair_rank(const struct member *m)
{
	const struct boards *b = &m->group->boards;
	uint32_t seat = (uint32_t)(m - m->group->members), r = 0;

	while (r < b->size && b->seats[r] != seat)
		r++;
	return r < b->size ? r : BOARD_NONE;
}

static inline bool pair_lives(const struct pair *p)
{
	return p && !endpoint_has_ended(p->ep);
}

static inline bool pair_is_up(const struct pair *p)
{
	return p && p->ep->state == SLMPM_PEER_UP && !p->ep->closing;
}

/* It is to be inspected at WHEN. */
void pair_due(struct member *m, uint64_t when);
/* M's connection is to be C, whose descriptors are closed where it cannot be; OWN: this side made
 * it. 0, or negative with the detail set. */
int pair_adopt(struct member *m, const struct connection *c, bool own);
/* The same of an endpoint. False: there is no memory. */
bool pair_attach(struct member *m, struct endpoint *ep, bool own);
/* It is not the member's any more: another is to be. What came by it can still be read. */
void pair_drop(struct member *m);
/* A connection with M is wanted, by this call: progress makes it. */
void pair_want(struct member *m);
/* There is one, or there can be none. */
bool pair_is_decided(void *arg);
/* Why there is none: negative, the detail set; CALL waited for TIMEOUT_MS. */
int pair_error(struct member *m, const char *call, int timeout_ms);
/* By which rank's doing: the member's, or this process's own, which lacks memory for it. */
uint32_t pair_culprit(const struct member *m);
/* This process lacks what it takes, by RC of pair_adopt: calls that wait end by that. */
void pair_note_lack(struct member *m, int rc);
/* This call does not want it any more. */
void pair_unwant(struct member *m);
/* That with RANK, once it is up; NULL: not yet, or not any more. */
struct endpoint *pair_endpoint(const struct group *g, uint32_t rank);
/* Which member's EP is, in the group that has it; NULL: no one's. */
struct member *pair_member(const struct endpoint *ep);
/* Why none is to be had: the member has died, or left, or a system call has failed: negative. */
int pair_gone(const struct group *g, uint32_t rank);

/* ---- release.c ------------------------------------------------------------------------------- */

/* It ends, and the other side reads why. */
void pair_close(const struct pair *p, const char *why);
/* Those that are not needed any more are released; those that have ended, freed. */
void pairs_reap(struct context *ctx);

#endif
