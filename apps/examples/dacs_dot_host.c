/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DaCS, worked through: the dot product of two vectors, cut into one part for each accelerator.
 * This is the host's half: it reserves, starts, sends the parts, collects the sums and the ends.
 *
 *	dacs_dot_host [ACCELERATORS]
 */
#include <dacs.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART 25000 /* numbers of each vector for one accelerator */
#define MOST 16

static double x[MOST][PART], y[MOST][PART];

static int failed(const char *what, DACS_ERR_T code)
{
	fprintf(stderr, "dacs_dot_host: %s: %s\n", what, dacs_strerror(code));
	(void)dacs_exit(); /* ends the accelerators, too */
	return 1;
}

/* Where this program was found, the accelerator's is too. */
static void find_program(const char *self, char *path, size_t size)
{
	const char *slash = strrchr(self, '/');

	snprintf(path, size, "%.*sdacs_dot_accel", slash ? (int)(slash + 1 - self) : 0,
		 slash ? self : "");
}

/* Numbers whose product is known: the dot product is the sum of 1 to n. */
static double fill(uint32_t parts)
{
	double n = 0, expected = 0;

	for (uint32_t p = 0; p < parts; p++)
		for (int i = 0; i < PART; i++) {
			n += 1;
			x[p][i] = n / 2;
			y[p][i] = 2;
			expected += n;
		}
	return expected;
}

/* All at once: one wid waits for every transfer. The swap code says what an accelerator of the
 * other byte order has to swap: doubles here. */
static DACS_ERR_T multiply(uint32_t count, const de_id_t *de, const dacs_process_id_t *pid,
			   double *sums)
{
	uint32_t length = PART;
	dacs_wid_t wid;
	DACS_ERR_T rc;

	rc = dacs_wid_reserve(&wid);
	for (uint32_t i = 0; i < count && rc == DACS_SUCCESS; i++) {
		rc = dacs_mailbox_write(&length, de[i], pid[i]);
		if (rc == DACS_SUCCESS)
			rc = dacs_send(x[i], sizeof(x[i]), de[i], pid[i], 0, wid,
				       DACS_BYTE_SWAP_DOUBLE_WORD);
		if (rc == DACS_SUCCESS)
			rc = dacs_send(y[i], sizeof(y[i]), de[i], pid[i], 0, wid,
				       DACS_BYTE_SWAP_DOUBLE_WORD);
		if (rc == DACS_SUCCESS)
			rc = dacs_recv(&sums[i], sizeof(sums[i]), de[i], pid[i], 1, wid,
				       DACS_BYTE_SWAP_DOUBLE_WORD);
	}
	return rc == DACS_SUCCESS ? dacs_wait(wid) : rc;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
	int help = argc > 1 && !strcmp(argv[1], "-h");
	double expected, sums[MOST], total = 0;
	dacs_process_id_t pid[MOST];
	de_id_t de[MOST];
	DACS_ERR_T rc;
	char program[4096];
	int32_t status;

	if (help || count < 1 || count > MOST) {
		fprintf(help ? stdout : stderr, "usage: dacs_dot_host [ACCELERATORS], 1 to %d\n",
			MOST);
		return help ? 0 : 2;
	}
	rc = dacs_init(DACS_INIT_FLAGS_NONE);
	if (rc != DACS_SUCCESS)
		return failed("init", rc);

	/* Fewer than wanted is no error: go on with what is free. */
	rc = dacs_reserve_children(DACS_DE_CBE, &count, de);
	if (rc != DACS_SUCCESS || !count)
		return failed("reserve", rc == DACS_SUCCESS ? DACS_ERR_NO_RESOURCE : rc);
	find_program(argv[0], program, sizeof(program));
	for (uint32_t i = 0; i < count; i++) {
		rc = dacs_de_start(de[i], program, NULL, NULL, DACS_PROC_REMOTE_FILE, &pid[i]);
		if (rc != DACS_SUCCESS)
			return failed(program, rc);
	}

	expected = fill(count);
	rc = multiply(count, de, pid, sums);
	if (rc != DACS_WID_READY)
		return failed("transfers", rc);

	for (uint32_t i = 0; i < count; i++) {
		rc = dacs_de_wait(de[i], pid[i], &status);
		if (rc != DACS_STS_PROC_FINISHED)
			return failed("an accelerator", rc);
		total += sums[i];
	}
	printf("%u accelerators: x.y = %.0f, expected %.0f\n", count, total, expected);
	rc = dacs_release_de_list(count, de);
	if (rc == DACS_SUCCESS)
		rc = dacs_exit();
	return rc != DACS_SUCCESS || fabs(total - expected) > 1e-9 * expected;
}
