/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's folder: the socket for those who start something, the topology, its state. Locked while
 * the job runs, so that nobody takes a dead one for a living one. */
#include "apps/slmpm_run/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"

#define JOB_START "job-"

static bool failed(const char *what, int error)
{
	fprintf(stderr, NAME ": %s: %s\n", what, strerror(error));
	return false;
}

int job_root(char path[PATH_MAX])
{
	const char *said = secure_getenv("SLMPM_RUN_DIR"), *user = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (said && *said)
		snprintf(path, PATH_MAX, "%s/slmpm-run-%u", said, (unsigned)geteuid());
	else if (user && *user)
		snprintf(path, PATH_MAX, "%s/slmpm-run", user);
	else
		snprintf(path, PATH_MAX, "/tmp/slmpm-run-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 022)
		return -EPERM;
	return 0;
}

/* ---- the topology that flags describe ------------------------------------------------------- */

static void put(FILE *to, const char *key, const char *value)
{
	if (value)
		fprintf(to, "%s %s\n", key, value);
}

/* "alpha:2,beta": numbers said, or the elements dealt out one by one. */
static bool put_hosts(FILE *to, const struct options *o)
{
	char *copy = strdup(o->hosts), *save = NULL;
	unsigned n = 0, i = 0;

	for (const char *at = o->hosts; *at; at++)
		n += *at == ',';
	n++;
	for (char *host = copy ? strtok_r(copy, ",", &save) : NULL; host;
	     host = strtok_r(NULL, ",", &save), i++) {
		char *colon = strchr(host, ':');

		if (colon)
			*colon++ = 0;
		fprintf(to, "host %s\n", host);
		if (colon)
			fprintf(to, "  elements %s\n", colon);
		else if (o->elements)
			fprintf(to, "  elements %u\n", o->elements / n + (i < o->elements % n));
		if (!strcmp(host, "local"))
			fputs("  remote -\n", to);
	}
	free(copy);
	return copy != NULL;
}

static bool write_topology(const struct job *j, char path[PATH_MAX])
{
	const struct options *o = j->options;
	FILE *to;
	bool good;

	if (snprintf(path, PATH_MAX, "%s/topology", j->folder.path) >= PATH_MAX)
		return failed(j->folder.path, ENAMETOOLONG);
	to = fopen(path, "we");
	if (!to)
		return failed(path, errno);
	put(to, "remote", o->remote ? o->remote : "ssh -oBatchMode=yes -oServerAliveInterval=5 %h");
	put(to, "agent", o->there);
	put(to, "listen", o->listen);
	put(to, "fabric", o->fabric);
	put(to, "chdir", o->chdir);
	put(to, "ship", o->ship);
	good = put_hosts(to, o);
	if (fclose(to) != 0 || !good)
		return failed(path, errno);
	return true;
}

/* ---- the environment ------------------------------------------------------------------------ */

static bool set(const char *name, const char *value)
{
	return setenv(name, value, 1) == 0 || failed(name, errno);
}

static bool set_exports(const struct options *o)
{
	const char *before = secure_getenv("SLMPM_EXPORT");
	char *list = strdup(before ? before : ""), *longer;
	bool good = list != NULL;

	for (char **e = o->exports; good && e && *e; e++) {
		char *name = strdup(*e), *equals = name ? strchr(name, '=') : NULL;

		if (equals) {
			*equals = 0;
			good = set(name, equals + 1);
		}
		good = good && name &&
		       asprintf(&longer, "%s%s%s", list, *list ? "," : "", name) >= 0;
		if (good) {
			free(list);
			list = longer;
		}
		free(name);
	}
	good = good && (!*list || set("SLMPM_EXPORT", list));
	free(list);
	return good;
}

static bool set_environment(struct job *j)
{
	const struct options *o = j->options;
	char text[PATH_MAX + 2], own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	bool collects = o->label || o->output;

	own[n > 0 ? n : 0] = 0;
	if (o->hosts && !(write_topology(j, text) && set("SLMPM_TOPOLOGY", text)))
		return false;
	if (o->topology) {
		if (!realpath(o->topology, text))
			return failed(o->topology, errno);
		if (!set("SLMPM_TOPOLOGY", text))
			return false;
	}
	if (o->elements && !o->hosts) {
		snprintf(text, sizeof(text), "%u", o->elements);
		if (!set("SLMPM_ELEMENTS", text))
			return false;
	}
	if (o->fabric && !o->hosts && !set("SLMPM_FABRIC", o->fabric))
		return false;
	snprintf(text, sizeof(text), "%s%s", collects ? "+" : "", j->socket);
	return set("SLMPM_JOB", text) && set("SLMPM_RUN_DIR", j->folder.path) &&
	       (n <= 0 || set("SLMPM_RUNNER", own)) &&
	       (!o->insecure || set("SLMPM_INSECURE", "y")) && set_exports(o);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static bool listen_for_members(struct job *j)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (snprintf(j->socket, sizeof(j->socket), "%s/job", j->folder.path) >=
	    (int)sizeof(j->socket))
		return failed(j->folder.path, ENAMETOOLONG);
	strcpy(sa.sun_path, j->socket);
	j->listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (j->listening < 0 || bind(j->listening, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    listen(j->listening, 1024) != 0)
		return failed(j->socket, errno);
	return true;
}

/* Everything the topology says is understood before anything runs. */
static bool check_topology(const struct options *o)
{
	struct slmpm_element_info info = {.size = sizeof(info)};
	const char *path = secure_getenv("SLMPM_TOPOLOGY"), *why, *line;

	if (!path || !*path || slmpm_element_query(1, &info) == 0)
		return true;
	why = slmpm_error_detail();
	line = o->hosts ? strstr(why, path) : NULL;
	if (line) /* a file that nobody has seen: what it says is from -H */
		fprintf(stderr, NAME ": -H %s: %s\n", o->hosts,
			line + strlen(path) + strspn(line + strlen(path), ":0123456789 "));
	else
		fprintf(stderr, NAME ": %s\n", why);
	return false;
}

bool job_make(struct job *j, const struct options *o)
{
	char root[PATH_MAX];
	int rc = job_root(root);

	*j = (struct job){.options = o, .listening = -1, .folder.lock = -1, .started = time(NULL)};
	if (rc == -EPERM) {
		fprintf(stderr,
			NAME ": %s: others may write there; SLMPM_RUN_DIR names another place\n",
			root);
		return false;
	}
	if (rc < 0)
		return failed(root, -rc);
	(void)folder_sweep(root, JOB_START);
	rc = folder_make(&j->folder, root, JOB_START);
	if (rc < 0)
		return failed(root, -rc);
	return listen_for_members(j) && set_environment(j) && check_topology(j->options);
}

void job_remove(struct job *j)
{
	if (j->listening >= 0)
		close(j->listening);
	for (size_t i = 0; i < j->guest_count; i++)
		if (j->guests[i] >= 0)
			close(j->guests[i]);
	free(j->guests);
	for (size_t i = 0; i < j->count; i++)
		member_ended(&j->members[i]);
	free(j->members);
	folder_remove(&j->folder);
}

/* ---- members -------------------------------------------------------------------------------- */

struct member *job_add(struct job *j, uint32_t element, pid_t pid, const char *host,
		       const char *program)
{
	const char *slash = strrchr(program, '/');
	struct member *wider, *m;

	if (j->count == MEMBERS)
		return NULL;
	wider = realloc(j->members, (j->count + 1) * sizeof(*wider));
	if (!wider)
		return NULL;
	j->members = wider;
	m = &wider[j->count++];
	*m = (struct member){.element = element, .pid = pid};
	m->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	m->ended = m->pidfd < 0;
	snprintf(m->host, sizeof(m->host), "%s", host);
	snprintf(m->program, sizeof(m->program), "%s", slash ? slash + 1 : program);
	return m;
}

struct member *job_find(struct job *j, pid_t pid)
{
	for (size_t i = j->count; i--;)
		if (j->members[i].pid == pid)
			return &j->members[i];
	return NULL;
}

void member_ended(struct member *m)
{
	m->ended = true;
	if (m->pidfd >= 0)
		close(m->pidfd);
	m->pidfd = -1;
}

/* Written aside and put in place as a whole: who reads it sees one state. */
void job_write(const struct job *j)
{
	char path[PATH_MAX + 16], aside[PATH_MAX + 16];
	FILE *to;

	snprintf(path, sizeof(path), "%s/state", j->folder.path);
	snprintf(aside, sizeof(aside), "%s/state.new", j->folder.path);
	to = fopen(aside, "we");
	if (!to)
		return;
	fprintf(to, "job %d %lld %s\n", (int)getpid(), (long long)j->started,
		j->ending ? "ending" : "running");
	fputs("command", to);
	for (char **word = j->options->argv; *word; word++) {
		fputc(' ', to);
		for (const char *c = *word; *c; c++)
			fputc(*c < ' ' ? '?' : *c, to);
	}
	fputc('\n', to);
	for (size_t i = 0; i < j->count; i++) {
		const struct member *m = &j->members[i];

		fprintf(to, "member %u %d %s %d %d %d %s\n", m->element, (int)m->pid, m->host,
			m->ended, m->known, m->status, m->program);
	}
	if (fclose(to) == 0)
		(void)rename(aside, path);
}
