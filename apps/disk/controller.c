/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves one host: a slot takes a request, its drive's data come or go through io_uring, and either
 * an RDMA Write brings them to the host or a reply tells the end. All ends come in one completion
 * queue; asleep it waits for that and for the ring of io_uring.
 */
#include "apps/disk/controller.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 16

struct slot {
	struct disk_request request;
	struct disk_reply reply;
	unsigned char head[DISK_REQUEST_SIZE], tail[DISK_REPLY_SIZE];
	char *data;
	struct open_key *key;
	uint64_t offset;   /* in the drive */
	uint32_t len;      /* of the sectors */
	uint32_t there;    /* of these bytes, those that the drive has */
	uint32_t finished; /* of those, read or written so far */
};

struct controller {
	struct controller_options *options;
	slmpm_ctx ctx;
	slmpm_peer host;
	slmpm_cq cq;
	struct io *io;
	struct slot *slot;
	struct keys keys;
	int over; /* why serving ends */
};

static struct slmpm_how tell(struct controller *c, struct slot *s)
{
	return (struct slmpm_how){.size = sizeof(struct slmpm_how),
				  .cq = c->cq,
				  .cookie = (uint64_t)(s - c->slot),
				  .timeout_ms = -1};
}

static void must(struct controller *c, int64_t rc)
{
	if (rc < 0 && !c->over)
		c->over = (int)rc;
}

/* ---- a request's stations ---- */

static void listen_again(struct controller *c, struct slot *s)
{
	const struct slmpm_iov piece[] = {{s->head, sizeof(s->head)}, {s->data, DISK_MOST}};
	const struct slmpm_how how = tell(c, s);

	must(c, slmpm_recvv(c->host, DISK_STREAM_REQUEST, piece, 2, &how, NULL));
}

static void reply(struct controller *c, struct slot *s, enum disk_status status, const char *detail)
{
	const struct slmpm_how how = tell(c, s);
	const struct slmpm_iov piece = {s->tail, sizeof(s->tail)};

	s->reply.op = s->request.op;
	s->reply.tag = s->request.tag;
	s->reply.status = status;
	snprintf(s->reply.detail, sizeof(s->reply.detail), "%s", detail ? detail : "");
	disk_reply_pack(&s->reply, s->tail);
	must(c, slmpm_sendv(c->host, DISK_STREAM_REPLY, &piece, 1, &how, NULL));
}

/* The data go to the host's memory; their landing there completes the request. */
static void return_data(struct controller *c, struct slot *s)
{
	struct slmpm_how how = tell(c, s);
	int error = 0;

	memset(s->data + s->there, 0, s->len - s->there);
	s->key = keys_take(&c->keys, &s->request.key, &error);
	if (!s->key) {
		reply(c, s, DISK_KEY, slmpm_strerror(error));
		return;
	}
	how.flags = SLMPM_NOTIFY;
	how.imm = s->request.tag;
	error = slmpm_put(s->key->region, s->request.address, s->data, s->len, &how, NULL);
	if (error < 0) {
		keys_drop(s->key, error == -SLMPM_EACCES);
		reply(c, s, DISK_KEY, slmpm_strerror(error));
	}
}

static void begin_io(struct controller *c, struct slot *s)
{
	const struct drive *d = &c->options->drive[s->request.drive];
	enum io_op op = s->request.op == DISK_READ  ? IO_READ :
			s->request.op == DISK_WRITE ? IO_WRITE :
						      IO_SYNC;

	io_begin(c->io, op, d->fd, s->data + s->finished, s->there - s->finished,
		 s->offset + s->finished, s);
}

static void io_finished(struct controller *c, struct slot *s, int result)
{
	bool moves = s->request.op != DISK_SYNC;

	if (result == -EINTR || result == -EAGAIN) {
		begin_io(c, s);
		return;
	}
	if (result < 0) {
		reply(c, s, DISK_IO, strerror(-result));
		return;
	}
	if (moves && result == 0) { /* the file has become shorter since */
		reply(c, s, s->request.op == DISK_READ ? DISK_SHORT : DISK_IO, NULL);
		return;
	}
	s->finished += (uint32_t)result;
	if (moves && s->finished < s->there)
		begin_io(c, s);
	else if (s->request.op == DISK_READ)
		return_data(c, s);
	else
		reply(c, s, DISK_OK, NULL);
}

static void identify(struct controller *c, struct slot *s)
{
	const struct drive *d = &c->options->drive[s->request.drive];

	s->reply.info = (struct disk_info){.geometry = d->geometry,
					   .drives = c->options->drives,
					   .read_only = d->read_only,
					   .bytes = d->bytes};
	reply(c, s, DISK_OK, NULL);
}

static void take_request(struct controller *c, struct slot *s, const struct slmpm_done *done)
{
	struct disk_request *r = &s->request;
	enum disk_status status;
	const struct drive *d;
	uint64_t data;

	*r = (struct disk_request){0};
	s->reply = (struct disk_reply){0};
	if (done->len < sizeof(s->head) || !disk_request_unpack(r, s->head)) {
		reply(c, s, DISK_REQUEST, NULL);
		return;
	}
	if (r->drive >= c->options->drives) {
		reply(c, s, DISK_NO_DRIVE, NULL);
		return;
	}
	d = &c->options->drive[r->drive];
	s->there = s->finished = 0;
	if (r->op == DISK_IDENTIFY) {
		identify(c, s);
	} else if (r->op == DISK_SYNC) {
		begin_io(c, s);
	} else if ((status = drive_locate(d, r, &s->offset, &s->there)) != DISK_OK) {
		reply(c, s, status, d->path);
	} else {
		s->len = r->sectors * d->geometry.sector;
		data = done->len - sizeof(s->head);
		if (data != (r->op == DISK_WRITE ? s->len : 0))
			reply(c, s, DISK_LENGTH, NULL);
		else
			begin_io(c, s);
	}
}

/* ---- completions ---- */

static void put_finished(struct controller *c, struct slot *s, int status)
{
	keys_drop(s->key, status == -SLMPM_EACCES);
	if (status < 0)
		reply(c, s, DISK_KEY, slmpm_strerror(status));
	else
		listen_again(c, s);
}

static void complete(struct controller *c, const struct slmpm_done *done)
{
	struct slot *s = &c->slot[done->cookie];

	if (done->status == -SLMPM_EDEAD || done->status == -SLMPM_ECLOSED ||
	    done->status == -SLMPM_EPROTO)
		must(c, done->status);
	else if (done->op == SLMPM_OP_PUT)
		put_finished(c, s, done->status);
	else if (done->op == SLMPM_OP_RECV && done->status == -SLMPM_ETRUNC)
		take_request(c, s, done); /* its length tells */
	else if (done->status < 0)
		must(c, done->status);
	else if (done->op == SLMPM_OP_RECV)
		take_request(c, s, done);
	else
		listen_again(c, s);
}

static void sleep_until_work(struct controller *c)
{
	struct pollfd on[2] = {{.fd = slmpm_fd(c->ctx), .events = POLLIN},
			       {.fd = io_fd(c->io), .events = POLLIN}};

	if (slmpm_arm(c->ctx) == 0)
		poll(on, io_fd(c->io) >= 0 ? 2 : 1, -1);
}

static int serve(struct controller *c)
{
	struct slmpm_done done[BATCH];
	void *cookie;
	int n, result;
	bool moved;

	for (unsigned i = 0; i < c->options->depth; i++)
		listen_again(c, &c->slot[i]);
	while (!c->over) {
		n = slmpm_cq_poll(c->cq, done, BATCH);
		must(c, n);
		for (int i = 0; i < n; i++)
			complete(c, &done[i]);
		must(c, io_submit(c->io) < 0 ? -SLMPM_ESYSTEM : 0);
		moved = n > 0;
		while (io_next(c->io, &cookie, &result)) {
			io_finished(c, cookie, result);
			moved = true;
		}
		must(c, io_submit(c->io) < 0 ? -SLMPM_ESYSTEM : 0);
		if (!moved && !c->over)
			sleep_until_work(c);
	}
	return c->over;
}

/* ---- start and end ---- */

static int set_up(struct controller *c)
{
	unsigned depth = c->options->depth;

	c->io = io_open(depth, c->options->plain);
	c->slot = calloc(depth, sizeof(*c->slot));
	if (!c->io || !c->slot)
		return -1;
	for (unsigned i = 0; i < depth; i++)
		if (posix_memalign((void **)&c->slot[i].data, 4096, DISK_MOST))
			return -1;
	if (io_plain(c->io))
		fprintf(stderr, "disk_controller: without io_uring (%s): one request at a time\n",
			io_plain(c->io));
	return 0;
}

static void tear_down(struct controller *c)
{
	if (c->io)
		io_close(c->io);
	for (unsigned i = 0; c->slot && i < c->options->depth; i++)
		free(c->slot[i].data);
	free(c->slot);
}

int controller_run(struct controller_options *options)
{
	struct controller c = {.options = options};
	int rc = slmpm_parent(&c.host);

	if (rc == -SLMPM_ESTATE)
		return slmpm_perror("disk_controller: it is started by a host (see --list)");
	if (rc >= 0)
		rc = slmpm_default(&c.ctx);
	if (rc >= 0)
		rc = slmpm_cq_create(c.ctx, &c.cq);
	if (rc < 0)
		return slmpm_perror("disk_controller");
	if (set_up(&c)) {
		fprintf(stderr, "disk_controller: no memory for %u requests\n", options->depth);
		tear_down(&c);
		return 1;
	}
	c.keys.host = c.host;
	rc = serve(&c);
	slmpm_shut(c.ctx, 1000); /* the slots' memory is the library's until then */
	tear_down(&c);
	/* However the host ended, it knows; only what is wrong here is worth a word. */
	if (rc != -SLMPM_ECLOSED && rc != -SLMPM_EDEAD)
		fprintf(stderr, "disk_controller: %s\n", slmpm_strerror(rc));
	return rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD ? 0 : 1;
}
