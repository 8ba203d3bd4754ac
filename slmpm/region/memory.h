/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: own ones, the grants that peers have to them, and peers' regions as reached from
 * here. A grant is a key: 128 random bits for one peer, one region and some rights. What the fabric
 * needs to reach the region goes ahead of the key over the control socket, so that opening a key
 * asks nobody. What reaches a region without mapping names the key each time, and region_check is
 * where it is checked (R9).
 */
#ifndef SLMPM_MEMORY_H
#define SLMPM_MEMORY_H

#include "slmpm/endpoint.h"

#define KEY_SECRET 16

struct counter;
struct queue;
struct head;
struct sharing;

struct regions {               /* of an endpoint */
	struct grant **grants; /* the peer's, by id modulo `room`; a power of two */
	uint32_t room, count;
	uint32_t last;       /* id given */
	uint64_t *words;     /* bits: access words of the peer's that grants have */
	uint32_t guesses;    /* requests with a key that never was */
	uint32_t notified;   /* id of the peer's newest grant that came, in the ring */
	struct list offered; /* struct remote: of the peer's keys, those not opened here ... */
	struct list open;    /* ... and those that are */
	struct list shared;  /* of those offered: to be accepted */
	uint32_t taken;      /* offered and open */
	uint32_t maps;       /* of those, with a mapping */
	uint64_t mapped;     /* bytes of these */
	bool agreed;         /* the peer has regions and one-sided operations, too */
};

struct region { /* of this process */
	struct handle handle;
	struct context *ctx; /* stays: another thread may read it just as it is freed */
	struct list node;    /* of the context's */
	struct fabric_memory memory;
	struct fabric_domain *domain; /* whose memory it is; NULL: the process's own */
	uint32_t access;              /* SLMPM_READ, WRITE, COUNT: the most that a key may give */
	bool allocated;
	bool exposed;            /* peers without a grant may still have its pages mapped */
	uint32_t storing;        /* entries of the FIFO being stored there */
	uint32_t exchanging;     /* threads that are about to exchange them: nobody else maps */
	uint32_t revoking;       /* calls of slmpm_mem_revoke under way */
	uint32_t destroying;     /* threads that have taken back all keys: none is given any more */
	struct list grants;      /* struct grant */
	struct counter *counter; /* notified of puts that say so; or NULL */
	struct queue *queue;
	struct counter *word; /* it is this one, and no memory; or NULL */
};

struct grant { /* what one peer may do with one region */
	struct list of_region;
	struct region *region; /* NULL: ended already, the grant is ending */
	struct endpoint *ep;
	uint32_t id; /* within the endpoint, not used again */
	uint32_t access;
	uint32_t word;     /* the peer's access word for it, if HAS_WORD */
	uint32_t revoking; /* calls under way that are to take it back */
	unsigned char secret[KEY_SECRET];
	bool has_word;
	bool mapped;            /* the peer has been given the mapping */
	bool attached;          /* or the address */
	bool accepted;          /* the peer holds it open */
	bool releasing_mapping; /* it has been asked to release the mapping, and to go on without */
	bool ending;            /* taken back; its end waits for the peer's answer */
	struct sharing *sharing; /* who waits for its acceptance; or NULL */
};

struct shortcut {        /* what the fast paths read, on the line of the handle */
	uint32_t ops;    /* bits of enum fabric_op; 0: not mapped, or several threads */
	uint32_t locked; /* of those threads: bits of what goes so under the lock, or 0 */
	unsigned char *base;
	uint64_t size;
	const struct rma *rma;
	struct slmpm_stats *stats;
	const _Atomic unsigned char *access; /* the access word */
};

struct remote {                 /* a peer's region: as offered, and then behind slmpm_rmem */
	struct handle handle;   /* generation 0: not opened yet */
	struct context *ctx;    /* stays, as that of a region */
	struct shortcut direct; /* ops stays 0 with threads: they read it before they lock */
	uint32_t measured; /* bits that are to be back once the next operation is measured; or 0 */
	uint32_t guarded;  /* what goes the fast path only where it brings nothing into a mirror */
	struct endpoint *ep;
	struct list node;   /* of the endpoint's, offered or open */
	struct list shared; /* offered by slmpm_mem_share: in the order of the offers; or alone */
	uint32_t asked;     /* by the handle that opened it: a link, as flags of slmpm_how; ... */
	uint32_t hint;      /* ... or 0 where that is the one by which it is reached */
	uint64_t address;   /* at the owner */
	unsigned char secret[KEY_SECRET];
	struct fabric_memory memory; /* memory.ops: what the fabric does on it; 0: by requests */
	const _Atomic unsigned char *access_word; /* own memory that the owner sets; or NULL */
	uint32_t grant;
	uint32_t active;  /* operations under way */
	uint32_t copying; /* of them outside of the context's lock */
	uint8_t access;   /* SLMPM_READ, WRITE, COUNT */
	bool revoked;     /* taken back */
	bool unmapped;    /* its mapping was taken back: once */
	uint8_t deferred; /* answers to the owner for when nobody copies: enum release */
};
_Static_assert(
	sizeof(void *) != 8 || sizeof(struct remote) == 256,
	"the fast paths find it by a shift: with another size each costs three instructions more");

enum release { RELEASE_ALL = 1, RELEASE_MAPPING = 2 };

extern struct handle_table region_table, remote_table;

/*
 * Where the peer's regions are mapped, by the low bits of their handles. A guess: whoever asks for
 * a line ahead of all checks need not walk to it, and asking for a wrong one harms nobody.
 */
#define REMOTE_GUESSES 64
extern _Atomic(unsigned char *) remote_guesses[REMOTE_GUESSES];

static inline struct region *region_get(slmpm_mem mem)
{
	return (struct region *)handle_get(&region_table, mem.id);
}

static inline struct remote *remote_get(slmpm_rmem rmem)
{
	return handle_get_sized(&remote_table, rmem.id, sizeof(struct remote));
}

/* The same with the context locked; NULL: nothing is locked, the detail is set and *RC. */
static inline struct region *region_lock(slmpm_mem mem, int *rc)
{
	return (struct region *)context_lock_object(&region_table, mem.id, rc);
}

static inline struct remote *remote_lock(slmpm_rmem rmem, int *rc)
{
	return (struct remote *)context_lock_object(&remote_table, rmem.id, rc);
}

/* A peer's request from its ring: the grant ID of EP when SECRET is its key (compared in constant
 * time), ACCESS is among its rights and LEN bytes at OFFSET lie in the region, also for LEN 0; else
 * NULL and the refusal is counted, *STATUS is -SLMPM_EACCES or -SLMPM_EINVAL. */
struct grant *region_check(struct endpoint *ep, uint32_t id, const unsigned char *secret,
			   uint32_t access, uint64_t offset, uint64_t len, int *status);
/* The same grant later on, while a request in several packets goes on; NULL: it has ended. */
struct grant *grant_find(struct endpoint *ep, uint32_t id);
/* Where the region of grant ID begins here; false: there is none. */
bool grant_address(struct endpoint *ep, uint32_t id, uint64_t *address);

static inline void *region_at(const struct region *region, uint64_t offset)
{
	return (unsigned char *)region->memory.base + offset;
}

/*
 * How R may be reached now. Relaxed: who knows that the owner's call has returned knows it by an
 * acquire of its own, before this; it pairs with the release behind link_set_access.
 */
static inline unsigned remote_access(const struct remote *r)
{
	return r->access_word ? atomic_load_explicit(r->access_word, memory_order_relaxed) :
				(unsigned)FABRIC_ACCESS_DIRECT;
}

/* By the owner's packet, or its word already. */
bool remote_is_revoked(const struct remote *r);

/* The owner has what it waited for: who copied without the context's lock calls this with it. */
void memory_release(struct remote *r);
static inline void memory_copied(struct remote *r)
{
	if (!--r->copying && UNLIKELY(r->deferred))
		memory_release(r);
}

/* ---- the life of an endpoint and a context ---- */

void memory_begin(struct endpoint *ep);
/* It is UP: the peer's numbers begin where it began them. */
void memory_up(struct endpoint *ep);
/* The peer's PACKET of LENGTH over the control socket; LOST: its descriptor found no room here.
 * *FD: that which came along, or -1; -1 if it was taken. Negative: it breaks the rules. */
int memory_granted(struct endpoint *ep, const struct wire_grant *packet, size_t length, int *fd,
		   bool lost);
/* Before an orderly end: a peer that reaches memory of the application's stops. ETIMEOUT. */
int memory_close(struct endpoint *ep, int timeout_ms);
/* At the endpoint's end: its grants are gone, its regions reach nowhere; and its handle's. */
void grant_end_all(struct endpoint *ep);
void remote_end_all(struct endpoint *ep);
void memory_forget(struct endpoint *ep);
/* The context ends: its regions do. In the child after fork. */
void memory_shut(struct context *ctx);
void memory_forked(void);

/* C ends: its region does, and what was granted of it. As of parts.uncounted. */
void region_uncounted(struct counter *c);

/* ---- packets ---- */

void memory_arrival(struct endpoint *ep, const struct head *h);

/* ---- between memory*.c ---- */

/* One without memory so far; NULL with the detail set. And the end of one. */
struct region *region_new(struct context *ctx, uint32_t access);
void region_free(struct region *region);

/* A new grant, and the peer has what it needs to open it; NULL with *RC and the detail set. */
struct grant *grant_new(struct region *region, struct endpoint *ep, uint32_t access, int *rc);
/* Takes it back; the peer is notified by OPCODE. It is there until the peer has answered. */
void grant_take_back(struct grant *g, uint8_t opcode);
/* What the word says by which the peer knows how to reach it, if G has one. */
void grant_word_set(const struct grant *g, enum fabric_access access);
/* The owner's side of acceptance, release and answers to revocation: the rule that is broken. */
const char *grant_accepted(struct endpoint *ep, uint32_t id);
const char *grant_answered(struct endpoint *ep, uint32_t id, bool released, bool mapping);

/* In this machine's byte order; false: the bytes are none. */
bool key_read(const struct slmpm_key *key, struct wire_key *k);
/* In constant time. */
bool key_same_secret(const unsigned char *a, const unsigned char *b);

/* Not opened yet and announced by KEY, also if that is still in the socket; NULL with *RC and the
 * detail set. */
struct remote *remote_offered(struct endpoint *ep, const struct slmpm_key *key, int *rc);
/* Gives it a handle and tells the owner; BY: the handle of the peer that the caller has. */
int remote_open(struct remote *offer, slmpm_peer by, slmpm_rmem *rmem);
/* Offered or open; or NULL. */
struct remote *remote_find(struct endpoint *ep, uint32_t id);
/* Where the region of the peer's grant ID begins in its process; false: there is none. */
bool remote_address(struct endpoint *ep, uint32_t id, uint64_t *address);
/* One that was opened and is mapped; or NULL. */
struct remote *remote_mapped(const struct endpoint *ep, uint32_t id);
/* The owner takes it back, having taken in requests up to RECEIVED, or its mapping alone: the rule
 * that is broken. */
const char *remote_taken_back(struct endpoint *ep, uint32_t id, bool mapping, uint64_t received);

/* The context has several threads now: shortcuts are for who has the lock. */
void remote_share_shortcuts(struct context *ctx);
/* The context has its first mirror, or none any more. */
void remote_guard_shortcuts(struct context *ctx);

struct sharing { /* a thread waits for its offer to be accepted */
	bool accepted, gone;
};

struct peer_wait { /* what a call waits for; another thread may close the peer meanwhile */
	struct endpoint *ep;
	slmpm_peer peer;
	uint32_t grant; /* if it is one */
};

#endif
