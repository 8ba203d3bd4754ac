/* SPDX-License-Identifier: BSD-3-Clause */
/* Mailboxes: four words deep each way, in order, readable after their writer's end. */
#include "tests/dacs/pair.h"

#define DEPTH 4

/* ---- roles ---- */

/* Adds one to each word and sends it back; 0 ends it. */
static int role_add(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	do {
		OK(dacs_mailbox_read(&word, UP));
		word++;
		OK(dacs_mailbox_write(&word, UP));
	} while (word != 1);
	OK(dacs_exit());
	return 0;
}

/* Writes so many words as fast as it may, and ends; "die" without dacs_exit. */
static int role_write(int argc, char **argv)
{
	uint32_t many = (uint32_t)atoi(argv[0]);

	(void)argc;
	OK(dacs_init(0));
	for (uint32_t word = 1; word <= many; word++)
		OK(dacs_mailbox_write(&word, UP));
	if (argc > 1)
		_exit(0);
	OK(dacs_exit());
	return 0;
}

/* Reads nothing until a message comes; then what is there, and says how many. */
static int role_reader(int argc, char **argv)
{
	uint32_t many, word, sum = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(pair_recv(pair_parent(), 1, &many, 4, DACS_BYTE_SWAP_WORD));
	for (uint32_t i = 0; i < many; i++) {
		OK(dacs_mailbox_read(&word, UP));
		sum = sum * 10 + word;
	}
	OK(pair_send(pair_parent(), 2, &sum, 4, DACS_BYTE_SWAP_WORD));
	OK(pair_recv(pair_parent(), 1, &many, 4, DACS_BYTE_SWAP_WORD));
	OK(dacs_exit());
	return 0;
}

/* A long message and then a word: the host reads the word first. */
static int role_long_then_word(int argc, char **argv)
{
	enum { LONG = 400000 };
	unsigned char *data = malloc(LONG);
	uint32_t word = 7;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	pair_fill(data, LONG, 1);
	OK(pair_send(pair_parent(), 1, data, LONG, DACS_BYTE_SWAP_DISABLE));
	OK(dacs_mailbox_write(&word, UP));
	free(data);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static int words_go_both_ways(int argc, char **argv)
{
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("add", NULL);
	for (uint32_t i = 1; i < 2000; i++) {
		word = i * 2654435761U;
		OK(dacs_mailbox_write(&word, AT(c)));
		OK(dacs_mailbox_read(&word, AT(c)));
		CHECK(word == i * 2654435761U + 1, "word %u", i);
	}
	word = 0;
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_mailbox_read(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Exactly four words can be written before one is read. */
static int four_words_fit(int argc, char **argv)
{
	struct child c;
	uint32_t word, many = DEPTH;
	int32_t free_slot = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("reader", NULL);
	for (word = 1; word <= DEPTH; word++) {
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &free_slot));
		CHECK(free_slot, "full after %u words", word - 1);
		OK(dacs_mailbox_write(&word, AT(c)));
	}
	OK(dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &free_slot));
	CHECK(!free_slot, "a fifth word would fit");
	OK(pair_send(c, 1, &many, 4, DACS_BYTE_SWAP_WORD));
	OK(pair_recv(c, 2, &word, 4, DACS_BYTE_SWAP_WORD));
	CHECK(word == 1234, "read as %u", word);
	OK(dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &free_slot));
	CHECK(free_slot, "full although all was read");
	for (word = 1; word <= DEPTH; word++)
		OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &free_slot));
	CHECK(!free_slot, "more than four");
	OK(pair_send(c, 1, &many, 4, DACS_BYTE_SWAP_WORD));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* The fifth write waits; this end reads late and gets everything in order. */
static int a_writer_waits_for_its_reader(int argc, char **argv)
{
	struct child c;
	int32_t full = 0;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("write", "50");
	do
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), &full));
	while (!full);
	for (uint32_t want = 1; want <= 50; want++) {
		OK(dacs_mailbox_read(&word, AT(c)));
		CHECK(word == want, "%u instead of %u", word, want);
	}
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* A process that has ended, in order or not: its words stay until it is reaped. */
static int words_outlive_their_writer(int argc, char **argv)
{
	struct child c;
	de_id_t de;
	uint32_t word, n = 1;
	int32_t full, status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	for (int die = 0; die < 2; die++) {
		c = pair_start_on(de, "write", "4", die ? "die" : NULL);
		do
			OK(dacs_num_processes_running(de, &n));
		while (n);
		for (uint32_t want = 1; want <= 4; want++) {
			OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), &full));
			CHECK(full == 1, "no word %u", want);
			OK(dacs_mailbox_read(&word, AT(c)));
			CHECK(word == want, "%u instead of %u", word, want);
		}
		EXPECT(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), &full), DACS_ERR_DE_TERM);
		EXPECT(dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &full), DACS_ERR_DE_TERM);
		EXPECT(dacs_mailbox_read(&word, AT(c)), DACS_ERR_DE_TERM);
		EXPECT(dacs_mailbox_write(&word, AT(c)), DACS_ERR_DE_TERM);
		EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_FINISHED);
		EXPECT(dacs_mailbox_read(&word, AT(c)), DACS_ERR_INVALID_PID);
	}
	OK(dacs_release_de_list(1, &de));
	OK(dacs_exit());
	return 0;
}

/* A blocked read lets a posted receive go on: its sender writes the word only after it. */
static int a_blocked_read_moves_messages(int argc, char **argv)
{
	enum { LONG = 400000 };
	unsigned char *data = malloc(LONG);
	struct child c;
	dacs_wid_t wid;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("long", NULL);
	OK(dacs_wid_reserve(&wid));
	OK(dacs_recv(data, LONG, AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
	OK(dacs_mailbox_read(&word, AT(c)));
	CHECK(word == 7, "%u", word);
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(pair_filled(data, LONG, 1), "the message differs");
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(data);
	OK(dacs_exit());
	return 0;
}

static int bad_arguments_are_refused(int argc, char **argv)
{
	struct child c;
	uint32_t word = 0;
	int32_t status = 77;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	EXPECT(dacs_mailbox_read(&word, UP), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_mailbox_write(&word, DACS_DE_SELF, DACS_PID_SELF), DACS_ERR_INVALID_TARGET);
	c = pair_start("add", NULL);
	EXPECT(dacs_mailbox_read(NULL, AT(c)), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mailbox_write(NULL, AT(c)), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mailbox_test((DACS_TEST_MAILBOX_T)2, AT(c), &status), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_mailbox_read(&word, 0, c.pid), DACS_ERR_INVALID_DE);
	EXPECT(dacs_mailbox_write(&word, c.de + 1, c.pid), DACS_ERR_INVALID_DE);
	EXPECT(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, c.de, 0, &status), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mailbox_write(&word, c.de, DACS_PROCESS_ALL), DACS_ERR_INVALID_PID);
	CHECK(status == 77, "a refused test wrote its status");
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_mailbox_read(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"add", role_add},
	{"write", role_write},
	{"reader", role_reader},
	{"long", role_long_then_word},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"words go both ways", words_go_both_ways},
	{"four words fit", four_words_fit},
	{"a writer waits for its reader", a_writer_waits_for_its_reader},
	{"words outlive their writer", words_outlive_their_writer},
	{"a blocked read moves messages", a_blocked_read_moves_messages},
	{"bad arguments are refused", bad_arguments_are_refused},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
