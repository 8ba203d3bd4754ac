/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of MPI's types and operations are SLMPM's. */
#include "apps/mpi_coll/coll.h"

#include <stddef.h>

/* What may be done with numbers of a type. */
enum class { INTEGER = 1, FLOATING = 2, LOGICAL = 4, BYTES = 8 };

struct known {
	MPI_Datatype type;
	uint32_t is;
	enum class class;
};

#define SIGNED(t)                                                                                  \
	(sizeof(t) == 1 ? SLMPM_INT8 :                                                             \
	 sizeof(t) == 2 ? SLMPM_INT16 :                                                            \
	 sizeof(t) == 4 ? SLMPM_INT32 :                                                            \
			  SLMPM_INT64)
#define UNSIGNED(t) (SIGNED(t) + SLMPM_UINT8 - SLMPM_INT8)

/* Their handles need not be constants of the compiler. Fills in all there are. */
static size_t list(struct known *k)
{
	const struct known all[] = {
		{MPI_DOUBLE, SLMPM_DOUBLE, FLOATING},
		{MPI_INT, SIGNED(int), INTEGER},
		{MPI_FLOAT, SLMPM_FLOAT, FLOATING},
		{MPI_LONG, SIGNED(long), INTEGER},
		{MPI_BYTE, SLMPM_UINT8, BYTES},
		{MPI_UNSIGNED, UNSIGNED(int), INTEGER},
		{MPI_UNSIGNED_LONG, UNSIGNED(long), INTEGER},
		{MPI_LONG_LONG, SIGNED(long long), INTEGER},
		{MPI_UNSIGNED_LONG_LONG, UNSIGNED(long long), INTEGER},
		{MPI_INT64_T, SLMPM_INT64, INTEGER},
		{MPI_UINT64_T, SLMPM_UINT64, INTEGER},
		{MPI_INT32_T, SLMPM_INT32, INTEGER},
		{MPI_UINT32_T, SLMPM_UINT32, INTEGER},
		{MPI_SHORT, SIGNED(short), INTEGER},
		{MPI_UNSIGNED_SHORT, UNSIGNED(short), INTEGER},
		{MPI_INT16_T, SLMPM_INT16, INTEGER},
		{MPI_UINT16_T, SLMPM_UINT16, INTEGER},
		{MPI_SIGNED_CHAR, SLMPM_INT8, INTEGER},
		{MPI_UNSIGNED_CHAR, SLMPM_UINT8, INTEGER},
		{MPI_INT8_T, SLMPM_INT8, INTEGER},
		{MPI_UINT8_T, SLMPM_UINT8, INTEGER},
		{MPI_AINT, SIGNED(MPI_Aint), INTEGER},
		{MPI_OFFSET, SIGNED(MPI_Offset), INTEGER},
		{MPI_COUNT, SIGNED(MPI_Count), INTEGER},
		{MPI_C_BOOL, SLMPM_UINT8, LOGICAL},
		{MPI_CHAR, SLMPM_UINT8, 0}, /* printable: MPI lets nothing be calculated */
		{MPI_PACKED, SLMPM_UINT8, 0},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		k[i] = all[i];
	return sizeof(all) / sizeof(*all);
}

static const struct known *find(MPI_Datatype type)
{
	static struct known known[32];
	static _Atomic size_t there;
	size_t n = there;

	if (!n)
		there = n = list(known); /* of threads at once: the same twice */
	for (size_t i = 0; i < n; i++)
		if (known[i].type == type)
			return &known[i];
	return NULL;
}

uint32_t type_of(MPI_Datatype type)
{
	const struct known *k = find(type);

	return k ? k->is : 0;
}

uint32_t op_of(MPI_Op op, MPI_Datatype type)
{
	const struct known *k = find(type);
	enum class class = k ? k->class : 0;

	if (class & (INTEGER | FLOATING)) {
		if (op == MPI_SUM)
			return SLMPM_CALC_SUM;
		if (op == MPI_MAX)
			return SLMPM_CALC_MAX;
		if (op == MPI_MIN)
			return SLMPM_CALC_MIN;
		if (op == MPI_PROD)
			return SLMPM_CALC_PRODUCT;
	}
	if (class & (INTEGER | LOGICAL)) {
		if (op == MPI_LAND)
			return SLMPM_CALC_LAND;
		if (op == MPI_LOR)
			return SLMPM_CALC_LOR;
		if (op == MPI_LXOR)
			return SLMPM_CALC_LXOR;
	}
	if (class & (INTEGER | BYTES)) {
		if (op == MPI_BAND)
			return SLMPM_CALC_AND;
		if (op == MPI_BOR)
			return SLMPM_CALC_OR;
		if (op == MPI_BXOR)
			return SLMPM_CALC_XOR;
	}
	return 0;
}
