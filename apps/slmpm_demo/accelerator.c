/* SPDX-License-Identifier: BSD-3-Clause */
/* The accelerator: hashes each slot's files from the messages where they lie, answers digests. */
#include "apps/slmpm_demo/demo.h"

#include <stdlib.h>
#include <string.h>

static int answer(slmpm_peer host, uint32_t slot, struct digest *d)
{
	unsigned char text[ANSWER_SIZE];
	const struct slmpm_iov piece = {.base = text, .len = sizeof(text)};
	const struct slmpm_how how = {.size = sizeof(how), .imm = slot, .timeout_ms = -1};
	uint64_t bytes = digest_end(d, text);

	for (int i = 0; i < 8; i++)
		text[DIGEST_SIZE + i] = (unsigned char)(bytes >> 8 * i);
	return slmpm_sendv(host, ANSWER_STREAM, &piece, 1, &how, NULL);
}

static int bye(slmpm_peer host)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_COUNTERS, .timeout_ms = 5000};
	struct slmpm_stats s = {.size = sizeof(s)};
	struct slmpm_iov piece;
	char text[64];
	int rc;

	slmpm_peer_stats(host, &s, sizeof(s));
	snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)s.remote_writes,
		 (unsigned long long)s.remote_reads);
	piece = (struct slmpm_iov){.base = text, .len = strlen(text)};
	rc = slmpm_sendv(host, ANSWER_STREAM, &piece, 1, &how, NULL);
	return rc < 0 ? rc : slmpm_close(host, 5000);
}

static int work(slmpm_peer host, struct digest *slots[WINDOW_MAX])
{
	struct slmpm_done done;
	const void *data;
	struct digest *d;
	int64_t len;
	int rc = 0;

	while (rc >= 0) {
		len = slmpm_hold(host, SLMPM_ANY_STREAM, &data, &done, -1);
		if (len < 0)
			return (int)len;
		if (done.imm & IMM_BYE)
			return bye(host);
		if (done.stream >= WINDOW_MAX)
			return -SLMPM_EPROTO;
		d = slots[done.stream];
		digest_add(d, data, (size_t)len);
		rc = slmpm_release(host, data);
		if (done.imm & IMM_FORGET)
			digest_drop(d);
		else if (rc >= 0 && done.imm & IMM_LAST)
			rc = answer(host, done.stream, d);
	}
	return rc;
}

int accelerator_run(void)
{
	struct digest *slots[WINDOW_MAX];
	slmpm_peer host;
	int rc = slmpm_parent(&host);

	if (rc == -SLMPM_ESTATE)
		return slmpm_perror("slmpm_demo: --accelerator is for its own use");
	if (rc < 0)
		return slmpm_perror("slmpm_demo: accelerator");
	for (int i = 0; i < WINDOW_MAX; i++) {
		slots[i] = digest_new();
		if (!slots[i])
			return 1;
	}
	rc = work(host, slots);
	for (int i = 0; i < WINDOW_MAX; i++)
		digest_free(slots[i]);
	/* A host that ended early has nobody left to tell. */
	if (rc < 0 && rc != -SLMPM_EDEAD && rc != -SLMPM_ECLOSED)
		return slmpm_perror("slmpm_demo: accelerator");
	return rc < 0;
}
