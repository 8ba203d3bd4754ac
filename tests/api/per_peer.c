/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a peer takes: what slmpm_memory_per_peer says, within a little, by heap and objects. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"

#define PAIRS 64

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
		if (!strstr(line, "/memfd:slmpm-") ||
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

int main(void)
{
	uint64_t said, heap, objects, each;
	slmpm_peer a[PAIRS], b[PAIRS];
	slmpm_ctx ctx;

	CHECK(!setenv("SLMPM_RING_SEGMENTS", "128", 1), "environment");
	OK(slmpm_open(&ctx, NULL));
	said = slmpm_memory_per_peer();
	heap = heap_bytes();
	if (!heap) {
		puts("the heap cannot be measured");
		return 77;
	}
	objects = object_bytes();
	for (int i = 0; i < PAIRS; i++)
		actor_pair(ctx, &a[i], &b[i]);
	heap = heap_bytes() - heap;
	objects = object_bytes() - objects;
	each = (heap + objects) / (2 * PAIRS);
	printf("%llu bytes said; heap %llu, objects %llu a peer\n", (unsigned long long)said,
	       (unsigned long long)heap / (2 * PAIRS), (unsigned long long)objects / (2 * PAIRS));
	CHECK(each <= said + said / 10 && each >= said - said / 10, "%llu bytes a peer, %llu said",
	      (unsigned long long)each, (unsigned long long)said);
	OK(slmpm_shut(ctx, 0));
	return 0;
}
