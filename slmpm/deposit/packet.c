/* SPDX-License-Identifier: BSD-3-Clause */
/* What travels of puts to many: made when there is room, and checked as it comes. */
#include "slmpm/deposit/deposit.h"

#include <string.h>

#include "slmpm/endpoint.h"
#include "slmpm/monitor/monitor.h"

static uint32_t set_words(const struct group *g)
{
	return (g->boards.size + WORD_BITS - 1) / WORD_BITS;
}

static uint8_t generation_of(const struct group *g)
{
	return (uint8_t)g->boards.generation;
}

/* ---- out ------------------------------------------------------------------------------------- */

static int packet_post(struct endpoint *ep, uint16_t id, const void *head, uint32_t head_len,
		       const void *data, uint32_t len)
{
	int rc = am_post(ep, 0, wire_route(am_stream(id, head_len), 0),
			 WIRE_FLAG_ACTIVE | WIRE_FLAG_UNCHARGED, head, head_len, data, len);

	if (rc == 1)
		monitor_carrier(ep, head_len + len);
	return rc;
}

/* To whom STOP and BEGIN are handed on: to all of the line, or to no one. */
static struct ranks word_ranks(const struct line *l, const struct flow *f, enum deposit_word word)
{
	struct ranks alone = {{0}};

	if (word == WORD_BEGIN && l->direct)
		ranks_add(&alone, f->rank);
	else if (word != WORD_LEAVE)
		return l->ranks;
	return alone;
}

/* A request goes on as it came, unless each adds its answer. */
static bool is_as_it_came(const struct line *l, enum deposit_word word)
{
	return word == WORD_REQUEST && (!l->forwards || l->origin == line_self(l));
}

static const struct ranks *word_agreed(const struct line *l, enum deposit_word word)
{
	static const struct ranks none;

	if (word == WORD_HAVE || word == WORD_ALIVE)
		return word == WORD_HAVE ? &l->have : &l->alive;
	return is_as_it_came(l, word) ? &none : &l->agreed;
}

static void word_refusal(const struct line *l, enum deposit_word word, struct wire_deposit *w)
{
	if (l->refusal.error == 0 || is_as_it_came(l, word))
		return;
	w->error = LITTLE_32(wire_error(l->refusal.error));
	w->culprit = LITTLE_32(l->refusal.culprit == BOARD_NONE ? l->origin : l->refusal.culprit);
	memcpy(w->text, l->refusal.text, sizeof(w->text));
}

static void word_fill(const struct line *l, const struct flow *f, enum deposit_word word,
		      struct wire_deposit *w)
{
	const bool again = word == WORD_BEGIN && f->again;

	*w = (struct wire_deposit){
		.number = LITTLE_64(l->number),
		.offset = LITTLE_64(word == WORD_RESUME ? l->got : l->offset),
		.length = LITTLE_64(l->len),
		.origin = LITTLE_32(l->origin),
		.word = LITTLE_16(word),
		.flags = (uint8_t)((l->forwards ? DEPOSIT_FORWARD : 0) |
				   (again ? DEPOSIT_AGAIN : 0)),
		.generation = generation_of(l->of->group),
		.space = LITTLE_32(l->space),
		.imm = LITTLE_32(l->imm),
	};
	if (word != WORD_LOST) {
		word_refusal(l, word, w);
		return;
	}
	w->culprit = LITTLE_32(l->target.lost);
	w->error = LITTLE_32(wire_error(l->target.lost_for));
	w->imm = LITTLE_32(l->target.lost_by + 1);
}

/* What follows the head of W into DATA: its bytes. */
static uint32_t word_sets(const struct line *l, const struct flow *f, enum deposit_word word,
			  unsigned char *data)
{
	const struct ranks line = word_ranks(l, f, word);
	const uint32_t n = set_words(l->of->group), bytes = 2 * n * (uint32_t)sizeof(uint64_t);
	uint64_t sets[2 * RANK_WORDS];

	for (uint32_t i = 0; i < n; i++) {
		sets[i] = LITTLE_64(line.bits[i]);
		sets[n + i] = LITTLE_64(word_agreed(l, word)->bits[i]);
	}
	memcpy(data, sets, bytes);
	if (word != WORD_REQUEST || !l->order)
		return bytes;
	order_fill(l, data + bytes);
	return bytes + l->ordered * (uint32_t)sizeof(*l->order);
}

static int word_post(struct line *l, struct flow *f, struct endpoint *ep)
{
	const enum deposit_word word = (enum deposit_word)__builtin_ctz(f->due);
	unsigned char data[WORD_SETS_MAX];
	const uint32_t bytes = word_sets(l, f, word, data);
	struct wire_deposit w;
	int rc;

	if (sizeof(w) + bytes > ep->packet_max)
		return -SLMPM_ELIMIT;
	word_fill(l, f, word, &w);
	rc = packet_post(ep, DEPOSIT_WORD, &w, sizeof(w), data, bytes);
	if (rc == 1)
		f->due &= ~(1u << word);
	return rc;
}

#define PIECE (UINT64_C(32) << 10) /* along a line: the next one sends it on meanwhile */

static int data_post(const struct line *l, struct flow *f, struct endpoint *ep)
{
	const struct wire_deposit_data head = {
		.number = LITTLE_64(l->number),
		.at = LITTLE_64(f->sent),
		.origin = LITTLE_32(l->origin),
		.flags = LITTLE_16(DEPOSIT_BIT),
		.generation = generation_of(l->of->group),
	};
	const uint64_t left = l->got - f->sent, room = ep->packet_max - sizeof(head);
	const uint64_t most = l->direct || room < PIECE ? room : PIECE;
	const uint32_t n = (uint32_t)(left < most ? left : most);
	int rc = packet_post(ep, DEPOSIT_DATA, &head, sizeof(head), l->at + f->sent, n);

	if (rc == 1)
		f->sent += n;
	return rc;
}

int flow_post(struct line *l, struct flow *f, struct endpoint *ep)
{
	return f->due ? word_post(l, f, ep) : data_post(l, f, ep);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* N words of a set, none of whose ranks is beyond the group, or the origin. */
static bool ranks_take(struct ranks *to, const unsigned char *from, const struct group *g,
		       uint32_t origin)
{
	const uint32_t n = set_words(g), spare = g->boards.size % WORD_BITS;
	uint64_t word;

	*to = (struct ranks){{0}};
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&word, from + i * sizeof(word), sizeof(word));
		to->bits[i] = LITTLE_64(word);
	}
	return !(spare && to->bits[n - 1] >> spare) && !ranks_have(to, origin);
}

static void word_take(struct wire_deposit *w, const void *head)
{
	memcpy(w, head, sizeof(*w));
	w->number = LITTLE_64(w->number);
	w->offset = LITTLE_64(w->offset);
	w->length = LITTLE_64(w->length);
	w->origin = LITTLE_32(w->origin);
	w->word = LITTLE_16(w->word);
	w->space = LITTLE_32(w->space);
	w->imm = LITTLE_32(w->imm);
	w->error = LITTLE_32(w->error);
	w->culprit = LITTLE_32(w->culprit);
	w->text[sizeof(w->text) - 1] = '\0';
	for (char *c = w->text; *c; c++) /* it is shown to people */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static bool word_is_sound(const struct wire_deposit *w, const struct group *g)
{
	return w->number && w->word && w->word < WORD_END &&
	       !(w->flags & ~(DEPOSIT_FORWARD | DEPOSIT_AGAIN)) && w->origin < g->boards.size &&
	       w->error <= WIRE_ERROR_LAST && w->culprit < g->boards.size &&
	       (w->word != WORD_LOST || w->imm <= g->boards.size);
}

/* Its own put, if it is under way. */
static struct line *put_line(const struct deposits *d, uint64_t number)
{
	LIST_EACH_ENTRY(struct line, l, &d->puts, node)
		if (l->number == number && (l->state == LINE_ASKS || l->state == LINE_MOVES))
			return l;
	return NULL;
}

/* The put that W answers is over: its sender, and those behind it, are not to wait for it. */
static void word_is_late(struct endpoint *ep, const struct deposits *d,
			 const struct wire_deposit *w, const struct slmpm_am *am)
{
	const struct wire_deposit stop = {
		.number = LITTLE_64(w->number),
		.origin = LITTLE_32(w->origin),
		.word = LITTLE_16(WORD_STOP),
		.generation = w->generation,
		.space = LITTLE_32(w->space),
	};
	int rc = 0;

	if (w->number <= d->last && w->word != WORD_HAVE && w->word != WORD_ALIVE)
		rc = am_answer(ep, DEPOSIT_WORD, &stop, sizeof(stop), am->data,
			       2 * set_words(d->group) * sizeof(uint64_t));
	if (rc == -SLMPM_ELIMIT)
		endpoint_poison(ep, "number of words of a deposit");
	else if (rc < 0)
		endpoint_no_memory(ep);
}

/* The order that follows N bytes of sets; of a request alone. False: of an odd length. */
static bool word_order(struct wire_order *o, const struct slmpm_am *am, size_t sets, uint16_t word)
{
	const size_t left = am->data_len - sets;

	o->ranks = (const unsigned char *)am->data + sets;
	o->count = (uint32_t)(left / sizeof(uint16_t));
	return left % sizeof(uint16_t) == 0 && (!left || word == WORD_REQUEST);
}

static void word_arrived(struct endpoint *ep, struct deposits *d, const struct slmpm_am *am)
{
	const uint32_t rank = pair_rank(pair_member(ep)), n = set_words(d->group);
	const size_t sets = 2 * n * sizeof(uint64_t);
	struct ranks ranks, agreed;
	struct wire_deposit w;
	struct wire_order order;
	struct line *l;

	if (endpoint_broke(ep, "length of a deposit", am->head_len != sizeof(w)))
		return;
	word_take(&w, am->head);
	if (w.generation != generation_of(d->group)) {
		early_arrived(d, ep, am);
		return;
	}
	if (endpoint_broke(ep, "length of a deposit", am->data_len < sets))
		return;
	if (endpoint_broke(ep, "word of a deposit",
			   !word_is_sound(&w, d->group) ||
				   !ranks_take(&ranks, am->data, d->group, w.origin) ||
				   !ranks_take(&agreed, (const unsigned char *)am->data + sets / 2,
					       d->group, w.origin)))
		return;
	if (endpoint_broke(ep, "order of a deposit",
			   !word_order(&order, am, sets, w.word) ||
				   !order_is_sound(&order, &ranks, d->group->boards.size)))
		return;
	if (w.origin != d->group->boards.rank) {
		target_word(d, rank, &w, &ranks, &agreed, &order);
		return;
	}
	l = put_line(d, w.number);
	if (l)
		put_word(l, rank, &w, &agreed);
	else
		word_is_late(ep, d, &w, am);
}

static void data_arrived(struct endpoint *ep, struct deposits *d, const struct slmpm_am *am)
{
	struct wire_deposit_data head;
	struct line *l;
	uint32_t origin;

	if (endpoint_broke(ep, "length of a deposit",
			   am->head_len != sizeof(head) || am->data_len == 0))
		return;
	memcpy(&head, am->head, sizeof(head));
	origin = LITTLE_32(head.origin);
	if (endpoint_broke(ep, "deposit bit", LITTLE_16(head.flags) != DEPOSIT_BIT || head.zero))
		return;
	l = target_line(d, origin);
	if (!l || l->number != LITTLE_64(head.number) || head.generation != generation_of(d->group))
		return;
	(void)endpoint_broke(ep, "place of a deposit",
			     !target_data(l, pair_rank(pair_member(ep)), LITTLE_64(head.at),
					  am->data, am->data_len));
}

void deposit_arrived(struct endpoint *ep, const struct slmpm_am *am)
{
	const struct member *m = pair_member(ep);
	struct deposits *d;
	bool shrinks;

	if (endpoint_broke(ep, "number of a handler", am->id >= DEPOSIT_END || !ep->rooms->pair))
		return;
	if (!m || ep->closing) /* the group has been left */
		return;
	/* It is to have other ranks: its sender may have them by now. */
	shrinks = m->group->shrinking && !m->group->shrink_on(m->group);
	if (pair_member(ep) != m || endpoint_has_ended(ep)) /* by that */
		return;
	d = deposits_of(m->group);
	if (!d)
		endpoint_no_memory(ep);
	else if (am->id == DEPOSIT_WORD && shrinks)
		early_arrived(d, ep, am);
	else if (am->id == DEPOSIT_WORD)
		word_arrived(ep, d, am);
	else if (!shrinks)
		data_arrived(ep, d, am);
}
