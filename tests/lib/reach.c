/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes of a peer's memory over the fabric under test. */
#include "tests/lib/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/fabric_suite.h"

void reach_or_skip(void)
{
	if (!fabric->reg || !fabric->alloc)
		skip();
}

struct fabric_memory reach_from_right(struct link_pair *p, struct fabric_memory *m, bool writable)
{
	struct fabric_memory far = {.size = m->size, .writable = writable};
	struct fabric_blob blob = {.fd = -1};

	assert_int_equal(fabric->reg(p->link[LEFT], m, true, writable, &blob), 0);
	assert_int_equal(fabric->reg(p->link[RIGHT], &far, false, writable, &blob), 0);
	return far;
}

int reach(struct fabric_link *l, uint8_t op, struct fabric_memory *m, uint64_t offset, void *data,
	  uint64_t size)
{
	struct fabric_wr wr = {.op = op, .into = data, .memory = m, .offset = offset, .size = size};

	return fabric->post(l, &wr);
}

void reach_exchange(struct fabric_link *l, struct fabric_memory *far, unsigned char *near)
{
	static const uint64_t lengths[] = {0,  1,  3,  4,    8,     15,        16,
					   31, 64, 65, 4096, 70001, REACH_SIZE};
	unsigned char *data = malloc(REACH_SIZE);

	assert_non_null(data);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t n = lengths[i], places[] = {0, (REACH_SIZE - n) / 2 | 1, REACH_SIZE - n};

		for (int j = 0; j < 3; j++) {
			uint64_t at = places[j] + n > REACH_SIZE ? REACH_SIZE - n : places[j];

			memset(near, 0x55, REACH_SIZE);
			actor_fill(data, i + 1, n);
			assert_int_equal(reach(l, FABRIC_WRITE, far, at, data, n), 1);
			assert_true(actor_filled(near + at, i + 1, n));
			assert_true(!at || near[at - 1] == 0x55);
			assert_true(at + n == REACH_SIZE || near[at + n] == 0x55);
			actor_fill(near + at, i + 100, n);
			assert_int_equal(reach(l, FABRIC_READ, far, at, data, n), 1);
			assert_true(actor_filled(data, i + 100, n));
		}
	}
	free(data);
}
