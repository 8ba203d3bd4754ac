/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command line of slmpm_perftest asks for (options.c). */
#ifndef PERFTEST_COMMAND_H
#define PERFTEST_COMMAND_H

#include "apps/slmpm_perftest/perftest.h"

#define NAMES_MAX 1024 /* bytes of all tests' names */

struct command {
	struct setup setup;
	struct job job;        /* but for test and size */
	char names[NAMES_MAX]; /* of tests, separated by commas */
	const char *fabric, *listen, *connect, *mailbox, *dump, *modes, *to, *trace;
	uint64_t size, max, times; /* each that of the one before */
	bool sized, serve, far, sink, crew, decisions;
};

/* 0, or -1: it is wrong, which has been said. */
int command_read(struct command *command, int argc, char **argv);
/* 0: each option given is used by one of the tests at least; else -1, with WHY (given.c). */
int given_check(const struct command *c, char *why, size_t size);
/* The library's first use: the settings have been chosen. 0, or it is said that there is none. */
int command_check_fabric(const struct command *c);

#endif
