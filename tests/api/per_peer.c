/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a peer takes: what slmpm_memory_per_peer says, within a little, by heap and
 * objects. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define PAIRS 64
#define RING  (4096 + 128 * 64)

/* Of the library's objects that this process has mapped, each once. */
static uint64_t object_bytes(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long seen[4 * PAIRS + 64], from, to, inode;
	uint64_t sum = 0;
	char line[512];
	int count = 0, i;

	CHECK(maps, "no /proc");
	while (fgets(line, sizeof(line), maps)) {
		if ((!strstr(line, "/memfd:slmpm-") && !actor_is_twice(line)) ||
		    sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) != 3)
			continue;
		for (i = 0; i < count && seen[i] != inode; i++)
			;
		if (i < count)
			continue;
		CHECK(count < 4 * PAIRS + 64, "too many objects");
		seen[count++] = inode;
		sum += to - from;
	}
	fclose(maps);
	return sum;
}

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What a second link takes, and what joins the two. */
static int of_two_links(void *one)
{
	uint64_t said;

	setenv("SLMPM_LINKS", "2", 1);
	setenv("SLMPM_LINKS_LOG", "1m", 1);
	said = slmpm_memory_per_peer();
	CHECK(said > *(const uint64_t *)one + RING + (1 << 20), "%llu bytes with two links",
	      (unsigned long long)said);
	return 0;
}

static int of_one(void *arg)
{
	uint64_t said = slmpm_memory_per_peer();

	return write(*(const int *)arg, &said, sizeof(said)) == sizeof(said) ? 0 : 1;
}

static void links(void)
{
	uint64_t one;
	int fds[2];

	CHECK(pipe(fds) == 0, "no pipe");
	EXPECT(child_run(of_one, &fds[1], 10), 0);
	CHECK(read(fds[0], &one, sizeof(one)) == sizeof(one), "nothing was said");
	EXPECT(child_run(of_two_links, &one, 10), 0);
}

static int of_pairs(void *fabric)
{
	uint64_t said, heap, objects, each;
	slmpm_peer a[PAIRS], b[PAIRS];
	slmpm_ctx ctx;

	settings_one_link(fabric); /* of others most is said in advance, and taken when they come */
	OK(slmpm_open(&ctx, NULL));
	said = slmpm_memory_per_peer();
	heap = heap_bytes();
	if (!heap)
		return 77;
	objects = object_bytes();
	for (int i = 0; i < PAIRS; i++)
		actor_pair(ctx, &a[i], &b[i]);
	heap = heap_bytes() - heap;
	objects = object_bytes() - objects;
	each = (heap + objects) / (2 * PAIRS);
	printf("%s: %llu bytes said; heap %llu, objects %llu a peer\n", (const char *)fabric,
	       (unsigned long long)said, (unsigned long long)heap / (2 * PAIRS),
	       (unsigned long long)objects / (2 * PAIRS));
	CHECK(each <= said + said / 10 && each >= said - said / 10, "%llu bytes a peer, %llu said",
	      (unsigned long long)each, (unsigned long long)said);
	OK(slmpm_shut(ctx, 5000));
	return 0;
}

/* KiB of rings that are present in this process. */
static long rings_present(void)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	long sum = 0, rss;
	char line[512];
	bool ring = false;

	CHECK(maps, "no /proc");
	while (fgets(line, sizeof(line), maps)) {
		if (actor_is_twice(line))
			ring = true;
		else if (ring && sscanf(line, "Rss: %ld", &rss) == 1) {
			sum += rss;
			ring = false;
		}
	}
	fclose(maps);
	return sum;
}

/* Over TCP the pages of a ring come with what is received. */
static int of_idle(void *unused)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;
	long idle, after;
	char in[8];

	(void)unused;
	settings_one_link("tcp");
	CHECK(!unsetenv("SLMPM_RING_SEGMENTS") && !unsetenv("SLMPM_TCP_ENGINE"), "environment");
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	idle = rings_present();
	OK(slmpm_send(a, 0, "1234567", 8, 5000));
	EXPECT(slmpm_recv(b, 0, in, sizeof(in), NULL, 5000), 8);
	after = rings_present();
	printf("tcp: %ld, then %ld KiB of two rings of 4 MiB are present\n", idle, after);
	CHECK(idle <= 256 && after && after <= 256, "%ld, then %ld KiB", idle, after);
	OK(slmpm_shut(ctx, 5000));
	return 0;
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";
	int status;

	settings_one_link("shm");
	CHECK(!setenv("SLMPM_RING_SEGMENTS", "128", 1), "environment");
	links();
	status = child_run(of_pairs, shm, 20);
	if (status == 77)
		puts("the heap cannot be measured");
	else
		EXPECT(status, 0);
	if (!status)
		EXPECT(child_run(of_pairs, tcp, 20), 0);
	EXPECT(child_run(of_idle, NULL, 10), 0);
	return status;
}
