/* SPDX-License-Identifier: BSD-3-Clause */
/* How a peer made by hand proves that it knows the secret, by OpenSSL: for tests that link with
 * -lcrypto. */
#ifndef TESTS_LIB_RAW_PROOF_H
#define TESTS_LIB_RAW_PROOF_H

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include "tests/lib/raw_stream.h"
#include "tests/lib/test.h"

/* SipHash-2-4 of 128 bits: side (8 bytes: 1 who connected, 2 the other), who connected's hello, the
 * other's. */
static inline void raw_proof(const struct raw_stream *s, const struct wire_hello hellos[2],
			     int side, struct wire_proof *proof)
{
	unsigned char said[8 + 2 * sizeof(struct wire_hello)] = {(unsigned char)side};
	size_t size = sizeof(proof->proof);
	OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
			       OSSL_PARAM_construct_end()};
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);

	memcpy(said + 8, hellos, 2 * sizeof(*hellos));
	CHECK(c && EVP_MAC_init(c, s->secret, sizeof(s->secret), params) == 1 &&
		      EVP_MAC_update(c, said, sizeof(said)) == 1 &&
		      EVP_MAC_final(c, proof->proof, &size, size) == 1,
	      "OpenSSL has no SipHash");
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
}

static inline void raw_prove(const struct raw_stream *s, int side, struct wire_proof *proof)
{
	const struct wire_hello hellos[2] = {s->hello, s->heard};

	raw_proof(s, hellos, side, proof);
}

/* Of who was called. */
static inline void raw_prove_called(const struct raw_stream *s, int side, struct wire_proof *proof)
{
	const struct wire_hello hellos[2] = {s->heard, s->hello};

	raw_proof(s, hellos, side, proof);
}

/* The hellos and both proofs: the way by which the other side may be reached here, if there is
 * one. */
static inline struct wire_near raw_stream_invited(struct raw_stream *s)
{
	struct wire_proof ours = {.head.type = 0}, theirs, right;

	raw_stream_meet(s);
	raw_prove(s, 1, &ours);
	CHECK(raw_stream_say_packet(s->fd, WIRE_PROOF, &ours, sizeof(ours)), "gone: proof");
	CHECK(raw_stream_hear(s->fd, &theirs, sizeof(theirs)) == sizeof(theirs) &&
		      LITTLE_32(theirs.head.type) == WIRE_PROOF,
	      "it proves nothing");
	raw_prove(s, 2, &right);
	CHECK(!memcmp(right.proof, theirs.proof, sizeof(right.proof)),
	      "it does not know the secret");
	return theirs.near;
}

static inline void raw_stream_greet(struct raw_stream *s)
{
	(void)raw_stream_invited(s);
}

/* The same of who was called. */
static inline void raw_stream_greeted(struct raw_stream *s)
{
	struct wire_proof ours = {.head.type = 0}, theirs, right;

	raw_stream_meet(s);
	CHECK(raw_stream_hear(s->fd, &theirs, sizeof(theirs)) == sizeof(theirs) &&
		      LITTLE_32(theirs.head.type) == WIRE_PROOF,
	      "it proves nothing");
	raw_prove_called(s, 1, &right);
	CHECK(!memcmp(right.proof, theirs.proof, sizeof(right.proof)),
	      "it does not know the secret");
	raw_prove_called(s, 2, &ours);
	CHECK(raw_stream_say_packet(s->fd, WIRE_PROOF, &ours, sizeof(ours)), "gone: proof");
}

#endif
