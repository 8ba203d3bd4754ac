/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engines of sockets cost a host with 1 to 48 accelerators over loopback TCP: "engines
 * CPU,CPU [ROUNDS]" prints Markdown. The host alone goes by the engine; the accelerators are one
 * process that spins, and goes by plain calls. Engines take turns; ratios are of samples that
 * follow each other.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/plain.h"
#include "tests/bench/stats.h"

enum { MOST = 48, ROUNDS = 31, ENGINES = 3, PATIENCE_MS = 5000, BYTES = 1 << 16, TRIPS = 200000 };

#define SAMPLE_S 0.1

static const char *const engines[ENGINES] = {"plain", "uring-recv", "uring"};
static const unsigned crowds[] = {1, 4, 16, MOST};

static const struct kind {
	const char *name, *wait, *unit;
	size_t size;
} kinds[] = {
	{"8 B one way, awake", "spin", "us", 8},
	{"8 B one way, asleep", "block", "us", 8},
	{"4 KiB stream", "spin", "GB/s", 4096},
	{"16 KiB stream", "spin", "GB/s", 16384},
};
enum { KINDS = sizeof kinds / sizeof *kinds, CROWDS = sizeof crowds / sizeof *crowds };

static _Alignas(64) char bytes[BYTES];
static unsigned cpus[2];

static void become(unsigned cpu, const char *engine, const char *wait)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_TCP_ENGINE", engine, 1);
	setenv("SLMPM_WAIT", wait, 1);
}

/* ---- the two processes ---------------------------------------------------------------------- */

/* Answers what is short. */
static void host(const struct kind *k, const char *engine, unsigned n, int ready)
{
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	char url[48];

	become(cpus[1], engine, k->wait);
	snprintf(url, sizeof url, "shm:engines-%d", (int)getpid());
	ok(slmpm_listen(&listener, none, url), "listen");
	if (write(ready, url, sizeof url) != sizeof url)
		_exit(1);
	for (unsigned i = 0; i < n; i++)
		ok(slmpm_accept(listener, &peer, PATIENCE_MS), "accept");
	for (;;) {
		struct slmpm_done d = {0};
		int64_t got = slmpm_recv(slmpm_any(none), 0, bytes, sizeof bytes, &d, -1);

		if (got < 0) /* they have gone */
			_exit(0);
		if (got <= 8)
			ok(slmpm_send(d.peer, 0, bytes, (size_t)got, -1), "answer");
	}
}

static void there_and_back(slmpm_peer peer)
{
	ok(slmpm_send(peer, 0, bytes, 8, PATIENCE_MS), "send");
	ok(slmpm_recv(peer, 0, bytes, 8, NULL, PATIENCE_MS), "recv");
}

/* Median of half a round trip, to one after the other in no order. */
static double latency(const slmpm_peer *peer, unsigned n, double end)
{
	static double trip[TRIPS];
	unsigned random = 1;
	int done = 0;

	for (double t = now(), next; t < end && done < TRIPS; t = next) {
		random = random * 1103515245 + 12345;
		there_and_back(peer[(random >> 16) % n]);
		next = now();
		trip[done++] = (next - t) / 2;
	}
	return median(trip, done) * 1e6;
}

/* To all of them in turn, until all has been received. */
static double stream(const slmpm_peer *peer, unsigned n, size_t size, double end)
{
	double sent = 0, begin = now();

	while (now() < end)
		for (unsigned i = 0; i < n; i++, sent += (double)size)
			ok(slmpm_send(peer[i], 0, bytes, size, PATIENCE_MS), "send");
	for (unsigned i = 0; i < n; i++)
		there_and_back(peer[i]);
	return sent / (now() - begin) / 1e9;
}

static void accelerators(const struct kind *k, unsigned n, int ready, int result)
{
	slmpm_peer peer[MOST];
	slmpm_ctx none = {0};
	char url[48];
	double value;

	become(cpus[0], "plain", "spin");
	if (read(ready, url, sizeof url) != sizeof url)
		_exit(1);
	for (unsigned i = 0; i < n; i++)
		ok(slmpm_connect(&peer[i], none, url, PATIENCE_MS), "connect");
	for (unsigned i = 0; i < 10 * n; i++)
		there_and_back(peer[i % n]);
	value = k->size <= 8 ? latency(peer, n, now() + SAMPLE_S) :
			       stream(peer, n, k->size, now() + SAMPLE_S);
	_exit(write(result, &value, sizeof value) != sizeof value);
}

/* ---- samples -------------------------------------------------------------------------------- */

static double sample(const struct kind *k, unsigned n, const char *engine)
{
	struct pollfd result;
	int ready[2], value[2];
	double x = 0;
	pid_t child[2];

	if (pipe(ready) || pipe(value))
		return 0;
	if ((child[0] = fork()) == 0)
		host(k, engine, n, ready[1]);
	if ((child[1] = fork()) == 0)
		accelerators(k, n, ready[0], value[1]);
	close(value[1]);
	result = (struct pollfd){.fd = value[0], .events = POLLIN};
	if (poll(&result, 1, 4 * PATIENCE_MS) != 1 || read(value[0], &x, sizeof x) != sizeof x)
		x = 0;
	close(value[0]);
	close(ready[0]);
	close(ready[1]);
	for (int i = 0; i < 2; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	return x;
}

static double samples[KINDS][CROWDS][ENGINES][ROUNDS];

/* Everything once: whether it came to pass. */
static bool take_round(int round)
{
	for (unsigned i = 0; i < KINDS * CROWDS * ENGINES; i++) {
		unsigned k = i / ENGINES / CROWDS, c = i / ENGINES % CROWDS, e = i % ENGINES;
		double x = sample(&kinds[k], crowds[c], engines[e]);

		if (x <= 0) {
			fprintf(stderr, "%s, %u: no sample by %s\n", kinds[k].name, crowds[c],
				engines[e]);
			return false;
		}
		samples[k][c][e][round] = x;
	}
	return true;
}

static void print_kind(unsigned k, int rounds)
{
	printf("| **%s**, plain calls, %s |", kinds[k].name, kinds[k].unit);
	for (unsigned c = 0; c < CROWDS; c++)
		printf(" %.2f |", median(samples[k][c][0], rounds));
	for (int e = 1; e < ENGINES; e++) {
		printf("\n| %s |", e == 1 ? "receives by io_uring" : "sends by it, too");
		for (unsigned c = 0; c < CROWDS; c++) {
			struct estimate r = ratio(samples[k][c][e], samples[k][c][0], rounds);

			printf(" %.2f (%.2f to %.2f) |", r.mid, r.low, r.high);
		}
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 5;

	if (argc < 2 || sscanf(argv[1], "%u,%u", &cpus[0], &cpus[1]) != 2 || rounds < 1 ||
	    rounds > ROUNDS) {
		fprintf(stderr, "usage: %s CPU,CPU [1 to %d rounds]\n", argv[0], ROUNDS);
		return 2;
	}
	for (int i = 0; i < rounds; i++)
		if (!take_round(i))
			return 1;
	printf("| links |");
	for (unsigned c = 0; c < CROWDS; c++)
		printf(" %u |", crowds[c]);
	printf("\n| --- | --: | --: | --: | --: |\n");
	for (unsigned k = 0; k < KINDS; k++)
		print_kind(k, rounds);
	return 0;
}
