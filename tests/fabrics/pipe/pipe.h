/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric over pairs of pipes, for tests: all that a peer is sent are frames in the pipe that it
 * has made and gave away for writing. A frame is no longer than PIPE_BUF, so the kernel takes it
 * whole or not at all. WRITE, READ and ATOMIC are frames, too: the owner's side carries them out in
 * its poll, and answers.
 *
 * A pipe's lock is held while the kernel copies from the writer's pages, and a page of a
 * userfaultfd may never come: the peer is not trusted with anything but this process's time.
 */
#ifndef TESTS_FABRICS_PIPE_H
#define TESTS_FABRICS_PIPE_H

#include <errno.h>
#include <limits.h>

#include "fabrics/fabric.h"
#include "shm/compiler.h"
#include "shm/ring.h"

enum frame_type {
	FRAME_PACKET = 1,
	FRAME_CREDIT, /* word[0]: K */
	FRAME_ACCESS, /* word[0] of the access words is word[1] */
	FRAME_WRITE,  /* word[0]: key, [1]: offset, [2]: bytes that later frames bring */
	FRAME_READ,   /* key, offset, bytes wanted */
	FRAME_ATOMIC, /* key, offset; behind it the operands */
	FRAME_DATA,   /* of a READ: what comes next */
	FRAME_DONE,   /* word[0]: status, [1]: what an ATOMIC found */
};

struct frame {
	uint8_t type;
	uint8_t kind; /* PACKET: the core's; WRITE to DONE: the operation's place in its origin's table */
	uint16_t zero;
	uint32_t length; /* bytes that follow */
	uint64_t word[FABRIC_HEAD_WORDS];
};
#define FRAME_PAYLOAD ((uint32_t)(PIPE_BUF - sizeof(struct frame)))
#define FRAME_SMALL   (sizeof(struct frame) + FABRIC_WORD_MAX)
_Static_assert(sizeof(struct frame) == 32, "what goes through the pipe");

#define ATOMIC_WORDS 3 /* op and bits, operand, compare */

/* One that this side has begun; in link->ops it is pending. */
struct operation {
	uint8_t op; /* enum fabric_op; 0: none */
	int status; /* negative: so it ends, whatever the peer says */
	union {
		const unsigned char *from;
		unsigned char *into;
	};
	uint64_t key, offset, size, moved;
	uint64_t atomic[ATOMIC_WORDS];
};

enum service_state { SERVICE_NONE, SERVICE_WRITE, SERVICE_READ, SERVICE_DONE };

/* One that the peer has begun on memory here. */
struct service {
	enum service_state state;
	int status;
	uint64_t key, offset, size, old;
};

/* Memory here that the peer may reach; its place in the table is the access word's. */
struct grant {
	const struct fabric_memory *memory; /* NULL: none */
	unsigned char *base;
	uint64_t size;
	uint32_t turn; /* of the grants that the word has spoken of, this one */
	bool writable;
	uint8_t access;
};

struct pipe_link {
	struct fabric_link pub;
	struct pipe_link *another; /* of the domain's */
	bool open;                 /* the members below are set */
	bool ended;                /* END: no more frames leave */
	bool choked;               /* something waits for room in the pipe */
	bool watched;              /* and the domain's descriptor tells of room */
	bool refused; /* a post found none: it goes before the next piece of an operation, */
	bool passed;  /* but not before two */
	bool cancelled;
	int dead; /* what each post and poll returns from now on */
	int in, in_writer, out;
	uint64_t identity, of_peer; /* of this connection: the peer's as it came */

	/* What this side sends. */
	struct ring_shape peer;
	uint32_t out_shift, held;
	uint64_t produced, consumed_seen;
	unsigned char *stage; /* whole frames that the pipe had no room for, from stage_head */
	size_t stage_size, stage_head, stage_tail;
	unsigned char *built; /* FRAME_PAYLOAD, for what is reserved */

	/* What it receives. */
	struct ring_shape shape;
	uint32_t shift, threshold, batch;
	unsigned char *ring; /* and behind its end room for the longest packet */
	uint64_t *released;  /* a bit a segment, for those behind one that is not */
	uint32_t gaps;
	struct frame *heads; /* of the packets, each at its first segment */
	uint64_t total, read, consumed, published;
	bool credit_due;
	struct frame frame, next; /* whose payload is received, and the one behind it */
	uint32_t next_have;
	bool receiving;    /* `frame` is one */
	unsigned char *to; /* where the rest of its payload goes: so many bytes */
	uint32_t left;
	uint64_t operands[ATOMIC_WORDS];

	/* Memory. */
	struct fabric_memory peer_access;
	_Atomic unsigned char access[FABRIC_ACCESS_WORDS];
	unsigned char told[FABRIC_ACCESS_WORDS]; /* what the peer's access words are */
	struct grant *grants;                    /* FABRIC_ACCESS_WORDS */
	struct operation operation[FABRIC_OPS];
	struct service service[FABRIC_OPS];
	uint64_t to_send, to_answer; /* a bit for each that has a frame to send */
	unsigned turn;
};

struct pipe_domain {
	struct fabric_domain pub;
	struct pipe_link *links;
	bool armed;
	unsigned char sink[FRAME_PAYLOAD]; /* payload that belongs nowhere */
};

static inline struct pipe_domain *pipe_domain(struct pipe_link *l)
{
	return (struct pipe_domain *)l->pub.domain;
}

static inline uint64_t frame_word(const struct frame *f, int i)
{
	return LITTLE_64(f->word[i]);
}

static inline struct frame frame_of(enum frame_type type, unsigned kind, uint32_t length,
				    uint64_t a, uint64_t b, uint64_t c)
{
	return (struct frame){.type = (uint8_t)type,
			      .kind = (uint8_t)kind,
			      .length = LITTLE_32(length),
			      .word = {LITTLE_64(a), LITTLE_64(b), LITTLE_64(c)}};
}

static inline int pipe_violates(struct pipe_link *l, const char *rule)
{
	l->pub.violation = rule;
	l->pub.fails = true;
	return l->dead = -EPROTO;
}

/* pipe_connect.c */
int pipe_probe(const struct fabric_config *config, struct fabric_caps *caps);
int pipe_open(struct fabric_domain *domain);
void pipe_close(struct fabric_domain *domain);
int pipe_address(struct fabric_link *link, int round, struct fabric_blob *out);
int pipe_connect(struct fabric_link *link, int round, struct fabric_blob *in);
void pipe_disconnect(struct fabric_link *link);
/* Readiness of the pipe out counts while CHOKED. */
void pipe_watch(struct pipe_link *l);
void pipe_unwatch(struct pipe_link *l);
/* The peer reads the end of it. */
void pipe_end(struct pipe_link *l);

/* pipe_out.c: 1: sent, 0: there is no room yet, else an errno. */
int pipe_write(struct pipe_link *l, const struct frame *f, const void *payload);
/* The same, or 0 and it is staged, if it MAY be; -EAGAIN: neither. */
int pipe_send(struct pipe_link *l, const struct frame *f, const void *payload, bool may);
void pipe_publish(struct pipe_link *l, enum ring_cause cause);
/* Sends on what waits. */
void pipe_pump(struct pipe_link *l);

/* pipe_memory.c */
int pipe_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
	     struct fabric_blob *blob);
void pipe_dereg(struct fabric_domain *domain, struct fabric_memory *m);
int pipe_begin(struct pipe_link *l, const struct fabric_wr *wr);
void pipe_cancel(struct pipe_link *l);
/* The next piece of an operation's frames, or of an answer; as pipe_write. */
int pipe_operate(struct pipe_link *l, unsigned i);
int pipe_answer(struct pipe_link *l, unsigned i);
/* A frame about memory has come: where its payload goes; then it is all there, or could not be
 * written where it goes. */
int pipe_memory_begins(struct pipe_link *l, const struct frame *f, uint32_t length);
int pipe_memory_ends(struct pipe_link *l, const struct frame *f, uint32_t length);
void pipe_memory_faults(struct pipe_link *l, const struct frame *f);

#endif
