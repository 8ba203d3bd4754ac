/* SPDX-License-Identifier: BSD-3-Clause */
/* A request's pieces of memory: gathered, scattered, summed, refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/request.h"
#include "tests/lib/random.h"

#define BYTES  500
#define PIECES 9

/* BYTES bytes in so many pieces, some of them empty, with gaps between. */
struct split {
	unsigned char memory[2 * BYTES];
	struct slmpm_iov iov[PIECES];
};

static void split_up(struct split *s, int n, struct rng *g)
{
	size_t left = BYTES, at = 0;

	memset(s->memory, 0xee, sizeof(s->memory));
	for (int i = 0; i < n; i++) {
		size_t take = i == n - 1       ? left :
			      rng_one_in(g, 4) ? 0 :
						 rng_below(g, (uint32_t)left + 1);

		s->iov[i] = (struct slmpm_iov){take ? s->memory + at : NULL, take};
		at += take + 5;
		left -= take;
	}
}

static struct context ctx;

static void begin(struct request *r, enum request_kind kind, struct split *s, int n)
{
	*r = (struct request){.piece_count = 0};
	assert_int_equal(request_init(r, kind, &ctx, NULL, 3, s->iov, n), 0);
	assert_int_equal(r->length, BYTES);
}

static void scattered_is_gathered_again(void **state)
{
	struct rng g = {rng_run_seed(11)};
	unsigned char source[BYTES], back[BYTES];
	static struct split s;
	struct request r;

	(void)state;
	for (int turn = 0; turn < 2000; turn++) {
		uint64_t done = 0;

		split_up(&s, 1 + turn % PIECES, &g);
		begin(&r, REQUEST_RECV, &s, 1 + turn % PIECES);
		for (int i = 0; i < BYTES; i++)
			source[i] = (unsigned char)rng_next(&g);
		while (done < BYTES) {
			uint64_t n = 1 + rng_below(&g, 200);

			n = n < BYTES - done ? n : BYTES - done;
			request_scatter(&r, done, source + done, n);
			done += n;
		}
		request_gather(&r, 0, back, BYTES);
		assert_memory_equal(back, source, BYTES);
		for (int i = 0; i < 100; i++) {
			uint64_t from = rng_below(&g, BYTES), n = rng_below(&g, BYTES) + 1;
			void *run;

			n = n < BYTES - from ? n : BYTES - from;
			memset(back, 0, sizeof(back));
			request_gather(&r, from, back, n);
			assert_memory_equal(back, source + from, n);
			run = request_run(&r, from, n);
			if (run)
				assert_memory_equal(run, source + from, n);
			else
				assert_true(r.piece_count > 1);
		}
		request_drop(&r);
	}
}

/* Nothing is written beside the pieces, and what is past their end is dropped. */
static void gaps_stay(void **state)
{
	struct rng g = {5};
	unsigned char source[2 * BYTES];
	static struct split s;
	struct request r;
	size_t touched = 0;

	(void)state;
	memset(source, 0x11, sizeof(source));
	split_up(&s, PIECES, &g);
	begin(&r, REQUEST_RECV, &s, PIECES);
	request_scatter(&r, 0, source, 2 * BYTES);
	request_scatter(&r, BYTES, source, 1);
	request_scatter(&r, UINT64_C(1) << 40, source, 1);
	for (size_t i = 0; i < sizeof(s.memory); i++)
		touched += s.memory[i] == 0x11;
	assert_int_equal(touched, BYTES);
	assert_null(request_run(&r, BYTES, 1));
	request_drop(&r);
}

static void bad_pieces_are_refused(void **state)
{
	const struct slmpm_iov null = {NULL, 1},
			       huge[2] = {{(void *)8, SLMPM_MESSAGE_MAX}, {(void *)8, 1}};
	struct slmpm_iov most = {(void *)8, SIZE_MAX};
	struct request r = {.piece_count = 0};

	(void)state;
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, NULL, 1), -SLMPM_EINVAL);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, &null, -1), -SLMPM_EINVAL);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, &null, 1), -SLMPM_EINVAL);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, huge, 2), -SLMPM_ELIMIT);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, &most, 1), -SLMPM_ELIMIT);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, huge, 1), 0);
	assert_int_equal(request_init(&r, REQUEST_SEND, &ctx, NULL, 0, NULL, 0), 0);
	assert_int_equal(r.length, 0);
}

/* A receive may offer more than a message can have; its room never wraps around. */
static void room_does_not_wrap(void **state)
{
	struct slmpm_iov iov[3] = {{(void *)8, SIZE_MAX}, {(void *)8, SIZE_MAX}, {(void *)8, 2}};
	struct request r = {.piece_count = 0};
	int rc = request_init(&r, REQUEST_RECV, &ctx, NULL, 0, iov, 3);

	(void)state;
	assert_true(rc < 0 || r.length >= SLMPM_MESSAGE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scattered_is_gathered_again),
		cmocka_unit_test(gaps_stay),
		cmocka_unit_test(bad_pieces_are_refused),
		cmocka_unit_test(room_does_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
