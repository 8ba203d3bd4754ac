/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations: one instruction on memory that both map, where both have the same byte order;
 * else the owner does it, on the same word and by the same kind of instruction, so that the two
 * ways are atomic against each other.
 */
#include "fabrics/fabric.h"
#include "slmpm/direct.h"
#include "slmpm/error.h"
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

static COLD int operate(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
			uint64_t compare, void *old, const struct slmpm_how *how, slmpm_req *req)
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

static inline bool is_word(const struct remote *remote, uint64_t offset, int op, int bits)
{
	uint64_t size = (uint64_t)bits / 8;

	return op >= SLMPM_FETCH_ADD && op <= SLMPM_SWAP && (bits == 64 || bits == 32) &&
	       !((remote->address + offset) & (size - 1)) &&
	       !((uintptr_t)direct_at(remote, offset) & (size - 1)) &&
	       direct_is_within(remote, offset, size);
}

int slmpm_atomic(slmpm_rmem mem, uint64_t offset, int op, int bits, uint64_t operand,
		 uint64_t compare, void *old, const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(mem);

	if (LIKELY(remote && !remote->ctx->multiple))
		direct_claim(direct_at(remote, offset));
	if (LIKELY(!req && direct_is_short(remote, FABRIC_ATOMIC, SLMPM_READ_WRITE) &&
		   is_word(remote, offset, op, bits) && direct_is_plain(how))) {
		struct slmpm_stats *stats = remote->ep->stats;
		uint64_t was = direct_atomic(direct_at(remote, offset), op, bits, operand, compare);

		direct_give_old(old, bits, was);
		if (UNLIKELY(!(++stats->atomics % RMA_LOOK_EVERY)))
			rma_look(remote->ep->ctx);
		return 0;
	}
	return operate(mem, offset, op, bits, operand, compare, old, how, req);
}
