/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITE, READ and ATOMIC: begun here and answered by the peer, or begun by the peer and done
 * here. */
#include "tests/fabrics/pipe/pipe.h"

#include <stdlib.h>
#include <string.h>

#define BIT(i)    (UINT64_C(1) << (i))
#define KEY_BYTES 8

/* ---- what the peer may reach ---- */

int pipe_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
	     struct fabric_blob *blob)
{
	struct pipe_link *l = (struct pipe_link *)link;
	struct grant *g;
	uint64_t key;

	if (!own) {
		if (PEER_FAULT(blob->length != KEY_BYTES))
			return -EPROTO;
		memcpy(&key, blob->bytes, KEY_BYTES);
		m->own[0] = LITTLE_64(key);
		m->later = 1u << FABRIC_READ;
		if (m->writable)
			m->later |= 1u << FABRIC_WRITE | 1u << FABRIC_ATOMIC;
		return 0;
	}
	if (!l->grants)
		l->grants = calloc(FABRIC_ACCESS_WORDS, sizeof(*g));
	if (!l->grants)
		return -ENOMEM;
	if (blob->word >= FABRIC_ACCESS_WORDS)
		return -ENOTSUP;
	g = &l->grants[blob->word];
	*g = (struct grant){m, m->base, m->size, g->turn + 1, writable, FABRIC_ACCESS_DIRECT};
	key = LITTLE_64((uint64_t)g->turn << 32 | blob->word);
	memcpy(blob->bytes, &key, KEY_BYTES);
	blob->length = KEY_BYTES;
	return 0;
}

/* Where SIZE bytes at OFFSET lie that the peer may reach by KEY; NULL: it may not. */
static unsigned char *granted(struct pipe_link *l, uint64_t key, uint64_t offset, uint64_t size,
			      bool writes)
{
	const struct grant *g = l->grants ? &l->grants[(uint32_t)key % FABRIC_ACCESS_WORDS] : NULL;

	if (!g || !g->memory || (uint32_t)key >= FABRIC_ACCESS_WORDS || g->turn != key >> 32 ||
	    g->access != FABRIC_ACCESS_DIRECT || l->cancelled)
		return NULL;
	if (PEER_FAULT(size > g->size || offset > g->size - size || (writes && !g->writable)))
		return NULL;
	return g->base + offset;
}

/* What of the peer's is on its way into this memory goes nowhere. */
static void turn_aside(struct pipe_link *l)
{
	if (l->receiving && l->left && l->frame.type == FRAME_WRITE)
		pipe_memory_faults(l, &l->frame);
}

void pipe_dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	for (struct pipe_link *l = ((struct pipe_domain *)domain)->links; l; l = l->another)
		for (unsigned w = 0; l->grants && w < FABRIC_ACCESS_WORDS; w++)
			if (l->grants[w].memory == m) {
				l->grants[w].memory = NULL;
				turn_aside(l);
			}
}

/* The peer's access word, and with it what this side does for it. */
static int swap_access(struct pipe_link *l, const struct fabric_wr *wr)
{
	struct fabric_atomic *a = wr->into;
	unsigned char value = (unsigned char)a->operand;
	struct frame f = frame_of(FRAME_ACCESS, 0, 0, wr->offset, value, 0);
	int rc = pipe_send(l, &f, NULL, true);

	if (rc < 0)
		return rc;
	a->old = l->told[wr->offset];
	l->told[wr->offset] = value;
	if (l->grants) {
		l->grants[wr->offset].access = value;
		if (value != FABRIC_ACCESS_DIRECT)
			turn_aside(l);
	}
	return 1;
}

/* ---- begun here ---- */

int pipe_begin(struct pipe_link *l, const struct fabric_wr *wr)
{
	struct operation *o = &l->operation[wr->length % FABRIC_OPS];
	const struct fabric_atomic *a = wr->into;

	if (wr->memory == &l->peer_access)
		return swap_access(l, wr);
	if (!(wr->memory->later >> wr->op & 1) || l->cancelled)
		return -EPERM;
	if (wr->length >= FABRIC_OPS || o->op)
		return -EAGAIN;
	*o = (struct operation){.op = wr->op,
				.from = wr->data,
				.key = wr->memory->own[0],
				.offset = wr->offset,
				.size = wr->size};
	if (wr->op == FABRIC_ATOMIC) {
		o->atomic[0] = LITTLE_64((uint64_t)a->bits << 32 | a->op);
		o->atomic[1] = LITTLE_64(a->operand);
		o->atomic[2] = LITTLE_64(a->compare);
	}
	l->to_send |= BIT(wr->length);
	if (!l->choked)
		pipe_pump(l);
	return l->dead;
}

static int write_piece(struct pipe_link *l, unsigned i)
{
	struct operation *o = &l->operation[i];
	uint64_t left = o->size - o->moved;
	uint32_t n = left < FRAME_PAYLOAD ? (uint32_t)left : FRAME_PAYLOAD;
	struct frame f;
	int rc;

	if (o->status < 0) /* the peer is told that this is all */
		left = n = 0;
	f = frame_of(FRAME_WRITE, i, n, o->key, o->offset + o->moved, left - n);
	rc = pipe_write(l, &f, o->from + o->moved);
	if (rc == -EFAULT) {
		o->status = -EFAULT;
		return 1;
	}
	if (rc > 0) {
		o->moved += n;
		if (left == n)
			l->to_send &= ~BIT(i);
	}
	return rc;
}

int pipe_operate(struct pipe_link *l, unsigned i)
{
	struct operation *o = &l->operation[i];
	uint32_t length = o->op == FABRIC_ATOMIC ? sizeof(o->atomic) : 0;
	struct frame f;
	int rc;

	if (o->op == FABRIC_WRITE)
		return write_piece(l, i);
	f = frame_of(length ? FRAME_ATOMIC : FRAME_READ, i, length, o->key, o->offset, o->size);
	rc = pipe_write(l, &f, o->atomic);
	if (rc > 0)
		l->to_send &= ~BIT(i);
	return rc;
}

static void complete(struct pipe_link *l, unsigned i, int status, uint64_t old)
{
	struct operation *o = &l->operation[i];

	o->op = 0;
	l->pub.ops[i].old = old;
	l->pub.ops[i].status = o->status < 0 ? o->status : status;
}

/* After a cancel answers go on to come. */
static int data_begins(struct pipe_link *l, unsigned i, uint32_t length)
{
	struct operation *o = &l->operation[i];

	if (l->cancelled)
		return 0;
	if (PEER_FAULT(o->op != FABRIC_READ || l->to_send & BIT(i) || length > o->size - o->moved))
		return pipe_violates(l, "data");
	if (!o->status)
		l->to = o->into + o->moved;
	return 0;
}

static int data_ends(struct pipe_link *l, unsigned i, uint32_t length)
{
	struct operation *o = &l->operation[i];

	if (l->cancelled)
		return 0;
	o->moved += length;
	if (o->moved == o->size)
		complete(l, i, 1, 0);
	return 0;
}

static int done_comes(struct pipe_link *l, unsigned i, int64_t status, uint64_t old)
{
	struct operation *o = &l->operation[i];

	if (l->cancelled)
		return 0;
	if (PEER_FAULT(!o->op || l->to_send & BIT(i) || (status != 1 && status != -EPERM)))
		return pipe_violates(l, "done");
	if (PEER_FAULT(o->op == FABRIC_READ && status == 1 && o->moved != o->size))
		return pipe_violates(l, "done");
	complete(l, i, (int)status, old);
	return 0;
}

void pipe_cancel(struct pipe_link *l)
{
	l->cancelled = true;
	turn_aside(l);
	if (l->receiving && l->left && l->frame.type == FRAME_DATA)
		l->to = pipe_domain(l)->sink;
	l->to_send = l->to_answer = 0;
	memset(l->operation, 0, sizeof(l->operation));
}

/* ---- begun by the peer ---- */

/* The core there asks this one for it: that knows what stands in the way. */
static void ends_with(struct pipe_link *l, unsigned i, int status, uint64_t old)
{
	struct service *s = &l->service[i];

	s->state = SERVICE_DONE;
	s->status = status;
	s->old = old;
	l->to_answer |= BIT(i);
}

int pipe_answer(struct pipe_link *l, unsigned i)
{
	struct service *s = &l->service[i];
	uint32_t n = s->size < FRAME_PAYLOAD ? (uint32_t)s->size : FRAME_PAYLOAD;
	const unsigned char *from = NULL;
	struct frame f;
	int rc;

	if (s->state == SERVICE_READ)
		from = granted(l, s->key, s->offset, n, false);
	if (from) {
		f = frame_of(FRAME_DATA, i, n, 0, 0, 0);
		rc = pipe_write(l, &f, from);
		if (rc == 0 || rc == -EPIPE)
			return rc;
	}
	if (from && rc > 0) {
		s->offset += n;
		s->size -= n;
		if (s->size)
			return 1;
	} else {
		f = frame_of(FRAME_DONE, i, 0,
			     (uint64_t)(s->state == SERVICE_READ ? -EPERM : s->status), s->old, 0);
		rc = pipe_write(l, &f, NULL);
		if (rc <= 0)
			return rc;
	}
	s->state = SERVICE_NONE;
	l->to_answer &= ~BIT(i);
	return 1;
}

static int write_begins(struct pipe_link *l, const struct frame *f, uint32_t length)
{
	struct service *s = &l->service[f->kind];
	unsigned char *to;

	if (PEER_FAULT(s->state != SERVICE_NONE && s->state != SERVICE_WRITE))
		return pipe_violates(l, "operation");
	if (s->state == SERVICE_NONE)
		*s = (struct service){.state = SERVICE_WRITE, .status = 1};
	to = granted(l, frame_word(f, 0), frame_word(f, 1), length, true);
	if (to)
		l->to = to;
	else
		s->status = -EPERM;
	return 0;
}

static int read_comes(struct pipe_link *l, const struct frame *f)
{
	struct service *s = &l->service[f->kind];

	if (PEER_FAULT(s->state))
		return pipe_violates(l, "operation");
	*s = (struct service){.state = SERVICE_READ,
			      .key = frame_word(f, 0),
			      .offset = frame_word(f, 1),
			      .size = frame_word(f, 2)};
	if (!granted(l, s->key, s->offset, s->size, false))
		ends_with(l, f->kind, -EPERM, 0);
	else if (!s->size)
		ends_with(l, f->kind, 1, 0);
	l->to_answer |= BIT(f->kind);
	return 0;
}

#define OPERATE(type, bits)                                                                        \
	static uint64_t operate_##bits(type *at, uint32_t op, type operand, type compare)          \
	{                                                                                          \
		if (op == FABRIC_FETCH_ADD)                                                        \
			return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);                  \
		if (op == FABRIC_SWAP)                                                             \
			return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);                 \
		__atomic_compare_exchange_n(at, &compare, operand, false, __ATOMIC_SEQ_CST,        \
					    __ATOMIC_SEQ_CST);                                     \
		return compare;                                                                    \
	}
OPERATE(uint32_t, 32)
OPERATE(uint64_t, 64)

static int atomic_comes(struct pipe_link *l, const struct frame *f)
{
	uint64_t operand = LITTLE_64(l->operands[1]), compare = LITTLE_64(l->operands[2]);
	uint32_t op = (uint32_t)LITTLE_64(l->operands[0]);
	uint64_t bits = LITTLE_64(l->operands[0]) >> 32;
	void *at;

	if (PEER_FAULT(l->service[f->kind].state))
		return pipe_violates(l, "operation");
	if (PEER_FAULT(op < FABRIC_FETCH_ADD || op > FABRIC_SWAP || (bits != 32 && bits != 64)))
		return pipe_violates(l, "atomic");
	at = granted(l, frame_word(f, 0), frame_word(f, 1), bits / 8, true);
	if (!at || PEER_FAULT((uintptr_t)at % (bits / 8)))
		ends_with(l, f->kind, -EPERM, 0);
	else if (bits == 32)
		ends_with(l, f->kind, 1, operate_32(at, op, (uint32_t)operand, (uint32_t)compare));
	else
		ends_with(l, f->kind, 1, operate_64(at, op, operand, compare));
	return 0;
}

/* ---- frames ---- */

int pipe_memory_begins(struct pipe_link *l, const struct frame *f, uint32_t length)
{
	bool has_payload = f->type == FRAME_WRITE || f->type == FRAME_DATA;

	l->to = pipe_domain(l)->sink;
	if (PEER_FAULT(f->type < FRAME_CREDIT || f->type > FRAME_DONE))
		return pipe_violates(l, "frame");
	if (f->type <= FRAME_ACCESS)
		return PEER_FAULT(length) ? pipe_violates(l, "length") : 0;
	if (PEER_FAULT(f->kind >= FABRIC_OPS))
		return pipe_violates(l, "operation");
	if (PEER_FAULT(!has_payload &&
		       length != (f->type == FRAME_ATOMIC ? sizeof(l->operands) : 0)))
		return pipe_violates(l, "length");
	if (f->type == FRAME_WRITE)
		return write_begins(l, f, length);
	if (f->type == FRAME_DATA)
		return data_begins(l, f->kind, length);
	if (f->type == FRAME_ATOMIC)
		l->to = (unsigned char *)l->operands;
	return 0;
}

int pipe_memory_ends(struct pipe_link *l, const struct frame *f, uint32_t length)
{
	switch (f->type) {
	case FRAME_WRITE:
		if (!frame_word(f, 2))
			ends_with(l, f->kind, l->service[f->kind].status, 0);
		return 0;
	case FRAME_READ: return read_comes(l, f);
	case FRAME_ATOMIC: return atomic_comes(l, f);
	case FRAME_DATA: return data_ends(l, f->kind, length);
	default: return done_comes(l, f->kind, (int64_t)frame_word(f, 0), frame_word(f, 1));
	}
}

void pipe_memory_faults(struct pipe_link *l, const struct frame *f)
{
	l->to = pipe_domain(l)->sink;
	if (f->type == FRAME_WRITE)
		l->service[f->kind].status = -EPERM;
	else if (f->type == FRAME_DATA)
		l->operation[f->kind].status = -EFAULT;
}
