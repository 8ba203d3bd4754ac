/* SPDX-License-Identifier: BSD-3-Clause */
/* Error codes and the per-thread text that says why and who. */
#include "slmpm/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/base/wire.h"

#define WORD_MAX 32 /* bytes: a longer one is cut */

static _Thread_local char detail[ERROR_DETAIL];

static const struct {
	int number;
	const char *name, *text;
} errors[] = {{SLMPM_OK, "SLMPM_OK", "success"},
#define ERROR_ROW(name, number, text) {number, "SLMPM_" #name, text},
	      SLMPM_ERRORS(ERROR_ROW)
#undef ERROR_ROW
};

/* Each has a number on the wire, one that no errno has. */
#define ERROR_NUMBER(name, number, text)                                                           \
	_Static_assert((number) > SLMPM_ERROR_BASE &&                                              \
			       (number) <= SLMPM_ERROR_BASE + WIRE_ERROR_LAST,                     \
		       #name);
SLMPM_ERRORS(ERROR_NUMBER)
#undef ERROR_NUMBER

#define ERRORS (sizeof(errors) / sizeof(errors[0]))

/* Its row, or ERRORS. Of either sign; INT_MIN, which has no other one, is no number of ours. */
static size_t row_of(int error)
{
	size_t i = 0;

	while (i < ERRORS && errors[i].number != error && errors[i].number != -(int64_t)error)
		i++;
	return i;
}

const char *slmpm_strerror(int error)
{
	size_t i = row_of(error);

	return i < ERRORS ? errors[i].text : "unknown error";
}

const char *slmpm_error_name(int error)
{
	size_t i = row_of(error);

	return i < ERRORS ? errors[i].name : NULL;
}

const char *slmpm_error_detail(void)
{
	return detail;
}

int slmpm_perror(const char *what)
{
	fprintf(stderr, "%s: %s\n", what ? what : "slmpm", detail[0] ? detail : "no error");
	return 1;
}

/* What was too long ends before a word: a part of a number would be another one. */
static void cut_at_word(char *text, size_t size)
{
	const size_t end = size - sizeof(" ...");
	size_t at = end;

	while (at > end - WORD_MAX && text[at] != ' ')
		at--;
	strcpy(text + (text[at] == ' ' ? at : end), " ...");
}

void error_fit(char *to, size_t size, const char *text)
{
	if (snprintf(to, size, "%s", text) >= (int)size)
		cut_at_word(to, size);
}

static bool names_call(const char *text, const char *call)
{
	const size_t n = strlen(call);

	return !strncmp(text, call, n) && text[n] == ':';
}

int error_of_call(int error, const char *call, const char *format, ...)
{
	char text[ERROR_DETAIL];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* A text that was kept may name it already. */
	if (names_call(text, call))
		return error_set(error, "%s", text);
	return error_set(error, "%s: %s", call, text);
}

/* A text that has it behind an operation's number, as others read it. */
static void cut_call(char *text, const char *call)
{
	const size_t n = strlen(call);
	char *at = strstr(text, call);

	if (at && at - text > 2 && !strncmp(at - 2, ", ", 2) && at[n] == ':')
		memmove(at - 2, at + n, strlen(at + n) + 1);
}

int error_name_call(const char *call, int rc)
{
	const char *rest = strstr(detail, ": ");
	char text[ERROR_DETAIL];

	(void)snprintf(text, sizeof(text), "%s", rest ? rest + 2 : detail);
	cut_call(text, call);
	return error_of_call(-rc, call, "%s", text);
}

int error_set(int error, const char *format, ...)
{
	va_list args;
	int n = snprintf(detail, sizeof(detail), "%s: ", slmpm_strerror(error));

	va_start(args, format);
	n += vsnprintf(detail + n, sizeof(detail) - (size_t)n, format, args);
	va_end(args);
	if (n >= (int)sizeof(detail))
		cut_at_word(detail, sizeof(detail));
	return -error;
}

void error_save(char kept[ERROR_DETAIL])
{
	memcpy(kept, detail, sizeof(detail));
}

void error_restore(const char *kept)
{
	(void)snprintf(detail, sizeof(detail), "%s", kept);
}

static int from_errno(int e)
{
	switch (e) {
	case ENOMEM:
	case ENOSPC: return SLMPM_ENOMEM;
	case EMFILE:
	case ENFILE:
	case ETOOMANYREFS: return SLMPM_ENOFILE; /* of those on their way */
	case EFBIG: return SLMPM_EFBIG;
	case EACCES:
	case EPERM: return SLMPM_EACCES;
	case ENOENT:
	case ENOTDIR: return SLMPM_ENOENT;
	case ENOEXEC:
	case ELIBBAD: return SLMPM_ENOEXEC;
	case EPROTO: return SLMPM_EPROTO;
	case EINVAL: return SLMPM_EINVAL;
	case EAGAIN: return SLMPM_EAGAIN;
	case EADDRINUSE: return SLMPM_EBUSY;
	default: return SLMPM_ESYSTEM;
	}
}

int error_code(int negative_errno)
{
	return -from_errno(-negative_errno);
}

const char *error_text(int negative_errno, char text[ERROR_SYSTEM])
{
	/* The system's words, of splices, say nothing of it. */
	if (negative_errno == -ETOOMANYREFS)
		return "too many descriptors of this user's are on their way (RLIMIT_NOFILE)";
	/* The GNU form, which returns the text wherever it stands. */
	text[0] = 0;
	return strerror_r(-negative_errno, text, ERROR_SYSTEM);
}

bool error_is_lack(int error)
{
	return error == SLMPM_ENOFILE || error == SLMPM_ENOMEM || error == SLMPM_EFBIG;
}

int error_system(int negative_errno, const char *what)
{
	char text[ERROR_SYSTEM];

	return error_set(from_errno(-negative_errno), "%s: %s", what,
			 error_text(negative_errno, text));
}
