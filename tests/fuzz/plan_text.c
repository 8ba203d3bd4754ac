/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the text of a plan: it is refused, or its plans come to their end and stay within
 * their areas. As it stands it replays a text with a few bytes or lines changed, or files.
 * To search with libFuzzer, from the top of the repository, after `make`:
 *
 *	clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -DSEARCH -D_GNU_SOURCE -I. \
 *		-Iinclude tests/fuzz/plan_text.c -Lbuild/lib -lslmpm -o plan_text
 */
#include <slmpm_plan.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define MOST 4096

static const char honest[] =
	"# of three\ncollective allreduce\nmembers 3\nparts 2\nbytes 0 1000\n"
	"rank 0\nrecv 1 scratch lane 1\nrecv 2 scratch[2-3]\nwait 1\nwait 0\n"
	"fold to from scratch\nfold to[0] to[0] scratch[2]\nfold to[1] to[1] scratch[3]\n"
	"send 1 to\nsend 2 to\n"
	"rank 1\nsend 0 from\nrecv 0 to\nwait\n"
	"rank 2\nsend 0 from\nrecv 0 to\nwait\n";

static unsigned refused, taken;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A plan of WORDS for these; true: there is one. */
static int follow(const char *words, uint32_t kind, uint32_t members, uint32_t rank)
{
	struct slmpm_plan_spec spec = {
		.size = sizeof(spec), .kind = kind, .members = members, .rank = rank, .count = 5};
	struct slmpm_plan_step step = {.size = sizeof(step)};
	struct slmpm_plan_info info = {.size = sizeof(info)};
	const uint64_t most = 5 * (uint64_t)members;
	struct slmpm_plan *plan;
	int rc = slmpm_plan_load(&plan, &spec, words), steps = 0;

	if (rc < 0) {
		CHECK(rc == -SLMPM_EINVAL && !plan, "%d", rc);
		return rc;
	}
	CHECK(slmpm_plan_query(plan, &info) == 0, "no plan");
	while (slmpm_plan_next(plan, &step) == 1) {
		uint64_t area = step.at_area == SLMPM_PLAN_SCRATCH ? info.scratch : most;

		CHECK(step.op == SLMPM_PLAN_WAIT || step.at + step.count <= area, "beyond an area");
		CHECK(++steps <= 65536, "more steps than are taken");
	}
	slmpm_plan_close(plan);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char words[MOST + 1];
	int rc;

	size = size < MOST ? size : MOST;
	memcpy(words, data, size);
	words[size] = 0;
	rc = follow(words, 4, 3, 0);
	refused += rc < 0;
	taken += rc == 0;
	for (uint32_t rank = 1; rc == 0 && rank < 3; rank++)
		CHECK(follow(words, 4, 3, rank) == 0, "for one rank alone");
	return 0;
}

#ifndef SEARCH

static void change(char *text, struct rng *rng)
{
	static const char bytes[] = "0123456789-[]#\n\t ftrsw\xff";
	const uint32_t at = rng_below(rng, (uint32_t)strlen(text));
	const uint32_t other = rng_below(rng, (uint32_t)strlen(text));
	char *end = strchr(text + at, '\n');

	if (rng_below(rng, 3))
		text[at] = bytes[rng_below(rng, sizeof(bytes) - 1)];
	else if (end && rng_below(rng, 2))
		memmove(text + at, end, strlen(end) + 1);
	else
		text[at] = text[other];
}

static void replay(const char *path)
{
	static uint8_t data[MOST];
	FILE *file = fopen(path, "rb");
	size_t n;

	CHECK(file, "%s", path);
	n = fread(data, 1, sizeof(data), file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
	struct rng rng = {rng_run_seed(1)};
	char text[sizeof(honest)];

	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	for (int i = 0; argc == 1 && i < 20000; i++) {
		memcpy(text, honest, sizeof(text));
		for (uint32_t k = rng_below(&rng, 4); k; k--)
			change(text, &rng);
		LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text));
	}
	printf("%u refused, %u taken\n", refused, taken);
	CHECK(argc > 1 || (refused > 1000 && taken > 1000), "all alike");
	return 0;
}

#endif
