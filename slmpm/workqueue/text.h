/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs as text: one table of words (text.c) says what a request's members are called, by which
 * they are written (dump.c) and read (load.c).
 */
#ifndef SLMPM_WORKQUEUE_TEXT_H
#define SLMPM_WORKQUEUE_TEXT_H

#include <slmpm.h>
#include <stdbool.h>

enum text_kind { /* of a word's value */
		 TEXT_U32,
		 TEXT_I32,
		 TEXT_U64,
		 TEXT_FLAG, /* the word alone: a bit of .flags */
		 TEXT_LINK, /* in .flags, as SLMPM_ON_LINK */
		 TEXT_VIA,
		 TEXT_INDEX,
		 TEXT_ATOMIC,
		 TEXT_HANDLE,
		 TEXT_PIECES,
		 TEXT_HEAD, /* its bytes, in hexadecimal digits */
		 TEXT_OLD,  /* where to: memory */
		 /* Of .calc: */
		 TEXT_CALC,
		 TEXT_TYPE,
		 TEXT_COUNT,
		 TEXT_ARGS,
		 TEXT_TARGETS
};

struct text_word {
	const char *name;
	uint32_t ops; /* bits: of which requests */
	enum text_kind kind;
	uint32_t of;   /* FLAG: which; HANDLE: enum slmpm_name_kind */
	size_t member; /* of struct slmpm_wr */
	bool always;   /* written though it is zero */
};

struct text_names {
	const struct slmpm_name *all;
	const struct slmpm_name **sorted; /* by kind and name */
	int count;
};

extern const struct text_word text_words[];
extern const size_t text_word_count;

/* "send", ...; NULL. */
const char *text_op_name(uint32_t op);
/* 0: there is none. */
uint32_t text_op(const char *name);
/* That request's word of that name, which has N letters; or of another request's; or NULL. */
const struct text_word *text_word_of(uint32_t op, const char *name, size_t n);
/* The words for VIA, INDEX, ATOMIC, CALC and TYPE: NULL, and 0: there is none. */
const char *text_choice(enum text_kind kind, uint64_t value);
uint64_t text_value(enum text_kind kind, const char *choice);

/* Negative with the detail set for CALL; they are to be dropped all the same. */
int text_take_names(const char *call, struct text_names *names);
void text_drop_names(struct text_names *names);
/* NULL: none. */
const struct slmpm_name *text_find(const struct text_names *names, uint32_t kind, const char *key);
const struct slmpm_name *text_find_handle(const struct text_names *names, uint32_t kind,
					  uint64_t id);
const struct slmpm_name *text_find_memory(const struct text_names *names, const void *base,
					  size_t len);

#endif
