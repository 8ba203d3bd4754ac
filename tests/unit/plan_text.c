/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 600 */
/* has-time */
/*
 * Plans as texts. The library's own, written down, are proved to be what they are, and do what
 * their kind says for any count (plan_run.h). With a line lost, moved or changed they are refused,
 * with the line and the rank; or do it still.
 */
#include <slmpm.h>
#include <stdarg.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/unit/plan_reference.h"

#define FEW   7 /* members */
#define STEPS 200
#define TEXT  65536

struct written { /* all members' steps, of vectors of one element or blocks of one */
	uint32_t kind, algorithm, size;
	uint32_t steps[FEW];
	struct plan_step step[FEW][STEPS];
};

static char text[TEXT];
static size_t length;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	length += (size_t)vsnprintf(text + length, TEXT - length, format, args);
	va_end(args);
	assert_true(length < TEXT);
}

static const char *at(uint8_t area, uint64_t i, uint64_t count)
{
	static char words[3][32];
	static unsigned next;
	const char *name = area == PLAN_FROM ? "from" : area == PLAN_TO ? "to" : "scratch";
	char *word = words[next++ % 3];

	snprintf(word, sizeof(words[0]), count > 1 ? "%s[%u-%u]" : "%s[%u]", name, (unsigned)i,
		 (unsigned)(i + count - 1));
	return word;
}

static void put_step(const struct plan_step *s, bool barrier)
{
	const char *operand = barrier ? "" : at(s->at_area, s->at, s->count);

	switch (s->op) {
	case PLAN_SEND: put("send %u %s\n", s->peer, operand); break;
	case PLAN_RECV: put("recv %u %s lane %u\n", s->peer, operand, s->lane); break;
	case PLAN_WAIT: put("wait %u\n", s->lane); break;
	case PLAN_COPY: put("copy %s %s\n", operand, at(s->left_area, s->left, s->count)); break;
	default:
		put("fold %s %s %s\n", operand, at(s->left_area, s->left, s->count),
		    at(s->right_area, s->right, s->count));
	}
}

static void write_down(const struct written *w)
{
	length = 0;
	put("collective %s\nmembers %u\n", plan_kind_name(w->kind), w->size);
	for (uint32_t r = 0; r < w->size; r++) {
		put("rank %u\n", r);
		for (uint32_t i = 0; i < w->steps[r]; i++)
			put_step(&w->step[r][i], w->kind == PLAN_BARRIER);
	}
}

static void take_down(struct written *w, uint32_t kind, uint32_t algorithm, uint32_t size)
{
	*w = (struct written){.kind = kind, .algorithm = algorithm, .size = size};
	for (uint32_t r = 0; r < size; r++) {
		const struct plan_spec spec = {
			.kind = kind, .algorithm = algorithm, .size = size, .rank = r, .count = 1};
		struct plan plan;

		assert_int_equal(plan_begin(&plan, &spec), 0);
		while (plan_next(&plan, &w->step[r][w->steps[r]]))
			assert_true(++w->steps[r] < STEPS);
	}
}

/* What the text does is what its kind says. */
static void run_text(const struct plan_text *t, uint32_t root, uint64_t count)
{
	const struct plan_spec order = {.kind = plan_text_kind(t),
					.size = plan_text_members(t),
					.root = root,
					.flags = PLAN_RANK_ORDER};
	struct plan_spec neighbours = order;
	const uint32_t mode = draw(8);

	neighbours.flags = PLAN_NONCOMMUTATIVE;
	trial = (struct trial){.kind = order.kind,
			       .algorithm = PLAN_TEXT,
			       .size = order.size,
			       .root = root,
			       .count = count,
			       .in_place = mode & 4 && order.kind != PLAN_BARRIER,
			       .rendezvous = mode & 1,
			       .strict = mode & 2,
			       .op = plan_text_fits(t, &neighbours, 8) ? COMPOSE : ADD,
			       .text = t};
	if (!run_without(0, no_step))
		fail_msg("%s of %u, root %u, count %llu, mode %u: %s\n%s",
			 plan_kind_name(trial.kind), trial.size, root, (unsigned long long)count,
			 mode, failure, text);
	if (!plan_text_fits(t, &order, 8) || !is_reduction(trial.kind))
		return;
	for (uint32_t r = 0; r < trial.size; r++) { /* linear: each result is that by rank */
		trial.op = MIX;
		member_make(r);
		member_steps(r);
	}
	if (!run_all())
		fail_msg("%s", failure);
	for (uint32_t r = 0; r < trial.size; r++)
		if (!result_right(r))
			fail_msg("%s by text, said to be linear: %s\n%s",
				 plan_kind_name(trial.kind), failure, text);
	for (uint32_t r = 0; r < trial.size; r++)
		member_free(r);
}

static void run_counts_of(const struct plan_text *t)
{
	static const uint64_t counts[] = {1, 0, 7, 100};
	const uint32_t n = plan_text_members(t);

	for (int i = 0; i < 4; i++)
		run_text(t, is_rooted(plan_text_kind(t)) ? draw(n) : 0, counts[i]);
}

static void own_ones_are_proved(void **state)
{
	static struct written w;

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++)
			for (uint32_t n = 1; n <= FEW; n++) {
				const enum plan_algorithm a = plan_algorithm_at(kind, i);
				const struct plan_spec linear = {
					.kind = kind, .size = n, .flags = PLAN_RANK_ORDER};
				struct plan_text *t = NULL;

				take_down(&w, kind, a, n);
				write_down(&w);
				if (kind == PLAN_SCATTER || kind == PLAN_GATHER) {
					assert_int_equal(plan_text_load(&t, text), -SLMPM_EINVAL);
					continue;
				}
				if (plan_text_load(&t, text) < 0)
					fail_msg("%s by %s, %u members: %s\n%s",
						 plan_kind_name(kind), plan_name(a), n,
						 slmpm_error_detail(), text);
				if (plan_properties(kind, a) & PLAN_LINEAR)
					assert_true(plan_text_fits(t, &linear, 8));
				run_counts_of(t);
				plan_text_free(t);
			}
}

/* ---- changed --------------------------------------------------------------------------------- */

static struct plan_step *any_step(struct written *w, uint32_t *rank, uint32_t *i)
{
	do
		*rank = draw(w->size);
	while (!w->steps[*rank]);
	*i = draw(w->steps[*rank]);
	return &w->step[*rank][*i];
}

static void change(struct written *w)
{
	uint32_t r, i;
	struct plan_step *s = any_step(w, &r, &i), *next = s + 1, was = *s;

	switch (draw(9)) {
	case 0: /* lost */
		memmove(s, next, (w->steps[r] - i - 1) * sizeof(*s));
		w->steps[r]--;
		break;
	case 1: /* done behind the next one */
		if (i + 1 < w->steps[r]) {
			*s = *next;
			*next = was;
		}
		break;
	case 2: s->peer = draw(w->size); break;
	case 3: s->at = draw(w->size); break;
	case 4: s->left = draw(w->size); break;
	case 5: /* its sides change */
		s->left = was.right;
		s->left_area = was.right_area;
		s->right = was.left;
		s->right_area = was.left_area;
		break;
	case 6: s->at_area = (uint8_t)(PLAN_FROM + draw(3)); break;
	case 7: s->lane = (uint8_t)draw(PLAN_LANES); break;
	default: /* another's step */ *s = *any_step(w, &r, &i);
	}
}

static void changed_ones_are_refused(void **state)
{
	static struct written w;
	uint32_t refused = 0, right = 0, tries = actor_slow() > 1 ? 300 : 6000;

	(void)state;
	while (refused + right < tries) {
		const uint32_t kind = PLAN_BARRIER + draw(PLAN_KINDS - 1);
		const enum plan_algorithm a = plan_algorithm_at(kind, draw(4));
		struct plan_text *t = NULL;

		if (a == PLAN_AUTO || kind == PLAN_SCATTER || kind == PLAN_GATHER)
			continue;
		take_down(&w, kind, a, 2 + draw(FEW - 1));
		for (uint32_t k = draw(3) + 1; k; k--)
			change(&w);
		write_down(&w);
		if (plan_text_load(&t, text) == 0) {
			run_counts_of(t);
			plan_text_free(t);
			right++;
			continue;
		}
		assert_non_null(strstr(slmpm_error_detail(), "line "));
		assert_non_null(strstr(slmpm_error_detail(), "rank "));
		refused++;
	}
	print_message("%u refused, %u right\n", refused, right);
	assert_true(refused > tries / 2);
}

/* Without one line: refused, or, where a later wait is for those receives too, right. */
static void without_line(const struct written *w, uint32_t rank, uint32_t k)
{
	static struct written less;
	struct plan_text *t = NULL;
	const uint8_t op = w->step[rank][k].op;

	less = *w;
	memmove(&less.step[rank][k], &less.step[rank][k + 1],
		(--less.steps[rank] - k) * sizeof(struct plan_step));
	write_down(&less);
	if (plan_text_load(&t, text) < 0)
		return;
	if (op != PLAN_WAIT)
		fail_msg("without step %u of rank %u, a %u:\n%s", k, rank, op, text);
	run_counts_of(t);
	plan_text_free(t);
}

static void each_line_is_needed(void **state)
{
	static struct written w;

	(void)state;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		for (uint32_t i = 0; plan_algorithm_at(kind, i) != PLAN_AUTO; i++) {
			take_down(&w, kind, plan_algorithm_at(kind, i), 6);
			for (uint32_t r = 0; r < w.size; r++)
				for (uint32_t k = 0; k < w.steps[r]; k++)
					without_line(&w, r, k);
		}
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* A ring of three, in three parts: sums go round once, then results. */
static void write_ring(void)
{
	length = 0;
	put("# by hand\ncollective allreduce\nmembers 3\n\tparts 3 # one each\nbytes 64 4096\n");
	for (unsigned r = 0; r < 3; r++) {
		const unsigned next = (r + 1) % 3, last = (r + 2) % 3;

		put("rank %u\n", r);
		put("recv %u scratch[%u]\nsend %u from[%u]\nwait\n", last, last, next, r);
		put("fold scratch[%u] scratch[%u] from[%u]\n", last, last, last);
		put("recv %u scratch[%u]\nsend %u scratch[%u]\nwait\n", last, next, next, last);
		put("fold to[%u] scratch[%u] from[%u]\n", next, next, next);
		put("recv %u to[%u]\nsend %u to[%u]\nwait\n", last, r, next, next);
		put("recv %u to[%u]\nsend %u to[%u]\nwait\n", last, last, next, r);
	}
}

static void by_hand(void **state)
{
	struct plan_spec spec = {.kind = PLAN_ALLREDUCE, .size = 3, .count = 8};
	struct plan_text *t = NULL, *same = NULL;

	(void)state;
	write_ring();
	if (plan_text_load(&t, text) < 0)
		fail_msg("%s\n%s", slmpm_error_detail(), text);
	for (uint64_t count = 0; count < 40; count++)
		run_text(t, 0, count);
	assert_true(plan_text_fits(t, &spec, 8));
	assert_false(plan_text_fits(t, &spec, 4)); /* too short */
	spec.count = 513;
	assert_false(plan_text_fits(t, &spec, 8)); /* too long */
	spec.count = 512;
	assert_true(plan_text_fits(t, &spec, 8));
	spec.flags = PLAN_NONCOMMUTATIVE;
	assert_false(plan_text_fits(t, &spec, 8));
	spec.flags = 0;
	spec.size = 4;
	assert_false(plan_text_fits(t, &spec, 8));
	put("\n# the same\n");
	assert_int_equal(plan_text_load(&same, text), 0);
	assert_int_equal(plan_text_hash(t), plan_text_hash(same));
	plan_text_free(t);
	plan_text_free(same);
}

static void refuses(const char *why, const char *words)
{
	struct plan_text *t = NULL;

	assert_int_equal(plan_text_load(&t, words), -SLMPM_EINVAL);
	if (!strstr(slmpm_error_detail(), why))
		fail_msg("%s\n\"%s\", not \"%s\"", words, slmpm_error_detail(), why);
}

#define TWO "collective allreduce\nmembers 2\n"

static void reasons(void **state)
{
	(void)state;
	refuses("line 0: it ends", "");
	refuses("line 1: \"collect\"", "collect allreduce");
	refuses("line 1: \"all\" is no collective", "collective all\n");
	refuses("goes flat", "collective gather\n");
	refuses("line 1: members \"65\": from 1 to 64", "members 65");
	refuses("line 1: parts \"0\"", "parts 0");
	refuses("line 1: bytes \"3\": from 4", "bytes 4 3");
	refuses("one word too many", TWO "rank 0 1");
	refuses("come first", "members 2\nrank 0\n");
	refuses("line 3: rank \"1\": from 0 to 0", TWO "rank 1\n");
	refuses("line 3: it ends, and has no rank 1", TWO "rank 0\n");
	refuses("line 5: rank 2 of 2", TWO "rank 0\nrank 1\nrank 2\n");
	refuses("\"sent\": rank, send", TWO "rank 0\nsent 1 from\n");
	refuses("rank \"2\": from 0 to 1", TWO "rank 0\nsend 2 from\n");
	refuses("that is itself", TWO "rank 0\nsend 0 from\n");
	refuses("an operand is missing", TWO "rank 0\nsend 1\n");
	refuses("\"from[1\": from, to", TWO "rank 0\nsend 1 from[1\n");
	refuses("\"from[2-1]\"", TWO "rank 0\nsend 1 from[2-1]\n");
	refuses("\"too\"", TWO "rank 0\nsend 1 too\n");
	refuses("lane \"9\": from 0 to 2", TWO "rank 0\nrecv 1 to lane 9\n");
	refuses("no receive of lane 1", TWO "rank 0\nwait 1\n");
	refuses("waits for no receive of lane 0", TWO "rank 0\nrecv 1 to\nrank 1\n");
	refuses("are 1, 2 and 2 parts", TWO "rank 0\ncopy to scratch[0-1]\n");
	refuses("line 4, rank 0: it has 1 parts of from", TWO "rank 0\ncopy to from[3]\nrank 1\n");
	refuses("writes from", TWO "rank 0\ncopy from from\nrank 1\n");
	refuses("line 4, rank 0: it reads to[0], where nothing",
		TWO "rank 0\ncopy to to\nrank 1\n");
	refuses("line 5, rank 0: its operands overlap",
		TWO "rank 0\ncopy to from\ncopy to to\nrank 1\n");
	refuses("line 5, rank 0: it reads to[0], which no wait",
		TWO "rank 0\nrecv 1 to\nsend 1 to\nwait\nrank 1\n");
	refuses("line 5, rank 0: it writes to[0], which is being",
		TWO "rank 0\nrecv 1 to\ncopy to from\nwait\nrank 1\n");
	refuses("line 4, rank 0: it sends for ever: rank 1", TWO "rank 0\nsend 1 from\nrank 1\n");
	refuses("line 5, rank 0: it waits for ever: rank 1",
		TWO "rank 0\nrecv 1 to\nwait\nrank 1\n");
	refuses("combines rank 0's contribution twice", TWO "rank 0\nfold to from from\nrank 1\n");
	refuses("line 4, rank 0: to[0] lacks rank 1's", TWO "rank 0\ncopy to from\nrank 1\n");
	refuses("line 5, rank 0: at its end nothing has been written to to[1]",
		"collective scan\nmembers 1\nparts 2\nrank 0\ncopy to[0] from[0]\n");
	refuses("line 9, rank 1: it sends 1 parts",
		TWO "parts 2\nrank 0\nrecv 1 to\nwait\nrank 1\n\nsend 0 from[0]\n");
	refuses("of other lengths", TWO "parts 2\nrank 0\ncopy to[0] from[1]\nrank 1\n");
	refuses("barrier combines nothing",
		"collective barrier\nmembers 1\nrank 0\nfold scratch scratch scratch\n");
	refuses("need not have waited for rank 1",
		"collective barrier\nmembers 2\nrank 0\nsend 1\nrank 1\nrecv 0\nwait\n");
	refuses("has rank 1's", "collective scan\nmembers 2\n"
				"rank 0\nrecv 1 scratch\nwait\nfold to from scratch\n"
				"rank 1\nsend 0 from\ncopy to from\n");
	refuses("line 12, rank 1: to[0] is combined in another order",
		TWO "rank 0\nrecv 1 scratch\nsend 1 from\nwait\nfold to from scratch\n"
		    "rank 1\nrecv 0 scratch\nsend 0 from\nwait\nfold to from scratch\n");
}

/* The flags of the first receive behind a send of rank 0, of so many elements. */
static uint8_t received_behind(const struct plan_text *t, uint64_t count)
{
	const struct plan_spec spec = {.kind = PLAN_ALLREDUCE,
				       .algorithm = PLAN_TEXT,
				       .size = 2,
				       .count = count,
				       .text = t};
	struct plan_step step;
	struct plan plan;
	bool sent = false;

	assert_int_equal(plan_begin(&plan, &spec), 0);
	while (plan_next(&plan, &step) && !(sent && step.op == PLAN_RECV))
		sent |= step.op == PLAN_SEND;
	assert_int_equal(step.op, PLAN_RECV);
	return step.flags;
}

/* A copy waits for what is being sent; where it has no elements, the receive behind it does. */
static void empty_ones_wait(void **state)
{
	static const char *const words =
		TWO "parts 2\n"
		    "rank 0\ncopy scratch[0] from[0]\nsend 1 scratch[0]\n"
		    "copy scratch[1] from[1]\nrecv 1 scratch[0]\nwait\n"
		    "fold to[0] from[0] scratch[0]\nsend 1 scratch[1]\n"
		    "recv 1 to[1]\nwait\nfold to[1] from[1] to[1]\n"
		    "rank 1\nrecv 0 to[0]\nsend 0 from[0]\nwait\nfold to[0] to[0] from[0]\n"
		    "recv 0 to[1]\nsend 0 from[1]\nwait\nfold to[1] to[1] from[1]\n";
	struct plan_text *t = NULL;

	(void)state;
	if (plan_text_load(&t, words) < 0)
		fail_msg("%s", slmpm_error_detail());
	assert_int_equal(received_behind(t, 2) & PLAN_AHEAD, PLAN_AHEAD);
	assert_int_equal(received_behind(t, 1) & PLAN_AHEAD, 0);
	plan_text_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_ones_are_proved),
		cmocka_unit_test(changed_ones_are_refused),
		cmocka_unit_test(each_line_is_needed),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(reasons),
		cmocka_unit_test(empty_ones_wait),
	};
	int rc;

	rng.state = rng_run_seed((uint64_t)time(NULL));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	for (uint32_t r = 0; r < MOST; r++)
		free(members[r].step);
	return rc;
}
