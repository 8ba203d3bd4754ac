/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 by OpenSSL. */
#include "apps/slmpm_demo/demo.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define STEP 2048 /* bytes */

struct digest {
	EVP_MD_CTX *ctx;
	EVP_MD *sha256; /* fetched once: looking it up costs more than hashing a small file */
	uint64_t bytes;
	bool begun;
};

/* No input makes these calls fail; what could is a broken OpenSSL. */
static void must(int ok)
{
	if (ok == 1)
		return;
	fprintf(stderr, "slmpm_demo: OpenSSL cannot compute SHA-256\n");
	exit(1);
}

struct digest *digest_new(void)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->ctx = EVP_MD_CTX_new();
	d->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	must(d->ctx && d->sha256);
	return d;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->ctx);
	EVP_MD_free(d->sha256);
	free(d);
}

static void begin(struct digest *d)
{
	if (!d->begun)
		must(EVP_DigestInit_ex2(d->ctx, d->sha256, NULL));
	d->begun = true;
}

/* What the host has just written lies in another processor's cache: it comes while the bytes before
 * it are hashed. */
static void prefetch(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i += 64)
		__builtin_prefetch(data + i);
}

void digest_add(struct digest *d, const void *data, size_t len)
{
	const char *at = data;

	begin(d);
	d->bytes += len;
	for (size_t n; len > STEP; at += n, len -= n) {
		n = STEP;
		prefetch(at + n, len - n < STEP ? len - n : STEP);
		must(EVP_DigestUpdate(d->ctx, at, n));
	}
	must(EVP_DigestUpdate(d->ctx, at, len));
}

void digest_drop(struct digest *d)
{
	d->begun = false;
	d->bytes = 0;
}

uint64_t digest_end(struct digest *d, unsigned char result[DIGEST_SIZE])
{
	uint64_t bytes = d->bytes;

	begin(d);
	must(EVP_DigestFinal_ex(d->ctx, result, NULL));
	digest_drop(d);
	return bytes;
}
