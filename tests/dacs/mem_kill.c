/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 60 */
/* Either side of a region dies at any moment, amidst puts and gets: the other goes on. */
#include "tests/dacs/region.h"

#include <signal.h>
#include <sys/time.h>

#define SIZE  100000
#define GUARD 64
#define TURNS 15

/* A signal ends this process after so many microseconds. */
static void die_in(const char *microseconds)
{
	struct itimerval at = {.it_value.tv_usec = atoi(microseconds)};

	CHECK(setitimer(ITIMER_REAL, &at, NULL) == 0, "setitimer");
}

/* ---- roles ---- */

static int role_dying_owner(int argc, char **argv)
{
	static unsigned char memory[SIZE];
	dacs_remote_mem_t mem;
	uint32_t word;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_remote_mem_create(memory, SIZE, DACS_READ_WRITE, &mem));
	OK(dacs_remote_mem_share(UP, mem));
	die_in(argv[0]);
	OK(dacs_mailbox_read(&word, UP));
	return 0;
}

/* Puts 0xee everywhere, in pieces, by lists, with fences, until it dies. */
static int role_dying_user(int argc, char **argv)
{
	static unsigned char bytes[SIZE];
	dacs_dma_list_t list[10], all = {0, SIZE / 10};
	dacs_remote_mem_t mem;
	dacs_wid_t wid;

	(void)argc;
	memset(bytes, 0xee, SIZE);
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_remote_mem_accept(UP, &mem));
	for (int i = 0; i < 10; i++)
		list[i] = (dacs_dma_list_t){(uint64_t)i * SIZE / 10, SIZE / 100};
	die_in(argv[0]);
	for (uint64_t turn = 0;; turn++) {
		OK(dacs_put(mem, 0, bytes, SIZE, wid, PLAIN));
		OK(dacs_put_list(mem, list, 10, bytes, &all, 1, wid, DACS_ORDER_ATTR_FENCE,
				 DACS_BYTE_SWAP_DISABLE));
		if (turn % 4 == 0)
			EXPECT(dacs_wait(wid), DACS_WID_READY);
	}
}

/* ---- cases, each in a process of its own for each way ---- */

static int owner_dies(int argc, char **argv)
{
	static unsigned char bytes[SIZE];
	char text[16];

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (int turn = 0; turn < TURNS; turn++) {
		dacs_remote_mem_t mem;
		struct child c;
		dacs_wid_t wid;
		DACS_ERR_T rc;

		snprintf(text, sizeof(text), "%d", 1 + turn * 400);
		OK(dacs_wid_reserve(&wid));
		c = pair_start("dying owner", text);
		OK(dacs_remote_mem_accept(AT(c), &mem));
		do {
			rc = dacs_put(mem, 0, bytes, SIZE, wid, PLAIN);
			for (uint64_t i = 0; i < 20 && rc == DACS_SUCCESS; i++)
				rc = dacs_get(bytes + i, mem, i * 1000, 1000, wid,
					      i % 5 ? DACS_ORDER_ATTR_NONE :
						      DACS_ORDER_ATTR_BARRIER,
					      DACS_BYTE_SWAP_DISABLE);
			if (rc == DACS_SUCCESS)
				rc = dacs_wait(wid);
		} while (rc == DACS_SUCCESS);
		EXPECT(rc, DACS_ERR_DE_TERM);
		rc = dacs_wait(wid); /* what had begun before */
		CHECK(rc == DACS_ERR_DE_TERM || rc == DACS_ERR_WID_NOT_ACTIVE ||
			      rc == DACS_WID_READY,
		      "%s", dacs_strerror(rc));
		OK(dacs_remote_mem_release(&mem));
		pair_end(c, DACS_STS_PROC_ABORTED, SIGALRM);
		OK(dacs_wid_release(&wid));
	}
	OK(dacs_exit());
	return 0;
}

static int user_dies(int argc, char **argv)
{
	static unsigned char memory[SIZE + 2 * GUARD];
	char text[16];

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (int turn = 0; turn < TURNS; turn++) {
		dacs_remote_mem_t mem;
		struct child c;

		snprintf(text, sizeof(text), "%d", 1 + turn * 400);
		memset(memory, 0x11, sizeof(memory));
		OK(dacs_remote_mem_create(memory + GUARD, SIZE, DACS_WRITE_ONLY, &mem));
		c = pair_start("dying user", text);
		OK(dacs_remote_mem_share(AT(c), mem));
		OK(dacs_remote_mem_destroy(&mem)); /* nobody releases it */
		for (int i = 0; i < SIZE + 2 * GUARD; i++)
			CHECK(memory[i] == 0x11 ||
				      (memory[i] == 0xee && i >= GUARD && i < SIZE + GUARD),
			      "byte %d is %#x", i, memory[i]);
		pair_end(c, DACS_STS_PROC_ABORTED, SIGALRM);
	}
	OK(dacs_exit());
	return 0;
}

static int an_owner_dies(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("owner");
}

static int a_user_dies(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("user");
}

static const struct pair_entry roles[] = {
	{"dying owner", role_dying_owner},
	{"dying user", role_dying_user},
	{"owner", owner_dies},
	{"user", user_dies},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"an owner dies", an_owner_dies},
	{"a user dies", a_user_dies},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
