/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 20 */
/* native-only */
/* A ring takes memory as contributions come to lie on it, and no more than it needs; without memory
 * an operation has not begun. Both members are this process. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/board/flat_parts.h"
#include "tests/lib/test.h"

#define HEAD offsetof(struct board, ring)

static struct boards b[2];
static struct flat f[2];
static struct slmpm_coll colls[2];
static int fd[2];
static unsigned char from[2 * BOARD_RING];
static unsigned char to[2 * BOARD_RING];

static void meet(void)
{
	struct board *own[2];

	for (uint32_t r = 0; r < 2; r++) {
		CHECK(board_make(&own[r], &fd[r]) == 0, "no board");
		CHECK(boards_open(&b[r], own[r], 2, r) == 0, "no boards");
	}
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(board_map(&b[r].of[!r], fd[!r]) == 0, "cannot be mapped");
		boards_met(&b[r]);
	}
}

static int begin(uint32_t r, uint64_t count)
{
	colls[r] = (struct slmpm_coll){.size = sizeof(struct slmpm_coll),
				       .kind = SLMPM_COLL_BROADCAST,
				       .type = SLMPM_UINT8,
				       .count = count,
				       .from = r ? NULL : from,
				       .to = to};
	return flat_begin(&f[r], &b[r], &colls[r]);
}

/* By rank 0 to rank 1. */
static void broadcast(uint64_t count)
{
	int done[2] = {0};

	for (uint32_t r = 0; r < 2; r++)
		CHECK(begin(r, count) == 0, "no memory");
	while (!done[0] || !done[1])
		for (uint32_t r = 0; r < 2; r++) {
			if (!done[r])
				done[r] = flat_step(&f[r]);
			CHECK(done[r] >= 0, "rank %u: %s", r, slmpm_error_detail());
		}
}

static void takes(uint32_t r, uint64_t ring)
{
	struct stat st;

	CHECK(fstat(fd[r], &st) == 0, "no board");
	CHECK((uint64_t)st.st_blocks * 512 == HEAD + ring, "rank %u has %ld B, not %lu", r,
	      (long)st.st_blocks * 512, (unsigned long)(HEAD + ring));
}

static void part(void)
{
	for (uint32_t r = 0; r < 2; r++) {
		close(fd[r]);
		boards_close(&b[r]);
	}
	memset(b, 0, sizeof(b));
	memset(f, 0, sizeof(f));
}

int main(void)
{
	unsigned char *page, *aside;

	if (sysconf(_SC_PAGESIZE) != 4096)
		return 77;
	/* Those of one length keep to places near each other. */
	meet();
	for (int i = 0; i < 100; i++)
		broadcast(64);
	takes(0, BOARD_FIRST);
	part();

	meet();
	broadcast(8);
	broadcast(BOARD_FIRST);
	takes(0, BOARD_FIRST);
	broadcast(64);
	takes(0, 2 * BOARD_FIRST);
	broadcast(5 * BOARD_FIRST);
	takes(0, 7 * BOARD_FIRST);

	/* None for what comes next; of which the other then finds no trace. */
	page = b[0].own->ring + 7 * BOARD_FIRST;
	aside = mmap(NULL, BOARD_FIRST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mremap(page, BOARD_FIRST, BOARD_FIRST, MREMAP_MAYMOVE | MREMAP_FIXED, aside) == aside,
	      "its page stays");
	CHECK(begin(0, 3 * BOARD_FIRST) == -SLMPM_ENOMEM, "memory that is not there");
	broadcast(8);
	CHECK(mremap(aside, BOARD_FIRST, BOARD_FIRST, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page,
	      "its page does not come back");

	broadcast(2 * BOARD_RING);
	takes(0, BOARD_RING);
	broadcast(2 * BOARD_RING);
	takes(1, BOARD_FIRST); /* it has sent nothing */
	part();
	return 0;
}
