/* SPDX-License-Identifier: BSD-3-Clause */
/* What the selector has chosen for a request, as requests, completions and peers tell it. */
#ifndef TESTS_LIB_CHOSEN_H
#define TESTS_LIB_CHOSEN_H

#include "tests/lib/actor.h"

#define KIB(n) ((size_t)(n) << 10)

/* What is sent and put from: filled by whoever wants to check it. */
extern unsigned char chosen_bytes[KIB(1024)];

struct chosen {
	slmpm_req req;
	int protocol;
	enum slmpm_reason reason;
};

void chosen_expect(const struct slmpm_mode *mode, const char *what, int protocol,
		   enum slmpm_reason reason);
/* A message of LEN bytes begins; its number is in .imm: 1, 2, ... */
void chosen_post(slmpm_peer peer, size_t len, uint32_t flags, struct chosen *chosen);
/* The same, and it goes so. */
void chosen_send(slmpm_peer peer, size_t len, uint32_t flags, int protocol,
		 enum slmpm_reason reason, struct chosen *chosen);
/* It has ended well, and went as was said. */
void chosen_end(struct chosen *chosen);

#endif
