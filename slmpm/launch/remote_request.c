/* SPDX-License-Identifier: BSD-3-Clause */
/* What a relay has to start: records KEY=VALUE, each with a 0 (doc/wire.md, A start elsewhere). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/base/error.h"
#include "slmpm/launch/launch.h"

extern char **environ;

static void remote_request_put(FILE *to, const char *key, const char *value)
{
	if (value)
		fprintf(to, "%s=%s%c", key, value, 0);
}

/* Of this machine, or of one start alone. */
static bool is_private(const char *entry)
{
	static const char *const names[] = {"PARENT",   "DEATH_PIPE", "JOB",    "SECRET",
					    "TOPOLOGY", "RUN_DIR",    "RUNNER", "ELEMENTS",
					    "EXPORT",   "CPUS"};

	if (strncmp(entry, "SLMPM_", 6) != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(entry + 6, names[i], n) && entry[6 + n] == '=')
			return true;
	}
	return false;
}

/* Is it one of SLMPM_EXPORT's? */
static bool is_exported(const char *entry)
{
	const char *at = config_get()->export;
	size_t length = strcspn(entry, "=");

	while (*at) {
		size_t n = strcspn(at, ",");

		if (n == length && !strncmp(at, entry, n))
			return true;
		at += n;
		at += *at == ',';
	}
	return false;
}

static void put_environment(FILE *to, const struct remote_request *r)
{
	char *const *given = r->options->envp;
	bool clean = r->options->flags & SLMPM_SPAWN_CLEAN_ENV;

	if (clean)
		remote_request_put(to, "clean", "1");
	for (char **at = r->place->env; at && *at; at++)
		remote_request_put(to, "env", *at);
	for (char **at = environ; !clean && at && *at; at++)
		if ((!strncmp(*at, "SLMPM_", 6) && !is_private(*at)) || is_exported(*at))
			remote_request_put(to, "env", *at);
	for (; given && *given; given++)
		if (!is_private(*given))
			remote_request_put(to, "env", *given);
	fprintf(to, "env=" PARENT_VARIABLE "=%s%c", r->url, 0);
	fprintf(to, "env=SLMPM_SECRET=%s%c", r->secret, 0);
	if (config_get()->insecure)
		remote_request_put(to, "env", "SLMPM_INSECURE=y");
}

/* A program that is found here is sent, unless the same is there; another is searched there. */
static int put_program(FILE *to, const struct remote_request *r)
{
	char path[PATH_MAX], file[PATH_MAX];
	int rc;

	remote_request_put(to, "name", r->prog);
	if (r->options->flags & SLMPM_SPAWN_THERE) {
		remote_request_put(to, "command", r->prog);
		return 0;
	}
	rc = launch_find(launch_own_program(r->prog, file), path);
	if (rc == 0)
		remote_request_put(to, "program", path);
	else if (!strchr(r->prog, '/'))
		remote_request_put(to, "command", r->prog);
	else
		return error_system(rc, r->prog);
	return 0;
}

static int put_folder(FILE *to, const struct remote_request *r)
{
	const char *cwd = r->options->cwd;
	char here[PATH_MAX];

	if (r->options->flags & SLMPM_SPAWN_CARRY_CWD) {
		if (!cwd || cwd[0] != '/')
			return error_set(SLMPM_EINVAL,
					 "slmpm_spawn: a cwd to carry is an absolute path");
		remote_request_put(to, "carry", cwd);
	} else if (cwd) {
		remote_request_put(to, "cwd", cwd);
	} else if (r->place->set[PLACE_CHDIR]) {
		remote_request_put(to, "cwd", r->place->set[PLACE_CHDIR]);
	} else if (getcwd(here, sizeof(here))) {
		remote_request_put(to, "here", here);
	}
	return 0;
}

int remote_request_make(const struct remote_request *r, char **text, size_t *length)
{
	FILE *to = open_memstream(text, length);
	int rc;

	if (!to)
		return error_set(SLMPM_ENOMEM, "for a start elsewhere");
	remote_request_put(to, "host", r->place->host);
	remote_request_put(to, "remote", r->place->set[PLACE_REMOTE]);
	remote_request_put(to, "agent", r->place->set[PLACE_AGENT]);
	remote_request_put(to, "ship", r->place->set[PLACE_SHIP]);
	remote_request_put(to, "wrapper", r->options->wrapper);
	for (char *const *at = r->argv; at && *at; at++)
		remote_request_put(to, "arg", *at);
	rc = put_program(to, r);
	rc = rc < 0 ? rc : put_folder(to, r);
	put_environment(to, r);
	if (fclose(to) != 0 && rc == 0)
		rc = error_set(SLMPM_ENOMEM, "for a start elsewhere");
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}
