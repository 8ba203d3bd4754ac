/* SPDX-License-Identifier: BSD-3-Clause */
/* Handle tables: what a stale, foreign, forged or forked handle finds, and that addresses stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <slmpm.h>

#include <cmocka.h>

#include "slmpm/base/handle.h"
#include "tests/lib/child.h"
#include "tests/lib/random.h"

struct thing {
	struct handle handle;
	uint64_t value;
	char rest[40];
};

static struct handle_table things = HANDLE_TABLE("thing", struct thing);

static void is_refused(uint64_t id, int error, const char *why)
{
	assert_null(handle_get(&things, id));
	assert_int_equal(handle_error(&things, id), -error);
	assert_non_null(strstr(slmpm_error_detail(), "thing"));
	if (!strstr(slmpm_error_detail(), why))
		fail_msg("%s", slmpm_error_detail());
}

static void a_handle_finds_its_object(void **state)
{
	struct thing *t = handle_new(&things);

	(void)state;
	assert_non_null(t);
	assert_int_not_equal(handle_id(t), 0);
	assert_ptr_equal(handle_get(&things, handle_id(t)), t);
	assert_int_equal(t->value, 0);
	handle_free(&things, t);
}

static void a_stale_handle_finds_nothing(void **state)
{
	struct thing *t = handle_new(&things), *again;
	uint64_t id = handle_id(t);

	(void)state;
	t->value = 1;
	handle_free(&things, t);
	is_refused(id, SLMPM_EHANDLE, "stale");
	again = handle_new(&things);
	assert_ptr_equal(again, t); /* the slot is used again, under another name */
	assert_int_equal(again->value, 0);
	is_refused(id, SLMPM_EHANDLE, "stale");
	assert_int_not_equal(handle_id(again), id);
	handle_free(&things, again);
}

/* Nor are others given what an owner takes again by itself. */
static void an_owner_takes_the_same_again(void **state)
{
	struct thing *t = handle_new(&things), *other;
	uint64_t id = handle_id(t);

	(void)state;
	t->value = 1;
	handle_retire(t);
	is_refused(id, SLMPM_EHANDLE, "stale");
	other = handle_new(&things);
	assert_ptr_not_equal(other, t);
	handle_renew(&things, t);
	assert_int_equal(t->value, 0);
	assert_int_not_equal(handle_id(t), id);
	assert_ptr_equal(handle_get(&things, handle_id(t)), t);
	is_refused(id, SLMPM_EHANDLE, "stale");
	handle_retire(t);
	handle_free(&things, t);
	assert_ptr_equal(handle_new(&things), t); /* live, once it is new */
	assert_ptr_equal(handle_get(&things, handle_id(t)), t);
	handle_free(&things, t);
	handle_free(&things, other);
}

static void forged_handles_find_nothing(void **state)
{
	struct thing *t = handle_new(&things);
	uint64_t id = handle_id(t);
	const uint64_t forged[] = {
		id ^ UINT64_C(1) << 32,
		id ^ UINT64_C(2) << 32,
		id ^ UINT64_C(1) << 63,
		id + 1,
		id | UINT64_C(0x80000000),
		(id & UINT64_C(0xffffffff00000000)) | HANDLE_CHUNK,
		(id & UINT64_C(0xffffffff00000000)) | (HANDLE_CHUNK * HANDLE_CHUNKS - 1),
		(id & UINT64_C(0xffffffff00000000)) | (HANDLE_CHUNK * HANDLE_CHUNKS),
		UINT64_MAX,
		UINT64_C(0xffffffff),
		1};

	(void)state;
	is_refused(0, SLMPM_EHANDLE, "zero");
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		is_refused(forged[i], SLMPM_EHANDLE, "stale");
	assert_ptr_equal(handle_get(&things, id), t);
	handle_free(&things, t);
}

static void another_tables_handle_finds_nothing(void **state)
{
	static struct handle_table others = HANDLE_TABLE("other", struct thing);
	struct thing *t = handle_new(&others);
	struct thing *mine = handle_new(&things), *second;

	(void)state;
	/* By the same indices, and however often those have been used. */
	for (int k = 0; k < 1000; k++) {
		second = handle_new(&others);
		is_refused(handle_id(t), SLMPM_EHANDLE, "that of a other");
		is_refused(handle_id(second), SLMPM_EHANDLE, "that of a other");
		handle_free(&others, second);
		handle_free(&others, t);
		t = handle_new(&others);
	}
	handle_free(&others, t);
	handle_free(&things, mine);
}

/* Ten thousand come and go: no two live ones share a name or a place, none moves. */
static void many_come_and_go(void **state)
{
	enum { LIVE = 300, TURNS = 10000 };
	struct rng g = {rng_run_seed(7)};
	struct {
		uint64_t id, value;
		struct thing *at;
	} live[LIVE] = {{0, 0, NULL}};
	uint64_t last_stale = 0;

	(void)state;
	for (uint64_t turn = 1; turn <= TURNS; turn++) {
		uint32_t i = rng_below(&g, LIVE);
		struct thing *t;

		if (live[i].id) {
			t = handle_get(&things, live[i].id);
			assert_ptr_equal(t, live[i].at);
			assert_int_equal(t->value, live[i].value);
			handle_free(&things, t);
			last_stale = live[i].id;
			live[i].id = 0;
		} else {
			t = handle_new(&things);
			assert_non_null(t);
			for (int k = 0; k < LIVE; k++)
				assert_false(live[k].id == handle_id(t) ||
					     (live[k].id && live[k].at == t));
			live[i].at = t;
			live[i].id = handle_id(t);
			t->value = live[i].value = turn;
		}
		if (last_stale)
			assert_null(handle_get(&things, last_stale));
	}
	for (int i = 0; i < LIVE; i++)
		if (live[i].id)
			handle_free(&things, live[i].at);
}

static uint64_t parents_id;

static int in_the_child(void *arg)
{
	struct thing *t;

	(void)arg;
	handle_fork();
	if (handle_get(&things, parents_id))
		return 1;
	if (handle_error(&things, parents_id) != -SLMPM_EFORKED)
		return 2;
	if (!strstr(slmpm_error_detail(), "parent process"))
		return 3;
	/* Its own never take the place of one of the parent's. */
	for (int i = 0; i < 2 * HANDLE_CHUNK; i++) {
		t = handle_new(&things);
		if (!t || (uint32_t)handle_id(t) == (uint32_t)parents_id)
			return 4;
		if (handle_get(&things, handle_id(t)) != t)
			return 5;
	}
	return handle_error(&things, parents_id) == -SLMPM_EFORKED ? 0 : 6;
}

static void a_forked_child_is_told(void **state)
{
	struct thing *t = handle_new(&things);

	(void)state;
	parents_id = handle_id(t);
	assert_int_equal(child_run(in_the_child, NULL, 10), 0);
	assert_ptr_equal(handle_get(&things, parents_id), t);
	handle_free(&things, t);
}

/* A table has an end; at it an allocation fails and nothing else. */
static void the_last_slot_is_followed_by_none(void **state)
{
	static struct handle_table full = HANDLE_TABLE("thing", struct thing);
	struct thing *t, *last = NULL;
	uint32_t count = 0;

	(void)state;
	while ((t = handle_new(&full))) {
		last = t;
		count++;
		assert_true(count <= HANDLE_CHUNK * HANDLE_CHUNKS);
	}
	assert_int_equal(count, HANDLE_CHUNK * HANDLE_CHUNKS);
	assert_ptr_equal(handle_get(&full, handle_id(last)), last);
	handle_free(&full, last);
	assert_non_null(handle_new(&full));
	assert_null(handle_new(&full));
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && value[0];
}

/* Of a table with one object the rest takes no memory, whatever was there before; a sanitizer has
 * an allocator of its own. */
static void one_takes_its_own_memory(void **state)
{
	struct large {
		struct handle handle;
		char rest[1000];
	};
	static struct handle_table large = HANDLE_TABLE("large thing", struct large);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)100 * 1024;
	void *volatile before = malloc(size);
	unsigned char *last, present = 0;

	(void)state;
	if (is_set("SLMPM_SAN") || is_set("SLMPM_EMULATOR")) {
		free(before);
		skip();
	}
	memset(before, 1, size);
	free(before);
	assert_non_null(handle_new(&large));
	last = handle_slot(&large, HANDLE_CHUNK - 1);
	assert_int_equal(mincore(last - (uintptr_t)last % page, 1, &present), 0);
	assert_int_equal(present & 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_finds_its_object),
		cmocka_unit_test(a_stale_handle_finds_nothing),
		cmocka_unit_test(an_owner_takes_the_same_again),
		cmocka_unit_test(forged_handles_find_nothing),
		cmocka_unit_test(another_tables_handle_finds_nothing),
		cmocka_unit_test(many_come_and_go),
		cmocka_unit_test(a_forked_child_is_told),
		cmocka_unit_test(the_last_slot_is_followed_by_none),
		cmocka_unit_test(one_takes_its_own_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
