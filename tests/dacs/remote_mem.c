/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* timeout: 60 */
/* Remote memory: sharing, who may do what, how it ends, and that the bytes arrive. */
#include "tests/dacs/region.h"

#define SIZE 300000

/* ---- roles ---- */

/* Takes its third of the host's memory (argv[0]: which), turns each byte over and puts it back. */
static int role_slice(int argc, char **argv)
{
	uint64_t which = strtoull(argv[0], NULL, 0), size, mine;
	dacs_remote_mem_t mem;
	unsigned char *bytes;
	dacs_wid_t wid;
	uint32_t word;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_remote_mem_accept(UP, &mem));
	OK(dacs_remote_mem_query(mem, DACS_REMOTE_MEM_SIZE, &size));
	OK(dacs_wid_reserve(&wid));
	mine = size / 3;
	bytes = malloc(mine);
	OK(dacs_get(bytes, mem, which * mine, mine, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	for (uint64_t i = 0; i < mine; i++)
		bytes[i] ^= 0xff;
	OK(dacs_put(mem, which * mine, bytes, mine, wid, PLAIN));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	OK(dacs_mailbox_read(&word, UP)); /* the host has tried to destroy it meanwhile */
	OK(dacs_remote_mem_release(&mem));
	OK(dacs_exit());
	free(bytes);
	return 0;
}

/* What an acceptor is refused. */
static int role_wrong(int argc, char **argv)
{
	dacs_remote_mem_t mem, own, copy, foreign;
	unsigned char byte = 0;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	EXPECT(dacs_remote_mem_accept(UP, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_accept(DACS_DE_PARENT, 1, &mem), DACS_ERR_INVALID_PID);
	OK(dacs_remote_mem_accept(UP, &mem));
	OK(pair_recv(pair_parent(), 1, &foreign, sizeof(foreign), DACS_BYTE_SWAP_DISABLE));
	EXPECT(dacs_put(foreign, 0, &byte, 1, wid, PLAIN), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_share(UP, mem), DACS_ERR_NOT_OWNER);
	EXPECT(dacs_remote_mem_destroy(&mem), DACS_ERR_NOT_OWNER);
	OK(dacs_remote_mem_create(&byte, 1, DACS_READ_WRITE, &own));
	EXPECT(dacs_remote_mem_release(&own), DACS_ERR_OWNER);
	EXPECT(dacs_put(own, 0, &byte, 1, wid, PLAIN), DACS_ERR_OWNER);
	EXPECT(dacs_get(&byte, own, 0, 1, wid, PLAIN), DACS_ERR_OWNER);
	OK(dacs_remote_mem_destroy(&own));
	copy = mem;
	OK(dacs_remote_mem_release(&mem));
	EXPECT(dacs_remote_mem_release(&copy), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_get(&byte, copy, 0, 1, wid, PLAIN), DACS_ERR_INVALID_HANDLE);
	OK(dacs_exit());
	return 0;
}

/* Accepts late, with deadlines on both sides: argv[0] is a descriptor that says when. */
static int role_late(int argc, char **argv)
{
	dacs_remote_mem_t mem;
	DACS_ERR_T rc;
	char byte;

	(void)argc;
	OK(dacs_init(0));
	CHECK(read(atoi(argv[0]), &byte, 1) == 1, "no pipe");
	do
		rc = dacs_remote_mem_accept(UP, &mem);
	while (rc == DACS_ERR_DACSD_FAILURE);
	OK(rc);
	CHECK(read(atoi(argv[0]), &byte, 1) == 1, "no pipe");
	OK(dacs_remote_mem_release(&mem));
	OK(dacs_exit());
	return 0;
}

/* Ends without an accept, or with one and no release. */
static int role_leave(int argc, char **argv)
{
	dacs_remote_mem_t mem;
	uint32_t word;

	(void)argc;
	OK(dacs_init(0));
	if (argv[0][0] == 'a')
		OK(dacs_remote_mem_accept(UP, &mem));
	OK(dacs_mailbox_read(&word, UP));
	_exit(0);
}

/* ---- cases ---- */

static void put_and_get(struct owner *o)
{
	static const uint64_t sizes[] = {1, 7, 8, 64, 4095, 65536, SIZE};
	unsigned char *mine = malloc(SIZE), *want = malloc(SIZE);
	dacs_wid_t wid;

	OK(dacs_wid_reserve(&wid));
	pair_fill(want, SIZE, 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i], offset = size == SIZE ? 0 : 1000 * i + i;

		memset(mine, 0, SIZE);
		OK(dacs_get(mine, o->mem, offset, size, wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(!memcmp(mine, want + offset, size), "%" PRIu64 " bytes got", size);
		CHECK(size == SIZE || mine[size] == 0, "a byte too many");

		pair_fill(mine, size, 50 + i);
		OK(dacs_put(o->mem, offset, mine, size, wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		pair_fill(want + offset, size, 50 + i);
		CHECK(!memcmp(region_show(o), want, SIZE), "%" PRIu64 " bytes put", size);
	}
	OK(dacs_wid_release(&wid));
	free(mine);
	free(want);
}

static int role_bytes(int argc, char **argv)
{
	struct owner o;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	o = region_start(SIZE, "0x60", NULL);
	put_and_get(&o);
	region_end(&o);
	OK(dacs_exit());
	return 0;
}

static int bytes_arrive(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("bytes");
}

/* Three accelerators on one region; it cannot end before the last has released it. */
static int several_share_it(int argc, char **argv)
{
	static const char *const which[] = {"0", "1", "2"};
	unsigned char *memory = malloc(SIZE), *want = malloc(SIZE);
	dacs_remote_mem_t mem;
	struct child c[3];
	uint32_t word = 1;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "2000", 1);
	OK(dacs_init(0));
	pair_fill(memory, SIZE, 3);
	memcpy(want, memory, SIZE);
	for (uint64_t i = 0; i < SIZE; i++)
		want[i] ^= 0xff;
	OK(dacs_remote_mem_create(memory, SIZE, DACS_READ_WRITE, &mem));
	for (int i = 0; i < 3; i++)
		c[i] = pair_start("slice", which[i]);
	for (int i = 0; i < 3; i++)
		OK(dacs_remote_mem_share(AT(c[i]), mem));
	for (int i = 0; i < 3; i++) {
		OK(dacs_mailbox_write(&word, AT(c[i])));
		if (i == 2)
			break;
		pair_end(c[i], DACS_STS_PROC_FINISHED, 0);
	}
	OK(dacs_remote_mem_destroy(&mem));
	CHECK(!memcmp(memory, want, SIZE), "the memory differs");
	pair_end(c[2], DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	free(memory);
	free(want);
	return 0;
}

/* The mode is what the other side may do, and a query tells it and the rest to both. */
static int the_mode_holds(int argc, char **argv)
{
	static const char *const modes[] = {"0x20", "0x40"};
	unsigned char bytes[8] = {0};
	uint64_t value;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	for (int i = 0; i < 2; i++) {
		struct owner o = region_start(4096, modes[i], NULL);

		EXPECT(dacs_put(o.mem, 0, bytes, 8, wid, PLAIN),
		       i ? DACS_SUCCESS : DACS_ERR_NO_PERM);
		EXPECT(dacs_wait(wid), i ? DACS_WID_READY : DACS_ERR_WID_NOT_ACTIVE);
		EXPECT(dacs_get(bytes, o.mem, 0, 8, wid, PLAIN),
		       i ? DACS_ERR_NO_PERM : DACS_SUCCESS);
		EXPECT(dacs_wait(wid), i ? DACS_ERR_WID_NOT_ACTIVE : DACS_WID_READY);
		OK(dacs_remote_mem_query(o.mem, DACS_REMOTE_MEM_PERM, &value));
		CHECK(value == (i ? DACS_WRITE_ONLY : DACS_READ_ONLY), "%#" PRIx64, value);
		OK(dacs_remote_mem_query(o.mem, DACS_REMOTE_MEM_SIZE, &value));
		CHECK(value == 4096, "%" PRIu64, value);
		OK(dacs_remote_mem_query(o.mem, DACS_REMOTE_MEM_ADDR, &value));
		CHECK(value != 0, "no address");
		region_end(&o);
	}
	OK(dacs_exit());
	return 0;
}

static int wrong_arguments_are_refused(int argc, char **argv)
{
	unsigned char bytes[16];
	dacs_remote_mem_t mem, copy, other = 7;
	dacs_mem_t newer;
	uint64_t value = 0;
	struct child c;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	EXPECT(dacs_remote_mem_create(NULL, 16, DACS_READ_WRITE, &mem), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_create(bytes, 0, DACS_READ_WRITE, &mem), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_remote_mem_create(bytes, UINT64_MAX, DACS_READ_WRITE, &mem),
	       DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_remote_mem_create(bytes, 16, (DACS_MEMORY_ACCESS_MODE_T)0, &mem),
	       DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_remote_mem_create(bytes, 16, (DACS_MEMORY_ACCESS_MODE_T)0x80, &mem),
	       DACS_ERR_INVALID_ATTR);
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_ONLY, &mem));
	OK(dacs_mem_create(bytes, 16, DACS_MEM_READ_ONLY, DACS_MEM_READ_ONLY, &newer));

	c = pair_start("wrong", NULL);
	EXPECT(dacs_remote_mem_share(0, c.pid, mem), DACS_ERR_INVALID_DE);
	EXPECT(dacs_remote_mem_share(c.de, c.pid ^ 1, mem), DACS_ERR_INVALID_PID);
	EXPECT(dacs_remote_mem_share(UP, mem), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_remote_mem_share(DACS_DE_SELF, DACS_PID_SELF, mem), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_remote_mem_share(AT(c), 0), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_share(AT(c), mem + 1), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_share(AT(c), newer), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_accept(0, c.pid, &other), DACS_ERR_INVALID_DE);
	EXPECT(dacs_remote_mem_accept(UP, &other), DACS_ERR_INVALID_TARGET);
	OK(dacs_remote_mem_share(AT(c), mem));
	OK(pair_send(c, 1, &mem, sizeof(mem), DACS_BYTE_SWAP_DISABLE));

	EXPECT(dacs_remote_mem_query(mem, DACS_REMOTE_MEM_SIZE, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_query(mem, (DACS_REMOTE_MEM_ATTR_T)3, &value),
	       DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_remote_mem_query(newer, DACS_REMOTE_MEM_SIZE, &value), DACS_ERR_INVALID_HANDLE);
	OK(dacs_remote_mem_query(mem, DACS_REMOTE_MEM_ADDR, &value));
	CHECK(value == (uintptr_t)bytes, "%#" PRIx64, value);
	OK(dacs_remote_mem_query(mem, DACS_REMOTE_MEM_ACCESS_MODE, &value));
	CHECK(value == DACS_READ_ONLY, "%#" PRIx64, value);
	EXPECT(dacs_remote_mem_release(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_release(&other), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_release(&mem), DACS_ERR_OWNER);
	EXPECT(dacs_remote_mem_destroy(NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_remote_mem_destroy(&other), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_destroy(&newer), DACS_ERR_INVALID_HANDLE);
	copy = mem;
	OK(dacs_remote_mem_destroy(&mem));
	EXPECT(dacs_remote_mem_destroy(&copy), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_remote_mem_query(copy, DACS_REMOTE_MEM_SIZE, &value), DACS_ERR_INVALID_HANDLE);
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_ONLY, &mem));
	CHECK(mem != copy, "a handle came again");
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	OK(dacs_init(0));
	EXPECT(dacs_remote_mem_destroy(&mem), DACS_ERR_INVALID_HANDLE); /* of another life */
	OK(dacs_exit());
	return 0;
}

/* Past the deadline share and destroy have done nothing that a second call could not finish. */
static int deadlines_can_be_tried_again(int argc, char **argv)
{
	unsigned char bytes[16];
	dacs_remote_mem_t mem, none;
	struct child c;
	DACS_ERR_T rc;
	char text[16];
	int gate[2];

	(void)argc, (void)argv;
	CHECK(pipe(gate) == 0, "pipe");
	snprintf(text, sizeof(text), "%d", gate[0]);
	setenv("SLMPM_TIMEOUT", "60", 1);
	OK(dacs_init(0));
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, &none));
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, &mem));
	c = pair_start("late", text);
	EXPECT(dacs_remote_mem_share(AT(c), none), DACS_ERR_DACSD_FAILURE);
	rc = dacs_remote_mem_destroy(&none); /* takes the offer back, as soon as that is heard */
	CHECK(rc == DACS_SUCCESS || rc == DACS_ERR_DACSD_FAILURE, "%s", dacs_strerror(rc));
	EXPECT(dacs_remote_mem_share(AT(c), mem), DACS_ERR_DACSD_FAILURE);
	CHECK(write(gate[1], "x", 1) == 1, "write");
	do
		rc = dacs_remote_mem_share(AT(c), mem);
	while (rc == DACS_ERR_DACSD_FAILURE);
	OK(rc);
	EXPECT(dacs_remote_mem_destroy(&mem), DACS_ERR_DACSD_FAILURE);
	CHECK(mem != 0, "the handle is gone");
	CHECK(write(gate[1], "x", 1) == 1, "write");
	do
		rc = dacs_remote_mem_destroy(&mem);
	while (rc == DACS_ERR_DACSD_FAILURE);
	OK(rc);
	if (none)
		OK(dacs_remote_mem_destroy(&none));
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	close(gate[0]);
	close(gate[1]);
	return 0;
}

static int a_partner_goes(int argc, char **argv)
{
	unsigned char bytes[16];
	dacs_remote_mem_t mem;
	uint32_t word = 1;
	struct owner o;
	struct child c;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	/* An acceptor that releases nothing. */
	OK(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, &mem));
	c = pair_start("leave", "accept");
	OK(dacs_remote_mem_share(AT(c), mem));
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_remote_mem_destroy(&mem));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	/* One that never accepts, nor shares. */
	for (int share = 0; share < 2; share++) {
		OK(dacs_remote_mem_create(bytes, 16, DACS_READ_WRITE, &mem));
		c = pair_start("leave", "not");
		OK(dacs_mailbox_write(&word, AT(c)));
		if (share)
			EXPECT(dacs_remote_mem_share(AT(c), mem), DACS_ERR_DE_TERM);
		else
			EXPECT(dacs_remote_mem_accept(AT(c), &o.mem), DACS_ERR_DE_TERM);
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
		OK(dacs_remote_mem_destroy(&mem));
	}
	/* An owner. */
	for (int reaped = 0; reaped < 2; reaped++) {
		DACS_ERR_T rc;

		o = region_start(4096, "0x60", NULL);
		region_tell(&o, OWNER_DIE);
		do { /* until its end has been noticed */
			rc = dacs_put(o.mem, 0, bytes, 16, wid, PLAIN);
			if (rc == DACS_SUCCESS)
				rc = dacs_wait(wid);
		} while (rc == DACS_SUCCESS);
		EXPECT(rc, DACS_ERR_DE_TERM);
		if (reaped)
			pair_end(o.c, DACS_STS_PROC_FINISHED, 0);
		EXPECT(dacs_get(bytes, o.mem, 0, 16, wid, PLAIN), DACS_ERR_DE_TERM);
		OK(dacs_remote_mem_release(&o.mem));
		if (!reaped)
			pair_end(o.c, DACS_STS_PROC_FINISHED, 0);
		free(o.shown);
	}
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"owner", region_owner},
	{"bytes", role_bytes},
	{"slice", role_slice},
	{"wrong", role_wrong},
	{"late", role_late},
	{"leave", role_leave},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"bytes arrive", bytes_arrive},
	{"several share it", several_share_it},
	{"the mode holds", the_mode_holds},
	{"wrong arguments are refused", wrong_arguments_are_refused},
	{"deadlines can be tried again", deadlines_can_be_tried_again},
	{"a partner goes", a_partner_goes},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
