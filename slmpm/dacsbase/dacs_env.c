/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of an accelerator: the client's (or the host's own), what DACS_START_ENV_LIST
 * adds, the host's SLMPM settings, and AE_CWD. A later entry replaces an earlier one.
 */
#include "slmpm/dacsbase/dacs_start.h"

#include <argz.h>
#include <ctype.h>
#include <envz.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CWD_MARK  "$AE_CWD"
#define ENTRY_MAX (128U << 10) /* bytes of one string that the kernel accepts */

struct env { /* NAME=VALUE, a 0 behind each */
	char *text;
	size_t length;
};

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

/* NAME and VALUE, a 0 behind each, with CWD instead of each mark. */
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
	*to++ = 0;
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

static DACS_ERR_T put_variable(struct env *env, const char *name, size_t length, const char *value,
			       const char *cwd)
{
	char *entry = expand(name, length, value, cwd);
	bool good = entry && envz_add(&env->text, &env->length, entry, entry + length + 1) == 0;

	free(entry);
	return good ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
}

static DACS_ERR_T put_base(struct env *env, const struct dacsi_env_source *source)
{
	DACS_ERR_T rc = DACS_SUCCESS;

	for (char *const *at = source->base; at && *at && rc == DACS_SUCCESS; at++) {
		size_t length = strcspn(*at, "=");

		if (length && (*at)[length])
			rc = put_variable(env, *at, length, *at + length + 1, source->cwd);
		else if (!source->lenient)
			rc = DACS_ERR_INVALID_ENV;
	}
	return rc;
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
		else if (value)
			rc = put_variable(env, item, length, value, source->cwd);
	}
	free(copy);
	return rc;
}

/* One machine, one set of settings, unless the client says otherwise. */
static DACS_ERR_T put_settings(struct env *env, const struct dacsi_env_source *source)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	DACS_ERR_T rc = DACS_SUCCESS;
	char name[48];

	for (int i = 0; rc == DACS_SUCCESS && slmpm_setting_at(i, &s) == 0; i++) {
		size_t length = (size_t)snprintf(name, sizeof(name), "SLMPM_%s", s.name);
		const char *value = value_of(source->host, name, length);

		if (value && !envz_entry(env->text, env->length, name))
			rc = put_variable(env, name, length, value, CWD_MARK);
	}
	return rc;
}

static DACS_ERR_T put_cwd(struct env *env, const struct dacsi_env_source *source)
{
	const char *path = envz_get(env->text, env->length, "LD_LIBRARY_PATH");
	DACS_ERR_T rc = DACS_SUCCESS;
	char *value;

	if (source->libraries) {
		if (asprintf(&value, "%s%s%s", path ? path : "", path && *path ? ":" : "",
			     source->cwd) < 0)
			return DACS_ERR_NO_RESOURCE;
		rc = put_variable(env, "LD_LIBRARY_PATH", 15, value, source->cwd);
		free(value);
	}
	return rc == DACS_SUCCESS ? put_variable(env, "AE_CWD", 6, source->cwd, source->cwd) : rc;
}

char **dacsi_env_build(const struct dacsi_env_source *source, DACS_ERR_T *rc)
{
	struct env env = {0};
	char **list = NULL;
	size_t room;

	*rc = put_base(&env, source);
	if (*rc == DACS_SUCCESS)
		*rc = put_list(&env, source);
	if (*rc == DACS_SUCCESS)
		*rc = put_settings(&env, source);
	if (*rc == DACS_SUCCESS)
		*rc = put_cwd(&env, source);
	if (*rc == DACS_SUCCESS) {
		room = (argz_count(env.text, env.length) + 1) * sizeof(*list);
		list = malloc(room + env.length);
		if (list)
			argz_extract(memcpy((char *)list + room, env.text, env.length), env.length,
				     list);
		else
			*rc = DACS_ERR_NO_RESOURCE;
	}
	free(env.text);
	return list;
}
