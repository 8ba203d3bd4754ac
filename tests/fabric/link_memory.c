/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a fabric allocates and lets a peer reach: what may be done with it, fresh pages in
 * place of old ones, and what no peer says.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/reach.h"

#define SIZE   REACH_SIZE
#define WRITE  (1u << FABRIC_WRITE)
#define READ   (1u << FABRIC_READ)
#define ATOMIC (1u << FABRIC_ATOMIC)

static struct fabric_memory allocated(struct link_pair *p, bool writable)
{
	struct fabric_memory m = {.size = SIZE, .writable = writable};

	assert_int_equal(fabric->alloc(p->domain[LEFT], &m), 0);
	assert_true(m.base && m.allocated);
	assert_int_equal((uintptr_t)m.base % 4096, 0);
	return m;
}

static uint64_t atomic(struct fabric_link *l, struct fabric_memory *m, uint64_t offset, uint32_t op,
		       uint32_t bits, uint64_t operand, uint64_t compare)
{
	struct fabric_atomic a = {.op = op, .bits = bits, .operand = operand, .compare = compare};

	assert_int_equal(reach(l, FABRIC_ATOMIC, m, offset, &a, bits / 8), 1);
	return a.old;
}

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

/* A peer that may write has the object in its hands: it cannot close it to the next. */
static void peers_cannot_seal(void **state)
{
	struct fabric_blob blob = {.fd = -1};
	struct fabric_memory own, far;
	struct link_pair p;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	if (blob.fd >= 0)
		(void)fcntl(blob.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	far = reach_from_right(&p, &own, true);
	assert_true(far.ops & WRITE);
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static void allocated_memory_is_reached(void **state)
{
	struct fabric_memory own, far;
	struct link_pair p;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	for (uint64_t i = 0; i < SIZE; i++)
		assert_int_equal(((unsigned char *)own.base)[i], 0);
	far = reach_from_right(&p, &own, true);
	assert_true((far.ops & (WRITE | READ)) == (WRITE | READ));
	reach_exchange(p.link[RIGHT], &far, own.base);
	fabric->dereg(p.domain[RIGHT], &far);
	assert_true(!far.ops && !far.base);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static void atomics_are_atomic(void **state)
{
	struct fabric_memory own, far;
	struct fabric_atomic odd = {.op = FABRIC_SWAP, .bits = 64};
	struct link_pair p;
	uint64_t *word;
	uint32_t *half;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	far = reach_from_right(&p, &own, true);
	if (far.ops & ATOMIC) {
		word = (uint64_t *)own.base + 1;
		half = (uint32_t *)own.base + 5;
		*word = 40;
		*half = UINT32_MAX;
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_FETCH_ADD, 64, 2, 0), 40);
		assert_int_equal(*word, 42);
		assert_int_equal(atomic(p.link[RIGHT], &far, 20, FABRIC_FETCH_ADD, 32, 2, 0),
				 UINT32_MAX);
		assert_int_equal(*half, 1); /* and no carry beyond it */
		assert_int_equal(((uint32_t *)own.base)[6], 0);
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_COMPARE_SWAP, 64, 7, 41),
				 42);
		assert_int_equal(*word, 42);
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_COMPARE_SWAP, 64, 7, 42),
				 42);
		assert_int_equal(*word, 7);
		assert_true(atomic(p.link[RIGHT], &far, 8, FABRIC_SWAP, 64, UINT64_MAX, 0) == 7);
		assert_true(*word == UINT64_MAX);
		assert_int_equal(atomic(p.link[RIGHT], &far, 20, FABRIC_SWAP, 32, 9, 0), 1);
		assert_int_equal(*half, 9);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_ATOMIC, &far, 4, &odd, 8), -EINVAL);
		odd.bits = 16;
		assert_int_equal(reach(p.link[RIGHT], FABRIC_ATOMIC, &far, 8, &odd, 2), -EINVAL);
		odd = (struct fabric_atomic){.op = 9, .bits = 64};
		assert_int_equal(reach(p.link[RIGHT], FABRIC_ATOMIC, &far, 8, &odd, 8), -EINVAL);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static int store_into(void *at)
{
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on */
	*(volatile unsigned char *)at = 1;
	return 0;
}

static int make_writable(void *at)
{
	return mprotect(at, 4096, PROT_READ | PROT_WRITE) == 0;
}

/* Who may only read cannot write, whatever he does to his mapping. */
static void reading_is_enforced(void **state)
{
	struct fabric_memory own, far;
	struct fabric_blob blob;
	struct link_pair p;
	unsigned char byte = 7;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, false);
	memset(own.base, 5, SIZE); /* its owner writes it */
	far = reach_from_right(&p, &own, false);
	assert_true(far.ops == READ);
	assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, SIZE - 1, &byte, 1), 1);
	assert_int_equal(byte, 5);
	assert_int_equal(reach(p.link[RIGHT], FABRIC_WRITE, &far, 0, &byte, 1), -ENOTSUP);
	assert_int_equal(reach(p.link[RIGHT], FABRIC_ATOMIC, &far, 0, &byte, 1), -ENOTSUP);
	if (far.base) {
		/* A child has no mapping at all; in this process no store gets through. */
		assert_int_equal(make_writable(far.base), 0);
		assert_true(child_run(store_into, far.base, 20) != 0);
	}
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), -ENOTSUP);
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	own = allocated(&p, true);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, false, &blob), -ENOTSUP);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static void fresh_pages_leave_the_old_ones_behind(void **state)
{
	struct fabric_memory own, far, again;
	struct fabric_memory fresh;
	struct link_pair p;
	void *base;
	unsigned char byte = 9;

	(void)state;
	reach_or_skip();
	for (int writable = 0; writable < 2; writable++) {
		link_pair_open(&p, fabric, 64, 64);
		own = allocated(&p, writable);
		base = own.base;
		actor_fill(base, 3, SIZE);
		far = reach_from_right(&p, &own, writable);
		fresh = allocated(&p, writable);
		actor_fill(fresh.base, 3, SIZE);
		own.fresh = &fresh;
		assert_int_equal(fabric->alloc(p.domain[LEFT], &own), 0);
		own.fresh = NULL;
		assert_ptr_equal(own.base, base);
		assert_null(fresh.base);
		assert_true(actor_filled(base, 3, SIZE));
		((unsigned char *)base)[0] ^= 1;
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, 0, &byte, 1), 1);
		assert_int_equal(byte, ((unsigned char *)base)[0] ^ 1);
		if (writable) {
			byte = (unsigned char)~byte;
			assert_int_equal(reach(p.link[RIGHT], FABRIC_WRITE, &far, 1, &byte, 1), 1);
			((unsigned char *)base)[0] ^= 1;
			assert_true(actor_filled(base, 3, SIZE));
			((unsigned char *)base)[0] ^= 1;
		}
		again = reach_from_right(&p, &own,
					 writable); /* and who asks now reaches the new ones */
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &again, 0, &byte, 1), 1);
		assert_int_equal(byte, ((unsigned char *)base)[0]);
		fabric->dereg(p.domain[RIGHT], &again);
		fabric->dereg(p.domain[RIGHT], &far);
		fabric->dereg(p.domain[LEFT], &own);
		link_pair_close(&p);
	}
}

static int set_access(struct fabric_link *l, uint64_t word, uint32_t value)
{
	struct fabric_atomic a = {.op = FABRIC_SWAP, .bits = 8, .operand = value};

	return reach(l, FABRIC_ATOMIC, l->peer_access, word, &a, 1);
}

/* Each side's lie in its own memory, are all 0 in the beginning, and are set by the other one
 * alone. */
static void access_words_are_the_peers_to_set(void **state)
{
	const uint32_t last = FABRIC_ACCESS_WORDS - 1;
	struct fabric_atomic add = {.op = FABRIC_FETCH_ADD, .bits = 8, .operand = 1};
	struct link_pair p;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	for (int side = 0; side < 2; side++) {
		const _Atomic unsigned char *words = p.link[!side]->access;

		assert_non_null(words);
		for (uint32_t i = 0; i <= last; i++)
			assert_int_equal(words[i], FABRIC_ACCESS_DIRECT);
		assert_int_equal(set_access(p.link[side], last, FABRIC_ACCESS_REVOKED), 1);
		assert_int_equal(set_access(p.link[side], 0, FABRIC_ACCESS_REQUEST), 1);
		assert_int_equal(words[last], FABRIC_ACCESS_REVOKED);
		assert_int_equal(words[0], FABRIC_ACCESS_REQUEST);
		assert_int_equal(reach(p.link[side], FABRIC_ATOMIC, p.link[side]->peer_access, 1,
				       &add, 1),
				 -EINVAL);
		assert_int_equal(words[1], FABRIC_ACCESS_DIRECT);
	}
	link_pair_close(&p);
}

static void limits_are_errors(void **state)
{
	struct fabric_memory m = {.size = UINT64_C(1) << 62, .writable = true};
	struct link_pair p;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	assert_true(fabric->alloc(p.domain[LEFT], &m) < 0);
	assert_null(m.base);
	link_pair_close(&p);
}

/* ---- what no peer says ----------------------------------------------------------------------- */

static int said(struct link_pair *p, const struct fabric_blob *blob, uint64_t size, bool writable)
{
	struct fabric_memory far = {.size = size, .writable = writable};
	struct fabric_blob copy = *blob;
	int rc = fabric->reg(p->link[RIGHT], &far, false, writable, &copy);

	assert_true(rc == 0 || (!far.base && !far.ops));
	if (rc == 0)
		fabric->dereg(p->domain[RIGHT], &far);
	return rc;
}

static void lies_are_found_out(void **state)
{
	struct fabric_memory own, sealed;
	struct fabric_blob good = {.fd = -1}, bad, reading = {.fd = -1};
	struct link_pair p;
	int loose;

	(void)state;
	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	sealed = allocated(&p, false);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &good), 0);
	assert_int_equal(fabric->reg(p.link[LEFT], &sealed, true, false, &reading), 0);
	assert_int_equal(said(&p, &good, SIZE, true), 0);
	assert_int_equal(said(&p, &good, SIZE, false), 0);
	assert_int_equal(said(&p, &good, SIZE - 1, true), -EPROTO);
	assert_int_equal(said(&p, &good, SIZE + 1, true), -EPROTO);
	for (uint32_t length = 0; length < sizeof(bad.bytes); length++) {
		bad = good;
		bad.length = length;
		if (length != good.length)
			assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
	}
	bad = good;
	bad.fd = -1;
	assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
	if (good.fd >= 0) {
		assert_int_equal(said(&p, &reading, SIZE, true), -EPROTO);
		/* An object whose owner can still shrink it, and one that is none. */
		loose = memfd_create("slmpm-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_true(loose >= 0 && ftruncate(loose, SIZE) == 0);
		bad = good;
		bad.fd = loose;
		assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
		bad.fd = p.end[LEFT].bell;
		assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
		close(loose);
	}
	/* Any byte of it may be anything: an answer, and nothing that stays. */
	for (uint32_t i = 0; i < good.length * 8; i++) {
		bad = good;
		bad.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		(void)said(&p, &bad, SIZE, true);
	}
	fabric->dereg(p.domain[LEFT], &own);
	fabric->dereg(p.domain[LEFT], &sealed);
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(allocated_memory_is_reached),
		FABRIC_TEST(atomics_are_atomic),
		FABRIC_TEST(reading_is_enforced),
		FABRIC_TEST(fresh_pages_leave_the_old_ones_behind),
		FABRIC_TEST(access_words_are_the_peers_to_set),
		FABRIC_TEST(limits_are_errors),
		FABRIC_TEST(lies_are_found_out),
		FABRIC_TEST(peers_cannot_seal),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
