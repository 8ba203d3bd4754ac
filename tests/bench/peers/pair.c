/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair at work: obeys one order at a time, both sides asleep between orders. */
#include "tests/bench/peers/pair.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/peers/measure.h"

_Noreturn void pair_die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", pair.peer ? pair.peer->name : "pair", what,
		why ? why : strerror(errno));
	exit(1);
}

void *pair_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		       -1, 0);

	if (p == MAP_FAILED)
		pair_die("mmap", NULL);
	return p;
}

void pair_receive_at(void *buf)
{
	munmap(pair.rx, PAIR_MAX);
	pair.rx = buf;
}

static char *private_buffer(void)
{
	void *p = mmap(NULL, PAIR_MAX, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		pair_die("mmap", NULL);
	memset(p, 1, PAIR_MAX);
	return p;
}

void pair_exchange(int s, const void *mine, void *theirs, size_t len)
{
	if (len > PAIR_BLOB)
		pair_die("address", "too long");
	memcpy(pair.area->blob[s], mine, len);
	measure_meet();
	memcpy(theirs, pair.area->blob[!s], len);
	measure_meet();
}

/* ---- orders ---- */

static void answer(const struct order *o, double ns, double line_ns)
{
	double n = (double)o->count;
	struct answer a = {.line_ns = line_ns};

	if (o->test == TEST_PAUSE || o->test == TEST_PAUSE_BW) {
		pauses_answer(o, &a);
	} else if (o->test == TEST_LAT) {
		a.lat_us = ns / n / 2e3;
		if (o->each || o->idle_ns) {
			size_t k = (size_t)o->count;

			measure_sort(pair.area->each_us, k);
			a.lat_us_min = pair.area->each_us[0];
			a.lat_us_p50 = pair.area->each_us[k / 2];
			a.lat_us_p99 = pair.area->each_us[(k * 99 + 99) / 100 - 1];
		}
	} else if (o->test == TEST_LINE) {
		a.lat_us = line_ns / 1e3;
	} else {
		a.bytes_per_s = (double)o->size * n * 1e9 / ns;
		a.messages_per_s = o->test == TEST_BW ? n * 1e9 / ns : 0;
	}
	order_answer(o, pair.peer->name, &a);
}

/* A sample between two probes of the line, taken again when the host moved the CPUs meanwhile. */
static void obey(const struct order *o)
{
	double ns, line;
	int tries = 0;

	do {
		double before = measure_line();

		measure_run(o, o->warm == UINT64_MAX ? o->count / 8 + 4 : o->warm);
		ns = measure_run(o, o->count);
		double after = measure_line();
		double low = before < after ? before : after,
		       high = before < after ? after : before;

		line = (low + high) / 2;
		if (pair.side == 0)
			pair.area->again = high > ORDER_SAME_PLACE * low && ++tries < 4;
		if (pair.side == 0 && !pair.area->again && high > ORDER_SAME_PLACE * low)
			line = 0; /* still moving: the answer says null */
		measure_meet();
	} while (pair.area->again);
	if (pair.side == 0)
		answer(o, ns, line);
}

#define PATIENCE 100000000u /* looks at a byte that is to come */

static size_t most(void)
{
	return pair.peer->most ? pair.peer->most : PAIR_MAX;
}

static const char *refuse(const struct order *o)
{
	if (o->test != TEST_LINE && o->test != TEST_COPY &&
	    (o->loan != !!(pair.peer->flags & PAIR_IN_PLACE) ||
	     o->put != !!(pair.peer->flags & PAIR_PUT)))
		return "test not served here";
	if (o->loan && !o->touch)
		return "in place only with touch";
	if (o->size < 8 || o->size > most())
		return "size";
	if (o->count == 0 || ((o->each || o->idle_ns) && o->count + o->count / 8 + 4 > EACH_MAX))
		return "count";
	return NULL;
}

static void give_order(const struct order *o)
{
	pair.area->order = *o;
	atomic_fetch_add(&pair.area->turn, 1);
	syscall(SYS_futex, &pair.area->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void lead(void)
{
	char *text = NULL;
	size_t room = 0;
	struct order o;

	while (getline(&text, &room, stdin) > 0) {
		const char *why = order_parse(text, &o);

		if (!why)
			why = refuse(&o);
		if (why) {
			printf("{\"error\":\"%s\"}\n", why);
		} else {
			give_order(&o);
			obey(&o);
		}
		fflush(stdout);
	}
	free(text);
	o = (struct order){.test = TEST_QUIT};
	give_order(&o);
}

static void follow(void)
{
	for (uint32_t seen = 0;; seen++) {
		struct order o;

		while (atomic_load(&pair.area->turn) == seen)
			syscall(SYS_futex, &pair.area->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
		o = pair.area->order;
		if (o.test == TEST_QUIT)
			return;
		obey(&o);
	}
}

/* ---- start ---- */

static unsigned char pattern(size_t i, size_t len)
{
	return (unsigned char)(i * 7 + len / 8 + 3);
}

/* The mark at a put's end says nothing of the order of the bytes before it: these may yet come. */
static int arrived(const char *at, unsigned char want, unsigned inspections)
{
	while (__atomic_load_n((const unsigned char *)at, __ATOMIC_ACQUIRE) != want)
		if (--inspections == 0)
			return 0;
	return 1;
}

/* A message of every size each way: what is measured must also arrive. */
static void check(void)
{
	size_t marked = pair.peer->flags & PAIR_PUT ? sizeof(uint64_t) : 0;

	for (size_t len = 8; len <= most(); len *= 2)
		for (int from = 0; from < 2; from++) {
			if (pair.side == from) {
				for (size_t i = 0; i < len; i++)
					pair.tx[i] = (char)pattern(i, len);
				pair.peer->send(pair.tx, len);
				continue;
			}
			if (!marked) /* else it may have arrived already */
				memset(pair.rx, 0, len);
			pair.peer->recv(pair.rx, len);
			for (size_t i = 0; i < len - marked && !(pair.peer->flags & PAIR_IN_PLACE);
			     i++)
				if (!arrived(pair.rx + i, pattern(i, len), marked ? PATIENCE : 1))
					pair_die("check", "wrong data");
		}
}

static void pin(const char *cpus)
{
	int cpu[2];
	cpu_set_t set;

	if (sscanf(cpus, "%d,%d", &cpu[0], &cpu[1]) != 2)
		pair_die("CPUs", "want two, as in 0,1");
	pair.one_cpu = cpu[0] == cpu[1];
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu[pair.side], &set);
	if (sched_setaffinity(0, sizeof set, &set))
		pair_die("sched_setaffinity", NULL);
}

size_t pair_area_size(void)
{
	return sizeof(struct area);
}

int pair_serve(const struct peer *p, void *shared, int s, const char *cpus)
{
	pair.peer = p;
	pair.area = shared;
	pair.side = s;
	pin(cpus);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* cross-memory attach by the sibling */
	pair.tx = private_buffer();
	pair.rx = private_buffer();
	p->open(pair.side);
	measure_meet();
	check();
	measure_meet();
	if (pair.side == 0)
		lead();
	else
		follow();
	if (p->close)
		p->close(pair.side);
	return 0;
}

int pair_main(int argc, char **argv, const struct peer *p)
{
	pid_t child, parent = getpid();
	void *shared = pair_shared(sizeof(struct area));
	int status;

	while (p->name && argc == 3 && strcmp(p->name, argv[1]) != 0)
		p++;
	if (argc != 3 || !p->name) {
		fprintf(stderr, "usage: %s NAME CPU,CPU\n", argv[0]);
		return 2;
	}
	if (p->before)
		p->before();
	child = fork();
	if (child < 0)
		pair_die("fork", NULL);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(getppid() == parent ? pair_serve(p, shared, 1, argv[2]) : 1);
	}
	pair_serve(p, shared, 0, argv[2]);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
