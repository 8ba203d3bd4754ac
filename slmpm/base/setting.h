/* SPDX-License-Identifier: BSD-3-Clause */
/* A setting: its name, kind and bounds, and how its text is read. */
#ifndef SLMPM_BASE_SETTING_H
#define SLMPM_BASE_SETTING_H

#include <stddef.h>
#include <stdint.h>

/* And what its value is. */
enum setting_kind {
	NUMBER, /* int64_t */
	SIZE,   /* int64_t, may have a unit */
	MODULO, /* int64_t, of 64 bits with a sign or without */
	SHARE,  /* int64_t, thousandths */
	CHOICE, /* int64_t, which of its choices */
	ROUTES, /* struct routes */
	TEXT,   /* const char *, of at most so many bytes; 0: any */
	HIDDEN, /* const char *, not shown */
	PCI,    /* const char *, PCI addresses with commas */
	FABRIC, /* const char *, the name of a fabric, or "auto" */
	CPUS,   /* const char *, processors (slmpm/base/cpus.h) */
};

struct setting {
	const char *name;
	enum setting_kind kind;
	const char *initial;
	void *value; /* NULL: read by name where it is used */
	int64_t min, max;
	const char *choices; /* "adaptive spin block": values 0, 1, 2 */
	const char *text;
};

/* TEXT, or where there is none the initial one, into its value; where it is none of its kind the
 * initial one, and why into BAD. */
void setting_read(const struct setting *s, const char *text, char *bad, size_t size);
/* TEXT as it is shown: of a choice the word that its list has. */
void setting_show(const struct setting *s, const char *text, char *to, size_t size);

#endif
