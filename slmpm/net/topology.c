/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of hosts and elements: a key and its value a line, read strictly. */
#include "slmpm/net/topology.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/base/address.h"
#include "slmpm/base/error.h"
#include "slmpm/base/cpus.h"

#define ELEMENTS_MAX 65536
#define PLACES_MAX   4096
#define BLANK        " \t\r\n"

static const char *const keys[PLACE_KEYS] = {"remote", "agent", "chdir", "listen",
					     "fabric", "ship",  "pci",   "cpus"};

struct reading {
	const char *path;
	int line, error;
	char why[160];
	struct topology topology;
	struct place common; /* what the lines before the first host say */
	uint32_t given;      /* keys of the host being read, as bits */
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *r, const char *format, ...)
{
	va_list args;
	int n = snprintf(r->why, sizeof(r->why), "%.70s:%d: ", r->path, r->line);

	va_start(args, format);
	vsnprintf(r->why + n, sizeof(r->why) - (size_t)n, format, args);
	va_end(args);
	r->error = SLMPM_EINVAL;
	return false;
}

static bool no_memory(struct reading *r)
{
	r->error = SLMPM_ENOMEM;
	snprintf(r->why, sizeof(r->why), "for the topology");
	return false;
}

static struct place *current(struct reading *r)
{
	return r->topology.count ? &r->topology.places[r->topology.count - 1] : &r->common;
}

/* Names become words of commands: nothing that could be an option, or several words. */
static bool is_host_name(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._:@-";

	return *name && *name != '-' && strspn(name, good) == strlen(name) && strlen(name) < 64;
}

static bool add_host(struct reading *r, const char *name)
{
	uint32_t n = r->topology.count;
	struct place *wider, *p;

	if (!is_host_name(name))
		return refuse(r, "\"%.40s\" is no name of a host", name);
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(r->topology.places[i].host, name))
			return refuse(r, "host %s again, after line %d", name,
				      r->topology.places[i].line);
	if (n == PLACES_MAX)
		return refuse(r, "more than %d hosts", PLACES_MAX);
	wider = realloc(r->topology.places, (n + 1) * sizeof(*wider));
	if (!wider)
		return no_memory(r);
	r->topology.places = wider;
	p = &wider[n];
	*p = (struct place){.host = strdup(name), .count = r->common.count, .line = r->line};
	r->topology.count++;
	r->given = 0;
	return p->host || no_memory(r);
}

static bool set_elements(struct reading *r, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*end || n < 0 || n > ELEMENTS_MAX)
		return refuse(r, "elements %.40s: a number from 0 to %d", value, ELEMENTS_MAX);
	current(r)->count = (uint32_t)n;
	return true;
}

static bool add_env(struct reading *r, struct place *p, const char *value)
{
	size_t n = 0;
	char **wider;

	if (strcspn(value, "=") == 0 || !strchr(value, '='))
		return refuse(r, "env %.40s: write NAME=VALUE", value);
	if (!strncmp(value, "SLMPM_PARENT=", 13) || !strncmp(value, "SLMPM_SECRET=", 13))
		return refuse(r, "env %.40s: that is set for each start", value);
	while (p->env && p->env[n])
		n++;
	wider = realloc(p->env, (n + 2) * sizeof(*wider));
	if (!wider)
		return no_memory(r);
	p->env = wider;
	wider[n] = strdup(value);
	wider[n + 1] = NULL;
	return wider[n] || no_memory(r);
}

static bool check_value(struct reading *r, enum place_key key, const char *value)
{
	const char *fault;
	char why[80];

	if (key == PLACE_SHIP && strcmp(value, "auto") != 0 && strcmp(value, "always") != 0 &&
	    strcmp(value, "never") != 0)
		return refuse(r, "ship %.40s: auto, always or never", value);
	if (key == PLACE_CHDIR && value[0] != '/')
		return refuse(r, "chdir %.40s: an absolute path", value);
	if (key == PLACE_PCI && strcmp(value, "-") != 0 && (fault = address_list_fault(value)))
		return refuse(r, "pci: \"%.*s\" is no address like 0000:03:00.0",
			      (int)strcspn(fault, ","), fault);
	if (key == PLACE_CPUS && strcmp(value, "-") != 0 && !cpus_readable(value, why))
		return refuse(r, "cpus %.40s: %s", value, why);
	if (strpbrk(value, BLANK) && (key == PLACE_LISTEN || key == PLACE_FABRIC))
		return refuse(r, "%s %.40s: one word", keys[key], value);
	return true;
}

static bool set_key(struct reading *r, const char *key, const char *value)
{
	struct place *p = current(r);

	for (int k = 0; k < PLACE_KEYS; k++) {
		if (strcmp(keys[k], key) != 0)
			continue;
		if (r->given & 1u << k)
			return refuse(r, "%s again", key);
		r->given |= 1u << k;
		if (!check_value(r, (enum place_key)k, value))
			return false;
		p->set[k] = strdup(value);
		return p->set[k] || no_memory(r);
	}
	return refuse(r,
		      "\"%.40s\": host, elements, remote, agent, chdir, listen, fabric, ship, pci, "
		      "cpus or env",
		      key);
}

static void cut_comment(char *line)
{
	for (char *at = line; *at; at++)
		if (*at == '#' && (at == line || strchr(BLANK, at[-1]))) {
			*at = 0;
			return;
		}
}

static bool take_line(struct reading *r, char *line)
{
	char *key, *value;
	size_t n;

	cut_comment(line);
	key = line + strspn(line, BLANK);
	if (!*key)
		return true;
	value = key + strcspn(key, BLANK);
	if (*value)
		*value++ = 0;
	value += strspn(value, BLANK);
	n = strlen(value);
	while (n && strchr(BLANK, value[n - 1]))
		value[--n] = 0;
	if (!n)
		return refuse(r, "%.40s: nothing behind it", key);
	if (!strcmp(key, "host"))
		return add_host(r, value);
	if (!strcmp(key, "elements"))
		return set_elements(r, value);
	if (!strcmp(key, "env"))
		return add_env(r, current(r), value);
	return set_key(r, key, value);
}

static bool inherit_env(struct reading *r, struct place *p)
{
	for (char **at = r->common.env; at && *at; at++) {
		bool own = false;

		for (char **mine = p->env; mine && *mine; mine++)
			own |= !strncmp(*mine, *at, strcspn(*at, "=") + 1);
		if (!own && !add_env(r, p, *at))
			return false;
	}
	return true;
}

/* What hosts do not say themselves; elements are numbered in the order of the hosts. */
static bool topology_complete(struct reading *r)
{
	struct topology *t = &r->topology;

	for (uint32_t i = 0; i < t->count; i++) {
		struct place *p = &t->places[i];

		for (int k = 0; k < PLACE_KEYS; k++) {
			char *own = p->set[k], *value = own ? own : r->common.set[k];

			p->set[k] = value && strcmp(value, "-") != 0 ? strdup(value) : NULL;
			free(own);
		}
		if (!inherit_env(r, p))
			return false;
		if (p->set[PLACE_CPUS] && p->set[PLACE_REMOTE]) {
			r->line = p->line;
			return refuse(r,
				      "host %.40s has cpus and remote: let that command say them",
				      p->host);
		}
		p->first = t->elements + 1;
		t->elements += p->count;
		if (t->elements > ELEMENTS_MAX)
			return refuse(r, "more than %d elements", ELEMENTS_MAX);
	}
	return t->elements || refuse(r, t->count ? "no element" : "no host");
}

static bool topology_read_file(struct reading *r)
{
	FILE *file = fopen(r->path, "re");
	char *line = NULL;
	size_t size = 0;
	bool good = true;

	if (!file) {
		r->error = errno == ENOENT ? SLMPM_ENOENT : SLMPM_ESYSTEM;
		snprintf(r->why, sizeof(r->why), "SLMPM_TOPOLOGY=%.80s: %s", r->path,
			 strerror(errno));
		return false;
	}
	r->common.count = 1;
	while (good && getline(&line, &size, file) >= 0) {
		r->line++;
		good = take_line(r, line);
	}
	if (good && ferror(file)) {
		r->error = SLMPM_ESYSTEM;
		snprintf(r->why, sizeof(r->why), "SLMPM_TOPOLOGY=%.80s: %s", r->path,
			 strerror(errno));
		good = false;
	}
	free(line);
	fclose(file);
	return good;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct reading reading;
static _Atomic uint32_t turn;

static void read_once(void)
{
	const struct config *config = config_get();

	if (!config || !*config->topology)
		return;
	reading.path = config->topology;
	if (topology_read_file(&reading))
		(void)topology_complete(&reading);
}

int topology_get(const struct topology **topology)
{
	pthread_once(&once, read_once);
	if (reading.error)
		return error_set(reading.error, "%s", reading.why);
	*topology = &reading.topology;
	return reading.topology.elements > 0;
}

int topology_check(void)
{
	const struct topology *t;
	int rc = topology_get(&t);

	return rc == -SLMPM_EINVAL ? rc : 0;
}

int topology_find(uint32_t *element, const struct place **place)
{
	const struct topology *t;
	int rc = topology_get(&t);

	if (rc <= 0)
		return rc;
	if (!*element)
		*element = atomic_fetch_add(&turn, 1) % t->elements + 1;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct place *p = &t->places[i];

		if (*element < p->first || *element - p->first >= p->count)
			continue;
		*place = p;
		return p->set[PLACE_REMOTE] != NULL;
	}
	return error_set(SLMPM_EINVAL, "element %u: the topology has %u", *element, t->elements);
}
