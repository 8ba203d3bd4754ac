/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* A program in the middle: accelerator upward, host downward, both at once. */
#include "tests/dacs/pair.h"

#define LONG (200U << 10)

/* Adds its depth to what comes from above, and hands it down as long as ARGV says. */
static int role_level(int argc, char **argv)
{
	int depth = atoi(argv[0]);
	unsigned char *data = malloc(LONG);
	struct child c = {0, 0};
	uint32_t word;
	char next[16];

	(void)argc;
	OK(dacs_init(0));
	if (depth) {
		snprintf(next, sizeof(next), "%d", depth - 1);
		c = pair_start("level", next);
	}
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (depth) {
			OK(dacs_mailbox_write(&word, AT(c)));
		}
		if (!word)
			break;
		OK(pair_recv(pair_parent(), 1, data, LONG, DACS_BYTE_SWAP_DISABLE));
		if (depth) {
			OK(pair_send(c, 1, data, LONG, DACS_BYTE_SWAP_DISABLE));
			OK(pair_recv(c, 2, data, LONG, DACS_BYTE_SWAP_DISABLE));
			OK(dacs_mailbox_read(&word, AT(c)));
		}
		OK(pair_send(pair_parent(), 2, data, LONG, DACS_BYTE_SWAP_DISABLE));
		word++;
		OK(dacs_mailbox_write(&word, UP));
	}
	if (depth)
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(data);
	OK(dacs_exit());
	return 0;
}

static int role_sits(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mailbox_write(&word, UP));
	EXPECT(dacs_mailbox_read(&word, UP), DACS_ERR_DE_TERM);
	OK(dacs_exit());
	return 0;
}

/* Starts one below it and ends without a word: the one below is its business. */
static int role_careless(int argc, char **argv)
{
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("sits", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	OK(dacs_exit());
	return 0;
}

/* Siblings and grandchildren cannot be addressed. */
static int role_stranger(int argc, char **argv)
{
	struct child other = {(de_id_t)strtoul(argv[0], NULL, 0), strtoull(argv[1], NULL, 0)};
	uint32_t word = 1;
	dacs_wid_t wid;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	EXPECT(dacs_mailbox_write(&word, AT(other)), DACS_ERR_INVALID_DE);
	EXPECT(dacs_send(&word, 4, AT(other), 0, wid, DACS_BYTE_SWAP_WORD), DACS_ERR_INVALID_DE);
	EXPECT(dacs_mailbox_write(&word, DACS_DE_PARENT, 1), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mailbox_write(&word, DACS_DE_SELF, DACS_PID_SELF), DACS_ERR_INVALID_TARGET);
	OK(dacs_exit());
	return 0;
}

/* Puts a pattern into what the one above shares. */
static int role_leaf(int argc, char **argv)
{
	unsigned char *data = malloc(LONG);
	dacs_remote_mem_t mem;
	dacs_wid_t wid;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	pair_fill(data, LONG, (unsigned)atoi(argv[0]));
	OK(dacs_remote_mem_accept(UP, &mem));
	OK(dacs_put(mem, 0, data, LONG, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	OK(dacs_remote_mem_release(&mem));
	free(data);
	OK(dacs_exit());
	return 0;
}

/* One region, shared both down and up: the leaf writes it, the top reads it. */
static int role_middle(int argc, char **argv)
{
	unsigned char *data = calloc(1, LONG);
	dacs_remote_mem_t mem;
	uint32_t word = 1;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_remote_mem_create(data, LONG, DACS_READ_WRITE, &mem));
	c = pair_start("leaf", "5");
	OK(dacs_remote_mem_share(UP, mem));
	OK(dacs_remote_mem_share(AT(c), mem));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_mailbox_write(&word, UP));
	OK(dacs_remote_mem_destroy(&mem));
	free(data);
	OK(dacs_exit());
	return 0;
}

static int a_region_is_shared_both_ways(int argc, char **argv)
{
	unsigned char *data = calloc(1, LONG);
	dacs_remote_mem_t mem;
	struct child c;
	dacs_wid_t wid;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	c = pair_start("middle", NULL);
	OK(dacs_remote_mem_accept(AT(c), &mem));
	OK(dacs_mailbox_read(&word, AT(c)));
	OK(dacs_get(data, mem, 0, LONG, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(pair_filled(data, LONG, 5), "the leaf's bytes differ");
	OK(dacs_remote_mem_release(&mem));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(data);
	OK(dacs_exit());
	return 0;
}

static int words_go_down_and_up(int argc, char **argv)
{
	unsigned char *data = malloc(LONG);
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("level", "3");
	for (uint32_t i = 1; i < 20; i++) {
		word = i;
		pair_fill(data, LONG, i);
		OK(dacs_mailbox_write(&word, AT(c)));
		OK(pair_send(c, 1, data, LONG, DACS_BYTE_SWAP_DISABLE));
		memset(data, 0, LONG);
		OK(pair_recv(c, 2, data, LONG, DACS_BYTE_SWAP_DISABLE));
		CHECK(pair_filled(data, LONG, i), "bytes of turn %u", i);
		OK(dacs_mailbox_read(&word, AT(c)));
		CHECK(word == i + 4, "%u through four levels became %u", i, word);
	}
	word = 0;
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	free(data);
	OK(dacs_exit());
	return 0;
}

static int the_middle_cleans_up_below(int argc, char **argv)
{
	uint32_t n;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	pair_end(pair_start("careless", NULL), DACS_STS_PROC_FINISHED, 0);
	OK(dacs_get_num_avail_children(DACS_DE_CBE, &n));
	CHECK(n == 64, "%u elements", n);
	OK(dacs_exit());
	return 0;
}

static int strangers_are_no_partners(int argc, char **argv)
{
	struct child a, b = {0, 0};
	char de[16], pid[32];
	uint32_t n = 1, word = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	a = pair_start("level", "0");
	snprintf(de, sizeof(de), "%u", a.de);
	snprintf(pid, sizeof(pid), "%" PRIu64, a.pid);
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &b.de));
	b = pair_start_on(b.de, "stranger", de, pid);
	pair_end(b, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_mailbox_write(&word, AT(a)));
	pair_end(a, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"level", role_level}, {"careless", role_careless},
	{"sits", role_sits},   {"stranger", role_stranger},
	{"leaf", role_leaf},   {"middle", role_middle},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"words go down and up", words_go_down_and_up},
	{"a region is shared both ways", a_region_is_shared_both_ways},
	{"the middle cleans up below", the_middle_cleans_up_below},
	{"strangers are no partners", strangers_are_no_partners},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
