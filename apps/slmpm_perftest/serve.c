/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --serve: a job a line on standard input, a JSON object a line in answer. The pairs stay alive,
 * one for each wait mode asked for, so that samples of ours and of others can take turns.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>

static struct pair pairs[WAIT_MODES];

static int serve_one(const struct setup *setup, unsigned wait, char *line)
{
	static struct result result;
	struct pair *pair = NULL;
	char why[256];
	struct job job;
	int rc;

	if (job_parse(&job, line, why, sizeof(why))) {
		for (char *c = why; *c; c++)
			if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20)
				*c = '\'';
		printf("{\"error\":\"%s; a line is TEST SIZE COUNT [touch] [each] [burst N] [idle US] "
		       "[step N] [warm N] [wait MODE]\"}\n",
		       why);
		fflush(stdout);
		return 0;
	}
	if (job.wait == WAIT_DEFAULT)
		job.wait = wait;
	if (job.test->kind != KIND_MAILBOX) {
		pair = &pairs[job.wait];
		if (!pair->ctx.id && pair_spawn(pair, job.wait, setup->cpu))
			return -1;
	}
	rc = measure(pair, setup, &job, &result);
	if (rc >= 0) {
		report(setup, &result);
		return 0;
	}
	printf("{\"error\":\"%s: %s; see standard error\"}\n", job.test->name, slmpm_strerror(rc));
	fflush(stdout);
	/* A refused job leaves the pair as it was. */
	return rc == -SLMPM_ELIMIT || rc == -SLMPM_ENOTSUP ? 0 : -1;
}

int serve(const struct setup *setup, unsigned wait)
{
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &room, stdin) > 0)
		if (line[strspn(line, " \t\r\n")])
			rc = serve_one(setup, wait, line);
	free(line);
	for (unsigned i = 0; i < WAIT_MODES; i++)
		pair_end(&pairs[i]);
	mailbox_end();
	return rc ? 1 : 0;
}
