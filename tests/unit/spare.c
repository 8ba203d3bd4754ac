/* SPDX-License-Identifier: BSD-3-Clause */
/* What memory is left, by the machine and by control groups of both versions, from files as those
 * of the kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/mapping.h"
#include "tests/lib/test.h"

#define MIB ((uint64_t)1 << 20)

static char root[] = "/tmp/slmpm-spare-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *at = path + sizeof(root); (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		(void)mkdir(path, 0700);
	}
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

static void left(uint64_t mib, const char *by)
{
	struct spare s = mapping_spare(root);

	CHECK(s.bytes == mib * MIB, "%llu MiB are left, not %llu, by %s",
	      (unsigned long long)(s.bytes / MIB), (unsigned long long)mib, s.by);
	CHECK(strstr(s.by, by), "by %s, not %s", s.by, by);
}

static void version_2(void)
{
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.current", "1048576\n");
	left(3000, "MemAvailable");
	put("/sys/fs/cgroup/a/memory.max", "536870912\n"); /* 512 MiB */
	put("/sys/fs/cgroup/a/memory.current", "268435456\n");
	left(256, "memory.max");
	put("/sys/fs/cgroup/a/memory.stat",
	    "anon 1\nfile 2\ninactive_file 1048576\nactive_file 2097152\n");
	left(259, "memory.max");
	put("/sys/fs/cgroup/a/b/memory.max", "2097152\n");
	left(1, "memory.max");
	put("/sys/fs/cgroup/a/b/memory.current", "3145728\n"); /* beyond what has been made less */
	left(0, "memory.max");
}

/* In a container: the path is none of its own. */
static void version_1(void)
{
	put("/proc/self/cgroup", "5:devices:/\n4:memory:/of/the/host\n0::/\n");
	left(3000, "MemAvailable");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
	left(3000, "MemAvailable");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8388608\n");
	put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 524288\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1572864\n");
	left(7, "limit_in_bytes");
}

int main(void)
{
	char remove[64];

	CHECK(mkdtemp(root), "set-up");
	CHECK(mapping_spare(root).bytes == UINT64_MAX, "where nothing is known");
	put("/proc/meminfo",
	    "MemTotal: 4096000 kB\nMemAvailable: 2048000 kB\nSwapFree: 1024000 kB\n");
	left(3000, "MemAvailable");
	version_2();
	version_1();
	snprintf(remove, sizeof(remove), "rm -r %s", root);
	CHECK(system(remove) == 0, "%s", remove);
	CHECK(mapping_spare("").bytes > 0, "nothing is left of this machine's");
	return 0;
}
