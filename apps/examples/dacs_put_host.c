/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DaCS remote memory, worked through: a picture is blurred by accelerators, some columns each. They
 * get what they need out of this process's memory and put the result there, by lists with a piece
 * of each row; this half only shares, keeps the rounds apart, and checks.
 *
 *	dacs_put_host [ACCELERATORS]
 */
#include <dacs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH  321
#define HEIGHT 200
#define ROUNDS 5
#define MOST   16

static uint32_t picture[2][HEIGHT][WIDTH], expected[2][HEIGHT][WIDTH];

static int failed(const char *what, DACS_ERR_T code)
{
	fprintf(stderr, "dacs_put_host: %s: %s\n", what, dacs_strerror(code));
	(void)dacs_exit(); /* ends the accelerators, too */
	return 1;
}

/* Where this program was found, the accelerator's is too. */
static void find_program(const char *self, char *path, size_t size)
{
	const char *slash = strrchr(self, '/');

	snprintf(path, size, "%.*sdacs_put_accel", slash ? (int)(slash + 1 - self) : 0,
		 slash ? self : "");
}

/* Accelerator I of COUNT with its columns, which differ by one at most. */
static DACS_ERR_T start(const char *program, uint32_t i, uint32_t count, de_id_t de,
			dacs_process_id_t *pid)
{
	uint32_t first = WIDTH * i / count, next = WIDTH * (i + 1) / count;
	char text[5][16];
	const char *argv[] = {text[0], text[1], text[2], text[3], text[4], NULL};

	snprintf(text[0], 16, "%d", WIDTH);
	snprintf(text[1], 16, "%d", HEIGHT);
	snprintf(text[2], 16, "%d", ROUNDS);
	snprintf(text[3], 16, "%u", first);
	snprintf(text[4], 16, "%u", next - first);
	return dacs_de_start(de, (void *)(uintptr_t)program, argv, NULL, DACS_PROC_REMOTE_FILE,
			     pid);
}

/* What the accelerators do, done here. */
static void blur(uint32_t to[HEIGHT][WIDTH], uint32_t from[HEIGHT][WIDTH])
{
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++) {
			uint32_t sum = from[y][x], n = 1;

			if (x > 0)
				sum += from[y][x - 1], n++;
			if (x + 1 < WIDTH)
				sum += from[y][x + 1], n++;
			if (y > 0)
				sum += from[y - 1][x], n++;
			if (y + 1 < HEIGHT)
				sum += from[y + 1][x], n++;
			to[y][x] = sum / n;
		}
}

static void paint(void)
{
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			picture[0][y][x] = (uint32_t)(x * 7919 + y * 104729) % 1000003;
	memcpy(expected[0], picture[0], sizeof(expected[0]));
}

static uint32_t count_wrong(void)
{
	uint32_t wrong = 0;

	for (int round = 0; round < ROUNDS; round++)
		blur(expected[(round + 1) % 2], expected[round % 2]);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			wrong += picture[ROUNDS % 2][y][x] != expected[ROUNDS % 2][y][x];
	return wrong;
}

/* Each round ends when all have put their columns: nobody may get before. */
static DACS_ERR_T keep_apart(uint32_t count, const de_id_t *de, const dacs_process_id_t *pid)
{
	DACS_ERR_T rc = DACS_SUCCESS;
	uint32_t word;

	for (uint32_t round = 0; round < ROUNDS && rc == DACS_SUCCESS; round++) {
		for (uint32_t i = 0; i < count && rc == DACS_SUCCESS; i++)
			rc = dacs_mailbox_read(&word, de[i], pid[i]);
		for (uint32_t i = 0; i < count && rc == DACS_SUCCESS; i++)
			rc = dacs_mailbox_write(&round, de[i], pid[i]);
	}
	return rc;
}

/* The rounds go from one picture to the other and back: both are read and written. */
static DACS_ERR_T share_pictures(uint32_t count, const de_id_t *de, const dacs_process_id_t *pid,
				 dacs_remote_mem_t mem[2])
{
	DACS_ERR_T rc = DACS_SUCCESS;

	for (int p = 0; p < 2 && rc == DACS_SUCCESS; p++) {
		rc = dacs_remote_mem_create(picture[p], sizeof(picture[p]), DACS_READ_WRITE,
					    &mem[p]);
		for (uint32_t i = 0; i < count && rc == DACS_SUCCESS; i++)
			rc = dacs_remote_mem_share(de[i], pid[i], mem[p]);
	}
	return rc;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 2, wrong;
	int help = argc > 1 && !strcmp(argv[1], "-h");
	dacs_remote_mem_t mem[2];
	dacs_process_id_t pid[MOST];
	de_id_t de[MOST];
	DACS_ERR_T rc;
	char program[4096];
	int32_t status;

	if (help || count < 1 || count > MOST) {
		fprintf(help ? stdout : stderr, "usage: dacs_put_host [ACCELERATORS], 1 to %d\n",
			MOST);
		return help ? 0 : 2;
	}
	rc = dacs_init(DACS_INIT_FLAGS_NONE);
	if (rc != DACS_SUCCESS)
		return failed("init", rc);
	rc = dacs_reserve_children(DACS_DE_CBE, &count, de);
	if (rc != DACS_SUCCESS || !count)
		return failed("reserve", rc == DACS_SUCCESS ? DACS_ERR_NO_RESOURCE : rc);
	find_program(argv[0], program, sizeof(program));
	for (uint32_t i = 0; i < count; i++) {
		rc = start(program, i, count, de[i], &pid[i]);
		if (rc != DACS_SUCCESS)
			return failed(program, rc);
	}

	paint();
	rc = share_pictures(count, de, pid, mem);
	if (rc != DACS_SUCCESS)
		return failed("sharing", rc);
	rc = keep_apart(count, de, pid);
	for (int p = 0; p < 2 && rc == DACS_SUCCESS; p++)
		rc = dacs_remote_mem_destroy(&mem[p]); /* when all have released it */
	if (rc != DACS_SUCCESS)
		return failed("a round", rc);
	for (uint32_t i = 0; i < count; i++) {
		rc = dacs_de_wait(de[i], pid[i], &status);
		if (rc != DACS_STS_PROC_FINISHED)
			return failed("an accelerator", rc);
	}

	wrong = count_wrong();
	printf("%u accelerators: %d rounds on %d pixels, %u of them wrong\n", count, ROUNDS,
	       WIDTH * HEIGHT, wrong);
	rc = dacs_release_de_list(count, de);
	if (rc == DACS_SUCCESS)
		rc = dacs_exit();
	return rc != DACS_SUCCESS || wrong;
}
