/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 60 */
/* Memory regions: handles at both ends, the accesses of each, registration, limits. */
#include "tests/dacs/pair.h"

#define SIZE 200000

/* ---- roles ---- */

/* Turns the bytes of the parent's region over: all, and the odd 100s once more with lists. */
static int role_turn(int argc, char **argv)
{
	unsigned char *memory = malloc(SIZE);
	dacs_dma_list_t odd[SIZE / 200], whole = {0, SIZE / 2};
	dacs_mem_t theirs, mine;
	uint64_t value;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_mem_create(memory, SIZE, DACS_MEM_NONE, DACS_MEM_READ_WRITE, &mine));
	OK(dacs_mem_register(UP, mine));
	OK(dacs_mem_accept(UP, &theirs));
	OK(dacs_mem_query(theirs, DACS_MEM_SIZE, &value));
	CHECK(value == SIZE, "%" PRIu64, value);
	OK(dacs_mem_get(mine, 0, theirs, 0, SIZE, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	for (uint32_t i = 0; i < SIZE; i++)
		memory[i] ^= 0xff;
	OK(dacs_mem_put(theirs, 0, mine, 0, SIZE, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);

	for (uint32_t i = 0; i < SIZE / 200; i++)
		odd[i] = (dacs_dma_list_t){200 * i + 100, 100};
	OK(dacs_mem_get_list(mine, &whole, 1, theirs, odd, SIZE / 200, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	for (uint32_t i = 0; i < SIZE / 2; i++)
		memory[i] ^= 0xff;
	OK(dacs_mem_put_list(theirs, odd, SIZE / 200, mine, &whole, 1, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	OK(dacs_mem_deregister(UP, mine));
	OK(dacs_mem_release(&theirs));
	OK(dacs_mem_destroy(&mine));
	OK(dacs_exit());
	free(memory);
	return 0;
}

/* Accepts four regions, none to all that the parent can give, and is refused what they do not. */
static int role_refused(int argc, char **argv)
{
	static const DACS_MEM_ACCESS_MODE_T modes[] = {DACS_MEM_READ_ONLY, DACS_MEM_WRITE_ONLY,
						       DACS_MEM_READ_WRITE};
	unsigned char bytes[64] = {0};
	dacs_mem_t theirs[3], mine[3], only_remote;
	uint64_t value;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_mem_create(bytes, 64, DACS_MEM_READ_WRITE, DACS_MEM_NONE, &only_remote));
	for (int i = 0; i < 3; i++) {
		OK(dacs_mem_create(bytes, 64, DACS_MEM_NONE, modes[i], &mine[i]));
		OK(dacs_mem_accept(UP, &theirs[i]));
		OK(dacs_mem_query(theirs[i], DACS_RMT_MEM_PERM, &value));
		CHECK(value == (uint64_t)modes[i], "%#" PRIx64, value);
		OK(dacs_mem_query(theirs[i], DACS_LCL_MEM_PERM, &value));
		CHECK(value == DACS_MEM_READ_ONLY, "%#" PRIx64, value);
	}
	for (int there = 0; there < 3; there++)
		for (int here = 0; here < 3; here++) {
			bool put = modes[there] & DACS_MEM_WRITE_ONLY &&
				   modes[here] & DACS_MEM_READ_ONLY;
			bool get = modes[there] & DACS_MEM_READ_ONLY &&
				   modes[here] & DACS_MEM_WRITE_ONLY;

			EXPECT(dacs_mem_put(theirs[there], 0, mine[here], 0, 64, wid, PLAIN),
			       put ? DACS_SUCCESS : DACS_ERR_NO_PERM);
			EXPECT(dacs_wait(wid), put ? DACS_WID_READY : DACS_ERR_WID_NOT_ACTIVE);
			EXPECT(dacs_mem_get(mine[here], 0, theirs[there], 0, 64, wid, PLAIN),
			       get ? DACS_SUCCESS : DACS_ERR_NO_PERM);
			EXPECT(dacs_wait(wid), get ? DACS_WID_READY : DACS_ERR_WID_NOT_ACTIVE);
		}
	EXPECT(dacs_mem_put(theirs[2], 0, only_remote, 0, 1, wid, PLAIN), DACS_ERR_NO_PERM);
	EXPECT(dacs_mem_get(only_remote, 0, theirs[2], 0, 1, wid, PLAIN), DACS_ERR_NO_PERM);

	/* Both ends have to be what they are taken for. */
	EXPECT(dacs_mem_put(mine[2], 0, mine[2], 0, 1, wid, PLAIN), DACS_ERR_OWNER);
	EXPECT(dacs_mem_get(theirs[2], 0, theirs[2], 0, 1, wid, PLAIN), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mem_put(0, 0, mine[2], 0, 1, wid, PLAIN), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_put(theirs[2], 0, 0, 0, 1, wid, PLAIN), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_put(theirs[2], 0, mine[2], 0, 0, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_mem_put(theirs[2], 1, mine[2], 0, 64, wid, PLAIN), DACS_ERR_BUF_OVERFLOW);
	EXPECT(dacs_mem_put(theirs[2], 0, mine[2], 1, 64, wid, PLAIN), DACS_ERR_BUF_OVERFLOW);
	EXPECT(dacs_mem_get(mine[2], UINT64_MAX, theirs[2], 0, 1, wid, PLAIN),
	       DACS_ERR_BUF_OVERFLOW);
	EXPECT(dacs_mem_put(theirs[2], 0, mine[2], 0, 1, DACS_INVALID_WID, PLAIN),
	       DACS_ERR_INVALID_WID);
	EXPECT(dacs_mem_share(UP, theirs[2]), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mem_register(UP, theirs[2]), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mem_deregister(UP, theirs[2]), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mem_destroy(&theirs[2]), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_mem_release(&mine[2]), DACS_ERR_OWNER);
	for (int i = 0; i < 3; i++) {
		OK(dacs_mem_release(&theirs[i]));
		OK(dacs_mem_destroy(&mine[i]));
	}
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

/* This process's own way does not matter, as it transfers nothing: the accelerator's does. */
static int bytes_arrive(int argc, char **argv)
{
	unsigned char *memory = malloc(SIZE), *want = malloc(SIZE);
	struct child c;
	dacs_mem_t mem;

	(void)argc, (void)argv;
	for (int ring = 0; ring < 2; ring++) {
		setenv("SLMPM_RMA", ring ? "ring" : "auto", 1);
		OK(dacs_init(0));
		pair_fill(memory, SIZE, 5);
		pair_fill(want, SIZE, 5);
		for (uint32_t i = 0; i < SIZE; i++)
			want[i] ^= i / 100 % 2 ? 0 : 0xff;
		OK(dacs_mem_create(memory, SIZE, DACS_MEM_READ_WRITE, DACS_MEM_NONE, &mem));
		c = pair_start("turn", NULL);
		OK(dacs_mem_share(AT(c), mem));
		OK(dacs_mem_destroy(&mem)); /* as soon as it is released */
		CHECK(!memcmp(memory, want, SIZE), "the memory differs");
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
		OK(dacs_exit());
	}
	unsetenv("SLMPM_RMA");
	free(memory);
	free(want);
	return 0;
}

static int accesses_hold(int argc, char **argv)
{
	static unsigned char bytes[64];
	dacs_mem_t mem[3];
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("refused", NULL);
	OK(dacs_mem_create(bytes, 64, DACS_MEM_READ_ONLY, DACS_MEM_READ_ONLY, &mem[0]));
	OK(dacs_mem_create(bytes, 64, DACS_MEM_WRITE_ONLY, DACS_MEM_READ_ONLY, &mem[1]));
	OK(dacs_mem_create(bytes, 64, DACS_MEM_READ_WRITE, DACS_MEM_READ_ONLY, &mem[2]));
	for (int i = 0; i < 3; i++)
		OK(dacs_mem_share(AT(c), mem[i]));
	for (int i = 0; i < 3; i++)
		OK(dacs_mem_destroy(&mem[i]));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int role_wait(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mailbox_read(&word, UP));
	OK(dacs_exit());
	return 0;
}

static int wrong_arguments_are_refused(int argc, char **argv)
{
	unsigned char bytes[16];
	uint64_t most, left, value;
	dacs_remote_mem_t older;
	uint32_t word = 0;
	struct child c;
	dacs_mem_t mem, closed, none = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	EXPECT(dacs_mem_create(NULL, 1, DACS_MEM_READ_ONLY, DACS_MEM_NONE, &mem),
	       DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_create(bytes, 1, DACS_MEM_READ_ONLY, DACS_MEM_NONE, NULL),
	       DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_create(bytes, 0, DACS_MEM_READ_ONLY, DACS_MEM_NONE, &mem),
	       DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_mem_create(bytes, 1, DACS_MEM_NONE, DACS_MEM_NONE, &mem),
	       DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_mem_create(bytes, 1, (DACS_MEM_ACCESS_MODE_T)1, DACS_MEM_NONE, &mem),
	       DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_mem_create(bytes, 1, DACS_MEM_READ_ONLY, (DACS_MEM_ACCESS_MODE_T)0x80, &mem),
	       DACS_ERR_INVALID_ATTR);
	OK(dacs_mem_create(bytes, 16, DACS_MEM_READ_WRITE, DACS_MEM_WRITE_ONLY, &mem));
	OK(dacs_mem_create(bytes, 16, DACS_MEM_NONE, DACS_MEM_READ_WRITE, &closed));
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, &older));
	c = pair_start("wait", NULL);

	EXPECT(dacs_mem_share(AT(c), none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_share(AT(c), older), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_share(AT(c), closed), DACS_ERR_NO_PERM); /* gives nothing */
	EXPECT(dacs_mem_share(0, c.pid, mem), DACS_ERR_INVALID_DE);
	EXPECT(dacs_mem_share(c.de, c.pid ^ 1, mem), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mem_share(UP, mem), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_mem_accept(AT(c), NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_accept(0, c.pid, &none), DACS_ERR_INVALID_DE);

	EXPECT(dacs_mem_register(AT(c), none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_register(c.de, c.pid ^ 1, mem), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mem_deregister(AT(c), mem), DACS_ERR_INVALID_TARGET);
	OK(dacs_mem_register(AT(c), mem));
	OK(dacs_mem_register(AT(c), mem));
	OK(dacs_mem_deregister(AT(c), mem));
	OK(dacs_mem_deregister(AT(c), mem));
	EXPECT(dacs_mem_deregister(AT(c), mem), DACS_ERR_INVALID_TARGET);
	OK(dacs_mem_register(AT(c), mem)); /* ends with the region */

	EXPECT(dacs_mem_query(mem, DACS_MEM_SIZE, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_query(mem, (DACS_MEM_ATTR_T)4, &value), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_mem_query(older, DACS_MEM_SIZE, &value), DACS_ERR_INVALID_HANDLE);
	OK(dacs_mem_query(mem, DACS_MEM_ADDR, &value));
	CHECK(value == (uintptr_t)bytes, "%#" PRIx64, value);
	OK(dacs_mem_query(mem, DACS_RMT_MEM_PERM, &value));
	CHECK(value == DACS_MEM_READ_WRITE, "%#" PRIx64, value);
	OK(dacs_mem_query(mem, DACS_LCL_MEM_PERM, &value));
	CHECK(value == DACS_MEM_WRITE_ONLY, "%#" PRIx64, value);

	EXPECT(dacs_mem_limits_query(DACS_MEM_REGION_AVAIL, AT(c), NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_limits_query((DACS_MEM_LIMITS_T)0, AT(c), &value), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_mem_limits_query(DACS_MEM_REGION_AVAIL, 0, c.pid, &value), DACS_ERR_INVALID_DE);
	OK(dacs_mem_limits_query(DACS_MEM_REGION_MAX_NUM, AT(c), &most));
	OK(dacs_mem_limits_query(DACS_MEM_REGION_AVAIL, AT(c), &left));
	CHECK(left + 3 == most, "%" PRIu64 " of %" PRIu64 " are left", left, most);
	OK(dacs_mem_limits_query(DACS_MEM_REGION_MAX_SIZE, AT(c), &value));
	CHECK(value >= UINT64_C(1) << 40, "%" PRIu64, value);

	EXPECT(dacs_mem_release(&none), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_mem_release(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_mem_destroy(NULL), DACS_ERR_INVALID_ADDR);
	OK(dacs_mem_destroy(&mem));
	OK(dacs_mem_destroy(&closed));
	OK(dacs_remote_mem_destroy(&older));
	OK(dacs_mem_limits_query(DACS_MEM_REGION_AVAIL, AT(c), &left));
	CHECK(left == most, "%" PRIu64 " of %" PRIu64 " are left", left, most);
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* The limit is what it says, and nothing is lost at it. */
static int the_limit_is_met(int argc, char **argv)
{
	unsigned char byte;
	dacs_mem_t *mem;
	uint32_t word = 0;
	struct child c;
	uint64_t most;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	OK(dacs_mem_limits_query(DACS_MEM_REGION_MAX_NUM, AT(c), &most));
	mem = malloc((most + 1) * sizeof(*mem));
	for (uint64_t i = 0; i < most; i++)
		OK(dacs_mem_create(&byte, 1, DACS_MEM_NONE, DACS_MEM_READ_ONLY, &mem[i]));
	EXPECT(dacs_mem_create(&byte, 1, DACS_MEM_NONE, DACS_MEM_READ_ONLY, &mem[most]),
	       DACS_ERR_NO_RESOURCE);
	for (uint64_t i = 0; i < most; i += 2)
		OK(dacs_mem_destroy(&mem[i]));
	for (uint64_t i = 0; i < most; i += 2)
		OK(dacs_mem_create(&byte, 1, DACS_MEM_NONE, DACS_MEM_READ_ONLY, &mem[i]));
	EXPECT(dacs_mem_create(&byte, 1, DACS_MEM_NONE, DACS_MEM_READ_ONLY, &mem[most]),
	       DACS_ERR_NO_RESOURCE);
	free(mem);
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"turn", role_turn}, {"refused", role_refused}, {"wait", role_wait}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"bytes arrive", bytes_arrive},
	{"accesses hold", accesses_hold},
	{"wrong arguments are refused", wrong_arguments_are_refused},
	{"the limit is met", the_limit_is_met},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
