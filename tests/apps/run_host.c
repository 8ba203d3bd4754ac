/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of run_ends.sh */
/*
 * A host for any program: run_host WHAT [NAME=VALUE...] PROGRAM ARGUMENT... starts it and prints
 * how it ended. WHAT: join; close, before it has connected; kill or term, once a line has come on
 * standard input; parent-death pipe, bound to this process's life; cwd=DIRECTORY; carry=DIRECTORY;
 * there; wrapper=WORDS; clean; handler, with itself as the program: tries to start another in an
 * active message's handler.
 */
#include <fcntl.h>
#include <signal.h>
#include <slmpm.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int tell(slmpm_peer peer)
{
	int status = 0, rc = slmpm_join(peer, &status, 30000);

	if (rc < 0)
		return slmpm_perror("join");
	if (WIFEXITED(status))
		printf("exited %d\n", WEXITSTATUS(status));
	else
		printf("signal %d\n", WTERMSIG(status));
	return 0;
}

static const char *after(const char *word, const char *key)
{
	size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static void try_start(const struct slmpm_am *am, void *program)
{
	slmpm_peer peer;
	int rc = slmpm_spawn(&peer, program, NULL, NULL);

	(void)am;
	printf("in a handler: %s, standard input %s\n",
	       rc == -SLMPM_ESTATE ? "ESTATE" : slmpm_strerror(rc),
	       fcntl(0, F_GETFD) >= 0 ? "open" : "closed");
}

static int call_handler(void)
{
	slmpm_peer host;

	return slmpm_parent(&host) < 0 || slmpm_am(host, 1, NULL, 0, NULL, 0, NULL, NULL) < 0 ||
	       slmpm_close(host, -1) < 0;
}

int main(int argc, char **argv)
{
	struct slmpm_spawn_options o = {.size = sizeof(o)};
	const char *what = argc > 2 ? argv[1] : "", *value;
	char *env[16] = {NULL};
	int next = 2, envs = 0;
	slmpm_peer peer;

	if (argc == 2 && strcmp(argv[1], "call") == 0)
		return call_handler();
	while (next < argc - 1 && strchr(argv[next], '=') && envs < 15)
		env[envs++] = argv[next++];
	o.envp = env;
	if (strcmp(what, "death_pipe") == 0)
		o.flags |= SLMPM_SPAWN_DIE_WITH_HOST;
	if (strcmp(what, "there") == 0)
		o.flags |= SLMPM_SPAWN_THERE;
	if (strcmp(what, "clean") == 0)
		o.flags |= SLMPM_SPAWN_CLEAN_ENV;
	if ((value = after(what, "carry")))
		o.flags |= SLMPM_SPAWN_CARRY_CWD;
	o.cwd = value ? value : after(what, "cwd");
	o.wrapper = after(what, "wrapper");
	if (slmpm_spawn(&peer, argv[next], argv + next + 1, &o) < 0)
		return slmpm_perror("start");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "handler") == 0) {
		(void)slmpm_am_handler((slmpm_ctx){0}, 1, try_start, argv[next]);
		if (slmpm_recv(peer, 0, NULL, 0, NULL, 20000) != -SLMPM_ECLOSED)
			return slmpm_perror("handler");
	}
	if (strcmp(what, "close") == 0 && slmpm_close(peer, 0) < 0)
		return slmpm_perror("close");
	if (strcmp(what, "kill") == 0 || strcmp(what, "term") == 0 ||
	    strcmp(what, "death_pipe") == 0) {
		if (getchar() != '\n')
			return 3;
		if (what[0] == 'd')
			return raise(SIGKILL);
		if (slmpm_kill(peer, what[0] == 'k' ? 0 : 60000) < 0)
			return slmpm_perror("kill");
	}
	return tell(peer);
}
