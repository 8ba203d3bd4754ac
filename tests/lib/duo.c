/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive a message belongs to. */
#include "tests/lib/duo.h"

#include <string.h>

struct duo duo;

uint32_t duo_below(size_t n)
{
	return rng_below(&duo.chance, (uint32_t)n);
}

static bool fits(uint32_t wanted, uint32_t stream)
{
	return wanted == ANY || wanted == stream;
}

void duo_match(const struct duo_side *s, int of[LIVE])
{
	const struct duo_side *from = s == duo.sides ? &duo.sides[1] : &duo.sides[0];
	bool taken[POST] = {false};

	for (int m = 0; m < from->sents; m++) {
		of[m] = -1;
		for (int r = 0; r < s->posteds && of[m] < 0; r++)
			if (!taken[r] && fits(s->posted[r].stream, from->sent[m].stream))
				of[m] = r;
		if (of[m] >= 0)
			taken[of[m]] = true;
	}
}

struct duo_side *duo_other(struct duo_side *s)
{
	return s == duo.sides ? &duo.sides[1] : &duo.sides[0];
}

int duo_first_free(struct duo_side *s, uint32_t stream)
{
	int of[LIVE];

	duo_match(s, of);
	for (int m = 0; m < duo_other(s)->sents; m++)
		if (of[m] < 0 && fits(stream, duo_other(s)->sent[m].stream))
			return m;
	return -1;
}

struct duo_sent duo_forget(struct duo_side *from, int m)
{
	struct duo_sent was = from->sent[m];

	from->sents--;
	memmove(&from->sent[m], &from->sent[m + 1],
		(size_t)(from->sents - m) * sizeof(from->sent[0]));
	return was;
}

struct duo_sent *duo_record(struct duo_side *s, uint32_t stream, size_t n)
{
	struct duo_sent *m = &s->sent[s->sents++];

	*m = (struct duo_sent){.seed = ++duo.seed, .length = n, .stream = stream};
	return m;
}

uint32_t duo_imm(const struct duo_sent *m)
{
	return m->burst ? 0 : message_imm(m->seed);
}

uint64_t duo_unread(const struct duo_side *s)
{
	uint64_t n = 0;

	for (int i = 0; i < s->sents; i++)
		n += 64 + s->sent[i].length;
	return n;
}

bool duo_lending(void)
{
	return duo.sides[0].loan || duo.sides[1].loan;
}

size_t duo_length(void)
{
	static const size_t edges[] = {0, 1, 8, 8, 8, 64, 128, 129, 2048};

	switch (duo_below(8)) {
	case 0: return duo_below(duo.packet + 1);
	case 1: return duo.packet - 1 + duo_below(3);
	case 2: return duo_below(4 * duo.packet);
	case 3: return duo.eager - 1 + duo_below(3);
	case 4: return duo_below(3 * duo.eager < 100000 ? 3 * duo.eager : 100000);
	default: return edges[duo_below(sizeof(edges) / sizeof(edges[0]))];
	}
}
