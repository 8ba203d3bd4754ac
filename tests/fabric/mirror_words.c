/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * What a word of a mirror means to a peer, perhaps of another byte order: the bytes as they are in
 * memory, each word whole. Each side stores words of every width, which the other reads.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE 4096

enum { DONE = 1 };

static const uint64_t value = UINT64_C(0x0123456789abcdef);

struct words {
	uint8_t byte;
	uint16_t half;
	uint32_t word;
	uint64_t doubled;
	unsigned char text[SIZE - 16];
};

static void store(slmpm_mirror m, struct words *w)
{
	static unsigned char text[sizeof(w->text)];

	actor_fill(text, 3, sizeof(text));
	OK(slmpm_mirror_store8(m, &w->byte, (uint8_t)value));
	OK(slmpm_mirror_store16(m, &w->half, (uint16_t)value));
	OK(slmpm_mirror_store32(m, &w->word, (uint32_t)value));
	OK(slmpm_mirror_store64(m, &w->doubled, value));
	OK(slmpm_mirror_copy(m, w->text, text, sizeof(text)));
	OK(slmpm_mirror_flush(m, PATIENCE));
}

static bool is_of_other_order(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return (info.big_endian != 0) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static void inspect(const struct words *w, bool other)
{
	uint16_t half = (uint16_t)value;
	uint32_t word = (uint32_t)value;

	CHECK(w->byte == (uint8_t)value, "a byte is 0x%x", w->byte);
	CHECK(w->half == (other ? __builtin_bswap16(half) : half), "16 bits are 0x%x", w->half);
	CHECK(w->word == (other ? __builtin_bswap32(word) : word), "32 bits are 0x%x", w->word);
	CHECK(w->doubled == (other ? __builtin_bswap64(value) : value), "64 bits are 0x%llx",
	      (unsigned long long)w->doubled);
	CHECK(actor_filled(w->text, 3, sizeof(w->text)), "bytes");
}

/* Each side leads the mirror of its own tag. */
static void swap(slmpm_peer peer, uint32_t own, uint32_t theirs)
{
	static struct words mine, yours;
	slmpm_mirror out, in;
	char byte;

	memset(&mine, 0, sizeof(mine));
	memset(&yours, 0, sizeof(yours));
	OK(slmpm_mirror_create((slmpm_ctx){0}, &mine, SIZE, NULL, &out));
	OK(slmpm_mirror_create((slmpm_ctx){0}, &yours, SIZE, NULL, &in));
	(void)slmpm_mirror_attach(out, peer, own, SLMPM_MIRROR_LEAD, 0);
	OK(slmpm_mirror_attach(in, peer, theirs, SLMPM_MIRROR_FOLLOW, PATIENCE));
	OK(slmpm_mirror_attach(out, peer, own, SLMPM_MIRROR_LEAD, PATIENCE));
	store(out, &mine);
	OK(slmpm_send(peer, DONE, "", 1, PATIENCE));
	EXPECT(slmpm_recv(peer, DONE, &byte, 1, NULL, PATIENCE), 1);
	inspect(&yours, is_of_other_order(peer));
	OK(slmpm_mirror_destroy(in));
	OK(slmpm_mirror_destroy(out));
}

static int far_side(slmpm_peer host, char **unused)
{
	(void)unused;
	swap(host, 2, 1);
	return 0;
}

static int under(const struct setting *s)
{
	slmpm_peer far;

	(void)s;
	far = actor_spawn("far", NULL, NULL);
	swap(far, 1, 2);
	actor_join(far, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"far", far_side}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return settings_each(under, 20);
}
