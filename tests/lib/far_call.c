/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric's structures in parcels, member by member. */
#include "tests/lib/far_call.h"

#include <string.h>

#include "tests/lib/test.h"

void far_put_config(struct parcel *p, const struct fabric_config *c)
{
	parcel_put(p, c->segments);
	parcel_put(p, c->segment_size);
	parcel_put(p, c->threshold_permille);
	parcel_put(p, c->batch);
	parcel_put(p, c->membarrier);
	parcel_put(p, c->start);
}

void far_get_config(struct parcel *p, struct fabric_config *c)
{
	c->segments = (uint32_t)parcel_get(p);
	c->segment_size = (uint32_t)parcel_get(p);
	c->threshold_permille = (uint32_t)parcel_get(p);
	c->batch = (uint32_t)parcel_get(p);
	c->membarrier = parcel_get(p);
	c->start = parcel_get(p);
}

void far_put_blob(struct parcel *p, const struct fabric_blob *b)
{
	parcel_put(p, b->length);
	parcel_put_bytes(p, b->bytes, sizeof(b->bytes));
	parcel_put(p, b->fd >= 0);
	if (b->fd >= 0)
		parcel_put_fd(p, b->fd);
}

void far_get_blob(struct parcel *p, struct fabric_blob *b)
{
	const void *bytes;
	size_t n;

	*b = (struct fabric_blob){.length = (uint32_t)parcel_get(p), .fd = -1};
	bytes = parcel_get_bytes(p, &n);
	CHECK(n == sizeof(b->bytes), "a blob of %zu bytes", n);
	memcpy(b->bytes, bytes, n);
	if (parcel_get(p))
		b->fd = parcel_get_fd(p);
}

/* They are 64 bits, all of them. */
#define COUNTS (sizeof(struct fabric_counts) / sizeof(uint64_t))

void far_put_state(struct parcel *p, const struct fabric_link *l)
{
	uint64_t counts[COUNTS];

	parcel_put(p, l->payload_max);
	parcel_put(p, l->payload_max_in);
	parcel_put_text(p, l->violation);
	parcel_put_text(p, l->lost);
	memcpy(counts, &l->counts, sizeof(counts));
	for (size_t i = 0; i < COUNTS; i++)
		parcel_put(p, counts[i]);
}

void far_get_state(struct parcel *p, struct fabric_link *l, char texts[2][FAR_TEXT])
{
	uint64_t counts[COUNTS];

	l->payload_max = (uint32_t)parcel_get(p);
	l->payload_max_in = (uint32_t)parcel_get(p);
	for (int i = 0; i < 2; i++)
		parcel_get_text(p, texts[i], FAR_TEXT);
	l->violation = texts[0][0] ? texts[0] : NULL;
	l->lost = texts[1][0] ? texts[1] : NULL;
	for (size_t i = 0; i < COUNTS; i++)
		counts[i] = parcel_get(p);
	memcpy(&l->counts, counts, sizeof(counts));
}

void far_put_arrival(struct parcel *p, const struct fabric_arrival *a)
{
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		parcel_put(p, a->head[i]);
	parcel_put(p, a->length);
	parcel_put(p, a->span);
	parcel_put(p, a->token);
	parcel_put(p, a->kind);
}

void far_get_arrival(struct parcel *p, struct fabric_arrival *a)
{
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		a->head[i] = parcel_get(p);
	a->data = NULL;
	a->length = (uint32_t)parcel_get(p);
	a->span = (uint32_t)parcel_get(p);
	a->token = parcel_get(p);
	a->kind = (uint8_t)parcel_get(p);
}
