/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * 8 GiB in little memory: both sides map the same few pages over and over. A put of all of it by
 * attaching; a part of it back and by requests, or all of it with SLMPM_TEST_HUGE=1.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/way.h"

#define TILE ((size_t)8 << 20)
#define MOST ((size_t)SLMPM_MESSAGE_MAX)

/* SIZE bytes of addresses that are TILE bytes of memory. */
static unsigned char *tiled(size_t size)
{
	unsigned char *at =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("tile", MFD_CLOEXEC);

	CHECK(at != MAP_FAILED && fd >= 0 && ftruncate(fd, (off_t)TILE) == 0, "no %zu bytes", size);
	for (size_t done = 0; done < size; done += TILE)
		CHECK(mmap(at + done, TILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) != MAP_FAILED,
		      "tile %zu", done / TILE);
	close(fd);
	return at;
}

static int own(slmpm_peer host, char **words)
{
	size_t size = strtoull(words[0], NULL, 10);
	unsigned char *base = tiled(size);
	struct slmpm_key key;
	slmpm_ctx ctx;
	slmpm_mem mem;

	OK(slmpm_default(&ctx));
	OK(slmpm_mem_register(ctx, base, size, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(host, 1, NULL, 0, NULL, -1), 0);
	CHECK(actor_filled(base, 5, TILE) && actor_filled(base + size - TILE, 5, TILE),
	      "what was put");
	actor_fill(base, 6, TILE);
	OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 1, NULL, 0, NULL, -1), 0);
	return 0;
}

static void both_ways(size_t size, size_t back)
{
	unsigned char *here = tiled(size);
	struct slmpm_how remote = {.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	slmpm_peer peer;
	struct slmpm_key key;
	slmpm_rmem rmem;
	char text[32];

	snprintf(text, sizeof(text), "%zu", size);
	peer = actor_spawn("own", text, NULL);
	EXPECT(slmpm_recv(peer, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	actor_fill(here, 5, TILE);
	OK(slmpm_put(rmem, 0, here, size, &remote, NULL));
	OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), 0);
	memset(here, 0, TILE);
	OK(slmpm_get(rmem, 0, here, back, NULL, NULL));
	CHECK(actor_filled(here, 6, TILE), "what was got");
	REFUSED(slmpm_put(rmem, 1, here, size, NULL, NULL), SLMPM_EINVAL, "of a region of");
	OK(slmpm_send(peer, 1, NULL, 0, PATIENCE));
	actor_join(peer, 0);
	munmap(here, size);
}

static int body(const struct way *w)
{
	size_t part = getenv("SLMPM_TEST_HUGE") ? MOST : MOST / 128;

	if (!w->registered || w->slow)
		return 0;
	both_ways(strcmp(w->name, "attached") != 0 ? part : MOST, part);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"own", own}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return way_each(body, 90);
}
