/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trials (offence.h) whose offender comes over TCP (raw_net.h). It greets by OpenSSL: for tests
 * that link with -lcrypto.
 */
#ifndef TESTS_LIB_RAW_NET_TRIAL_H
#define TESTS_LIB_RAW_NET_TRIAL_H

#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "tests/lib/offence.h"
#include "tests/lib/raw_net.h"
#include "tests/lib/raw_proof.h"
#include "tests/lib/settings.h"
#include "tests/lib/test.h"

static struct raw_net net; /* the offender, in its own process */

/* An offender that has none of what P is made of. */
static inline void net_trial_without_rings(struct raw_peer *p)
{
	memset(p, 0, sizeof(*p));
	p->fd = -1;
}

/* Connects to AT, and wants LINKS. Nothing is said: net.control.hello may still be changed. */
static inline void net_trial_connect(struct raw_peer *p, const char *at, unsigned links)
{
	net_trial_without_rings(p);
	raw_net_begin(&net, at, links);
}

/* Says it, and has the first link. */
static inline void net_trial_greet(void)
{
	raw_stream_greet(&net.control);
	raw_net_first(&net);
}

/* For a trial. */
static inline void net_trial_hear_end(struct raw_peer *p, char reason[112])
{
	(void)p;
	raw_stream_hear_end(net.control.fd, reason);
}

static inline void net_trial_leave(struct raw_peer *p)
{
	(void)p;
	raw_net_end(&net);
}

/* Skips without that fabric. */
static inline void net_trial_needs_tcp(void)
{
	if (!fabric_find("tcp"))
		test_skip("this library has no fabric \"tcp\"");
}

/* Settings of one link over TCP, with rings as they are without being set. */
static inline void net_trial_one_link(void)
{
	settings_one_link("tcp");
	net_trial_needs_tcp();
	unsetenv("SLMPM_SECRET");
	unsetenv("SLMPM_RING_SEGMENTS");
}

#endif
