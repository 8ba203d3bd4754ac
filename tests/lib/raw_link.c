/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of a link to be, written from the description of the wire. */
#include "tests/lib/raw_link.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "tests/lib/actor.h"

struct mapping raw_link_memory;

struct wire_round raw_link_about(uint32_t round, unsigned link, unsigned life)
{
	return (struct wire_round){.round = LITTLE_32(round),
				   .link = LITTLE_16((uint16_t)link),
				   .life = LITTLE_16((uint16_t)life),
				   .name = "shm"};
}

void raw_link_blob(struct wire_round *w, const void *blob, uint32_t n)
{
	w->blob_length = LITTLE_32(n);
	memcpy(w->blob, blob, n);
}

void raw_link_say(struct raw_peer *p, struct wire_round *w, int fd)
{
	(void)raw_say_packet(p->fd, WIRE_ROUND, w, sizeof(*w), fd);
}

void raw_link_say_plain(struct raw_peer *p, uint32_t round, unsigned link, unsigned life)
{
	struct wire_round w = raw_link_about(round, link, life);

	raw_link_say(p, &w, -1);
}

struct wire_round raw_link_ring(struct raw_peer *p, unsigned link, unsigned life)
{
	struct ring_shape shape = {RAW_SEGMENTS, RAW_SEGMENT_SIZE};
	struct wire_round w = raw_link_about(0, link, life);

	if (!raw_link_memory.base)
		CHECK(mapping_create(&raw_link_memory, "raw-link", ring_size(&shape)) == 0,
		      "no memory");
	raw_link_blob(&w, &p->offer, sizeof(p->offer));
	return w;
}

void raw_link_begin(struct raw_peer *p, unsigned link, unsigned life)
{
	struct wire_round w = raw_link_ring(p, link, life);

	raw_link_say(p, &w, raw_link_memory.fd);
}

/* With what it brings in *PASSED, -1 nothing. */
static struct wire_round hear(struct raw_peer *p, int *passed)
{
	union {
		struct wire_round link;
		unsigned char bytes[512];
	} packet;

	do {
		*passed = -1;
		CHECK(raw_hear(p->fd, &packet, sizeof(packet), passed) > 0, "it has ended");
	} while (LITTLE_32(packet.link.head.type) != WIRE_ROUND);
	return packet.link;
}

struct wire_round raw_link_hear(struct raw_peer *p)
{
	int passed;
	struct wire_round w = hear(p, &passed);

	if (passed >= 0)
		close(passed);
	return w;
}

struct wire_round raw_link_hear_round(struct raw_peer *p, uint32_t round)
{
	struct wire_round w = raw_link_hear(p);

	CHECK(LITTLE_32(w.round) == round, "round %u, not %u: %.100s", LITTLE_32(w.round), round,
	      (const char *)w.blob);
	return w;
}

void raw_link_refusal(const struct wire_round *w, unsigned link, unsigned life, const char *why)
{
	char text[sizeof(w->blob) + 1] = "";

	memcpy(text, w->blob, sizeof(w->blob));
	CHECK(LITTLE_16(w->link) == link && LITTLE_16(w->life) == life && strstr(text, why),
	      "link %u, life %u: \"%s\"", LITTLE_16(w->link), LITTLE_16(w->life), text);
}

void raw_link_refused(struct raw_peer *p, unsigned link, unsigned life, const char *why)
{
	struct wire_round w;

	do
		w = raw_link_hear(p);
	while (LITTLE_32(w.round) != WIRE_ROUND_NOT);
	raw_link_refusal(&w, link, life, why);
}

#define MOST 256 /* packets that lie in a socket */

/* All in one call: whoever answers finds the socket empty only behind it. */
unsigned raw_link_unread(struct raw_peer *p)
{
	static char space[MOST][CMSG_SPACE(sizeof(int))];
	static struct wire_round packets[MOST];
	static struct iovec parts[MOST];
	static struct mmsghdr all[MOST];
	unsigned rings = 0;
	int n;

	for (int i = 0; i < MOST; i++) {
		parts[i] = (struct iovec){&packets[i], sizeof(packets[i])};
		all[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
						 .msg_iovlen = 1,
						 .msg_control = space[i],
						 .msg_controllen = sizeof(space[i])};
	}
	n = recvmmsg(p->fd, all, MOST, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	for (int i = 0; i < n; i++) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&all[i].msg_hdr);

		rings += c != NULL;
		if (c)
			close(*(int *)(void *)CMSG_DATA(c));
	}
	return rings;
}

void raw_link_await_read(struct raw_peer *p)
{
	int64_t until = actor_now_ms() + PATIENCE;
	int left;

	while (ioctl(p->fd, SIOCOUTQ, &left) == 0 && left) {
		CHECK(actor_now_ms() < until, "it does not read");
		(void)poll(NULL, 0, 1);
	}
}

unsigned raw_link_answers(struct raw_peer *p, unsigned life, unsigned *refused)
{
	struct wire_round last = raw_link_ring(p, 1, life), w;
	unsigned rings = 0;
	int passed;

	*refused = 0;
	memcpy(last.name, "none", 5); /* refused in any case */
	raw_link_say(p, &last, raw_link_memory.fd);
	do {
		w = hear(p, &passed);
		if (passed >= 0)
			close(passed);
		rings += passed >= 0;
		*refused += LITTLE_32(w.round) == WIRE_ROUND_NOT &&
			    strstr((const char *)w.blob, "too many") != NULL;
	} while (LITTLE_32(w.round) != WIRE_ROUND_NOT || LITTLE_16(w.life) != life);
	return rings;
}

void raw_link_go_on(struct raw_peer *p)
{
	raw_send(p, 1, "still", 5);
	raw_ring_bell(p);
	raw_post(p, WIRE_OPCODES, 0, 0, 0, NULL, 0);
}

void raw_link_echo(struct raw_peer *p, uint32_t round, uint64_t epoch, int fd)
{
	struct wire_round w = raw_link_about(round, 1, 0);

	raw_link_blob(&w, &epoch, sizeof(epoch));
	raw_link_say(p, &w, fd);
}

uint64_t raw_link_epoch(const struct wire_round *w)
{
	struct raw_offer offer;

	memcpy(&offer, w->blob, sizeof(offer));
	return offer.epoch;
}

void raw_link_join(struct raw_peer *p)
{
	struct wire_round w;

	raw_link_begin(p, 1, 0);
	w = raw_link_hear_round(p, 0);
	raw_link_finish(p, raw_link_epoch(&w));
}

void raw_link_finish(struct raw_peer *p, uint64_t epoch)
{
	(void)raw_link_hear_round(p, 1);
	CHECK(mapping_close_seals(&raw_link_memory) == 0, "cannot seal");
	raw_link_echo(p, 1, epoch, -1);
	(void)raw_link_hear_round(p, 2);
	raw_link_echo(p, 2, epoch, -1);
}
