/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks of written pages: each is told once, and again where somebody was just opening one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/track/written.h"

#define PAGE  UINT64_C(4096)
#define PAGES 200
#define BASE  (UINT64_C(16) * PAGE)

static struct written *written;
static unsigned char protects[PAGES]; /* by the last look */
static int asked;
static uintptr_t opened; /* to here, the last time */
static bool refuses;
static void (*meanwhile)(void);

static int protect(struct written *w, uintptr_t lo, uintptr_t hi, bool on)
{
	void (*call)(void) = meanwhile;

	assert_ptr_equal(w, written);
	assert_true(lo >= BASE && lo <= hi && hi <= BASE + PAGES * PAGE);
	meanwhile = NULL;
	if (call)
		call();
	opened = on ? opened : hi;
	if (!on)
		return 0;
	assert_true(lo < hi);
	memset(protects + (lo - BASE) / PAGE, 1, (hi - lo) / PAGE);
	asked++;
	return refuses ? -1 : 0;
}

static uintptr_t at(uint64_t page)
{
	return BASE + page * PAGE;
}

static void mark(uint64_t page)
{
	written_mark(written, at(page), at(page) + 1);
}

/* A look finds N pages, these, and protects each that it finds. */
static void finds(uint64_t n, const uint64_t *pages)
{
	uintptr_t next = BASE, lo, hi;
	uint64_t i = 0;

	memset(protects, 0, sizeof(protects));
	asked = 0;
	while (written_next(&written->pages, &next, &lo, &hi))
		for (; lo < hi; lo += PAGE, i++) {
			assert_true(i < n);
			assert_int_equal((lo - BASE) / PAGE, pages[i]);
		}
	assert_int_equal(i, n);
}

static int begin(void **state)
{
	const struct range range = {.lo = BASE, .hi = BASE + PAGES * PAGE, .page = PAGE};

	(void)state;
	refuses = false;
	meanwhile = NULL;
	written = written_new(sizeof(*written), NULL, &range, protect);
	return written ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	written_free(written);
	return 0;
}

static void each_is_told_once(void **state)
{
	const uint64_t pages[] = {0, 1, 63, 64, 127, 128, PAGES - 1};
	const uint64_t n = sizeof(pages) / sizeof(pages[0]);

	(void)state;
	finds(0, NULL);
	assert_int_equal(asked, 0);
	for (uint64_t i = 0; i < n; i++)
		mark(pages[i]);
	written_mark(written, 0, BASE); /* neither in front of it nor behind it */
	written_mark(written, at(PAGES), at(PAGES) + PAGE);
	finds(n, pages);
	for (uint64_t i = 0; i < n; i++)
		assert_true(protects[pages[i]]);
	assert_false(protects[2]);
	finds(0, NULL);
}

static void many_are_protected_as_one(void **state)
{
	uint64_t pages[30];

	(void)state;
	for (uint64_t i = 0; i < 30; i++)
		mark(pages[i] = 5 + 6 * i);
	finds(30, pages);
	assert_int_equal(asked, 1);
	assert_true(protects[5] && protects[6] && protects[179] && !protects[4]);
}

static const uint64_t amid = 70;

static void comes_in(void)
{
	(void)written_open(written, BASE, BASE);
}

static void looks_twice(void)
{
	finds(1, &amid);
	finds(1, &amid);
}

static void who_is_just_opening_is_told_again(void **state)
{
	(void)state;
	meanwhile = looks_twice;
	(void)written_open(written, at(amid), at(amid + 1));
	finds(1, &amid);
	finds(0, NULL);
	mark(amid);
	meanwhile = comes_in;
	finds(1, &amid);
	finds(1, &amid);
	finds(0, NULL);
}

static void what_cannot_be_protected_is_told_again(void **state)
{
	const uint64_t page = 3;

	(void)state;
	mark(page);
	refuses = true;
	finds(1, &page);
	refuses = false;
	finds(1, &page);
	finds(0, NULL);
}

static void what_lasts_is_told_always(void **state)
{
	const uint64_t pages[] = {64, 65};

	(void)state;
	written_mark_always(written, at(64), at(66));
	finds(2, pages);
	finds(2, pages);
}

static void who_goes_on_is_let_further(void **state)
{
	uintptr_t to = BASE, before;
	uint64_t most = 0;

	(void)state;
	for (; to<at(PAGES - 1); most = to - before> most ? to - before : most) {
		before = to;
		(void)written_open_at(written, before);
		to = opened;
		assert_true(to > before && to <= at(PAGES));
	}
	assert_true(most > PAGE);
	(void)written_open_at(written, at(9));
	assert_int_equal(opened, at(10)); /* not from where it was */
}

/* Where it was opened to, and how far at once, are seen apart: one without the other. */
static void a_page_is_opened_whatever_is_seen(void **state)
{
	(void)state;
	for (uint32_t ahead = 0; ahead < 40; ahead++) {
		written->behind = at(PAGES - 2);
		written->ahead = ahead;
		(void)written_open_at(written, at(PAGES - 2));
		assert_true(opened > at(PAGES - 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_is_told_once, begin, end),
		cmocka_unit_test_setup_teardown(many_are_protected_as_one, begin, end),
		cmocka_unit_test_setup_teardown(who_is_just_opening_is_told_again, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_protected_is_told_again, begin, end),
		cmocka_unit_test_setup_teardown(what_lasts_is_told_always, begin, end),
		cmocka_unit_test_setup_teardown(who_goes_on_is_let_further, begin, end),
		cmocka_unit_test_setup_teardown(a_page_is_opened_whatever_is_seen, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
