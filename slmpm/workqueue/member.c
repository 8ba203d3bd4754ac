/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which members of a work request, and which flags, its operation has: what would be ignored is
 * refused. One table says it of all members, for the check and for its text.
 */
#include "slmpm/workqueue/member.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/mode/mode_hint.h"
#include "shm/compiler.h"

#define OPS (SLMPM_OP_PIPE + 1)

#define BIT(op)  (1u << SLMPM_OP_##op)
#define REMOTES  (BIT(PUT) | BIT(GET) | BIT(ATOMIC))
#define MESSAGES (BIT(SEND) | BIT(RECV) | BIT(AM))
#define PEERS    (MESSAGES | REMOTES | BIT(PIPE))

/* What WIDE, of 8 bytes, or WORD, of 4, makes of OP and each member: how its value is written, and
 * the operations that have it. .cookie, .channel and .ctr are of all; a pointer is nothing without
 * its count. */
#define MEMBERS(WIDE, WORD, op)                                                                    \
	WIDE(op, peer.id, SET, PEERS)                                                              \
	WORD(op, stream, NUMBER, MESSAGES | BIT(PIPE))                                             \
	WORD(op, imm, NUMBER, BIT(SEND) | BIT(PUT))                                                \
	WORD(op, iov_count, SIGNED, PEERS & ~BIT(ATOMIC))                                          \
	WORD(op, head_len, NUMBER, BIT(AM))                                                        \
	WIDE(op, rmem.id, SET, REMOTES)                                                            \
	WIDE(op, offset, NUMBER, REMOTES)                                                          \
	WORD(op, atomic, NUMBER, BIT(ATOMIC))                                                      \
	WORD(op, bits, NUMBER, BIT(ATOMIC))                                                        \
	WIDE(op, operand, NUMBER, BIT(ATOMIC))                                                     \
	WIDE(op, compare, NUMBER, BIT(ATOMIC))                                                     \
	WIDE(op, old, SET, BIT(ATOMIC))                                                            \
	WIDE(op, cq.id, SET, BIT(WAIT))                                                            \
	WIDE(op, wq.id, SET, BIT(WAIT) | BIT(ENABLE) | BIT(PIPE))                                  \
	WORD(op, index, NUMBER, BIT(WAIT))                                                         \
	WORD(op, timeout_ms, SIGNED, BIT(WAIT) | BIT(SEND))                                        \
	WIDE(op, value, NUMBER, BIT(WAIT) | BIT(ENABLE) | BIT(COUNT) | BIT(PIPE))                  \
	WIDE(op, from.id, SET, BIT(PIPE))                                                          \
	WORD(op, from_stream, NUMBER, BIT(PIPE))                                                   \
	WIDE(op, calc, SET, BIT(CALC))                                                             \
	WIDE(op, rctr.id, SET, BIT(COUNT) | BIT(SEND) | BIT(AM) | REMOTES)

#define FIRST (offsetof(struct slmpm_wr, peer) / 4)
#define WORDS (sizeof(struct slmpm_wr) / 4 - FIRST)

/* Those bits of a request, from its peer on, that are zero as an operation does not have them. */
#define MASK(op, ops) ((ops)&1u << (op) ? 0 : UINT32_MAX)
#define MASK_WORD(op, member, kind, ops)                                                           \
	[offsetof(struct slmpm_wr, member) / 4 - FIRST] = MASK(op, ops),
#define MASK_WIDE(op, member, kind, ops)                                                           \
	MASK_WORD(op, member, kind, ops)                                                           \
	[offsetof(struct slmpm_wr, member) / 4 - FIRST + 1] = MASK(op, ops),
#define NEVER(op) [SLMPM_OP_##op] = {MEMBERS(MASK_WIDE, MASK_WORD, SLMPM_OP_##op)}

static const uint32_t never[OPS][WORDS] = {
	NEVER(SEND), NEVER(RECV),   NEVER(PUT),   NEVER(GET),  NEVER(ATOMIC), NEVER(AM),
	NEVER(WAIT), NEVER(ENABLE), NEVER(COUNT), NEVER(CALC), NEVER(PIPE),
};

#define ORDERED (SLMPM_SILENT | SLMPM_FENCE | SLMPM_BARRIER)

/* What an operation may have; 0: it is none of a work queue's. */
static const uint32_t flags_of[OPS] = {
	[SLMPM_OP_SEND] = ORDERED | SLMPM_MORE | MODE_LINK_MASK,
	[SLMPM_OP_RECV] = SLMPM_SILENT,
	[SLMPM_OP_PUT] = ORDERED | SLMPM_REMOTE | SLMPM_NOTIFY | MODE_LINK_MASK,
	[SLMPM_OP_GET] = ORDERED | MODE_LINK_MASK,
	[SLMPM_OP_ATOMIC] = ORDERED | MODE_LINK_MASK,
	[SLMPM_OP_AM] = ORDERED | SLMPM_MORE | SLMPM_REMOTE | MODE_ROUTE_MASK,
	[SLMPM_OP_WAIT] = SLMPM_SILENT | SLMPM_RELATIVE,
	[SLMPM_OP_ENABLE] = SLMPM_SILENT | SLMPM_RELATIVE,
	[SLMPM_OP_COUNT] = SLMPM_SILENT | SLMPM_RELATIVE,
	[SLMPM_OP_CALC] = SLMPM_SILENT,
	[SLMPM_OP_PIPE] = ORDERED | MODE_LINK_MASK,
};

/* ---- words ----------------------------------------------------------------------------------- */

static const char *const titles[OPS] = {
	[SLMPM_OP_SEND] = "a SEND",      [SLMPM_OP_RECV] = "a RECV",   [SLMPM_OP_PUT] = "a PUT",
	[SLMPM_OP_GET] = "a GET",        [SLMPM_OP_AM] = "an AM",      [SLMPM_OP_WAIT] = "a WAIT",
	[SLMPM_OP_ATOMIC] = "an ATOMIC", [SLMPM_OP_COUNT] = "a COUNT", [SLMPM_OP_CALC] = "a CALC",
	[SLMPM_OP_ENABLE] = "an ENABLE", [SLMPM_OP_PIPE] = "a PIPE",
};

static const struct {
	uint32_t bits;
	const char *name;
} flags[] = {
	{SLMPM_MORE, "MORE"},         {SLMPM_PART, "PART"},     {SLMPM_FENCE, "FENCE"},
	{SLMPM_BARRIER, "BARRIER"},   {SLMPM_REMOTE, "REMOTE"}, {SLMPM_NOTIFY, "NOTIFY"},
	{SLMPM_SILENT, "SILENT"},     {SLMPM_VIA_MASK, "VIA"},  {SLMPM_ON_LINK_MASK, "ON_LINK"},
	{SLMPM_RELATIVE, "RELATIVE"}, {SLMPM_STRICT, "STRICT"},
};

#define FLAGS (sizeof(flags) / sizeof(flags[0]))

const char *member_title(uint32_t op)
{
	return op < OPS ? titles[op] : NULL;
}

struct words { /* a list: "PUT, GET and ATOMIC" */
	char text[128];
	size_t len;
};

/* LEFT are yet to follow. */
static void list_word(struct words *w, const char *word, int left)
{
	const char *before = !w->len ? "" : left ? ", " : " and ";
	int n = snprintf(w->text + w->len, sizeof(w->text) - w->len, "%s%s", before, word);

	w->len += n > 0 ? (size_t)n : 0;
}

/* Those of MASK, a bit each. */
static void list_ops(struct words *w, uint32_t mask)
{
	*w = (struct words){.len = 0};
	for (uint32_t op = 0; op < OPS; op++)
		if (mask & 1u << op)
			list_word(w, strchr(titles[op], ' ') + 1,
				  __builtin_popcount(mask >> op) - 1);
}

static int count_flags(uint32_t of, size_t from)
{
	int n = 0;

	for (size_t i = from; i < FLAGS; i++)
		n += (flags[i].bits & of) != 0;
	return n;
}

static void list_flags(struct words *w, uint32_t of)
{
	*w = (struct words){.len = 0};
	for (size_t i = 0; i < FLAGS; i++)
		if (flags[i].bits & of)
			list_word(w, flags[i].name, count_flags(of, i + 1));
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static COLD int bad_operation(uint32_t op)
{
	const char *name = op == SLMPM_OP_NOTIFY ? " (NOTIFY)" :
			   op == SLMPM_OP_STORE  ? " (STORE)" :
						   "";
	uint32_t all = 0;
	struct words w;

	for (uint32_t i = 0; i < OPS; i++)
		all |= flags_of[i] ? 1u << i : 0;
	list_ops(&w, all);
	return error_set(SLMPM_EINVAL,
			 "slmpm_post: operation %u%s is none of a work queue's, which are %s", op,
			 name, w.text);
}

static COLD int bad_flags(const struct slmpm_wr *wr)
{
	uint32_t bad = wr->flags & ~flags_of[wr->op];
	struct words w, may;

	if (!bad)
		return error_set(SLMPM_EINVAL, "slmpm_post: flags 0x%x: no such link or protocol",
				 wr->flags);
	list_flags(&w, bad);
	if (!w.len)
		snprintf(w.text, sizeof(w.text), "0x%x", bad);
	list_flags(&may, flags_of[wr->op]);
	return error_set(SLMPM_EINVAL, "slmpm_post: flags 0x%x: %s has no %s, only %s", wr->flags,
			 titles[wr->op], w.text, may.text);
}

enum kind { NUMBER, SIGNED, SET };

static int bad_member(const struct slmpm_wr *wr, const char *name, enum kind kind, int64_t value,
		      uint32_t ops)
{
	int n = (int)strcspn(name, "."); /* of a handle without its .id */
	char is[24] = "set";
	struct words w;

	if (kind == NUMBER)
		snprintf(is, sizeof(is), "%llu", (unsigned long long)value);
	if (kind == SIGNED)
		snprintf(is, sizeof(is), "%lld", (long long)value);
	list_ops(&w, ops);
	return error_set(SLMPM_EINVAL, "slmpm_post: .%.*s of %s is %s: it is for %s", n, name,
			 titles[wr->op], is, w.text);
}

static COLD int bad_members(const struct slmpm_wr *wr)
{
#define REFUSE(op, member, kind, ops)                                                              \
	if (wr->member && MASK(op, ops))                                                           \
		return bad_member(wr, #member, kind, (int64_t)(intptr_t)wr->member, ops);
	MEMBERS(REFUSE, REFUSE, wr->op)
#undef REFUSE
	return 0;
}

/* It sets what its operation does not have. */
static inline bool is_strange(const struct slmpm_wr *wr)
{
	const uint32_t *masks = never[wr->op];
	uint32_t words[WORDS], strange = 0;

	memcpy(words, (const uint32_t *)(const void *)wr + FIRST, sizeof(words));
	for (size_t i = 0; i < WORDS; i++)
		strange |= words[i] & masks[i];
	return strange;
}

int member_check(const struct slmpm_wr *wr)
{
	uint32_t may = wr->op < OPS ? flags_of[wr->op] : 0;

	if (UNLIKELY(!may))
		return bad_operation(wr->op);
	if (wr->flags & ~may || (wr->flags & MODE_LINK_MASK && !mode_hint_is_sound(wr->flags)))
		return bad_flags(wr);
	if (UNLIKELY(wr->reserved))
		return error_set(SLMPM_EINVAL, "slmpm_post: .reserved is %u, not 0", wr->reserved);
	return LIKELY(!is_strange(wr)) ? 0 : bad_members(wr);
}
