/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator that owns remote memory and does with it what mailbox words tell, and its host. */
#ifndef TESTS_DACS_REGION_H
#define TESTS_DACS_REGION_H

#include "tests/dacs/pair.h"

enum {                 /* words of a host to an owner */
       OWNER_END = 0,  /* destroy, when it has been released, and exit */
       OWNER_SHOW = 1, /* send the memory back */
       OWNER_FILL = 2, /* pair_fill it with the seed that the next word is, answer with a word */
       OWNER_REST = 3, /* answer with a word, then make no call until the pipe says so */
       OWNER_DIE = 4,
};

/* Plays ROLE, a host, by way of PATH. */
__attribute__((unused)) static void region_host(const char *path, const char *role)
{
	char setting[64];

	snprintf(setting, sizeof(setting), "SLMPM_RMA=%s", path);
	CHECK(pair_host(setting, role) == 0, "%s by way of %s", role, path);
	printf(" %s", path);
}

__attribute__((unused)) static int region_on_each_path(const char *role)
{
	static const char *const paths[] = {"auto", "ring", "am", "tag"};

	for (int i = 0; i < 4; i++)
		region_host(paths[i], role);
	return 0;
}

/* Role "owner": argv[0] is the size, argv[1] the access mode, argv[2] a descriptor, or none. */
__attribute__((unused)) static int region_owner(int argc, char **argv)
{
	uint64_t size = strtoull(argv[0], NULL, 0);
	unsigned char *memory = malloc(size);
	dacs_remote_mem_t mem;
	uint32_t word, seed;
	char byte;

	OK(dacs_init(0));
	pair_fill(memory, size, 0);
	OK(dacs_remote_mem_create(memory, size,
				  (DACS_MEMORY_ACCESS_MODE_T)strtoul(argv[1], NULL, 0), &mem));
	OK(dacs_remote_mem_share(UP, mem));
	for (;;) {
		OK(dacs_mailbox_read(&word, UP));
		if (word == OWNER_DIE)
			_exit(0);
		if (word == OWNER_END)
			break;
		if (word == OWNER_SHOW) {
			OK(pair_send(pair_parent(), 1, memory, (uint32_t)size,
				     DACS_BYTE_SWAP_DISABLE));
			continue;
		}
		if (word == OWNER_FILL) {
			OK(dacs_mailbox_read(&seed, UP));
			pair_fill(memory, size, seed);
		}
		OK(dacs_mailbox_write(&word, UP));
		if (word == OWNER_REST)
			CHECK(argc > 2 && read(atoi(argv[2]), &byte, 1) == 1, "no pipe");
	}
	OK(dacs_remote_mem_destroy(&mem));
	CHECK(mem == 0, "a handle is left");
	OK(dacs_exit());
	free(memory);
	return 0;
}

struct owner { /* as the host sees it */
	struct child c;
	dacs_remote_mem_t mem;
	unsigned char *shown;
	uint64_t size;
};

__attribute__((unused)) static struct owner region_start(uint64_t size, const char *mode,
							 const char *pipe)
{
	struct owner o = {.size = size, .shown = malloc(size)};
	uint32_t n = 1;
	char text[32];
	const char *argv[] = {"owner", text, mode, pipe, NULL};

	snprintf(text, sizeof(text), "%" PRIu64, size);
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &o.c.de));
	OK(dacs_de_start(o.c.de, pair_accel(), argv, NULL, DACS_PROC_REMOTE_FILE, &o.c.pid));
	OK(dacs_remote_mem_accept(AT(o.c), &o.mem));
	return o;
}

__attribute__((unused)) static void region_tell(struct owner *o, uint32_t word)
{
	OK(dacs_mailbox_write(&word, AT(o->c)));
}

__attribute__((unused)) static void region_fill(struct owner *o, uint32_t seed)
{
	uint32_t word;

	region_tell(o, OWNER_FILL);
	region_tell(o, seed);
	OK(dacs_mailbox_read(&word, AT(o->c)));
}

/* The owner's memory as it is now, in o->shown. */
__attribute__((unused)) static const unsigned char *region_show(struct owner *o)
{
	region_tell(o, OWNER_SHOW);
	OK(pair_recv(o->c, 1, o->shown, (uint32_t)o->size, DACS_BYTE_SWAP_DISABLE));
	return o->shown;
}

__attribute__((unused)) static void region_end(struct owner *o)
{
	OK(dacs_remote_mem_release(&o->mem));
	CHECK(o->mem == 0, "a handle is left");
	region_tell(o, OWNER_END);
	pair_end(o->c, DACS_STS_PROC_FINISHED, 0);
	free(o->shown);
}

#endif
