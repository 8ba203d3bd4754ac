/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets about groups, written from the description of the wire. */
#include "tests/lib/raw_group.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/test.h"

#define MAGIC UINT64_C(0x32647262706d6c73)

void raw_group_say(struct raw_peer *p, struct wire_group g, const int *fds, int count)
{
	g.head.type = LITTLE_32(WIRE_GROUP);
	g.head.length = LITTLE_32(sizeof(g));
	(void)raw_say(p->fd, &g, sizeof(g), fds, count);
}

struct wire_group raw_group_of(enum wire_group_step step, uint32_t number)
{
	bool ends = step == GROUP_WITHDRAWN || step == GROUP_REFUSED;

	return (struct wire_group){.step = LITTLE_32(step),
				   .number = LITTLE_32(number),
				   .tag = LITTLE_32(RAW_GROUP_TAG),
				   .error = LITTLE_32(ends ? 1 : 0)};
}

void raw_group_step(struct raw_peer *p, enum wire_group_step s, uint32_t number)
{
	raw_group_say(p, raw_group_of(s, number), NULL, 0);
}

int raw_group_board(size_t size, int seals)
{
	int fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint64_t magic = MAGIC;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
		      pwrite(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
		      fcntl(fd, F_ADD_SEALS, seals) == 0,
	      "no memory");
	return fd;
}

int raw_group_right_board(void)
{
	return raw_group_board(RAW_GROUP_BOARD, RAW_GROUP_SEALS);
}

int raw_group_bell(int type)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, type, 0, ends) == 0, "no bell");
	return ends[0];
}

int raw_group_process(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	CHECK(fd >= 0, "no pidfd");
	return fd;
}

void raw_group_say_join(struct raw_peer *p, uint32_t number, int memory, int ring)
{
	const int fds[] = {memory, ring};

	raw_group_say(p, raw_group_of(GROUP_JOIN, number), fds, 2);
}

void raw_group_join(struct raw_peer *p, uint32_t number)
{
	raw_group_say_join(p, number, raw_group_right_board(), raw_group_bell(SOCK_DGRAM));
}

void raw_group_await(struct raw_peer *p, enum wire_group_step want)
{
	struct wire_group g;

	CHECK(raw_hear(p->fd, &g, sizeof(g), NULL) == sizeof(g) &&
		      LITTLE_32(g.head.type) == WIRE_GROUP && LITTLE_32(g.step) == want,
	      "step %u came, not %u", LITTLE_32(g.step), want);
}

void raw_group_begin(struct raw_peer *p, uint32_t size, uint32_t rank)
{
	struct wire_group g = raw_group_of(GROUP_BEGIN, 1);

	g.size = LITTLE_32(size);
	g.rank = LITTLE_32(rank);
	raw_group_say(p, g, NULL, 0);
}

void raw_group_found(struct raw_peer *p, uint32_t size, uint32_t rank)
{
	raw_group_await(p, GROUP_JOIN);
	raw_group_begin(p, size, rank);
}
