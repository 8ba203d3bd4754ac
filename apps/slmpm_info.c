/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -ljansson */
/*
 * slmpm_info: version, fabrics, settings, what the machine offers, and another process's counters,
 * for people or as JSON. Each part builds a JSON value; printing it is the second step.
 */
#include <slmpm.h>

#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lib/options.h"

enum { OPT_CHECK = 256, OPT_JSON };

static const struct argp_option options[] = {
	{"version", 'v', NULL, 0, "The library's version", 0},
	{"devices", 'd', NULL, 0, "Fabrics and what they can do", 0},
	{"config", 'c', NULL, 0, "Settings: value, where it comes from, meaning", 0},
	{"check", OPT_CHECK, NULL, 0,
	 "What this machine offers, by real tries; status 1 when something needed is missing", 0},
	{"memory", 'm', "PEERS", 0, "Memory for so many peers with the present settings", 0},
	{"stats", 's', "PID", 0, "Counters of another process of this user", 0},
	{"json", OPT_JSON, NULL, 0, "All of it as one JSON object", 0},
	{0},
};

struct command {
	bool version, fabrics, config, check, json;
	long peers, pid;
};

static long parse_number(struct argp_state *state, int key, const char *text, const char *what)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > INT32_MAX)
		argp_failure(state, 2, 0, "-%c %s: %s is wanted", key, text, what);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'v': c->version = true; break;
	case 'd': c->fabrics = true; break;
	case 'c': c->config = true; break;
	case 'm': c->peers = parse_number(state, key, arg, "a number of peers"); break;
	case 's': c->pid = parse_number(state, key, arg, "a process id"); break;
	case OPT_CHECK: c->check = true; break;
	case OPT_JSON: c->json = true; break;
	case ARGP_KEY_ARG: argp_failure(state, 2, 0, "what is \"%s\"? See --help", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* ---- the parts, as JSON ---- */

/* Text of unknown encoding: what is not UTF-8 becomes question marks. */
static json_t *text(const char *s)
{
	json_t *value = json_string(s);
	char copy[4096];

	if (value)
		return value;
	snprintf(copy, sizeof(copy), "%s", s);
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

static json_t *fabrics(void)
{
	struct slmpm_fabric_info f = {.size = sizeof(f)};
	json_t *all = json_array();

	for (int i = 0; slmpm_fabric_at(i, &f) >= 0; i++)
		json_array_append_new(all, json_pack("{ss sb so so so sI sI}", "name", f.name,
						     "available", (int)f.available, "capabilities",
						     text(f.capabilities), "commit", text(f.commit),
						     "detail", text(f.detail), "packet_max",
						     (json_int_t)f.packet_max, "links_max",
						     (json_int_t)f.links_max));
	return all;
}

static json_t *settings(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	json_t *all = json_array();

	for (int i = 0; slmpm_setting_at(i, &s) >= 0; i++)
		json_array_append_new(all, json_pack("{ss so so ss so}", "name", s.name, "value",
						     text(s.value), "initial", text(s.initial),
						     "origin", s.origin, "text", text(s.text)));
	return all;
}

static json_t *checks(bool *good)
{
	static const char *const states[] = {"needed", "replaced", "works"};
	struct slmpm_check c = {.size = sizeof(c)};
	json_t *all = json_array();

	for (int i = 0; slmpm_check_at(i, &c) >= 0; i++) {
		int state = c.state < 0 ? 0 : c.state > 0 ? 2 : 1;

		*good = *good && state;
		json_array_append_new(all, json_pack("{ss ss so}", "name", c.name, "state",
						     states[state], "detail", text(c.detail)));
	}
	return all;
}

static json_t *memory(long peers)
{
	uint64_t each = slmpm_memory_per_peer();

	return json_pack("{sI sI sI}", "peers", (json_int_t)peers, "bytes_per_peer",
			 (json_int_t)each, "bytes", (json_int_t)(each * (uint64_t)peers));
}

#define FIGURE(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct slmpm_stats, name)                                          \
	}
static const struct {
	const char *name;
	size_t at;
} figures[] = {
	FIGURE(sent_messages),
	FIGURE(sent_packets),
	FIGURE(sent_bytes),
	FIGURE(received_messages),
	FIGURE(received_packets),
	FIGURE(received_bytes),
	FIGURE(out_produced),
	FIGURE(out_consumed),
	FIGURE(out_segments),
	FIGURE(in_produced),
	FIGURE(in_consumed),
	FIGURE(in_segments),
	FIGURE(out_room),
	FIGURE(in_unread),
	FIGURE(remote_writes),
	FIGURE(remote_reads),
	FIGURE(produced_publications),
	FIGURE(sleeps),
	FIGURE(wakeups),
	FIGURE(bells),
	FIGURE(queue_depth),
	FIGURE(unexpected),
	FIGURE(violations),
	FIGURE(checksum_errors),
	FIGURE(puts),
	FIGURE(put_bytes),
	FIGURE(gets),
	FIGURE(get_bytes),
	FIGURE(atomics),
	FIGURE(served),
	FIGURE(notifications),
	FIGURE(refused),
	FIGURE(ams),
	FIGURE(am_unhandled),
	FIGURE(am_writes),
	FIGURE(am_reads),
	FIGURE(am_atomics),
	FIGURE(tag_writes),
	FIGURE(tag_reads),
	FIGURE(am_served),
	FIGURE(tag_served),
	FIGURE(rget_messages),
	FIGURE(rget_bytes),
	FIGURE(push_messages),
	FIGURE(push_bytes),
	FIGURE(shared_puts),
	FIGURE(shared_bytes),
	FIGURE(fifo_puts),
	FIGURE(fifo_bytes),
	FIGURE(fifo_entries),
};

static json_t *counters(const struct slmpm_stats *s)
{
	static const char *const causes[SLMPM_CAUSE_COUNT] = {"threshold", "sleep", "flush",
							      "every"};
	json_t *all = json_pack("{si so}", "pid", s->pid, "link", text(s->link));
	json_t *published = json_object();

	for (int i = 0; i < SLMPM_CAUSE_COUNT; i++)
		json_object_set_new(published, causes[i],
				    json_integer((json_int_t)s->publications[i]));
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		uint64_t value;

		memcpy(&value, (const char *)s + figures[i].at, sizeof(value));
		json_object_set_new(all, figures[i].name, json_integer((json_int_t)value));
		if (figures[i].at == offsetof(struct slmpm_stats, remote_reads))
			json_object_set_new(all, "publications", published);
	}
	return all;
}

/* Every context of the process, every peer of a context; NULL: explained on standard error. */
static json_t *stats(long pid)
{
	const struct slmpm_stats_page *page;
	json_t *all = json_array();
	int rc, index = 0;

	for (; (rc = slmpm_stats_attach((int)pid, index, &page)) >= 0; index++) {
		for (uint32_t i = 0; i < page->peers; i++) {
			struct slmpm_stats s = {0};
			size_t known = page->peer_size < sizeof(s) ? page->peer_size : sizeof(s);
			json_t *peer;

			memcpy(&s, slmpm_stats_of(page, i), known);
			peer = counters(&s);
			json_object_set_new(peer, "context", json_integer(index));
			json_array_append_new(all, peer);
		}
		slmpm_stats_detach(page);
	}
	if (index)
		return all;
	json_decref(all);
	slmpm_perror("slmpm_info");
	return NULL;
}

/* ---- for people ---- */

static const char *string_of(const json_t *object, const char *key)
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

		printf("fabric %s: %s\n", string_of(f, "name"),
		       there ? "available" : "not available");
		if (*string_of(f, "detail"))
			printf("  %s\n", string_of(f, "detail"));
		printf("  can          %s\n  commit       %s\n", string_of(f, "capabilities"),
		       string_of(f, "commit"));
		printf("  packet_max   %" JSON_INTEGER_FORMAT " bytes\n",
		       json_integer_value(json_object_get(f, "packet_max")));
		printf("  links_max    %" JSON_INTEGER_FORMAT "\n",
		       json_integer_value(json_object_get(f, "links_max")));
	}
}

/* A setting is named as its variable, or without what all have in common. */
static const char *prefix(const char *name)
{
	return strncmp(name, "SLMPM_", 6) == 0 ? "" : "SLMPM_";
}

static void print_settings(const json_t *all)
{
	const json_t *s;
	size_t i;

	json_array_foreach(all, i, s)
		printf("# %s\n# from %s; initially \"%s\"\n%s%s=%s\n\n", string_of(s, "text"),
		       string_of(s, "origin"), string_of(s, "initial"),
		       prefix(string_of(s, "name")), string_of(s, "name"), string_of(s, "value"));
}

static void print_checks(const json_t *all)
{
	const json_t *c;
	size_t i;

	json_array_foreach(all, i, c) printf("%-9s %-22s %s\n", string_of(c, "state"),
					     string_of(c, "name"), string_of(c, "detail"));
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

static void print_all(const json_t *all)
{
	const json_t *part;

	if (string_of(all, "version"))
		printf("slmpm %s\n", string_of(all, "version"));
	if ((part = json_object_get(all, "fabrics")))
		print_fabrics(part);
	if ((part = json_object_get(all, "settings")))
		print_settings(part);
	if ((part = json_object_get(all, "memory")))
		print_memory(part);
	if ((part = json_object_get(all, "checks")))
		print_checks(part);
	if ((part = json_object_get(all, "stats")))
		print_stats(part);
}

/* A context reads the settings, warns of unknown ones and refuses what it cannot read. */
static bool settings_are_good(void)
{
	slmpm_ctx ctx;
	int rc = slmpm_open(&ctx, NULL);

	if (rc >= 0)
		slmpm_shut(ctx, 0);
	else
		slmpm_perror("slmpm_info: settings");
	return rc >= 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options,
					 parse,
					 NULL,
					 "Tells what this library is, can and sees here. Without "
					 "options: -v -d.",
					 NULL,
					 NULL,
					 NULL};
	struct command c = {0};
	json_t *all = json_object(), *peers;
	bool good = true;

	argp_err_exit_status = 2;
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (!c.config && !c.check && !c.peers && !c.pid && !c.fabrics)
		c.fabrics = !c.version, c.version = true;
	if (c.version || c.json)
		json_object_set_new(all, "version", json_string(slmpm_version()));
	if (c.fabrics)
		json_object_set_new(all, "fabrics", fabrics());
	if (c.config) {
		good = settings_are_good();
		json_object_set_new(all, "settings", settings());
	}
	if (c.peers)
		json_object_set_new(all, "memory", memory(c.peers));
	if (c.check)
		json_object_set_new(all, "checks", checks(&good));
	if (c.pid) {
		peers = stats(c.pid);
		if (peers)
			json_object_set_new(all, "stats", peers);
		good = good && peers;
	}
	if (c.json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		print_all(all);
	}
	json_decref(all);
	return fflush(stdout) || ferror(stdout) || !good;
}
