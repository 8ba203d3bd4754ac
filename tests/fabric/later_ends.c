/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Operations that a fabric begins and tells of later (tests/fabric/masked.h), and a region that is released.
 */
#include <stdlib.h>

#include "tests/fabric/masked.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE 4096

static const slmpm_ctx none;
static slmpm_peer near, far;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *memory;

static void reach(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	actor_pair(none, &near, &far);
	OK(slmpm_mem_alloc(none, SIZE, SLMPM_READ_WRITE, &mem, &base));
	memory = base;
	OK(slmpm_mem_key(mem, far, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(near, &key, &rmem));
	actor_settle(near, far);
	OK(slmpm_rmem_query(rmem, &info));
	CHECK(!strcmp(info.path, "fabric"), "reached by %s", info.path);
}

/* The owner's fabric must not serve a grant that there is none of any more. */
static int released(void *arg)
{
	(void)arg;
	reach();
	CHECK(later_words[0] == FABRIC_ACCESS_DIRECT, "the word says %u", later_words[0]);
	later_words[0] = 99;
	OK(slmpm_mem_release(rmem));
	actor_settle(near, far);
	CHECK(later_words[0] == FABRIC_ACCESS_REVOKED, "the word says %u", later_words[0]);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	settings_one_link("later");
	if (argc < 2 || !strcmp(argv[1], "released"))
		settings_run("released", released, NULL);
	return 0;
}
