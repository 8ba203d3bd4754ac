/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of MPI that checks what its collective operations give, for tests/apps/mpi_coll.sh:
 * each kind, with each type, root and operation, in short and long, in place and not, over several
 * communicators. It knows nothing of SLMPM.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 70000, PAIRS = 3 };

static int rank, size; /* in the communicator that is checked */
static MPI_Comm comm;
static const char *where = "world";

#define CHECK(ok, ...)                                                                             \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			fprintf(stderr, "rank %d of %d, %s: ", rank, size, where);                 \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

static void *room(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	CHECK(p, "no memory");
	memset(p, 0x5a, bytes);
	return p;
}

/* ---- numbers of a type ----------------------------------------------------------------------- */

enum form { SIGNED, UNSIGNED, FLOATING };

static const struct type {
	const char *name;
	MPI_Datatype type;
	enum form form;
	size_t bytes;
} * types;
static int type_count;

static void list_types(void)
{
	static struct type all[32];
	const struct type known[] = {
		{"signed char", MPI_SIGNED_CHAR, SIGNED, 1},
		{"unsigned char", MPI_UNSIGNED_CHAR, UNSIGNED, 1},
		{"short", MPI_SHORT, SIGNED, sizeof(short)},
		{"unsigned short", MPI_UNSIGNED_SHORT, UNSIGNED, sizeof(short)},
		{"int", MPI_INT, SIGNED, sizeof(int)},
		{"unsigned", MPI_UNSIGNED, UNSIGNED, sizeof(int)},
		{"long", MPI_LONG, SIGNED, sizeof(long)},
		{"unsigned long", MPI_UNSIGNED_LONG, UNSIGNED, sizeof(long)},
		{"long long", MPI_LONG_LONG, SIGNED, sizeof(long long)},
		{"unsigned long long", MPI_UNSIGNED_LONG_LONG, UNSIGNED, sizeof(long long)},
		{"int8_t", MPI_INT8_T, SIGNED, 1},
		{"uint16_t", MPI_UINT16_T, UNSIGNED, 2},
		{"int32_t", MPI_INT32_T, SIGNED, 4},
		{"uint64_t", MPI_UINT64_T, UNSIGNED, 8},
		{"float", MPI_FLOAT, FLOATING, sizeof(float)},
		{"double", MPI_DOUBLE, FLOATING, sizeof(double)},
		{"long double", MPI_LONG_DOUBLE, FLOATING, sizeof(long double)},
	};

	memcpy(all, known, sizeof known);
	types = all;
	type_count = (int)(sizeof known / sizeof *known);
}

static void store(const struct type *t, void *to, int i, long value)
{
	unsigned char *at = (unsigned char *)to + (size_t)i * t->bytes;
	uint64_t bits = (uint64_t)value;
	long double wide = value;
	double d = (double)value;
	float f = (float)value;

	if (t->form != FLOATING)
		memcpy(at, &bits, t->bytes); /* of machines whose low bytes come first */
	else if (t->bytes == sizeof f)
		memcpy(at, &f, sizeof f);
	else if (t->bytes == sizeof d)
		memcpy(at, &d, sizeof d);
	else
		memcpy(at, &wide, sizeof wide);
}

static long load(const struct type *t, const void *from, int i)
{
	const unsigned char *at = (const unsigned char *)from + (size_t)i * t->bytes;
	int unused = 64 - 8 * (int)t->bytes;
	uint64_t bits = 0;
	long double wide;
	double d;
	float f;

	if (t->form == FLOATING) {
		if (t->bytes == sizeof f)
			return memcpy(&f, at, sizeof f), (long)f;
		if (t->bytes == sizeof d)
			return memcpy(&d, at, sizeof d), (long)d;
		return memcpy(&wide, at, sizeof wide), (long)wide;
	}
	memcpy(&bits, at, t->bytes);
	if (t->form == SIGNED)
		return (long)((int64_t)(bits << unused) >> unused);
	return (long)bits;
}

/* ---- reductions ------------------------------------------------------------------------------ */

enum { SUM, PRODUCT, MINIMUM, MAXIMUM, BAND, BOR, BXOR, LAND, LOR, LXOR, OPS };

static MPI_Op op_of(int op)
{
	const MPI_Op ops[OPS] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
				 MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};

	return ops[op];
}

/* Small enough for all types. */
static long number(int r, int i, int op)
{
	return op == PRODUCT ? 1 + (i + r) % 2 : (i * 3 + r * 5) % 8;
}

static long combined(int op, int i)
{
	long all = number(0, i, op);

	for (int r = 1; r < size; r++) {
		long x = number(r, i, op);

		switch (op) {
		case SUM: all += x; break;
		case PRODUCT: all *= x; break;
		case MINIMUM: all = x < all ? x : all; break;
		case MAXIMUM: all = x > all ? x : all; break;
		case BAND: all &= x; break;
		case BOR: all |= x; break;
		case BXOR: all ^= x; break;
		case LAND: all = all && x; break;
		case LOR: all = all || x; break;
		default: all = !all != !x;
		}
	}
	return all;
}

static void is_combined(const struct type *t, const void *got, int n, int op)
{
	for (int i = 0; i < n; i++)
		CHECK(load(t, got, i) == combined(op, i),
		      "operation %d of %s, element %d of %d: %ld in place of %ld", op, t->name, i,
		      n, load(t, got, i), combined(op, i));
}

static void fill(const struct type *t, void *to, int n, int op)
{
	for (int i = 0; i < n; i++)
		store(t, to, i, number(rank, i, op));
}

static void reduce(const struct type *t, int op, int n, int in_place)
{
	size_t bytes = (size_t)n * t->bytes;
	void *from = room(bytes), *to = room(bytes);

	fill(t, from, n, op);
	for (int root = 0; root < size; root++) {
		fill(t, to, n, op);
		/* MPICH 4.0.2 itself fails at that. */
		MPI_Reduce(in_place && rank == root && t->type != MPI_LONG_DOUBLE ? MPI_IN_PLACE :
										    from,
			   rank == root ? to : NULL, n, t->type, op_of(op), root, comm);
		if (rank == root)
			is_combined(t, to, n, op);
	}
	fill(t, to, n, op);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, n, t->type, op_of(op), comm);
	is_combined(t, to, n, op);
	free(from);
	free(to);
}

static void reductions(void)
{
	static const int counts[] = {1, 2, 5, 700};

	for (int k = 0; k < type_count; k++)
		for (int op = 0; op < OPS; op++)
			for (int c = 0; c < 4; c++) {
				if (types[k].form == FLOATING && op > MAXIMUM)
					continue;
				reduce(&types[k], op, counts[c], c & 1);
			}
	for (int in_place = 0; in_place < 2; in_place++)
		reduce(&types[type_count - 2], SUM, LONG, in_place);
}

/* What SLMPM does not know. */
static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
	const int *from = in;
	int *to = inout;

	(void)type;
	for (int i = 0; i < 2 * *n; i++)
		to[i] += from[i];
}

static void foreign_reductions(void)
{
	struct {
		double value;
		int index;
	} from = {100 - rank, rank}, to;
	int mine[2 * PAIRS], all[2 * PAIRS];
	MPI_Datatype pair;
	MPI_Op op;

	MPI_Allreduce(&from, &to, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	CHECK(to.index == size - 1, "least at %d", to.index);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(add_pairs, 1, &op);
	for (int i = 0; i < 2 * PAIRS; i++)
		mine[i] = rank + i;
	MPI_Allreduce(mine, all, PAIRS, pair, op, comm);
	for (int i = 0; i < 2 * PAIRS; i++)
		CHECK(all[i] == size * i + size * (size - 1) / 2, "pairs: %d", all[i]);
	MPI_Reduce(mine, all, PAIRS, pair, op, size - 1, comm);
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
}

/* ---- data that is moved ---------------------------------------------------------------------- */

static unsigned char byte_of(int from, int to, size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 5 + (size_t)(from * 31 + to * 11));
}

static void draw(unsigned char *at, int from, int to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = byte_of(from, to, i);
}

static void is_drawn(const unsigned char *at, int from, int to, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(at[i] == byte_of(from, to, i), "%s of %zu bytes: byte %zu", what, n, i);
}

static void broadcasts(const struct type *t, int n)
{
	size_t bytes = (size_t)n * t->bytes;
	unsigned char *buffer = room(bytes);

	for (int root = 0; root < size; root++) {
		memset(buffer, 0, bytes);
		if (rank == root)
			draw(buffer, root, 0, bytes);
		MPI_Bcast(buffer, n, t->type, root, comm);
		is_drawn(buffer, root, 0, bytes, "broadcast");
	}
	free(buffer);
}

static void gathers(const struct type *t, int n, int in_place)
{
	size_t bytes = (size_t)n * t->bytes, all = bytes * (size_t)size;
	unsigned char *from = room(bytes), *to = room(all), *own = to + bytes * (size_t)rank;

	draw(in_place ? own : from, rank, 0, bytes);
	MPI_Allgather(in_place ? MPI_IN_PLACE : from, n, t->type, to, n, t->type, comm);
	for (int r = 0; r < size; r++)
		is_drawn(to + bytes * (size_t)r, r, 0, bytes, "allgather");
	free(from);
	free(to);
}

static void exchanges(const struct type *t, int n, int in_place)
{
	size_t bytes = (size_t)n * t->bytes, all = bytes * (size_t)size;
	unsigned char *from = room(all), *to = room(all);

	for (int r = 0; r < size; r++)
		draw((in_place ? to : from) + bytes * (size_t)r, rank, r, bytes);
	MPI_Alltoall(in_place ? MPI_IN_PLACE : from, n, t->type, to, n, t->type, comm);
	for (int r = 0; r < size; r++)
		is_drawn(to + bytes * (size_t)r, r, rank, bytes, "alltoall");
	free(from);
	free(to);
}

static void moves(void)
{
	static const int counts[] = {0, 1, 3, 10, 1000};

	for (int k = 0; k < type_count; k++)
		for (int c = 0; c < 5; c++) {
			broadcasts(&types[k], counts[c]);
			gathers(&types[k], counts[c], c & 1);
			exchanges(&types[k], counts[c], k & 1);
		}
	for (int in_place = 0; in_place < 2; in_place++) {
		broadcasts(&types[4], LONG);
		gathers(&types[4], LONG, in_place);
		exchanges(&types[4], LONG, in_place);
	}
}

/* One rank has a row of numbers, the others every second place of a longer one. */
static void strided(int n)
{
	int *row = room((size_t)(2 * n * size) * sizeof *row), *out = room((size_t)n * sizeof *out);
	MPI_Datatype every, block;

	MPI_Type_vector(n, 1, 2, MPI_INT, &every);
	MPI_Type_create_resized(every, 0, 2 * n * (MPI_Aint)sizeof(int), &block);
	MPI_Type_commit(&block);
	for (int root = 0; root < size; root++) {
		for (int i = 0; i < n; i++)
			out[i] = row[2 * i] = rank == root ? root * 1000 + i : -1;
		if (rank == root)
			MPI_Bcast(out, n, MPI_INT, root, comm);
		else
			MPI_Bcast(row, 1, block, root, comm);
		for (int i = 0; i < n; i++)
			CHECK(row[2 * i] == root * 1000 + i, "strided broadcast: %d", row[2 * i]);
	}
	for (int i = 0; i < 2 * n * size; i++)
		row[i] = -7;
	for (int i = 0; i < n; i++)
		out[i] = rank * 1000 + i;
	if (rank & 1)
		MPI_Allgather(out, n, MPI_INT, row, 1, block, comm);
	else
		MPI_Allgather(out, n * (int)sizeof(int), MPI_BYTE, row, 1, block, comm);
	for (int i = 0; i < 2 * n * size; i++)
		CHECK(row[i] == (i & 1 ? -7 : i / (2 * n) * 1000 + i % (2 * n) / 2),
		      "strided allgather, %d: %d", i, row[i]);
	MPI_Type_free(&every);
	MPI_Type_free(&block);
	free(row);
	free(out);
}

/* ---- started --------------------------------------------------------------------------------- */

enum { STARTS = 6 };

static void wait_each(MPI_Request *requests, int how)
{
	MPI_Status statuses[STARTS]; /* MPICH's header has gcc warn of none */
	int done = 0, which, n;

	switch (how) {
	case 0: MPI_Waitall(STARTS, requests, statuses); break;
	case 1:
		for (int i = STARTS; i--;)
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		break;
	case 2:
		for (int i = 0; i < STARTS; i++)
			MPI_Waitany(STARTS, requests, &which, MPI_STATUS_IGNORE);
		break;
	case 3:
		while (!done)
			MPI_Testall(STARTS, requests, &done, statuses);
		break;
	case 4:
		for (int left = STARTS, some[STARTS]; left; left -= n)
			MPI_Waitsome(STARTS, requests, &n, some, statuses);
		break;
	default:
		for (int i = 0; i < STARTS; i++, done = 0)
			while (!done)
				MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < STARTS; i++)
		CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
}

/* All kinds at once, and one that blocks among them. */
static void starts(const struct type *t, int n, int root, int how)
{
	size_t bytes = (size_t)n * t->bytes, blocks = bytes * (size_t)size;
	unsigned char *told = room(bytes), *gathered = room(blocks), *out = room(blocks),
		      *in = room(blocks), *own = gathered + bytes * (size_t)rank;
	void *numbers = room(bytes), *sum = room(bytes), *most = room(bytes), *now = room(bytes);
	MPI_Request requests[STARTS];

	if (rank == root)
		draw(told, root, 0, bytes);
	draw(own, rank, 0, bytes);
	for (int r = 0; r < size; r++)
		draw(out + bytes * (size_t)r, rank, r, bytes);
	fill(t, numbers, n, SUM);
	MPI_Ibcast(told, n, t->type, root, comm, &requests[0]);
	MPI_Iallreduce(numbers, sum, n, t->type, MPI_SUM, comm, &requests[1]);
	MPI_Ialltoall(out, n, t->type, in, n, t->type, comm, &requests[2]);
	MPI_Ibarrier(comm, &requests[3]);
	MPI_Allreduce(numbers, now, n, t->type, MPI_MIN, comm);
	MPI_Iallgather(MPI_IN_PLACE, n, t->type, gathered, n, t->type, comm, &requests[4]);
	MPI_Ireduce(numbers, rank == root ? most : NULL, n, t->type, MPI_MAX, root, comm,
		    &requests[5]);
	wait_each(requests, how);
	is_drawn(told, root, 0, bytes, "started broadcast");
	for (int r = 0; r < size; r++) {
		is_drawn(gathered + bytes * (size_t)r, r, 0, bytes, "started allgather");
		is_drawn(in + bytes * (size_t)r, r, rank, bytes, "started alltoall");
	}
	is_combined(t, sum, n, SUM);
	is_combined(t, now, n, MINIMUM);
	if (rank == root)
		is_combined(t, most, n, MAXIMUM);
	free(told), free(gathered), free(out), free(in);
	free(numbers), free(sum), free(most), free(now);
}

/* One waits for it while the other, which has started it, waits for a message of the one. */
static void started_beside(void)
{
	const struct type *t = &types[type_count - 2];
	void *numbers = room(LONG * t->bytes), *sum = room(LONG * t->bytes);
	MPI_Request request;
	int word = 0;

	fill(t, numbers, LONG, SUM);
	MPI_Iallreduce(numbers, sum, LONG, t->type, MPI_SUM, comm, &request);
	if (rank)
		MPI_Recv(&word, 1, MPI_INT, rank - 1, 6, comm, MPI_STATUS_IGNORE);
	else
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank + 1 < size)
		MPI_Send(&word, 1, MPI_INT, rank + 1, 6, comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	is_combined(t, sum, LONG, SUM);
	free(numbers);
	free(sum);
}

static void all_starts(void)
{
	static const int counts[] = {1, 7, 3000};

	for (int how = 0; how < 6; how++)
		for (int c = 0; c < 3; c++)
			starts(&types[how + 8], counts[c], (how + c) % size, how);
	started_beside();
}

/* ---- beside messages ------------------------------------------------------------------------- */

/* A long message is sent by the one while it waits at a barrier, to which the other comes when it
 * has it: so MPI must go on there. */
static void message_beside(void)
{
	int n = 4 << 20, peer = rank ^ 1;
	unsigned char *buffer;
	MPI_Request request;

	if (peer >= size) {
		MPI_Barrier(comm);
		return;
	}
	buffer = room((size_t)n);
	if (rank & 1) {
		MPI_Recv(buffer, n, MPI_BYTE, peer, 5, comm, MPI_STATUS_IGNORE);
		is_drawn(buffer, peer, rank, (size_t)n, "message");
		MPI_Barrier(comm);
	} else {
		draw(buffer, rank, peer, (size_t)n);
		MPI_Isend(buffer, n, MPI_BYTE, peer, 5, comm, &request);
		MPI_Barrier(comm);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	free(buffer);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void check(MPI_Comm c, const char *name)
{
	comm = c;
	where = name;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < 50; i++)
		MPI_Barrier(comm);
	moves();
	strided(3);
	strided(900);
	reductions();
	foreign_reductions();
	all_starts();
	message_beside();
}

/* Half of the ranks and the other half. */
static void between(int number_of, int ranks)
{
	MPI_Comm half, inter;
	int high = number_of >= ranks / 2, told = -1;

	if (ranks < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, high, number_of, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : ranks / 2, 9, &inter);
	where = "between";
	MPI_Barrier(inter);
	if (!high)
		told = 77;
	MPI_Bcast(&told, 1, MPI_INT, high ? 0 : number_of ? MPI_PROC_NULL : MPI_ROOT, inter);
	CHECK(told == 77, "the other half has %d", told);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
	int number_of, ranks, rounds = argc > 1 ? atoi(argv[1]) : 3;
	MPI_Comm other;

	MPI_Init(&argc, &argv);
	list_types();
	MPI_Comm_rank(MPI_COMM_WORLD, &number_of);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	check(MPI_COMM_WORLD, "world");
	MPI_Comm_split(MPI_COMM_WORLD, 0, -number_of, &other);
	check(other, "backwards");
	MPI_Comm_free(&other);
	MPI_Comm_split(MPI_COMM_WORLD, number_of % 2, number_of, &other);
	check(other, "every second");
	MPI_Comm_free(&other);
	for (int i = 0; i < rounds; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &other);
		comm = other;
		where = "copy";
		MPI_Comm_rank(comm, &rank);
		MPI_Comm_size(comm, &size);
		gathers(&types[4], 100, 0);
		MPI_Comm_free(&other);
	}
	between(number_of, ranks);
	MPI_Barrier(MPI_COMM_WORLD);
	if (number_of == 0)
		printf("all is well with %d\n", ranks);
	MPI_Finalize();
	return 0;
}
