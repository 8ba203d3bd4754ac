/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Puts and gets: lists, order, many at once, what a wid says meanwhile, and what is refused. */
#include "tests/dacs/region.h"

#define SIZE 1200000
#define NONE DACS_ORDER_ATTR_NONE

static dacs_wid_t wid;

static DACS_ERR_T put(struct owner *o, uint64_t offset, void *from, uint64_t size,
		      DACS_ORDER_ATTR_T order)
{
	return dacs_put(o->mem, offset, from, size, wid, order, DACS_BYTE_SWAP_DISABLE);
}

static DACS_ERR_T get(struct owner *o, uint64_t offset, void *to, uint64_t size,
		      DACS_ORDER_ATTR_T order)
{
	return dacs_get(to, o->mem, offset, size, wid, order, DACS_BYTE_SWAP_DISABLE);
}

/* A host with an owner of SIZE bytes. */
static int with_owner(void (*once)(struct owner *))
{
	struct owner o;

	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	o = region_start(SIZE, "0x60", NULL);
	once(&o);
	region_end(&o);
	OK(dacs_wid_release(&wid));
	OK(dacs_exit());
	return 0;
}

/* ---- lists ---- */

/* N elements of different sizes with gaps between them; the bytes of all. */
static uint64_t make_list(dacs_dma_list_t *list, uint32_t n, uint64_t most)
{
	uint64_t at = 3, total = 0;

	for (uint32_t i = 0; i < n; i++) {
		list[i] = (dacs_dma_list_t){at, 1 + (i * 37) % most};
		at += list[i].size + i % 5;
		total += list[i].size;
	}
	return total;
}

static void scatter_and_gather(struct owner *o, uint32_t n, uint64_t most)
{
	dacs_dma_list_t *list = malloc(n * sizeof(*list)), one = {.offset = 11};
	unsigned char *mine = malloc(SIZE), *want = malloc(SIZE);
	uint64_t at;

	one.size = make_list(list, n, most);
	for (int scatter = 0; scatter < 2; scatter++) {
		/* Put: out of one run into many there; or out of many into one. */
		region_fill(o, 9);
		pair_fill(want, SIZE, 9);
		pair_fill(mine, SIZE, 10);
		at = one.offset;
		for (uint32_t i = 0; i < n; at += list[i++].size)
			memcpy(want + (scatter ? list[i].offset : at),
			       mine + (scatter ? at : list[i].offset), list[i].size);
		OK(dacs_put_list(o->mem, scatter ? list : &one, scatter ? n : 1, mine,
				 scatter ? &one : list, scatter ? 1 : n, wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(!memcmp(region_show(o), want, SIZE), "put, scatter %d", scatter);

		/* Get, likewise. */
		pair_fill(mine, SIZE, 20);
		pair_fill(want, SIZE, 20);
		at = one.offset;
		for (uint32_t i = 0; i < n; at += list[i++].size)
			memcpy(want + (scatter ? list[i].offset : at),
			       o->shown + (scatter ? at : list[i].offset), list[i].size);
		OK(dacs_get_list(mine, scatter ? list : &one, scatter ? n : 1, o->mem,
				 scatter ? &one : list, scatter ? 1 : n, wid, PLAIN));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(!memcmp(mine, want, SIZE), "get, scatter %d", scatter);
	}
	free(list);
	free(mine);
	free(want);
}

static void lists_of(struct owner *o)
{
	scatter_and_gather(o, 1, 1);
	scatter_and_gather(o, 2, 100);
	scatter_and_gather(o, 3000, 300); /* more than one system call takes */
	scatter_and_gather(o, 30, 30000);
}

static int role_lists(int argc, char **argv)
{
	(void)argc, (void)argv;
	return with_owner(lists_of);
}

static int lists_gather_and_scatter(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("lists");
}

/* ---- order ---- */

/* Each later one stands where the earlier one was: the last has to win, whatever their sizes. */
static void order_of(struct owner *o)
{
	unsigned char *big = malloc(SIZE), *back = malloc(SIZE);
	uint64_t word[4];

	for (unsigned turn = 0; turn < 20; turn++) {
		uint64_t at = 8 * (turn * 1000);

		/* A fence waits for those before it. */
		pair_fill(big, SIZE, turn);
		word[0] = turn;
		OK(put(o, 0, big, SIZE, NONE));
		OK(put(o, at, &word[0], 8, DACS_ORDER_ATTR_FENCE));
		OK(get(o, 0, back, SIZE, DACS_ORDER_ATTR_FENCE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		memcpy(big + at, &word[0], 8);
		CHECK(!memcmp(back, big, SIZE), "fences, turn %u", turn);

		/* What comes behind a barrier waits for what is before it. */
		pair_fill(big, SIZE, turn + 50);
		word[1] = turn + 1, word[2] = turn + 2;
		OK(put(o, 0, big, SIZE, NONE));
		OK(put(o, at, &word[1], 8, DACS_ORDER_ATTR_BARRIER));
		OK(put(o, at + 8, &word[2], 8, NONE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		memcpy(big + at, &word[1], 16);
		CHECK(!memcmp(region_show(o), big, SIZE), "barrier, turn %u", turn);

		/* What has been got may be put at once, to somewhere else. */
		OK(get(o, 0, back, SIZE / 2, NONE));
		OK(put(o, SIZE / 2, back, SIZE / 2, DACS_ORDER_ATTR_FENCE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(!memcmp(region_show(o) + SIZE / 2, big, SIZE / 2), "get, turn %u", turn);
	}
	free(big);
	free(back);
}

static int role_order(int argc, char **argv)
{
	(void)argc, (void)argv;
	return with_owner(order_of);
}

static int order_is_kept(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("order");
}

/* ---- many ---- */

#define MANY 1000

static void many_of(struct owner *o)
{
	unsigned char *mine = malloc(SIZE), *back = calloc(1, SIZE);
	uint64_t each = SIZE / MANY;

	pair_fill(mine, SIZE, 77);
	for (uint64_t i = 0; i < MANY; i++)
		OK(put(o, i * each, mine + i * each, each, NONE));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(!memcmp(region_show(o), mine, SIZE), "puts");
	for (uint64_t i = 0; i < MANY; i++)
		OK(get(o, i * each, back + i * each, each, i % 16 ? NONE : DACS_ORDER_ATTR_FENCE));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(!memcmp(back, mine, SIZE), "gets");
	EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);
	free(mine);
	free(back);
}

static int role_many(int argc, char **argv)
{
	(void)argc, (void)argv;
	return with_owner(many_of);
}

static int many_at_once(int argc, char **argv)
{
	(void)argc, (void)argv;
	return region_on_each_path("many");
}

/* ---- under way ---- */

/* While the owner makes no call a get through the ring stays under way, and holds what it uses. */
static int role_busy(int argc, char **argv)
{
	unsigned char *back = malloc(SIZE);
	dacs_remote_mem_t copy;
	struct owner o;
	char text[16];
	uint32_t word;
	int gate[2];

	(void)argv;
	CHECK(pipe(gate) == 0, "pipe");
	snprintf(text, sizeof(text), "%d", gate[0]);
	for (int dies = 0; dies < 2; dies++) {
		OK(dacs_init(0));
		OK(dacs_wid_reserve(&wid));
		o = region_start(SIZE, "0x60", text);
		region_tell(&o, OWNER_REST);
		OK(dacs_mailbox_read(&word, AT(o.c)));
		OK(get(&o, 0, back, SIZE, NONE));
		OK(get(&o, 0, back, 8, DACS_ORDER_ATTR_BARRIER));
		OK(get(&o, 8, back + 8, 8, NONE));
		EXPECT(dacs_test(wid), DACS_WID_BUSY);
		EXPECT(dacs_wid_release(&wid), DACS_ERR_WID_ACTIVE);
		copy = o.mem;
		EXPECT(dacs_remote_mem_release(&copy), DACS_ERR_RESOURCE_BUSY);
		CHECK(copy == o.mem, "the handle is gone");
		if (dies) {
			int32_t status;

			OK(dacs_de_kill(AT(o.c), DACS_KILL_TYPE_ASYNC));
			EXPECT(dacs_wait(wid), DACS_ERR_DE_TERM);
			EXPECT(dacs_de_wait(AT(o.c), &status), DACS_STS_PROC_KILLED);
			OK(dacs_remote_mem_release(&o.mem));
			OK(dacs_release_de_list(1, &o.c.de));
			free(o.shown);
		} else {
			CHECK(write(gate[1], "x", 1) == 1, "write");
			EXPECT(dacs_wait(wid), DACS_WID_READY);
			CHECK(pair_filled(back, SIZE, 0), "bytes differ");
			region_end(&o);
		}
		OK(dacs_wid_release(&wid));
		OK(dacs_exit());
	}
	/* Left by dacs_exit, which takes a second to lose patience, or reaped, meanwhile. */
	for (int reap = argc > 0; reap < 2; reap++) {
		OK(dacs_init(0));
		OK(dacs_wid_reserve(&wid));
		o = region_start(SIZE, "0x60", text);
		region_tell(&o, OWNER_REST);
		OK(dacs_mailbox_read(&word, AT(o.c)));
		OK(get(&o, 0, back, SIZE, NONE));
		OK(put(&o, 0, back, 8, DACS_ORDER_ATTR_FENCE));
		if (reap) {
			int32_t status;

			OK(dacs_de_kill(AT(o.c), DACS_KILL_TYPE_ASYNC));
			EXPECT(dacs_de_wait(AT(o.c), &status), DACS_STS_PROC_KILLED);
			EXPECT(dacs_wait(wid), DACS_ERR_DE_TERM);
			OK(dacs_release_de_list(1, &o.c.de));
		}
		OK(dacs_exit());
		free(o.shown);
	}
	close(gate[0]);
	close(gate[1]);
	free(back);
	return 0;
}

/* With an engine the owner's thread serves: transfers end, and are seen, while it rests. */
static int role_served(int argc, char **argv)
{
	unsigned char *mine = malloc(SIZE), *back = malloc(SIZE);
	struct owner o;
	char text[16];
	uint32_t word;
	int gate[2];

	(void)argc, (void)argv;
	CHECK(pipe(gate) == 0, "pipe");
	snprintf(text, sizeof(text), "%d", gate[0]);
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	o = region_start(SIZE, "0x60", text);
	for (unsigned turn = 0; turn < 3; turn++) {
		region_tell(&o, OWNER_REST);
		OK(dacs_mailbox_read(&word, AT(o.c)));
		pair_fill(mine, SIZE, turn + 1);
		OK(put(&o, 0, mine, SIZE, NONE));
		OK(get(&o, 0, back, SIZE, DACS_ORDER_ATTR_FENCE));
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		CHECK(!memcmp(mine, back, SIZE), "turn %u", turn);
		CHECK(write(gate[1], "x", 1) == 1, "write");
	}
	region_end(&o);
	OK(dacs_exit());
	free(mine);
	free(back);
	return 0;
}

static int an_engine_serves_meanwhile(int argc, char **argv)
{
	(void)argc, (void)argv;
	setenv("SLMPM_ENGINE", "thread", 1);
	setenv("SLMPM_TIMEOUT", "20000", 1);
	region_host("auto", "served");
	region_host("ring", "served");
	region_host("am", "served");
	unsetenv("SLMPM_TIMEOUT");
	unsetenv("SLMPM_ENGINE");
	return 0;
}

static int a_wid_is_busy_meanwhile(int argc, char **argv)
{
	(void)argc, (void)argv;
	region_host("ring", "busy");
	region_host("am", "busy quick");
	region_host("tag", "busy quick");
	return 0;
}

/* ---- what is refused ---- */

static int wrong_arguments_are_refused(int argc, char **argv)
{
	dacs_dma_list_t two[2] = {{0, 8}, {8, 8}}, one = {0, 16}, bad;
	unsigned char bytes[64] = {0};
	struct owner o;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	o = region_start(64, "0x60", NULL);
	EXPECT(put(&o, 0, NULL, 8, NONE), DACS_ERR_INVALID_ADDR);
	EXPECT(get(&o, 0, NULL, 8, NONE), DACS_ERR_INVALID_ADDR);
	EXPECT(put(&o, 0, bytes, 0, NONE), DACS_ERR_INVALID_SIZE);
	EXPECT(put(&o, 0, bytes, 65, NONE), DACS_ERR_BUF_OVERFLOW);
	EXPECT(put(&o, 64, bytes, 1, NONE), DACS_ERR_BUF_OVERFLOW);
	EXPECT(put(&o, 65, bytes, 1, NONE), DACS_ERR_BUF_OVERFLOW);
	EXPECT(get(&o, UINT64_MAX, bytes, 8, NONE), DACS_ERR_BUF_OVERFLOW);
	EXPECT(get(&o, 8, bytes, UINT64_MAX - 4, NONE), DACS_ERR_BUF_OVERFLOW);
	EXPECT(put(&o, 0, bytes, 8, (DACS_ORDER_ATTR_T)3), DACS_ERR_INVALID_ATTR);
	EXPECT(put(&o, 0, bytes, 8, (DACS_ORDER_ATTR_T)-1), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_put(o.mem, 0, bytes, 8, wid, NONE, (DACS_BYTE_SWAP_T)4), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_put(o.mem, 0, bytes, 8, wid + 1, PLAIN), DACS_ERR_INVALID_WID);
	EXPECT(dacs_get(bytes, o.mem, 0, 8, 0, PLAIN), DACS_ERR_INVALID_WID);
	EXPECT(dacs_put(0, 0, bytes, 8, wid, PLAIN), DACS_ERR_INVALID_HANDLE);
	EXPECT(dacs_put(o.mem ^ UINT64_C(1) << 20, 0, bytes, 8, wid, PLAIN),
	       DACS_ERR_INVALID_HANDLE);
	/* Elements that are swapped have to be whole, also where nothing is swapped. */
	EXPECT(dacs_put(o.mem, 0, bytes, 7, wid, NONE, DACS_BYTE_SWAP_HALF_WORD),
	       DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_get(bytes, o.mem, 0, 6, wid, NONE, DACS_BYTE_SWAP_WORD), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_get(bytes, o.mem, 0, 12, wid, NONE, DACS_BYTE_SWAP_DOUBLE_WORD),
	       DACS_ERR_INVALID_SIZE);

	EXPECT(dacs_put_list(o.mem, NULL, 1, bytes, &one, 1, wid, PLAIN), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_put_list(o.mem, &one, 1, bytes, NULL, 1, wid, PLAIN), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_put_list(o.mem, &one, 1, NULL, two, 2, wid, PLAIN), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_get_list(bytes, two, 2, o.mem, two, 2, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_get_list(bytes, two, 0, o.mem, &one, 1, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_get_list(bytes, two, 2, o.mem, &one, 0, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	bad = (dacs_dma_list_t){0, 15}; /* not as many bytes on both sides */
	EXPECT(dacs_get_list(bytes, two, 2, o.mem, &bad, 1, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	bad = (dacs_dma_list_t){49, 16};
	EXPECT(dacs_put_list(o.mem, &bad, 1, bytes, two, 2, wid, PLAIN), DACS_ERR_BUF_OVERFLOW);
	two[1].size = 0;
	one.size = 8;
	EXPECT(dacs_put_list(o.mem, &one, 1, bytes, two, 2, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	two[1].size = UINT64_MAX;
	EXPECT(dacs_put_list(o.mem, two, 2, bytes, &one, 1, wid, PLAIN), DACS_ERR_INVALID_SIZE);
	EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);
	region_end(&o);
	OK(dacs_exit());
	return 0;
}

/* SLMPM_DACS_STRICT: as a Cell processor has it; without it anything goes. */
static int strictness_can_be_had(int argc, char **argv)
{
	static unsigned char memory[256] __attribute__((aligned(16)));
	static const struct {
		uint64_t there, here, size;
		bool fine;
	} rows[] = {
		{0, 0, 1, true},    {7, 3, 1, true},    {2, 4, 2, true},      {1, 4, 2, false},
		{2, 3, 2, false},   {4, 8, 7, true},    {2, 8, 7, false},     {8, 8, 8, true},
		{8, 4, 8, false},   {8, 8, 15, true},   {16, 32, 16, true},   {8, 32, 16, false},
		{16, 8, 16, false}, {16, 16, 17, true}, {24, 16, 100, false},
	};
	dacs_dma_list_t quads[2] = {{0, 16}, {32, 32}}, one = {0, 48}, odd = {16, 8}, at8 = {8, 16};
	struct owner o;
	uint64_t base;

	(void)argc, (void)argv;
	for (int strict = 0; strict < 2; strict++) {
		DACS_ERR_T no = strict ? DACS_ERR_NOT_ALIGNED : DACS_SUCCESS;

		setenv("SLMPM_DACS_STRICT", strict ? "y" : "n", 1);
		OK(dacs_init(0));
		OK(dacs_wid_reserve(&wid));
		o = region_start(4096, "0x60", NULL);
		OK(dacs_remote_mem_query(o.mem, DACS_REMOTE_MEM_ADDR, &base));
		CHECK(base % 16 == 0, "malloc's memory at %#" PRIx64, base);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			EXPECT(put(&o, rows[i].there, memory + rows[i].here, rows[i].size, NONE),
			       rows[i].fine ? DACS_SUCCESS : no);
			EXPECT(get(&o, rows[i].there, memory + rows[i].here, rows[i].size, NONE),
			       rows[i].fine ? DACS_SUCCESS : no);
		}
		OK(dacs_put_list(o.mem, quads, 2, memory, &one, 1, wid, PLAIN));
		OK(dacs_get_list(memory, quads, 2, o.mem, &one, 1, wid, PLAIN));
		EXPECT(dacs_put_list(o.mem, &odd, 1, memory, &odd, 1, wid, PLAIN), no);
		EXPECT(dacs_put_list(o.mem, &at8, 1, memory, quads, 1, wid, PLAIN), no);
		EXPECT(dacs_wait(wid), DACS_WID_READY);
		region_end(&o);
		OK(dacs_exit());
	}
	unsetenv("SLMPM_DACS_STRICT");
	return 0;
}

static const struct pair_entry roles[] = {
	{"owner", region_owner},
	{"lists", role_lists},
	{"order", role_order},
	{"many", role_many},
	{"busy", role_busy},
	{"served", role_served},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"lists gather and scatter", lists_gather_and_scatter},
	{"order is kept", order_is_kept},
	{"many at once", many_at_once},
	{"a wid is busy meanwhile", a_wid_is_busy_meanwhile},
	{"an engine serves meanwhile", an_engine_serves_meanwhile},
	{"wrong arguments are refused", wrong_arguments_are_refused},
	{"strictness can be had", strictness_can_be_had},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
