/* SPDX-License-Identifier: BSD-3-Clause */
/* The 128 bits that both ends of a network connection know, and proofs that they do. */
#ifndef SLMPM_NET_SECRET_H
#define SLMPM_NET_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "slmpm/base/wire.h"

#define SIPHASH_SIZE 16 /* bytes, of the key and of the result */
#define SECRET_SIZE  SIPHASH_SIZE
#define SECRET_TEXT  (2 * SECRET_SIZE + 1) /* hex digits and the end */

struct secret {
	unsigned char bytes[SECRET_SIZE];
	bool known;
};

/* Exactly 32 hex digits; false, and SECRET as it was: something else. */
bool secret_parse(struct secret *secret, const char *text);
void secret_text(const struct secret *secret, char text[SECRET_TEXT]);
/* Makes one up; negative errno. */
int secret_make(struct secret *secret);
/* That of SLMPM_SECRET; not known when there is none. Negative SLMPM_E*, the detail set. */
int secret_configured(struct secret *secret);
/* What the side that connected (ACTIVE), or the other, says to show that it knows it: of these two
 * hellos alone. */
void secret_prove(const struct secret *secret, bool active, const struct wire_hello *connector,
		  const struct wire_hello *acceptor, unsigned char proof[SIPHASH_SIZE]);

/* SipHash-2-4 with 128 bits of result: a keyed hash that only who knows the key can make. */
void siphash(const unsigned char key[SIPHASH_SIZE], const void *data, size_t n,
	     unsigned char out[SIPHASH_SIZE]);

#endif
