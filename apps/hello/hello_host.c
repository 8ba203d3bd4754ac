/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's half of hello: starts the accelerator beside itself, greets it, prints the reply. */
#include <slmpm.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char prog[4096], reply[64];
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	slmpm_peer accel;

	if (argc > 1)
		return printf("usage: hello_host\n") < 0 || strcmp(argv[1], "-h") != 0;
	/* Where this program was found, the other one is too: same folder, or the same PATH. */
	snprintf(prog, sizeof(prog), "%.*shello_accel", slash ? (int)(slash + 1 - argv[0]) : 0,
		 slash ? argv[0] : "");
	if (slmpm_spawn(&accel, prog, NULL, NULL) < 0)
		return slmpm_perror("start");
	if (slmpm_send(accel, 0, "hello", 6, -1) < 0)
		return slmpm_perror("send");
	if (slmpm_recv(accel, 0, reply, sizeof(reply), NULL, 5000) < 0)
		return slmpm_perror("receive");
	puts(reply);
	return slmpm_join(accel, NULL, 5000) != 0;
}
