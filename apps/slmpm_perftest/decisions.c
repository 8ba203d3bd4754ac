/* SPDX-License-Identifier: BSD-3-Clause */
/* --decisions: how what side 0 sent, put and got went, and why, as slmpm_stat would show it. */
#include "apps/slmpm_perftest/perftest.h"

#include <inttypes.h>
#include <stdio.h>

#include <slmpm_monitor.h>

static void tell(int protocol, int reason, uint64_t count, bool json)
{
	const char *format = json ? "{\"protocol\":\"%s\",\"reason\":\"%s\",\"decisions\":%" PRIu64
				    "}\n" :
				    "decided: %s, because: %s, %" PRIu64 " times\n";

	printf(format, slmpm_protocol_name(protocol), slmpm_reason_name(reason), count);
}

int decisions_print(struct pair *pair, bool json)
{
	struct slmpm_monitor m;

	if (!pair->ctx.id)
		return 0;
	if (slmpm_monitor(pair->peer, &m, sizeof(m)) < 0)
		return slmpm_perror("slmpm_perftest: --decisions");
	for (int protocol = 0; protocol < SLMPM_PROTOCOLS; protocol++)
		for (int reason = 0; reason < SLMPM_REASONS; reason++)
			if (m.reasons[protocol][reason])
				tell(protocol, reason, m.reasons[protocol][reason], json);
	return 0;
}
