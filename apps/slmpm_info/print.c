/* SPDX-License-Identifier: BSD-3-Clause */
/* The same for people. */
#include "apps/slmpm_info/info.h"

#include <stdio.h>
#include <string.h>

const char *info_string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void print_fabrics(const json_t *all)
{
	const json_t *f;
	size_t i;

	json_array_foreach(all, i, f)
	{
		bool there = json_is_true(json_object_get(f, "available"));

		printf("fabric %s: %s\n", info_string(f, "name"),
		       there ? "available" : "not available");
		if (*info_string(f, "detail"))
			printf("  %s\n", info_string(f, "detail"));
		printf("  can          %s\n  commit       %s\n", info_string(f, "capabilities"),
		       info_string(f, "commit"));
		printf("  packet_max   %" JSON_INTEGER_FORMAT " bytes\n",
		       json_integer_value(json_object_get(f, "packet_max")));
	}
}

/* A setting is named as its variable, or without what all have in common. */
const char *info_prefix(const char *name)
{
	return strncmp(name, "SLMPM_", 6) == 0 ? "" : "SLMPM_";
}

static void print_settings(const json_t *all)
{
	const json_t *s;
	size_t i;

	json_array_foreach(all, i, s)
		printf("# %s\n# from %s; initially \"%s\"\n%s%s=%s\n\n", info_string(s, "text"),
		       info_string(s, "origin"), info_string(s, "initial"),
		       info_prefix(info_string(s, "name")), info_string(s, "name"),
		       info_string(s, "value"));
}

static void print_checks(const json_t *all)
{
	const json_t *c;
	size_t i;

	json_array_foreach(all, i, c) printf("%-9s %-22s %s\n", info_string(c, "state"),
					     info_string(c, "name"), info_string(c, "detail"));
}

static void print_memory(const json_t *m)
{
	printf("%" JSON_INTEGER_FORMAT " peers at %" JSON_INTEGER_FORMAT
	       " bytes each: %" JSON_INTEGER_FORMAT " bytes\n",
	       json_integer_value(json_object_get(m, "peers")),
	       json_integer_value(json_object_get(m, "bytes_per_peer")),
	       json_integer_value(json_object_get(m, "bytes")));
}

static void print_stats(const json_t *all)
{
	const json_t *peer, *value, *n;
	const char *key, *cause;
	size_t i;

	json_array_foreach(all, i, peer)
	{
		printf("peer %zu\n", i);
		json_object_foreach((json_t *)(uintptr_t)peer, key, value)
		{
			if (json_is_string(value))
				printf("  %-22s %s\n", key, json_string_value(value));
			else if (json_is_integer(value))
				printf("  %-22s %" JSON_INTEGER_FORMAT "\n", key,
				       json_integer_value(value));
			else
				json_object_foreach((json_t *)(uintptr_t)value, cause, n)
					printf("  published: %-11s %" JSON_INTEGER_FORMAT "\n",
					       cause, json_integer_value(n));
		}
	}
}

/* Assignments that a shell can read. */
void info_print_calibration(const json_t *all)
{
	const json_t *s;
	size_t i;

	json_array_foreach(json_object_get(all, "settings"), i, s)
		printf("# %s\n# present %s, initially %s\n%s%s%s=%s\n\n",
		       info_string(s, "measured"), info_string(s, "present"),
		       info_string(s, "initial"),
		       json_is_true(json_object_get(s, "found")) ? "" : "# ",
		       info_prefix(info_string(s, "name")), info_string(s, "name"),
		       info_string(s, "value"));
}

static void print_build(json_t *build)
{
	const char *what;
	json_t *value;

	json_object_foreach(build, what, value) printf("%s: %s\n", what, json_string_value(value));
}

void info_print(const json_t *all)
{
	const json_t *part;

	if (info_string(all, "version"))
		printf("slmpm %s\n", info_string(all, "version"));
	print_build(json_object_get(all, "build"));
	if ((part = json_object_get(all, "fabrics")))
		print_fabrics(part);
	if ((part = json_object_get(all, "settings")))
		print_settings(part);
	if ((part = json_object_get(all, "calibration")))
		info_print_calibration(part);
	if ((part = json_object_get(all, "memory")))
		print_memory(part);
	if ((part = json_object_get(all, "checks")))
		print_checks(part);
	if ((part = json_object_get(all, "protocols")))
		info_print_protocols(part);
	if ((part = json_object_get(all, "stats")))
		print_stats(part);
	info_print_queues(json_object_get(all, "queues"));
}
