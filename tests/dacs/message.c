/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: what arrives, in which order, and what is reported when it does not fit. */
#include "tests/dacs/pair.h"

#define BIG (600U << 10)

/* ---- roles ---- */

/* Sends back what comes on stream 0, on the stream that its first word names; 1 byte ends it. */
static int role_echo(int argc, char **argv)
{
	unsigned char *data = malloc(BIG);
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	for (;;) {
		uint32_t head[2]; /* stream, length */

		OK(pair_recv(pair_parent(), 0, head, sizeof(head), DACS_BYTE_SWAP_WORD));
		if (!head[1])
			break;
		OK(dacs_recv(data, head[1], UP, 1, wid, DACS_BYTE_SWAP_DISABLE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		OK(dacs_send(data, head[1], UP, head[0], wid, DACS_BYTE_SWAP_DISABLE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
	}
	free(data);
	OK(dacs_exit());
	return 0;
}

/* Numbered words, on streams 10 to 12 in turn, then one on 99, then ends at once. */
static int role_numbers(int argc, char **argv)
{
	uint32_t many = (uint32_t)atoi(argv[0]), i;
	dacs_wid_t wid;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	for (i = 0; i < many; i++) {
		OK(dacs_send(&i, sizeof(i), UP, 10 + i % 3, wid, DACS_BYTE_SWAP_WORD));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
	}
	OK(dacs_send(&i, sizeof(i), UP, 99, wid, DACS_BYTE_SWAP_WORD));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	OK(dacs_exit());
	return 0;
}

/* Short and long messages on one stream in turn: lengths tell whether one overtook another. */
static int role_mixed(int argc, char **argv)
{
	unsigned char *data[8];
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t len = i % 2 ? BIG - i : 32 + i;

		data[i] = malloc(BIG);
		pair_fill(data[i], len, i);
		OK(dacs_send(data[i], len, UP, 5, wid, DACS_BYTE_SWAP_DISABLE));
	}
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	for (uint32_t i = 0; i < 8; i++)
		free(data[i]);
	OK(dacs_exit());
	return 0;
}

/* A word on streams 1 to 4 in turn, mailbox words between them. */
static int role_any(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (word = 1; word <= 4; word++) {
		uint32_t mail = 100 + word;

		OK(dacs_mailbox_write(&mail, UP));
		OK(pair_send(pair_parent(), word, &word, 4, DACS_BYTE_SWAP_WORD));
	}
	OK(dacs_mailbox_read(&word, UP)); /* until all were looked at */
	OK(dacs_exit());
	return 0;
}

static int role_die(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(pair_send(pair_parent(), 1, &word, 4, DACS_BYTE_SWAP_DISABLE));
	OK(dacs_mailbox_read(&word, UP));
	_exit(0); /* without dacs_exit */
}

/* ---- cases ---- */

static void tell(struct child c, uint32_t stream, uint32_t len)
{
	uint32_t head[2] = {stream, len};

	OK(pair_send(c, 0, head, sizeof(head), DACS_BYTE_SWAP_WORD));
}

static int any_length_comes_back(int argc, char **argv)
{
	static const uint32_t lengths[] = {1,    2,     8,     63,    64,      255, 4096,
					   4097, 32768, 32769, 65536, BIG - 1, BIG};
	static const uint32_t streams[] = {0, 1, 7, 0x80000000U, DACS_STREAM_UB};
	unsigned char *out = malloc(BIG), *in = malloc(BIG);
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("echo", NULL);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t stream = streams[i % 5];

		pair_fill(out, lengths[i], (unsigned)i);
		memset(in, 0, BIG);
		tell(c, stream, lengths[i]);
		OK(pair_send(c, 1, out, lengths[i], DACS_BYTE_SWAP_DISABLE));
		/* The buffer may be longer than the message. */
		OK(pair_recv(c, stream, in, BIG, DACS_BYTE_SWAP_DISABLE));
		CHECK(pair_filled(in, lengths[i], (unsigned)i), "%u bytes differ", lengths[i]);
		CHECK(lengths[i] == BIG || in[lengths[i]] == 0, "a byte too many");
	}
	tell(c, 0, 0);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(out);
	free(in);
	OK(dacs_exit());
	return 0;
}

static int streams_are_apart_and_in_order(int argc, char **argv)
{
	struct child c;
	uint32_t word, next[3] = {0, 1, 2};

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("numbers", "300");
	OK(pair_recv(c, 99, &word, 4, DACS_BYTE_SWAP_WORD));
	CHECK(word == 300, "%u", word);
	for (int i = 0; i < 100; i++)
		for (uint32_t s = 2; s < 3; s--) {
			OK(pair_recv(c, 10 + s, &word, 4, DACS_BYTE_SWAP_WORD));
			CHECK(word == next[s], "stream %u: %u instead of %u", 10 + s, word,
			      next[s]);
			next[s] += 3;
		}
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Receives posted before and after the messages come match in the order posted. */
static int receives_match_in_posting_order(int argc, char **argv)
{
	enum { MANY = 60 };
	uint32_t words[MANY];
	dacs_wid_t wids[MANY];
	struct child c;
	uint32_t n = 1, word;
	de_id_t de;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	c = pair_start_on(de, "numbers", "180", NULL);
	for (int i = 0; i < MANY; i++) {
		OK(dacs_wid_reserve(&wids[i]));
		if (i == MANY / 2) /* half of them late */
			OK(pair_recv(c, 99, &word, 4, DACS_BYTE_SWAP_WORD));
		OK(dacs_recv(&words[i], 4, AT(c), 11, wids[i], DACS_BYTE_SWAP_WORD));
	}
	/* Waited for from the last to the first. */
	for (int i = MANY - 1; i >= 0; i--) {
		EXPECT(dacs_wait(wids[i]), DACS_WID_READY);
		CHECK(words[i] == 1 + 3 * (uint32_t)i, "receive %d got %u", i, words[i]);
		OK(dacs_wid_release(&wids[i]));
	}
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int long_and_short_do_not_overtake(int argc, char **argv)
{
	unsigned char *data[8];
	struct child c;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("mixed", NULL);
	OK(dacs_wid_reserve(&wid));
	for (uint32_t i = 0; i < 8; i++) {
		data[i] = malloc(BIG);
		OK(dacs_recv(data[i], BIG, AT(c), i % 3 == 2 ? DACS_STREAM_ALL : 5, wid,
			     DACS_BYTE_SWAP_DISABLE));
	}
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t len = i % 2 ? BIG - i : 32 + i;

		CHECK(pair_filled(data[i], len, i), "message %u", i);
		free(data[i]);
	}
	OK(dacs_wid_release(&wid));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int a_message_may_be_too_long(int argc, char **argv)
{
	unsigned char *out = malloc(BIG), in[64];
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("echo", NULL);
	for (uint32_t len = 65; len <= BIG; len = len * 4 > BIG && len < BIG ? BIG : len * 4) {
		pair_fill(out, len, len);
		tell(c, 3, len);
		OK(pair_send(c, 1, out, len, DACS_BYTE_SWAP_DISABLE));
		memset(in, 0x55, sizeof(in));
		EXPECT(pair_recv(c, 3, in, sizeof(in), DACS_BYTE_SWAP_DISABLE),
		       DACS_ERR_BUF_OVERFLOW);
		for (size_t i = 0; i < sizeof(in); i++)
			CHECK(in[i] == 0x55, "bytes moved");
		/* The stream goes on behind it. */
		tell(c, 3, 8);
		OK(pair_send(c, 1, out, 8, DACS_BYTE_SWAP_DISABLE));
		OK(pair_recv(c, 3, in, 8, DACS_BYTE_SWAP_DISABLE));
		CHECK(!memcmp(in, out, 8), "the next message differs");
	}
	tell(c, 0, 0);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(out);
	OK(dacs_exit());
	return 0;
}

/* Any stream means any of the user's: mailbox words between the messages stay mailbox words. */
static int any_stream_takes_the_next_message(int argc, char **argv)
{
	struct child c;
	uint32_t word = 0, mail;
	int32_t full = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("any", NULL);
	OK(pair_recv(c, 3, &word, 4, DACS_BYTE_SWAP_WORD));
	CHECK(word == 3, "%u", word);
	for (uint32_t want = 1; want <= 4; want += want == 2 ? 2 : 1) {
		OK(pair_recv(c, DACS_STREAM_ALL, &word, 4, DACS_BYTE_SWAP_WORD));
		CHECK(word == want, "%u instead of %u", word, want);
	}
	for (uint32_t i = 1; i <= 4; i++) {
		OK(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, AT(c), &full));
		CHECK(full, "word %u is missing", i);
		OK(dacs_mailbox_read(&mail, AT(c)));
		CHECK(mail == 100 + i, "mail %u", mail);
	}
	OK(dacs_mailbox_write(&mail, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Long messages both ways at once, all started before any is waited for. */
static int both_ways_at_once(int argc, char **argv)
{
	unsigned char *out = malloc(BIG), *in = malloc(BIG);
	struct child c;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("echo", NULL);
	OK(dacs_wid_reserve(&wid));
	for (unsigned i = 0; i < 4; i++) {
		pair_fill(out, BIG, i);
		OK(dacs_recv(in, BIG, AT(c), 8, wid, DACS_BYTE_SWAP_DISABLE));
		tell(c, 8, BIG);
		OK(dacs_send(out, BIG, AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(pair_filled(in, BIG, i), "turn %u", i);
	}
	tell(c, 0, 0);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_wid_release(&wid));
	free(out);
	free(in);
	OK(dacs_exit());
	return 0;
}

static int what_a_dead_process_sent_can_be_read(int argc, char **argv)
{
	struct child c;
	uint32_t word = 0, n;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("numbers", "30");
	do
		OK(dacs_num_processes_running(c.de, &n));
	while (n);
	for (uint32_t i = 0; i < 10; i++) {
		OK(pair_recv(c, 12, &word, 4, DACS_BYTE_SWAP_WORD));
		CHECK(word == 2 + 3 * i, "%u", word);
	}
	EXPECT(pair_recv(c, 12, &word, 4, DACS_BYTE_SWAP_WORD), DACS_ERR_DE_TERM);
	OK(pair_recv(c, 99, &word, 4, DACS_BYTE_SWAP_WORD));
	EXPECT(pair_send(c, 1, &word, 4, DACS_BYTE_SWAP_WORD), DACS_ERR_DE_TERM);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);

	/* Receives that wait when it goes end too. */
	c = pair_start("die", NULL);
	OK(pair_recv(c, 1, &word, 4, DACS_BYTE_SWAP_DISABLE));
	{
		dacs_wid_t wid;
		uint32_t a, b;

		OK(dacs_wid_reserve(&wid));
		OK(dacs_recv(&a, 4, AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
		OK(dacs_recv(&b, 4, AT(c), DACS_STREAM_ALL, wid, DACS_BYTE_SWAP_DISABLE));
		EXPECT(dacs_test(wid), DACS_WID_BUSY);
		OK(dacs_mailbox_write(&word, AT(c)));
		EXPECT(dacs_wait(wid), DACS_ERR_DE_TERM);
		OK(dacs_wid_release(&wid));
	}
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static DACS_ERR_T both(int receive, void *data, uint32_t len, de_id_t de, dacs_process_id_t pid,
		       uint32_t stream, dacs_wid_t wid, int swap)
{
	return receive ? dacs_recv(data, len, de, pid, stream, wid, (DACS_BYTE_SWAP_T)swap) :
			 dacs_send(data, len, de, pid, stream, wid, (DACS_BYTE_SWAP_T)swap);
}

static int bad_arguments_are_refused(int argc, char **argv)
{
	struct child c;
	uint32_t word = 0;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	EXPECT(dacs_send(&word, 4, UP, 0, wid, 0), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_recv(&word, 4, DACS_DE_SELF, DACS_PID_SELF, 0, wid, 0),
	       DACS_ERR_INVALID_TARGET);
	c = pair_start("echo", NULL);
	for (int receive = 0; receive < 2; receive++) {
		EXPECT(both(receive, NULL, 4, AT(c), 0, wid, 0), DACS_ERR_INVALID_ADDR);
		EXPECT(both(receive, &word, 0, AT(c), 0, wid, 0), DACS_ERR_INVALID_SIZE);
		EXPECT(both(receive, &word, 4, 0, c.pid, 0, wid, 0), DACS_ERR_INVALID_DE);
		EXPECT(both(receive, &word, 4, c.de, c.pid ^ 1, 0, wid, 0), DACS_ERR_INVALID_PID);
		EXPECT(both(receive, &word, 4, AT(c), DACS_STREAM_UB + 1, wid, 0),
		       DACS_ERR_INVALID_STREAM);
		EXPECT(both(receive, &word, 4, AT(c), 0, wid + 1, 0), DACS_ERR_INVALID_WID);
		EXPECT(both(receive, &word, 4, AT(c), 0, DACS_INVALID_WID, 0),
		       DACS_ERR_INVALID_WID);
		EXPECT(both(receive, &word, 4, AT(c), 0, 0, 0), DACS_ERR_INVALID_WID);
		EXPECT(both(receive, &word, 4, AT(c), 0, wid, 4), DACS_ERR_INVALID_ATTR);
		EXPECT(both(receive, &word, 4, AT(c), 0, wid, -1), DACS_ERR_INVALID_ATTR);
	}
	EXPECT(dacs_send(&word, 4, AT(c), DACS_STREAM_ALL, wid, 0), DACS_ERR_INVALID_STREAM);
	EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);
	tell(c, 0, 0);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	EXPECT(dacs_recv(&word, 4, AT(c), 0, wid, 0), DACS_ERR_INVALID_DE);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"echo", role_echo}, {"numbers", role_numbers}, {"mixed", role_mixed},
	{"any", role_any},   {"die", role_die},         {NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"any length comes back", any_length_comes_back},
	{"streams are apart and in order", streams_are_apart_and_in_order},
	{"receives match in posting order", receives_match_in_posting_order},
	{"long and short do not overtake", long_and_short_do_not_overtake},
	{"a message may be too long", a_message_may_be_too_long},
	{"any stream takes the next message", any_stream_takes_the_next_message},
	{"both ways at once", both_ways_at_once},
	{"what a dead process sent can be read", what_a_dead_process_sent_can_be_read},
	{"bad arguments are refused", bad_arguments_are_refused},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
