/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a CALC. How far its operands reach is known when all of them have been read. */
#include "slmpm/workqueue/load.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/calc/calc.h"

struct load_operand { /* in what its elements lie, and its indices; or NULL */
	const struct slmpm_name *in, *indices_in;
};

struct load_list {
	struct slmpm_operand *operand;
	struct load_operand *of;
	int n;
};

struct load_calc {
	struct slmpm_calc calc;
	struct load_list args, targets;
	struct load_calc *before; /* of an earlier line */
};

bool load_calculation_begin(struct load *l, struct slmpm_wr *wr)
{
	struct load_calc *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->calc.size = sizeof(c->calc);
	c->before = l->calc;
	l->calc = c;
	wr->calc = &c->calc;
	return true;
}

void load_calculations_free(struct load *l)
{
	while (l->calc) {
		struct load_calc *c = l->calc;

		l->calc = c->before;
		free(c->args.operand);
		free(c->args.of);
		free(c->targets.operand);
		free(c->targets.of);
		free(c);
	}
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Cuts TEXT at the first MARK: what follows, or NULL. */
static char *cut(char *text, char mark)
{
	char *rest = strchr(text, mark);

	if (rest)
		*rest++ = '\0';
	return rest;
}

/* Up to three, with MARK between them. */
static char *next_dimension(const struct load *l, char *text, char mark, int d, int *rc)
{
	char *rest = cut(text, mark);

	if (rest && d == 2)
		*rc = load_refuse(l, "more than three dimensions");
	return rest;
}

static int load_count(const struct load *l, char *text, struct slmpm_calc *c)
{
	int rc = 0;

	for (int d = 0; rc == 0 && text; d++) {
		char *rest = next_dimension(l, text, '*', d, &rc);

		if (rc == 0)
			rc = load_number(l, text, UINT64_MAX, &c->count[d]);
		if (rc == 0 && !c->count[d])
			rc = load_refuse(l, "no elements");
		text = rest;
	}
	return rc;
}

static int load_strides(const struct load *l, char *text, struct slmpm_operand *o)
{
	int rc = 0;

	for (int d = 0; rc == 0 && text; d++) {
		char *rest = next_dimension(l, text, '/', d, &rc);

		if (rc == 0)
			rc = load_signed(l, text, INT64_MAX, &o->stride[d]);
		text = rest;
	}
	return rc;
}

static int load_order(const struct load *l, const char *text, struct slmpm_operand *o)
{
	if (!strcmp(text, "big"))
		o->flags = SLMPM_OPERAND_BIG_ENDIAN;
	else if (!strcmp(text, "little"))
		o->flags = SLMPM_OPERAND_LITTLE_ENDIAN;
	else
		return load_refuse(l, "a byte order is big or little");
	return 0;
}

static int load_index_place(const struct load *l, char *text, struct slmpm_operand *o,
			    struct load_operand *of)
{
	size_t n = strlen(text);
	uint64_t at;
	int rc;

	if (!n || text[n - 1] != ']')
		return load_refuse(l, "a ] is missing");
	text[n - 1] = '\0';
	rc = load_place(l, text, &of->indices_in, &at);
	if (rc == 0)
		o->indices = (uint64_t *)(void *)((char *)of->indices_in->base + at);
	return rc;
}

/* >NAME+OFFSET: in a peer's region, how large it is is asked when it is posted. */
static int load_far(const struct load *l, char *text, struct slmpm_operand *o)
{
	const char *offset = cut(text, '+');
	int rc = load_handle(l, SLMPM_NAME_RMEM, text, &o->rmem.id);

	return rc == 0 && offset ? load_number(l, offset, UINT64_MAX, &o->offset) : rc;
}

/* <NAME+STREAM: the next message of a peer's; <NAME: of a receive queue's. */
static int load_arrival(const struct load *l, char *text, struct slmpm_operand *o)
{
	const char *number = cut(text, '+');
	uint64_t stream = 0;
	int rc = number ? -SLMPM_ENOENT : load_handle(l, SLMPM_NAME_WQ, text, &o->wq.id);

	if (rc < 0)
		rc = load_handle(l, SLMPM_NAME_PEER, text, &o->peer.id);
	if (rc == 0 && number)
		rc = load_number(l, number, UINT32_MAX, &stream);
	o->stream = (uint32_t)stream;
	return rc;
}

static int load_near(const struct load *l, char *text, struct slmpm_operand *o,
		     struct load_operand *of)
{
	uint64_t at;
	int rc = load_place(l, text, &of->in, &at);

	if (rc == 0)
		o->at = (char *)of->in->base + at;
	return rc;
}

/* NAME+OFFSET:ORDER/STRIDE/STRIDE/STRIDE@INDEX, or for @INDEX [NAME+OFFSET]; the name alone has to
 * be there. */
static int load_operand(const struct load *l, char *text, struct slmpm_operand *o,
			struct load_operand *of)
{
	char *indices = cut(text, '['), *index = cut(text, '@'), *strides = cut(text, '/');
	char *order = cut(text, ':');
	int rc = *text == '>' ? load_far(l, text + 1, o) :
		 *text == '<' ? load_arrival(l, text + 1, o) :
				load_near(l, text, o, of);

	if (rc == 0 && order)
		rc = load_order(l, order, o);
	if (rc == 0 && strides)
		rc = load_strides(l, strides, o);
	if (rc == 0 && index)
		rc = load_number(l, index, UINT64_MAX, &o->index);
	if (rc == 0 && indices)
		rc = load_index_place(l, indices, o, of);
	return rc;
}

static int load_list(const struct load *l, char *text, struct load_list *list)
{
	size_t n = 1;
	int rc = 0;

	for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
		n++;
	if (n > INT_MAX)
		return load_refuse(l, "too many operands");
	list->operand = calloc(n, sizeof(*list->operand));
	list->of = calloc(n, sizeof(*list->of));
	if (!list->operand || !list->of)
		return error_set(SLMPM_ENOMEM, "for operands");
	list->n = (int)n;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		char *rest = cut(text, ',');

		rc = load_operand(l, text, &list->operand[i], &list->of[i]);
		text = rest;
	}
	return rc;
}

/* ---- words ----------------------------------------------------------------------------------- */

int load_calculation(const struct load *l, enum text_kind kind, char *text)
{
	struct load_calc *c = l->calc;
	uint64_t number = 0;
	int rc;

	switch (kind) {
	case TEXT_COUNT: return load_count(l, text, &c->calc);
	case TEXT_ARGS: return load_list(l, text, &c->args);
	case TEXT_TARGETS: return load_list(l, text, &c->targets);
	default: break;
	}
	rc = load_choice(l, kind, text, &number);
	if (kind == TEXT_CALC)
		c->calc.op = (uint32_t)number;
	else
		c->calc.type = (uint32_t)number;
	return rc;
}

static bool is_within(const struct slmpm_name *in, uint64_t lo, uint64_t hi)
{
	uint64_t base = (uintptr_t)in->base;

	return lo >= base && hi >= lo && hi - base <= in->len;
}

/* Addresses that cannot be are refused as such when it is posted. */
static bool stays_within(const struct slmpm_operand *o, const struct load_operand *of,
			 const struct calc_shape *shape)
{
	uint64_t lo, hi, indices = (uintptr_t)o->indices;

	if (of->in && (!calc_reach(o, shape, &lo, &hi) || !is_within(of->in, lo, hi)))
		return false;
	return !o->indices ||
	       is_within(of->indices_in, indices, indices + shape->total * sizeof(*o->indices));
}

static int load_within(struct load *l, const char *word, const struct load_list *list,
		       const struct calc_shape *shape)
{
	l->word = word;
	for (int i = 0; i < list->n; i++)
		if (!stays_within(&list->operand[i], &list->of[i], shape))
			return load_beyond(l);
	return 0;
}

/* What is no type, and too many elements, is refused when it is posted, before anything is read. */
int load_calculation_end(struct load *l)
{
	struct load_calc *c = l->calc;
	struct calc_shape shape;
	int rc;

	c->calc.args = c->args.operand;
	c->calc.targets = c->targets.operand;
	c->calc.arg_count = c->args.n;
	c->calc.target_count = c->targets.n;
	if (c->calc.type < SLMPM_INT8 || c->calc.type > SLMPM_DOUBLE ||
	    !calc_shape_of(&shape, &c->calc))
		return 0;
	rc = load_within(l, "from", &c->args, &shape);
	return rc < 0 ? rc : load_within(l, "to", &c->targets, &shape);
}
