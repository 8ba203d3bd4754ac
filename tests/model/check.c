/* SPDX-License-Identifier: BSD-3-Clause */
/* The model checker: its memory, every scenario with the orders as they are, the mutation table. */
/* timeout: 600 */
/* native-only */
/* has-time */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/coroutine.h"
#include "tests/model/litmus.h"
#include "tests/model/mutations.h"
#include "tests/model/report.h"
#include "tests/model/sides.h"

#define JOBS_MAX    256
#define WORKERS_MAX 8

/* Scenarios first, then mutations; shared by the workers. Texts are the program's own. */
static struct shared {
	_Atomic unsigned next;
	struct outcome outcomes[JOBS_MAX];
	double seconds[JOBS_MAX];
	bool done[JOBS_MAX];
} * shared;

static void weaken(enum model_site site, enum model_weakening how)
{
	model_weak_site = site;
	model_weak_how = how;
}

static void run_job(unsigned job)
{
	double began = report_now();
	struct search search;

	if (job < scenario_count) {
		weaken(SITE_none, WEAK_NONE);
		search = scenario_search(&scenarios[job]);
	} else {
		const struct mutation *m = &mutations[job - scenario_count];

		weaken(m->site, m->how);
		search = scenario_search(scenario_named(m->scenario));
	}
	shared->outcomes[job] = explore(&search);
	shared->seconds[job] = report_now() - began;
	shared->done[job] = true;
}

static bool run_all(unsigned jobs)
{
	long workers = sysconf(_SC_NPROCESSORS_ONLN);
	bool sound = true;
	int status;

	if (workers > WORKERS_MAX)
		workers = WORKERS_MAX;
	for (long i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (pid == 0) {
			unsigned job;

			while ((job = atomic_fetch_add(&shared->next, 1)) < jobs)
				run_job(job);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		sound &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return sound;
}

static unsigned report_scenarios(void)
{
	struct outcome sum = {0};
	unsigned faults = 0;

	report_head("scenario");
	for (unsigned i = 0; i < scenario_count; i++) {
		const struct outcome *o = &shared->outcomes[i];

		report_row(scenarios[i].name, o, shared->seconds[i]);
		sum.states += o->states;
		sum.transitions += o->transitions;
		faults += o->fault || !shared->done[i];
	}
	printf("%-32s %9llu %11llu\n", "together", (unsigned long long)sum.states,
	       (unsigned long long)sum.transitions);
	for (unsigned i = 0; i < scenario_count; i++) {
		struct search search = scenario_search(&scenarios[i]);

		if (!shared->outcomes[i].fault)
			continue;
		printf("\n%s, the shortest way:\n", scenarios[i].name);
		report_fault(search, shared->outcomes[i]);
	}
	return faults;
}

static unsigned report_mutations(void)
{
	unsigned missed = 0;

	printf("\n%-16s %-9s %-32s %s\n", "site", "weakened", "scenario", "fault found");
	for (unsigned i = 0; i < mutation_count; i++) {
		const struct mutation *m = &mutations[i];
		const struct outcome *o = &shared->outcomes[scenario_count + i];

		printf("%-16s %-9s %-32s %s\n", model_site_name(m->site), weakening_name(m->how),
		       m->scenario, o->fault ? o->fault : "NOT NOTICED");
		missed += !o->fault || !strncmp(o->fault, "the checker:", 12);
	}
	return missed;
}

static int run_everything(void)
{
	unsigned jobs = scenario_count + mutation_count;
	enum model_site forgotten = site_without_mutation();
	double began = report_now();
	unsigned faults, missed, wrong = litmus_failures();

	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || jobs > JOBS_MAX || !run_all(jobs)) {
		fprintf(stderr, "model: a worker failed\n");
		return 1;
	}
	faults = report_scenarios();
	missed = report_mutations();
	if (forgotten)
		printf("%s is never weakened\n", model_site_name(forgotten));
	printf("\n%u scenarios, %u with a fault; %u weakenings, %u not noticed; %.0f s\n",
	       scenario_count, faults, mutation_count, missed, report_now() - began);
	return wrong || faults || missed || forgotten;
}

/* check SCENARIO [SITE WEAKENING], or SLMPM_TEST_SCENARIO: one search, and the shortest way to what
 * it finds. */
static int run_one(int argc, char **argv)
{
	const struct scenario *scenario = scenario_named(argv[1]);
	struct search search;
	struct outcome o;

	for (int site = SITE_none + 1; argc == 4 && site < SITE_COUNT; site++) {
		for (int how = WEAK_RELAXED; how <= WEAK_OMITTED; how++) {
			if (!strcmp(argv[2], model_site_name((enum model_site)site)) &&
			    !strcmp(argv[3], weakening_name((enum model_weakening)how)))
				weaken((enum model_site)site, (enum model_weakening)how);
		}
	}
	if (!scenario || (argc > 2 && !model_weak_site)) {
		fprintf(stderr, "usage: check [SCENARIO [SITE relaxed|acq_rel|'left out']]\n");
		return 2;
	}
	search = scenario_search(scenario);
	o = explore(&search);
	printf("%llu states, %llu transitions, %.2g executions: %s\n", (unsigned long long)o.states,
	       (unsigned long long)o.transitions, o.executions, o.fault ? o.fault : "ok");
	if (o.fault)
		report_fault(search, o);
	return o.fault != NULL;
}

int main(int argc, char **argv)
{
	if (!COROUTINE_AVAILABLE) {
		printf("no switch between stacks written for this processor\n");
		return 77;
	}
	if (getenv("SLMPM_TEST_SCENARIO"))
		return run_one(2, (char *[]){argv[0], getenv("SLMPM_TEST_SCENARIO"), NULL});
	return argc > 1 ? run_one(argc, argv) : run_everything();
}
