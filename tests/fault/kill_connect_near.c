/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* native-only */
/* Kills at system calls all over a conversation over TCP whose ends find out that they are on one
 * machine. */
#include <stdlib.h>

#include "tests/lib/kill_connect.h"

int main(void)
{
	unsetenv("SLMPM_SECRET");
	kill_connect_sweep("tcp://127.0.0.1:0", 120);
	return 0;
}
