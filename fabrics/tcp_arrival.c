/* SPDX-License-Identifier: BSD-3-Clause */
/* What has been received is handed out: whole packets, and long ones without data, until they have a place. */
#include <errno.h>

#include "fabrics/tcp_inlet.h"

static void tcp_arrival_describe(const struct tcp_inlet *in, size_t at, uint64_t total,
				 struct fabric_arrival *a)
{
	const unsigned char *from = in->ring + at;
	uint64_t word = tcp_word_at(from);

	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		a->head[i] = tcp_word_at(from + RING_WORD + 8 * i);
	a->length = tcp_length_in(word);
	a->data = from + tcp_lead(a->length);
	a->span = tcp_span(a->length, in->reader.shift);
	a->token = total + 1;
	a->kind = tcp_kind_in(word);
}

static void hand_out_one(struct tcp_inlet *in, struct fabric_arrival *a)
{
	tcp_arrival_describe(in, in->read_at, in->reader.read, a);
	if (in->landing.waits) { /* there is no other before it */
		if (in->landing.place)
			a->data = in->landing.place;
		in->landing.waits = in->landing.said = false;
		in->landing.place = NULL;
	}
	in->reader.read += a->span;
	tcp_inlet_advance(in, &in->read_at, (size_t)a->span << in->reader.shift);
}

/* A long one whose header is there: the core says where the rest belongs. */
static void announce(struct tcp_inlet *in, struct fabric_arrival *a)
{
	tcp_arrival_describe(in, in->scan_at, in->total, a);
	a->data = NULL;
	in->landing.waits = true;
	in->landing.said = false;
	in->landing.place = NULL;
	in->landing.length = in->length;
	in->landing.total = in->total;
	in->landing.at = in->scan_at;
}

int tcp_hand_out(struct tcp_link *l, struct fabric_arrival *arrivals, int n)
{
	struct tcp_inlet *in = &l->in;
	int got = 0;

	while (got < n && in->reader.read != in->total)
		hand_out_one(in, &arrivals[got++]);
	if (got < n && tcp_must_land(l) && !in->landing.waits)
		announce(in, &arrivals[got++]);
	return got;
}

int tcp_land(struct tcp_link *l, void *place)
{
	struct tcp_inlet *in = &l->in;
	size_t lead = tcp_lead(in->landing.length);
	unsigned char *ring = in->ring + in->landing.at + lead;
	unsigned char *from = in->landing.place ? in->landing.place : ring,
		      *to = place ? place : ring;
	bool whole = in->landing.total != in->total; /* by now, and not handed out again yet */
	size_t there = in->tail - lead, n = in->landing.length;

	if (!in->landing.waits)
		return -EINVAL;
	if (from != to)
		memcpy(to, from, whole || there > n ? n : there);
	in->landing.place = place;
	in->landing.said = true;
	return 1;
}
