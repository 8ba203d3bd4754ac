/* SPDX-License-Identifier: BSD-3-Clause */
/* Each side makes the pipe that it reads, and gives its other end away. */
#include "tests/fabrics/pipe/pipe.h"

#include "fabrics/publication.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define HELLO_MAGIC  UINT32_C(0x65706970)
#define STAGED_SWAPS 256
#define PIPE_LARGE   (1 << 20) /* what anybody may have */

/* Of the first round; in the second each side says the other one's identity. */
struct hello {
	uint32_t magic, segments, segment_size, zero;
	uint64_t start, identity;
};

/*
 * A description of its own for the pipe, which the other holder of FD cannot make block. Readable,
 * too: so that a write to a pipe that nobody reads raises no SIGPIPE. -EPROTO: FD is no pipe's
 * writing end.
 */
static int open_again(int fd)
{
	char path[32], name[6];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, name, sizeof(name)) != sizeof(name) ||
	    memcmp(name, "pipe:[", sizeof(name)) || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
		return -EPROTO;
	again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- rings ---- */

static uint32_t shift_of(uint32_t size)
{
	return (uint32_t)__builtin_ctz(size);
}

static uint32_t payload_max(const struct ring_shape *shape)
{
	uint64_t longest = (uint64_t)ring_packet_max(shape) << shift_of(shape->segment_size);

	return longest < FRAME_PAYLOAD ? (uint32_t)longest : FRAME_PAYLOAD;
}

static size_t ring_bytes(const struct ring_shape *shape)
{
	return ((size_t)shape->segments << shift_of(shape->segment_size)) + FRAME_PAYLOAD;
}

static size_t bits_bytes(const struct ring_shape *shape)
{
	return (size_t)(shape->segments + 63) / 64 * 8;
}

/* All that is short, one that was built, and access words. */
static size_t stage_bytes(const struct ring_shape *peer)
{
	return peer->segments * FRAME_SMALL + PIPE_BUF + STAGED_SWAPS * sizeof(struct frame);
}

static struct ring_shape shape_of(const struct fabric_config *config)
{
	return (struct ring_shape){config->segments, config->segment_size};
}

/* ---- the domain ---- */

int pipe_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	int fds[2], again, rc = 0;
	char byte = 1;

	*caps = (struct fabric_caps){
		.ops = 1 << FABRIC_SEND | 1 << FABRIC_FLUSH,
		.later = 1 << FABRIC_WRITE | 1 << FABRIC_READ | 1 << FABRIC_ATOMIC,
		.memory = FABRIC_MEMORY_HOST,
		.message_max = FRAME_PAYLOAD,
		.packet_best = FRAME_PAYLOAD,
		.commit = FABRIC_COMMIT_STREAM,
	};
	if (config) {
		struct ring_shape shape = shape_of(config);
		caps->link_memory = ring_bytes(&shape) + bits_bytes(&shape) + stage_bytes(&shape) +
				    shape.segments * sizeof(struct frame);
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		rc = -errno;
		snprintf(caps->why_not, sizeof(caps->why_not), "no pipe: %s", strerror(-rc));
		return rc;
	}
	again = open_again(fds[1]);
	if (again < 0 || write(again, &byte, 1) != 1 || read(fds[0], &byte, 1) != 1) {
		rc = again < 0 ? again : -EIO;
		snprintf(caps->why_not, sizeof(caps->why_not),
			 "a pipe cannot be opened by /proc: %s", strerror(-rc));
	}
	close_fd(&again);
	close(fds[0]);
	close(fds[1]);
	return rc;
}

int pipe_open(struct fabric_domain *domain)
{
	domain->fd = epoll_create1(EPOLL_CLOEXEC);
	return domain->fd < 0 ? -errno : 0;
}

void pipe_close(struct fabric_domain *domain)
{
	close_fd(&domain->fd);
}

/* ---- connecting ---- */

static int make_ring(struct pipe_link *l)
{
	const struct fabric_config *config = &l->pub.domain->config;
	struct ring_setup setup = {0};
	uint32_t longest;

	l->shape = shape_of(config);
	if (ring_shape_check(&l->shape))
		return -EINVAL;
	l->shift = shift_of(l->shape.segment_size);
	l->pub.payload_max_in = payload_max(&l->shape);
	longest = (l->pub.payload_max_in + l->shape.segment_size - 1) >> l->shift;
	setup.shape = l->shape;
	publication_set(&setup, longest, config);
	l->threshold = setup.threshold;
	l->batch = setup.batch;
	l->produced = l->consumed_seen = config->start;
	l->ring = aligned_alloc(64, (ring_bytes(&l->shape) + 63) & ~(size_t)63);
	l->released = calloc(1, bits_bytes(&l->shape));
	l->heads = calloc(l->shape.segments, sizeof(*l->heads));
	l->built = aligned_alloc(64, (FRAME_PAYLOAD + 63) & ~63u);
	return l->ring && l->released && l->heads && l->built ? 0 : -ENOMEM;
}

static int begin(struct pipe_link *l)
{
	struct pipe_domain *d = pipe_domain(l);
	int fds[2];

	l->open = true;
	l->in = l->in_writer = l->out = -1;
	l->another = d->links;
	d->links = l;
	if (getrandom(&l->identity, sizeof(l->identity), 0) != sizeof(l->identity) ||
	    pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	l->in = fds[0];
	l->in_writer = fds[1];
	/* With less the pipe is full before the ring is: slower, no more. */
	(void)fcntl(l->in, F_SETPIPE_SZ, PIPE_LARGE);
	return make_ring(l);
}

int pipe_address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct pipe_link *l = (struct pipe_link *)link;
	const struct fabric_config *config = &link->domain->config;
	struct hello h = {.magic = LITTLE_32(HELLO_MAGIC),
			  .segments = LITTLE_32(config->segments),
			  .segment_size = LITTLE_32(config->segment_size),
			  .start = LITTLE_64(config->start)};
	int rc;

	if (round) {
		/* The peer has it by now. */
		close_fd(&l->in_writer);
		memcpy(out->bytes, &l->of_peer, sizeof(l->of_peer));
		out->length = sizeof(l->of_peer);
		return 0;
	}
	rc = begin(l);
	if (rc)
		return rc;
	h.identity = LITTLE_64(l->identity);
	memcpy(out->bytes, &h, sizeof(h));
	out->length = sizeof(h);
	out->fd = l->in_writer;
	return 0;
}

static int take_peer(struct pipe_link *l, struct fabric_blob *in)
{
	struct hello h;

	if (PEER_FAULT(in->length != sizeof(h) || in->fd < 0))
		return pipe_violates(l, "blob");
	memcpy(&h, in->bytes, sizeof(h));
	l->peer = (struct ring_shape){LITTLE_32(h.segments), LITTLE_32(h.segment_size)};
	if (PEER_FAULT(LITTLE_32(h.magic) != HELLO_MAGIC || h.zero || ring_shape_check(&l->peer)))
		return pipe_violates(l, "hello");
	l->of_peer = h.identity;
	l->out_shift = shift_of(l->peer.segment_size);
	l->pub.payload_max = payload_max(&l->peer);
	l->pub.start_in = l->total = l->read = l->consumed = l->published = LITTLE_64(h.start);
	l->out = open_again(in->fd);
	if (PEER_FAULT(l->out == -EPROTO))
		return pipe_violates(l, "descriptor");
	if (l->out < 0)
		return l->out;
	/* A pipe cannot block; what is left is closed in its turn, few at a time. */
	close_fd(&in->fd);
	l->stage_size = stage_bytes(&l->peer);
	l->stage = malloc(l->stage_size);
	return l->stage ? 1 : -ENOMEM;
}

int pipe_connect(struct fabric_link *link, int round, struct fabric_blob *in)
{
	struct pipe_link *l = (struct pipe_link *)link;
	struct epoll_event ready = {.events = EPOLLIN};

	if (!round)
		return take_peer(l, in);
	if (PEER_FAULT(in->length != sizeof(l->identity) || in->fd >= 0 ||
		       memcmp(in->bytes, &(uint64_t){LITTLE_64(l->identity)}, sizeof(l->identity))))
		return pipe_violates(l, "identity");
	if (epoll_ctl(link->domain->fd, EPOLL_CTL_ADD, l->in, &ready))
		return -errno;
	ready.events = 0;
	if (epoll_ctl(link->domain->fd, EPOLL_CTL_ADD, l->out, &ready))
		return -errno;
	l->peer_access = (struct fabric_memory){
		.size = FABRIC_ACCESS_WORDS, .ops = 1 << FABRIC_ATOMIC, .writable = true};
	link->peer_access = &l->peer_access;
	link->access = l->access;
	return 0;
}

void pipe_watch(struct pipe_link *l)
{
	struct epoll_event ready = {.events = l->choked ? EPOLLOUT : 0};

	if (l->choked == l->watched || l->ended)
		return;
	if (!epoll_ctl(l->pub.domain->fd, EPOLL_CTL_MOD, l->out, &ready))
		l->watched = l->choked;
}

void pipe_unwatch(struct pipe_link *l)
{
	epoll_ctl(l->pub.domain->fd, EPOLL_CTL_DEL, l->in, NULL);
	if (l->out >= 0)
		epoll_ctl(l->pub.domain->fd, EPOLL_CTL_DEL, l->out, NULL);
}

void pipe_end(struct pipe_link *l)
{
	l->ended = true;
	close_fd(&l->out);
}

void pipe_disconnect(struct fabric_link *link)
{
	struct pipe_link *l = (struct pipe_link *)link;

	if (!l->open)
		return;
	l->open = false;
	for (struct pipe_link **p = &pipe_domain(l)->links; *p; p = &(*p)->another)
		if (*p == l) {
			*p = l->another;
			break;
		}
	/* A set that a parent has, too, forgets what is closed when that closes it. */
	if (!link->domain->forked)
		pipe_unwatch(l);
	close_fd(&l->in);
	close_fd(&l->in_writer);
	close_fd(&l->out);
	free(l->ring);
	free(l->heads);
	free(l->built);
	free(l->released);
	free(l->stage);
	free(l->grants);
}
