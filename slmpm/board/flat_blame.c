/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a member that does another operation than the others, or none any more. */
#include <inttypes.h>
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/board/flat_parts.h"

const char *flat_kind_name(uint32_t kind)
{
	static const char *const name[] = {[SLMPM_COLL_BARRIER] = "barrier",
					   [SLMPM_COLL_BROADCAST] = "broadcast",
					   [SLMPM_COLL_REDUCE] = "reduce",
					   [SLMPM_COLL_ALLREDUCE] = "allreduce",
					   [SLMPM_COLL_SCATTER] = "scatter",
					   [SLMPM_COLL_GATHER] = "gather",
					   [SLMPM_COLL_ALLGATHER] = "allgather",
					   [SLMPM_COLL_ALLTOALL] = "alltoall",
					   [SLMPM_COLL_REDUCE_SCATTER] = "reduce-scatter",
					   [SLMPM_COLL_SCAN] = "scan",
					   [SLMPM_COLL_EXSCAN] = "exscan"};

	return kind < sizeof(name) / sizeof(name[0]) ? name[kind] : NULL;
}

static const char *type_name(uint32_t type)
{
	static const char *const name[] = {"no type", "int8",   "int16",  "int32", "int64", "uint8",
					   "uint16",  "uint32", "uint64", "float", "double"};

	return type < sizeof(name) / sizeof(name[0]) ? name[type] : "an unknown type";
}

static const char *op_name(uint32_t op)
{
	static const char *const name[] = {"no operation", "sum", "product", "min", "max", "and",
					   "or",           "xor", "land",    "lor", "lxor"};

	return op < sizeof(name) / sizeof(name[0]) ? name[op] : "an unknown operation";
}

static int differ(struct flat *f, uint32_t r, const char *theirs, const char *ours)
{
	f->culprit = r;
	return error_set(SLMPM_EINVAL,
			 "operation %" PRIu64
			 " of the group: rank %u has %s, this one, rank %u, %s",
			 f->number, r, theirs, f->b->rank, ours);
}

static int differ_in(struct flat *f, uint32_t r, const char *what, uint64_t theirs, uint64_t ours)
{
	char text[48], own[48];

	(void)snprintf(text, sizeof(text), "%s %" PRIu64, what, theirs);
	(void)snprintf(own, sizeof(own), "%s %" PRIu64, what, ours);
	return differ(f, r, text, own);
}

COLD int flat_blame(struct flat *f, uint32_t r, uint64_t what, uint64_t had, uint64_t count)
{
	uint64_t other = what ^ f->what;
	const char *kind = flat_kind_name((uint8_t)what);

	if ((uint8_t)other)
		return differ(f, r, kind ? kind : "an unknown kind",
			      flat_kind_name((uint8_t)f->what));
	if ((uint8_t)(other >> POST_TYPE))
		return differ(f, r, type_name((uint8_t)(what >> POST_TYPE)),
			      type_name((uint8_t)(f->what >> POST_TYPE)));
	if ((uint8_t)(other >> POST_OP))
		return differ(f, r, op_name((uint8_t)(what >> POST_OP)),
			      op_name((uint8_t)(f->what >> POST_OP)));
	if ((uint16_t)(other >> POST_ROOT))
		return differ_in(f, r, "root", (uint16_t)(what >> POST_ROOT),
				 (uint16_t)(f->what >> POST_ROOT));
	if (had != count || !(other >> POST_SAME))
		return differ_in(f, r, "count", had, count);
	return differ(f, r, "counts", "others of the same sum");
}

COLD int flat_refuse(struct flat *f, uint32_t r, const char *what)
{
	f->culprit = r;
	return error_set(SLMPM_EPROTO,
			 "operation %" PRIu64
			 " of the group: the %s that rank %u posts is impossible",
			 f->number, what, r);
}

COLD int flat_end_of(struct flat *f, uint32_t r, uint32_t culprit, int error)
{
	f->culprit = culprit;
	if (error == -SLMPM_ECLOSED && culprit == r)
		return error_set(SLMPM_ECLOSED,
				 "operation %" PRIu64 " of the group: rank %u has left it",
				 f->number, r);
	return error_set(-error,
			 "operation %" PRIu64 " of the group: rank %u says that it is broken by "
			 "rank %u: %s",
			 f->number, r, culprit, slmpm_strerror(error));
}
