/* SPDX-License-Identifier: BSD-3-Clause */
/* Several links as one: means of latency by protocol and of utilization, requests by fabric. */
#include "apps/slmpm_stat/stat.h"

#include <string.h>

/* The place of a fabric's name; the last one is for all that find none. */
static int fabric_place(struct aggregate *m, const char *name)
{
	const int most = (int)(sizeof(m->fabric) / sizeof(m->fabric[0]));
	int i = 0;

	while (i < m->fabrics && strcmp(m->fabric[i].name, name) != 0)
		i++;
	if (i == most)
		return most - 1;
	if (i == m->fabrics)
		snprintf(m->fabric[m->fabrics++].name, sizeof(m->fabric[0].name), "%s", name);
	return i;
}

/* Each cell by its samples. */
static void add_timing(struct mean *mean, const struct slmpm_timing *t)
{
	double samples = (double)mean->samples, more = (double)t->samples;

	if (!t->samples || !t->latency_ns)
		return;
	mean->latency_ns = (mean->latency_ns * samples + t->latency_ns * more) / (samples + more);
	mean->samples += t->samples;
}

/* Of several links of a peer, the one that is in use. */
static const char *fabric_in_use(const struct slmpm_monitor *l)
{
	for (uint32_t i = 0; i < l->path_count && i < SLMPM_MONITOR_PATHS; i++)
		if (l->paths[i].used)
			return l->paths[i].link;
	return l->link;
}

static void add_link(struct aggregate *m, const struct slmpm_monitor *l)
{
	int f = fabric_place(m, fabric_in_use(l));

	m->links++;
	m->queue_depth += l->queue_depth;
	m->out_permille +=
		(word_permille(l->out_unread, l->out_segments) - m->out_permille) / m->links;
	m->in_permille += (word_permille(l->in_unread, l->in_segments) - m->in_permille) / m->links;
	for (int p = 0; p < SLMPM_PROTOCOLS; p++) {
		m->fabric[f].requests += l->requests[p];
		m->fabric[f].bytes += l->request_bytes[p];
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			for (int w = 0; w < SLMPM_WARMTH; w++)
				add_timing(&m->protocol[p], &l->timing[p][s][w]);
	}
}

void means_of(const struct gathered *g, struct aggregate *m)
{
	int echoes = 0;

	memset(m, 0, sizeof(*m));
	m->processes = g->processes;
	for (size_t i = 0; i < g->count; i++) {
		const struct slmpm_monitor *l = &g->links[i].m;

		add_link(m, l);
		if (l->echo_ns)
			m->echo_ns += (l->echo_ns - m->echo_ns) / ++echoes;
	}
}
