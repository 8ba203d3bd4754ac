/* SPDX-License-Identifier: BSD-3-Clause */
/* The default context, shut by its name {0}. */
#include <string.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

static int role_exit(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE);
	return 0;
}

static void shut_default(void)
{
	slmpm_peer child = actor_spawn_ready("exit");
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_join(child, 0);
	OK(slmpm_shut(none, PATIENCE));
	EXPECT(slmpm_progress(ctx), -SLMPM_EHANDLE);
	OK(slmpm_shut(none, PATIENCE)); /* there is none now */
	OK(slmpm_progress(none));       /* another has been opened */
	OK(slmpm_shut(none, PATIENCE));
}

static const struct actor roles[] = {{"exit", role_exit}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	shut_default();
	return 0;
}
