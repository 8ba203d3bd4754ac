/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/* Strangers on the network: who does not know the secret; and who does, and lies. */
#include <string.h>
#include <unistd.h>

#include "tests/lib/raw_proof.h"
#include "tests/lib/stream_liar.h"

static void say_proof(struct raw_stream *s, struct wire_proof *proof)
{
	raw_stream_say_packet(s->fd, WIRE_PROOF, proof, sizeof(*proof));
}

static void no_proof(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	say_proof(s, &proof);
}

static void another_secret(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	s->secret[15] ^= 1;
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void proof_of_other_side(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	raw_prove(s, 2, &proof);
	say_proof(s, &proof);
}

/* Somebody who listened in says what an honest peer said. */
static void proof_of_yesterday(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};
	struct raw_stream honest;

	raw_stream_begin(&honest, stream_lie_port, stream_lie_secret);
	raw_stream_meet(&honest);
	raw_prove(&honest, 1, &proof);
	close(honest.fd);
	s->hello = honest.hello;
	raw_stream_meet(s);
	say_proof(s, &proof);
}

static void changed_hello(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	s->hello.features = ~s->hello.features; /* as somebody on the way would */
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

/* ---- who does, and lies ---- */

static void other_fabric(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	memset(s->hello.fabric, 'f', sizeof(s->hello.fabric));
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void no_credit(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	s->hello.eager_credit = 0;
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void proof_twice(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_greet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void send_this_round(struct raw_stream *s, uint32_t number, uint32_t length)
{
	struct wire_round round = {.round = LITTLE_32(number), .blob_length = LITTLE_32(length)};

	raw_stream_greet(s);
	raw_stream_say_packet(s->fd, WIRE_ROUND, &round, sizeof(round));
}

static void empty_round(struct raw_stream *s)
{
	send_this_round(s, 0, 0);
}

static void round_of_zeros(struct raw_stream *s)
{
	send_this_round(s, 0, 124);
}

static void long_blob(struct raw_stream *s)
{
	send_this_round(s, 0, UINT32_MAX);
}

static void later_round(struct raw_stream *s)
{
	send_this_round(s, 7, 0);
}

static void grant(struct raw_stream *s)
{
	raw_stream_greet(s);
	raw_stream_claim(s, WIRE_GRANT, sizeof(struct wire_grant));
}

static void refuse_oddly(struct raw_stream *s)
{
	struct wire_bye bye;

	memset(&bye, 0x1b, sizeof(bye)); /* no end, and nothing to print */
	raw_stream_greet(s);
	raw_stream_say_packet(s->fd, WIRE_BYE, &bye, sizeof(bye));
}

static const struct stream_lie lies[] = {
	{"no proof", no_proof, "secrets of the two sides differ"},
	{"another secret", another_secret, "secrets of the two sides differ"},
	{"the other side's proof", proof_of_other_side, "secrets of the two sides differ"},
	{"another day's proof", proof_of_yesterday, "secrets of the two sides differ"},
	{"a hello that was changed", changed_hello, "secrets of the two sides differ"},
	{"another fabric", other_fabric, "another fabric"},
	{"no credit", no_credit, "limits"},
	{"proof twice", proof_twice, "out of turn"},
	{"an empty round", empty_round, "impossible"},
	{"a round of zeros", round_of_zeros, "impossible"},
	{"a blob without end", long_blob, "malformed"},
	{"a later round", later_round, "malformed"},
	{"a grant", grant, "control packet"},
	{"a strange goodbye", refuse_oddly, "it says: ?"},
};

int main(void)
{
	stream_liar_begin();
	stream_liar_tell(&(struct stream_lies){
		.lies = lies, .count = sizeof(lies) / sizeof(*lies), .secrets = 5});
	return 0;
}
