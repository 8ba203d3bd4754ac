/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte order between two ends: each width swapped where the orders differ and only there, disabled
 * never, mailbox words always; in messages, puts and gets.
 */
#include "tests/dacs/pair.h"

#define COUNT        1000 /* elements of a message; twice, the longer one waits for its receive */
#define LONG_COUNT   10000
#define REGION_COUNT 100003 /* of a region: more than one private copy */

static const size_t widths[] = {1, 2, 4, 8};

/* Element I of a message as its sender has it in memory, in its own byte order. */
static void put(unsigned char *to, size_t width, uint32_t i)
{
	uint16_t half = (uint16_t)(i * 3 + 0x0102);
	uint32_t word = i * 5 + 0x01020304;
	uint64_t twice = i * UINT64_C(7) + UINT64_C(0x0102030405060708);

	if (width == 2)
		memcpy(to, &half, 2);
	else if (width == 4)
		memcpy(to, &word, 4);
	else if (width == 8)
		memcpy(to, &twice, 8);
	else
		*to = (unsigned char)i;
}

static void fill(unsigned char *data, size_t width, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		put(data + i * width, width, i);
	memcpy(data + count * width, "end", 3); /* shorter than an element, or none */
}

/* The same, sent by the other end: values are equal whatever its byte order. */
static void check(const unsigned char *data, size_t width, uint32_t count)
{
	unsigned char want[8];

	for (uint32_t i = 0; i < count; i++) {
		put(want, width, i);
		CHECK(!memcmp(data + i * width, want, width), "width %zu, element %u", width, i);
	}
}

static void exchange(struct child c, bool first, uint32_t count)
{
	unsigned char *data = calloc(count + 1, 8);

	for (unsigned swap = 0; swap < 4; swap++) {
		size_t width = widths[swap];
		/* A tail of 1 to 3 bytes that is no element where the width is 4 or 8. */
		uint32_t tail = width > 3 ? 3 : 0, len = (uint32_t)(count * width) + tail;

		for (int turn = 0; turn < 2; turn++) {
			if ((turn == 0) == first) {
				fill(data, width, count);
				OK(pair_send(c, swap, data, len, (DACS_BYTE_SWAP_T)swap));
				continue;
			}
			memset(data, 0, len);
			OK(pair_recv(c, swap, data, len, (DACS_BYTE_SWAP_T)swap));
			check(data, width, count);
			CHECK(!tail || !memcmp(data + count * width, "end", 3), "the tail moved");
		}
	}
	free(data);
}

/* Without swapping the other end's word arrives byte by byte as it lies there. */
static bool disabled(struct child c, bool first)
{
	static const unsigned char little[4] = {4, 3, 2, 1}, big[4] = {1, 2, 3, 4};
	const uint32_t mine = 0x01020304;
	uint32_t order = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, its_order = 2;
	unsigned char its[4];

	/* Mailbox words keep their value, and so tell the truth about the rest. */
	if (first)
		OK(dacs_mailbox_write(&order, AT(c)));
	OK(dacs_mailbox_read(&its_order, AT(c)));
	CHECK(its_order < 2, "a mailbox word of 0 or 1 became %#x", its_order);
	if (!first)
		OK(dacs_mailbox_write(&order, AT(c)));
	if (first)
		OK(pair_send(c, 9, &mine, 4, DACS_BYTE_SWAP_DISABLE));
	OK(pair_recv(c, 9, its, 4, DACS_BYTE_SWAP_DISABLE));
	CHECK(!memcmp(its, its_order ? big : little, 4), "bytes %d %d %d %d", its[0], its[1],
	      its[2], its[3]);
	if (!first)
		OK(pair_send(c, 9, &mine, 4, DACS_BYTE_SWAP_DISABLE));
	return its_order != order;
}

/* Elements of a region as this end has them in memory; SHIFT tells one filling from another. */
static void region_fill(unsigned char *data, size_t width, uint32_t count, uint32_t shift)
{
	for (uint32_t i = 0; i < count; i++)
		put(data + i * width, width, i + shift);
}

static void region_check(const unsigned char *data, size_t width, uint32_t count, uint32_t shift)
{
	unsigned char want[8];

	for (uint32_t i = 0; i < count; i++) {
		put(want, width, i + shift);
		CHECK(!memcmp(data + i * width, want, width), "width %zu, element %u of %u", width,
		      i, count);
	}
}

static void region_own(struct child c, size_t width, uint32_t count)
{
	unsigned char *data = malloc(count * width);
	dacs_remote_mem_t mem;
	uint32_t word;

	region_fill(data, width, count, 0);
	OK(dacs_remote_mem_create(data, count * width, DACS_READ_WRITE, &mem));
	OK(dacs_remote_mem_share(AT(c), mem));
	OK(dacs_mailbox_read(&word, AT(c)));
	region_check(data, width, count, 7);
	OK(dacs_remote_mem_destroy(&mem));
	free(data);
}

/* COUNT elements as N pieces that lie as they lie in the region, for a gather or scatter; one
 * piece is long. */
static void region_cut(dacs_dma_list_t *list, uint32_t n, size_t width, uint32_t count)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i + 1 < n; i++) {
		list[i] = (dacs_dma_list_t){at, (1 + i % 7) * width};
		at += list[i].size;
	}
	list[n - 1] = (dacs_dma_list_t){at, count * width - at};
}

/* Gets what the other end has filled, once whole and once by pieces, and puts other elements. */
static void region_use(struct child c, size_t width, uint32_t count, DACS_BYTE_SWAP_T swap)
{
	const DACS_ORDER_ATTR_T fence = DACS_ORDER_ATTR_FENCE;
	uint64_t size = count * width, half = count / 2 * width;
	unsigned char *data = calloc(count, width);
	dacs_dma_list_t list[100], whole = {0, size - half};
	dacs_remote_mem_t mem;
	dacs_wid_t wid;
	uint32_t word = 1;

	OK(dacs_wid_reserve(&wid));
	OK(dacs_remote_mem_accept(AT(c), &mem));
	OK(dacs_get(data, mem, 0, size, wid, fence, swap));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	region_check(data, width, count, 0);

	memset(data, 0, size);
	region_cut(list, 100, width, count - count / 2);
	OK(dacs_get(data, mem, 0, half, wid, fence, swap));
	for (int i = 0; i < 100; i++)
		list[i].offset += half;
	whole.offset = half;
	OK(dacs_get_list(data, list, 100, mem, &whole, 1, wid, fence, swap));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	region_check(data, width, count, 0);

	/* One half by a put, the other by a gather and then again by a scatter. */
	region_fill(data, width, count, 7);
	OK(dacs_put(mem, 0, data, half, wid, fence, swap));
	OK(dacs_put_list(mem, &whole, 1, data, list, 100, wid, fence, swap));
	OK(dacs_put_list(mem, list, 100, data, &whole, 1, wid, fence, swap));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	region_check(data, width, count, 7); /* the source stays */

	/* A get that waits for puts, whose elements are swapped twice. */
	memset(data, 0, size);
	OK(dacs_get(data, mem, 0, size, wid, fence, swap));
	OK(dacs_put(mem, 0, data, size, wid, fence, swap));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	region_check(data, width, count, 7);
	OK(dacs_mailbox_write(&word, AT(c)));
	OK(dacs_remote_mem_release(&mem));
	OK(dacs_wid_release(&wid));
	free(data);
}

/* Both ends own and use; nothing is swapped without a swap code. */
static void regions(struct child c, bool first, uint32_t count)
{
	for (unsigned swap = 0; swap < 4; swap++)
		for (int turn = 0; turn < 2; turn++) {
			if ((turn == 0) == first)
				region_own(c, widths[swap], count);
			else
				region_use(c, widths[swap], count, (DACS_BYTE_SWAP_T)swap);
		}
}

/* Without a swap code a word is got as its bytes lie there: reversed where the orders differ. */
static void raw_word(struct child c, bool first, bool differs)
{
	uint32_t mine = 0x01020304, its = 0;
	dacs_remote_mem_t mem;
	dacs_wid_t wid;

	if (!first) {
		OK(dacs_remote_mem_create(&mine, 4, DACS_READ_ONLY, &mem));
		OK(dacs_remote_mem_share(AT(c), mem));
		OK(dacs_remote_mem_destroy(&mem));
		return;
	}
	OK(dacs_wid_reserve(&wid));
	OK(dacs_remote_mem_accept(AT(c), &mem));
	OK(dacs_get(&its, mem, 0, 4, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(its == (differs ? 0x04030201 : mine), "%#x", its);
	OK(dacs_get(&its, mem, 0, 4, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_WORD));
	EXPECT(dacs_wait(wid), DACS_WID_READY);
	CHECK(its == mine, "%#x", its);
	OK(dacs_remote_mem_release(&mem));
}

static int role_other(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	(void)disabled(pair_parent(), false);
	exchange(pair_parent(), false, COUNT);
	exchange(pair_parent(), false, LONG_COUNT);
	regions(pair_parent(), false, COUNT);
	regions(pair_parent(), false, REGION_COUNT);
	raw_word(pair_parent(), false, false);
	OK(dacs_exit());
	return 0;
}

static int values_survive_the_way(int argc, char **argv)
{
	struct child c;
	bool differs;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("other", NULL);
	differs = disabled(c, true);
	printf(" %s byte order", differs ? "another" : "the same");
	exchange(c, true, COUNT);
	exchange(c, true, LONG_COUNT);
	regions(c, true, COUNT);
	regions(c, true, REGION_COUNT);
	raw_word(c, true, differs);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {{"other", role_other}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"values survive the way", values_survive_the_way},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
