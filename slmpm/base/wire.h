/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels: packet opcodes and header (in rings), control messages (on the control socket).
 * Little-endian everywhere; doc/wire.md shows it as a table. The header is final: later operations
 * take the opcodes kept free for them here.
 *
 *     word 0  sequence number of the message's envelope
 *     word 1  stream (low 32 bits), immediate (high 32 bits)
 *     word 2  low 48 bits: First, Only: length of the message; Middle, Last: offset of the payload
 *             high 16 bits: flags
 */
#ifndef SLMPM_BASE_WIRE_H
#define SLMPM_BASE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <slmpm.h>

#include "shm/compiler.h"

#define WIRE_MAJOR 2 /* other numbers are refused */
#define WIRE_MINOR 0 /* later ones may add features that the lower side does not see */

enum wire_opcode {
	WIRE_SEND_FIRST = 1,
	WIRE_SEND_MIDDLE = 2,
	WIRE_SEND_LAST = 3,
	WIRE_SEND_ONLY = 4,
	/* One-sided operations by request, for want of a mapping. `seq` is the requester's number
	 * of the operation, from 1. A first or only packet of a Write, a Read Request and an atomic
	 * begin with a struct wire_target. */
	WIRE_WRITE_FIRST = 5,
	WIRE_WRITE_MIDDLE = 6,
	WIRE_WRITE_LAST = 7,
	WIRE_WRITE_ONLY = 8,
	WIRE_READ_REQUEST = 9,
	WIRE_READ_FIRST = 10, /* responses */
	WIRE_READ_MIDDLE = 11,
	WIRE_READ_LAST = 12,
	WIRE_READ_ONLY = 13,
	WIRE_FETCH_ADD = 14, /* struct wire_target, struct wire_atomic */
	WIRE_COMPARE_SWAP = 15,
	WIRE_ATOMIC_ACKNOWLEDGE = 16, /* payload: what was there, 8 bytes */
	WIRE_SWAP = 17,
	WIRE_ACKNOWLEDGE = 18, /* word 2: how operation `seq` ended, wire_error */
	WIRE_NOTIFY = 19,      /* a put into a mapped region: struct wire_target, no bytes */
	WIRE_CLEAR = 32,       /* clear to send: the announced message `seq` has its receive */
	WIRE_CREDIT = 33,      /* `seq`: messages received; word 2: total of eager bytes matched */
	WIRE_WITHDRAW = 34,    /* the sender gave the announced message `seq` up */
	WIRE_CLOSE = 35,       /* end of stream: nothing follows; `seq`: messages received */
	WIRE_LOAN = 36,        /* a message in an area; payload: struct wire_loan */
	WIRE_LOAN_MORE = 37,   /* more of it is ready */
	WIRE_LOAN_DONE = 38,   /* the reader is through with area word 2 */
	/* Several messages of one route and one length in a packet, sent with SLMPM_MORE. `seq` is
	 * the first one's, word 2 the length of each; the payload is nothing but them. */
	WIRE_BUNDLE = 39,
	/* Regions, word 2: grant. An offer of slmpm_mem_share (payload: the key), its acceptance,
	 * its withdrawal, the acceptor's release, the owner's revocation and its answer (both with
	 * seq 1: of the mapping alone). */
	WIRE_REGION_OFFER = 40,
	WIRE_REGION_ACCEPTED = 41,
	WIRE_REGION_WITHDRAWN = 42,
	WIRE_REGION_RELEASED = 43,
	WIRE_REGION_REVOKED = 44,
	WIRE_REGION_UNMAPPED = 45,
	/* A large message that both sides copy (payload: struct wire_fetch), its end, what the
	 * receiver reads (struct wire_take), what the sender writes (struct wire_give), the
	 * sender's request to send it in packets instead. */
	WIRE_FETCH = 46,
	WIRE_FETCH_DONE = 47,
	WIRE_FETCH_TAKE = 48,
	WIRE_FETCH_GIVE = 49,
	WIRE_FETCH_SEND = 50,
	/* A put of which the target copies a part, or a put or get that the peer's engine is to do;
	 * `seq` numbers the offers (payload: struct wire_share). The target: word 1, so much is in
	 * place; word 2, up to here it copies next; or it is through. The origin, word 2: from here
	 * on it copies itself. */
	WIRE_SHARE = 51,
	WIRE_SHARE_TAKE = 52,
	WIRE_SHARE_OVER = 53,
	WIRE_SHARE_GIVE = 54,
	/* Where nobody maps the other's memory. A grant ahead of its key (word 2: its number; word
	 * 0: the receiver's access word; payload: struct wire_granted, the fabric's bytes); room
	 * for a copy of a loan area (word 0: area, word 2: bytes); bytes of a loan (word 0: area,
	 * word 2: offset). */
	WIRE_REGION_GRANT = 55,
	WIRE_LOAN_AREA = 56,
	WIRE_LOAN_BYTES = 57,
	/* How long a packet takes: `seq` numbers them; the answer has the same. Of a message with
	 * WIRE_FLAG_TIMED: `seq` is its envelope, word 2: 1, payload: when it was there. */
	WIRE_ECHO = 58,
	WIRE_ECHO_ANSWER = 59,
	WIRE_AGGREGATE = 60, /* what a job measures: `seq` is the part */
	/* Mirrored memory. Asked for by tag (struct wire_mirror); left (word 1: tag; word 0: 1, the
	 * answer). Changes: word 0, the publication's number; word 1, the receiver's slot, and as
	 * many of its packets as have been stored; word 2, where the bytes go. The Last ends the
	 * publication. A list has runs in its payload, each behind a WIRE_MIRROR_RUN, padded to 8
	 * bytes. Stored: word 1 alone. */
	WIRE_MIRROR_ASK = 61,
	WIRE_MIRROR_END = 62,
	WIRE_MIRROR_PART = 63,
	WIRE_MIRROR_LAST = 64,
	WIRE_MIRROR_LIST = 65,
	WIRE_MIRROR_LIST_LAST = 66,
	WIRE_MIRROR_STORED = 67,
	/* A managed receive queue: word 1, the stream that ends there. BIND: word 0, so many messages
	 * may come in all (a newer total replaces it); with word 2 1, it is gone. BOUND, of who
	 * sends: that is known, and what follows counts (a shared one: so many that have not asked).
	 * CLAIM, of who sends to a shared one: word 0, a total (enum wire_claim). */
	WIRE_BIND = 68,
	WIRE_BOUND = 69,
	WIRE_CLAIM = 70,
	WIRE_OPCODES = 71
};

/* Word 2 of a BIND. SHARED: of a queue of any peer, what is reserved for this one. REFUSED: the
 * same, and that is all that there is for what was claimed. */
enum wire_bind { BIND_TOTAL, BIND_GONE, BIND_SHARED, BIND_REFUSED };

/* Word 2 of a CLAIM: so many are wanted, now or not at all; or once there are; so many that were
 * reserved have been given back. */
enum wire_claim { CLAIM_NOW, CLAIM_WAIT, CLAIM_BACK };

/* Of a bond, beside those (slmpm/bond/bond_parts.h); without payload but the first. */
enum wire_bond {
	WIRE_BOND_LINK = 249,    /* of who has no control connection any more: struct wire_round */
	WIRE_BOND_ACK = 250,     /* packets received; 1: answer with your own */
	WIRE_BOND_SWITCH = 251,  /* path; packets sent before; the path's life */
	WIRE_BOND_RESUME = 252,  /* packets received; round; paths lost: 4 bits, 15 for each life */
	WIRE_BOND_RESTART = 253, /* packets sent before; round; part of it */
	WIRE_BOND_LOST = 254,    /* paths lost */
	WIRE_BOND_PROBE =
		255, /* packets received; number; 0 a question, 1 its answer: by the same path */
};

#define WIRE_LENGTH_MASK    ((UINT64_C(1) << 48) - 1)
#define WIRE_FLAG_CHECK     1u /* the payload ends with 4 bytes: CRC-32C of header and payload */
#define WIRE_FLAG_ANNOUNCED 2u /* First: the rest waits for WIRE_CLEAR */
/* An active message: `stream` has the handler's number (16 bits) and the length of its head (16
 * bits), which begins the payload. */
#define WIRE_FLAG_ACTIVE    4u
#define WIRE_FLAG_TAGGED    8u  /* a message of the library's own, matched by tag: `stream` */
#define WIRE_FLAG_ANSWER    16u /* a Write or Notify wants its WIRE_ACKNOWLEDGE */
#define WIRE_FLAG_NOTIFY    32u /* a Write raises a completion at the target */
/* With ACTIVE or TAGGED: costs no credit. Of an active message an answer, which goes out whatever
 * else waits; the library's own are bounded by their number. */
#define WIRE_FLAG_UNCHARGED 64u
#define WIRE_FLAGS          127u
/* Of an Only that is a plain message: the sender wants to know when it was there. */
#define WIRE_FLAG_TIMED     128u
/* The payload ends with a struct wire_addressee, behind all else: of every packet of a connection
 * with WIRE_FEATURE_IDS, and of no other's. */
#define WIRE_FLAG_ADDRESSED 256u

/* Handlers of active messages that are the library's own: each room's first number, of
 * WIRE_AM_ROOM. */
#define WIRE_AM_ROOM 16
enum wire_am {
	WIRE_AM_EMULATION = SLMPM_AM_ID_MAX + 1,
	WIRE_AM_ACK = WIRE_AM_EMULATION + WIRE_AM_ROOM,
	WIRE_AM_DEPOSIT = WIRE_AM_ACK + WIRE_AM_ROOM,
	WIRE_AM_DRIVE = WIRE_AM_DEPOSIT + WIRE_AM_ROOM,
	WIRE_AM_OVERLAY = WIRE_AM_DRIVE + WIRE_AM_ROOM
};

struct wire_addressee {   /* whom a packet is for */
	uint32_t element; /* the pair's accelerator, by its host's number; 0: neither is one */
	uint32_t process; /* who reads it, as its hello has it */
	uint64_t place;   /* with WIRE_FEATURE_PLACES: where it goes there; else 0 */
};
_Static_assert(sizeof(struct wire_addressee) == 16, "wire layout");

struct wire_target { /* a range of a region, and the right to it */
	uint64_t offset, length;
	uint32_t grant, zero;
	unsigned char secret[16];
};
_Static_assert(sizeof(struct wire_target) == 40, "wire layout");

struct wire_atomic {
	uint64_t operand, compare;
	uint32_t bits, zero;
};
_Static_assert(sizeof(struct wire_atomic) == 24, "wire layout");

struct wire_loan {
	uint64_t ready;    /* bytes that can be read */
	uint64_t capacity; /* never more than this */
	uint32_t area;
	uint32_t final; /* 1: ready is the message's length */
};
_Static_assert(sizeof(struct wire_loan) == 24, "wire layout");

/* Word 2 of a WIRE_WITHDRAW for a message to be fetched, beside 0. */
#define WIRE_WITHDRAW_ASK 2 /* perhaps: if the receiver is not through by now */
#define WIRE_WITHDRAW_NOT 3 /* no: it was */
#define WIRE_WITHDRAW_END 4 /* unless it was: the sender does not wait to know */

#define WIRE_RANGES 8

struct wire_range { /* of the sender's memory */
	uint64_t address, length;
};

/* In front of `count` ranges. Behind these, and behind the first struct wire_take, there may be
 * how the peer's memory is reached: the fabric's. */
struct wire_fetch {
	uint32_t count, zero;
};

/* Bytes are counted from the message's beginning. */
struct wire_take {
	uint64_t address; /* of the receive's buffer; 0: it is not to be written into */
	uint64_t limit;   /* as many bytes are wanted */
	uint64_t upto;    /* so many of them the receiver reads itself */
	uint32_t turn;    /* counts the receives that the message has had */
	uint32_t zero;
};
_Static_assert(sizeof(struct wire_take) == 32, "wire layout");

struct wire_give {
	uint64_t claim; /* from here on the sender writes ... */
	uint64_t done;  /* ... and from here on it has written */
	uint32_t turn, zero;
};
_Static_assert(sizeof(struct wire_give) == 24, "wire layout");

/* With WIRE_SHARE_ADDRESS the fabric's key to the origin's memory may follow. */
struct wire_share {
	struct wire_target target; /* the part that is offered, in the target's region */
	uint64_t offset;           /* of the same bytes in the origin's region, ... */
	uint32_t grant; /* ... that the target has mapped by this key; or an address, and 0 */
	uint32_t how;   /* WIRE_SHARE_*; 0: a part of a put, by the target's progress */
};
_Static_assert(sizeof(struct wire_share) == 56, "wire layout");
#define WIRE_SHARE_ENGINE  1u /* all of a put or get, by the target's engine */
#define WIRE_SHARE_GET     2u /* with ENGINE: out of the target's region */
#define WIRE_SHARE_ADDRESS 4u /* with ENGINE: `offset` is an address in the origin's process */
#define WIRE_SHARE_HOW     7u

struct wire_mirror {
	uint64_t size;
	uint32_t tag, how; /* SLMPM_MIRROR_LEAD, ... */
	uint32_t slot;     /* what changes name it by */
	uint32_t span_sum; /* CRC-32C over offset and length of each span; 0: all of it */
};
_Static_assert(sizeof(struct wire_mirror) == 24, "wire layout");

/* In front of a run: where it goes, and 1 to 65535 bytes. */
#define WIRE_MIRROR_RUN(offset, bytes) ((uint64_t)(offset) | (uint64_t)(bytes) << 48)

/* What a peer may do with a region, ahead of its key. */
struct wire_granted {
	uint32_t grant, access; /* SLMPM_READ, SLMPM_WRITE */
	uint64_t size, address;
	unsigned char secret[16];
};
_Static_assert(sizeof(struct wire_granted) == 40, "wire layout");

#define WIRE_KEY_MAGIC UINT32_C(0x314b4c53) /* "SLK1" */
struct wire_key {
	uint32_t magic, access;
	uint64_t grant, size, address;
	unsigned char secret[16], zero[16]; /* zero: of later releases */
};
_Static_assert(sizeof(struct wire_key) == 64, "wire layout");
#define WIRE_KEYS_MAX    4096 /* that a peer may hold at once */
#define WIRE_CONTROL_MAX 64   /* payload of a packet without message */

#define WIRE_ENVELOPE 64

/* A message's charge against the credit: what it costs to keep it unreceived. */
static inline uint64_t wire_charge(uint64_t bytes)
{
	return bytes + WIRE_ENVELOPE;
}

static inline uint64_t wire_route(uint32_t stream, uint32_t imm)
{
	return (uint64_t)imm << 32 | stream;
}

static inline uint64_t wire_extent(uint64_t length_or_offset, uint32_t flags)
{
	return length_or_offset | (uint64_t)flags << 48;
}

/* ---- the control connection ------------------------------------------------------------- */

/* A packet socket, on which a packet of one byte is a doorbell; or TCP: hello, proof, rounds, bye
 * and group alone, one behind the other. */

#define WIRE_MAGIC UINT64_C(0x31304d504d4c53) /* "SLMPM01" */

enum wire_control {
	WIRE_HELLO = 1, /* struct wire_hello */
	WIRE_NONCE = 2, /* the peer's nonce, after its pidfd was taken */
	WIRE_ROUND = 3, /* number, then a fabric's blob, with its descriptors */
	WIRE_AREA = 4,  /* struct wire_area, with the area's descriptor */
	WIRE_BYE = 5,   /* struct wire_bye: refused or poisoned, and why */
	WIRE_GRANT = 6, /* struct wire_grant, with the region's descriptor where it is mapped */
	WIRE_PROOF = 7, /* struct wire_proof: in place of the nonce, over TCP */
	WIRE_GROUP = 8, /* struct wire_group: a step of forming a group, with descriptors */
};

struct wire_control_head {
	uint32_t type;
	uint32_t length; /* of the whole packet */
};

/* What a side can do beyond the least of its version. */
#define WIRE_FEATURE_BUNDLE    UINT64_C(1)   /* takes WIRE_BUNDLE */
#define WIRE_FEATURE_MEMORY    UINT64_C(2)   /* takes WIRE_GRANT, opcodes 5 to 19 and 40 to 45 */
#define WIRE_FEATURE_ACTIVE    UINT64_C(8)   /* takes WIRE_FLAG_ACTIVE and WIRE_FLAG_TAGGED */
#define WIRE_FEATURE_SHARE     UINT64_C(16)  /* takes opcodes 51 to 54 */
#define WIRE_FEATURE_ECHO      UINT64_C(256) /* answers WIRE_ECHO */
#define WIRE_FEATURE_LINKS     UINT64_C(512) /* times 1, 3 or 7: wants 2, 3 or 4 links, as a bond */
#define WIRE_FEATURE_MIRROR    UINT64_C(4096)   /* takes opcodes 61 to 67 */
#define WIRE_FEATURE_TIMED     UINT64_C(16384)  /* answers WIRE_FLAG_TIMED */
#define WIRE_FEATURE_AGGREGATE UINT64_C(32768)  /* takes WIRE_AGGREGATE */
#define WIRE_FEATURE_ATTACH    UINT64_C(65536)  /* trusts any peer with its time: SLMPM_ATTACH=y */
#define WIRE_FEATURE_ENGINE    UINT64_C(131072) /* has an engine, which takes WIRE_SHARE_ENGINE */
/* Each packet names its addressee; and its place. Required of the other side, too. */
#define WIRE_FEATURE_IDS       UINT64_C(262144)
#define WIRE_FEATURE_PLACES    UINT64_C(524288)
#define WIRE_FEATURE_GROUP     UINT64_C(1048576)   /* takes WIRE_GROUP */
#define WIRE_FEATURE_LOCAL     UINT64_C(16777216)  /* and WIRE_GROUP_LOCAL, WIRE_GROUP_LOST */
#define WIRE_FEATURE_FETCH     UINT64_C(4194304)   /* takes opcodes 46 to 50 */
#define WIRE_FEATURE_UNASKED   UINT64_C(33554432)  /* long messages go on before WIRE_CLEAR */
#define WIRE_FEATURE_WHOLE     UINT64_C(67108864)  /* takes an Only of WIRE_WHOLE bytes */
#define WIRE_FEATURE_MEMBERS   UINT64_C(134217728) /* takes several in a GROUP_MEMBER */
#define WIRE_FEATURES                                                                              \
	(WIRE_FEATURE_BUNDLE | WIRE_FEATURE_MEMORY | WIRE_FEATURE_FETCH | WIRE_FEATURE_ACTIVE |    \
	 WIRE_FEATURE_SHARE | WIRE_FEATURE_ECHO | WIRE_FEATURE_MIRROR | WIRE_FEATURE_AGGREGATE |   \
	 WIRE_FEATURE_TIMED | WIRE_FEATURE_GROUP | WIRE_FEATURE_LOCAL | WIRE_FEATURE_UNASKED |     \
	 WIRE_FEATURE_WHOLE |                                                                      \
	 WIRE_FEATURE_MEMBERS) /* and LINKS, ATTACH, ENGINE, IDS, PLACES where they are set */
#define WIRE_REQUIRABLE (WIRE_FEATURES | WIRE_FEATURE_IDS | WIRE_FEATURE_PLACES)

/* Of a plain message, beyond the packet maximum; at most half of what the ring takes in one. */
#define WIRE_WHOLE 65536

struct wire_hello {
	struct wire_control_head head;
	uint64_t magic;
	uint16_t major, minor;
	uint32_t byte_order; /* 1: little-endian, 2: big-endian */
	uint64_t features;   /* WIRE_FEATURE_*; unknown bits do no harm */
	uint64_t required;   /* of the other side: unknown bits here refuse the connection */
	uint64_t nonce;
	int32_t pid;
	uint32_t element;
	uint64_t packet_max, eager_max, eager_credit, loan_max;
	char version[16], fabric[16];
};
_Static_assert(sizeof(struct wire_hello) == 120, "wire layout");

struct wire_nonce {
	struct wire_control_head head;
	uint64_t nonce;
};

struct wire_near { /* an abstract socket of who listens, and what who connects calls itself there */
	uint64_t door, guest;
};

/* That the secret is known: its keyed hash of both hellos. */
struct wire_proof {
	struct wire_control_head head;
	unsigned char proof[16];
	struct wire_near near; /* of who listens; 0: no shared memory */
};
_Static_assert(sizeof(struct wire_proof) == 40, "wire layout");

/* A round of a link, by number and life: 0 of the first. The connecting side begins others. */
struct wire_round {
	struct wire_control_head head;
	uint32_t round; /* or WIRE_ROUND_* */
	uint16_t link, life;
	uint16_t family,
		zero; /* 4 or 6: `address` is where this side listens; 0: as the first link */
	uint32_t blob_length;
	unsigned char address[16];
	char name[32]; /* what this side calls itself, in round 0 of the first one; or the fabric */
	unsigned char blob[124];
	uint32_t zero2;
};
_Static_assert(sizeof(struct wire_round) == 200, "wire layout");
#define WIRE_ROUND_NOT UINT32_MAX       /* it will not come; blob: why, text */
#define WIRE_ROUND_ASK (UINT32_MAX - 1) /* of who was connected to: begin this one */

struct wire_area {
	struct wire_control_head head;
	uint32_t area, zero;
	uint64_t size;
};

struct wire_grant { /* the rest is the fabric's */
	struct wire_control_head head;
	struct wire_granted key;
	uint32_t blob_length; /* 0: by requests alone */
	unsigned char blob[124];
	uint32_t access_word,
		zero; /* of the receiver's, which says how the region is reached now */
};
_Static_assert(sizeof(struct wire_grant) == 184, "wire layout");

/*
 * How a group forms. Who joins sends JOIN with its board and its bell; once all have, who founds
 * sends BEGIN to each, and a MEMBER for each of the others, by rank: its board, its bell, its
 * process; one for up to WIRE_GROUP_MEMBERS of them, where that is taken. Who has them all is
 * READY, and once all are it has FORMED. Instead of its next step each side may end it, with an
 * error and a text: WITHDRAWN who joins, REFUSED who founds. Who joins numbers its joins, from 1.
 */
enum wire_group_step {
	GROUP_JOIN = 1,
	GROUP_READY = 2,
	GROUP_WITHDRAWN = 3,
	GROUP_BEGIN = 4, /* rank: the receiver's */
	GROUP_MEMBER = 5,
	GROUP_FORMED = 6,
	GROUP_REFUSED = 7,
	GROUP_LISTENS = 8, /* of who joins, of a group without boards: where others connect to it */
	/* Of a member to those that it is connected with: it has left, or with an error: the group
	 * of generation `number` is broken; by the connection of a join `tag` is its number. */
	GROUP_ENDED = 9,
	/* Of such a group, which is broken: what agree.h says of generation `number` */
	GROUP_VIEW = 10,
	GROUP_VERDICT = 11,
	GROUP_ATTENDS = 12, /* of a member: meetings, splits, what it knows of one that is gone */
	GROUP_STANDS = 13,  /* of a member that waits: in which operation of generation `number` */
	/* Of who founds, to one that is to join: the first of its joins of `tag` behind `number` is
	 * of a group that does not form. */
	GROUP_FAILED = 14,
	/* Of either of two that were members: it needs this connection no more. */
	GROUP_RELEASED = 15,
};

#define WIRE_GROUP_APART     1u /* BEGIN: its members meet by messages */
#define WIRE_GROUP_ANY_ORDER 2u /* BEGIN: reductions need not keep to the order of the ranks */
#define WIRE_GROUP_LOCAL     4u /* BEGIN, APART: those of one machine meet in memory, if they can */
#define WIRE_GROUP_PART      1u /* JOIN: a part of the group whose connection this is */

struct wire_group {
	struct wire_control_head head;
	uint32_t step, number;
	union {
		uint32_t tag;   /* of JOIN, FAILED; ENDED: number of a join, or 0 */
		uint32_t about; /* STANDS: number, the low half, of an operation of that ... */
	};
	union {
		uint32_t size;    /* of BEGIN; MEMBER with descriptors: of so many; 0: of one */
		uint32_t machine; /* LISTENS, MEMBER without descriptors: which one it is on; 0 */
		uint32_t within;  /* STANDS: ms, in which it says so again; 0: it does not wait */
	};
	/* Of BEGIN; rank: of MEMBER, the first; of ENDED, and 1 more: by which; of ATTENDS, as it was at
	 * first, and 1 more: who is gone; of STANDS, and 1 more: for which it waits in the end; 0. */
	uint32_t rank;
	union {
		int32_t pid;  /* of MEMBER, of the first */
		int32_t root; /* STANDS: ... root ... */
	};
	union {
		uint32_t error;   /* wire_error: of who ends it, or cannot begin it ... */
		uint32_t blocked; /* STANDS: the tag of the call that blocks */
	};
	uint32_t what; /* JOIN, BEGIN, ENDED, STANDS: WIRE_GROUP_*; LISTENS: the port */
	union {
		char text[120];  /* ... and why; BEGIN: where to listen, "": where connected */
		int32_t pids[4]; /* MEMBER, with descriptors: of those behind the first */
		struct {         /* MEMBER, without descriptors */
			char url[96];
			unsigned char key[16]; /* that the two prove to each other */
		};
		struct {                       /* BEGIN */
			char host[96];         /* as text */
			uint32_t limits[2][2]; /* of short vectors, in any order, by rank: 5 bits */
			uint32_t kinds[2];     /* forced algorithms: 4 bits of each kind */
		};
		struct { /* VIEW, VERDICT */
			uint64_t posted;
			uint64_t gone[16]; /* a bit for each rank */
		};
		struct {                  /* ATTENDS; ENDED has `through`, `passed` and `did` */
			uint64_t came;    /* meetings of this member */
			uint64_t through; /* the barrier of the last split that any is through */
			uint64_t view; /* a hash of that, and of all that it has noted to be gone */
			uint64_t count;  /* meetings of the one at rank */
			uint64_t passed; /* the last meeting that any that has left had; ENDED,
					    without an error: that this member has */
			uint64_t did[2]; /* ENDED likewise: operations, without tags and with;
					    ATTENDS, where it is broken: the first that have
					    begun, and 1 */
		};
		struct { /* STANDS */
			uint64_t operation;
			uint64_t elements;  /* ... and count; all ones: not known; where it blocks:
					       operations that it has begun without tags */
			uint32_t marks[30]; /* of the last ones, by number; 0: none */
		};
	};
};
_Static_assert(sizeof(struct wire_group) == 176, "wire layout");
#define WIRE_GROUP_IN_ORDER 1u /* ENDED: it has left by a call, not as its context ended */
#define WIRE_GROUP_FOUNDS   2u /* ENDED, of a join: by who founds, to who has joined */
#define WIRE_GROUP_LOST     1u /* and with an error: its connection with that one has ended so */
#define WIRE_GROUP_LANE     1u /* STANDS: of those with tags */
#define WIRE_GROUP_ASKS     2u /* STANDS: for the same of the other side */
#define WIRE_GROUP_BLOCKS   4u /* STANDS: in a call of a tag, and starts no other until then */
#define WIRE_GROUP_FDS      3  /* of a member */
#define WIRE_GROUP_MEMBERS  5u /* in a packet, at most */
#define WIRE_GROUP_JOINS    16 /* of one peer's, that are under way or wait for who founds */

struct wire_bye {
	struct wire_control_head head;
	uint32_t error; /* wire_error: what the refused side's call returns */
	uint32_t zero;
	char reason[112]; /* for a person */
};
_Static_assert(sizeof(struct wire_bye) == 128, "wire layout");

/* A came before B. Totals and numbers wrap, so they are compared by difference. */
static inline bool wire_is_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* Is N one of those that are given so far, from the one behind START to LAST? */
static inline bool wire_is_given(uint64_t n, uint64_t start, uint64_t last)
{
	return n - start - 1 < last - start;
}

/* The next of *LAST, where 0 means that there is none. */
static inline uint64_t wire_next(uint64_t *last)
{
	if (!++*last)
		++*last;
	return *last;
}

/* Errors travel by numbers of their own, small and without a sign, 0 for none: doc/wire.md. */
#define WIRE_ERROR_LAST 25

static inline uint32_t wire_error(int status)
{
	int64_t error = -(int64_t)status - SLMPM_ERROR_BASE;

	if (!status)
		return 0;
	return error > 0 && error <= WIRE_ERROR_LAST ? (uint32_t)error :
						       SLMPM_ESYSTEM - SLMPM_ERROR_BASE;
}

/* ERROR is at most WIRE_ERROR_LAST. */
static inline int wire_status(uint32_t error)
{
	return error ? -(SLMPM_ERROR_BASE + (int)error) : 0;
}

#endif
