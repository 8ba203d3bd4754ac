/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of tests/lib/mail_model.h. */
#include "tests/lib/mail_model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/test.h"

void mail_fill(uint64_t seed, void *to, size_t n)
{
	unsigned char *at = to;
	struct rng g = {seed};
	uint64_t word = rng_next(&g);

	for (size_t i = 0; i < n; i++) {
		at[i] = (unsigned char)(word >> i % 8 * 8);
		if (i % 8 == 7)
			word += UINT64_C(0x0101010101010101) + word % 251;
	}
}

size_t mail_send(struct mail_channel *c, uint32_t stream, uint32_t imm, uint64_t seed, size_t len)
{
	if (c->count == c->room) {
		c->room = c->room ? 2 * c->room : 256;
		c->mails = realloc(c->mails, c->room * sizeof(*c->mails));
		CHECK(c->mails, "memory");
	}
	c->mails[c->count] = (struct mail){
		.seed = seed, .len = len, .stream = stream, .imm = imm, .state = MAIL_LIVE};
	return c->count++;
}

long mail_predict(const struct mail_channel *c, const struct mail_want *wants, size_t n, size_t at)
{
	bool *claimed = calloc(c->count + 1, 1);
	long found = -1;

	CHECK(claimed, "memory");
	for (size_t i = 0; i < n && i <= at; i++) {
		if (!wants[i].used || wants[i].channel != c)
			continue;
		found = -1;
		for (size_t m = c->first; m < c->count && found < 0; m++)
			if (c->mails[m].state == MAIL_LIVE && !claimed[m] &&
			    (wants[i].stream == MAIL_ANY || wants[i].stream == c->mails[m].stream))
				found = (long)m;
		if (found >= 0)
			claimed[found] = true;
	}
	free(claimed);
	return found;
}

bool mail_same(const struct mail_channel *c, size_t number, const void *data, size_t n)
{
	const struct mail *m = &c->mails[number];
	unsigned char *want = malloc(n + 1);
	bool same;

	CHECK(want && n <= m->len, "%zu of %zu bytes", n, m->len);
	mail_fill(m->seed, want, n);
	same = !n || !memcmp(want, data, n);
	free(want);
	return same;
}

static bool is_it(const struct mail_channel *c, size_t number, const struct mail_got *got)
{
	const struct mail *m = &c->mails[number];

	bool fits = got->part ? got->len <= m->len : !m->growing && got->len == m->len;

	return m->state == MAIL_LIVE && m->stream == got->stream && m->imm == got->imm && fits &&
	       mail_same(c, number, got->data, got->n);
}

size_t mail_take(struct mail_channel *c, long predicted, uint64_t order, const struct mail_got *got)
{
	size_t at = predicted >= 0 ? (size_t)predicted : c->first;

	while (predicted < 0 && at < c->count && !is_it(c, at, got))
		at++;
	CHECK(at < c->count, "%zu bytes on stream %u, imm %x: never sent like that", got->len,
	      got->stream, got->imm);
	CHECK(is_it(c, at, got),
	      "got %zu bytes on stream %u, imm %x; due is message %zu: %zu bytes on %u, imm %x%s",
	      got->len, got->stream, got->imm, at, c->mails[at].len, c->mails[at].stream,
	      c->mails[at].imm, c->mails[at].state == MAIL_LIVE ? "" : ", which is gone");
	c->mails[at].state = MAIL_TAKEN;
	c->mails[at].taker = order;
	while (c->first < c->count && c->mails[c->first].state != MAIL_LIVE)
		c->first++;
	return at;
}

bool mail_wanted(const struct mail_channel *c, uint32_t stream)
{
	for (size_t i = c->first; i < c->count; i++)
		if (c->mails[i].state == MAIL_LIVE &&
		    (stream == MAIL_ANY || stream == c->mails[i].stream))
			return true;
	return false;
}

size_t mail_left(const struct mail_channel *c)
{
	size_t n = 0;

	for (size_t i = c->first; i < c->count; i++)
		n += c->mails[i].state == MAIL_LIVE;
	return n;
}

/* Of the same bytes: from the eighth on they follow from those before. */
static bool is_filled_alike(const struct mail *a, const struct mail *b)
{
	unsigned char first[8], second[8];
	size_t n = a->len < sizeof(first) ? a->len : sizeof(first);

	if (a->len != b->len)
		return false;
	mail_fill(a->seed, first, n);
	mail_fill(b->seed, second, n);
	return !n || !memcmp(first, second, n);
}

static bool is_twin(const struct mail *a, const struct mail *b)
{
	return a->state == MAIL_TAKEN && b->state == MAIL_TAKEN && a->stream == b->stream &&
	       a->imm == b->imm && is_filled_alike(a, b);
}

/* Of those that are the same mail_take gives the first to the receive that is asked first, which
 * need not be the one posted first. */
static void assign_twins(struct mail_channel *c)
{
	for (size_t i = 1; i < c->count; i++)
		for (size_t j = 0; j < i; j++) {
			struct mail *a = &c->mails[j], *b = &c->mails[i];
			uint64_t taker = a->taker;

			if (taker <= b->taker || !is_twin(a, b))
				continue;
			a->taker = b->taker;
			b->taker = taker;
		}
}

void mail_check_order(struct mail_channel *c)
{
	if (c->order == MAIL_ANYHOW)
		return;
	if (c->order == MAIL_MONOTONE)
		assign_twins(c);
	for (uint32_t stream = 0; stream < 8; stream++) {
		const struct mail *last = NULL;

		for (size_t i = 0; i < c->count; i++) {
			const struct mail *m = &c->mails[i];

			if (m->state != MAIL_TAKEN || m->stream != stream)
				continue;
			CHECK(!last || last->taker < m->taker,
			      "message %zu went to receive %llu, one before it to %llu", i,
			      (unsigned long long)m->taker, (unsigned long long)last->taker);
			last = m;
		}
	}
}

void mail_reset(struct mail_channel *c, enum mail_order order)
{
	free(c->mails);
	*c = (struct mail_channel){.order = order};
}
