/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * 8 GiB in little memory: both sides map the same few pages over and over. A put and a get of all
 * of it by attaching, a message of all of it; a part of it, or with SLMPM_TEST_HUGE=1 all, by
 * requests and fetched.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/child.h"
#include "tests/lib/way.h"

#define TILE ((size_t)(1 << 20) + 4096) /* no multiple of a packet */
#define MOST ((size_t)SLMPM_MESSAGE_MAX)

enum { KEY = 1, TURN, MESSAGE };

/* SIZE bytes of addresses that are TILE bytes of memory. */
static unsigned char *tiled(size_t size)
{
	size_t whole = (size + TILE - 1) / TILE * TILE;
	unsigned char *at =
		mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("tile", MFD_CLOEXEC);

	CHECK(at != MAP_FAILED && fd >= 0 && ftruncate(fd, (off_t)TILE) == 0, "no %zu bytes", size);
	for (size_t done = 0; done < size; done += TILE)
		CHECK(mmap(at + done, TILE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) != MAP_FAILED,
		      "tile %zu", done / TILE);
	close(fd);
	return at;
}

static void say_turn(slmpm_peer peer)
{
	OK(slmpm_send(peer, TURN, NULL, 0, PATIENCE));
}

static void await_turn(slmpm_peer peer)
{
	EXPECT(slmpm_recv(peer, TURN, NULL, 0, NULL, -1), 0);
}

/* ---- one-sided ------------------------------------------------------------------------------- */

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
	OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	await_turn(host);
	CHECK(actor_filled(base, 5, TILE), "what was put");
	actor_fill(base, 6, TILE);
	say_turn(host);
	await_turn(host);
	return 0;
}

static void both_ways(size_t size)
{
	unsigned char *here = tiled(size);
	struct slmpm_how remote = {.size = sizeof(remote), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	struct slmpm_key key;
	slmpm_rmem rmem;
	slmpm_peer peer;
	char text[32];

	snprintf(text, sizeof(text), "%zu", size);
	peer = actor_spawn("own", text, NULL);
	EXPECT(slmpm_recv(peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	actor_fill(here, 5, TILE);
	OK(slmpm_put(rmem, 0, here, size, &remote, NULL));
	say_turn(peer);
	await_turn(peer);
	memset(here, 0, TILE);
	OK(slmpm_get(rmem, 0, here, size, NULL, NULL));
	CHECK(actor_filled(here, 6, TILE), "what was got");
	REFUSED(slmpm_put(rmem, 1, here, size, NULL, NULL), SLMPM_EINVAL, "of a region of");
	say_turn(peer);
	actor_join(peer, 0);
	munmap(here, size);
}

static int body(const struct way *w)
{
	bool whole = getenv("SLMPM_TEST_HUGE") || !strcmp(w->name, "attached");

	if (w->registered && !w->slow)
		both_ways(whole ? MOST : MOST / 128);
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int take(slmpm_peer host, char **words)
{
	size_t size = strtoull(words[0], NULL, 10);
	unsigned char *base = tiled(size);

	EXPECT(slmpm_recv(host, MESSAGE, base, size, NULL, -1), size);
	CHECK(actor_filled(base, 7, TILE), "what was received");
	say_turn(host);
	return 0;
}

static int message(void *fetch)
{
	bool whole = getenv("SLMPM_TEST_HUGE") || !strcmp(fetch, "auto");
	size_t size = whole ? MOST : MOST / 128;
	unsigned char *here = tiled(size);
	slmpm_peer peer;
	char text[32];

	setenv("SLMPM_FETCH", fetch, 1);
	snprintf(text, sizeof(text), "%zu", size);
	peer = actor_spawn("take", text, NULL);
	actor_fill(here, 7, TILE);
	OK(slmpm_send(peer, MESSAGE, here, size, -1));
	await_turn(peer);
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"own", own}, {"take", take}, {NULL, NULL}};
	static const char *const fetch[] = {"auto", "always", "never"};
	int failed;

	actor_begin(argc, argv, roles);
	failed = way_each(body, 90);
	for (int i = 0; i < 3; i++) {
		int64_t begin = actor_now_ms();
		int status = child_run(message, (void *)(uintptr_t)fetch[i], 90);

		printf("a message, fetched: %-6s %s %d ms\n", fetch[i], status ? "FAILED" : "ok",
		       (int)(actor_now_ms() - begin));
		failed |= status;
	}
	return failed ? 1 : 0;
}
