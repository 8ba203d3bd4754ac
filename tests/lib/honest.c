/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that keeps to the rules. */
#include "tests/lib/honest.h"

#include <stdio.h>
#include <string.h>

#define BOUND_MS 3000

int honest_peer(void *arg)
{
	char url[128], text[64];
	slmpm_ctx none = {0};
	slmpm_peer host;
	int64_t n;

	snprintf(url, sizeof(url), "%s%s", strchr(arg, ':') ? "" : "shm:", (const char *)arg);
	OK(slmpm_connect(&host, none, url, PATIENCE));
	while ((n = slmpm_recv(host, 1, text, sizeof(text), NULL, PATIENCE)) > 0)
		OK(slmpm_send(host, 2, text, (size_t)n, PATIENCE));
	EXPECT(n, -SLMPM_ECLOSED);
	return 0;
}

void honest_works(slmpm_peer honest)
{
	static uint32_t turn;
	uint32_t back = 0;

	turn++;
	OK(slmpm_send(honest, 1, &turn, sizeof(turn), BOUND_MS));
	EXPECT(slmpm_recv(honest, 2, &back, sizeof(back), NULL, BOUND_MS), sizeof(back));
	CHECK(back == turn, "%u came back as %u", turn, back);
}
