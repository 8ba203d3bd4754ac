/* SPDX-License-Identifier: BSD-3-Clause */
/* The accelerator's half of dacs_dot_host: takes a length, two vectors, and returns their
 * product. */
#include <dacs.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what, DACS_ERR_T code)
{
	fprintf(stderr, "dacs_dot_accel: %s: %s\n", what, dacs_strerror(code));
	return 1;
}

static DACS_ERR_T receive(double *to, uint32_t length, dacs_wid_t wid)
{
	DACS_ERR_T rc = dacs_recv(to, length * (uint32_t)sizeof(*to), DACS_DE_PARENT,
				  DACS_PID_PARENT, 0, wid, DACS_BYTE_SWAP_DOUBLE_WORD);

	return rc == DACS_SUCCESS ? dacs_wait(wid) : rc;
}

int main(void)
{
	double *x, *y, sum = 0;
	uint32_t length;
	dacs_wid_t wid;
	DACS_ERR_T rc = dacs_init(DACS_INIT_SINGLE_THREADED);

	if (rc != DACS_SUCCESS)
		return failed("init", rc);
	rc = dacs_mailbox_read(&length, DACS_DE_PARENT, DACS_PID_PARENT);
	if (rc == DACS_ERR_INVALID_TARGET)
		return failed("no parent, dacs_dot_host starts this", rc);
	if (rc == DACS_SUCCESS)
		rc = dacs_wid_reserve(&wid);
	if (rc != DACS_SUCCESS)
		return failed("length", rc);
	x = calloc(length, sizeof(*x));
	y = calloc(length, sizeof(*y));
	if (!x || !y)
		return failed("vectors", DACS_ERR_NO_RESOURCE);

	/* One stream keeps its order: x comes before y. */
	rc = receive(x, length, wid);
	if (rc == DACS_SUCCESS)
		rc = receive(y, length, wid);
	if (rc != DACS_SUCCESS)
		return failed("vectors", rc);
	for (uint32_t i = 0; i < length; i++)
		sum += x[i] * y[i];

	rc = dacs_send(&sum, sizeof(sum), DACS_DE_PARENT, DACS_PID_PARENT, 1, wid,
		       DACS_BYTE_SWAP_DOUBLE_WORD);
	if (rc == DACS_SUCCESS)
		rc = dacs_wait(wid);
	if (rc != DACS_SUCCESS)
		return failed("sum", rc);
	free(x);
	free(y);
	return dacs_exit() != DACS_SUCCESS;
}
