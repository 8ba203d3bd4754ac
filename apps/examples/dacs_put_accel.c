/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accelerator's half of dacs_put_host: blurs some columns of the host's picture, round by
 * round.
 *
 *	dacs_put_accel WIDTH HEIGHT ROUNDS FIRST COLUMNS
 */
#include <dacs.h>

#include <stdio.h>
#include <stdlib.h>

#define HOST DACS_DE_PARENT, DACS_PID_PARENT

static uint32_t width, height, rounds, first, columns;

static int failed(const char *what, DACS_ERR_T code)
{
	fprintf(stderr, "dacs_put_accel: %s: %s\n", what, dacs_strerror(code));
	return 1;
}

/* Where COUNT columns from COLUMN on lie in the picture: a piece of each row. */
static void cut(dacs_dma_list_t *list, uint32_t column, uint32_t count)
{
	for (uint32_t y = 0; y < height; y++) {
		list[y].offset = (y * width + column) * sizeof(uint32_t);
		list[y].size = count * sizeof(uint32_t);
	}
}

/* Each pixel becomes the mean of itself and its neighbours; SEEN has a column more on either side,
 * where the picture has one, and LEFT says whether it has on the left. */
static void blur(uint32_t *to, const uint32_t *seen, uint32_t seen_columns, uint32_t left)
{
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < columns; x++) {
			const uint32_t at = x + left, *pixel = seen + y * seen_columns + at;
			uint32_t sum = *pixel, n = 1;

			if (at > 0)
				sum += *(pixel - 1), n++;
			if (at + 1 < seen_columns)
				sum += *(pixel + 1), n++;
			if (y > 0)
				sum += *(pixel - seen_columns), n++;
			if (y + 1 < height)
				sum += *(pixel + seen_columns), n++;
			to[y * columns + x] = sum / n;
		}
}

/* Gathers what it has to see, and scatters what came of it; waits for each. */
static DACS_ERR_T one_round(dacs_remote_mem_t from, dacs_remote_mem_t to, dacs_wid_t wid,
			    uint32_t *seen, uint32_t *mine, dacs_dma_list_t *list)
{
	uint32_t left = first > 0, right = first + columns < width;
	uint32_t seen_columns = columns + left + right;
	dacs_dma_list_t all = {0, (uint64_t)seen_columns * height * sizeof(*seen)};
	DACS_ERR_T rc;

	cut(list, first - left, seen_columns);
	rc = dacs_get_list(seen, &all, 1, from, list, height, wid, DACS_ORDER_ATTR_NONE,
			   DACS_BYTE_SWAP_WORD);
	if (rc == DACS_SUCCESS)
		rc = dacs_wait(wid);
	if (rc != DACS_WID_READY)
		return rc;
	blur(mine, seen, seen_columns, left);
	cut(list, first, columns);
	all.size = (uint64_t)columns * height * sizeof(*mine);
	rc = dacs_put_list(to, list, height, mine, &all, 1, wid, DACS_ORDER_ATTR_NONE,
			   DACS_BYTE_SWAP_WORD);
	return rc == DACS_SUCCESS ? dacs_wait(wid) : rc;
}

static DACS_ERR_T all_rounds(dacs_remote_mem_t picture[2], dacs_wid_t wid)
{
	uint32_t *seen = calloc((size_t)(columns + 2) * height, sizeof(*seen));
	uint32_t *mine = calloc((size_t)columns * height, sizeof(*mine)), word;
	dacs_dma_list_t *list = calloc(height, sizeof(*list));
	DACS_ERR_T rc = seen && mine && list ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;

	for (uint32_t round = 0; round < rounds && rc == DACS_SUCCESS; round++) {
		rc = one_round(picture[round % 2], picture[(round + 1) % 2], wid, seen, mine, list);
		/* The word arrives behind the pixels. All have to be through before the next. */
		if (rc == DACS_SUCCESS)
			rc = dacs_mailbox_write(&round, HOST);
		if (rc == DACS_SUCCESS)
			rc = dacs_mailbox_read(&word, HOST);
	}
	free(seen);
	free(mine);
	free(list);
	return rc;
}

int main(int argc, char **argv)
{
	dacs_remote_mem_t picture[2];
	dacs_wid_t wid;
	DACS_ERR_T rc = dacs_init(DACS_INIT_SINGLE_THREADED);

	if (rc != DACS_SUCCESS)
		return failed("init", rc);
	if (argc != 6)
		return failed("dacs_put_host starts this", DACS_ERR_INVALID_ARGV);
	width = (uint32_t)atoi(argv[1]);
	height = (uint32_t)atoi(argv[2]);
	rounds = (uint32_t)atoi(argv[3]);
	first = (uint32_t)atoi(argv[4]);
	columns = (uint32_t)atoi(argv[5]);

	rc = dacs_wid_reserve(&wid);
	for (int i = 0; i < 2 && rc == DACS_SUCCESS; i++)
		rc = dacs_remote_mem_accept(HOST, &picture[i]);
	if (rc != DACS_SUCCESS)
		return failed("the picture", rc);
	rc = all_rounds(picture, wid);
	if (rc != DACS_SUCCESS)
		return failed("a round", rc);
	for (int i = 0; i < 2 && rc == DACS_SUCCESS; i++)
		rc = dacs_remote_mem_release(&picture[i]);
	return rc != DACS_SUCCESS || dacs_exit() != DACS_SUCCESS;
}
