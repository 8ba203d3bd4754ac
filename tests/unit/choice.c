/* SPDX-License-Identifier: BSD-3-Clause */
/* A choice between two ways costs little more than the shorter one, also when that changes. */
#include "slmpm/choice.h"

#include <stdlib.h>

#include "tests/lib/test.h"

#define LENGTH 100000

static struct choice choices[CHOICE_CLASSES];

/* As the selector does: the shorter one, but for trials. */
static bool is_other(const struct choice *c)
{
	bool known = c->cost[0] && c->cost[1];

	return (known && c->cost[1] <= c->cost[0]) != choice_is_trial(c);
}

/* N turns of ways that take so long: what they took, over what the shorter one would have. */
static double run(const uint64_t ns[2], int n)
{
	uint64_t taken = 0, least = ns[0] < ns[1] ? ns[0] : ns[1];

	for (int i = 0; i < n; i++) {
		struct choice *c = choice_of(choices, LENGTH);
		bool other = is_other(c);

		if (choice_taken(c))
			choice_learn(c, other, ns[other], LENGTH);
		taken += ns[other];
	}
	return (double)taken / (double)least / n;
}

static void expect(double most, uint64_t plain, uint64_t other, int n)
{
	double ratio = run((uint64_t[2]){plain, other}, n);

	CHECK(ratio >= 1 && ratio <= most, "%d turns of %d and %d ns: %.4f", n, (int)plain,
	      (int)other, ratio);
}

/* Ends are told late: some are under way when the next one is chosen. */
static void late(void)
{
	struct choice *c = choice_of(choices, 1);
	int taken[2] = {0, 0};

	for (int i = 0; i < 1000; i++) {
		bool other = is_other(c);

		(void)choice_taken(c);
		taken[other]++;
		if (i % 8 == 7) {
			choice_learn(c, true, 50, 1);
			choice_learn(c, false, 30, 1);
		}
	}
	CHECK(taken[0] > 950 && taken[1] > 1, "%d and %d", taken[0], taken[1]);
}

static uint32_t turns_without(struct choice *c)
{
	uint32_t n = 0;

	for (; c->without; n++)
		CHECK(!choice_taken(c), "there was nothing to choose, and nothing to time");
	return n;
}

/* What came to nothing is not tried for a while, ever longer; it is forgiven by and by. */
static void missed(void)
{
	struct choice c = {.cost = {10, 20}}, before = c;
	uint32_t n, last = 0;

	for (int i = 0; i < 20; i++, last = n) {
		choice_missed(&c);
		n = turns_without(&c);
		CHECK(n == (!i          ? 256 :
			    last < 8192 ? 2 * last :
					  8192),
		      "%u turns after %u", n, last);
	}
	CHECK(c.cost[0] == before.cost[0] && c.cost[1] == before.cost[1] && c.left == before.left,
	      "turns without a choice have changed it");
	for (int i = 0; i < 30; i++)
		choice_met(&c);
	choice_missed(&c);
	CHECK(turns_without(&c) == 256, "not forgiven");
}

int main(void)
{
	static const uint64_t longer[] = {10100, 11000, 14000, 16000, 30000, 100000};

	for (size_t i = 0; i < sizeof(longer) / sizeof(*longer); i++) {
		for (int j = 0; j < CHOICE_CLASSES; j++)
			choices[j] = (struct choice){.left = 0};
		expect(3.2, 10000, longer[i], 20); /* one or two to find out */
		expect(1.05, 10000, longer[i], 2000);
		expect(1.05, longer[i], longer[i] * 2, 2000);
		expect(3, 100000 + longer[i], longer[i], 600); /* all is turned over */
		expect(1.05, 100000 + longer[i], longer[i], 2000);
	}
	late();
	missed();
	CHECK(choice_of(choices, UINT64_MAX) < choices + CHOICE_CLASSES &&
		      choice_of(choices, 1) == choices &&
		      choice_of(choices, 65536) != choice_of(choices, 65535),
	      "classes");
	return 0;
}
