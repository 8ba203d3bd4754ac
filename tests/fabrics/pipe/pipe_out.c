/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into the pipe: at once, staged, or when there is room for them. */
#include "tests/fabrics/pipe/pipe.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int pipe_write(struct pipe_link *l, const struct frame *f, const void *payload)
{
	uint32_t length = LITTLE_32(f->length);
	struct iovec io[2] = {{(void *)(uintptr_t)f, sizeof(*f)},
			      {(void *)(uintptr_t)payload, length}};
	ssize_t n = writev(l->out, io, length ? 2 : 1);

	if (n == (ssize_t)(sizeof(*f) + length)) {
		l->pub.counts.remote_writes++;
		return 1;
	}
	if (n < 0 && errno == EFAULT)
		return -EFAULT;
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		l->choked = true;
		return 0;
	}
	l->pub.lost = "the pipe takes nothing any more";
	l->pub.fails = true;
	return l->dead = -EPIPE;
}

/* Frames of at most FRAME_SMALL always find room, for the ring that they go to has no more
 * segments; and one that was built. */
static bool stage_frame(struct pipe_link *l, const struct frame *f, const void *payload)
{
	uint32_t length = LITTLE_32(f->length);
	size_t size = sizeof(*f) + length;

	if (l->stage_head && l->stage_tail + size > l->stage_size) {
		memmove(l->stage, l->stage + l->stage_head, l->stage_tail - l->stage_head);
		l->stage_tail -= l->stage_head;
		l->stage_head = 0;
	}
	if (l->stage_tail + size > l->stage_size)
		return false;
	memcpy(l->stage + l->stage_tail, f, sizeof(*f));
	if (length)
		memcpy(l->stage + l->stage_tail + sizeof(*f), payload, length);
	l->stage_tail += size;
	l->pub.lags += size;
	return true;
}

static int send_staged(struct pipe_link *l)
{
	struct frame f;
	size_t size;
	int rc;

	while (l->stage_head != l->stage_tail) {
		memcpy(&f, l->stage + l->stage_head, sizeof(f));
		size = sizeof(f) + LITTLE_32(f.length);
		rc = pipe_write(l, &f, l->stage + l->stage_head + sizeof(f));
		if (rc <= 0)
			return rc;
		l->stage_head += size;
		l->pub.lags -= size;
		l->pub.left += size;
	}
	l->stage_head = l->stage_tail = 0;
	return 1;
}

int pipe_send(struct pipe_link *l, const struct frame *f, const void *payload, bool may)
{
	int rc = send_staged(l);

	if (rc > 0)
		rc = pipe_write(l, f, payload);
	if (rc > 0) {
		l->pub.left += sizeof(*f) + LITTLE_32(f->length);
		l->refused = false;
	}
	if (rc)
		return rc;
	if (may && stage_frame(l, f, payload))
		return 0;
	l->refused = true;
	return -EAGAIN;
}

static int send_credit(struct pipe_link *l)
{
	struct frame f = frame_of(FRAME_CREDIT, 0, 0, l->consumed, 0, 0);
	int rc = pipe_write(l, &f, NULL);

	if (rc > 0) {
		l->published = l->consumed;
		l->credit_due = false;
	}
	return rc;
}

void pipe_publish(struct pipe_link *l, enum ring_cause cause)
{
	if (l->ended || l->dead)
		return;
	if (!l->credit_due)
		l->pub.counts.publications[cause]++;
	l->credit_due = true;
	send_credit(l);
	if (l->choked && !l->watched && pipe_domain(l)->armed)
		l->pub.domain->roused = true;
}

/* A frame of each in its turn, as long as there is room. */
static void send_in_turn(struct pipe_link *l, uint64_t *which,
			 int (*step)(struct pipe_link *, unsigned))
{
	while (*which) {
		uint64_t later = *which & ~UINT64_C(0) << l->turn % FABRIC_OPS;
		unsigned i = (unsigned)__builtin_ctzll(later ? later : *which);

		if (step(l, i) <= 0)
			return;
		l->turn = i + 1;
	}
}

void pipe_pump(struct pipe_link *l)
{
	l->choked = false;
	if (l->dead || l->ended || send_staged(l) <= 0 || (l->credit_due && send_credit(l) <= 0))
		return;
	l->passed = l->refused && !l->passed;
	if (l->passed) {
		/* The post that was refused is tried again first, if at all. */
		l->choked = l->to_answer || l->to_send;
		return;
	}
	send_in_turn(l, &l->to_answer, pipe_answer);
	if (!l->to_answer)
		send_in_turn(l, &l->to_send, pipe_operate);
}
