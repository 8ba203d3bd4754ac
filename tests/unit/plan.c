/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 600 */
/* has-time */
/*
 * The plans of all members are run against each other (plan_run.h), every kind by every algorithm,
 * and their results compared with what the kind says (plan_reference.h). SLMPM_TEST_SWEEP=all has
 * every root of every number of members.
 */
#include <slmpm.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/unit/plan_reference.h"

static uint64_t runs;

static void run_right(void)
{
	runs++;
	if (!run_without(0, no_step))
		fail_msg(
			"%s by %s, %u members on %u machines, %u processors, root %u, count %llu, piece %llu, shape %d%s%s%s, "
			"operation %d: %s",
			plan_kind_name(trial.kind), plan_name(trial.algorithm), trial.size,
			trial.machines, trial.processors, trial.root,
			(unsigned long long)trial.count, (unsigned long long)trial.piece,
			trial.shape, trial.in_place ? ", in place" : "",
			trial.rendezvous ? ", rendezvous" : "", trial.strict ? ", strict" : "",
			trial.op, failure);
}

/* By the operation that its properties allow; and by one that shows each order. */
static void run_operations(void)
{
	const uint32_t has = plan_properties(trial.kind, trial.algorithm);

	trial.op = has & PLAN_COMMUTES ? ADD : has & PLAN_LINEAR ? MIX : COMPOSE;
	run_right();
	if (trial.kind != PLAN_ALLREDUCE || trial.op == MIX)
		return;
	trial.op = MIX;
	run_right();
}

/* Each run has a mode of its own; all come about. */
static void run_modes(void)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		const uint32_t mode = draw(4);

		if (in_place && trial.kind == PLAN_BARRIER)
			return;
		trial.in_place = in_place;
		trial.rendezvous = mode & 1;
		trial.strict = mode & 2;
		trial.machines = draw(1 + (trial.algorithm == PLAN_HOSTS ? trial.size : 0));
		trial.processors = draw(trial.algorithm == PLAN_STAR ? 5 : 1);
		run_operations();
	}
}

static void run_counts(void)
{
	const uint32_t n = trial.size;
	const uint64_t counts[] = {0, 1, n - 1, n, n > 9 && n % 8 ? 40 : 1000};

	for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		trial.count = counts[i];
		trial.piece = i == 4 ? 1 + draw(300) : 0;
		trial.shape = EVEN;
		run_modes();
		if (trial.kind == PLAN_BARRIER)
			return;
	}
	for (trial.shape = UNEVEN; is_in_blocks(trial.kind) && trial.shape <= PLACED;
	     trial.shape++) {
		trial.count = draw(2) ? 2 : 20;
		run_modes();
	}
}

static void run_roots(bool every)
{
	const uint32_t n = trial.size;

	if (!is_rooted(trial.kind)) {
		trial.root = 0;
		run_counts();
		return;
	}
	for (uint32_t root = 0; root < n; root++) {
		trial.root = root;
		if (every || root < 2 || root + 1 == n || root == n / 2 || draw(n) < 2)
			run_counts();
	}
}

/* So many members at most are tried with each root; from there on, where it is slow, some alone. */
static uint32_t few(void)
{
	return actor_slow() == 1 ? 9 : 5;
}

/* From N members to the next number of them. */
static uint32_t more(uint32_t n)
{
	return n < few() || actor_slow() == 1 ? n + 1 : n + 7;
}

static void each_is_right(void **state)
{
	const char *sweep = getenv("SLMPM_TEST_SWEEP");

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++)
			for (uint32_t n = 1; n <= 34; n = more(n)) {
				trial = (struct trial){.kind = kind,
						       .algorithm = plan_algorithm_at(kind, i),
						       .size = n < 34 ? n : MOST};
				run_roots(n <= few() || (sweep && !strcmp(sweep, "all")));
			}
	print_message("%llu runs\n", (unsigned long long)runs);
	assert_true(runs > (actor_slow() == 1 ? 20000 : 2000));
}

/* Long vectors go through few slots. */
static void long_ones(void **state)
{
	(void)state;
	for (uint32_t kind = PLAN_BROADCAST; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++)
			for (uint32_t n = 2; n <= 7; n++) {
				trial = (struct trial){.kind = kind,
						       .algorithm = plan_algorithm_at(kind, i),
						       .size = n,
						       .root = draw(is_rooted(kind) ? n : 1),
						       .count = 9001};
				for (int k = 0; k < 3; k++) {
					trial.piece = k ? 900 : 0;
					run_modes();
				}
			}
}

/* Each step is needed: without it a run fails. */
static void lose_each(uint32_t rank)
{
	for (uint32_t lost = 0; lost < members[rank].steps; lost++) {
		const uint8_t op = members[rank].step[lost].op;

		if (run_without(rank, lost))
			fail_msg("%s by %s is right without step %u of rank %u, a %u",
				 plan_kind_name(trial.kind), plan_name(trial.algorithm), lost, rank,
				 op);
		assert_true(run_without(rank, no_step));
	}
}

/* On any machine. */
static void each_step_is_needed(void **state)
{
	(void)state;
	if (actor_slow() > 1)
		return;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++) {
			const enum plan_algorithm algorithm = plan_algorithm_at(kind, i);
			const uint32_t has = plan_properties(kind, algorithm);

			trial = (struct trial){.kind = kind,
					       .algorithm = algorithm,
					       .size = 6,
					       .root = is_rooted(kind) ? 2 : 0,
					       .count = 7,
					       .piece = 3,
					       .machines = 3,
					       .processors = 2,
					       .op = has & PLAN_COMMUTES ? ADD :
						     has & PLAN_LINEAR   ? MIX :
									   COMPOSE};
			assert_true(run_without(0, no_step));
			for (uint32_t r = 0; r < trial.size; r++)
				lose_each(r);
		}
}

/* Each machine but the root's is gone to once, and come from once. */
static void few_between_hosts(void **state)
{
	uint64_t between = 0;

	(void)state;
	trial = (struct trial){.kind = PLAN_ALLREDUCE,
			       .algorithm = PLAN_HOSTS,
			       .size = 40,
			       .count = 3,
			       .machines = 5};
	assert_true(run_without(0, no_step));
	for (uint32_t r = 0; r < trial.size; r++)
		for (uint32_t i = 0; i < members[r].steps; i++) {
			const struct plan_step *step = &members[r].step[i];

			between += step->op == PLAN_SEND &&
				   hosts_of_trial()[r] != hosts_of_trial()[step->peer];
		}
	assert_int_equal(between, 2 * (trial.machines - 1));
}

/* Peers are those of the whole group. */
static void some_members_alone(void **state)
{
	static const uint32_t whose[] = {3, 7};
	const struct plan_spec spec = {.kind = PLAN_ALLREDUCE,
				       .algorithm = PLAN_RECURSIVE_DOUBLING,
				       .size = 2,
				       .rank = 1,
				       .count = 5,
				       .members = whose};
	uint32_t exchanged = 0;
	struct plan_step step;
	struct plan plan;

	(void)state;
	assert_int_equal(plan_begin(&plan, &spec), 0);
	while (plan_next(&plan, &step)) {
		if (step.op != PLAN_SEND && step.op != PLAN_RECV)
			continue;
		assert_int_equal(step.peer, 3);
		exchanged++;
	}
	assert_int_equal(exchanged, 2);
}

static void choice_fits(void **state)
{
	static const uint32_t flags[] = {0, PLAN_RANK_ORDER, PLAN_NONCOMMUTATIVE,
					 PLAN_RANK_ORDER | PLAN_NONCOMMUTATIVE};

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t n = 1; n < 3000; n = n * 2 + 1)
			for (uint64_t count = 0; count < 1 << 27; count = count * 3 + 1)
				for (uint32_t f = 0; f < 4; f++) {
					struct plan_spec spec = {.kind = kind,
								 .size = n,
								 .flags = flags[f],
								 .count = count};
					uint32_t has;

					spec.algorithm = plan_choose(&spec, 8);
					assert_int_not_equal(spec.algorithm, PLAN_AUTO);
					has = plan_properties(kind, spec.algorithm);
					if (is_reduction(kind) && flags[f] & PLAN_RANK_ORDER)
						assert_true(has & PLAN_LINEAR);
					if (flags[f] & PLAN_NONCOMMUTATIVE)
						assert_false(has & PLAN_COMMUTES);
				}
}

/* As the table has it, and where a limit is given up to that. */
static void limits_count(void **state)
{
	const uint64_t limits[PLAN_LIMITS] = {
		UINT64_C(10) << (PLAN_ALLREDUCE - 1) * PLAN_LIMIT_BITS,
		UINT64_C(20) << (PLAN_ALLREDUCE - 1) * PLAN_LIMIT_BITS};
	struct plan_spec spec = {.kind = PLAN_ALLREDUCE, .size = 8, .count = 128};

	(void)state;
	for (uint64_t count = 1; count < 1 << 20; count *= 2) {
		spec.count = count;
		spec.flags = 0;
		spec.limits = NULL;
		assert_int_equal(plan_choose(&spec, 8),
				 count * 8 <= 32 << 10 ? PLAN_RECURSIVE_DOUBLING : PLAN_RING);
		spec.limits = limits;
		assert_int_equal(plan_choose(&spec, 8),
				 count * 8 <= 1 << 10 ? PLAN_RECURSIVE_DOUBLING : PLAN_RING);
		spec.flags = PLAN_RANK_ORDER;
		assert_int_equal(plan_choose(&spec, 8),
				 count * 8 <= 1 << 20 ? PLAN_FLAT : PLAN_PAIRWISE);
	}
	spec = (struct plan_spec){.kind = PLAN_REDUCE, .size = 8, .count = 1000, .limits = limits};
	assert_int_equal(plan_choose(&spec, 8), PLAN_BINOMIAL);
}

/* Members that share few processors: the fewest messages, unless a limit is given; and so that all
 * but one send at once. */
static void shared_processors_count(void **state)
{
	const uint64_t limits[PLAN_LIMITS] = {UINT64_C(10)
					      << (PLAN_ALLREDUCE - 1) * PLAN_LIMIT_BITS};
	struct plan_spec spec = {.size = 4, .processors = 2};

	(void)state;
	for (uint64_t count = 1; count < 1 << 20; count *= 2)
		for (int f = 0; f < 2; f++) {
			spec.kind = PLAN_ALLREDUCE;
			spec.count = count;
			spec.flags = f ? PLAN_RANK_ORDER : 0;
			assert_int_equal(plan_choose(&spec, 8), PLAN_STAR);
		}
	spec.flags = 0;
	spec.limits = limits;
	assert_int_equal(plan_choose(&spec, 8), PLAN_RING);
	spec.kind = PLAN_BARRIER;
	assert_int_equal(plan_choose(&spec, 1), PLAN_STAR);
	spec.processors = 0;
	assert_int_equal(plan_choose(&spec, 1), PLAN_DISSEMINATION);
}

/* ... and long ones are broadcast whole, to two each, but among leaders of machines. */
static void shared_processors_branch(void **state)
{
	const uint32_t leaders[4] = {0, 2, 4, 6};
	struct plan_spec spec = {.kind = PLAN_BROADCAST, .size = 4, .processors = 2};

	(void)state;
	for (uint64_t bytes = 1; bytes < 8 << 20; bytes *= 2) {
		spec.count = bytes;
		assert_int_equal(plan_choose(&spec, 1),
				 bytes <= 128 << 10 ? PLAN_BINOMIAL : PLAN_BINARY);
	}
	spec.members = leaders;
	assert_int_equal(plan_choose(&spec, 1), PLAN_CHAIN);
	spec.members = NULL;
	spec.processors = 0;
	assert_int_equal(plan_choose(&spec, 1), PLAN_CHAIN);
}

/* ... and of which several are on each machine: of a long vector the fewest bytes between these. */
static void shared_machines_count(void **state)
{
	const uint32_t hosts[4] = {0, 0, 2, 2};
	struct plan_spec spec = {.kind = PLAN_ALLREDUCE,
				 .size = 4,
				 .processors = 2,
				 .flags = PLAN_RANK_ORDER,
				 .hosts = hosts};

	(void)state;
	for (uint64_t count = 1; count < 1 << 20; count *= 2) {
		spec.count = count;
		assert_int_equal(plan_choose(&spec, 8),
				 count * 8 <= 64 << 10 ? PLAN_STAR : PLAN_CHAIN);
	}
	spec.processors = 0;
	assert_int_equal(plan_choose(&spec, 8), PLAN_PAIRWISE);
}

/* As many as processors, each with another member. */
static void stars_have_centres(void **state)
{
	(void)state;
	assert_int_equal(plan_star_centres(4, 2), 2);
	assert_int_equal(plan_star_centres(4, 4), 2);
	assert_int_equal(plan_star_centres(3, 2), 1);
	assert_int_equal(plan_star_centres(16, 15), 8);
	assert_int_equal(plan_star_centres(16, 0), 1);
	assert_int_equal(plan_star_centres(1, 2), 1);
}

static void names_are_known(void **state)
{
	(void)state;
	for (enum plan_algorithm a = PLAN_DISSEMINATION; a < PLAN_ALGORITHMS; a++)
		assert_int_equal(plan_by_name(plan_name(a)), a);
	assert_int_equal(plan_by_name("none such"), PLAN_AUTO);
	assert_int_equal(plan_by_name("auto"), PLAN_AUTO);
	assert_string_equal(plan_kind_name(PLAN_EXSCAN), "exscan");
	assert_null(plan_kind_name(0));
	assert_null(plan_kind_name(PLAN_KINDS));
}

static void what_is_no_plan(void **state)
{
	const uint64_t counts[2] = {UINT64_MAX, 1}, ones[2] = {1, 1}, twos[2] = {2, 1};
	const struct plan_spec sound = {
		.kind = PLAN_GATHER, .algorithm = PLAN_FLAT, .size = 2, .root = 1, .count = 1};
	struct plan_spec spec = sound;
	struct plan plan;

	(void)state;
	assert_int_equal(plan_begin(&plan, &spec), 0);
	spec.rank = 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.root = 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.algorithm = PLAN_RING;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.kind = 99;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec = sound;
	spec.count = UINT64_MAX / 2;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_ELIMIT);
	spec.counts = counts;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_ELIMIT);
	spec = (struct plan_spec){.kind = PLAN_ALLTOALL, .algorithm = PLAN_PAIRWISE, .size = 2};
	spec.counts = twos;
	spec.to_counts = ones;
	assert_int_equal(plan_begin(&plan, &spec), -SLMPM_EINVAL);
	spec.rank = 1;
	assert_int_equal(plan_begin(&plan, &spec), 0);
}

/* A thousand members' ring has thousands of steps, and a plan is as small as any. */
static void many_members(void **state)
{
	const struct plan_spec spec = {.kind = PLAN_ALLREDUCE,
				       .algorithm = PLAN_RING,
				       .size = 1000,
				       .rank = 999,
				       .count = 1000000};
	struct plan plan;
	struct plan_step step;
	uint64_t steps = 0, again = 0, sent = 0;

	(void)state;
	assert_true(sizeof(plan) < 1024);
	assert_int_equal(plan_begin(&plan, &spec), 0);
	while (plan_next(&plan, &step)) {
		steps++;
		sent += step.op == PLAN_SEND ? step.count : 0;
	}
	assert_int_equal(sent, 2 * 999 * 1000);
	plan_again(&plan);
	while (plan_next(&plan, &step))
		again++;
	assert_int_equal(again, steps);
	assert_true(plan.scratch < spec.count / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_right),
		cmocka_unit_test(long_ones),
		cmocka_unit_test(each_step_is_needed),
		cmocka_unit_test(few_between_hosts),
		cmocka_unit_test(some_members_alone),
		cmocka_unit_test(choice_fits),
		cmocka_unit_test(names_are_known),
		cmocka_unit_test(what_is_no_plan),
		cmocka_unit_test(many_members),
		cmocka_unit_test(limits_count),
		cmocka_unit_test(shared_processors_count),
		cmocka_unit_test(shared_processors_branch),
		cmocka_unit_test(shared_machines_count),
		cmocka_unit_test(stars_have_centres),
	};
	int rc;

	rng.state = rng_run_seed((uint64_t)time(NULL));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	for (uint32_t r = 0; r < MOST; r++)
		free(members[r].step);
	return rc;
}
