/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of slmpm_perftest: a fresh pair of processes for each sample. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "tests/bench/child.h"
#include "tests/bench/work.h"

enum { LINE = 1024 };

bool answer_of(const char *command, const char *const keys[], double *values, int count)
{
	char line[2048], answer[2048] = "";
	FILE *from = popen(command, "r");

	if (!from)
		return false;
	while (fgets(line, sizeof line, from))
		if (line[0] == '{')
			memcpy(answer, line, sizeof answer);
		else
			fputs(line, stderr);
	pclose(from);
	for (int i = 0; i < count; i++)
		if ((values[i] = answer_number(answer, keys[i])) < 0)
			return false;
	return true;
}

static bool perftest(const char *path, const char *settings, const char *options,
		     const char *const keys[], double *values, int count)
{
	char line[LINE];

	snprintf(line, sizeof line, "%s timeout 60 '%s' -c %u,%u %s --samples 1 --json", settings,
		 path, cpus[0], cpus[1], options);
	return answer_of(line, keys, values, count);
}

static const char *const both[] = {"lat_us", "bare_us"};

bool perftest_pair(const char *test, const char *options, const char *settings, struct figures *f)
{
	char text[LINE / 4];
	double v[2];

	snprintf(text, sizeof text, "-t %s %s", test, options);
	if (!perftest(perftest_path, settings, text, both, v, 2))
		return false;
	*f = (struct figures){v[0], v[1]};
	return true;
}

bool perftest_asleep(const char *engine, struct figures *f)
{
	char line[LINE];
	double v[2];

	snprintf(line, sizeof line,
		 "export SLMPM_WAIT=block; at=shm:work-hop-$$; "
		 "SLMPM_ENGINE=%s timeout 60 '%s' --listen $at >/dev/null 2>&1 & "
		 "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; "
		 "SLMPM_ENGINE=none timeout 60 '%s' --connect $at -c %u,%u -t wq_hop -n 1280 "
		 "--samples 1 --json 2>/dev/null && break; done; wait",
		 engine, perftest_path, perftest_path, cpus[0], cpus[1]);
	if (!answer_of(line, both, v, 2))
		return false;
	*f = (struct figures){v[0], v[1]};
	return true;
}

bool perftest_pipe(uint64_t size, uint64_t count, struct figures *rates)
{
	static const char *const keys[] = {"bytes_per_s", "bare_us"};
	char text[LINE / 4];
	double v[2];

	snprintf(text, sizeof text, "-t wq_pipe -s %d -n %d", (int)size, (int)count);
	if (!perftest(perftest_path, "", text, keys, v, 2))
		return false;
	*rates = (struct figures){v[0], (double)size / v[1] * 1e6};
	return true;
}

bool perftest_offload(double *kept, struct figures *f)
{
	static const char *const keys[] = {"kept", "lat_us", "bare_us"};
	double v[3];

	if (!perftest(perftest_path, "SLMPM_ENGINE=thread", "-t offload -n 12000", keys, v, 3))
		return false;
	*kept = v[0];
	*f = (struct figures){v[1], v[2]};
	return true;
}

bool perftest_latency(const char *path, const char *test, double *us)
{
	static const char *const keys[] = {"lat_us"};
	char text[LINE / 4];

	snprintf(text, sizeof text, "-t %s -s 8 -n 50000", test);
	return perftest(path, "", text, keys, us, 1);
}
