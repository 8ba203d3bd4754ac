/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* native-only */
/* Kills at every system call of a conversation by a path, which a killed listener leaves behind. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/kill_connect.h"
#include "tests/lib/test.h"

int main(void)
{
	char folder[] = "/tmp/slmpm-kill-XXXXXX", url[64];

	CHECK(mkdtemp(folder), "no folder");
	snprintf(url, sizeof(url), "shm:%s/socket", folder);
	kill_connect_sweep(url, 0);
	(void)rmdir(folder);
	return 0;
}
