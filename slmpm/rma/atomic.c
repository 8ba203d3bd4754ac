/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations: one instruction on memory that both map, where both have the same byte order;
 * else the owner does it, on the same word and by the same kind of instruction, so that the two
 * ways are atomic against each other.
 */
#include "fabrics/fabric.h"
#include "slmpm/rma/direct.h"
#include "slmpm/base/error.h"
#include "slmpm/request.h"

static int check_word(slmpm_rmem mem, uint64_t offset, int op, int bits)
{
	const struct remote *remote = remote_get(mem);
	uint64_t size = (uint64_t)bits / 8;

	if (op < SLMPM_FETCH_ADD || op > SLMPM_SWAP)
		return error_set(SLMPM_EINVAL, "slmpm_atomic: operation %d", op);
	if (bits != 32 && bits != 64)
		return error_set(SLMPM_EINVAL, "slmpm_atomic: %d bits", bits);
	if (remote && (remote->address + offset) % size)
		return error_set(SLMPM_EINVAL, "slmpm_atomic: a word at %llu is not aligned",
				 (unsigned long long)offset);
	return 0;
}

static NOINLINE int operate_slow_path(slmpm_rmem mem, uint64_t offset, int op, int bits,
				      uint64_t operand, uint64_t compare, void *old,
				      const struct slmpm_how *how, slmpm_req *req)
{
	struct slmpm_span word = {offset, (uint64_t)bits / 8};
	struct fabric_atomic a = {
		.op = (uint32_t)op,
		.bits = (uint32_t)bits,
		.operand = operand,
		.compare = compare,
	};
	struct operation o = {
		.call = "slmpm_atomic",
		.rmem = mem,
		.kind = REQUEST_ATOMIC,
		.access = SLMPM_READ_WRITE,
		.spans = &word,
		.span_count = 1,
		.atomic = &a,
		.old = old,
		.how = how,
		.req = req,
	};
	int rc = check_word(mem, offset, op, bits);

	return rc < 0 ? rc : rma_operate(&o);
}

/* Where the fast path goes words are aligned that have an aligned offset. */
static inline bool atomic_is_word(const struct remote *remote, uint64_t offset, uint64_t size)
{
	return !(offset & (size - 1)) && direct_is_within(remote, offset, size);
}

/* One more, told before it is done: what stands behind the instruction waits for it. */
static inline bool atomic_count(const struct remote *remote)
{
	return !(++remote->direct.stats->atomics % RMA_PASS_EVERY);
}

static inline bool atomic_is_known(int op, int bits)
{
	return op >= SLMPM_FETCH_ADD && op <= SLMPM_SWAP && (bits == 64 || bits == 32);
}

static inline int do_shortly(const struct remote *remote, uint64_t offset, int op, int bits,
			     uint64_t operand, uint64_t compare, void *old)
{
	bool inspect_now = atomic_count(remote);

	direct_give_old(old, bits,
			direct_atomic(direct_at(remote, offset), op, bits, operand, compare));
	if (UNLIKELY(inspect_now))
		direct_opportunistic(remote->ctx, remote->direct.stats->atomics);
	return 0;
}

static NOINLINE int operate(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
			    uint64_t compare, void *old, const struct slmpm_how *how,
			    slmpm_req *req)
{
	const struct remote *remote = remote_get(mem);
	uint64_t n = (uint64_t)bits / 8;

	if (atomic_is_known(op, bits) && !req && direct_is_guarded(remote, FABRIC_ATOMIC) &&
	    !parts.mirrored(remote->ctx, old, n) && atomic_is_word(remote, offset, n) &&
	    direct_is_plain(how))
		return do_shortly(remote, offset, op, bits, operand, compare, old);
	return operate_slow_path(mem, offset, op, bits, operand, compare, old, how, req);
}

/* The fast path of all of them, and else the slow one. */
static NOINLINE int do_any(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
			   uint64_t compare, void *old, const struct slmpm_how *how, slmpm_req *req)
{
	const struct remote *remote;

	direct_claim(mem, offset);
	remote = remote_get(mem);
	if (LIKELY(atomic_is_known(op, bits) && !req && direct_is_short(remote, FABRIC_ATOMIC) &&
		   atomic_is_word(remote, offset, (uint64_t)bits / 8) && direct_is_plain(how)))
		return do_shortly(remote, offset, op, bits, operand, compare, old);
	return operate(mem, offset, op, bits, operand, compare, old, how, req);
}

static NOINLINE int add_slow_path(slmpm_rmem mem, uint64_t offset, uint64_t operand, void *old)
{
	return operate(mem, offset, SLMPM_FETCH_ADD, 64, operand, 0, old, NULL, NULL);
}

/* The most frequent one: each store ahead of the instruction delays it, a saved register too. */
static NOINLINE HOT int atomic_add(slmpm_rmem mem, uint64_t offset, uint64_t operand, void *old)
{
	const struct remote *remote;
	uint64_t was;
	bool inspect_now;

	direct_claim(mem, offset);
	remote = remote_get(mem);
	if (UNLIKELY(!direct_is_short(remote, FABRIC_ATOMIC) ||
		     !atomic_is_word(remote, offset, sizeof(was))))
		return add_slow_path(mem, offset, operand, old);
	inspect_now = atomic_count(remote);
	was = atomic_fetch_add((_Atomic uint64_t *)direct_at(remote, offset), operand);
	if (old)
		memcpy(old, &was, sizeof(was));
	if (UNLIKELY(inspect_now))
		direct_opportunistic(remote->ctx, remote->direct.stats->atomics);
	return 0;
}

int slmpm_atomic(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
		 uint64_t compare, void *old, const struct slmpm_how *how, slmpm_req *req)
{
	if (LIKELY(op == SLMPM_FETCH_ADD && bits == 64 && !how && !req))
		return atomic_add(mem, offset, operand, old);
	return do_any(mem, offset, op, bits, operand, compare, old, how, req);
}
