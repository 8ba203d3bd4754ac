/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting accelerator processes and learning how they ended. The child finds its host by
 * SLMPM_PARENT=FD:INODE, which the caller's environment cannot replace; the inode tells a descriptor
 * that was really inherited from another that came to have its number.
 */
#include "slmpm/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slmpm/bootstrap.h"
#include "slmpm/error.h"
#include "slmpm/log.h"
#include "slmpm/message.h"
#include "slmpm/wait.h"

#define PARENT_VARIABLE "SLMPM_PARENT"
#define LEASH_VARIABLE  "SLMPM_LEASH"

struct process {
	pid_t pid;
	int pidfd;
	int leash; /* write end; the child dies when the last copy closes */
	bool reaped;
	siginfo_t end;
	uint64_t kill_at; /* SIGKILL is due then; 0: not */
};

static void set_environment(char **to, char *const *add, char *own[3]);

/* ---- the program and its arguments ---------------------------------------------------------- */

struct launch {
	char program[4096];
	char **argv;
	char **envp;
	char parent[64], leash[64];
	char *wrapped; /* storage of a wrapper's words */
};

/* A name with a slash is meant from here, not from the child's working directory. */
static int find_program(const char *prog, char out[4096])
{
	const char *path = getenv("PATH");
	char here[4096];

	if (strchr(prog, '/')) {
		if (!realpath(prog, here))
			return -errno;
		if (access(here, X_OK) != 0)
			return -errno;
		/* The name as given, made absolute: links keep their meaning for the program. */
		if (prog[0] == '/')
			return snprintf(out, 4096, "%s", prog) < 4096 ? 0 : -ENAMETOOLONG;
		if (!getcwd(here, sizeof(here)))
			return -errno;
		return snprintf(out, 4096, "%.2040s/%.2040s", here, prog) < 4096 ? 0 :
										   -ENAMETOOLONG;
	}
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path) {
		size_t n = strcspn(path, ":");
		struct stat st;

		if (n && n < 2048 &&
		    snprintf(out, 4096, "%.*s/%.2040s", (int)n, path, prog) < 4096 &&
		    access(out, X_OK) == 0 && stat(out, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
		path += n;
		path += *path == ':';
	}
	return -ENOENT;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* The wrapper's words with %e as the program and %a as its arguments. */
static int wrap(struct launch *l, const char *wrapper, char *const argv[])
{
	size_t words = 2, used = 0;
	char *save = NULL;

	l->wrapped = strdup(wrapper);
	for (const char *at = wrapper; *at; at++)
		words += *at == ' ' ? 1 : *at == '%' ? count(argv) : 0;
	l->argv = calloc(words + 2, sizeof(char *));
	if (!l->wrapped || !l->argv)
		return -ENOMEM;
	for (char *word = strtok_r(l->wrapped, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "%e"))
			l->argv[used++] = strdup(l->program);
		else if (!strcmp(word, "%a"))
			for (size_t i = 0; i < count(argv); i++)
				l->argv[used++] = strdup(argv[i]);
		else
			l->argv[used++] = strdup(word);
	}
	if (!used)
		return -EINVAL;
	return find_program(l->argv[0], l->program);
}

static int make_argv(struct launch *l, const char *prog, char *const argv[], const char *wrapper)
{
	int rc = find_program(prog, l->program);

	if (rc < 0)
		return rc;
	if (wrapper && *wrapper)
		return wrap(l, wrapper, argv);
	l->argv = calloc(count(argv) + 2, sizeof(char *));
	if (!l->argv)
		return -ENOMEM;
	l->argv[0] = strdup(prog);
	for (size_t i = 0; i < count(argv); i++)
		l->argv[i + 1] = strdup(argv[i]);
	return 0;
}

static void free_launch(struct launch *l)
{
	for (size_t i = 0; l->argv && l->argv[i]; i++)
		free(l->argv[i]);
	free(l->argv);
	free(l->envp);
	free(l->wrapped);
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return !strncmp(a, b, n + 1);
}

static bool overridden(const char *entry, char *const *by)
{
	for (; by && *by; by++)
		if (same_name(entry, *by))
			return true;
	return false;
}

/* Ours, then what is in force of the caller's additions and of this process's environment. */
static void set_environment(char **to, char *const *add, char *own[3])
{
	size_t used = 0;

	while (own[used]) {
		to[used] = own[used];
		used++;
	}
	for (size_t i = 0; add && add[i]; i++)
		if (!overridden(add[i], own))
			to[used++] = add[i];
	to[used] = NULL;
}

static int make_environment(struct launch *l, const struct slmpm_spawn_options *o, int fd,
			    int leash)
{
	extern char **environ;
	bool clean = o && o->flags & SLMPM_SPAWN_CLEAN_ENV;
	char *const *given = o ? o->envp : NULL;
	char **merged = calloc(count(environ) + count(given) + 1, sizeof(char *));
	char *own[3] = {l->parent, leash >= 0 ? l->leash : NULL, NULL};
	struct stat st;
	size_t used = 0;

	l->envp = calloc(count(environ) + count(given) + 4, sizeof(char *));
	if (!merged || !l->envp || fstat(fd, &st) != 0) {
		free(merged);
		return -ENOMEM;
	}
	snprintf(l->parent, sizeof(l->parent), PARENT_VARIABLE "=%d:%llu", fd,
		 (unsigned long long)st.st_ino);
	snprintf(l->leash, sizeof(l->leash), LEASH_VARIABLE "=%d", leash);
	for (size_t i = 0; !clean && environ && environ[i]; i++)
		if (!overridden(environ[i], given) &&
		    strncmp(environ[i], LEASH_VARIABLE "=", sizeof(LEASH_VARIABLE)) != 0)
			merged[used++] = environ[i];
	for (size_t i = 0; given && given[i]; i++)
		merged[used++] = given[i];
	set_environment(l->envp, merged, own);
	free(merged);
	return 0;
}

/* ---- starting ------------------------------------------------------------------------------- */

static int start(struct launch *l, const char *cwd, int fd, int leash, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	/* Onto itself: only the child's copy loses close-on-exec. */
	rc = posix_spawn_file_actions_adddup2(&actions, fd, fd);
	if (rc == 0 && leash >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, leash, leash);
	if (rc == 0 && cwd)
		rc = posix_spawn_file_actions_addchdir_np(&actions, cwd);
	if (rc == 0)
		rc = posix_spawn(pid, l->program, &actions, &attributes, l->argv, l->envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -rc;
}

static int launch(struct endpoint *ep, const char *prog, char *const argv[],
		  const struct slmpm_spawn_options *o, int fds[2], int leash[2])
{
	struct process *p = ep->process;
	struct launch l = {.argv = NULL};
	int rc = make_argv(&l, prog, argv, o ? o->wrapper : NULL);

	if (rc == 0 && o && o->flags & SLMPM_SPAWN_DIE_WITH_HOST && pipe2(leash, O_CLOEXEC) != 0)
		rc = -errno;
	if (rc == 0)
		rc = make_environment(&l, o, fds[1], leash[0]);
	if (rc == 0)
		rc = start(&l, o ? o->cwd : NULL, fds[1], leash[0], &p->pid);
	free_launch(&l);
	if (leash[0] >= 0)
		close(leash[0]);
	p->leash = leash[1];
	if (rc < 0)
		return rc;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	ep->pid = p->pid;
	return 0;
}

static int check_options(const struct slmpm_spawn_options *o)
{
	if (!o)
		return 0;
	if (o->size < sizeof(*o))
		return error_set(SLMPM_EINVAL, "slmpm_spawn: set .size of the options");
	if (o->flags & ~(SLMPM_SPAWN_DIE_WITH_HOST | SLMPM_SPAWN_CLEAN_ENV))
		return error_set(SLMPM_EINVAL, "slmpm_spawn: unknown flags 0x%x", o->flags);
	return 0;
}

int slmpm_spawn(slmpm_peer *peer, const char *prog, char *const argv[],
		const struct slmpm_spawn_options *o)
{
	slmpm_ctx none = {0};
	int fds[2] = {-1, -1}, leash[2] = {-1, -1};
	struct context *ctx;
	struct endpoint *ep;
	int rc = check_options(o);

	if (rc < 0)
		return rc;
	if (!peer || !prog || !*prog)
		return error_set(SLMPM_EINVAL, "slmpm_spawn: no %s", peer ? "program" : "peer");
	ctx = context_get(o ? o->ctx : none, &rc);
	if (!ctx)
		return rc;
	context_lock(ctx);
	ep = endpoint_new(ctx);
	if (!ep) {
		rc = -SLMPM_ENOMEM;
		goto unlock;
	}
	ep->element = o ? o->element : 0;
	ep->process = calloc(1, sizeof(*ep->process));
	if (!ep->process) {
		rc = error_set(SLMPM_ENOMEM, "for a process");
		goto free_endpoint;
	}
	ep->process->pidfd = ep->process->leash = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
		rc = error_system(-errno, "a control socket cannot be made");
		goto free_endpoint;
	}
	rc = launch(ep, prog, argv, o, fds, leash);
	close(fds[1]);
	if (rc < 0) {
		char what[160];

		snprintf(what, sizeof(what), "%.120s cannot be started", prog);
		close(fds[0]);
		rc = error_system(rc, what);
		goto free_endpoint;
	}
	endpoint_name(ep);
	rc = bootstrap_start(ep, fds[0], ep->process->pidfd);
	if (rc < 0) {
		(void)kill(ep->process->pid, SIGKILL);
		(void)waitpid(ep->process->pid, NULL, 0);
		rc = error_system(rc, "the control connection cannot be set up");
		goto free_endpoint;
	}
	peer->id = handle_id(ep);
	context_unlock(ctx);
	return 0;
free_endpoint:
	endpoint_free(ep);
unlock:
	context_unlock(ctx);
	return rc;
}

/* ---- the child's side ----------------------------------------------------------------------- */

/* SIGKILL when the host's end of the pipe closes, however that comes about; no thread needed. */
static void put_on_leash(void)
{
	const char *text = getenv(LEASH_VARIABLE);
	struct pollfd p;

	if (!text)
		return;
	p = (struct pollfd){.fd = atoi(text), .events = POLLIN};
	if (fcntl(p.fd, F_SETFD, FD_CLOEXEC) != 0)
		return;
	if (fcntl(p.fd, F_SETOWN, getpid()) != 0 || fcntl(p.fd, F_SETSIG, SIGKILL) != 0 ||
	    fcntl(p.fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
		log_line(SLMPM_LOG_WARN, "this process cannot be made to end with its host");
	if (poll(&p, 1, 0) == 1) /* it ended before we could ask */
		(void)kill(getpid(), SIGKILL);
}

static int inherited_socket(void)
{
	const char *text = getenv(PARENT_VARIABLE);
	unsigned long long inode;
	struct stat st;
	int fd;

	if (!text || sscanf(text, "%d:%llu", &fd, &inode) != 2)
		return error_set(SLMPM_ESTATE, "this program was not started by slmpm_spawn");
	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_ino != inode)
		return error_set(SLMPM_ESTATE, "the connection to the host was not inherited");
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* not for this process's own children */
	return fd;
}

static pthread_mutex_t parent_lock = PTHREAD_MUTEX_INITIALIZER;
static slmpm_peer parent;

static int connect_parent(slmpm_ctx handle)
{
	struct context *ctx;
	struct endpoint *ep;
	int rc = 0, fd = inherited_socket();

	if (fd < 0)
		return fd;
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	put_on_leash();
	context_lock(ctx);
	ep = endpoint_new(ctx);
	rc = ep ? 0 : -SLMPM_ENOMEM;
	if (ep) {
		struct ucred host;
		socklen_t size = sizeof(host);

		ep->is_parent = true;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &host, &size) == 0)
			ep->pid = host.pid;
		endpoint_name(ep);
		rc = bootstrap_start(ep, fd, -1);
		if (rc < 0)
			rc = error_system(rc, "the control connection cannot be set up");
		while (rc == 0 && ep->state == SLMPM_PEER_CONNECTING)
			rc = wait_for_events(ctx, (int)config_get()->handshake_ms);
		if (rc == 0 && ep->state != SLMPM_PEER_UP)
			rc = endpoint_error(ep);
		if (rc < 0)
			endpoint_free(ep);
		else
			parent.id = handle_id(ep);
	}
	context_unlock(ctx);
	return rc;
}

int slmpm_parent_in(slmpm_ctx ctx, slmpm_peer *peer)
{
	int rc = 0;

	if (!peer)
		return error_set(SLMPM_EINVAL, "slmpm_parent: no peer");
	pthread_mutex_lock(&parent_lock);
	if (!parent.id)
		rc = connect_parent(ctx);
	if (rc == 0)
		*peer = parent;
	pthread_mutex_unlock(&parent_lock);
	return rc;
}

int slmpm_parent(slmpm_peer *peer)
{
	slmpm_ctx none = {0};

	return slmpm_parent_in(none, peer);
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool look(struct process *p, int options)
{
	siginfo_t info = {0};

	if (p->reaped)
		return true;
	if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | options) != 0) {
		/* Reaped by the application's own waitpid: how it ended is not known. */
		info.si_code = CLD_EXITED;
		info.si_pid = p->pid;
	}
	if (!info.si_pid)
		return false;
	p->end = info;
	p->reaped = !(options & WNOWAIT);
	return true;
}

bool process_describe(struct endpoint *ep, char *text, size_t size)
{
	struct process *p = ep->process;

	if (!look(p, WNOHANG | WNOWAIT)) {
		snprintf(text, size, "it left the connection");
		return false;
	}
	if (p->end.si_code == CLD_EXITED) {
		snprintf(text, size, "it exited with status %d", p->end.si_status);
		return p->end.si_status == 0;
	}
	snprintf(text, size, "it was killed by signal %d (%s)", p->end.si_status,
		 strsignal(p->end.si_status));
	return false;
}

static void kill_when_due(struct process *p, uint64_t now)
{
	if (p->kill_at && now >= p->kill_at && !p->reaped) {
		(void)kill(p->pid, SIGKILL);
		p->kill_at = 0;
	}
}

static int status_word(const struct process *p)
{
	if (p->end.si_code == CLD_EXITED)
		return p->end.si_status << 8;
	return p->end.si_status | (p->end.si_code == CLD_DUMPED ? 0x80 : 0);
}

static int await_end(struct endpoint *ep, uint64_t deadline)
{
	struct process *p = ep->process;

	while (!look(p, WNOHANG)) {
		struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
		uint64_t now = wait_now(), until = deadline;

		kill_when_due(p, now);
		if (now >= deadline)
			return error_set(SLMPM_ETIMEOUT, "%s still runs", ep->name);
		if (p->kill_at && p->kill_at < until)
			until = p->kill_at;
		/* Without a pidfd (a kernel before 5.3) look again soon. */
		(void)poll(&fd, 1, wait_ms(now, until, fd.fd < 0 ? 2 : -1));
	}
	return 0;
}

int slmpm_join(slmpm_peer peer, int *status, int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	uint64_t deadline = wait_deadline(timeout_ms);
	struct context *ctx;
	int rc, word;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (!ep->process)
		return error_set(SLMPM_ESTATE, "%s was not started by slmpm_spawn", ep->name);
	ctx = ep->ctx;
	context_lock(ctx);
	(void)message_close(ep, wait_ms(wait_now(), deadline, -1));
	rc = await_end(ep, deadline);
	if (rc == 0) {
		word = status_word(ep->process);
		endpoint_free(ep);
		if (status)
			*status = word;
		else
			rc = WIFEXITED(word) ? WEXITSTATUS(word) : 128 + WTERMSIG(word);
	}
	context_unlock(ctx);
	return rc;
}

int slmpm_kill(slmpm_peer peer, int grace_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	int rc = 0;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (!ep->process)
		return error_set(SLMPM_ESTATE, "%s was not started by slmpm_spawn", ep->name);
	if (grace_ms < 0)
		return error_set(SLMPM_EINVAL, "slmpm_kill: a grace of %d ms", grace_ms);
	context_lock(ep->ctx);
	if (look(ep->process, WNOHANG | WNOWAIT))
		rc = 0;
	else if (kill(ep->process->pid, grace_ms ? SIGTERM : SIGKILL) != 0)
		rc = error_system(-errno, ep->name);
	else if (grace_ms) {
		ep->process->kill_at = wait_now() + (uint64_t)grace_ms * 1000000;
		ep->ctx->kills = true;
	}
	context_unlock(ep->ctx);
	return rc;
}

uint64_t process_kill_due(struct context *ctx)
{
	uint64_t next = UINT64_MAX, now = 0;

	if (!ctx->kills)
		return next;
	now = wait_now();
	for (uint32_t i = 0; i < ctx->count; i++) {
		struct process *p = ctx->endpoints[i]->process;

		if (!p || !p->kill_at)
			continue;
		if (look(p, WNOHANG | WNOWAIT))
			p->kill_at = 0; /* it ended by itself */
		else
			kill_when_due(p, now);
		if (p->kill_at && p->kill_at < next)
			next = p->kill_at;
	}
	ctx->kills = next != UINT64_MAX;
	return next;
}

void process_free(struct endpoint *ep)
{
	if (!ep->process)
		return;
	if (ep->process->leash >= 0)
		close(ep->process->leash);
	free(ep->process);
	ep->process = NULL;
}
