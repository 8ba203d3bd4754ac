/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* Rings offered in the handshake that are none, or whose memory could be changed under the
 * reader. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/liar.h"

/* The offer, with the memory of FD. */
static void offer(struct raw_peer *p, int fd)
{
	raw_steps(p, RAW_HELLO, RAW_NONCE);
	raw_say_round(p, 0, &p->offer, sizeof(p->offer), fd);
}

static void offer_nothing(struct raw_peer *p)
{
	offer(p, -1);
}

static void offer_twice(struct raw_peer *p)
{
	struct wire_round round = {.blob_length = LITTLE_32(sizeof(p->offer))};
	int fds[2] = {p->own.fd, p->own.fd};

	raw_steps(p, RAW_HELLO, RAW_NONCE);
	memcpy(round.blob, &p->offer, sizeof(p->offer));
	round.head = (struct wire_control_head){LITTLE_32(WIRE_ROUND), LITTLE_32(sizeof(round))};
	raw_say(p->fd, &round, sizeof(round), fds, 2);
}

static int memory(size_t size, unsigned flags, int seals)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | flags);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "no memory");
	CHECK(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0, "no seals");
	return fd;
}

#define RIGHT_SIZE (RING_SEGMENTS_OFFSET + (size_t)RAW_SEGMENTS * RAW_SEGMENT_SIZE)
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static void offer_unsealed(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, 0));
}

static void offer_growable(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, F_SEAL_SHRINK));
}

static void offer_too_small(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE - 4096, MFD_ALLOW_SEALING, SIZE_SEALS));
}

static void offer_too_large(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE + 1, MFD_ALLOW_SEALING, SIZE_SEALS));
}

static void offer_unwritable(struct raw_peer *p)
{
	offer(p, memory(RIGHT_SIZE, MFD_ALLOW_SEALING, SIZE_SEALS | F_SEAL_WRITE));
}

static void offer_pipe(struct raw_peer *p)
{
	int fds[2];

	CHECK(pipe(fds) == 0, "no pipe");
	offer(p, fds[0]);
}

static void offer_socket(struct raw_peer *p)
{
	offer(p, p->fd);
}

static void offer_shape(struct raw_peer *p, uint32_t segments, uint32_t size)
{
	p->offer.segments = LITTLE_32(segments);
	p->offer.segment_size = LITTLE_32(size);
	offer(p, p->own.fd);
}

static void offer_odd_ring(struct raw_peer *p)
{
	offer_shape(p, 1000, 64);
}

static void offer_no_ring(struct raw_peer *p)
{
	offer_shape(p, 0, 0);
}

static void offer_endless_ring(struct raw_peer *p)
{
	offer_shape(p, 1u << 31, 1u << 31);
}

/* Of which a packet holds less than what the library says in one. */
static void offer_tiny_ring(struct raw_peer *p)
{
	struct ring_shape tiny = {2, 64};

	p->offer.segments = LITTLE_32(tiny.segments);
	p->offer.segment_size = LITTLE_32(tiny.segment_size);
	mapping_destroy(&p->own);
	CHECK(mapping_create(&p->own, "raw-ring", ring_size(&tiny)) == 0, "no memory to offer");
	raw_steps(p, RAW_HELLO, RAW_MAPPED);
	raw_say_round(p, 2, &p->offered.epoch, 8, -1);
}

static void offer_unknown_bits(struct raw_peer *p)
{
	p->offer.zero = 1;
	offer(p, p->own.fd);
}

static void offer_no_answer(struct raw_peer *p)
{
	p->offer.membarrier = LITTLE_32(2);
	offer(p, p->own.fd);
}

static const struct lie lies[] = {
	{"no memory", offer_nothing, SLMPM_EPROTO, "ring"},
	{"two memories", offer_twice, SLMPM_EPROTO, "malformed"},
	{"unsealed memory", offer_unsealed, SLMPM_EACCES, "ring"},
	{"memory that can grow", offer_growable, SLMPM_EACCES, "ring"},
	{"too little memory", offer_too_small, SLMPM_EPROTO, "ring"},
	{"a byte too much", offer_too_large, SLMPM_EPROTO, "ring"},
	{"memory nobody can write", offer_unwritable, SLMPM_EACCES, "ring"},
	{"a pipe for memory", offer_pipe, SLMPM_EACCES, "ring"},
	{"a socket for memory", offer_socket, SLMPM_EACCES, "ring"},
	{"a ring of 1000", offer_odd_ring, SLMPM_EPROTO, "ring"},
	{"a ring of none", offer_no_ring, SLMPM_EPROTO, "ring"},
	{"a ring of 2^62", offer_endless_ring, SLMPM_EPROTO, "ring"},
	{"a ring of two", offer_tiny_ring, SLMPM_EPROTO, "size of a ring"},
	{"neither yes nor no", offer_no_answer, SLMPM_EPROTO, "ring"},
	{"unknown bits in the offer", offer_unknown_bits, SLMPM_EPROTO, "ring"},
};

int main(int argc, char **argv)
{
	return liar_main(argc, argv, lies, sizeof(lies) / sizeof(*lies));
}
