/* SPDX-License-Identifier: BSD-3-Clause */
/* What settings' texts say, by their kinds. */
#include "slmpm/base/setting.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "slmpm/base/routes.h"
#include "slmpm/base/address.h"
#include "slmpm/base/cpus.h"

/* Which of the words in LIST TEXT is, from 0; -1: none. */
static int64_t word_of(const char *list, const char *text)
{
	size_t n = strlen(text);

	for (int64_t i = 0; *list; i++) {
		size_t length = strcspn(list, " ");

		if (length == n && !strncasecmp(list, text, n))
			return i;
		list += length;
		list += strspn(list, " ");
	}
	return -1;
}

/* What is off or on may be said in any of the usual words. */
static bool parse_choice(const struct setting *s, const char *text, int64_t *out)
{
	*out = word_of(s->choices, text);
	if (*out < 0 && (!strcmp(s->choices, "n y") || !strcmp(s->choices, "0 1"))) {
		*out = word_of("n y no yes off on false true 0 1", text);
		if (*out > 0)
			*out &= 1;
	}
	return *out >= 0;
}

/* 1/2 or 0.5 as thousandths; `every` is 0. */
static bool parse_share(const char *text, int64_t *out)
{
	char *end;
	double top, bottom = 1;

	if (!strcmp(text, "every")) {
		*out = 0;
		return true;
	}
	top = strtod(text, &end);
	if (end == text)
		return false;
	if (*end == '/')
		bottom = strtod(end + 1, &end);
	top = top / bottom * 1000 + 0.5;
	/* A share too small for a thousandth is none, and not `every`. */
	if (*end || !(bottom > 0) || !(top >= 1) || !(top < 1001))
		return false;
	*out = (int64_t)top;
	return true;
}

static bool parse_number(const char *text, bool units, int64_t *out)
{
	char *end;
	long long value;
	int shift = 0;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (end == text || errno)
		return false;
	if (units && *end) {
		const char *unit = strchr("kmg", tolower((unsigned char)*end));

		if (!unit || end[1])
			return false;
		shift = *unit == 'k' ? 10 : *unit == 'm' ? 20 : 30;
		end++;
	}
	if (*end || value > (INT64_MAX >> shift) || value < (INT64_MIN >> shift))
		return false;
	*out = (int64_t)value * (INT64_C(1) << shift);
	return true;
}

static bool parse_modulo(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = (int64_t)strtoull(text, &end, 0); /* takes a sign */
	return end != text && !*end && !errno;
}

/* The first that is none is told. */
static bool parse_pci(const char *text, char why[80])
{
	const char *fault = address_list_fault(text);
	size_t n = fault ? strcspn(fault, ",") : 0;

	if (fault)
		snprintf(why, 80, "\"%.*s\" is no PCI address like 0000:03:00.0",
			 (int)(n < 24 ? n : 24), fault);
	return !fault;
}

static bool parse_fabric(const char *text, char why[80])
{
	bool good = !strcmp(text, "auto") || fabric_find(text);

	if (!good)
		snprintf(why, 80, "there is no fabric %.32s (slmpm_info -d)", text);
	return good;
}

static bool parse(const struct setting *s, const char *text, int64_t *out, char why[80])
{
	bool good;

	if ((s->kind == SIZE || s->kind == NUMBER) && !strcasecmp(text, "auto") &&
	    !strcmp(s->initial, "auto")) {
		*out = s->kind == NUMBER ? -1 : 0;
		return true;
	}
	switch (s->kind) {
	case MODULO: return parse_modulo(text, out);
	case CHOICE: return parse_choice(s, text, out);
	case SHARE: good = parse_share(text, out); break;
	case ROUTES: return routes_read(text, s->value, why, 80);
	case PCI: return parse_pci(text, why);
	case FABRIC: return parse_fabric(text, why);
	case CPUS: return cpus_readable(text, why);
	case NUMBER:
	case SIZE: good = parse_number(text, s->kind == SIZE, out); break;
	case TEXT:
		snprintf(why, 80, "at most %lld bytes", (long long)s->max);
		return !s->max || strlen(text) <= (size_t)s->max;
	default: return true;
	}
	return good && *out >= s->min && *out <= s->max;
}

static void complain(const struct setting *s, const char *text, const char *why, char *bad,
		     size_t size)
{
	if (s->choices)
		snprintf(bad, size, "SLMPM_%s=%.40s: one of: %s", s->name, text, s->choices);
	else if (s->kind == MODULO)
		snprintf(bad, size, "SLMPM_%s=%.40s: a number of 64 bits", s->name, text);
	else if (s->kind >= ROUTES)
		snprintf(bad, size, "SLMPM_%s=%.60s: %s", s->name, text, why);
	else if (s->kind == SHARE)
		snprintf(bad, size, "SLMPM_%s=%.40s: a fraction up to 3/4, or `every`", s->name,
			 text);
	else
		snprintf(bad, size, "SLMPM_%s=%.40s: a number from %lld to %lld%s%s", s->name, text,
			 (long long)s->min, (long long)s->max,
			 s->kind == SIZE ? "; k, m, g may follow" : "",
			 !strcmp(s->initial, "auto") ? "; or auto" : "");
}

void setting_read(const struct setting *s, const char *text, char *bad, size_t size)
{
	int64_t value = 0;
	char why[80];

	if (!text || !*text)
		text = s->initial;
	if (!parse(s, text, &value, why)) {
		complain(s, text, why, bad, size);
		text = s->initial;
		(void)parse(s, text, &value, why);
	}
	if (!s->value || s->kind == ROUTES)
		return;
	if (s->kind >= TEXT)
		*(const char **)s->value = text;
	else
		*(int64_t *)s->value = value;
}

void setting_show(const struct setting *s, const char *text, char *to, size_t size)
{
	const char *word = s->choices;
	int64_t value;

	if (s->kind == HIDDEN && *text)
		text = "(hidden)";
	if (s->kind != CHOICE || !parse_choice(s, text, &value)) {
		snprintf(to, size, "%s", text);
		return;
	}
	while (value--)
		word = strchr(word, ' ') + 1;
	snprintf(to, size, "%.*s", (int)strcspn(word, " "), word);
}
