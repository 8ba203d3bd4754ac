/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: a page that both sides map, for what is not to go through the library: meeting, and
 * the probe of a cache line's way between the two CPUs. On a virtual machine the host moves CPUs
 * about, which alone changes a small latency manyfold; the probe around each sample tells.
 *
 * The other side opens it through side 0's /proc entry; a cookie shows that it is the right one.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

struct board {
	uint64_t cookie;
	_Alignas(128) _Atomic uint64_t arrived[2][16];
	_Alignas(128) _Atomic uint64_t line;
	_Alignas(128) uint64_t reads, writes;
	struct spot spot[SPOTS];
};

enum { PROBE_TRIES = 4, PROBE_ROUNDS = 400, PATIENCE = 20000 };

static struct board *board_map(int fd)
{
	void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

struct board *board_create(char *name, size_t size)
{
	int fd = memfd_create("slmpm_perftest", MFD_CLOEXEC);
	struct board *b = NULL;

	if (fd >= 0 && ftruncate(fd, sizeof(*b)) == 0)
		b = board_map(fd);
	if (!b || getrandom(&b->cookie, sizeof(b->cookie), 0) != sizeof(b->cookie)) {
		snprintf(name, size, "none");
		return NULL;
	}
	/* The descriptor stays open: it is the name. */
	snprintf(name, size, "/proc/%d/fd/%d:%llx", (int)getpid(), fd,
		 (unsigned long long)b->cookie);
	return b;
}

struct board *board_open(const char *name)
{
	const char *colon = strrchr(name, ':');
	char path[64];
	struct board *b;
	int fd;

	if (!colon || (size_t)(colon - name) >= sizeof(path))
		return NULL;
	snprintf(path, sizeof(path), "%.*s", (int)(colon - name), name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	b = fd < 0 || lseek(fd, 0, SEEK_END) < (off_t)sizeof(*b) ? NULL : board_map(fd);
	if (fd >= 0)
		close(fd);
	if (b && b->cookie != strtoull(colon + 1, NULL, 16)) {
		munmap(b, sizeof(*b));
		b = NULL;
	}
	return b;
}

/* Spins until VALUE is reached; now and then gives way and asks whether the other side lives. */
static int await(_Atomic uint64_t *value, uint64_t least, alive_fn *alive, void *arg)
{
	uint64_t spins = 0;

	while (atomic_load_explicit(value, memory_order_acquire) < least) {
		relax();
		if (++spins % PATIENCE)
			continue;
		sched_yield();
		if (spins % (PATIENCE * 64) == 0 && alive && !alive(arg))
			return -SLMPM_EDEAD;
	}
	return 0;
}

int board_meet(struct board *b, int side, alive_fn *alive, void *arg)
{
	uint64_t mine = atomic_load_explicit(&b->arrived[side][0], memory_order_relaxed) + 1;

	atomic_store_explicit(&b->arrived[side][0], mine, memory_order_release);
	return await(&b->arrived[!side][0], mine, alive, arg);
}

double board_probe(struct board *b, int side, alive_fn *alive, void *arg, struct hist *each)
{
	double best = 1e9, ns;

	if (side == 0)
		atomic_store(&b->line, 0);
	if (board_meet(b, side, alive, arg) < 0)
		return -1;
	for (uint64_t t = 0; t < PROBE_TRIES; t++) {
		uint64_t base = t * 2 * PROBE_ROUNDS, begin = now_ns();

		for (uint64_t i = 1; i <= PROBE_ROUNDS; i++) {
			uint64_t there = base + 2 * i - 1, back = base + 2 * i;

			if (side == 0)
				atomic_store_explicit(&b->line, there, memory_order_release);
			if (await(&b->line, side ? there : back, alive, arg) < 0)
				return -1;
			if (side == 1)
				atomic_store_explicit(&b->line, back, memory_order_release);
		}
		ns = (double)(now_ns() - begin) / 2 / PROBE_ROUNDS;
		if (each)
			hist_add(each, (uint64_t)(ns + 0.5));
		if (ns < best)
			best = ns;
	}
	return best;
}

void board_leave(struct board *b, uint64_t reads, uint64_t writes)
{
	b->reads = reads;
	b->writes = writes;
}

void board_fetch(const struct board *b, uint64_t *reads, uint64_t *writes)
{
	*reads += b->reads;
	*writes += b->writes;
}

struct spot *board_spots(struct board *b)
{
	return b->spot;
}
