/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions, the one-sided operations that reach a peer's, and the reception FIFO. A part of
 * <slmpm.h>.
 */
#ifndef SLMPM_API_MEMORY_H
#define SLMPM_API_MEMORY_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory regions ------------------------------------------------------------------------- */

#define SLMPM_READ       1u /* peers may get */
#define SLMPM_WRITE      2u /* peers may put */
#define SLMPM_READ_WRITE 3u /* and with both do atomic operations */
#define SLMPM_COUNT      4u /* of slmpm_ctr_mem, and of no other: they may count it */

#define SLMPM_KEY_SIZE 64
struct slmpm_key { /* gives permission: 128 random bits and what they are for. Any byte order. */
	unsigned char bytes[SLMPM_KEY_SIZE];
};

/*
 * A region of SIZE new bytes, zeroed, page-aligned, at *BASE; ACCESS is the most that peers may be
 * given. Peers map it: puts and gets are then plain copies. What the mapping allows cannot be
 * checked any more: a peer that may write can also read, and may write at any time until it is
 * revoked. SLMPM_ENOMEM, SLMPM_EFBIG.
 */
SLMPM_API int slmpm_mem_alloc(slmpm_ctx ctx, size_t size, uint32_t access, slmpm_mem *mem,
			      void **base);
/* A region of memory that the application has, at any address; it must stay until destroyed. Where
 * the machine lets a process reach another's memory, transfers go directly; elsewhere each waits
 * for this process to make progress. */
SLMPM_API int slmpm_mem_register(slmpm_ctx ctx, void *base, size_t size, uint32_t access,
				 slmpm_mem *mem);
/*
 * A key for PEER and nobody else, giving ACCESS (within the region's). It can travel in a message
 * as it is. Each call makes a new one, which can be opened once. Waits for a peer that is still
 * connecting, SLMPM_HANDSHAKE_MS at most. SLMPM_EACCES, SLMPM_ELIMIT (SLMPM_KEYS a peer),
 * SLMPM_EAGAIN (the peer has not looked at those before), SLMPM_ETIMEOUT.
 */
SLMPM_API int slmpm_mem_key(slmpm_mem mem, slmpm_peer peer, uint32_t access, struct slmpm_key *key);
/* Opens what PEER gave the key to; a handle by address gives all operations on it a hint.
 * SLMPM_EACCES: not this peer's key, used up, or revoked; SLMPM_EBUSY: it is open already. Where a
 * key may have come by a shorter route than what goes ahead of it (over TCP), it waits a second for
 * that at most; else it does not block. */
SLMPM_API int slmpm_mem_open(slmpm_peer peer, const struct slmpm_key *key, slmpm_rmem *rmem);
/* Key, message and open in one: gives PEER the access and waits until it has accepted. On
 * SLMPM_ETIMEOUT the offer is taken back. Source: DaCS. */
SLMPM_API int slmpm_mem_share(slmpm_mem mem, slmpm_peer peer, uint32_t access, int timeout_ms);
/* The next region that PEER shares, in its order; opened like slmpm_mem_open. */
SLMPM_API int slmpm_mem_accept(slmpm_peer peer, slmpm_rmem *rmem, int timeout_ms);
/* The acceptor is through with it: the handle is gone, the owner is notified. SLMPM_EBUSY while
 * operations are under way. */
SLMPM_API int slmpm_mem_release(slmpm_rmem rmem);
/*
 * Takes back what PEER was given: when this has returned 0 nothing it does reaches the region any
 * more, and its operations that begin then end with SLMPM_EACCES; one that had begun before may be
 * completed there, and not be seen here. Of an allocated region the pages are exchanged, not to
 * be written here meanwhile; other peers then go on by requests, without the mapping, and nothing
 * of theirs is lost. One that does not release it within TIMEOUT_MS is revoked, too.
 * SLMPM_ETIMEOUT: nothing is revoked, for PEER attaches to registered memory and has not released
 * it, or there was no time to copy the pages (the first 16 MiB are, whatever TIMEOUT_MS says); it
 * may be called again. Several threads may revoke at once, also the same PEER: each call keeps this
 * promise by itself, whoever is late for the shortest TIMEOUT_MS is revoked for all of them, and
 * the pages are to be left alone until the last has returned. SLMPM_EHANDLE: another thread has
 * ended the region meanwhile; nothing reaches it.
 */
SLMPM_API int slmpm_mem_revoke(slmpm_mem mem, slmpm_peer peer, int timeout_ms);
/* Ends a region: waits until every acceptor has released it (or is gone); memory of slmpm_mem_alloc
 * is unmapped. SLMPM_ETIMEOUT: it stays as it was. */
SLMPM_API int slmpm_mem_destroy(slmpm_mem mem, int timeout_ms);
/* Puts with SLMPM_NOTIFY into the region are counted by CTR and queued in CQ; {0}: not (any more).
 * A notified put into a region with neither is done and counted in the statistics only. */
SLMPM_API int slmpm_mem_notify(slmpm_mem mem, slmpm_ctr ctr, slmpm_cq cq);

enum slmpm_mem_kind { SLMPM_MEM_HOST = 1 };

struct slmpm_mem_info {
	uint32_t size;
	uint32_t access;    /* SLMPM_READ, WRITE, COUNT: of the region, or of the key */
	uint32_t kind;      /* enum slmpm_mem_kind */
	uint32_t mapped;    /* 1: transfers are plain copies here */
	uint64_t length;    /* bytes */
	uint64_t address;   /* the owner's virtual address */
	uint64_t acceptors; /* own region: keys opened and not released */
	char path[16]; /* a peer's: "map", "attach", "fabric", "ring", "none"; or "am", "tag" */
};

/* What a region, or a peer's as far as its key goes, is and how it is reached. Set info->size. */
SLMPM_API int slmpm_mem_query(slmpm_mem mem, struct slmpm_mem_info *info);
SLMPM_API int slmpm_rmem_query(slmpm_rmem rmem, struct slmpm_mem_info *info);

/* ---- One-sided operations ------------------------------------------------------------------- */

/*
 * Write to and read from a peer's region without its doing. Local completion: the buffer is the
 * caller's again (put), or has the data (get). With SLMPM_REMOTE a put is done only when the target
 * can see it. What is sent to that peer after a put's completion arrives after the put. Operations
 * are in no order among themselves unless SLMPM_FENCE or SLMPM_BARRIER asks for it. SLMPM_EACCES
 * (not allowed, revoked), SLMPM_EINVAL (outside of the region), SLMPM_EDEAD, SLMPM_ECLOSED. A put
 * to a region that is neither mapped nor reachable (slmpm_rmem_query: "ring") ends with REMOTE, and
 * a get at all, only when the target makes progress. HOW and REQ may be NULL: the call then blocks.
 * SLMPM_ETIMEOUT: the buffer is the caller's again; what had begun may be there in part, or come
 * (of a put that the target was copying, as the buffer stands then), but overtakes no later put.
 */
SLMPM_API int slmpm_put(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
			const struct slmpm_how *how, slmpm_req *req);
SLMPM_API int slmpm_get(slmpm_rmem from, uint64_t offset, void *to, size_t len,
			const struct slmpm_how *how, slmpm_req *req);

struct slmpm_span {
	uint64_t offset, len;
};

/* Lists: the bytes of N spans of the region against those of M pieces here, in order; both sides
 * have as many bytes in all. */
SLMPM_API int slmpm_putv(slmpm_rmem to, const struct slmpm_span *spans, int n,
			 const struct slmpm_iov *pieces, int m, const struct slmpm_how *how,
			 slmpm_req *req);
SLMPM_API int slmpm_getv(slmpm_rmem from, const struct slmpm_span *spans, int n,
			 const struct slmpm_iov *pieces, int m, const struct slmpm_how *how,
			 slmpm_req *req);

enum slmpm_atomic_op {
	SLMPM_FETCH_ADD = 1,
	SLMPM_COMPARE_SWAP = 2, /* stores OPERAND where COMPARE was */
	SLMPM_SWAP = 3
};

/*
 * One atomic operation on the word of BITS (32 or 64) at OFFSET, naturally aligned, in the owner's
 * byte order; *OLD (uint32_t or uint64_t, may be NULL) gets what was there. Needs READ and WRITE.
 * Atomic against the same calls of all processes and the owner's C11 atomics.
 */
SLMPM_API int slmpm_atomic(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
			   uint64_t compare, void *old, const struct slmpm_how *how,
			   slmpm_req *req);
/* Waits until all puts and atomic operations to PEER so far are visible there; or the error of a
 * put that had ended here and was refused there. And until the peer is through with the buffer of
 * an operation that has ended with SLMPM_EBUSY. */
SLMPM_API int slmpm_flush(slmpm_peer peer, int timeout_ms);

/*
 * A put with SLMPM_FIFO writes nothing: its bytes wait in the target's reception FIFO, with where
 * they would go, until the target's processor has looked at them. It keeps the order of messages,
 * costs their credit until it is disposed of, and has one span. One that is longer than eager_max
 * less 56 bytes comes when no other such of its origin is there. Done when the buffer is the
 * caller's again, with SLMPM_REMOTE when the target has stored or dropped it. No FENCE, BARRIER,
 * NOTIFY, VIA; slmpm_flush does not wait for it. SLMPM_ENOTSUP: the peer's library is older.
 * Source: the memory FIFO of DMA engines.
 */
struct slmpm_fifo {       /* an entry that was taken */
	uint64_t id;      /* 0: none */
	slmpm_peer peer;  /* whose put it is */
	slmpm_mem mem;    /* what it is meant for: a region of this process, ... */
	uint64_t offset;  /* ... there; both were checked when it came */
	const void *data; /* memory of the library's, which the peer does not reach */
	size_t len;
	uint32_t imm;
	uint32_t zero;
	uint64_t reserved[4]; /* of later releases; zero */
};

/* The next entry of PEER, or of any (slmpm_any(ctx)). SLMPM_ETIMEOUT; SLMPM_EDEAD,
 * SLMPM_ECLOSED: there are no more. Its data stays until it is stored or dropped, or the peer's
 * handle ends. */
SLMPM_API int slmpm_fifo_take(slmpm_peer peer, struct slmpm_fifo *entry, int timeout_ms);
/*
 * Stores its bytes at OFFSET of MEM, a region of this process in the same context: where it was
 * meant to go, or elsewhere. HOW and REQ as of a put: without blocking, the engine (SLMPM_ENGINE)
 * moves the bytes meanwhile. The entry is zeroed, its data not to be looked at any more. Any error:
 * it is as it was.
 */
SLMPM_API int slmpm_fifo_store(struct slmpm_fifo *entry, slmpm_mem mem, uint64_t offset,
			       const struct slmpm_how *how, slmpm_req *req);
/* The caller has taken from it what it wanted. The entry is zeroed. Does not block. */
SLMPM_API int slmpm_fifo_drop(struct slmpm_fifo *entry);

#ifdef __cplusplus
}
#endif

#endif
