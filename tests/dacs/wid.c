/* SPDX-License-Identifier: BSD-3-Clause */
/* Wait identifiers: how many there are, and what each state answers. */
#include "tests/dacs/pair.h"

#define MANY 1024

/* Sends a word on stream 1 each time it gets a mailbox word; 0 ends it. */
static int role_on_demand(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (!word)
			break;
		OK(pair_send(pair_parent(), 1, &word, 4, DACS_BYTE_SWAP_WORD));
	}
	OK(dacs_exit());
	return 0;
}

static int there_are_enough_and_they_run_out(int argc, char **argv)
{
	static dacs_wid_t wids[MANY], extra;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (int i = 0; i < MANY; i++) {
		OK(dacs_wid_reserve(&wids[i]));
		CHECK(wids[i] != 0 && wids[i] != DACS_INVALID_WID, "wid %#x", wids[i]);
		for (int k = 0; k < i; k++)
			CHECK(wids[k] != wids[i], "wid %#x twice", wids[i]);
	}
	extra = 5;
	EXPECT(dacs_wid_reserve(&extra), DACS_ERR_NO_WIDS);
	CHECK(extra == 5, "a refused reserve wrote the wid");
	OK(dacs_wid_release(&wids[500]));
	CHECK(wids[500] == DACS_INVALID_WID, "a released wid is %#x", wids[500]);
	OK(dacs_wid_reserve(&wids[500]));
	for (int i = 0; i < MANY; i++)
		OK(dacs_wid_release(&wids[i]));
	OK(dacs_exit());
	return 0;
}

static int a_released_wid_is_none(int argc, char **argv)
{
	dacs_wid_t wid, old, none = DACS_INVALID_WID;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	EXPECT(dacs_wid_reserve(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_wid_release(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_wid_release(&none), DACS_ERR_INVALID_WID);
	OK(dacs_wid_reserve(&wid));
	old = wid;
	EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);
	EXPECT(dacs_wait(wid), DACS_ERR_WID_NOT_ACTIVE);
	OK(dacs_wid_release(&wid));
	EXPECT(dacs_test(old), DACS_ERR_INVALID_WID);
	EXPECT(dacs_wait(old), DACS_ERR_INVALID_WID);
	EXPECT(dacs_wid_release(&old), DACS_ERR_INVALID_WID);
	OK(dacs_wid_reserve(&wid)); /* in the same place, but another one */
	EXPECT(dacs_test(old), DACS_ERR_INVALID_WID);
	EXPECT(dacs_test(0), DACS_ERR_INVALID_WID);
	EXPECT(dacs_test(DACS_INVALID_WID), DACS_ERR_INVALID_WID);
	OK(dacs_exit());
	return 0;
}

static int each_state_has_its_answer(int argc, char **argv)
{
	struct child c;
	dacs_wid_t wid, same;
	uint32_t word = 3, got[3] = {0};

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("on demand", NULL);
	OK(dacs_wid_reserve(&wid));
	same = wid;
	for (int i = 0; i < 3; i++)
		OK(dacs_recv(&got[i], 4, AT(c), 1, wid, DACS_BYTE_SWAP_WORD));
	EXPECT(dacs_test(wid), DACS_WID_BUSY);
	EXPECT(dacs_wid_release(&wid), DACS_ERR_WID_ACTIVE);
	CHECK(wid == same, "a refused release changed the wid");
	for (int i = 0; i < 2; i++)
		OK(dacs_mailbox_write(&word, AT(c)));
	while (!got[1]) /* two of three have come: still busy */
		EXPECT(dacs_test(wid), DACS_WID_BUSY);
	EXPECT(dacs_test(wid), DACS_WID_BUSY);
	OK(dacs_mailbox_write(&word, AT(c)));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(got[2] == 3, "got %u", got[2]);
	EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);

	/* One error among them is what the wid reports, once. */
	OK(dacs_recv(&got[0], 4, AT(c), 1, wid, DACS_BYTE_SWAP_WORD));
	OK(dacs_recv(&got[1], 2, AT(c), 1, wid, DACS_BYTE_SWAP_WORD));
	OK(dacs_recv(&got[2], 4, AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
	for (int i = 0; i < 3; i++)
		OK(dacs_mailbox_write(&word, AT(c)));
	EXPECT(dacs_wait(wid), DACS_ERR_BUF_OVERFLOW);
	EXPECT(dacs_wait(wid), DACS_ERR_WID_NOT_ACTIVE);
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_recv(&got[0], 4, AT(c), 1, wid, DACS_BYTE_SWAP_WORD));
	EXPECT(dacs_wait(wid), DACS_WID_READY);

	/* Done but never asked about: may be released. */
	OK(dacs_send(&word, 4, AT(c), 9, wid, DACS_BYTE_SWAP_WORD));
	OK(dacs_wid_release(&wid));
	word = 0;
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* A transfer still open when its process is reaped: an error, not a hang. */
static int reaping_ends_transfers(int argc, char **argv)
{
	struct child c;
	dacs_wid_t wid;
	uint32_t word = 0, got;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("on demand", NULL);
	OK(dacs_wid_reserve(&wid));
	OK(dacs_recv(&got, 4, AT(c), 77, wid, DACS_BYTE_SWAP_WORD));
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	EXPECT(dacs_wait(wid), DACS_ERR_DE_TERM);
	/* And when the runtime ends. */
	c = pair_start("on demand", NULL);
	word = 5;
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(pair_recv(c, 1, &got, 4, DACS_BYTE_SWAP_WORD));
	OK(dacs_recv(&got, 4, AT(c), 77, wid, DACS_BYTE_SWAP_WORD));
	word = 0;
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_exit());
	EXPECT(dacs_wait(wid), DACS_ERR_NOT_INITIALIZED);
	return 0;
}

static const struct pair_entry roles[] = {{"on demand", role_on_demand}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"there are enough, and they run out", there_are_enough_and_they_run_out},
	{"a released wid is none", a_released_wid_is_none},
	{"each state has its answer", each_state_has_its_answer},
	{"reaping ends transfers", reaping_ends_transfers},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
