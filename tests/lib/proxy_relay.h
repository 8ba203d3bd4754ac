/* SPDX-License-Identifier: BSD-3-Clause */
/* What the relay's process is told: by memory where connections go, by commands the rest. */
#ifndef TESTS_LIB_PROXY_RELAY_H
#define TESTS_LIB_PROXY_RELAY_H

#include "tests/lib/proxy.h"

struct relay_plan { /* shared */
	int listener, commands;
	uint16_t port;
	_Atomic uint16_t target[65536]; /* by the port that a connection comes from; 0: nowhere */
};

enum relay_what { RELAY_RULE, RELAY_ASK, RELAY_FORGET };

struct relay_command {
	enum relay_what what;
	unsigned n;
	enum proxy_way way;
	struct proxy_rule rule;
};

struct relay_answer { /* to each */
	unsigned connections;
	uint64_t passed;
};

/* Until nobody gives commands any more. */
void relay_run(struct relay_plan *plan);

#endif
