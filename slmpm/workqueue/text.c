/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a program's text, and what its names stand for. */
#include "slmpm/workqueue/text.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/endpoint.h"

#define BIT(op)  (1u << SLMPM_OP_##op)
#define MESSAGES (BIT(SEND) | BIT(RECV) | BIT(AM))
#define REMOTES  (BIT(PUT) | BIT(GET) | BIT(ATOMIC))
#define CONTROLS (BIT(WAIT) | BIT(ENABLE) | BIT(COUNT))
#define ALL      (MESSAGES | REMOTES | CONTROLS | BIT(CALC) | BIT(PIPE))

#define IN(member) offsetof(struct slmpm_wr, member)

const struct text_word text_words[] = {
	{"channel", ALL, TEXT_U32, 0, IN(channel), false},
	{"peer", MESSAGES | REMOTES | BIT(PIPE), TEXT_HANDLE, SLMPM_NAME_PEER, IN(peer), false},
	{"stream", BIT(SEND) | BIT(RECV) | BIT(PIPE), TEXT_U32, 0, IN(stream), false},
	{"source", BIT(PIPE), TEXT_HANDLE, SLMPM_NAME_PEER, IN(from), false},
	{"source_stream", BIT(PIPE), TEXT_U32, 0, IN(from_stream), false},
	{"handler", BIT(AM), TEXT_U32, 0, IN(stream), true},
	{"does", BIT(CALC), TEXT_CALC, 0, IN(calc), false},
	{"type", BIT(CALC), TEXT_TYPE, 0, IN(calc), false},
	{"count", BIT(CALC), TEXT_COUNT, 0, IN(calc), false},
	{"region", REMOTES, TEXT_HANDLE, SLMPM_NAME_RMEM, IN(rmem), false},
	{"offset", REMOTES, TEXT_U64, 0, IN(offset), false},
	{"from", BIT(SEND) | BIT(PUT) | BIT(AM), TEXT_PIECES, 0, IN(iov), false},
	{"to", BIT(RECV) | BIT(GET), TEXT_PIECES, 0, IN(iov), false},
	{"through", BIT(PIPE), TEXT_PIECES, 0, IN(iov), false},
	{"from", BIT(CALC), TEXT_ARGS, 0, IN(calc), false},
	{"to", BIT(CALC), TEXT_TARGETS, 0, IN(calc), false},
	{"head", BIT(AM), TEXT_HEAD, 0, IN(head), false},
	{"imm", BIT(SEND) | BIT(PUT), TEXT_U32, 0, IN(imm), false},
	{"does", BIT(ATOMIC), TEXT_ATOMIC, 0, IN(atomic), false},
	{"bits", BIT(ATOMIC), TEXT_U32, 0, IN(bits), false},
	{"operand", BIT(ATOMIC), TEXT_U64, 0, IN(operand), false},
	{"compare", BIT(ATOMIC), TEXT_U64, 0, IN(compare), false},
	{"old", BIT(ATOMIC), TEXT_OLD, 0, IN(old), false},
	{"ctr", ALL & ~BIT(ENABLE), TEXT_HANDLE, SLMPM_NAME_CTR, IN(ctr), false},
	{"rctr", BIT(COUNT) | REMOTES | BIT(SEND) | BIT(AM), TEXT_HANDLE, SLMPM_NAME_RMEM, IN(rctr),
	 false},
	{"cq", BIT(WAIT), TEXT_HANDLE, SLMPM_NAME_CQ, IN(cq), false},
	{"wq", BIT(WAIT) | BIT(ENABLE) | BIT(PIPE), TEXT_HANDLE, SLMPM_NAME_WQ, IN(wq), false},
	{"index", BIT(WAIT), TEXT_INDEX, 0, IN(index), false},
	{"value", CONTROLS | BIT(PIPE), TEXT_U64, 0, IN(value), true},
	{"timeout", BIT(WAIT) | BIT(SEND), TEXT_I32, 0, IN(timeout_ms), false},
	{"cookie", ALL, TEXT_U64, 0, IN(cookie), false},
	{"relative", ALL, TEXT_FLAG, SLMPM_RELATIVE, 0, false},
	{"more", ALL, TEXT_FLAG, SLMPM_MORE, 0, false},
	{"fence", ALL, TEXT_FLAG, SLMPM_FENCE, 0, false},
	{"barrier", ALL, TEXT_FLAG, SLMPM_BARRIER, 0, false},
	{"remote", ALL, TEXT_FLAG, SLMPM_REMOTE, 0, false},
	{"notify", ALL, TEXT_FLAG, SLMPM_NOTIFY, 0, false},
	{"via", ALL, TEXT_VIA, 0, IN(flags), false},
	{"link", ALL, TEXT_LINK, 0, IN(flags), false},
	{"strict", ALL, TEXT_FLAG, SLMPM_STRICT, 0, false},
	{"silent", ALL, TEXT_FLAG, SLMPM_SILENT, 0, false},
};

const size_t text_word_count = sizeof(text_words) / sizeof(text_words[0]);

static const char *const ops[] = {
	[SLMPM_OP_SEND] = "send",     [SLMPM_OP_RECV] = "recv",   [SLMPM_OP_PUT] = "put",
	[SLMPM_OP_GET] = "get",       [SLMPM_OP_AM] = "am",       [SLMPM_OP_WAIT] = "wait",
	[SLMPM_OP_ATOMIC] = "atomic", [SLMPM_OP_COUNT] = "count", [SLMPM_OP_ENABLE] = "enable",
	[SLMPM_OP_PIPE] = "pipe",     [SLMPM_OP_CALC] = "calc",
};

#define OPS (sizeof(ops) / sizeof(ops[0]))

const char *text_op_name(uint32_t op)
{
	return op < OPS ? ops[op] : NULL;
}

uint32_t text_op(const char *name)
{
	for (uint32_t op = 0; op < OPS; op++)
		if (ops[op] && !strcmp(ops[op], name))
			return op;
	return 0;
}

const struct text_word *text_word_of(uint32_t op, const char *name, size_t n)
{
	const struct text_word *found = NULL;

	for (size_t i = 0; i < text_word_count; i++) {
		const struct text_word *word = &text_words[i];

		if (strncmp(word->name, name, n) || word->name[n])
			continue;
		found = word;
		if (word->ops & 1u << op)
			break;
	}
	return found;
}

static const char *const via[] = {"", "smt", "rget", "put", "get", "request"};
static const char *const indices[] = {"", "posted", "enabled", "begun", "done"};
static const char *const atomics[] = {"", "add", "compare_swap", "swap"};
static const char *const calcs[] = {"",   "sum", "product", "min", "max", "and",
				    "or", "xor", "land",    "lor", "lxor"};
static const char *const types[] = {"",       "int8",   "int16",  "int32", "int64", "uint8",
				    "uint16", "uint32", "uint64", "float", "double"};

#define CHOICES(of)                                                                                \
	{                                                                                          \
		of, sizeof(of) / sizeof((of)[0])                                                   \
	}

static const struct {
	const char *const *word;
	size_t n;
} choices[] = {
	[TEXT_VIA] = CHOICES(via),        [TEXT_INDEX] = CHOICES(indices),
	[TEXT_ATOMIC] = CHOICES(atomics), [TEXT_CALC] = CHOICES(calcs),
	[TEXT_TYPE] = CHOICES(types),
};

const char *text_choice(enum text_kind kind, uint64_t value)
{
	return value && value < choices[kind].n ? choices[kind].word[value] : NULL;
}

uint64_t text_value(enum text_kind kind, const char *choice)
{
	for (uint64_t i = 1; text_choice(kind, i); i++)
		if (!strcmp(text_choice(kind, i), choice))
			return i;
	return 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool text_is_name(const char *name)
{
	if (!name || !*name || !strcmp(name, "any") || !strcmp(name, "none"))
		return false;
	while (isalnum((unsigned char)*name) || (*name && strchr("_-.", *name)))
		name++;
	return !*name;
}

static int text_check_name(const char *call, const struct slmpm_name *n)
{
	if (!n->name)
		return error_set(SLMPM_EINVAL, "%s: a name is NULL", call);
	if (!text_is_name(n->name))
		return error_set(SLMPM_EINVAL,
				 "%s: \"%.40s\" is no name: letters, digits, _ - . make one, but "
				 "not any or none",
				 call, n->name);
	if (n->kind < SLMPM_NAME_PEER || n->kind > SLMPM_NAME_MEMORY)
		return error_set(SLMPM_EINVAL,
				 "%s: name \"%.40s\": kind %u: SLMPM_NAME_PEER (1) to "
				 "SLMPM_NAME_MEMORY (6)",
				 call, n->name, n->kind);
	if (n->reserved)
		return error_set(SLMPM_EINVAL, "%s: name \"%.40s\": .reserved is %u, not 0", call,
				 n->name, n->reserved);
	if (n->kind == SLMPM_NAME_MEMORY && n->len && !n->base)
		return error_set(SLMPM_EINVAL, "%s: name \"%.40s\": .base is NULL, .len %zu", call,
				 n->name, n->len);
	return 0;
}

static int compare_names(const void *left, const void *right)
{
	const struct slmpm_name *const *a = left, *const *b = right;

	if ((*a)->kind != (*b)->kind)
		return (*a)->kind < (*b)->kind ? -1 : 1;
	return strcmp((*a)->name, (*b)->name);
}

int text_take_names(const char *call, struct text_names *names)
{
	int rc = 0;

	names->sorted = NULL;
	if (names->count < 0)
		return error_set(SLMPM_EINVAL, "%s: %d names, less than 0", call, names->count);
	if (names->count && !names->all)
		return error_set(SLMPM_EINVAL, "%s: the names are NULL, their number is %d", call,
				 names->count);
	names->sorted = calloc((size_t)names->count + 1, sizeof(*names->sorted));
	if (!names->sorted)
		return error_set(SLMPM_ENOMEM, "for names");
	for (int i = 0; rc == 0 && i < names->count; i++) {
		names->sorted[i] = &names->all[i];
		rc = text_check_name(call, &names->all[i]);
	}
	if (rc < 0)
		return rc;
	qsort(names->sorted, (size_t)names->count, sizeof(*names->sorted), compare_names);
	for (int i = 1; i < names->count; i++)
		if (!compare_names(&names->sorted[i - 1], &names->sorted[i]))
			return error_set(SLMPM_EINVAL, "%s: name \"%.40s\" is there twice", call,
					 names->sorted[i]->name);
	return 0;
}

void text_drop_names(struct text_names *names)
{
	free(names->sorted);
}

const struct slmpm_name *text_find(const struct text_names *names, uint32_t kind, const char *key)
{
	const struct slmpm_name wanted = {.name = key, .kind = kind}, *at = &wanted;
	const struct slmpm_name **found = bsearch(&at, names->sorted, (size_t)names->count,
						  sizeof(*names->sorted), compare_names);

	return found ? *found : NULL;
}

const struct slmpm_name *text_find_handle(const struct text_names *names, uint32_t kind,
					  uint64_t id)
{
	for (int i = 0; i < names->count; i++) {
		const struct slmpm_name *n = &names->all[i];
		uint64_t is = n->id;

		if (kind == SLMPM_NAME_PEER) /* what its link is, is a word of its own */
			is = endpoint_plain((slmpm_peer){n->id}).id;
		if (n->kind == kind && is == id)
			return n;
	}
	return NULL;
}

const struct slmpm_name *text_find_memory(const struct text_names *names, const void *base,
					  size_t len)
{
	for (int i = 0; i < names->count; i++) {
		const struct slmpm_name *n = &names->all[i];
		size_t at = (size_t)((uintptr_t)base - (uintptr_t)n->base);

		if (n->kind == SLMPM_NAME_MEMORY && n->base && at <= n->len && len <= n->len - at)
			return n;
	}
	return NULL;
}
