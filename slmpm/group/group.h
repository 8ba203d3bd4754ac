/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: what a process is a member of, or has founded; how they form, and what breaks them. */
#ifndef SLMPM_GROUP_H
#define SLMPM_GROUP_H

#include <slmpm_group.h>

#include "slmpm/base/error.h"
#include "slmpm/base/handle.h"
#include "slmpm/base/list.h"
#include "slmpm/base/wire.h"
#include "slmpm/board/agree.h"
#include "slmpm/board/bell.h"
#include "slmpm/board/flat.h"
#include "slmpm/net/secret.h"
#include "slmpm/watch.h"

struct allocation;
struct deposits;
struct distant;
struct formation;
struct group_page;
struct listener;
struct messages;
struct pair;
struct plan_spec;
struct plan_text;
struct tags;
struct unsent;

enum group_state { GROUP_IS_FORMING, GROUP_HAS_FORMED, GROUP_HAS_FAILED };

struct member {
	struct watch process; /* its pidfd; of this process: none */
	struct group *group;
	bool ended;         /* that has; it may have left before */
	int offer;          /* the socket that it is to be given; -1: none */
	uint64_t closed_at; /* its bell was first met closed: ns */
	/* The connection with it (pairing.c): */
	struct list pairing; /* of the context's: something is to be done, ... */
	uint64_t when;       /* ... then */
	struct pair *pair;
	struct distant *distant; /* of a group without boards */
	uint32_t wanted;         /* calls that wait for one */
	bool rung;               /* it has been asked for one, by its bell */
	int error;               /* why there is none, for them: a negative errno */
	bool error_is_theirs;    /* the member lacks what one takes, by its board */
	bool shows_lack;         /* the own board shows that this process does */
	uint32_t lack_count;     /* how often it has shown that */
	uint64_t lack_seen;      /* the member's board, when one was wanted or since: known */
	/* Left out by slmpm_group_shrink: */
	bool out;
	uint64_t came; /* to so many meetings */
	int32_t pid;
	uint32_t machine; /* which one it is on, as net_machine; of groups without boards */
	/* Of who founds: by which peer it has joined, and which of its joins it was (drive.c). */
	uint64_t peer;
	uint32_t join;
	bool has_left; /* by that */
};

struct meeting {         /* of this process (meeting.c) */
	uint64_t number; /* the last one that it has come to */
	uint32_t next;   /* the first member that is not known to have come, or died */
	bool pending;    /* it is not over, as far as this process has been told */
	bool waits;      /* nor is it decided, and progress looks after it */
	bool inside;     /* a thread waits for that */
	int32_t lost;    /* process that was left out and had not come; 0: none */
	int result;      /* 1: all were there; negative; 0: none yet */
};

struct attendance {       /* of a group without boards (attendance.c) */
	uint64_t came;    /* as shown to the others */
	uint64_t met;     /* the last meeting that it has passed */
	uint64_t through; /* the last split, by its barrier, that any is known to be through */
	uint64_t passed;  /* the last meeting that any that has left is known to have passed */
	uint64_t view;    /* a hash of these two, and of all members that are gone */
	uint64_t version; /* one more with each change that is to be shown */
	uint32_t broken;  /* 1 more than the generation in which it is, for this process; or 0 */
	uint64_t begun;   /* so many operations without tags by then */
	uint32_t users;   /* calls for which all are to be connected */
	bool meets;       /* one of them is a meeting */
	bool changed;     /* since it was last looked at for a meeting */
};

struct shrinking { /* a call of slmpm_group_shrink (shrink.c) */
	struct agreement agreement;
	int result;                /* when it is over: 1, or a negative error, ... */
	char detail[ERROR_DETAIL]; /* ... and why */
};

struct algorithms {         /* how it does what it does (algorithm.c) */
	uint64_t forced;    /* by kind */
	uint64_t limits[2]; /* as of struct plan_spec */
	bool any_order;     /* reductions need not keep to that of the ranks */
};

struct group {
	/* Each of a chunk's begins so, whatever its size: what an operation touches lies in as many
	 * lines of each. */
	_Alignas(HANDLE_ALIGNMENT) struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's */
	enum group_state state;
	uint32_t tag;
	bool part; /* of another one: its tag is among those of such alone */
	struct boards boards;
	struct member *members; /* by first rank, when it formed; NULL: not known yet */
	uint32_t seats;         /* of them */
	struct watch bell;      /* the own one */
	int status;             /* why it is broken, negative; 0: it is not */
	int32_t culprit;        /* then the rank; -1: none */
	bool left;              /* it is not: a member has left it */
	uint64_t begun, done;   /* operations of this process in it */
	struct flat flat;       /* the one that is under way */
	/* It has no boards, for some of its members are on other machines (distant.c, messages.c): */
	bool apart;
	bool meets_local;          /* those of one machine meet in memory, if they can */
	struct listener *listener; /* where the others connect; NULL: no member */
	char host[64];             /* the same as others see it */
	struct messages *messages; /* its collective operations; NULL: none yet */
	struct algorithms algorithms;
	uint32_t algorithm;     /* of the last operation: enum plan_algorithm */
	struct list texts;      /* struct given_text (plan_texts.c) */
	uint32_t waits;         /* calls that wait for a connection, or split it */
	bool splitting;         /* one does that */
	bool shut;              /* no more of these: the context closes */
	bool asked_early;       /* one was asked for before the group had formed */
	struct list operations; /* struct collective: the first is that one, if they wait */
	struct list prepared;   /* struct prepared */
	struct list spares;     /* struct collective that have ended, for the next ones */
	uint32_t spare_count;
	bool bell_noted;           /* the kernel notes who rings */
	bool under_way, announced; /* some wait; the others see that this process may sleep */
	bool to_reap;              /* it was of one machine's, and is to be freed */
	uint32_t announced_to;     /* a rank, or BOARD_ANY */
	uint64_t due;              /* none of them has its deadline before: ns */
	uint64_t inspect_at;       /* the others, though no bell has rung: ns */
	struct {                   /* a call of this process (blocked.c) */
		const struct collective *in; /* starts nothing until that is over; or NULL */
		uint64_t shown, again;       /* its tag and the lane's number; when: ns */
	} blocked;
	struct meeting meeting;
	struct attendance attendance;
	struct shrinking *shrinking;        /* while a call agrees on who is gone: shrink.c */
	bool (*shrink_on)(struct group *g); /* then: some more of it; has it ended? */
	struct list spaces;                 /* struct space (space.h) */
	struct list memories;               /* struct group_memory (alloc.c) */
	struct allocation *allocation;      /* while a call makes one */
	struct list drives;                 /* struct drive: of who has founded it (drive.h) */
	struct list driven;                 /* struct driven: of a member that serves */
	uint64_t driven_last;               /* number of the last one of either */
	uint64_t founder;                   /* peer that founded it; 0: this process */
	uint32_t join;                      /* which of the joins it was */
	bool serves;                        /* collective calls of its own are refused */
	bool settling, unsettled;           /* drives */
	struct slmpm_how serve;             /* how driven ones end */
	uint32_t laid, overlays;            /* networks (slmpm/overlay): so far; that are open */
	struct deposits *deposits;          /* puts to many (deposit.h); or NULL */
	struct formation *formation;        /* of who founds, and while it forms */
	struct group_page *page;            /* what others see of it (page.h); or NULL */
	bool unshown;                       /* there is no room for one */
	bool lacks;                         /* it has failed for what this process lacks */
	/* It is forming (-SLMPM_EAGAIN), or that or an operation has failed; and why. */
	int error;
	char detail[ERROR_DETAIL];
	bool spread;     /* those that are connected know that it is broken */
	uint32_t writer; /* rank + 1 of one stopped as it writes to this member's buffers; or 0 */
	char said[120];  /* by a member on another machine: why it is broken; "": nothing */
	/* A lane is a struct group as well, for its operations alone; whose it is: */
	struct group *main;
	bool holds;          /* of a lane: some wait until others have started them */
	struct group *lane;  /* of those with tags (tags.h), ... */
	struct tags *tags;   /* ... and these; or NULL */
	struct group *whole; /* those of one machine: of which they are; or NULL */
	/* Here, so that what is used more stays: number of the last driven one that has begun; times
	 * in a row that looks for the next operation found nothing. */
	uint64_t driven_begun;
	uint32_t vain;
};

static inline struct group *group_main(struct group *g)
{
	return g->main ? g->main : g;
}

/* ---- group.c: the calls, and what becomes of them ------------------------------------------- */

/* Its own board, where it is to be a MEMBER, and *BOARD, its descriptor, and *BELL, what others
 * ring by. NULL with *RC and the detail set. */
struct group *group_new(struct context *ctx, uint32_t tag, bool member, int *board, int *bell,
			int *rc);
void group_free(struct group *g);
/* It has formed. */
void group_has_formed(struct group *g);
/* Until it has formed, or has not: 0, or the deadline. */
int group_await(struct group *g, int timeout_ms);
/* It is forming, and TIMEOUT_MS has passed: for whom it waits. */
COLD int group_late_to_form(const struct group *g, int timeout_ms);
/* A group that EP founds by TAG, a PART of the one that EP's connection is of; NULL with *RC. */
struct group *group_ask(struct endpoint *ep, uint32_t tag, bool part, int *rc);
/* It has not formed in time: it fails. */
void group_join_late(struct group *g, struct endpoint *ep, int timeout_ms);
/* Given up, or left in order, and freed. */
void group_quit(struct group *g);
/* The same of one that is `to_reap`. */
void group_reap(struct group *g);
/* Its context closes: it is left while the connections last by which the others learn that. */
void groups_stop(struct context *ctx);
void group_shut(struct context *ctx);
void group_forked(struct context *ctx);

/* ---- member.c: those that are in it, and what breaks it ------------------------------------- */

extern struct handle_table group_table;

/* GROUP, for CALL, and its context *CTX, locked, which stays when the group goes meanwhile; NULL
 * with *RC. */
struct group *group_lock(slmpm_group group, const char *call, struct context **ctx, int *rc);
/* This thread's detail but for the error's own text, which is set before it again. */
const char *group_detail(void);
/* Of a group that has not formed, or is forming: why, to CALL. */
COLD int group_unformed(const struct group *g, const char *call);
/* -SLMPM_ESTATE: this process has founded it alone, and CALL is for members. */
COLD int founder_refused(const char *call);
/* 0; the error of a group that has not formed; that. */
int group_is_joined(const struct group *g, const char *call);
/* 0; -SLMPM_ENOTSUP: it has no boards, which CALL needs. */
int group_has_boards(const struct group *g, const char *call);
/* Room for SIZE members, of which this process is RANK, or BOARD_NONE. False: there is no
 * memory. */
bool group_size(struct group *g, uint32_t size, uint32_t rank);
/* It is the context's no more: those that are left say how many share a processor. */
void group_goes(struct group *g);
/* RANK's board and bell, and PROCESS, which is watched: they are its own then. Negative errno. */
int group_put(struct group *g, uint32_t rank, const struct board *board, int bell, int process,
	      int32_t pid);
/* RANK, which was put, has not come after all. */
void group_remove(struct group *g, uint32_t rank);
/* All boards are there, before the first operation. */
void group_met(struct group *g);
/* It is broken by CULPRIT (or -1): the first one stays, but of a member that has left. */
void group_break(struct group *g, int status, int32_t culprit);
/* RANK has left it, which breaks nothing: an operation that it was to be in fails. */
void group_left(struct group *g, uint32_t rank);
/* By what it is broken, as operation NUMBER, of KIND, finds it. */
COLD int group_broken_error(const struct group *g, uint64_t number, uint32_t kind);
/* What RANK, which is late, is suspect of: NULL: nothing. */
COLD const char *member_suspicion(const struct group *g, uint32_t rank);
/* Its descriptor is asked, of which the context may have to hear yet. */
bool member_is_dead(struct member *m);
/* Has a member died, left, or broken it? */
void group_inspect(struct group *g);

static inline struct member *member_of(const struct group *g, uint32_t rank)
{
	return &g->members[g->boards.seats[rank]];
}

/* ---- distant.c: those of a group without boards ---------------------------------------------- */

/* This member listens, at HOST ("": any address). 0, or negative with the detail set. */
int distant_listen(struct group *g, const char *host);
uint16_t distant_port(const struct group *g);
/* Where RANK listens, and what both prove. 0, or -ENOMEM; -EPROTO: that is no address. */
int distant_put(struct group *g, uint32_t rank, const char *url, const unsigned char *key);
void distant_free(struct member *m);
void distant_forked(const struct member *m);
/* Why the last attempt to connect with RANK has come to nothing; "": it has not. */
const char *distant_unreached(const struct group *g, uint32_t rank);
/* What the pair of sockets is for others: a connection with M that is wanted is made. */
void distant_step(struct member *m, uint64_t now);
/* What has come to a listener of a group as EP, and says PROOF: it is a member, and its key is EP's
 * secret; -SLMPM_EACCES: it is none; -SLMPM_ELIMIT: this side connects to it. */
int distant_admit(struct endpoint *ep, const unsigned char *proof);
/* All that have a connection learn that this process has left, IN_ORDER or as its context ends, and
 * DID so many operations, without tags and with; or, also by that by which they have joined, that
 * the group is broken by ERROR, by CULPRIT or BOARD_NONE. */
void distant_left(struct group *g, bool in_order, const uint64_t did[2]);
void distant_end(struct group *g, int error, uint32_t culprit);
/* The connection with M is UP, which learns that the group is broken, where it is. */
void distant_up(struct member *m);
/* M says that. */
int distant_ended(struct endpoint *ep, const struct wire_group *packet);
/* Those that have a connection learn that the group is broken, where they have not. */
void distant_spread(struct group *g);
/* Has a member died, left, or broken it? */
void distant_inspect(struct group *g);
/* EP, by which members may have joined, has ended. */
void distant_peer_ended(struct endpoint *ep);
/* The connection with M, which was UP, has ended by ERROR. */
void distant_lost(struct member *m, int error);
/* M is left out. */
void distant_leave(struct member *m);

/* ---- survivors.c: what they show each other for slmpm_group_shrink --------------------------- */

/* All connect. 0, or -SLMPM_ENOMEM with the detail set. */
int survivors_begin(struct group *g);
/* It is over, or its call is. */
void survivors_end(struct group *g);
/* What has changed goes to all that are connected; to M. */
void survivors_show(const struct group *g);
void survivor_show(struct member *m);
/* M's connection is new. */
void survivor_up(struct member *m);
/* What comes of a member by EP. */
int survivor_said(struct endpoint *ep, const struct wire_group *packet);

/* ---- stalled.c: where members are that wait ---------------------------------------------- */

/* What comes of a member by EP. */
int stalled_said(struct endpoint *ep, const struct wire_group *packet);

/* ---- attendance.c: who has come to meetings, and is through splits --------------------------- */

/* M is shown what has changed; its connection is new; is it gone? It is, by its own word. */
void attendance_show(struct member *m);
void attendance_up(struct member *m);
void attendance_gone(struct member *m);
void attendance_left(struct member *m, const struct wire_group *packet);
/* What comes of a member by EP. */
int attendance_said(struct endpoint *ep, const struct wire_group *packet);
/* This member comes to meeting NUMBER, and all connect, until it is settled: PASSED or not. */
void attendance_come(struct group *g, uint64_t number);
void attendance_settled(struct group *g, bool passed);
/* To how many RANK has come, as far as is known. */
uint64_t attendance_came(const struct group *g, uint32_t rank);
/* As meeting_decide. */
int attendance_decide(struct group *g);
/* This member is through the split whose barrier is operation NUMBER; or the group is broken for it
 * before any later one. */
void attendance_through(struct group *g, uint64_t number);
void attendance_broken(struct group *g);
/* It wants to know of all others, for which they connect; or does not any more. */
void attendance_ask(struct group *g, bool asks);
/* 1: a member has been through it; negative: none that lives has, and none will be; 0: others are
 * to say. */
int attendance_of_split(const struct group *g, uint64_t number);

/* ---- algorithm.c: which one ------------------------------------------------------------------ */

/* As the settings say. 0, or -SLMPM_EINVAL with the detail set. */
int algorithms_set(struct algorithms *a);
/* Each kind has what is forced of it, and no others have limits. */
bool algorithms_are_known(const struct algorithms *a);
/* For SPEC, of elements WIDTH bytes long: the same at all members. */
uint32_t algorithm_choose(const struct group *g, const struct plan_spec *spec, uint32_t width);
/* PLAN_HOSTS keeps the order that SPEC asks for, where members of a machine meet in memory: their
 * contributions go as they are, for they are short. */
bool algorithm_may_gather(const struct group *g, const struct plan_spec *spec, uint32_t width);
/* The same of what is combined in any order, or not at all, however long it is. */
bool algorithm_may_meet(const struct group *g, const struct plan_spec *spec, uint32_t width);

/* ---- plan_texts.c: as texts say -------------------------------------------------------------- */

/* That for SPEC, of elements WIDTH bytes long; NULL: none. */
const struct plan_text *texts_choose(const struct group *g, const struct plan_spec *spec,
				     uint32_t width);
void texts_free(struct group *g);

/* ---- messages.c, mark.c, needs.c: collective operations of such ------------------------------ */

#define MESSAGES_DEPTH 1024 /* of their queue, at least: entries of an operation */

/* As flat_begin; with the detail set. */
int messages_begin(struct group *g, const struct slmpm_coll *c);
/* As operation_step. */
int messages_step(struct group *g);
/* It has waited for a while: has a member sent messages of another operation? They may come where
 * this one's plan expects none. Then the group is broken. */
COLD void messages_inspect(struct group *g);
/* The deadline of the one that is under way has passed: its error. */
COLD int messages_late(struct group *g, int timeout_ms);
/* The group is broken by what the thread's detail says, by CULPRIT or -1: ERROR. */
COLD int messages_break(struct group *g, int error, int culprit);
/* Then nothing is read or written any more for the one that was under way. */
COLD bool messages_have_stopped(struct group *g);
/* The context closes. */
void messages_drop(struct group *g);
/* The number of the last one that has been done. */
uint64_t messages_done(const struct group *g);
/* It is to be advanced then, though nothing comes: ns. */
uint64_t messages_due(struct group *g);
void messages_close(struct group *g);
/* For those who ask how it stands: whether the one under way waited for messages of RANK as it was
 * noted last, and how many have come of it. */
void messages_note_awaited(struct group *g);
bool messages_await(const struct group *g, uint32_t rank);
/* The one under way: whom all wait for in the end, as far as is known; -1. */
COLD int messages_suspect(struct group *g);
/* The one under way cannot end without a message of RANK that has not come. */
bool messages_lack(const struct group *g, uint32_t rank);
/* Of an operation that has not begun here some have come. */
bool messages_wait(const struct group *g);
uint64_t messages_came(const struct group *g, uint32_t rank);

/* ---- pairing.c: connections among them ------------------------------------------------------- */

/* As of parts. */
uint64_t pairs_deadlines(struct context *ctx, uint64_t now);
void pair_up(struct endpoint *ep);
void pair_ended(struct endpoint *ep);
void pair_left(struct endpoint *ep);
void pairs_stop(struct context *ctx);
/* Its bell rang. */
void pairs_rang(struct group *g);
/* It has just formed. */
void pairs_formed(struct group *g);
/* The connection with RANK, as slmpm_group_peer, but that it is the group's to close: while others
 * wait it may end. NULL with *RC. */
struct endpoint *group_pair(struct group *g, int rank, int timeout_ms, int *rc);
/* It goes, or its context: what is not up yet ends in order. */
void pairs_end(struct group *g);
/* It goes; its connections stay. So does M's, which is left out. */
void pairs_leave(struct group *g);
void pair_leave(struct member *m);

/* ---- release.c: those of them that no group has any more ------------------------------------- */

/* EP's other side needs it no more. */
int pair_released(struct endpoint *ep);

/* ---- meeting.c ------------------------------------------------------------------------------- */

/* The one that is waited for goes on: true, that is news. */
bool meeting_advance(struct group *g);
/* What it has come to while the group was forming. */
void meeting_formed(struct group *g);

/* ---- founding.c ------------------------------------------------------------------------------ */

/* A group of those N, for CALL, or a part of the group OF, whose errors name no call. With a
 * TIMEOUT_MS of 0 there are no others. NULL with *RC and the detail set. */
struct group *formation_new(const char *call, struct context *ctx, const slmpm_peer *members,
			    uint32_t n, uint32_t tag, const struct group *of, int timeout_ms,
			    int *rc);

/* ---- formation.c: of who founds ------------------------------------------------------------- */

struct joining;
struct groups;

/* It waits for them to join: some have, perhaps. */
void formation_begin(struct group *g);
/* A deadline of a call that waits for it has passed: who is missing. */
int formation_waits(const struct group *g, int timeout_ms);
/* Its deadline has passed: it fails. */
void formation_late(struct group *g, int timeout_ms);
/* The group that waits for EP to join by TAG, of a PART or not; its rank. NULL: none. */
struct group *formation_of(const struct endpoint *ep, uint32_t tag, bool part, uint32_t *rank);
/* What EP has sent is taken by the group, as RANK. */
void formation_joined(struct group *g, struct joining *j, uint32_t rank);
/* OF's peer has failed to begin a join: a group that waits for it fails. */
void formation_no_join(struct groups *of);
/* J's side has mapped all others. */
void formation_ready(struct joining *j);
/* RANK gives up, with ERROR (positive) for TEXT: at its deadline it may come again, until all have
 * come. */
void formation_withdrawn(struct group *g, uint32_t rank, int error, const char *text);
/* It ends with ERROR (positive) for FORMAT, which is sent to those that have come. */
__attribute__((format(printf, 3, 4), cold)) void formation_fail(struct group *g, int error,
								const char *format, ...);
/* The same, for what this process lacks for RANK, as WHY says: it is named, and not RANK. */
COLD void formation_lacks(struct group *g, uint32_t rank, int error, const char *why);
/* RANK's join is over, by what the group is about to fail for: the next one may form another. */
void formation_in_vain(struct group *g, uint32_t rank);
/* J's side listens, at PORT of MACHINE. */
void formation_listens(struct joining *j, uint16_t port, uint32_t machine);
/* EP's join of a part, TAG, is refused, or the next one. */
void formation_refuse_part(struct endpoint *ep, uint32_t tag, int error, const char *text);
/* The first rank that has not come, and has not waited until its deadline either; where all have
 * come, that does not answer. */
uint32_t formation_missing(const struct group *g);
/* RANK has not joined, or does not answer. */
bool formation_awaits(const struct group *g, uint32_t rank);
/* The descriptors of rank's board, bell and process, to be passed on, and its process's number. */
int32_t formation_fds(const struct group *g, uint32_t rank, int fds[WIRE_GROUP_FDS]);
/* EP is to be a member of groups that form: it has ended, or is UP. */
void formation_peer_ended(struct endpoint *ep);
void formation_peer_up(struct endpoint *ep);
void formation_free(struct group *g);
void formation_forked(const struct group *g);

/* ---- addresses.c: where members listen that have no boards ----------------------------------- */

/* Where J's side is to listen, and where RANK listens for it and the key of the two. */
void formation_host(const struct joining *j, char *host, size_t size);
void formation_address(const struct joining *j, uint32_t rank, struct wire_group *packet);

/* ---- joining.c: one join, as seen by either side --------------------------------------------- */

enum joining_due { /* to be sent, in this order */
		   DUE_JOIN = 1 << 0,
		   DUE_LISTENS = 1 << 1,
		   DUE_READY = 1 << 2,
		   DUE_WITHDRAWN = 1 << 3,
		   DUE_BEGIN = 1 << 4,
		   DUE_MEMBERS = 1 << 5,
		   DUE_FORMED = 1 << 6,
		   DUE_REFUSED = 1 << 7,
};

struct joining {
	struct list node; /* of `ours` or `theirs` */
	struct endpoint *ep;
	struct group *group; /* NULL: none yet, or none any more */
	uint32_t number, tag;
	uint32_t due;            /* enum joining_due */
	uint32_t next;           /* rank of the member that is passed on next */
	uint32_t rank;           /* of theirs: in its group */
	bool ours;               /* this process joins; else the peer */
	bool part;               /* of a group of the connection's */
	bool begun;              /* ours: BEGIN has come */
	uint16_t port;           /* where it listens; 0: not, or not yet */
	bool ready;              /* READY is due, or has come */
	bool over;               /* when nothing is due any more, it is freed */
	int board, bell;         /* to be passed on; -1 */
	const struct board *map; /* theirs, until a group has it */
	int error;               /* of who ends it: positive */
	char text[sizeof(((struct wire_group *)0)->text)];
};

struct failed_join { /* of who had nothing to come with; or of a group that does not form */
	uint32_t tag;
	bool part;
	bool here;       /* it came, and could not be taken */
	uint32_t behind; /* the first join behind this one; else any */
	uint32_t count;  /* so many joins, one behind the other, each a group's */
	int error;       /* positive; 0: none */
	char text[sizeof(((struct wire_group *)0)->text)];
};

struct groups { /* of a peer */
	struct list
		stalled; /* of the context's: it has no descriptor that says when there is room */
	struct endpoint *ep;
	struct list unsent;       /* struct unsent: in this order, when there is room */
	struct unsent *spare;     /* for what is said last where there is no memory; or NULL */
	struct list ours, theirs; /* struct joining, by number */
	uint32_t our_last, their_last;
	uint32_t our_count, their_count; /* of them */
	struct failed_join failed;       /* theirs: the last ones */
	/* Before they come: the last ones of ours that the other side refuses, and of theirs. */
	struct failed_join our_refused, their_refused;
};

/* NEXT, behind those noted of the same. */
void failed_note(struct failed_join *noted, const struct failed_join *next);
/* One of those is a group's, or a join's. */
void failed_take(struct failed_join *noted);

/* A new one of OURS or theirs, the last of its list; NULL: there is no memory. */
struct joining *joining_new(struct groups *of, bool ours);
struct joining *joining_find(struct list *list, uint32_t number);
void joining_free(struct joining *j);
/* By which this process is to be a member of G; NULL: not at EP. */
struct joining *joining_of(const struct endpoint *ep, const struct group *g);
/* MORE is due: sent as far as there is room, the rest by progress. Perhaps it is freed then. */
void joining_send(struct joining *j, uint32_t more);
/* Of OURS by TAG nothing comes but why: ERROR, positive, for TEXT. */
void joining_fail(struct groups *of, uint32_t tag, bool part, int error, const char *text);
/* Its side ends it: ERROR, positive, for TEXT. */
void joining_end(struct joining *j, int error, const char *text);
/* What EP has still to join as a member of the group TAG does not form: ERROR, positive, for
 * TEXT. */
void joining_refuse_next(struct endpoint *ep, uint32_t tag, bool part, int error, const char *text);
/* Of one that had not connected by then, and is UP now. */
void joining_refuse_unsaid(struct endpoint *ep);
/* The error by which *REFUSED, which is over then, says so of a join; or 0. */
int joining_refusal(struct failed_join *refused, uint32_t tag, bool part, uint32_t number);
/* There is room again. */
void groups_room(struct endpoint *ep);
uint64_t groups_deadlines(struct context *ctx, uint64_t now);
/* EP has connected: what was to be joined by it before is. */
void groups_up(struct endpoint *ep);
/* EP is about to end; has ended; is freed; is a parent's. */
void groups_ending(struct endpoint *ep);
void groups_end(struct endpoint *ep);
void groups_free(struct endpoint *ep);
void groups_forked(struct endpoint *ep);

/* ---- unsent.c -------------------------------------------------------------------------------- */

/* NULL: there is no memory. */
struct groups *groups_of(struct endpoint *ep);
/* One packet to EP's side can wait for room whatever memory there is then. False: there is none. */
bool groups_reserve(struct endpoint *ep);
/* PACKET goes to EP's side, of a group that need not be there any more: when there is room. False:
 * there is no memory until then. */
bool groups_send(struct endpoint *ep, struct wire_group *packet);
/* Of what passing a packet came to: the peer takes no more now; else it has, or has ended. */
bool groups_are_full(int rc);
/* What waits goes, as far as there is room: 0, or a negative errno, as of bootstrap_pass. */
int groups_send_unsent(struct groups *of);
void groups_drop_unsent(struct groups *of);
/* Progress is to send the rest, for RC, which the last one came to. */
void groups_await_room(struct groups *of, int rc);

/* ---- intake.c -------------------------------------------------------------------------------- */

/* As parts.grouped. */
int group_packet(struct endpoint *ep, const struct wire_group *packet, int *fds, int n, bool lost);
/* Of one of OURS that has failed: the group's call returns ERROR (positive). */
__attribute__((format(printf, 3, 4), cold)) void group_fail(struct group *g, int error,
							    const char *format, ...);

#endif
