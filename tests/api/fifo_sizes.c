/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Puts into the FIFO of another process, of every size from nothing to far beyond what may arrive
 * without asking, over both fabrics, stored by an engine and without one: the bytes are those that
 * were put when the call returns.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE ((size_t)64 << 20)

static const slmpm_ctx none;

/* Takes one after the other, and has each stored where its origin proposes. */
static int role_target(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	struct slmpm_fifo e;
	unsigned char *memory;
	slmpm_mem mem;
	slmpm_req req;
	void *base;

	(void)words;
	OK(slmpm_mem_alloc(none, SIZE, SLMPM_READ_WRITE, &mem, &base));
	memory = base;
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 1, &key, sizeof(key), PATIENCE));
	while (slmpm_fifo_take(host, &e, PATIENCE) == 0) {
		const struct slmpm_fifo was = e;

		CHECK(actor_filled(e.data, e.imm, e.len), "%zu bytes came otherwise", e.len);
		OK(slmpm_fifo_store(&e, mem, e.offset, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
		CHECK(actor_filled(memory + was.offset, was.imm, was.len), "%zu bytes are there",
		      was.len);
	}
	return 0;
}

static int over(void *unused)
{
	const size_t sizes[] = {0, 1, 0, 0, 0, (size_t)1 << 20, SIZE};
	struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_FIFO | SLMPM_REMOTE, .timeout_ms = PATIENCE};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer target = actor_spawn("target", NULL, NULL);
	unsigned char *from = malloc(SIZE);
	struct slmpm_stats s;
	uint64_t bytes = 0;
	struct slmpm_key key;
	slmpm_rmem rmem;

	(void)unused;
	CHECK(from, "no memory");
	EXPECT(slmpm_recv(target, 1, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(target, &key, &rmem));
	OK(slmpm_peer_query(target, &info));
	for (uint32_t i = 0; i < 7; i++) {
		/* The three in the middle: at what may come without asking, and beside it. */
		size_t len = i < 2 || i > 4 ? sizes[i] : info.eager_max - 56 + i - 3;

		actor_fill(from, i + 1, len);
		how.imm = i + 1;
		OK(slmpm_put(rmem, SIZE - len, from, len, &how, NULL));
		bytes += len;
	}
	s = actor_stats(target);
	CHECK(s.fifo_puts == 7 && s.fifo_bytes == bytes, "%llu puts of %llu bytes",
	      (unsigned long long)s.fifo_puts, (unsigned long long)s.fifo_bytes);
	OK(slmpm_close(target, PATIENCE));
	actor_join(target, 0);
	free(from);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"target", role_target}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"}, *const engines[] = {"none", "thread"};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	for (int i = 0; i < 4; i++) {
		if (TEST_THREADS_ALONE && i % 2 == 0)
			continue;
		settings_set("SLMPM_FABRIC", fabrics[i / 2]);
		settings_set("SLMPM_ENGINE", engines[i % 2]);
		settings_run(fabrics[i / 2], over, NULL);
	}
	return 0;
}
