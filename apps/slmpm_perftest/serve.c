/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --serve: a job a line on standard input, a JSON object a line in answer. The pairs stay alive,
 * one for each wait mode asked for, so that samples of ours and of others can take turns. No job
 * ends it: a pair that was lost over one is replaced for the next.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>

static struct pair pairs[WAIT_MODES];

static void answer_error(const char *what, const char *why)
{
	printf("{\"error\":\"");
	for (const char *c = what; *c; c++)
		putchar(*c == '"' || *c == '\\' || (unsigned char)*c < 0x20 ? '\'' : *c);
	printf("%s\"}\n", why);
	fflush(stdout);
}

/* The pair for that wait mode; NULL where none can be started. */
static struct pair *find_pair(const struct setup *setup, unsigned wait)
{
	struct pair *pair = &pairs[wait];

	if (!pair->ctx.id && pair_spawn(pair, wait, setup->cpu, 0)) {
		pair_drop(pair);
		return NULL;
	}
	pair->setup = setup;
	return pair;
}

/* 0, or -1 when a pair was lost. */
static int serve_one(const struct setup *setup, unsigned wait, char *line)
{
	static struct result result;
	struct pair *pair = NULL;
	char text[320];
	struct job job;
	int rc;

	if (job_parse(&job, line, text, sizeof(text)) || job_check(&job, text, sizeof(text))) {
		answer_error(
			text,
			"; a line is TEST SIZE COUNT [touch] [each] [burst N] [more] "
			"[idle US] [step N] [work US] [busy N] [link N] [track WAY] [shared] [members N] [warm N] [wait MODE]");
		return 0;
	}
	if (job.wait == WAIT_DEFAULT)
		job.wait = wait;
	if (job.test->kind != KIND_MAILBOX && !(pair = find_pair(setup, job.wait))) {
		answer_error(job.test->name, ": no pair can be started; see standard error");
		return -1;
	}
	rc = measure(pair, setup, &job, &result);
	if (rc >= 0) {
		report(setup, &result);
		return 0;
	}
	snprintf(text, sizeof(text), "%s: %s", job.test->name, slmpm_strerror(rc));
	answer_error(text, "; see standard error");
	if (rc == -SLMPM_ELIMIT || rc == -SLMPM_ENOTSUP || rc == -SLMPM_ENOMEM)
		return 0; /* refused before anything was said to the other side */
	if (pair)
		pair_drop(pair);
	else
		mailbox_end();
	return -1;
}

int serve(const struct setup *setup, unsigned wait)
{
	char *line = NULL;
	size_t room = 0;
	int lost = 0;

	while (getline(&line, &room, stdin) > 0)
		if (line[strspn(line, " \t\r\n")])
			lost |= serve_one(setup, wait, line);
	free(line);
	for (unsigned i = 0; i < WAIT_MODES; i++)
		pair_end(&pairs[i]);
	mailbox_end();
	return lost ? 1 : 0;
}
