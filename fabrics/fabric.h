/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the module and a fabric: a constant table of functions that move bytes.
 *
 *  1. A fabric gives bytes no meaning and calls nobody. It finds out and returns.
 *  2. The core allocates: domain_size and link_size zeroed bytes, the public part first.
 *  3. post takes a work request or refuses without a trace (-EAGAIN). 1: done; 0: a packet is
 *     taken, and a part of it is in this process still, until link->lags says otherwise.
 *     -EPROTO: the peer's words are impossible; the link is poisoned and only disconnect follows.
 *     -EPIPE: the link is lost, link->lost says how; likewise, once poll has handed out all that
 *     came before.
 *     On memory also -EFAULT (none there, or none here that the kernel may write), -ESRCH (its
 *     process is gone), and -EPERM (it may not be reached any more: memory.ops is 0 from now on);
 *     some of the bytes may have been moved. 0: begun, and a later poll sets link->ops, where
 *     memory.later says so.
 *  4. What poll hands out stays valid until release; arrivals of a link come in order and may be
 *     released in any order. Their data is the peer's to change: copy what decides anything.
 *  5. reserve, post, poll and release never allocate, block or log. One thread at a time in a
 *     domain and its links; but WRITE and READ on memory may run in a second one, beside.
 *  6. The inbound side of a link is a ring in local memory with shadow totals, whatever the fabric.
 *
 * A new fabric is one file fabrics/NAME.c that defines `const struct fabric fabric_NAME`, and no
 * edit elsewhere. A first line like `pkg-config: LIB` in a comment names what it links with; the
 * Makefile leaves the fabric out, saying so, where that is missing. doc/adding_a_fabric.md.
 */
#ifndef FABRICS_FABRIC_H
#define FABRICS_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/compiler.h"

#define FABRIC_HEAD_WORDS 3 /* the core's header: carried in front of the payload, not looked at */
#define FABRIC_HEAD_SIZE  (FABRIC_HEAD_WORDS * 8)

/* Operations; a bit (1 << op) in fabric_caps.ops says that the fabric does one natively. */
enum fabric_op {
	FABRIC_SEND, /* a packet into the peer's ring */
	/* Publish the totals now, whatever the thresholds say; refresh the counts. -EAGAIN where packets
	 * that were taken have not all left this process yet. */
	FABRIC_FLUSH,
	/* Bytes into the peer's memory: wr.memory, wr.offset, wr.size. One that completes later has
	 * its place in link->ops: wr.length. */
	FABRIC_WRITE,
	FABRIC_READ,   /* and out of it */
	FABRIC_ATOMIC, /* wr.data is a struct fabric_atomic */
	/*
	 * From now on posts and reserves leave wr.length segments of the peer's ring free, up to
	 * FABRIC_HOLD_MAX. A packet of no more than FABRIC_WORD_MAX bytes takes one: where a post
	 * has been taken since the number was raised, such a packet will be once it is lowered by
	 * one.
	 */
	FABRIC_HOLD_BACK,
	/*
	 * The arrival that poll handed out last has no data yet (caps.land_min): put its payload at
	 * wr.into, or, NULL, into the ring. A later poll hands it out again, with data where it was
	 * put; nothing else arrives from the link before. Posted again meanwhile: what has come
	 * moves to the new place, and the old one is not touched any more.
	 */
	FABRIC_LAND,
	/*
	 * What the link's public part says of it is brought up to date; nothing is published. The
	 * counts, and with FABRIC_ASK as of what waits unreceived, too. FABRIC_LOAD: counts.carried
	 * and in_flight instead, negative where a packet has arrived once it is posted. FABRIC_SIGN:
	 * last_sign instead, -ENOTSUP where what is sent stays on this machine.
	 */
	FABRIC_STATUS,
};

/* How a peer that reaches memory directly may do so now: an access word, which the memory's owner
 * sets in the peer's memory (link->peer_access), and the peer reads before each operation. */
enum fabric_access {
	FABRIC_ACCESS_DIRECT,
	FABRIC_ACCESS_REQUEST, /* not now: its owner is to be asked */
	FABRIC_ACCESS_REVOKED,
};
#define FABRIC_ACCESS_WORDS 3584

enum fabric_flag {
	FABRIC_MORE = 1, /* another post follows at once: the wake-up may wait for it */
	/* So does one of the same message, or a refusal or reserve in its place, and the payload stays as
	 * it is until that has returned: both may go as one. */
	FABRIC_STAYS = 2,
	FABRIC_BUILT = 4, /* the payload was built in place, where reserve said */
	/* FLUSH: -EAGAIN as long as the end of this process could take back what has left it. And what
	 * has come is confirmed now: the peer may wait for that likewise. */
	FABRIC_LAST = 8,
	/* STATUS, SIGN: the other machine is asked for a sign of life, as soon as its kernel may be. */
	FABRIC_ASK = 16,
	/* STATUS, SIGN: the other machine has been silent for too long, the link is lost: -EPIPE. */
	FABRIC_SILENT = 32,
	/* STATUS, SIGN: signs of life on the bell's connection count, and that one may ask for them. */
	FABRIC_WITH_BELL = 64,
	/* FLUSH, alone: nothing more is sent, and the peer receives the link's end, however long this side
	 * keeps it. What has come can still be released. -ENOTSUP where a link does not end by itself. */
	FABRIC_END = 128,
	/* SEND with FABRIC_BY, where several links are joined: by no other one. -ENOLINK where that does
	 * not stand; nor is it taken before it goes by it. Alone: nor before it goes by any. */
	FABRIC_ONLY = 256,
	FABRIC_LOAD = 1 << 12, /* STATUS: of what is under way */
	FABRIC_SIGN = 1 << 13, /* STATUS: of the other machine's last sign of life */
	/* FLUSH, alone: no operation on memory that is under way, of either side, touches this
	 * process's memory any more, nor is link->ops set. -ENOTSUP where none complete later. */
	FABRIC_CANCEL = 1 << 14,
};

/* SEND: by link N of those that are joined, if it stands, else by any. One that stands alone looks
 * at neither of these flags. */
#define FABRIC_BY_SHIFT 9
#define FABRIC_BY_MASK  (7u << FABRIC_BY_SHIFT)
#define FABRIC_BY(n)    (((unsigned)(n) + 1) << FABRIC_BY_SHIFT)

/* How the reader learns that a packet is complete (doc/architecture.md). */
enum fabric_commit {
	FABRIC_COMMIT_WORD,    /* polls the packet's first word, locally */
	FABRIC_COMMIT_COUNTER, /* polls its local shadow total */
	FABRIC_COMMIT_EVENT,   /* a local counter or completion queue entry */
	FABRIC_COMMIT_STREAM,  /* its receive engine writes ring and total */
};

#define FABRIC_MEMORY_HOST        1u
#define FABRIC_CAUSES             4
/* Segments of a ring that the core may have read and not released while it does not poll. */
#define FABRIC_DUE(segments)      ((segments) / 128)
/* That may be held back: a reader publishes its total early enough for a writer that does so. */
#define FABRIC_HOLD_MAX(segments) ((segments) / 16)
#define FABRIC_WORD_MAX           32

struct fabric_caps {
	uint64_t ops;         /* 1 << enum fabric_op: what it does */
	uint64_t later;       /* and, of WRITE, READ and ATOMIC, what it begins and poll tells of */
	uint32_t memory;      /* FABRIC_MEMORY_*: what it can read payload from and write it to */
	uint64_t message_max; /* payload of one post on the largest ring */
	uint32_t packet_best; /* payload of a packet that serves long messages best */
	uint32_t whole_best;  /* likewise of a message that goes in one, as one of a stream */
	uint32_t land_min;    /* arrivals from this length on come without data first; 0: none do */
	enum fabric_commit commit;
	bool membarrier; /* a sleeper can pay for the barrier of both sides */
	int uring; /* 1: io_uring works, where probe was to try it; negative errno: it does not */
	uint64_t link_memory; /* with a config: bytes that a link comes to take, beside link_size */
	char why_not[96];     /* probe < 0: the reason, for a person */
};

/* By what a fabric of sockets receives and sends. */
enum fabric_engine {
	FABRIC_ENGINE_AUTO, /* as it has been measured to be best: plain calls */
	FABRIC_ENGINE_PLAIN,
	FABRIC_ENGINE_URING, /* io_uring both ways, where the kernel lets it, */
	FABRIC_ENGINE_URING_RECV,
	FABRIC_ENGINE_URING_SEND, /* or one */
};

/* The ring's shape, and when its totals are published, as the settings say. */
struct fabric_config {
	uint32_t segments, segment_size; /* of inbound rings */
	uint32_t threshold_permille; /* p: publish K when the unread share reaches it; 0 always */
	uint32_t batch;              /* minimum segments a publication; 0: N/16 */
	bool membarrier;             /* may be used where it works */
	uint8_t engine;              /* enum fabric_engine */
	uint64_t start;              /* totals begin here: 0 but in tests */
	uint32_t dead_ms;            /* so long may another machine be silent; 0: for ever */
};

/* Plain counters of a link, kept by the fabric, current after each STATUS, FLUSH and arm. */
struct fabric_counts {
	uint64_t produced, consumed_seen, out_segments;
	uint64_t read, consumed, in_segments, in_produced_seen;
	uint64_t remote_writes;
	uint64_t publications[FABRIC_CAUSES];
	uint64_t produced_publications;
	uint64_t bells;
	/* Bytes that were posted, as of the last LOAD: the peer's machine has them, or may not yet. */
	uint64_t carried, in_flight;
};

struct fabric;
struct fabric_memory;
struct sockaddr;

struct fabric_domain { /* first member of the fabric's own structure */
	/* ---- set by the core */
	const struct fabric *fabric;
	struct fabric_config config;
	/* In a forked child's copy: disconnect and close only close descriptors, for what else they would
	 * change is the parent's, too. */
	bool forked;

	/* ---- set by the fabric */
	/* From open on, what the core sleeps on: readable, once armed, when poll or connect may
	 * find something new on a link of the domain. -1: a peer rings the link's bell instead. */
	int fd;
	/* Bells rung by all links so far: another figure where a peer was asleep when sent to. */
	uint64_t bells;

	/* ---- set by one, cleared by the other */
	/* The sleeper is to be woken: since arm a post or a poll has taken what fd would have
	 * shown, or waits for something else. The core wakes the thread that sleeps on fd. */
	bool roused;
	/* The last arm has run a barrier in all processes: the core needs no other for its own. */
	bool fenced;
	/* `quiet` of all links is out of date. The core sets it before a pass over them; the next
	 * poll of one finds out which have something, and clears it. */
	bool rescan;
};

#define FABRIC_OPS     64
#define FABRIC_PENDING 2

struct fabric_done { /* of an operation that completes later */
	/* FABRIC_PENDING, then what a post that does it at once would have returned. Set last; with
	 * release, where another thread or the hardware does. */
	atomic_int status;
	uint64_t old; /* ATOMIC: what was there */
};

#define FABRIC_ENDED (-2) /* a link's `process`: it has ended, and receives nothing */

struct fabric_link { /* first member of the fabric's own structure */
	/* ---- set by the core */
	struct fabric_domain *domain;
	void *owner; /* the core's endpoint, which no fabric reads */
	/* Addresses while connecting: of this end on a network, and where the other end listens.
	 * NULL: those of the bell's ends, else this machine. */
	const struct sockaddr *local, *remote;
	/* Connected socket on which a byte wakes the peer; -1: closed. Atomic, as `process`: a
	 * second thread that reaches the peer's memory asks by both whether it is still the
	 * peer's. */
	atomic_int bell;
	int32_t pid;        /* the peer's process, by the kernel's word; 0: unknown */
	atomic_int process; /* pidfd of that process; -1: none; FABRIC_ENDED */
	bool active;        /* this side began the connection */
	/* Memory may be reached by address: either process trusts the other with its time, for a
	 * copy between addresses that the other one names may never return. */
	bool attach;
	bool over; /* arrivals are not waited for any more */

	/* ---- set by the core and, once an operation is under way, by poll */
	struct fabric_done *ops; /* FABRIC_OPS, by wr.length */

	/* ---- set by connect */
	uint32_t payload_max;    /* bytes of payload in the longest packet sent */
	uint32_t payload_max_in; /* bytes of payload in the longest packet received */
	uint64_t start_in;       /* first total of the peer: `start` of its config */
	/* FABRIC_ACCESS_WORDS words of this side's memory that the peer sets; NULL: none mapped. */
	const _Atomic unsigned char *access;
	/* As many of the peer's memory, for ATOMIC of 8 bits; NULL: the fabric maps no memory. */
	struct fabric_memory *peer_access;
	/* Connections refused for a wrong token; the core counts them, and sets 0. */
	uint32_t unauthenticated;

	/* ---- set by post and poll */
	/* Nothing leaves any more: `lags` bytes are lost with the link, as poll says in its
	 * turn. */
	bool fails;
	/* Another poll would find nothing. Set by poll, if ever; cleared by a post, a flush, or a
	 * poll of any link of the domain after a rescan, where that may have changed. */
	bool quiet;
	/* Bytes taken by post: still in this process, for poll to send; and gone from it, on a link
	 * that ever lags. Of a bond `lags` is 1 where one of its links lags. */
	uint64_t lags, left;
	/* Changes with each word of room from the peer, where the domain's descriptor does not show
	 * one that a poll or a post has taken: a refused post is tried again. */
	uint64_t room;
	const char *violation; /* with -EPROTO: the rule that the peer broke */
	const char *lost;      /* with -EPIPE: how the link was lost, for a person */
	/* The other machine's last sign of life, as of the last STATUS with SIGN: ns, monotonic. */
	uint64_t last_sign;
	struct fabric_counts counts; /* as of the last STATUS, FLUSH or arm */
};

/* What two fabrics tell each other while connecting; carried by the core, not understood by it. */
struct fabric_blob {
	uint32_t length;
	unsigned char bytes[124];
	/* -1: none. Sent: stays the sender's; received: the fabric takes it, or leaves it, and the
	 * core closes what is not set to -1. */
	int fd;
	uint32_t word; /* reg of own memory: the access word of the peer's that speaks of it */
};

/*
 * Memory that transfers name: our own, which a peer is to reach, or a peer's. Own memory comes from
 * alloc, or is the application's (base and size set by the core).
 */
struct fabric_memory {
	void *base;      /* where it lies here; NULL: a peer's that is not mapped */
	uint64_t size;   /* bytes */
	uint32_t ops;    /* a peer's: what post does on it, 1 << enum fabric_op; 0: nothing */
	uint32_t later;  /* a peer's: what post begins on it, and poll tells of */
	bool writable;   /* peers may write; a peer's: we may */
	bool allocated;  /* own: from alloc */
	uint64_t own[4]; /* its fabric's: that which has allocated it, or reaches a peer's */
	/* Own, while it is allocated: by then (CLOCK_MONOTONIC, ns; 0: no matter when), but for the first
	 * FABRIC_ALLOC_STEP bytes of it. */
	uint64_t deadline;
	struct fabric_memory *fresh; /* own: what is to take its place, or NULL */
};
#define FABRIC_ALLOC_STEP ((uint64_t)16 << 20)

enum fabric_atomic_op { FABRIC_FETCH_ADD = 1, FABRIC_COMPARE_SWAP = 2, FABRIC_SWAP = 3 };

struct fabric_atomic {
	uint32_t op, bits; /* enum fabric_atomic_op; 32 or 64; 8 on access words, with SWAP */
	uint64_t operand, compare;
	uint64_t old; /* out */
};

struct fabric_wr {
	uint8_t op;     /* enum fabric_op */
	uint8_t kind;   /* the packet's opcode, 1..255; the core's */
	uint16_t flags; /* enum fabric_flag, FABRIC_BY */
	uint32_t
		length; /* SEND: bytes of payload; of what completes later: its place in link->ops */
	union {
		/* SEND: the payload; the core's with FABRIC_BUILT. WRITE: from here. */
		const void *data;
		void *into; /* READ: to here; ATOMIC: struct fabric_atomic, which is read in post alone */
	};
	union {
		uint64_t head[FABRIC_HEAD_WORDS]; /* SEND */
		struct {
			struct fabric_memory *memory; /* a peer's, checked by the core: */
			uint64_t offset, size;        /* they lie within it */
		};
	};
};

struct fabric_arrival {
	uint64_t head[FABRIC_HEAD_WORDS]; /* private copy */
	const void *data;                 /* in the ring: valid until released */
	uint32_t length;
	uint32_t span;  /* the fabric's */
	uint64_t token; /* the fabric's */
	uint8_t kind;
};

struct fabric {
	const char *name;
	size_t domain_size, link_size;
	/* Unless set otherwise, rings and the credit are so many times the usual ones; 0: once. */
	uint32_t room_factor;

	/* Can it run here? 0, or a negative errno and caps->why_not; *CAPS is filled in either way. With a
	 * CONFIG, which may be NULL: caps->link_memory where both rings are of its shape, and, where its
	 * engine is one of io_uring, caps->uring by a real try. */
	int (*probe)(const struct fabric_config *config, struct fabric_caps *caps);
	/* domain->config is set. Negative errno leaves nothing. */
	int (*open)(struct fabric_domain *domain);
	/* All its links are disconnected. */
	void (*close)(struct fabric_domain *domain);

	/* Round ROUND (from 0) of connecting: what the peer must know. */
	int (*address)(struct fabric_link *link, int round, struct fabric_blob *out);
	/* What the peer said in that round. 1: another round, 0: connected, 2: not known yet, ask
	 * again with IN NULL once the domain's descriptor is readable; negative: refused (-EPROTO
	 * the peer's fault, -ENOMEM ours ...); then only disconnect follows. Never blocks; how long
	 * the peer may take is the core's matter. */
	int (*connect)(struct fabric_link *link, int round, struct fabric_blob *in);
	/* Idempotent, in any state. */
	void (*disconnect)(struct fabric_link *link);

	/* Memory of m->size bytes that peers can map, at m->base; NULL where a fabric has none to
	 * offer. m->writable: peers may be let write. -ETIMEDOUT: m->deadline has passed. With m->fresh
	 * set, which is as large: its pages take the place of those at m->base, which whoever has mapped
	 * them keeps to himself; it is empty then, and a failure leaves both as they were. */
	int (*alloc)(struct fabric_domain *domain, struct fabric_memory *m);
	/* OWN memory: what the peer at LINK needs to reach it, and no more than WRITABLE says, into
	 * BLOB, whose descriptors stay the memory's; -ENOTSUP where that cannot be enforced or
	 * reached. A peer's (not OWN, size and writable set): maps it by BLOB, or notes how it is
	 * reached, and sets base and ops, 0 when it cannot be reached; -EPROTO for what no peer
	 * says. Never touches the peer's memory: whether it can be attached to, the first post on it
	 * finds out by a real try (-EPERM). NULL: a fabric without. */
	int (*reg)(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		   struct fabric_blob *blob);
	/* Gives up what alloc or reg has set up; the application's own memory stays. */
	void (*dereg)(struct fabric_domain *domain, struct fabric_memory *m);

	/* Where to build LENGTH bytes of payload in place; NULL when there is no room yet. The next
	 * post of that link must be FABRIC_BUILT and no longer, or a post with length 0 and op
	 * FABRIC_FLUSH, which gives the reservation back. Where links are joined that post may be refused
	 * (-EAGAIN): the reservation stays. */
	void *(*reserve)(struct fabric_link *link, uint32_t length);
	int (*post)(struct fabric_link *link, const struct fabric_wr *wr);
	/* Up to N arrivals; their number or -EPROTO. Bounded work whatever the peer does. */
	int (*poll)(struct fabric_link *link, struct fabric_arrival *arrivals, int n);
	/* Gives it back; or a run of consecutive ones: the first's token, the sum of their spans. */
	void (*release)(struct fabric_link *link, const struct fabric_arrival *arrival);
	/* ON: publish what has not been published yet and ask to be woken; poll once more
	 * afterwards before sleeping. Off: awake again. */
	void (*arm)(struct fabric_domain *domain, bool on);
	/* A word of this side's memory that is *NOTHING as long as poll would find nothing; it stays
	 * until disconnect. NULL: something has come. Or, in place of the function: no such word. */
	const _Atomic uint64_t *(*awaited)(const struct fabric_link *link, uint64_t *nothing);
};

#endif
