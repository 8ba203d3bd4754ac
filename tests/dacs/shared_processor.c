/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Host and accelerator on one processor, as under a batch system, and neither waits: dacs_test and
 * dacs_mailbox_test that find nothing give the processor to the other before long. Looks in vain
 * are counted.
 */
#include <limits.h>

#include "tests/dacs/pair.h"
#include "tests/lib/one_processor.h"

#define TURNS 50 /* of a batch */
#define TRIES                                                                                      \
	20 /* batches: one has to do, for behind others' computations none yields for a while */
#define MOST 100 /* looks in vain a turn, on average */

static uint32_t word;
static dacs_wid_t wid;

typedef long exchange_fn(struct child c);

static long test_for(void)
{
	int64_t until = pair_now_ms() + PAIR_PATIENCE;
	DACS_ERR_T rc;
	long vain = 0;

	while ((rc = dacs_test(wid)) == DACS_WID_BUSY && (++vain % 1000 || pair_now_ms() < until))
		;
	CHECK(rc == DACS_WID_READY, "dacs_test returned %s", dacs_strerror(rc));
	return vain;
}

static long get_message(struct child c)
{
	OK(dacs_recv(&word, sizeof(word), AT(c), 0, wid, DACS_BYTE_SWAP_WORD));
	return test_for();
}

static long put_message(struct child c)
{
	OK(dacs_send(&word, sizeof(word), AT(c), 0, wid, DACS_BYTE_SWAP_WORD));
	return test_for();
}

static long get_word(struct child c)
{
	int64_t until = pair_now_ms() + PAIR_PATIENCE;
	int32_t there = 0;
	long vain = -1;

	do {
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), &there));
		CHECK(++vain % 1000 || pair_now_ms() < until, "no word has come");
	} while (!there);
	OK(dacs_mailbox_read(&word, AT(c)));
	return vain;
}

static long put_word(struct child c)
{
	OK(dacs_mailbox_write(&word, AT(c)));
	return 0;
}

static const struct kind {
	const char *name;
	exchange_fn *put, *get;
} kinds[] = {
	{"dacs_test", put_message, get_message},
	{"dacs_mailbox_test", put_word, get_word},
};

/* Says who it is, then gives back what it gets, until that is 0. */
static int role_answers(int argc, char **argv)
{
	const struct kind *k = &kinds[atoi(argv[0])];

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	word = (uint32_t)getpid();
	(void)k->put(pair_parent());
	do {
		(void)k->get(pair_parent());
		(void)k->put(pair_parent());
	} while (word);
	OK(dacs_exit());
	return 0;
}

/* Looks in vain of a batch; -1: others had the processor all the time. */
static long batch(const struct kind *k, struct child c, pid_t other)
{
	for (int64_t until = pair_now_ms() + PAIR_PATIENCE; pair_now_ms() < until;) {
		struct one_processor p = one_processor_begin(other);
		long vain = 0;

		for (uint32_t i = 1; i <= TURNS; i++) {
			word = i;
			vain += k->put(c);
			vain += k->get(c);
			CHECK(word == i, "word %u, not %u", word, i);
		}
		if (one_processor_was_ours(&p))
			return vain;
	}
	return -1;
}

static bool skipped;

static int looks_give_way(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	for (int k = 0; k < 2; k++) {
		struct child c = pair_start("answers", k ? "1" : "0");
		long vain = LONG_MAX;
		pid_t other;

		(void)kinds[k].get(c);
		other = (pid_t)word;
		for (int i = 0; i < TRIES && vain > TURNS * MOST; i++)
			vain = batch(&kinds[k], c, other);
		word = 0;
		(void)kinds[k].put(c);
		(void)kinds[k].get(c);
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
		skipped |= vain < 0;
		CHECK(vain <= TURNS * MOST, "%s: %ld looks in vain in %d round trips",
		      kinds[k].name, vain, TURNS);
	}
	OK(dacs_exit());
	return 0;
}

int main(int argc, char **argv)
{
	static const struct pair_entry cases[] = {{"looks give way", looks_give_way}, {NULL, NULL}};
	static const struct pair_entry roles[] = {{"answers", role_answers}, {NULL, NULL}};
	int rc;

	if (argc == 1 && !one_processor_bind()) {
		printf("no processor can be chosen here\n");
		return 77;
	}
	rc = pair_main(argc, argv, cases, roles);
	if (skipped)
		printf("others compute on the processor all the time\n");
	return skipped ? 77 : rc;
}
