/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job as a line of text: what --serve reads, and what side 0 tells side 1. One form for both, so
 * that sides of different builds or byte orders understand each other or say why not.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const waits[] = {"adaptive", "spin", "block", "default"};

int parse_number(const char *text, uint64_t *value)
{
	static const char units[] = "kmg";
	const char *unit;
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno)
		return -1;
	if (!*end)
		return 0;
	unit = strchr(units, *end | 0x20);
	if (!unit || end[1] || *value > SLMPM_MESSAGE_MAX)
		return -1;
	*value <<= 10 * (unit - units + 1);
	return 0;
}

int parse_wait(const char *text, unsigned *mode)
{
	for (unsigned i = 0; i < WAIT_MODES; i++)
		if (strcmp(waits[i], text) == 0) {
			*mode = i;
			return 0;
		}
	return -1;
}

int parse_busy(const char *text, unsigned *busy)
{
	*busy = *text ? (unsigned)(*text - '0') : 0;
	return *text < '0' || *text > '2' || text[1] ? -1 : 0;
}

static const char *const ways[] = {
	[SLMPM_TRACK_NONE] = "none",       [SLMPM_TRACK_AUTO] = "auto",
	[SLMPM_TRACK_PAGEMAP] = "pagemap", [SLMPM_TRACK_FAULT] = "fault",
	[SLMPM_TRACK_SIGNAL] = "signal",   [SLMPM_TRACK_TWIN] = "twin",
};

int parse_members(const char *text, unsigned *members)
{
	uint64_t value;

	if (parse_number(text, &value) || value < 2 || value > MEMBERS_MAX)
		return -1;
	*members = (unsigned)value;
	return 0;
}

int parse_track(const char *text, unsigned *way)
{
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (strcmp(ways[i], text) == 0) {
			*way = i;
			return 0;
		}
	return -1;
}

static int parse_link(const char *text, uint64_t *link)
{
	*link = *text ? (uint64_t)(*text - '0') + 1 : 0;
	return *text < '0' || *text > '3' || text[1] ? -1 : 0;
}

const char *wait_name(unsigned mode)
{
	return waits[mode < WAIT_MODES ? mode : WAIT_DEFAULT];
}

void job_init(struct job *j)
{
	*j = (struct job){.warm = UINT64_MAX, .burst = 1, .step = 32768, .wait = WAIT_DEFAULT};
	j->members = 2;
}

#define SAID(what) (j->given |= TAKES_##what)

static int parse_flag(struct job *j, const char *word)
{
	if (strcmp(word, "touch") == 0)
		SAID(TOUCH), j->touch = true;
	else if (strcmp(word, "each") == 0)
		j->each = true;
	else if (strcmp(word, "shared") == 0)
		SAID(SHARED), j->shared = true;
	else if (strcmp(word, "more") == 0)
		SAID(MORE), j->more = true;
	else if (strcmp(word, "probe") == 0)
		j->probe = true;
	else if (strcmp(word, "verify") == 0)
		j->verify = true;
	else
		return -1;
	return 0;
}

static int parse_pair(struct job *j, const char *word, const char *value)
{
	if (value && strcmp(word, "wait") == 0)
		return SAID(WAIT), parse_wait(value, &j->wait);
	if (value && strcmp(word, "burst") == 0)
		return SAID(BURST), parse_number(value, &j->burst);
	if (value && strcmp(word, "idle") == 0)
		return SAID(IDLE), parse_number(value, &j->idle_us);
	if (value && strcmp(word, "step") == 0)
		return SAID(STEP), parse_number(value, &j->step);
	if (value && strcmp(word, "link") == 0)
		return SAID(TO), parse_link(value, &j->link);
	if (value && strcmp(word, "warm") == 0)
		return parse_number(value, &j->warm);
	if (value && strcmp(word, "work") == 0)
		return SAID(WORK), parse_number(value, &j->work_us);
	if (value && strcmp(word, "busy") == 0)
		return parse_busy(value, &j->busy);
	if (value && strcmp(word, "members") == 0) {
		j->grouped = true;
		SAID(MEMBERS);
		return parse_members(value, &j->members);
	}
	if (value && strcmp(word, "track") == 0)
		return SAID(TRACK), parse_track(value, &j->track);
	return -1;
}

/* What WORD takes. */
static const char *wanted_of(const char *word)
{
	static const char *const wanted[][2] = {
		{"members", ": a group has 2 to 64"},
		{"link", ": a pair has links 0 to 3"},
		{"busy", ": 0, 1 or 2 of the two CPUs"},
		{"wait", ": adaptive, spin or block"},
		{"track", ": none, auto, pagemap, fault, signal or twin"},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strcmp(word, wanted[i][0]) == 0)
			return wanted[i][1];
	return "";
}

int job_parse(struct job *j, char *text, char *why, size_t why_size)
{
	static const char blank[] = " \t\r\n";
	char *rest, *word = strtok_r(text, blank, &rest), *value;

	job_init(j);
	j->test = word ? test_find(word) : NULL;
	if (!j->test) {
		snprintf(why, why_size, "unknown test \"%s\"", word ? word : "");
		return -1;
	}
	j->size = j->test->size;
	word = strtok_r(NULL, blank, &rest);
	if (word && (parse_number(word, &j->size) || j->size > SLMPM_MESSAGE_MAX)) {
		snprintf(why, why_size, "\"%s\" is no size from 0 to 8g", word);
		return -1;
	}
	word = word ? strtok_r(NULL, blank, &rest) : NULL;
	if (word && parse_number(word, &j->count)) {
		snprintf(why, why_size, "\"%s\" is no count", word);
		return -1;
	}
	while (word && (word = strtok_r(NULL, blank, &rest))) {
		if (!parse_flag(j, word))
			continue;
		value = strtok_r(NULL, blank, &rest);
		if (parse_pair(j, word, value)) {
			snprintf(why, why_size, "cannot read \"%s%s%s\"%s", word, value ? " " : "",
				 value ? value : "", wanted_of(word));
			return -1;
		}
	}
	if (!j->burst || !j->step) {
		snprintf(why, why_size, "burst and step begin at 1");
		return -1;
	}
	if (j->grouped)
		j->test = test_in_group(j->test);
	return 0;
}

void job_print(const struct job *j, char *text, size_t size)
{
	char link[16] = "", members[16] = "";

	if (j->link)
		snprintf(link, sizeof(link), " link %u", (unsigned)j->link - 1);
	if (j->test->by == BY_GROUP)
		snprintf(members, sizeof(members), " members %u", j->members);
	snprintf(
		text, size,
		"%s %llu %llu burst %llu idle %llu step %llu work %llu busy %u%s%s%s%s%s%s%s%s%s%s",
		j->test->name, (unsigned long long)j->size, (unsigned long long)j->count,
		(unsigned long long)j->burst, (unsigned long long)j->idle_us,
		(unsigned long long)j->step, (unsigned long long)j->work_us, j->busy,
		j->track ? " track " : "", j->track ? ways[j->track] : "", j->touch ? " touch" : "",
		j->more ? " more" : "", j->each ? " each" : "", j->probe ? " probe" : "",
		j->verify ? " verify" : "", j->shared ? " shared" : "", link, members);
}
