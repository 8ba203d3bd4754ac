/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways of one-sided operations: direct ones, and those by requests under settings that make them
 * wait for room, credit and answers. */
#include "tests/lib/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/child.h"

/* clang-format off */
static const struct way ways[] = {
	{ "mapped", false, false, "map", { NULL } },
	{ "attached", true, false, "attach", { "SLMPM_ATTACH=y" } },
	{ "moved inline", false, false, "map", { "SLMPM_ENGINE=inline", "SLMPM_ENGINE_MIN=1" } },
	{ "moved by a thread", false, false, "map", { "SLMPM_ENGINE=thread", "SLMPM_ENGINE_MIN=1" } },
	{ "attached, by a thread", true, false, "attach", { "SLMPM_ENGINE=thread", "SLMPM_ENGINE_MIN=100",
	  "SLMPM_WAIT=block", "SLMPM_ATTACH=y" } },
	{ "by requests", false, false, "ring", { "SLMPM_RMA=ring" } },
	{ "by requests, own memory", true, false, "ring", { "SLMPM_ATTACH=n" } },
	{ "by requests, checked", false, true, "ring", { "SLMPM_RMA=ring", "SLMPM_CHECK=1" } },
	{ "by requests, asleep", false, true, "ring", { "SLMPM_RMA=ring", "SLMPM_WAIT=block" } },
	{ "by requests, small", false, true, "ring", { "SLMPM_RMA=ring", "SLMPM_CHECK=1", "SLMPM_RING_SEGMENTS=128",
	  "SLMPM_PACKET_MAX=256", "SLMPM_EAGER_MAX=300", "SLMPM_EAGER_CREDIT=64k", "SLMPM_WAIT=block" } },
	{ "by active messages", true, false, "am", { "SLMPM_RMA=am" } },
	{ "by tag", true, false, "tag", { "SLMPM_RMA=tag" } },
	{ "by active messages, small", false, true, "am", { "SLMPM_RMA=am", "SLMPM_CHECK=1", "SLMPM_RING_SEGMENTS=128",
	  "SLMPM_PACKET_MAX=256", "SLMPM_EAGER_MAX=300", "SLMPM_EAGER_CREDIT=64k", "SLMPM_WAIT=block" } },
	{ "by tag, small", false, true, "tag", { "SLMPM_RMA=tag", "SLMPM_CHECK=1", "SLMPM_RING_SEGMENTS=128",
	  "SLMPM_PACKET_MAX=256", "SLMPM_EAGER_MAX=300", "SLMPM_EAGER_CREDIT=64k", "SLMPM_WAIT=block" } },
	{ "over TCP", false, false, "ring", { "SLMPM_FABRIC=tcp" } },
	{ "by tag, over TCP", true, false, "tag", { "SLMPM_FABRIC=tcp", "SLMPM_RMA=tag", "SLMPM_WAIT=block" } },
	/* Of programs that have that fabric (tests/fabric/masked.h, tests/fabrics). */
	{ "begun by the fabric", false, false, "fabric", { "SLMPM_FABRIC=later" } },
	{ "begun by it, asleep", false, false, "fabric", { "SLMPM_FABRIC=later", "SLMPM_WAIT=block" } },
	{ "over pipes", false, false, "fabric", { "SLMPM_FABRIC=pipe" } },
	{ "over pipes, asleep", false, false, "fabric", { "SLMPM_FABRIC=pipe", "SLMPM_WAIT=block" } },
	{ NULL, false, false, NULL, { NULL } },
};
/* clang-format on */

static const struct way *find(const char *name)
{
	for (const struct way *w = ways; w->name; w++)
		if (name && !strcmp(w->name, name))
			return w;
	return NULL;
}

const struct way *way_current(void)
{
	const struct way *w = find(getenv("SLMPM_TEST_WAY_NOW"));

	CHECK(w, "no way is set");
	return w;
}

static bool by_requests_after_all; /* in this process: way_check */

bool way_is_direct(void)
{
	const char *path = way_current()->path;

	return !by_requests_after_all && (!strcmp(path, "map") || !strcmp(path, "attach"));
}

struct run {
	int (*body)(const struct way *w);
	const struct way *way;
};

static int run(void *arg)
{
	const struct run *r = arg;

	for (const char *const *s = r->way->set; *s; s++)
		putenv((char *)(uintptr_t)*s);
	setenv("SLMPM_TEST_WAY_NOW", r->way->name, 1);
	return r->body(r->way);
}

/* Data races show where there are threads: those ways are all tried under a thread sanitizer. */
static bool is_wanted(const struct way *w)
{
	const char *only = getenv("SLMPM_TEST_WAY"), *sanitizer = getenv("SLMPM_SAN");

	if (only)
		return !strcmp(only, w->name);
	if (!strcmp(w->path, "fabric"))
		return false;
	if (sanitizer && !strcmp(sanitizer, "thread") && strstr(w->name, "by a thread"))
		return true;
	return actor_tries((size_t)(w - ways));
}

int way_each(int (*body)(const struct way *w), unsigned seconds)
{
	int failed = 0;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct way *w = ways; w->name; w++) {
		struct run r = {body, w};
		int64_t begin = actor_now_ms();
		int status;

		if (!is_wanted(w))
			continue;
		status = child_run(run, &r, seconds * (unsigned)actor_slow());
		printf("%-26s %s %lld ms (%d)\n", w->name,
		       !status              ? "ok" :
		       status == CHILD_LATE ? "LATE" :
					      "FAILED",
		       (long long)(actor_now_ms() - begin), status);
		failed |= status;
	}
	return failed ? 1 : 0;
}

unsigned char *way_region(slmpm_ctx ctx, size_t size, uint32_t access, slmpm_mem *mem)
{
	void *base;

	if (!way_current()->registered) {
		OK(slmpm_mem_alloc(ctx, size, access, mem, &base));
		return base;
	}
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED, "no %zu bytes", size);
	OK(slmpm_mem_register(ctx, base, size, access, mem));
	return base;
}

slmpm_rmem way_reach(slmpm_mem mem, slmpm_peer near, slmpm_peer peer, uint32_t access)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	OK(slmpm_mem_key(mem, near, access, &key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	return rmem;
}

void way_give(slmpm_mem mem, slmpm_peer peer, uint32_t stream)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, peer, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(peer, stream, &key, sizeof(key), PATIENCE));
}

slmpm_rmem way_open(slmpm_peer peer, uint32_t stream)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(peer, stream, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	return rmem;
}

bool way_maps(void)
{
	const char *name = getenv("SLMPM_FABRIC");
	struct slmpm_fabric_info info = {.size = sizeof(info)};

	for (int i = 0; name && slmpm_fabric_at(i, &info) == 0; i++)
		if (!strcmp(info.name, name))
			return strstr(info.capabilities, "write");
	return true;
}

const char *way_mapped(void)
{
	return way_maps() ? "map" : "ring";
}

const char *way_path(slmpm_rmem rmem)
{
	static struct slmpm_mem_info info;

	info.size = sizeof(info);
	OK(slmpm_rmem_query(rmem, &info));
	return info.path;
}

uint64_t way_acceptors(slmpm_mem mem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};

	OK(slmpm_mem_query(mem, &info));
	return info.acceptors;
}

void way_check(slmpm_rmem rmem)
{
	const char *path = way_path(rmem);
	unsigned char byte;

	if (!strcmp(path, "attach")) { /* whether that works, the first transfer finds out */
		OK(slmpm_get(rmem, 0, &byte, 1, NULL, NULL));
		path = way_path(rmem);
	}
	by_requests_after_all =
		!strcmp(path, "ring") && (!strcmp(way_current()->path, "attach") ||
					  (!strcmp(way_current()->path, "map") && !way_maps()));
	if (by_requests_after_all)
		printf("no process reaches another's memory here: by requests\n");
	else
		CHECK(!strcmp(path, way_current()->path), "the region is reached by \"%s\"", path);
}
