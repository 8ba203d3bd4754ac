/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and what is said of the way they go. */
#include "tests/lib/chosen.h"

unsigned char chosen_bytes[KIB(1024)];

void chosen_expect(const struct slmpm_mode *mode, const char *what, int protocol,
		   enum slmpm_reason reason)
{
	CHECK(mode->protocol == protocol && mode->reason == reason, "%s: %s (%s), not %s (%s)",
	      what, slmpm_reason_name((int)mode->reason), "chosen", slmpm_reason_name((int)reason),
	      "expected");
}

void chosen_post(slmpm_peer peer, size_t len, uint32_t flags, struct chosen *chosen)
{
	static uint32_t number;
	const struct slmpm_how how = {
		.size = sizeof(how), .flags = flags, .imm = number + 1, .timeout_ms = -1};
	const struct slmpm_iov iov = {chosen_bytes, len};

	OK(slmpm_sendv(peer, 1, &iov, 1, &how, &chosen->req));
	number++;
}

void chosen_send(slmpm_peer peer, size_t len, uint32_t flags, int protocol,
		 enum slmpm_reason reason, struct chosen *chosen)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};

	chosen_post(peer, len, flags, chosen);
	OK(slmpm_req_mode(chosen->req, &mode));
	CHECK(mode.op == SLMPM_OP_SEND && mode.fabric[0], "a message over a fabric");
	chosen_expect(&mode, "under way", protocol, reason);
	chosen->protocol = protocol;
	chosen->reason = reason;
}

void chosen_end(struct chosen *chosen)
{
	struct slmpm_mode mode = {.size = sizeof(mode)};
	struct slmpm_done done;

	EXPECT(slmpm_wait(&chosen->req, 1, &done, PATIENCE), 0);
	CHECK(done.status == 0, "ended with %d", done.status);
	mode.protocol = done.protocol;
	mode.reason = done.reason;
	chosen_expect(&mode, "done", chosen->protocol, chosen->reason);
}
