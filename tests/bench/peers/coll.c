/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations of MPI, timed as slmpm_perftest times ours: orders as it takes them with
 * --serve (TEST SIZE COUNT [each]), its keys in the answers. One source for Open MPI and MPICH.
 * Between orders all ranks but the first sleep, and that one waits for a line. Ranks that MPI takes
 * for those of several machines share FILE, which is new.
 *	mpirun -n RANKS coll CPU,CPU [FILE]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 16, PAGE = 4096 };

struct order {
	_Alignas(64) atomic_uint turn; /* how many there have been */
	char test[NAME];
	uint64_t size, count;
	int each, over;
};

static struct order *order;
static int rank, ranks;
static double *from, *to;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of all threads of this process. */
static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- one operation ---- */

static int doubles(void)
{
	return (int)(order->size / sizeof(double));
}

static void barrier(int root)
{
	(void)root;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int root)
{
	MPI_Bcast(rank == root ? from : to, (int)order->size, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void reduce(int root)
{
	MPI_Reduce(from, to, doubles(), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
}

static void allreduce(int root)
{
	(void)root;
	MPI_Allreduce(from, to, doubles(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(int root)
{
	int n = (int)order->size;

	(void)root;
	MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int root)
{
	int n = (int)order->size;

	(void)root;
	MPI_Alltoall(from, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD);
}

static const struct test {
	const char *name;
	void (*one)(int root);
	int rotates;
} tests[] = {
	{"barrier", barrier, 0},     {"bcast", bcast, 1},         {"reduce", reduce, 1},
	{"allreduce", allreduce, 0}, {"allgather", allgather, 0}, {"alltoall", alltoall, 0},
};

static const struct test *test_of(const char *name)
{
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (strcmp(tests[i].name, name) == 0)
			return &tests[i];
	return NULL;
}

/* ---- many of them ---- */

/* A time of each is of as many operations as there are roots. */
static void repeat(const struct test *t, uint64_t count, double *each)
{
	int roots = t->rotates ? ranks : 1, root = 0;
	uint64_t before = now_ns(), now;

	for (uint64_t i = 0; i < count; i++) {
		t->one(root);
		if (++root < roots)
			continue;
		root = 0;
		if (each) {
			now = now_ns();
			*each++ = (double)(now - before) / 1e3 / roots;
			before = now;
		}
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void *room(uint64_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, PAGE, bytes + PAGE))
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(p, 0, bytes + PAGE);
	return p;
}

static void answer(uint64_t ns, double cpu, double *each, uint64_t times)
{
	double count = (double)order->count;

	printf("{\"test\":\"%s\",\"size\":%llu,\"members\":%d,\"lat_us\":%g,\"cpu_us\":%g",
	       order->test, (unsigned long long)order->size, ranks, (double)ns / 1e3 / count,
	       cpu / count);
	if (each && times) {
		qsort(each, times, sizeof *each, by_value);
		printf(",\"lat_us_p50\":%g,\"lat_us_p99\":%g", each[times / 2],
		       each[(times * 99 + 99) / 100 - 1]);
	}
	printf("}\n");
	fflush(stdout);
}

static void obey(void)
{
	const struct test *t = test_of(order->test);
	uint64_t bytes = order->size * (uint64_t)ranks, begin, ns;
	double cpu, all = 0;
	double *each = order->each && rank == 0 ? room(order->count * sizeof *each) : NULL;

	from = room(bytes);
	to = room(bytes);
	repeat(t, order->count / 8 + 4, NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	cpu = cpu_us();
	begin = now_ns();
	repeat(t, order->count, each);
	ns = now_ns() - begin;
	cpu = cpu_us() - cpu;
	MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		answer(ns, all, each, order->count / (uint64_t)(t->rotates ? ranks : 1));
	free(each);
	free(from);
	free(to);
}

/* ---- orders ---- */

static void give_order(void)
{
	atomic_fetch_add(&order->turn, 1);
	syscall(SYS_futex, &order->turn, FUTEX_WAKE, ranks, NULL, NULL, 0);
}

static void lead(void)
{
	char line[256], word[NAME] = "";
	unsigned long long size, count;

	while (fgets(line, sizeof line, stdin)) {
		word[0] = 0;
		if (sscanf(line, "%15s %llu %llu", order->test, &size, &count) != 3 ||
		    !test_of(order->test) || !count) {
			printf("{\"error\":\"no such order\"}\n");
			fflush(stdout);
			continue;
		}
		order->size = size;
		order->count = count;
		order->each =
			sscanf(line, "%*s %*s %*s %15s", word) == 1 && strcmp(word, "each") == 0;
		give_order();
		obey();
	}
	order->over = 1;
	give_order();
}

static void follow(void)
{
	for (unsigned seen = 0;; seen++) {
		while (atomic_load(&order->turn) == seen)
			syscall(SYS_futex, &order->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
		if (order->over)
			return;
		obey();
	}
}

static void bind_to(const char *cpus)
{
	unsigned cpu[2];
	cpu_set_t set;

	if (sscanf(cpus, "%u,%u", &cpu[0], &cpu[1]) != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	CPU_ZERO(&set);
	CPU_SET(cpu[rank % 2], &set);
	sched_setaffinity(0, sizeof set, &set);
}

static struct order *map_order(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *shared = fd < 0 || ftruncate(fd, PAGE) ?
			       MAP_FAILED :
			       mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 3);
	return shared;
}

/* Of ranks that MPI knows to be on one machine. */
static struct order *share_order(MPI_Win *win)
{
	struct order *shared;
	MPI_Aint got;
	int unit;

	MPI_Win_allocate_shared(rank ? 0 : PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, win);
	MPI_Win_shared_query(*win, 0, &got, &unit, &shared);
	return shared;
}

int main(int argc, char **argv)
{
	MPI_Win win = MPI_WIN_NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: mpirun -n RANKS %s CPU,CPU [FILE]\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	bind_to(argv[1]);
	order = argc > 2 ? map_order(argv[2]) : share_order(&win);
	if (rank == 0)
		memset(order, 0, sizeof *order);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		lead();
	else
		follow();
	if (win != MPI_WIN_NULL)
		MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
