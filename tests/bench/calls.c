/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of 8 bytes between two peers of one process, SAMPLES of each, with a call of mark() before
 * each and behind the last: what tests/bench/calls counts. It prints mark's address, the samples,
 * and the calls in their order.
 */
#include <inttypes.h>
#include <slmpm.h>
#include <slmpm_am.h>
#include <slmpm_memory.h>
#include <slmpm_mirror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/plain.h"

enum { SAMPLES = 65, WARM = 500, PATIENCE_MS = 5000, STREAM = 1, HANDLER = 7, TAG = 5 };

static slmpm_ctx ctx;
static slmpm_peer near, far;
static slmpm_rmem rmem;
static slmpm_mirror mirror;
static uint64_t word, *leads;

__attribute__((noinline)) static void mark(void)
{
	__asm__ volatile("" ::: "memory");
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void nothing(void) {}
static void send_word(void)
{
	ok(slmpm_send(near, STREAM, &word, sizeof(word), -1), "slmpm_send");
}
static void recv_word(void)
{
	ok(slmpm_recv(far, STREAM, &word, sizeof(word), NULL, -1), "slmpm_recv");
}
static void am_word(void)
{
	ok(slmpm_am(near, HANDLER, &word, sizeof(word), NULL, 0, NULL, NULL), "slmpm_am");
}
static void progress(void)
{
	ok(slmpm_progress(ctx), "slmpm_progress");
}
static void put_word(void)
{
	ok(slmpm_put(rmem, 0, &word, sizeof(word), NULL, NULL), "slmpm_put");
}
static void get_word(void)
{
	ok(slmpm_get(rmem, 0, &word, sizeof(word), NULL, NULL), "slmpm_get");
}
static void store_word(void)
{
	ok(slmpm_mirror_store64(mirror, leads, word++), "slmpm_mirror_store64");
}

/* Each runs behind a call of the one before, whose message it takes. */
static const struct call {
	const char *name;
	void (*run)(void);
	void (*first)(void); /* not counted */
} calls[] = {
	{"nothing", nothing, nothing},   {"send", send_word, nothing},
	{"recv", recv_word, send_word},  {"am", am_word, nothing},
	{"progress", progress, am_word}, {"put", put_word, nothing},
	{"get", get_word, nothing},      {"store", store_word, nothing},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* What a call has sent is taken, so that the next finds all as this one did. */
static void tidy(const struct call *call)
{
	if (call->run == send_word)
		recv_word();
	else if (call->run == am_word || call->run == store_word)
		progress();
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void handle(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
}

static void meet(void)
{
	slmpm_listener listener;
	char url[64];

	snprintf(url, sizeof(url), "shm:calls-%d", (int)getpid());
	ok(slmpm_open(&ctx, NULL), "slmpm_open");
	ok(slmpm_listen(&listener, ctx, url), "slmpm_listen");
	ok(slmpm_connect(&near, ctx, url, PATIENCE_MS), "slmpm_connect");
	ok(slmpm_accept(listener, &far, PATIENCE_MS), "slmpm_accept");
	ok(slmpm_am_handler(ctx, HANDLER, handle, NULL), "slmpm_am_handler");
}

static slmpm_mirror mirror_of(void *base, size_t size)
{
	slmpm_mirror m;

	ok(slmpm_mirror_create(ctx, base, size, NULL, &m), "slmpm_mirror_create");
	return m;
}

static void share(void)
{
	static uint64_t ends[2][512];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	ok(slmpm_mem_alloc(ctx, 4096, SLMPM_READ_WRITE, &mem, &base), "slmpm_mem_alloc");
	ok(slmpm_mem_key(mem, far, SLMPM_READ_WRITE, &key), "slmpm_mem_key");
	ok(slmpm_mem_open(near, &key, &rmem), "slmpm_mem_open");
	leads = ends[0];
	mirror = mirror_of(ends[0], sizeof(ends[0]));
	(void)slmpm_mirror_attach(mirror, near, TAG, SLMPM_MIRROR_LEAD, 0); /* asked for */
	ok(slmpm_mirror_attach(mirror_of(ends[1], sizeof(ends[1])), far, TAG, SLMPM_MIRROR_FOLLOW,
			       PATIENCE_MS),
	   "slmpm_mirror_attach");
	ok(slmpm_mirror_attach(mirror, near, TAG, SLMPM_MIRROR_LEAD, PATIENCE_MS),
	   "slmpm_mirror_attach");
}

int main(void)
{
	meet();
	share();
	printf("%p %d", (void *)(uintptr_t)mark, SAMPLES);
	for (int i = 0; i < CALLS; i++)
		printf(" %s", calls[i].name);
	printf("\n");
	fflush(stdout);
	for (int i = 0; i < CALLS; i++) {
		for (int n = 0; n < WARM; n++)
			calls[i].first(), calls[i].run(), tidy(&calls[i]);
		for (int n = 0; n < SAMPLES; n++) {
			calls[i].first();
			mark();
			calls[i].run();
			mark();
			tidy(&calls[i]);
		}
	}
	return 0;
}
