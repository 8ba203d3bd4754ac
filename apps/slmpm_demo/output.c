/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard output: digests as sha256sum writes them, and what went wrong with it first, unless the
 * demo is to end: a signal interrupts a write.
 */
#include <errno.h>
#include <string.h>

#include "apps/slmpm_demo/demo.h"

static int error;

static void note(void)
{
	if (!error && !ending() && ferror(stdout))
		error = errno ? errno : EIO;
}

static void print(const unsigned char digest[DIGEST_SIZE], const char *path)
{
	if (path[strcspn(path, "\\\n\r")])
		putchar('\\');
	for (int i = 0; i < DIGEST_SIZE; i++)
		printf("%02x", digest[i]);
	fputs("  ", stdout);
	for (; *path; path++)
		switch (*path) {
		case '\\': fputs("\\\\", stdout); break;
		case '\n': fputs("\\n", stdout); break;
		case '\r': fputs("\\r", stdout); break;
		default: putchar(*path);
		}
	putchar('\n');
}

void output_digest(const unsigned char digest[DIGEST_SIZE], const char *path)
{
	print(digest, path);
	note();
}

void output_flush(void)
{
	fflush(stdout);
	note();
}

int output_error(void)
{
	return error;
}
