/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs read from text. */
#include "slmpm/workqueue/load.h"
#include "slmpm/workqueue/member.h"
#include "slmpm/workqueue/program.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"

#define BLANKS " \t\r"

int load_refuse(const struct load *l, const char *why)
{
	return error_set(SLMPM_EINVAL, "slmpm_wq_load: line %d, \"%.60s\": %s", l->line, l->word,
			 why);
}

int load_beyond(const struct load *l)
{
	return load_refuse(l, "beyond the end of that memory");
}

/* ---- values --------------------------------------------------------------------------------- */

int load_number(const struct load *l, const char *text, uint64_t most, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	uint64_t base = hex ? 16 : 10;

	*number = 0;
	if (!*digits)
		return load_refuse(l, "a number is missing");
	for (; *digits; digits++) {
		int c = tolower((unsigned char)*digits);
		uint64_t digit = isdigit(c) ? (uint64_t)(c - '0') : (uint64_t)(c - 'a' + 10);

		if (!isxdigit(c) || digit >= base)
			return load_refuse(l, "not a number");
		if (digit > most || *number > (most - digit) / base)
			return load_refuse(l, "the number is too great");
		*number = *number * base + digit;
	}
	return 0;
}

int load_signed(const struct load *l, const char *text, int64_t most, int64_t *number)
{
	bool minus = *text == '-';
	uint64_t size;
	int rc = load_number(l, text + minus, (uint64_t)most, &size);

	*number = minus ? -(int64_t)size : (int64_t)size;
	return rc;
}

int load_choice(const struct load *l, enum text_kind kind, const char *text, uint64_t *number)
{
	*number = text_value(kind, text);
	if (!*number && (*text < '0' || *text > '9'))
		return load_refuse(l, "no such word here, nor a number");
	return *number ? 0 : load_number(l, text, UINT32_MAX, number);
}

int load_handle(const struct load *l, uint32_t kind, const char *text, uint64_t *id)
{
	const struct slmpm_name *n = text_find(&l->names, kind, text);

	if (n)
		*id = n->id;
	else if (kind == SLMPM_NAME_PEER && !strcmp(text, "any"))
		*id = slmpm_any(l->ctx).id;
	else
		return load_refuse(l, "no such name of that kind");
	return 0;
}

int load_place(const struct load *l, char *text, const struct slmpm_name **n, uint64_t *at)
{
	char *offset = strchr(text, '+');
	int rc = 0;

	*at = 0;
	if (offset)
		*offset++ = '\0';
	*n = text_find(&l->names, SLMPM_NAME_MEMORY, text);
	if (!*n)
		return load_refuse(l, "no memory of that name");
	if (offset)
		rc = load_number(l, offset, UINT64_MAX, at);
	return rc == 0 && *at > (*n)->len ? load_beyond(l) : rc;
}

/* NAME, NAME+OFFSET, NAME:LENGTH, NAME+OFFSET:LENGTH: all that follows where there is none. */
static int load_memory(const struct load *l, char *text, struct slmpm_iov *piece)
{
	char *len = strchr(text, ':');
	const struct slmpm_name *n;
	uint64_t at, size;
	int rc;

	*piece = (struct slmpm_iov){NULL, 0};
	if (!strcmp(text, "none"))
		return 0;
	if (len)
		*len++ = '\0';
	rc = load_place(l, text, &n, &at);
	if (rc < 0)
		return rc;
	size = n->len - at;
	if (len)
		rc = load_number(l, len, UINT64_MAX, &size);
	if (rc < 0)
		return rc;
	if (size > n->len - at)
		return load_beyond(l);
	*piece = (struct slmpm_iov){(char *)n->base + at, size};
	return 0;
}

static int load_pieces(const struct load *l, char *text, struct slmpm_wr *wr)
{
	struct slmpm_iov *pieces;
	int n = 1, rc = 0;

	for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
		n++;
	pieces = calloc((size_t)n, sizeof(*pieces));
	if (!pieces)
		return error_set(SLMPM_ENOMEM, "for pieces");
	wr->iov = pieces;
	wr->iov_count = n;
	for (int i = 0; rc == 0 && i < n; i++) {
		char *next = strchr(text, ',');

		if (next)
			*next++ = '\0';
		rc = load_memory(l, text, &pieces[i]);
		text = next;
	}
	return rc;
}

static int load_head(const struct load *l, const char *text, struct slmpm_wr *wr)
{
	size_t n = strlen(text) / 2;
	unsigned char *head = malloc(n + 1);

	if (!head)
		return error_set(SLMPM_ENOMEM, "for a head");
	wr->head = head;
	wr->head_len = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		char digits[5] = {'0', 'x', text[2 * i], text[2 * i + 1], '\0'};
		uint64_t byte;
		int rc = load_number(l, digits, UCHAR_MAX, &byte);

		if (rc < 0)
			return rc;
		head[i] = (unsigned char)byte;
	}
	return strlen(text) % 2 || n > SLMPM_AM_HEAD_MAX ?
		       load_refuse(l, "two digits a byte, and at most 256 bytes") :
		       0;
}

/* What is a number goes where the word says. */
static int load_plain(const struct load *l, const struct text_word *word, const char *text,
		      struct slmpm_wr *wr)
{
	char *at = (char *)wr + word->member;
	uint64_t number = 0;
	uint32_t word32;
	int rc;

	if (word->kind == TEXT_HANDLE)
		rc = load_handle(l, word->of, text, &number);
	else if (word->kind == TEXT_INDEX || word->kind == TEXT_ATOMIC)
		rc = load_choice(l, word->kind, text, &number);
	else
		rc = load_number(l, text, word->kind == TEXT_U64 ? UINT64_MAX : UINT32_MAX,
				 &number);
	word32 = (uint32_t)number;
	if (word->kind == TEXT_U64 || word->kind == TEXT_HANDLE)
		memcpy(at, &number, sizeof(number));
	else
		memcpy(at, &word32, sizeof(word32));
	return rc;
}

static int load_value(struct load *l, const struct text_word *word, char *text, struct slmpm_wr *wr)
{
	struct slmpm_iov piece;
	uint64_t number = 0;
	int64_t number32 = 0;
	int rc = 0;

	switch (word->kind) {
	case TEXT_FLAG: wr->flags |= word->of; break;
	case TEXT_VIA:
		rc = load_choice(l, word->kind, text, &number);
		wr->flags |= (uint32_t)(number & 7) * SLMPM_VIA(0);
		break;
	case TEXT_LINK:
		rc = load_number(l, text, SLMPM_ON_LINK_MASK / SLMPM_ON_LINK(0) - 1, &number);
		wr->flags |= SLMPM_ON_LINK(number);
		break;
	case TEXT_I32:
		rc = load_signed(l, text, INT32_MAX, &number32);
		wr->timeout_ms = (int32_t)number32;
		break;
	case TEXT_PIECES: rc = load_pieces(l, text, wr); break;
	case TEXT_HEAD: rc = load_head(l, text, wr); break;
	case TEXT_OLD:
		rc = load_memory(l, text, &piece);
		wr->old = piece.base;
		l->old = piece.len;
		break;
	case TEXT_CALC:
	case TEXT_TYPE:
	case TEXT_COUNT:
	case TEXT_ARGS:
	case TEXT_TARGETS: rc = load_calculation(l, word->kind, text); break;
	default: rc = load_plain(l, word, text, wr); break;
	}
	return rc;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Another operation's. */
static int refuse_word(const struct load *l, uint32_t op)
{
	char why[64];

	snprintf(why, sizeof(why), "it is no word of %s", member_title(op));
	return load_refuse(l, why);
}

static int load_word(struct load *l, char *text, struct slmpm_wr *wr)
{
	char *value = strchr(text, '=');
	size_t n = value ? (size_t)(value - text) : strlen(text);
	const struct text_word *word = text_word_of(wr->op, text, n);
	uint64_t bit;

	if (!word)
		return load_refuse(l, "no such word");
	if (!(word->ops & 1u << wr->op))
		return refuse_word(l, wr->op);
	if ((word->kind == TEXT_FLAG) != !value)
		return load_refuse(l, value ? "it has no value" : "a value is missing");
	bit = UINT64_C(1) << (word - text_words);
	if (l->given & bit)
		return load_refuse(l, "it is there twice");
	l->given |= bit;
	return load_value(l, word, value ? value + 1 : NULL, wr);
}

static bool load_room(struct load *l)
{
	int room = l->room ? 2 * l->room : 64;
	void *wr, *queues, *lines;

	if (l->n < l->room)
		return true;
	wr = realloc(l->wr, (size_t)room * sizeof(*l->wr));
	l->wr = wr ? wr : l->wr;
	queues = realloc(l->queues, (size_t)room * sizeof(*l->queues));
	l->queues = queues ? queues : l->queues;
	lines = realloc(l->lines, (size_t)room * sizeof(*l->lines));
	l->lines = lines ? lines : l->lines;
	if (wr && queues && lines)
		l->room = room;
	return l->n < l->room;
}

static int load_words(struct load *l, char *rest, struct slmpm_wr *wr)
{
	char *text;
	int rc = 0;

	l->given = 0;
	l->word = l->copy;
	while (rc == 0 && (text = strtok_r(NULL, BLANKS, &rest)) != NULL) {
		snprintf(l->copy, sizeof(l->copy), "%s", text);
		rc = load_word(l, text, wr);
	}
	if (rc == 0 && wr->old && l->old < wr->bits / 8) {
		l->word = "old";
		rc = load_refuse(l, "what was there before has no room in that memory");
	}
	if (rc == 0 && wr->op == SLMPM_OP_CALC)
		rc = load_calculation_end(l);
	return rc;
}

static int load_queue(struct load *l, char *rest)
{
	const char *name = strtok_r(NULL, BLANKS, &rest), *more = strtok_r(NULL, BLANKS, &rest);
	uint64_t id = 0;
	int rc;

	if (!name)
		return load_refuse(l, "a name is missing");
	l->word = more ? more : name;
	if (more)
		return load_refuse(l, "what is that behind the name");
	rc = load_handle(l, SLMPM_NAME_WQ, name, &id);
	l->wq.id = id;
	return rc;
}

static int load_line(struct load *l, char *line)
{
	char *rest, *comment = strchr(line, '#');
	uint32_t op;

	if (comment)
		*comment = '\0';
	l->word = strtok_r(line, BLANKS, &rest);
	if (!l->word)
		return 0;
	if (!strcmp(l->word, "queue"))
		return load_queue(l, rest);
	op = text_op(l->word);
	if (!op)
		return load_refuse(l, "no such request");
	if (!load_room(l))
		return error_set(SLMPM_ENOMEM, "for a program");
	l->wr[l->n] = (struct slmpm_wr){.size = sizeof(struct slmpm_wr), .op = op};
	l->queues[l->n] = l->wq;
	l->lines[l->n] = l->line;
	if (op == SLMPM_OP_CALC && !load_calculation_begin(l, &l->wr[l->n]))
		return error_set(SLMPM_ENOMEM, "for a calculation");
	return load_words(l, rest, &l->wr[l->n++]);
}

static int load_text(struct load *l, char *text)
{
	int rc = 0;

	for (l->line = 1; rc == 0 && text; l->line++) {
		char *end = strchr(text, '\n');

		if (end)
			*end++ = '\0';
		rc = load_line(l, text);
		text = end;
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int load_post(const struct load *l, bool closed)
{
	char whom[64];
	int at, rc;

	if (!l->n)
		return 0;
	rc = program_enter(l->queues, l->wr, l->n, closed, &at);
	if (rc == 0)
		return l->n;
	if (at < 0)
		return rc;
	snprintf(whom, sizeof(whom), "slmpm_wq_load: line %d, \"%s\"", l->lines[at],
		 text_op_name(l->wr[at].op));
	return program_blame(rc, whom);
}

static void load_free(struct load *l)
{
	for (int i = 0; i < l->n; i++) {
		free((void *)(uintptr_t)l->wr[i].iov);
		free((void *)(uintptr_t)l->wr[i].head);
	}
	load_calculations_free(l);
	free(l->wr);
	free(l->queues);
	free(l->lines);
}

int slmpm_wq_load(slmpm_wq handle, const char *given, const struct slmpm_name *names, int count,
		  uint32_t flags)
{
	struct load l = {.names = {.all = names, .count = count}, .wq = handle};
	struct workqueue *wq;
	char *text;
	int rc = 0;

	if (!given)
		return error_set(SLMPM_EINVAL, "slmpm_wq_load: the text is NULL");
	if (flags & ~SLMPM_PROGRAM_CLOSED)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_load: flags 0x%x: there is no 0x%x, only "
				 "SLMPM_PROGRAM_CLOSED",
				 flags, flags & ~SLMPM_PROGRAM_CLOSED);
	wq = workqueue_lock(handle, &rc);
	if (!wq)
		return rc;
	l.ctx.id = handle_id(wq->ctx);
	context_unlock(wq->ctx);
	text = strdup(given);
	if (!text)
		return error_set(SLMPM_ENOMEM, "for a text");
	rc = text_take_names("slmpm_wq_load", &l.names);
	if (rc == 0)
		rc = load_text(&l, text);
	if (rc == 0)
		rc = load_post(&l, flags & SLMPM_PROGRAM_CLOSED);
	text_drop_names(&l.names);
	load_free(&l);
	free(text);
	return rc;
}
