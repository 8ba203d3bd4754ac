/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of each process: a line a group, and who is waited for, and how far each member is. */
#include "apps/slmpm_stat/stat.h"

#include <inttypes.h>
#include <slmpm_plan.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GROUPS_MAX 1024 /* of a process */

static struct group *groups_add(struct gathered *g)
{
	struct group *more = realloc(g->groups, (g->group_count + 1) * sizeof(*more));

	if (!more)
		return NULL;
	g->groups = more;
	return &more[g->group_count++];
}

void gather_groups(struct gathered *g, int pid, const char *program)
{
	struct group next = {.pid = pid}, *to;

	snprintf(next.program, sizeof(next.program), "%s", program);
	for (int i = 0; i < GROUPS_MAX; i++) {
		int rc = slmpm_groups_read(pid, i, &next.g, sizeof(next.g));

		if (rc == -SLMPM_ENOENT)
			break;
		next.place = i;
		if (rc == 0 && (to = groups_add(g)))
			*to = next;
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *group_kind(uint32_t kind)
{
	const char *name = slmpm_plan_kind(kind);

	if (kind == SLMPM_SHOWN_MEET)
		return "meet";
	if (kind == SLMPM_SHOWN_SHRINK)
		return "shrink";
	return name ? name : "?";
}

double group_seconds(const struct slmpm_group_shown *g, uint64_t since_ns)
{
	double s = (double)g->taken_ns / 1e9 - (double)since_ns / 1e9;

	return s > 0 && s < 1e9 ? s : 0;
}

double group_age(const struct slmpm_group_shown *g)
{
	struct timespec t;
	double s;

	clock_gettime(CLOCK_MONOTONIC, &t);
	s = (double)t.tv_sec + (double)t.tv_nsec / 1e9 - (double)g->taken_ns / 1e9;
	return s > 0 && s < 1e9 ? s : 0;
}

const char *group_member_state(const struct slmpm_shown_member *m)
{
	char path[64], line[256], *after = NULL;
	FILE *f;

	if (m->flags & SLMPM_SHOWN_DEAD)
		return "ended";
	if (m->flags & SLMPM_SHOWN_LEFT)
		return "left";
	if (m->pid <= 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", m->pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		after = strrchr(line, ')');
	if (f)
		fclose(f);
	if (!after || after[1] != ' ')
		return NULL;
	return after[2] == 'T' ? "stopped" : after[2] == 't' ? "traced" : NULL;
}

/* ---- the plain form -------------------------------------------------------------------------- */

static bool is_own(const struct group *group, const struct slmpm_shown_member *m)
{
	return (int)m->rank == group->g.rank;
}

/* Operations need connections with some members alone. */
static void print_step_apart(FILE *to, const struct group *group,
			     const struct slmpm_shown_member *m)
{
	if (m->flags & SLMPM_SHOWN_WAITS)
		fprintf(to, "in operation %" PRIu64 ", waits for rank %" PRIu64, m->present,
			m->length);
	else if (m->step || m->flags & SLMPM_SHOWN_CONNECTED)
		fprintf(to, "%" PRIu64 " messages have come", m->step);
	else if (is_own(group, m))
		fprintf(to, "this process");
	else
		fprintf(to, "no connection has been needed");
}

static void print_step(FILE *to, const struct group *group, const struct slmpm_shown_member *m)
{
	if (group->g.apart) {
		print_step_apart(to, group, m);
		return;
	}
	fprintf(to, "at operation %" PRIu64, m->step);
	if (m->kind)
		fprintf(to, ", %s", group_kind(m->kind));
	if (m->length)
		fprintf(to, ", %" PRIu64 " of %" PRIu64 " bytes", m->present, m->length);
}

static void print_wait(FILE *to, const struct group *group, const struct slmpm_shown_member *m)
{
	const char *state = group_member_state(m);

	fprintf(to, "        waits for rank %" PRIu32, m->rank);
	if (m->pid > 0)
		fprintf(to, ", process %d", m->pid);
	if (m->host[0])
		fprintf(to, ", %s", m->host);
	if (state)
		fprintf(to, " (%s)", state);
	fprintf(to, ", for %.3f s: ", group_seconds(&group->g, m->since_ns));
	print_step(to, group, m);
	putc('\n', to);
}

static bool is_alike(const struct group *group, const struct slmpm_shown_member *a,
		     const struct slmpm_shown_member *b)
{
	if (group->g.apart && is_own(group, a) != is_own(group, b))
		return false;
	return a->step == b->step && a->kind == b->kind && a->present == b->present &&
	       a->length == b->length && a->flags == b->flags && a->rank + 1 == b->rank;
}

/* Those that are not waited for; neighbours at one step in one line. */
static void print_steps(FILE *to, const struct group *group)
{
	const struct slmpm_group_shown *g = &group->g;

	for (uint32_t i = 0, n; i < g->member_count; i += n) {
		const struct slmpm_shown_member *m = &g->member[i];

		n = 1;
		if (m->since_ns)
			continue;
		while (i + n < g->member_count && !m[n].since_ns &&
		       is_alike(group, &m[n - 1], &m[n]))
			n++;
		fprintf(to, "        rank%s %" PRIu32, n > 1 ? "s" : "", m->rank);
		if (n > 1)
			fprintf(to, " to %" PRIu32, m->rank + n - 1);
		fprintf(to, ": ");
		print_step(to, group, m);
		fprintf(to, "%s\n",
			m->flags & SLMPM_SHOWN_DEAD ? " (ended)" :
			m->flags & SLMPM_SHOWN_LEFT ? " (left)" :
						      "");
	}
	if (g->member_count < g->members)
		fprintf(to, "        and %" PRIu32 " others\n", g->members - g->member_count);
}

/* BY: its algorithm, or NULL. */
static void print_operation(FILE *to, const struct slmpm_group_shown *g,
			    const struct slmpm_shown_operation *op, const char *by)
{
	fprintf(to, "        under way: %s %s%" PRIu64 "%s%s, for %.3f s\n", group_kind(op->kind),
		op->tag ? "of tag " : "", op->tag ? op->tag : op->number, by ? " by " : "",
		by ? by : "", group_seconds(g, op->since_ns));
}

static void print_group(FILE *to, const struct group *group)
{
	const struct slmpm_group_shown *g = &group->g;
	const char *algorithm = slmpm_plan_algorithm(g->algorithm);
	char age[16];

	fprintf(to,
		"%7d %-15.15s %10" PRIu32 " %5" PRId32 " %7" PRIu32 " %9" PRIu64 " %9" PRIu64
		" %7" PRIu32 " %8s\n",
		group->pid, group->program, g->tag, g->rank, g->members, g->begun, g->done,
		g->waiting, word_time(age, group_age(g) * 1e9));
	if (g->status && g->culprit >= 0)
		fprintf(to, "        broken, by rank %" PRId32 ": %s\n", g->culprit,
			slmpm_strerror(g->status));
	else if (g->status)
		fprintf(to, "        broken: %s\n", slmpm_strerror(g->status));
	for (uint32_t i = 0; i < g->operation_count; i++)
		print_operation(to, g, &g->operation[i], i ? NULL : algorithm);
	for (uint32_t i = 0; i < g->member_count && g->member[i].since_ns; i++)
		print_wait(to, group, &g->member[i]);
	print_steps(to, group);
}

void groups_text(const struct gathered *g, FILE *to)
{
	if (g->group_count)
		fprintf(to, "%7s %-15s %10s %5s %7s %9s %9s %7s %8s\n", "PID", "PROGRAM", "GROUP",
			"RANK", "MEMBERS", "BEGUN", "DONE", "WAITING", "AGE");
	for (size_t i = 0; i < g->group_count; i++)
		print_group(to, &g->groups[i]);
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

enum group_figure { GROUP_BEGUN, GROUP_DONE, GROUP_WAITING, GROUP_SECONDS, GROUP_FIGURES };

static double figure_of(const struct slmpm_group_shown *g, enum group_figure figure)
{
	double longest = 0;

	switch (figure) {
	case GROUP_BEGUN: return (double)g->begun;
	case GROUP_DONE: return (double)g->done;
	case GROUP_WAITING: return g->waiting;
	default: break;
	}
	for (uint32_t i = 0; i < g->member_count && g->member[i].since_ns; i++)
		if (group_seconds(g, g->member[i].since_ns) > longest)
			longest = group_seconds(g, g->member[i].since_ns);
	return longest;
}

void groups_prometheus(const struct gathered *g)
{
	static const struct {
		const char *name, *type, *help;
	} figures[GROUP_FIGURES] = {
		[GROUP_BEGUN] = {"begun_operations_total", "counter", "Operations begun"},
		[GROUP_DONE] = {"done_operations_total", "counter", "Operations that have ended"},
		[GROUP_WAITING] = {"waiting_members", "gauge", "Members that are waited for"},
		[GROUP_SECONDS] = {"wait_seconds", "gauge",
				   "How long the one that has been waited for longest has"},
	};

	for (int k = 0; k < GROUP_FIGURES; k++) {
		printf("# HELP slmpm_group_%s %s.\n# TYPE slmpm_group_%s %s\n", figures[k].name,
		       figures[k].help, figures[k].name, figures[k].type);
		for (size_t i = 0; i < g->group_count; i++)
			printf("slmpm_group_%s{pid=\"%d\",group=\"%d\"} %.15g\n", figures[k].name,
			       g->groups[i].pid, g->groups[i].place,
			       figure_of(&g->groups[i].g, (enum group_figure)k));
	}
}
