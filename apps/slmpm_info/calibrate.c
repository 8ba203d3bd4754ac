/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration: the trials, each a process of its own with its own settings, and what they told. */
#include "apps/slmpm_info/calibrate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/slmpm_info/info.h"

#define OVERDUE_MS 30000 /* beyond its time: it is ended */

struct trial {
	const char *fabric;
	enum trial_kind kind;
	const char *form; /* of requests; of collectives: the algorithms */
	int which;        /* sockets; of collectives: which set */
	const char *text;
};

#define FOR_SHORT                                                                                  \
	"broadcast:binomial,reduce:binomial,allreduce:recursive_doubling,allgather:bruck,"         \
	"reduce_scatter:pairwise,scan:recursive_doubling,exscan:recursive_doubling"
#define FOR_LONG                                                                                   \
	"broadcast:chain,reduce:chain,allreduce:ring,allgather:ring,reduce_scatter:ring,"          \
	"scan:chain,exscan:chain"

static const struct trial trials[] = {
	{"shm", TRIAL_WAYS, "auto", SOCKETS_PLAIN, "messages and puts"},
	{"shm", TRIAL_WITH_ENGINE, "auto", SOCKETS_PLAIN, "the engine"},
	{"shm", TRIAL_ASKING, "auto", SOCKETS_PLAIN, "the other side's engine"},
	{"tcp", TRIAL_WAYS, "auto", SOCKETS_PLAIN, "messages and puts"},
	{"tcp", TRIAL_REQUESTS, "am", SOCKETS_PLAIN, "requests by active messages"},
	{"tcp", TRIAL_REQUESTS, "tag", SOCKETS_PLAIN, "requests by tagged messages"},
	{"tcp", TRIAL_SOCKETS, "auto", SOCKETS_PLAIN, "plain calls"},
	{"tcp", TRIAL_SOCKETS, "auto", SOCKETS_URING_RECV, "receiving by io_uring"},
	{"tcp", TRIAL_SOCKETS, "auto", SOCKETS_URING_SEND, "sending by io_uring"},
	{"tcp", TRIAL_COLLECTIVES, FOR_SHORT, COLLECT_SHORT, "collectives of short vectors"},
	{"tcp", TRIAL_COLLECTIVES, FOR_LONG, COLLECT_LONG, "collectives of long vectors"},
	{"tcp", TRIAL_COLLECTIVES, "reduce:flat,allreduce:flat", COLLECT_RANKED_SHORT,
	 "short sums by rank"},
	{"tcp", TRIAL_COLLECTIVES, "reduce:chain,allreduce:pairwise", COLLECT_RANKED_LONG,
	 "long sums by rank"},
};

#define TRIALS  (int)(sizeof(trials) / sizeof(*trials))
#define FABRICS 2
static const char *const fabrics[FABRICS] = {"shm", "tcp"};
const char *const calibrate_sockets[SOCKETS + 1] = {"plain", "uring-recv", "uring-send", "uring"};

/* ---- one trial ------------------------------------------------------------------------------ */

/* What is measured must not be chosen; all else is as the user has set it. */
static void settle(const struct trial *t)
{
	static const char *const set[][2] = {
		{"SLMPM_MODE", "auto"},     {"SLMPM_FETCH", "auto"},     {"SLMPM_SHARE", "always"},
		{"SLMPM_SHARE_MIN", "32k"}, {"SLMPM_ENGINE_MIN", "1"},   {"SLMPM_LINKS", "1"},
		{"SLMPM_LINK", "auto"},     {"SLMPM_CHECK", "0"},        {"SLMPM_TRACE", ""},
		{"SLMPM_TOPOLOGY", ""},     {"SLMPM_EAGER_MAX", "256k"}, {"SLMPM_ASK_MIN", "256k"},
	};

	for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++)
		setenv(set[i][0], set[i][1], 1);
	setenv("SLMPM_FABRIC", t->fabric, 1);
	if (t->kind == TRIAL_COLLECTIVES) {
		setenv("SLMPM_COLL_ALGORITHM", t->form, 1);
		setenv("SLMPM_COLL_ORDER", t->which < COLLECT_RANKED_SHORT ? "any" : "rank", 1);
	} else {
		setenv("SLMPM_RMA", t->form, 1);
		setenv("SLMPM_TCP_ENGINE", calibrate_sockets[t->which], 1);
	}
	setenv("SLMPM_ENGINE", t->kind == TRIAL_WITH_ENGINE ? "thread" : "none", 1);
}

/* What is refused is replaced silently: that would be another's figures. */
static bool goes(const struct trial *t)
{
	struct slmpm_check check = {.size = sizeof(check)};

	for (int i = 0; t->kind == TRIAL_SOCKETS && t->which && slmpm_check_at(i, &check) >= 0; i++)
		if (!strcmp(check.name, "io_uring"))
			return check.state == 1;
	return true;
}

/* Its process; its figures come from *FD. */
static pid_t begin(const struct trial *t, const struct placement *p, int ms, int *fd)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		FILE *out = fdopen(ends[1], "w");

		close(ends[0]);
		settle(t);
		if (!goes(t))
			_exit(0);
		if (out && t->kind == TRIAL_COLLECTIVES)
			_exit(collect_drive(t->which >= COLLECT_RANKED_SHORT, ms, out));
		_exit(out ? trial_drive(t->kind, p->cpu, ms, out) : 1);
	}
	close(ends[1]);
	*fd = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid;
}

static void take_collective(struct figures *f, const struct trial *t, int what,
			    unsigned long long size, double ns)
{
	int kind = what - COLLECT_CASE, at;

	if (kind < 0 || kind >= COLLECT_KINDS || size < COLLECT_LEAST)
		return;
	at = 63 - __builtin_clzll(size / COLLECT_LEAST);
	if (at < COLLECT_SIZES)
		f->collect_ns[t->which][kind][at] = ns;
}

static void take(struct figures *f, const struct trial *t, const char *line)
{
	unsigned long long size;
	double ns;
	int what, at;

	if (sscanf(line, "%d %llu %lf", &what, &size, &ns) != 3)
		return;
	if (t->kind == TRIAL_COLLECTIVES)
		take_collective(f, t, what, size, ns);
	if (what == TRIAL_RING_MOST)
		f->ring_most = ns;
	if (what == TRIAL_RING_BYTES)
		f->ring_bytes = ns;
	if (what == TRIAL_RING_MEAN)
		f->ring_mean = ns;
	if (what < 0 || what >= TRIAL_CASES || size < trial_least(t->kind))
		return;
	at = 63 - __builtin_clzll(size / trial_least(t->kind));
	if (at >= TRIAL_SIZES)
		return;
	if (t->kind == TRIAL_REQUESTS)
		f->form_ns[t->form[0] == 't'][at] = ns;
	else if (t->kind == TRIAL_SOCKETS)
		f->socket_ns[t->which][what == TRIAL_SMT_STREAM][at] = ns;
	else
		f->ns[what][at] = ns;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All that it says until its end or UNTIL; false: it is late. */
static bool hear(int fd, int64_t until, char *text, size_t size)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	ssize_t got = 1;

	do {
		int64_t left = until - now_ms();
		int rc = poll(&ready, 1, left > 0 ? (int)left : 0);

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc <= 0)
			return false;
		got = read(fd, text + n, size - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	text[n] = 0;
	return true;
}

static bool run(const struct trial *t, const struct placement *p, int ms, struct figures *f)
{
	static char text[65536];
	int fd, status = 1;
	bool heard;
	pid_t pid = begin(t, p, ms, &fd);

	if (pid < 0) {
		perror("slmpm_info: trial");
		return false;
	}
	heard = hear(fd, now_ms() + ms + OVERDUE_MS, text, sizeof(text));
	close(fd);
	if (!heard) {
		fprintf(stderr, "slmpm_info: a trial does not end\n");
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	for (char *save, *line = strtok_r(text, "\n", &save); heard && line;
	     line = strtok_r(NULL, "\n", &save))
		take(f, t, line);
	return heard && status == 0;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool run_all(const struct placement *places, int n, int seconds,
		    struct figures figures[FABRICS][PLACEMENTS])
{
	int ms = seconds * 1000 / (n * TRIALS), number = 0;

	for (int p = 0; p < n; p++) {
		for (const struct trial *t = trials; t < trials + TRIALS; t++) {
			int fabric = strcmp(t->fabric, "shm") != 0;

			if (p && t->kind == TRIAL_COLLECTIVES) /* of more than two processes */
				continue;

			fprintf(stderr, "slmpm_info: %d of %d: %s, %s; %s\n", ++number, n * TRIALS,
				t->fabric, t->text, places[p].text);
			if (!run(t, &places[p], ms, &figures[fabric][p]))
				return false;
		}
	}
	return true;
}

static const char *const names[TRIAL_CASES] = {
	"packets",         "fetched", "packets_stream", "fetched_stream", "packets_touched",
	"fetched_touched", "copied",  "shared",         "requested",      "engine",
	"handed",          "asked",   "not_asked",
};

static json_t *list(const double *ns)
{
	json_t *all = json_array();

	for (int i = 0; i < TRIAL_SIZES; i++)
		json_array_append_new(all, ns[i] > 0 ? json_real(ns[i]) : json_null());
	return all;
}

static json_t *measured(const struct figures *f, const char *fabric, const struct placement *p)
{
	json_t *all = json_pack("{ss so s[ii]}", "fabric", fabric, "placement", info_text(p->text),
				"cpus", p->cpu[0], p->cpu[1]);
	json_t *ns = json_object();

	for (int c = 0; c < TRIAL_CASES; c++)
		if (f->ns[c][TRIAL_SIZES - 1] > 0)
			json_object_set_new(ns, names[c], list(f->ns[c]));
	if (f->form_ns[0][0] > 0)
		json_object_set_new(ns, "requested_am", list(f->form_ns[0]));
	if (f->form_ns[1][0] > 0)
		json_object_set_new(ns, "requested_tag", list(f->form_ns[1]));
	for (int i = 0; i < SOCKETS; i++)
		for (int k = 0; k < 2; k++) {
			char name[48];

			snprintf(name, sizeof(name), "%s%s", calibrate_sockets[i],
				 k ? "_stream" : "");
			if (f->socket_ns[i][k][0] > 0)
				json_object_set_new(ns, name, list(f->socket_ns[i][k]));
		}
	json_object_set_new(all, "ns", ns);
	if (f->ring_most > 0) {
		json_object_set_new(all, "ring_seen_mean", json_real(f->ring_mean));
		json_object_set_new(all, "ring_seen_most", json_real(f->ring_most));
	}
	return all;
}

static json_t *advice(const struct threshold *t)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	char value[256];

	for (int i = 0; slmpm_setting_at(i, &s) >= 0; i++)
		if (!strcmp(s.name, t->name))
			break;
	if (!t->found)
		snprintf(value, sizeof(value), "%.255s", s.value);
	else if (t->word)
		snprintf(value, sizeof(value), "%s", t->word);
	else if (t->size && t->value % 1024 == 0)
		snprintf(value, sizeof(value), "%lluk", (unsigned long long)t->value / 1024);
	else
		snprintf(value, sizeof(value), "%llu", (unsigned long long)t->value);
	return json_pack("{ss ss so ss sb ss}", "name", t->name, "value", value, "present",
			 info_text(s.value), "initial", s.initial, "found", (int)t->found,
			 "measured", t->measured);
}

json_t *info_calibration(int seconds)
{
	static struct figures figures[FABRICS][PLACEMENTS];
	struct threshold thresholds[THRESHOLDS];
	struct placement places[PLACEMENTS];
	int n = placement_find(places);
	json_t *all, *runs, *settings;

	if (!run_all(places, n, seconds, figures))
		return NULL;
	derive(figures[0], figures[1], n, thresholds);
	all = json_object();
	runs = json_array();
	settings = json_array();
	for (int p = 0; p < n; p++)
		for (int f = 0; f < FABRICS; f++)
			json_array_append_new(runs,
					      measured(&figures[f][p], fabrics[f], &places[p]));
	for (int i = 0; i < THRESHOLDS; i++)
		json_array_append_new(settings, advice(&thresholds[i]));
	json_object_set_new(all, "least", json_integer(TRIAL_LEAST));
	json_object_set_new(all, "trials", runs);
	json_object_set_new(all, "settings", settings);
	return all;
}
