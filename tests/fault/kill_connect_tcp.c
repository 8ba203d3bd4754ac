/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* native-only */
/* Kills at system calls all over a conversation over TCP. */
#include <stdlib.h>

#include "tests/lib/kill_connect.h"
#include "tests/lib/settings.h"

int main(void)
{
	settings_one_link("tcp");
	unsetenv("SLMPM_SECRET");
	kill_connect_sweep("tcp://127.0.0.1:0", 120);
	return 0;
}
