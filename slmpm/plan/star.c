/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Star: few ranks are centres, one for each processor that members share; others give to a centre
 * and get the result of it, so few messages travel. Contributions are combined in the order of the
 * ranks.
 *
 * What is short comes to centre C from the ranks C + centres, C + 2 centres, ...; centres give each
 * other all that they have, and each combines. Of a long vector each centre combines a piece in its
 * turn, so 2 messages a rank and piece, the least there can be. A stage is a piece of each centre;
 * two are under way, so that pieces are read while they are still at hand.
 */
#include "slmpm/plan/rounds.h"

#define AHEAD 2 /* stages */

enum lane { GATHERED = 0, EXCHANGED, RESULTS }; /* of a long one's stages GATHERED + stage % 2 */

static uint32_t others(const struct plan *p)
{
	return p->spec.size - 1;
}

/* The K-th of them. */
static uint32_t other_of(const struct plan *p, uint32_t k)
{
	return (p->spec.rank + 1 + k) % p->spec.size;
}

static bool is_centre(const struct plan *p, uint32_t rank)
{
	return rank < p->centres;
}

static bool is_in_pieces(const struct plan *p)
{
	return p->piece < p->spec.count;
}

static bool has_tokens(const struct plan *p)
{
	return p->spec.kind == PLAN_BARRIER;
}

uint32_t plan_star_centres(uint32_t size, uint32_t processors)
{
	const uint32_t centres = processors < size / 2 ? processors : size / 2;

	return centres ? centres : 1;
}

void prepare_star(struct plan *p)
{
	const uint64_t count = has_tokens(p) ? 0 : p->spec.count;
	uint32_t sets = 1;

	p->spec.count = count;
	p->centres = plan_star_centres(p->spec.size, p->spec.processors);
	p->piece = p->spec.piece && p->spec.piece < count ? p->spec.piece : count;
	if (is_in_pieces(p)) {
		if ((count - 1) / p->piece > UINT32_MAX / 8 / p->spec.size) {
			p->scratch = UINT64_MAX;
			return;
		}
		sets = AHEAD;
	}
	if (is_centre(p, p->spec.rank))
		plan_slots(p, sets * p->spec.size, p->piece, sets * p->spec.size, 0);
}

/* ---- short ones ------------------------------------------------------------------------------ */

/* Ranks of C's. */
static uint32_t members_of(const struct plan *p, uint32_t c)
{
	return (p->spec.size - c + p->centres - 1) / p->centres;
}

/* Those of a centre lie one behind the other. */
static struct plan_part short_slot(const struct plan *p, uint32_t rank)
{
	const uint32_t c = rank % p->centres, more = p->spec.size % p->centres;
	const uint32_t before = p->spec.size / p->centres * c + (c < more ? c : more);

	return plan_slot(p, before + rank / p->centres);
}

static void star_take(struct plan *p, uint32_t from, struct plan_part at, uint64_t count,
		      uint32_t lane)
{
	if (has_tokens(p))
		plan_await_token(p, from, lane);
	else
		plan_recv(p, from, at, count, lane, PLAN_AHEAD);
}

static void star_give(struct plan *p, uint32_t to, struct plan_part at, uint64_t count)
{
	if (has_tokens(p))
		plan_token(p, to);
	else
		plan_send(p, to, at, count);
}

/* What this centre has of its own ranks, to the OTHER one. */
static void give_block(struct plan *p, uint32_t other)
{
	const uint32_t me = p->spec.rank;

	if (is_centre(p, other))
		star_give(p, other, short_slot(p, me), members_of(p, me) * p->spec.count);
}

static struct plan_part short_part(const struct plan *p, uint32_t rank)
{
	return rank == p->spec.rank && p->centres == 1 ? plan_at(p->input, 0) : short_slot(p, rank);
}

/* A round is one step for one of the others. */
static bool short_centre(struct plan *p, uint32_t k)
{
	const uint32_t n = others(p), at = k % n, other = other_of(p, at), me = p->spec.rank;
	const uint64_t count = p->spec.count;
	const struct plan_part to = plan_at(PLAN_TO, 0);
	const bool own = !is_centre(p, other) && other % p->centres == me;

	switch (k / n) {
	case 0:
		if (own)
			star_take(p, other, short_slot(p, other), count, GATHERED);
		else if (is_centre(p, other))
			star_take(p, other, short_slot(p, other), members_of(p, other) * count,
				  EXCHANGED);
		break;
	case 1:
		if (at == 0 && p->centres > 1 && !has_tokens(p))
			plan_copy(p, short_slot(p, me), plan_at(p->input, 0), count);
		if (at == 0)
			plan_wait(p, GATHERED, members_of(p, me) - 1);
		give_block(p, other);
		break;
	case 2:
		if (at == 0)
			plan_wait(p, EXCHANGED, p->centres - 1);
		if (!has_tokens(p))
			plan_fold(p, to, at ? to : short_part(p, 0), short_part(p, at + 1), count);
		break;
	default:
		if (own)
			star_give(p, other, to, count);
	}
	return k + 1 < 4 * n;
}

static bool short_other(struct plan *p)
{
	const uint32_t centre = p->spec.rank % p->centres;
	const struct plan_part to = plan_at(PLAN_TO, 0);
	const uint64_t count = p->spec.count;
	const bool in_place = p->input == PLAN_TO && !has_tokens(p);

	if (!in_place)
		star_take(p, centre, to, count, GATHERED);
	star_give(p, centre, plan_at(p->input, 0), count);
	if (in_place)
		plan_recv(p, centre, to, count, GATHERED, 0);
	plan_wait(p, GATHERED, 1);
	return false;
}

/* ---- long ones ------------------------------------------------------------------------------- */

static uint32_t stages(const struct plan *p)
{
	return (plan_pieces(p) + p->centres - 1) / p->centres;
}

/* Whether C has a piece in that stage, and which. */
static bool has_piece(const struct plan *p, int64_t stage, uint32_t c, uint32_t *piece)
{
	if (stage < 0 || !is_centre(p, c) || stage * p->centres + c >= plan_pieces(p))
		return false;
	*piece = (uint32_t)stage * p->centres + c;
	return true;
}

static struct plan_part long_slot(const struct plan *p, int64_t stage, uint32_t rank)
{
	return plan_slot(p, (uint32_t)(stage % AHEAD) * p->spec.size + rank);
}

/* The contribution of RANK to this centre's piece. */
static void await_piece(struct plan *p, int64_t stage, uint32_t rank)
{
	uint32_t piece;

	if (has_piece(p, stage, p->spec.rank, &piece))
		plan_recv(p, rank, long_slot(p, stage, rank), plan_piece_len(p, piece),
			  GATHERED + (uint32_t)(stage % AHEAD), PLAN_AHEAD);
}

static void give_piece(struct plan *p, int64_t stage, uint32_t c)
{
	uint32_t piece;

	if (has_piece(p, stage, c, &piece))
		plan_send(p, c, plan_at(p->input, piece * p->piece), plan_piece_len(p, piece));
}

static void await_result(struct plan *p, int64_t stage, uint32_t c, uint32_t lane, uint32_t flags)
{
	uint32_t piece;

	if (has_piece(p, stage, c, &piece))
		plan_recv(p, c, plan_at(PLAN_TO, piece * p->piece), plan_piece_len(p, piece), lane,
			  flags);
}

/* Centres but this one with a piece in that stage. */
static uint32_t results_of(const struct plan *p, int64_t stage)
{
	uint32_t piece, n = 0;

	for (uint32_t c = 0; c < p->centres; c++)
		n += c != p->spec.rank && has_piece(p, stage, c, &piece);
	return n;
}

static struct plan_part long_part(const struct plan *p, int64_t stage, uint32_t piece,
				  uint32_t rank)
{
	return rank == p->spec.rank ? plan_at(p->input, piece * p->piece) :
				      long_slot(p, stage, rank);
}

/* Until all are combined the own slot has the result, for it may be the own contribution that it
 * replaces. */
static void fold_piece(struct plan *p, int64_t stage, uint32_t k)
{
	const struct plan_part sum = long_slot(p, stage, p->spec.rank);
	uint32_t piece;
	struct plan_part to;

	if (!has_piece(p, stage, p->spec.rank, &piece))
		return;
	if (k == 0)
		plan_wait(p, GATHERED + (uint32_t)(stage % AHEAD), others(p));
	to = plan_at(PLAN_TO, piece * p->piece);
	plan_fold(p, k + 1 == others(p) ? to : sum, k ? sum : long_part(p, stage, piece, 0),
		  long_part(p, stage, piece, k + 1), plan_piece_len(p, piece));
}

static void give_result(struct plan *p, int64_t stage, uint32_t other)
{
	uint32_t piece;

	if (has_piece(p, stage, p->spec.rank, &piece))
		plan_send(p, other, plan_at(PLAN_TO, piece * p->piece), plan_piece_len(p, piece));
}

/* A round is one step for one of the others, six of them a stage: the first two stages, which are
 * none, only begin those behind them. From another centre a result comes before the next
 * contribution. */
static bool long_centre(struct plan *p, uint32_t k)
{
	const uint32_t n = others(p), other = other_of(p, k % n);
	const int64_t stage = (int64_t)(k / n / 6) - AHEAD;
	const bool centre = is_centre(p, other), in_place = p->input == PLAN_TO;

	switch (k / n % 6) {
	case 0: fold_piece(p, stage, k % n); break;
	case 1:
		if (!centre)
			await_piece(p, stage + AHEAD, other);
		break;
	case 2: give_result(p, stage, other); break;
	case 3: give_piece(p, stage + 1, other); break;
	case 4:
		if (k % n == 0)
			plan_wait(p, RESULTS, results_of(p, stage));
		await_result(p, stage + 1, other, RESULTS, in_place ? 0 : PLAN_AHEAD);
		break;
	default:
		if (centre)
			await_piece(p, stage + AHEAD, other);
	}
	return k + 1 < 6 * n * (stages(p) + AHEAD);
}

/* Stage K is given once the results of the one AHEAD before are here: a round a centre. */
static bool long_other(struct plan *p, uint32_t k)
{
	const uint32_t c = k % p->centres;
	const int64_t stage = k / p->centres;
	const uint32_t lane = (uint32_t)(stage % AHEAD);
	const bool in_place = p->input == PLAN_TO;

	if (c == 0)
		plan_wait(p, lane, results_of(p, stage - AHEAD));
	if (!in_place)
		await_result(p, stage, c, lane, PLAN_AHEAD);
	give_piece(p, stage, c);
	if (in_place)
		await_result(p, stage, c, lane, 0);
	return k + 1 < p->centres * (stages(p) + AHEAD);
}

bool round_star(struct plan *p, uint32_t k)
{
	const bool centre = is_centre(p, p->spec.rank);

	if (!p->spec.count && !has_tokens(p))
		return false;
	if (p->spec.size == 1) {
		plan_copy(p, plan_at(PLAN_TO, 0), plan_at(p->input, 0), p->spec.count);
		return false;
	}
	if (is_in_pieces(p))
		return centre ? long_centre(p, k) : long_other(p, k);
	return centre ? short_centre(p, k) : short_other(p);
}
