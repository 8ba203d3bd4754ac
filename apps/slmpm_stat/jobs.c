/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobs that processes are of, each once: its means as the one shows them that knows most. */
#include "apps/slmpm_stat/stat.h"

#include <stdlib.h>
#include <string.h>

static struct job *find(struct gathered *g, uint64_t number)
{
	struct job *jobs;

	for (size_t i = 0; i < g->job_count; i++)
		if (g->jobs[i].m.job == number)
			return &g->jobs[i];
	jobs = realloc(g->jobs, (g->job_count + 1) * sizeof(*jobs));
	if (!jobs)
		return NULL;
	g->jobs = jobs;
	jobs[g->job_count] = (struct job){.processes = 0};
	return &jobs[g->job_count++];
}

/* Each type of fabric once, whatever was told: a sample twice, and Prometheus takes none of
 * them. */
static void drop_doubles(struct slmpm_aggregate_fabric *f)
{
	for (int i = 1; i < SLMPM_AGGREGATE_FABRICS; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(f[i].name, f[k].name))
				f[i].name[0] = 0;
}

void jobs_add(struct gathered *g, struct slmpm_monitors *monitors)
{
	struct slmpm_aggregate m;
	struct job *job;

	/* One that has been started just now does not know whose it is. */
	if (slmpm_monitors_aggregate(monitors, &m, sizeof(m)) != 1 || !m.job)
		return;
	job = find(g, m.job);
	if (!job)
		return;
	if (!job->processes++ || m.instances > job->m.instances)
		job->m = m;
	for (int f = 0; f < SLMPM_AGGREGATE_FABRICS; f++)
		word_tame(job->m.fabrics[f].name);
	drop_doubles(job->m.fabrics);
}

unsigned job_permille(uint32_t value)
{
	return value < 1000 ? value : 1000;
}
