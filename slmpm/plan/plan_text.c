/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as texts: read, line by line; whether one is for an operation; its rounds. */
#include "slmpm/plan/plan_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/plan/rounds.h"

#define WORD    32
#define NO_RANK UINT32_MAX
#define BACK    64 /* sends, at most, that a receive is compared with */

struct text_reader {
	struct plan_text *t;
	const char *at;
	uint32_t line, rank;
	uint32_t steps, room;
	uint32_t under_way[PLAN_LANES]; /* receives of this rank that no WAIT is for yet */
	char word[WORD];
};

__attribute__((cold, format(printf, 2, 3))) static int refuse_line(const struct text_reader *r,
								   const char *format, ...)
{
	char text[ERROR_DETAIL];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error_set(SLMPM_EINVAL, "line %" PRIu32 ": %s", r->line, text);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The next word of the line; false: there is none. */
static bool next_word(struct text_reader *r)
{
	size_t n;

	r->at += strspn(r->at, " \t\r");
	n = strcspn(r->at, " \t\r\n#");
	(void)snprintf(r->word, sizeof(r->word), "%.*s", n < WORD ? (int)n : WORD - 1, r->at);
	r->at += n;
	return n;
}

static int end_line(struct text_reader *r)
{
	return next_word(r) ? refuse_line(r, "\"%s\": one word too many", r->word) : 0;
}

/* Digits; false: there are none, or it is more than MOST. */
static bool digits(const char **at, uint64_t most, uint64_t *value)
{
	const char *first = *at;

	for (*value = 0; **at >= '0' && **at <= '9' && *value <= most; (*at)++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
			return false;
	return *at > first && *value <= most;
}

static int next_number(struct text_reader *r, const char *what, uint64_t least, uint64_t most,
		       uint64_t *value)
{
	const char *at = r->word;

	if (!next_word(r) || !digits(&at, most, value) || *at || *value < least)
		return refuse_line(r, "%s \"%s\": from %" PRIu64 " to %" PRIu64, what, r->word,
				   least, most);
	return 0;
}

/* ---- operands -------------------------------------------------------------------------------- */

struct operand {
	uint8_t area;
	uint16_t first, parts;
};

static uint8_t area_of(const char *word, size_t n)
{
	static const char *const names[] = {[PLAN_FROM] = "from", "to", "scratch"};

	for (uint8_t a = PLAN_FROM; a <= PLAN_SCRATCH; a++)
		if (strlen(names[a]) == n && !strncmp(names[a], word, n))
			return a;
	return 0;
}

/* "to", its first block; "to[3]", "to[3-5]". */
static int take_operand(struct text_reader *r, struct operand *o)
{
	const char *at = r->word + strcspn(r->word, "[");
	uint64_t first = 0, last = r->t->parts - 1;
	const char *end = "";

	o->area = area_of(r->word, (size_t)(at - r->word));
	if (*at) {
		at++;
		if (!digits(&at, PLAN_TEXT_INDEX - 1, &first))
			o->area = 0;
		last = first;
		if (*at == '-' && (at++, !digits(&at, PLAN_TEXT_INDEX - 1, &last)))
			o->area = 0;
		end = "]";
	}
	if (!o->area || strcmp(at, end) || last < first)
		return refuse_line(
			r, "\"%s\": from, to or scratch, and [I] or [I-J] below %d behind it",
			r->word, PLAN_TEXT_INDEX);
	o->first = (uint16_t)first;
	o->parts = (uint16_t)(last - first + 1);
	if (o->area == PLAN_SCRATCH && last >= r->t->scratch)
		r->t->scratch = (uint32_t)last + 1;
	return 0;
}

static int next_operand(struct text_reader *r, struct operand *o)
{
	if (!next_word(r))
		return refuse_line(r, "an operand is missing");
	return take_operand(r, o);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* No send that may be under way reads where S receives: those behind the last step that waits for
 * sends. */
static bool may_be_ahead(const struct text_reader *r, const struct text_step *s)
{
	const uint32_t first = r->t->begin[r->rank];
	uint32_t back = 0;

	for (uint32_t i = r->steps; i > first; i--) {
		const struct text_step *before = &r->t->step[i - 1];

		if (before->op == PLAN_FOLD || before->op == PLAN_COPY ||
		    (before->op == PLAN_RECV && !(before->flags & PLAN_AHEAD)))
			return true;
		if (before->op != PLAN_SEND)
			continue;
		if (++back > BACK)
			return false;
		if (before->at_area == s->at_area && before->parts && s->parts &&
		    before->at < s->at + s->parts && s->at < before->at + before->parts)
			return false;
	}
	return true;
}

static int add_step(struct text_reader *r, const struct text_step *s)
{
	struct text_step *more;

	if (r->steps == PLAN_TEXT_STEPS)
		return refuse_line(r, "more than %d steps", PLAN_TEXT_STEPS);
	if (r->steps == r->room) {
		r->room = r->room * 2 + 16;
		more = realloc(r->t->step, r->room * sizeof(*more));
		if (!more)
			return error_system(-ENOMEM, "a plan's text");
		r->t->step = more;
	}
	r->t->step[r->steps++] = *s;
	return 0;
}

static int take_lane(struct text_reader *r, struct text_step *s)
{
	uint64_t lane = 0;
	int rc = next_number(r, "lane", 0, PLAN_LANES - 1, &lane);

	s->lane = (uint8_t)lane;
	return rc;
}

static void set_at(struct text_step *s, const struct operand *o)
{
	s->at_area = o->area;
	s->at = o->first;
	s->parts = o->parts;
}

/* send PEER AT, recv PEER AT [lane L]; of a barrier without AT. */
static int take_message(struct text_reader *r, struct text_step *s)
{
	struct operand at = {.area = PLAN_SCRATCH};
	uint64_t peer = 0;
	int rc = next_number(r, "rank", 0, r->t->members - 1, &peer);

	if (rc == 0 && peer == r->rank)
		rc = refuse_line(r, "rank %" PRIu32 ": that is itself", r->rank);
	if (rc == 0 && r->t->kind != PLAN_BARRIER)
		rc = next_operand(r, &at);
	if (rc < 0)
		return rc;
	s->peer = (uint8_t)peer;
	set_at(s, &at);
	if (s->op != PLAN_RECV)
		return 0;
	if (next_word(r))
		rc = strcmp(r->word, "lane") ? refuse_line(r, "\"%s\": lane L", r->word) :
					       take_lane(r, s);
	if (rc < 0)
		return rc;
	r->under_way[s->lane]++;
	s->flags = may_be_ahead(r, s) ? PLAN_AHEAD : 0;
	return 0;
}

/* wait [L] */
static int take_wait(struct text_reader *r, struct text_step *s)
{
	const char *before = r->at;
	int rc = 0;

	if (next_word(r)) {
		r->at = before;
		rc = take_lane(r, s);
	}
	if (rc == 0 && !r->under_way[s->lane])
		rc = refuse_line(r, "rank %" PRIu32 ": no receive of lane %d is under way", r->rank,
				 s->lane);
	if (rc < 0)
		return rc;
	s->count = r->under_way[s->lane];
	r->under_way[s->lane] = 0;
	return 0;
}

/* fold AT LEFT RIGHT, copy AT LEFT */
static int take_local(struct text_reader *r, struct text_step *s)
{
	struct operand at = {0}, left = {0}, right;
	int rc = next_operand(r, &at);

	rc = rc < 0 ? rc : next_operand(r, &left);
	right = left;
	if (rc == 0 && s->op == PLAN_FOLD)
		rc = next_operand(r, &right);
	if (rc < 0)
		return rc;
	if (at.parts != left.parts || at.parts != right.parts)
		return refuse_line(r, "its operands are %d, %d and %d parts", at.parts, left.parts,
				   right.parts);
	set_at(s, &at);
	s->left_area = left.area;
	s->left = left.first;
	s->right_area = right.area;
	s->right = right.first;
	return 0;
}

static int take_text_step(struct text_reader *r)
{
	static const char *const names[] = {[PLAN_SEND] = "send", "recv", "wait", "fold", "copy"};
	struct text_step s = {.op = PLAN_SEND, .line = r->line};
	int rc;

	while (s.op <= PLAN_COPY && strcmp(names[s.op], r->word))
		s.op++;
	if (s.op > PLAN_COPY)
		return refuse_line(r, "\"%s\": rank, send, recv, wait, fold or copy", r->word);
	switch (s.op) {
	case PLAN_WAIT: rc = take_wait(r, &s); break;
	case PLAN_FOLD:
	case PLAN_COPY: rc = take_local(r, &s); break;
	default: rc = take_message(r, &s);
	}
	rc = rc < 0 ? rc : end_line(r);
	return rc < 0 ? rc : add_step(r, &s);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int end_rank(struct text_reader *r)
{
	for (uint32_t lane = 0; r->rank != NO_RANK && lane < PLAN_LANES; lane++)
		if (r->under_way[lane])
			return refuse_line(r,
					   "rank %" PRIu32
					   " ends, and waits for no receive of lane %" PRIu32,
					   r->rank, lane);
	return 0;
}

static int take_rank(struct text_reader *r)
{
	const uint32_t next = r->rank + 1; /* NO_RANK: 0 */
	uint64_t rank = 0;
	int rc = end_rank(r);

	rc = rc < 0 ? rc : next_number(r, "rank", next, next, &rank);
	rc = rc < 0 ? rc : end_line(r);
	if (rc == 0 && next == r->t->members)
		rc = refuse_line(r, "rank %" PRIu32 " of %" PRIu32 " members", next, next);
	if (rc < 0)
		return rc;
	r->rank = next;
	r->t->begin[next] = r->steps;
	return 0;
}

static int take_kind(struct text_reader *r)
{
	uint32_t kind = PLAN_BARRIER;

	if (!next_word(r))
		return refuse_line(r, "which collective?");
	while (kind < PLAN_KINDS && strcmp(plan_kind_name(kind), r->word))
		kind++;
	if (kind == PLAN_KINDS)
		return refuse_line(r, "\"%s\" is no collective", r->word);
	if (kind == PLAN_SCATTER || kind == PLAN_GATHER)
		return refuse_line(r, "%s: its root alone knows how much each has: it goes flat",
				   r->word);
	r->t->kind = kind;
	return 0;
}

static int take_bytes(struct text_reader *r)
{
	struct plan_text *t = r->t;
	int rc = next_number(r, "bytes", 0, UINT64_MAX - 1, &t->least);

	return rc < 0 ? rc : next_number(r, "bytes", t->least, UINT64_MAX - 1, &t->most);
}

/* What stands before the first rank. */
static int take_text_head(struct text_reader *r)
{
	struct plan_text *t = r->t;
	uint64_t number = 0;
	int rc;

	if (!strcmp(r->word, "collective")) {
		rc = take_kind(r);
	} else if (!strcmp(r->word, "members")) {
		rc = next_number(r, "members", 1, PLAN_TEXT_MEMBERS, &number);
		t->members = (uint32_t)number;
	} else if (!strcmp(r->word, "parts")) {
		rc = next_number(r, "parts", 1, PLAN_TEXT_PARTS, &number);
		t->parts = (uint32_t)number;
	} else if (!strcmp(r->word, "bytes")) {
		rc = take_bytes(r);
	} else {
		return refuse_line(r, "\"%s\": collective, members, parts or bytes", r->word);
	}
	return rc < 0 ? rc : end_line(r);
}

static int take_text_line(struct text_reader *r)
{
	if (!next_word(r))
		return 0;
	if (!strcmp(r->word, "rank")) {
		if (!r->t->kind || !r->t->members)
			return refuse_line(r, "collective and members come first");
		return take_rank(r);
	}
	return r->rank == NO_RANK ? take_text_head(r) : take_text_step(r);
}

static int read_text(struct text_reader *r)
{
	int rc = 0;

	while (rc == 0 && *r->at) {
		r->line++;
		rc = take_text_line(r);
		r->at += strcspn(r->at, "\n");
		r->at += *r->at == '\n';
	}
	if (rc == 0 && (r->rank == NO_RANK || r->rank + 1 < r->t->members))
		rc = refuse_line(r, "it ends, and has no rank %" PRIu32, r->rank + 1);
	if (rc == 0)
		rc = end_rank(r);
	if (rc == 0)
		r->t->begin[r->t->members] = r->steps;
	return rc;
}

/* ---- loaded ---------------------------------------------------------------------------------- */

static uint32_t hash_of_text(const struct plan_text *t)
{
	const uint64_t head[] = {t->kind, t->members, t->parts, t->least, t->most};
	uint64_t h = 0;

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		h = (h ^ head[i]) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < t->begin[t->members]; i++) {
		const struct text_step *s = &t->step[i];
		const uint32_t fields[] = {s->op,        s->peer,       s->lane, s->at_area,
					   s->left_area, s->right_area, s->at,   s->left,
					   s->right,     s->parts};

		for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
			h = (h ^ fields[k]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (uint32_t r = 0; r < t->members; r++)
		h = (h ^ t->begin[r]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(h >> 40) | 1;
}

int plan_text_load(struct plan_text **out, const char *text)
{
	struct plan_text *t = calloc(1, sizeof(*t));
	struct text_reader r = {.t = t, .at = text, .rank = NO_RANK};
	int rc;

	if (!t)
		return error_system(-ENOMEM, "a plan's text");
	t->parts = 1;
	t->most = UINT64_MAX;
	rc = read_text(&r);
	rc = rc < 0 ? rc : plan_text_prove(t);
	if (rc < 0) {
		plan_text_free(t);
		return rc;
	}
	t->hash = hash_of_text(t);
	*out = t;
	return 0;
}

void plan_text_free(struct plan_text *t)
{
	if (t)
		free(t->step);
	free(t);
}

uint32_t plan_text_hash(const struct plan_text *t)
{
	return t->hash;
}

uint32_t plan_text_kind(const struct plan_text *t)
{
	return t->kind;
}

uint32_t plan_text_members(const struct plan_text *t)
{
	return t->members;
}

/* Where the root is another than 0, the ranks are in another order. */
static uint32_t properties_with_root(const struct plan_text *t, uint32_t root)
{
	return t->kind == PLAN_REDUCE && root ? PLAN_COMMUTES : t->properties;
}

bool plan_text_fits(const struct plan_text *t, const struct plan_spec *spec, uint32_t width)
{
	const uint64_t bytes = plan_bytes(spec, width);

	if (t->kind != spec->kind || t->members != spec->size || spec->counts || spec->to_counts)
		return false;
	if (bytes < t->least || bytes > t->most)
		return false;
	return plan_suits_order(spec, properties_with_root(t, spec->root));
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Elements before index I of an area. */
static uint64_t elements_before(const struct plan *p, uint32_t i)
{
	const uint32_t parts = p->spec.text->parts, k = i % parts;
	const uint64_t count = p->spec.count, longer = count % parts;

	return i / parts * count + count / parts * k + (k < longer ? k : longer);
}

/* In place the contribution has been copied behind what is scratch anyway: FROM is there. */
static struct plan_part text_part(const struct plan *p, uint8_t area, uint32_t i)
{
	const uint64_t first = elements_before(p, i);

	if (area == PLAN_FROM && p->spec.flags & PLAN_IN_PLACE)
		return plan_at(PLAN_SCRATCH, p->own + first);
	return plan_at(area, first);
}

uint32_t plan_text_blocks(const struct plan_text *t, uint32_t rank, uint8_t area)
{
	const bool from = area == PLAN_FROM, root = rank == 0;

	if (area == PLAN_SCRATCH)
		return 0;
	switch (t->kind) {
	case PLAN_BARRIER: return 0;
	case PLAN_BROADCAST: return from == root;
	case PLAN_REDUCE: return from || root;
	case PLAN_ALLGATHER: return from ? 1 : t->members;
	case PLAN_ALLTOALL: return t->members;
	case PLAN_REDUCE_SCATTER: return from ? t->members : 1;
	case PLAN_EXSCAN: return from || rank > 0;
	default: return 1;
	}
}

/* The rank of the text that this one does. */
static uint32_t text_rank(const struct plan *p)
{
	return (p->spec.rank + p->spec.size - p->spec.root) % p->spec.size;
}

static uint64_t contribution_len(const struct plan *p)
{
	return plan_text_blocks(p->spec.text, text_rank(p), PLAN_FROM) * p->spec.count;
}

void prepare_text(struct plan *p)
{
	const uint32_t parts = p->spec.text->parts;
	const uint64_t blocks = (p->spec.text->scratch + parts - 1) / parts;
	const bool in_place = p->spec.flags & PLAN_IN_PLACE;

	if (__builtin_mul_overflow(blocks, p->spec.count, &p->own) ||
	    __builtin_add_overflow(p->own, in_place ? contribution_len(p) : 0, &p->scratch))
		p->scratch = UINT64_MAX;
}

bool round_text_own(struct plan *p, uint32_t k)
{
	const uint64_t first = p->spec.kind == PLAN_ALLGATHER ? p->spec.rank * p->spec.count : 0;

	(void)k;
	if (p->spec.flags & PLAN_IN_PLACE)
		plan_copy(p, plan_at(PLAN_SCRATCH, p->own), plan_at(PLAN_TO, first),
			  contribution_len(p));
	return false;
}

/* Of no elements, too: so messages are as many as the text says. */
static void round_message(struct plan *p, const struct text_step *s, uint64_t count)
{
	const uint32_t peer = (s->peer + p->spec.root) % p->spec.size;
	const struct plan_part at = text_part(p, s->at_area, s->at);

	if (s->op == PLAN_SEND && count) {
		plan_send(p, peer, at, count);
	} else if (s->op == PLAN_SEND) {
		plan_token(p, peer);
	} else if (count) {
		(void)plan_recv(p, peer, at, count, s->lane, s->flags);
	} else {
		p->behind |= !(s->flags & PLAN_AHEAD);
		plan_await_token(p, peer, s->lane);
	}
}

bool round_text(struct plan *p, uint32_t k)
{
	const struct plan_text *t = p->spec.text;
	const uint32_t rank = text_rank(p);
	const struct text_step *s = &t->step[t->begin[rank] + k];
	uint64_t count;

	if (k == 0)
		p->behind = false; /* the phase before sends nothing */
	if (k == t->begin[rank + 1] - t->begin[rank])
		return false;
	count = elements_before(p, (uint32_t)s->at + s->parts) - elements_before(p, s->at);
	/* Of no elements there is no step: the next receive waits for sends in its place. */
	p->behind |= !count && (s->op == PLAN_FOLD || s->op == PLAN_COPY);
	switch (s->op) {
	case PLAN_WAIT: plan_wait(p, s->lane, s->count); break;
	case PLAN_FOLD:
		plan_fold(p, text_part(p, s->at_area, s->at), text_part(p, s->left_area, s->left),
			  text_part(p, s->right_area, s->right), count);
		break;
	case PLAN_COPY:
		plan_copy(p, text_part(p, s->at_area, s->at), text_part(p, s->left_area, s->left),
			  count);
		break;
	default: round_message(p, s, count);
	}
	return true;
}

uint32_t plan_text_longest(const struct plan_text *t)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < t->members; r++)
		if (t->begin[r + 1] - t->begin[r] > most)
			most = t->begin[r + 1] - t->begin[r];
	return most;
}
