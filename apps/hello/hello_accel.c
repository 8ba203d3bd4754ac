/* SPDX-License-Identifier: BSD-3-Clause */
/* The accelerator's half of hello: receives a greeting and answers it. */
#include <slmpm.h>

int main(void)
{
	char greeting[64];
	slmpm_peer host;

	if (slmpm_parent(&host) < 0)
		return slmpm_perror("hello_accel");
	if (slmpm_recv(host, 0, greeting, sizeof(greeting), NULL, -1) < 0)
		return slmpm_perror("receive");
	return slmpm_send(host, 0, "hello from the accelerator", 27, -1) < 0;
}
