/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options that are settings of the library: said in the environment before its first call, where
 * accelerators find them as well. An option counts more than what the environment had.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/slmpm_demo/demo.h"

enum kind { PERCENT, NUMBER, SIZE };

static const char *const wanted[] = {"a percentage is wanted", "a number is wanted",
				     "a size as 16k is wanted"};

static bool is_a(enum kind kind, const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9')
		return false;
	if (kind == SIZE && *end && strchr("kmg", *end))
		end++;
	return !*end && value <= (kind == PERCENT ? 101 : INT32_MAX);
}

static const char *apply_threshold(const char *name, const char *value)
{
	static const struct {
		const char *name, *setting;
		enum kind kind;
	} thresholds[] = {
		{"ring", "SLMPM_MODE_RING", PERCENT},  {"light", "SLMPM_MODE_LIGHT", PERCENT},
		{"queue", "SLMPM_MODE_QUEUE", NUMBER}, {"dma", "SLMPM_MODE_DMA", NUMBER},
		{"bulk", "SLMPM_MODE_BULK", SIZE},     {"small", "SLMPM_MODE_SMALL", SIZE},
	};

	for (size_t i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]); i++) {
		if (strcmp(name, thresholds[i].name) != 0)
			continue;
		if (!is_a(thresholds[i].kind, value))
			return wanted[thresholds[i].kind];
		setenv(thresholds[i].setting, value, 1);
		return NULL;
	}
	return "there are the thresholds ring, light, queue, dma, bulk and small";
}

static const char *apply_word(char *word)
{
	char *value = strchr(word, '=');

	if (value) {
		*value++ = 0;
		return apply_threshold(word, value);
	}
	if (strcmp(word, "auto") != 0 && strcmp(word, "smt") != 0 && strcmp(word, "dma") != 0)
		return "auto, smt, dma, or thresholds as ring=50";
	setenv("SLMPM_MODE", word, 1);
	return NULL;
}

const char *settings_mode(const char *mode)
{
	char *copy = strdup(mode), *rest = copy, *word;
	const char *wrong = copy ? NULL : "no memory";

	while (!wrong && (word = strsep(&rest, ",")))
		wrong = apply_word(word);
	free(copy);
	return wrong;
}

/* ---- what goes together --------------------------------------------------------------------- */

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* The one that the other options need, or the user's, or both. */
static const char *find_fabric(struct options *o)
{
	enum fabric needed = o->stress == STRESS_LINK                       ? FABRIC_BOTH :
			     o->stress == STRESS_RING || o->way == WAY_RGET ? FABRIC_SHM :
									      FABRIC_ANY;

	if (needed && o->fabric && o->fabric != needed)
		return needed == FABRIC_BOTH ? "--stress link is for --fabric both" :
		       o->stress             ? "--stress ring is for --fabric shm" :
					       "-p rget is for --fabric shm";
	if (o->stress == STRESS_QUEUE && o->fabric == FABRIC_TCP)
		return "--stress queue is for --fabric shm or both";
	if (needed)
		o->fabric = needed;
	else if (!o->fabric && !is_set("SLMPM_LINKS") && !is_set("SLMPM_FABRIC") &&
		 !is_set("SLMPM_TOPOLOGY"))
		o->fabric = FABRIC_BOTH;
	return NULL;
}

static void apply_fabric(enum fabric fabric)
{
	if (fabric == FABRIC_ANY)
		return;
	setenv("SLMPM_LINKS", fabric == FABRIC_BOTH ? "shm,tcp" : "1", 1);
	setenv("SLMPM_FABRIC", fabric == FABRIC_TCP ? "tcp" : "shm", 1);
	if (fabric == FABRIC_BOTH) /* the nearer one, as long as it is there */
		setenv("SLMPM_LINK", "0", 0);
}

static void apply_way(enum way way)
{
	if (way == WAY_SMT || way == WAY_RGET)
		setenv("SLMPM_FETCH", way == WAY_SMT ? "never" : "always", 1);
}

/* What makes room for the ballast, and files' messages wait that could go past it. */
static void apply_stress(enum stress stress)
{
	if (stress == STRESS_RING) {
		setenv("SLMPM_EAGER_MAX", "16k", 0);
		setenv("SLMPM_MODE_BULK", "16k", 0);
		setenv("SLMPM_FETCH", "auto", 1);
	}
	if (stress == STRESS_LINK) {
		setenv("SLMPM_LINKS_AFTER", "0", 1);
		/* By the other one when the nearer one has too much to do, though that seldom pays on one
		 * machine; messages of 32 KiB, too. */
		setenv("SLMPM_MODE_LINK", "any", 0);
		setenv("SLMPM_MODE_BULK", "16k", 0);
	}
	if (stress == STRESS_QUEUE) {
		setenv("SLMPM_ENGINE", "inline", 0);
		setenv("SLMPM_MODE_DMA", "16", 0);
		setenv("SLMPM_MODE_SMALL", "512k", 0);
		/* By default a half of the ring may seem unread that is not: never light. */
		setenv("SLMPM_PUBLISH", "1/8", 0);
	} else if (stress) {
		setenv("SLMPM_EAGER_CREDIT", "8m", 0);
	}
}

const char *settings_apply(struct options *o)
{
	const char *wrong;

	if (o->stress == STRESS_QUEUE && (o->way == WHEN_AUTO || o->way == WAY_NONE))
		o->way = WAY_PUT;
	if (o->way == WAY_NONE &&
	    (o->stress || o->tuned || is_set("SLMPM_MODE") || is_set("SLMPM_FETCH")))
		o->way = WHEN_AUTO;
	if (o->stress == STRESS_QUEUE && o->way != WAY_PUT)
		return "--stress queue is for -p put";
	if (o->stress == STRESS_RING && o->way != WHEN_AUTO)
		return "--stress ring is for -p auto";
	if (o->stress == STRESS_LINK && o->way != WHEN_AUTO && o->way != WAY_SMT)
		return "--stress link is for -p auto or smt";
	wrong = find_fabric(o);
	if (wrong)
		return wrong;
	apply_fabric(o->fabric);
	apply_way(o->way);
	apply_stress(o->stress);
	return NULL;
}
