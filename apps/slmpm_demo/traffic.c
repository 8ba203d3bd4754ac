/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a table of traffic, and strips of what went by each of them over time (traffic.h). */
#include "apps/slmpm_demo/traffic.h"

#include <stdio.h>
#include <string.h>

#include "apps/slmpm_demo/demo.h"

#define FIRST_SLICE 1000000 /* ns */

void traffic_begin(struct traffic *t)
{
	memset(t, 0, sizeof(*t));
	t->began = now_ns();
	t->slice = FIRST_SLICE;
}

/* With no row left for it the last one has it: there are fewer than that many kinds. */
static struct traffic_row *row_of(struct traffic *t, const char *fabric, int protocol)
{
	struct traffic_row *row;

	for (unsigned i = 0; i < t->count; i++)
		if (t->rows[i].protocol == protocol && !strcmp(t->rows[i].fabric, fabric))
			return &t->rows[i];
	if (t->count == TRAFFIC_ROWS)
		return &t->rows[TRAFFIC_ROWS - 1];
	row = &t->rows[t->count++];
	snprintf(row->fabric, sizeof(row->fabric), "%s", fabric);
	row->protocol = protocol;
	return row;
}

static void double_slices(struct traffic *t)
{
	for (unsigned r = 0; r < t->count; r++) {
		uint64_t *s = t->rows[r].slices;

		for (unsigned i = 0; i < TRAFFIC_SLICES / 2; i++)
			s[i] = s[2 * i] + s[2 * i + 1];
		memset(s + TRAFFIC_SLICES / 2, 0, TRAFFIC_SLICES / 2 * sizeof(*s));
	}
	t->slice *= 2;
}

static unsigned slice_now(struct traffic *t)
{
	uint64_t passed = now_ns() - t->began;

	while (passed / t->slice >= TRAFFIC_SLICES)
		double_slices(t);
	return (unsigned)(passed / t->slice);
}

void traffic_add(struct traffic *t, const char *fabric, int protocol, int reason, uint64_t bytes)
{
	struct traffic_row *row = row_of(t, fabric, protocol);

	row->count++;
	row->bytes += bytes;
	row->reasons[reason >= 0 && reason < SLMPM_REASONS ? reason : 0]++;
	row->slices[slice_now(t)] += bytes;
	t->bytes += bytes;
}

const char *traffic_protocol(int protocol)
{
	return protocol == TRAFFIC_LOAN ? "loan" : slmpm_protocol_name(protocol);
}

uint64_t traffic_count(const struct traffic *t, int protocol)
{
	uint64_t sum = 0;

	for (unsigned r = 0; r < t->count; r++)
		sum += t->rows[r].protocol == protocol ? t->rows[r].count : 0;
	return sum;
}

uint64_t traffic_reason(const struct traffic *t, int reason)
{
	uint64_t sum = 0;

	for (unsigned r = 0; r < t->count; r++)
		sum += t->rows[r].reasons[reason];
	return sum;
}

const char *traffic_now(const struct traffic *t, char *text, size_t size)
{
	static uint64_t before[TRAFFIC_ROWS], all;
	uint64_t since = t->bytes - all;
	size_t at = 0;

	*text = 0;
	for (unsigned r = 0; r < t->count && at < size; r++) {
		const struct traffic_row *row = &t->rows[r];
		uint64_t more = row->bytes - before[r];

		if (more)
			at += (size_t)snprintf(text + at, size - at, "%s%s %s %.0f %%",
					       at ? ", " : "", row->fabric,
					       traffic_protocol(row->protocol),
					       100 * (double)more / (double)since);
		before[r] = row->bytes;
	}
	all = t->bytes;
	return text;
}

const char *traffic_strip(const struct traffic *t, unsigned row, char text[TRAFFIC_SLICES + 1])
{
	static const char shades[] = ".:-=+*#%@";
	uint64_t all, own;

	for (unsigned i = 0; i < TRAFFIC_SLICES; i++) {
		all = 0;
		for (unsigned r = 0; r < t->count; r++)
			all += t->rows[r].slices[i];
		own = t->rows[row].slices[i];
		text[i] = own ? shades[own * (sizeof(shades) - 2) / all] : ' ';
	}
	text[TRAFFIC_SLICES] = 0;
	return text;
}
