/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of both sides, and the gate: a page of the source without access, and who waits there. */
#include "tests/lib/share_pair.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEYS  0x7fff0001u
#define READY 0x7fff0002u
#define CALLS                                                                                      \
	200 /* puts that are not shared after a wait on a busy machine, and some (slmpm/link/wait.c) */

static unsigned char *give(const struct share_side *s, size_t size, uint32_t access, slmpm_mem *mem)
{
	struct slmpm_key key;
	void *base;

	/* What may be written by a mapping of all keys would be mapped by no reader. */
	OK(slmpm_mem_alloc(s->ctx, size, access, mem, &base));
	OK(slmpm_mem_key(*mem, s->peer, access, &key));
	OK(slmpm_send(s->peer, KEYS, &key, sizeof(key), PATIENCE));
	return base;
}

static slmpm_rmem take(const struct share_side *s)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	EXPECT(slmpm_recv(s->peer, KEYS, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(s->peer, &key, &rmem));
	return rmem;
}

static void await_acceptor(const struct share_side *s, slmpm_mem mem)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;

	for (;;) {
		OK(slmpm_mem_query(mem, &info));
		if (info.acceptors)
			return;
		CHECK(actor_now_ms() < until, "nobody maps the region");
		(void)slmpm_recv(s->peer, READY + 1, NULL, 0, NULL, 1);
	}
}

void share_side_open(struct share_side *s, slmpm_ctx ctx, slmpm_peer peer, size_t size)
{
	*s = (struct share_side){.ctx = ctx, .peer = peer, .size = size};
	s->landed = give(s, size, SLMPM_READ_WRITE, &s->landing);
	s->from = give(s, size, SLMPM_READ, &s->source);
	s->to = take(s);
	s->open = take(s);
	await_acceptor(s, s->landing);
	await_acceptor(s, s->source);
	for (int i = 0; i < CALLS; i++)
		OK(slmpm_put(s->to, 0, s->from, 8 * SHARE_PAGE, NULL, NULL));
	OK(slmpm_send(peer, READY, NULL, 0, PATIENCE));
	share_side_await(s, READY);
}

static void drop(const struct share_side *s, slmpm_mem mem)
{
	(void)slmpm_mem_revoke(mem, s->peer, PATIENCE); /* who is dead has nothing to give back */
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

void share_side_close(struct share_side *s)
{
	(void)slmpm_mem_release(s->to);
	(void)slmpm_mem_release(s->open);
	drop(s, s->landing);
	drop(s, s->source);
}

void share_side_renew(struct share_side *s)
{
	drop(s, s->source);
	s->from = give(s, s->size, SLMPM_READ, &s->source);
}

void share_side_await(const struct share_side *s, uint32_t stream)
{
	int64_t until = actor_now_ms() + PATIENCE;
	int64_t n;

	while ((n = slmpm_recv(s->peer, stream, NULL, 0, NULL, 0)) == -SLMPM_EAGAIN) {
		CHECK(actor_now_ms() < until, "no message of stream %u", stream);
		(void)sched_yield();
	}
	OK(n);
}

/* ---- the gate -------------------------------------------------------------------------------- */

static struct {
	unsigned char *page; /* NULL: open */
	bool (*passes)(void *arg);
	void *arg;
} gate;

static void on_fault(int signal)
{
	int64_t until = actor_now_ms() + 500;

	if (!gate.page)
		_exit(128 + signal);
	share_gate_open();
	while (!gate.passes(gate.arg) && actor_now_ms() < until)
		(void)sched_yield();
}

void share_gate(unsigned char *at, bool (*passes)(void *arg), void *arg)
{
	struct sigaction action = {.sa_handler = on_fault};

	gate.passes = passes;
	gate.arg = arg;
	gate.page = (unsigned char *)((uintptr_t)at & ~(uintptr_t)(SHARE_PAGE - 1));
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0 &&
		      mprotect(gate.page, SHARE_PAGE, PROT_NONE) == 0,
	      "no gate");
}

void share_gate_open(void)
{
	if (gate.page)
		CHECK(mprotect(gate.page, SHARE_PAGE, PROT_READ | PROT_WRITE) == 0,
		      "no way through");
	gate.page = NULL;
}
