/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One put to many members of a group: each keeps the bytes at its own place and hands them on. Not
 * a part of <slmpm.h>: include it beside that.
 */
#ifndef SLMPM_API_DEPOSIT_H
#define SLMPM_API_DEPOSIT_H

#include <slmpm_group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct slmpm_put_spec.flags. The request in broadcast form: handed on at once, and each target
 * answers; or, by the second, stored and forwarded: each adds its answer, and the last sends them
 * all. With neither the number of targets decides. */
#define SLMPM_PUT_ALL_BROADCAST 1u
#define SLMPM_PUT_ALL_FORWARD   2u
/* Where some refuse, or die, the others get it: else none does. */
#define SLMPM_PUT_ALL_ANYWAY    4u
/* The bytes along the line of the targets; or the caller sends them to each. With neither it goes
 * by what both have cost, for so many targets and bytes. */
#define SLMPM_PUT_ALL_LINE      8u
#define SLMPM_PUT_ALL_DIRECT    16u

/* LEN bytes at FROM go to the reference (space, offset) of all other members. */
struct slmpm_put_spec {
	uint32_t size;  /* sizeof(struct slmpm_put_spec) */
	uint32_t flags; /* SLMPM_PUT_ALL_* */
	uint32_t space; /* slmpm_group_space, of each target */
	uint32_t imm;   /* in the targets' completions */
	uint64_t offset, len;
	const void *from;    /* stays as it is until the completion */
	const int32_t *rank; /* the targets, in any order; copied; NULL: all other members */
	int32_t count;       /* of them */
	uint32_t reserved;   /* zero */
	slmpm_cq answers;    /* where each target's answer goes as well; or {0} */
	/* Called when all have answered: 0, and the put begins; or a negative error, which ends it.
	 * NULL: it begins by itself. */
	int (*ready)(void *arg);
	void *arg;
};

/*
 * Each target says where its reference lies, or refuses it (slmpm_group_deposits); once all have
 * agreed the bytes go along the line of the targets, by rank from the caller's on, those of one
 * host together: each stores them and hands them on, in its progress or by its engine's thread; or
 * from the caller to each, if that has cost less. It ends by HOW, or by REQ, as slmpm_sendv does,
 * with neither it blocks, by how->timeout_ms: once, when all targets have all of it. The completion
 * is SLMPM_OP_PUT_ALL, .stream the space, .flags which of SLMPM_PUT_ALL_* were chosen, .imm of an
 * error the rank that it is about (UINT32_MAX: none); an entry of `answers` SLMPM_OP_ANSWER, .imm
 * the rank. Those of one member are done one after the other. Where a target dies, those behind it
 * get the rest.
 * SLMPM_ENOENT: a target has no such space; SLMPM_ELIMIT: the space is too short there; or what it
 * refuses it with; SLMPM_EDEAD, SLMPM_ECLOSED: a target has died, or left; SLMPM_ETIMEOUT: the
 * detail names who has not answered. Before the bytes went: no target has any of them; else it
 * names those in doubt. SLMPM_EINVAL, SLMPM_ESTATE, SLMPM_ENOMEM. Source: document 000 (D2 to D5).
 */
SLMPM_API int slmpm_put_all(slmpm_group group, const struct slmpm_put_spec *put,
			    const struct slmpm_how *how, slmpm_req *req);

/* What is to come to this member, or has come: valid during the call; it may grow at its end. */
struct slmpm_deposit {
	void *base; /* of the space here; `prepare` may set it; NULL: there is none */
	uint64_t offset, len;
	uint32_t space, imm;
	int32_t origin; /* rank of whose put it is */
};

#define SLMPM_REFUSAL 96 /* bytes of a text, with its end */

/* How this member takes what others put to all. */
struct slmpm_deposits {
	uint32_t size;
	uint32_t reserved; /* zero */
	slmpm_cq cq;       /* of what has come, or has failed to: SLMPM_OP_DEPOSIT; or {0} */
	/* Each request, before any byte has moved: 0, and the bytes go to base + offset; or a negative
	 * error, with a text, which is the origin's then. NULL: as the table of spaces says. */
	int (*prepare)(struct slmpm_deposit *deposit, char text[SLMPM_REFUSAL], void *arg);
	/* Each that was not refused, once: all of it has come, or, STATUS being negative, it has ended
	 * before; its memory is the application's again. */
	void (*done)(const struct slmpm_deposit *deposit, int status, void *arg);
	void *arg;
};

/*
 * From now on; NULL: by the table, and with no completion, as at first. The functions run as
 * handlers of active messages do. A completion has .stream the space, .cookie the offset, .len,
 * .imm, and in .flags the origin's rank. SLMPM_EINVAL. Does not block.
 */
SLMPM_API int slmpm_group_deposits(slmpm_group group, const struct slmpm_deposits *deposits);

#ifdef __cplusplus
}
#endif

#endif
