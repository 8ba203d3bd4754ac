/* SPDX-License-Identifier: BSD-3-Clause */
/* Swap codes of messages: both ends have to name the same, early or late, or nothing moves. */
#include "tests/dacs/pair.h"

#define BIG (600U << 10)

/* Each swap code on its stream, a short and a long one, then a plain message. */
static int role_swaps(int argc, char **argv)
{
	unsigned char *data = malloc(BIG);

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (unsigned swap = 0; swap < 4; swap++)
		for (unsigned big = 0; big < 2; big++) {
			uint32_t len = big ? BIG : 24;

			pair_fill(data, len, swap);
			OK(pair_send(pair_parent(), swap, data, len, (DACS_BYTE_SWAP_T)swap));
			OK(pair_send(pair_parent(), swap, "after", 6, DACS_BYTE_SWAP_DISABLE));
		}
	free(data);
	OK(dacs_exit());
	return 0;
}

/* Only where both ends name the same code does anything move. */
static int swap_codes_have_to_agree(int argc, char **argv)
{
	unsigned char *data = malloc(BIG), *same = malloc(BIG);
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (unsigned mine = 0; mine < 4; mine++) {
		c = pair_start("swaps", NULL);
		for (unsigned swap = 0; swap < 4; swap++)
			for (unsigned big = 0; big < 2; big++) {
				char after[6] = "";

				memset(data, 0xaa, BIG);
				memset(same, 0xaa, BIG);
				EXPECT(pair_recv(c, swap, data, BIG, (DACS_BYTE_SWAP_T)mine),
				       mine == swap ? DACS_SUCCESS : DACS_ERR_BYTESWAP_MISMATCH);
				/* Both ends have one byte order here: nothing is swapped. */
				if (mine == swap)
					CHECK(pair_filled(data, big ? BIG : 24, swap),
					      "swap %u changed the bytes", swap);
				else
					CHECK(!memcmp(data, same, BIG), "bytes moved");
				OK(pair_recv(c, swap, after, 6, DACS_BYTE_SWAP_DISABLE));
				CHECK(!strcmp(after, "after"), "the next message is lost");
			}
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
	}
	free(data);
	free(same);
	OK(dacs_exit());
	return 0;
}

/* The same for receives that were posted long before, several at once. */
static int a_mismatch_is_found_on_posted_receives(int argc, char **argv)
{
	unsigned char small[24], *big = malloc(BIG), *spare = malloc(BIG);
	char after[2][6];
	dacs_wid_t bad, good;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("swaps", NULL);
	OK(dacs_wid_reserve(&bad));
	OK(dacs_wid_reserve(&good));
	memset(small, 1, sizeof(small));
	memset(big, 1, BIG);
	OK(dacs_recv(small, sizeof(small), AT(c), 2, bad, DACS_BYTE_SWAP_HALF_WORD));
	OK(dacs_recv(after[0], 6, AT(c), 2, good, DACS_BYTE_SWAP_DISABLE));
	OK(dacs_recv(big, BIG, AT(c), 2, bad, DACS_BYTE_SWAP_HALF_WORD));
	OK(dacs_recv(after[1], 6, AT(c), 2, good, DACS_BYTE_SWAP_DISABLE));
	/* The accelerator works through streams 0 and 1 first. */
	for (unsigned swap = 0; swap < 2; swap++)
		for (unsigned i = 0; i < 4; i++)
			(void)pair_recv(c, swap, spare, BIG, DACS_BYTE_SWAP_DISABLE);
	EXPECT(dacs_wait(bad), DACS_ERR_BYTESWAP_MISMATCH);
	EXPECT(dacs_wait(good), DACS_WID_READY);
	CHECK(!strcmp(after[0], "after") && !strcmp(after[1], "after"), "neighbours suffered");
	for (size_t i = 0; i < BIG; i++)
		CHECK(big[i] == 1 && (i >= sizeof(small) || small[i] == 1), "bytes moved");
	for (unsigned i = 0; i < 4; i++)
		(void)pair_recv(c, 3, spare, BIG, DACS_BYTE_SWAP_DISABLE);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_wid_release(&bad));
	OK(dacs_wid_release(&good));
	free(big);
	free(spare);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {{"swaps", role_swaps}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"swap codes have to agree", swap_codes_have_to_agree},
	{"a mismatch is found on posted receives", a_mismatch_is_found_on_posted_receives},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
