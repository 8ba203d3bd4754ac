/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that lies on the control socket, about areas for loans above all, or lends what is in
 * none: its channel ends with the violation's name, and an honest peer works on.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/offence.h"
#include "tests/lib/test.h"

#define LOANS (1u << 20)

static unsigned char bytes[4096];

/* ---- loans ---- */

static void return_no_area(struct raw_peer *p)
{
	raw_post(p, WIRE_LOAN_DONE, 0, 0, 3, NULL, 0);
}

static void loan(struct raw_peer *p, uint8_t opcode, uint64_t seq, struct wire_loan l)
{
	l.ready = LITTLE_64(l.ready);
	l.capacity = LITTLE_64(l.capacity);
	l.area = LITTLE_32(l.area);
	l.final = LITTLE_32(l.final);
	raw_post(p, opcode, seq, wire_route(1, 0), 0, &l, sizeof(l));
}

static void lend_no_area(struct raw_peer *p)
{
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 10, 9, 1});
}

static int sealed_memory(size_t size)
{
	int fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
		      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
	      "no memory");
	return fd;
}

static void offer_area(struct raw_peer *p, uint32_t id, uint64_t size, int fd)
{
	struct wire_area area = {.area = LITTLE_32(id), .size = LITTLE_64(size)};

	(void)raw_say_packet(p->fd, WIRE_AREA, &area, sizeof(area), fd);
	if (fd >= 0)
		close(fd);
}

static void lend_more_than_area(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65537, 0, 0});
}

static void lend_twice(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 0});
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 0});
}

static void lend_beyond_capacity(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){65536, 10, 0, 0});
}

static void lend_less_again(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){1000, 65536, 0, 0});
	loan(p, WIRE_LOAN_MORE, p->sent, (struct wire_loan){999, 65536, 0, 0});
}

/* So much would not be there. */
static void lend_a_larger_one(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){1000, 65536, 0, 0});
	loan(p, WIRE_LOAN_MORE, p->sent, (struct wire_loan){131072, 131072, 0, 0});
}

static void lend_more_of_nothing(struct raw_peer *p)
{
	loan(p, WIRE_LOAN_MORE, p->sent + 1, (struct wire_loan){10, 10, 0, 0});
}

static void lend_more_of_packets(struct raw_peer *p)
{
	static const unsigned char first[8192];

	raw_post(p, WIRE_SEND_FIRST, ++p->sent, wire_route(1, 0), wire_extent(20000, 0), first,
		 sizeof(first));
	loan(p, WIRE_LOAN_MORE, p->sent, (struct wire_loan){10000, 20000, 0, 0});
}

static void lend_more_or_less(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 2});
}

/* Here it is mapped. */
static void copy_an_area(struct raw_peer *p)
{
	raw_post(p, WIRE_LOAN_AREA, 0, 0, 65536, NULL, 0);
}

static void copy_bytes(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(65536));
	raw_post(p, WIRE_LOAN_BYTES, 0, 0, 0, bytes, 64);
}

static void half_a_loan(struct raw_peer *p)
{
	raw_post(p, WIRE_LOAN, ++p->sent, wire_route(1, 0), 0, bytes, 12);
}

static void area_too_large(struct raw_peer *p)
{
	offer_area(p, 0, 2 * LOANS, sealed_memory(2 * LOANS));
}

static void areas_too_many(struct raw_peer *p)
{
	for (uint32_t i = 0; i < 3; i++)
		offer_area(p, i, LOANS / 2, sealed_memory(LOANS / 2));
}

static void area_again(struct raw_peer *p)
{
	for (int i = 0; i < 2; i++)
		offer_area(p, 4, 65536, sealed_memory(65536));
}

static void area_unsealed(struct raw_peer *p)
{
	int fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, 65536) == 0, "no memory");
	offer_area(p, 0, 65536, fd);
}

static void area_smaller_than_said(struct raw_peer *p)
{
	offer_area(p, 0, 65536, sealed_memory(4096));
}

static void half_an_area(struct raw_peer *p)
{
	struct wire_area area = {.size = LITTLE_64(65536)};
	int fd = sealed_memory(65536);

	(void)raw_say_packet(p->fd, WIRE_AREA, &area, sizeof(area) - 8, fd);
	close(fd);
}

static void area_without_memory(struct raw_peer *p)
{
	offer_area(p, 0, 65536, -1);
}

/* ---- what is lent to it ---- */

#define ONLY_OPEN 1 /* the victim's loan, of area 0: not sent yet */

static void come_for_a_loan(struct raw_peer *p, const char *at)
{
	struct wire_area area;
	int fd;

	raw_begin(p, raw_connect(at));
	raw_steps(p, RAW_HELLO, RAW_UP);
	CHECK(raw_hear(p->fd, &area, sizeof(area), &fd) == sizeof(area) && !area.area && fd >= 0,
	      "no area was offered");
	close(fd);
}

static int64_t lend(slmpm_peer peer, const struct offence *o)
{
	static uint64_t borrower;
	void *buf;

	if (borrower != peer.id) {
		borrower = peer.id;
		OK(slmpm_loan(peer, 1, LOANS / 2, &buf, PATIENCE));
		if (o->note != ONLY_OPEN)
			OK(slmpm_commit(peer, buf, LOANS / 2, NULL));
	}
	return slmpm_recv(peer, 1, &buf, sizeof(buf), NULL, 5);
}

static const struct trial trial_lent = {.come = come_for_a_loan, .inspect = lend};

static void return_twice(struct raw_peer *p)
{
	raw_await_packet(p); /* the loan */
	raw_post(p, WIRE_LOAN_DONE, 0, 0, 0, NULL, 0);
	raw_post(p, WIRE_LOAN_DONE, 0, 0, 0, NULL, 0);
}

static void return_too_early(struct raw_peer *p)
{
	raw_post(p, WIRE_LOAN_DONE, 0, 0, 0, NULL, 0);
}

static const struct offence returns[] = {
	{"R8", "returns an area twice", return_twice, "return of an area", 0},
	{"R8", "returns it before it is lent", return_too_early, "return of an area", ONLY_OPEN},
};

/* ---- the control socket ---- */

static void hello_again(struct raw_peer *p)
{
	raw_say_packet(p->fd, WIRE_HELLO, &p->hello, sizeof(p->hello), -1);
}

static void another_round(struct raw_peer *p)
{
	raw_say_round(p, 3, bytes, 8, -1);
}

static void noise(struct raw_peer *p)
{
	raw_say(p->fd, "some noise", 10, NULL, 0);
}

static void too_many_descriptors(struct raw_peer *p)
{
	int fds[50];

	for (int i = 0; i < 50; i++)
		fds[i] = p->own.fd;
	raw_say(p->fd, "b", 1, fds, 50);
}

static void bell_with_descriptor(struct raw_peer *p)
{
	raw_say(p->fd, "b", 1, &p->own.fd, 1);
}

static void bye_with_descriptor(struct raw_peer *p)
{
	struct wire_bye bye = {.reason = "I go"};

	raw_say_packet(p->fd, WIRE_BYE, &bye, sizeof(bye), p->own.fd);
}

static void half_a_bye(struct raw_peer *p)
{
	struct wire_bye bye = {.reason = "I go"};

	raw_say_packet(p->fd, WIRE_BYE, &bye, sizeof(bye) / 2, -1);
}

/* Looked at by the control connection, or in the middle of the loan. */
static void lend_without_memory(struct raw_peer *p)
{
	offer_area(p, 0, 65536, -1);
	loan(p, WIRE_LOAN, ++p->sent, (struct wire_loan){10, 65536, 0, 0});
}

static const struct offence offences[] = {
	{"R5", "half a loan", half_a_loan, "length of a loan", 0},
	{"R8", "returns no area", return_no_area, "return of an area", 0},
	{"R8", "lends an unknown area", lend_no_area, "area of a loan", 0},
	{"R8", "lends more than the area", lend_more_than_area, "area of a loan", 0},
	{"R8", "lends an area twice", lend_twice, "area of a loan", 0},
	{"R5", "lends beyond its capacity", lend_beyond_capacity, "loan", 0},
	{"R5", "takes lent bytes back", lend_less_again, "continuation of a loan", 0},
	{"R5", "lends more than it said", lend_a_larger_one, "continuation of a loan", 0},
	{"R8", "lends more of nothing", lend_more_of_nothing, "continuation of a loan", 0},
	{"R8", "lends more of packets", lend_more_of_packets, "continuation of a loan", 0},
	{"R5", "an end of no kind", lend_more_or_less, "loan", 0},
	{"R8", "copies an area", copy_an_area, "area of a loan", 0},
	{"R8", "copies into an area", copy_bytes, "bytes of a loan", 0},
	{"R10", "an area too large", area_too_large, "offered area", 0},
	{"R10", "areas too many", areas_too_many, "offered area", 0},
	{"R10", "an area again", area_again, "offered area", 0},
	{"R10", "descriptors too many", too_many_descriptors, "control packet", 0},
	{"S1", "a bell with a descriptor", bell_with_descriptor, "control packet", 0},
	{"S1", "a goodbye with a descriptor", bye_with_descriptor, "control packet", 0},
	{"S7", "half a goodbye", half_a_bye, "control packet", 0},
	{"S1", "lends without memory", lend_without_memory, "area", 0},
	{"S3", "an area that can shrink", area_unsealed, "offered area", 0},
	{"S4", "an area too small", area_smaller_than_said, "offered area", 0},
	{"S7", "half an area", half_an_area, "offer of an area", 0},
	{"S1", "an area without memory", area_without_memory, "offer of an area", 0},
	{"S7", "hello again", hello_again, "control packet out of turn", 0},
	{"S7", "another round", another_round, "round of a secondary link", 0},
	{"S7", "noise on the socket", noise, "control packet", 0},
};

int main(void)
{
	struct victim v;

	setenv("SLMPM_LOAN_MAX", "1m", 1);
	victim_begin(&v, "hostile-area");
	SURVIVE(&v, &trial_legal, offences);
	SURVIVE(&v, &trial_lent, returns);
	victim_end(&v);
	return 0;
}
