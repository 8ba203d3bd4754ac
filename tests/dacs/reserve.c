/* SPDX-License-Identifier: BSD-3-Clause */
/* Reservation: exclusive between processes, and a crashed one's elements come back. */
#include "tests/dacs/pair.h"

#include <signal.h>
#include <sys/wait.h>

#define ELEMENTS 12

static uint32_t available(void)
{
	uint32_t n = 9999;

	OK(dacs_get_num_avail_children(DACS_DE_CBE, &n));
	return n;
}

/* A host of its own: reserves so many, says so by a byte on standard output, waits for its end. */
static int role_holder(int argc, char **argv)
{
	uint32_t n = (uint32_t)atoi(argv[0]);
	de_id_t list[ELEMENTS];

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	CHECK(write(1, &n, 1) == 1, "write");
	for (;;)
		pause();
}

/* Starts another host, unrelated but for who started it. */
static pid_t start_holder(const char *count, unsigned *granted)
{
	unsigned char byte = 0;
	int fds[2];
	pid_t pid;

	CHECK(pipe(fds) == 0, "pipe");
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		dup2(fds[1], 1);
		close(fds[0]);
		execl(pair_self, pair_self, "holder", count, (char *)NULL);
		_exit(98);
	}
	close(fds[1]);
	CHECK(read(fds[0], &byte, 1) == 1, "the other host failed");
	close(fds[0]);
	*granted = byte;
	return pid;
}

static int counts_and_grants(int argc, char **argv)
{
	de_id_t list[2 * ELEMENTS];
	uint32_t n = 5, more = 2 * ELEMENTS;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	CHECK(available() == ELEMENTS, "%u available", available());
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	CHECK(n == 5 && available() == ELEMENTS - 5, "%u granted, %u left", n, available());
	OK(dacs_reserve_children(DACS_DE_CBE, &more, list + 5));
	CHECK(more == ELEMENTS - 5 && available() == 0, "%u granted, %u left", more, available());
	for (uint32_t i = 0; i < ELEMENTS; i++)
		for (uint32_t k = 0; k <= i; k++)
			CHECK(list[i] && (k == i || list[k] != list[i]), "element %u", list[i]);
	n = 1;
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	CHECK(n == 0, "an element nobody has was granted");
	OK(dacs_release_de_list(4, list + 1));
	CHECK(available() == 4, "%u after release", available());
	OK(dacs_exit()); /* gives the others back */
	OK(dacs_init(0));
	CHECK(available() == ELEMENTS, "%u after exit", available());
	OK(dacs_exit());
	return 0;
}

static int is_exclusive_between_processes(int argc, char **argv)
{
	de_id_t list[ELEMENTS];
	unsigned granted;
	uint32_t n = ELEMENTS;
	pid_t other;
	int status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	other = start_holder("7", &granted);
	CHECK(granted == 7, "the other host got %u", granted);
	CHECK(available() == ELEMENTS - 7, "%u available", available());
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	CHECK(n == ELEMENTS - 7, "%u granted", n);
	CHECK(kill(other, SIGKILL) == 0 && waitpid(other, &status, 0) == other, "kill");
	CHECK(available() == 7, "%u after a crash", available());
	OK(dacs_release_de_list(n, list));
	CHECK(available() == ELEMENTS, "%u", available());
	OK(dacs_exit());
	return 0;
}

/* The other kinds exist in DaCS, and have none here. */
static int other_kinds_have_none(int argc, char **argv)
{
	static const DACS_DE_TYPE_T types[] = {DACS_DE_SYSTEMX, DACS_DE_CELL_BLADE, DACS_DE_SPE};
	de_id_t de;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	for (int i = 0; i < 3; i++) {
		uint32_t n = 9;

		OK(dacs_get_num_avail_children(types[i], &n));
		CHECK(n == 0, "%u of kind %d", n, types[i]);
		n = 1;
		OK(dacs_reserve_children(types[i], &n, &de));
		CHECK(n == 0, "%u of kind %d granted", n, types[i]);
	}
	OK(dacs_exit());
	return 0;
}

static int bad_arguments_are_refused(int argc, char **argv)
{
	de_id_t list[3];
	uint32_t n = 2, zero = 0;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	EXPECT(dacs_get_num_avail_children(DACS_DE_CBE, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_get_num_avail_children(DACS_DE_INVALID, &n), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_get_num_avail_children(DACS_DE_MAX_TYPE, &n), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_get_num_avail_children((DACS_DE_TYPE_T)-1, &n), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_reserve_children(DACS_DE_CBE, NULL, list), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_reserve_children(DACS_DE_CBE, &n, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_reserve_children(DACS_DE_MAX_TYPE, &n, list), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_reserve_children(DACS_DE_CBE, &zero, list), DACS_ERR_INVALID_SIZE);
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	EXPECT(dacs_release_de_list(0, list), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_release_de_list(1, NULL), DACS_ERR_INVALID_ADDR);
	list[2] = list[0];
	EXPECT(dacs_release_de_list(3, list), DACS_ERR_INVALID_DE);
	list[2] = 0;
	EXPECT(dacs_release_de_list(3, list), DACS_ERR_INVALID_DE);
	CHECK(available() == ELEMENTS - 2, "a refused release released");
	OK(dacs_release_de_list(2, list));
	EXPECT(dacs_release_de_list(2, list), DACS_ERR_INVALID_DE);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {{"holder", role_holder}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"counts and grants", counts_and_grants},
	{"is exclusive between processes", is_exclusive_between_processes},
	{"other kinds have none", other_kinds_have_none},
	{"bad arguments are refused", bad_arguments_are_refused},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	setenv("SLMPM_ELEMENTS", "12", 1);
	return pair_main(argc, argv, cases, roles);
}
