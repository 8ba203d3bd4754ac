/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that lies unread at an owner who revokes and then calls nothing any more: it ends with
 * EACCES at once. Each kind that waits for an answer; by the ring and over TCP.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

enum { KEY = 1, READY };
enum { GET, ADD, PUT, KINDS };

#define UNREAD_US 100000 /* the request is there by then */
#define SOON_MS   3000

static _Atomic int32_t *result; /* of both processes; 1: none yet */

static void map_result(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0, "%s", path);
	result = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(result != MAP_FAILED, "%s", path);
	close(fd);
}

static int operate(slmpm_rmem region, int kind)
{
	struct slmpm_how told = {.size = sizeof(told), .flags = SLMPM_REMOTE, .timeout_ms = -1};
	uint64_t word = 1;

	switch (kind) {
	case GET: return slmpm_get(region, 0, &word, 8, NULL, NULL);
	case ADD: return slmpm_atomic(region, 0, SLMPM_FETCH_ADD, 64, 1, 0, &word, NULL, NULL);
	default: return slmpm_put(region, 0, &word, 8, &told, NULL);
	}
}

static int peer(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	slmpm_rmem region;

	map_result(words[0]);
	for (int kind = 0; kind < KINDS; kind++) {
		EXPECT(slmpm_recv(host, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
		OK(slmpm_mem_open(host, &key, &region));
		OK(slmpm_send(host, READY, NULL, 0, PATIENCE));
		*result = operate(region, kind);
		OK(slmpm_mem_release(region));
	}
	OK(slmpm_flush(host, PATIENCE)); /* what came late is nobody's failure */
	OK(slmpm_send(host, READY, NULL, 0, PATIENCE));
	return 0;
}

static int32_t result_soon(void)
{
	for (int64_t until = actor_now_ms() + SOON_MS; *result == 1 && actor_now_ms() < until;)
		usleep(1000);
	return *result;
}

static void revoke_unread(slmpm_peer to, slmpm_mem mem, uint64_t *word, int kind)
{
	struct slmpm_key key;

	*word = 5;
	*result = 1;
	OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(to, KEY, &key, sizeof(key), PATIENCE));
	EXPECT(slmpm_recv(to, READY, NULL, 0, NULL, PATIENCE), 0);
	usleep(UNREAD_US);
	OK(slmpm_mem_revoke(mem, to, PATIENCE));
	CHECK(result_soon() == -SLMPM_EACCES && *word == 5,
	      "kind %d: %d while the owner does something else, %llu", kind, (int)*result,
	      (unsigned long long)*word);
}

static int owner(void *arg)
{
	char path[] = "/tmp/revoke_unread.XXXXXX";
	int fd = mkstemp(path);
	slmpm_peer to;
	slmpm_mem mem;
	void *word;
	(void)arg;

	CHECK(fd >= 0 && !ftruncate(fd, 4096), "%s", path);
	close(fd);
	map_result(path);
	to = actor_spawn("peer", path, NULL);
	OK(slmpm_mem_alloc((slmpm_ctx){0}, 4096, SLMPM_READ_WRITE, &mem, &word));
	for (int kind = 0; kind < KINDS; kind++)
		revoke_unread(to, mem, word, kind);
	EXPECT(slmpm_recv(to, READY, NULL, 0, NULL, PATIENCE), 0);
	actor_join(to, 0);
	unlink(path);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"peer", peer}, {NULL, NULL}};
	int failed;

	actor_begin(argc, argv, roles);
	setenv("SLMPM_RMA", "ring", 1);
	failed = child_run(owner, NULL, 20 * (unsigned)actor_slow());
	setenv("SLMPM_FABRIC", "tcp", 1);
	return child_run(owner, NULL, 20 * (unsigned)actor_slow()) || failed;
}
