/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of an accelerator: the client's (or the host's own), what DACS_START_ENV_LIST
 * adds, the host's SLMPM settings, and AE_CWD. A later entry replaces an earlier one.
 */
#include "slmpm/dacsbase/dacs_start.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CWD_MARK  "$AE_CWD"
#define ENTRY_MAX (128U << 10) /* bytes of one string that the kernel accepts */

struct env {
	char **list;
	size_t count, room;
};

void dacsi_env_free(char **env)
{
	for (char **at = env; at && *at; at++)
		free(*at);
	free(env);
}

bool dacsi_env_fits(char const *const *vector)
{
	for (; vector && *vector; vector++)
		if (strlen(*vector) >= ENTRY_MAX)
			return false;
	return true;
}

static const char *value_of(char *const *env, const char *name, size_t length)
{
	for (; env && *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

/* Whether a mark at TEXT is one, and not the beginning of a longer name. */
static bool is_mark(const char *text)
{
	unsigned char after;

	if (strncmp(text, CWD_MARK, sizeof(CWD_MARK) - 1) != 0)
		return false;
	after = (unsigned char)text[sizeof(CWD_MARK) - 1];
	return !isalnum(after) && after != '_';
}

/* NAME=VALUE with each mark replaced by CWD. */
static char *expand(const char *name, size_t length, const char *value, const char *cwd)
{
	size_t marks = 0;
	char *entry, *to;

	for (const char *at = value; *at; at++)
		marks += is_mark(at);
	entry = malloc(length + 1 + strlen(value) + marks * strlen(cwd) + 1);
	if (!entry)
		return NULL;
	memcpy(entry, name, length);
	to = entry + length;
	*to++ = '=';
	while (*value) {
		if (is_mark(value)) {
			to = stpcpy(to, cwd);
			value += sizeof(CWD_MARK) - 1;
		} else {
			*to++ = *value++;
		}
	}
	*to = 0;
	return entry;
}

static bool put_variable(struct env *env, char *entry)
{
	size_t length = entry ? strcspn(entry, "=") + 1 : 0;

	if (!entry)
		return false;
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], entry, length)) {
			free(env->list[i]);
			env->list[i] = entry;
			return true;
		}
	if (env->count + 1 >= env->room) {
		size_t room = env->room ? 2 * env->room : 32;
		char **wider = realloc(env->list, room * sizeof(*wider));

		if (!wider) {
			free(entry);
			return false;
		}
		env->list = wider;
		env->room = room;
	}
	env->list[env->count++] = entry;
	env->list[env->count] = NULL;
	return true;
}

static DACS_ERR_T put_base(struct env *env, const struct dacsi_env_source *source)
{
	for (char *const *at = source->base; at && *at; at++) {
		const char *equals = strchr(*at, '=');

		if (!equals || equals == *at) {
			if (source->lenient)
				continue;
			return DACS_ERR_INVALID_ENV;
		}
		if (!put_variable(env,
				  expand(*at, (size_t)(equals - *at), equals + 1, source->cwd)))
			return DACS_ERR_NO_RESOURCE;
	}
	return DACS_SUCCESS;
}

/* NAME=VALUE;NAME;...: a name alone is copied from the host, if it is there. */
static DACS_ERR_T put_list(struct env *env, const struct dacsi_env_source *source)
{
	char *copy = source->list ? strdup(source->list) : NULL, *save = NULL;
	DACS_ERR_T rc = source->list && !copy ? DACS_ERR_NO_RESOURCE : DACS_SUCCESS;

	for (char *item = copy ? strtok_r(copy, ";", &save) : NULL; item && rc == DACS_SUCCESS;
	     item = strtok_r(NULL, ";", &save)) {
		size_t length = strcspn(item, "=");
		const char *value =
			item[length] ? item + length + 1 : value_of(source->host, item, length);

		if (!length)
			rc = DACS_ERR_INVALID_ENV;
		else if (value && !put_variable(env, expand(item, length, value, source->cwd)))
			rc = DACS_ERR_NO_RESOURCE;
	}
	free(copy);
	return rc;
}

/* One machine, one set of settings, unless the client says otherwise. */
static DACS_ERR_T put_settings(struct env *env, const struct dacsi_env_source *source)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	char name[48];

	for (int i = 0; slmpm_setting_at(i, &s) == 0; i++) {
		int length = snprintf(name, sizeof(name), "SLMPM_%s", s.name);
		const char *value = value_of(source->host, name, (size_t)length);

		if (!value || value_of(env->list, name, (size_t)length))
			continue;
		if (!put_variable(env, expand(name, (size_t)length, value, "$AE_CWD")))
			return DACS_ERR_NO_RESOURCE;
	}
	return DACS_SUCCESS;
}

static DACS_ERR_T put_cwd(struct env *env, const struct dacsi_env_source *source)
{
	const char *path = value_of(env->list, "LD_LIBRARY_PATH", 15);
	char *value = NULL;
	bool good = put_variable(env, expand("AE_CWD", 6, source->cwd, source->cwd));

	if (good && source->libraries) {
		if (asprintf(&value, "%s%s%s", path ? path : "", path && *path ? ":" : "",
			     source->cwd) < 0)
			value = NULL;
		good = value &&
		       put_variable(env, expand("LD_LIBRARY_PATH", 15, value, source->cwd));
		free(value);
	}
	return good ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
}

char **dacsi_env_build(const struct dacsi_env_source *source, DACS_ERR_T *rc)
{
	struct env env = {.list = calloc(1, sizeof(char *)), .room = 1};

	*rc = env.list ? put_base(&env, source) : DACS_ERR_NO_RESOURCE;
	if (*rc == DACS_SUCCESS)
		*rc = put_list(&env, source);
	if (*rc == DACS_SUCCESS)
		*rc = put_settings(&env, source);
	if (*rc == DACS_SUCCESS)
		*rc = put_cwd(&env, source);
	if (*rc == DACS_SUCCESS)
		return env.list;
	dacsi_env_free(env.list);
	return NULL;
}
