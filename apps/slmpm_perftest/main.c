/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_perftest: what the command line asks for, in order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/slmpm_perftest/command.h"

static int measure_sizes(struct command *c, struct pair *pair, const struct test *test)
{
	static struct result result;
	bool fixed = test_has_one_size(test);
	uint64_t size = c->sized && !fixed ? c->size : test->size;
	uint64_t max = c->sized && !fixed ? c->max : test->size;

	for (;; size = size ? size * c->times : 1) {
		c->job.test = test;
		c->job.size = size;
		if (measure(pair, &c->setup, &c->job, &result) < 0)
			return 1;
		report(&c->setup, &result);
		if (size >= max || size > max / c->times)
			return 0;
	}
}

static bool is_by_request(const char *mode)
{
	return strcmp(mode, "ring") == 0 || strcmp(mode, "am") == 0 || strcmp(mode, "tag") == 0;
}

/* What a mode says of regions, and of how they are to be reached. */
static void choose_path(const struct command *c, struct pair *pair)
{
	const char *mode = c->setup.mode ? c->setup.mode : "auto";

	pair->foreign = strcmp(mode, "attach") == 0;
	if (pair->foreign || strcmp(mode, "map") == 0 || is_by_request(mode))
		pair->path = mode;
}

static int begin(struct command *c, struct pair *pair)
{
	unsigned wait = c->job.wait;
	int failed = c->connect ? pair_connect(pair, c->connect, wait, c->setup.cpu) :
				  pair_spawn(pair, wait, c->setup.cpu, c->to ? 1 : 0);

	if (!failed && c->to)
		failed = pair_to(pair, c->to) < 0;
	c->job.link = pair->by;
	pair->setup = &c->setup;
	return failed;
}

static int measure_all(struct command *c)
{
	struct pair pair = {.side = 0};
	struct trace *trace = c->modes ? trace_open(c->modes) : NULL;
	char names[NAMES_MAX], *rest, *name;
	int failed = 0;

	snprintf(names, sizeof(names), "%s", c->names);
	for (name = strtok_r(names, ",", &rest); name && !failed;
	     name = strtok_r(NULL, ",", &rest)) {
		const struct test *test = test_find(name);
		bool mailbox = test->kind == KIND_MAILBOX;

		test = c->job.grouped ? test_in_group(test) : test;
		if (!mailbox && !pair.ctx.id)
			failed = begin(c, &pair);
		choose_path(c, &pair);
		pair.trace = trace;
		if (!failed && name == names)
			report_heading(&c->setup);
		if (!failed)
			failed = measure_sizes(c, mailbox ? NULL : &pair, test);
	}
	if (!failed && trace && trace_write(trace)) {
		fprintf(stderr, "slmpm_perftest: cannot write %s\n", c->modes);
		failed = 1;
	}
	if (!failed && c->decisions)
		failed = decisions_print(&pair, c->setup.json);
	free(trace);
	pair_end(&pair);
	mailbox_end();
	return failed ? 1 : 0;
}

/*
 * The environment's wait mode wins over a context's own. So it is the way to say it, but under
 * --serve, where each line may choose.
 */
static void choose_wait(struct command *c)
{
	const char *said = getenv("SLMPM_WAIT");

	if (!c->serve && c->job.wait != WAIT_DEFAULT)
		setenv("SLMPM_WAIT", wait_name(c->job.wait), 1);
	if (!c->serve)
		return;
	if (said && c->job.wait == WAIT_DEFAULT)
		parse_wait(said, &c->job.wait);
	unsetenv("SLMPM_WAIT");
}

/* The library reads its settings once, at its first use; those of the environment win. */
static void choose_settings(const struct command *c)
{
	const char *mode = c->setup.mode ? c->setup.mode : "auto";

	if (is_by_request(mode))
		setenv("SLMPM_RMA", mode, 1);
	if (strstr(c->names, "overlap") || strstr(c->names, "offload"))
		setenv("SLMPM_ENGINE", "thread", 0);
	if (c->to && !c->connect && !getenv("SLMPM_FABRIC"))
		setenv("SLMPM_LINKS", "shm,tcp", 0); /* else there is nothing to choose */
	if (c->to)
		setenv("SLMPM_LINKS_AFTER", "0", 0);
}

/* RC, or 1 where what was measured could not be written. */
static int written(int rc)
{
	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	fprintf(stderr, "slmpm_perftest: the results could not be written\n");
	return 1;
}

/* Each process writes one; what the first cannot, none can. 0, or it is said that it cannot; of a
 * name that its number becomes part of the library says that. */
static int check_trace(const char *path)
{
	FILE *f;

	if (!path || strstr(path, "%p"))
		return 0;
	f = fopen(path, "ae");
	if (f)
		return fclose(f);
	fprintf(stderr, "slmpm_perftest: --trace %s: %s\n", path, strerror(errno));
	return -1;
}

int main(int argc, char **argv)
{
	struct command c;

	if (command_read(&c, argc, argv))
		return 2;
	if (c.dump)
		return written(dump(c.dump));
	if (!c.setup.samples)
		c.setup.samples = c.serve ? 1 : 5;
	c.setup.spread = !c.serve;
	choose_wait(&c);
	choose_settings(&c);
	if (command_check_fabric(&c))
		return 2;
	if (check_trace(c.trace))
		return 1;
	if (c.crew)
		return follow_group(c.job.wait, c.setup.cpu[1]);
	choose_cpus(&c.setup);
	if (c.mailbox)
		return mailbox_follow(c.mailbox, c.setup.cpu[1]);
	if (c.sink)
		return pipe_sink();
	if (c.far)
		return follow_parent(c.job.wait);
	if (c.listen)
		return follow_listen(c.listen, c.job.wait, c.setup.cpu[1], c.serve);
	if (c.serve)
		return serve(&c.setup, c.job.wait);
	return written(measure_all(&c));
}
