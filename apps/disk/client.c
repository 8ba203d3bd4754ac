/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that happens ends in one completion queue: a request has been sent, its data have
 * landed, a reply has come.
 */
#include "apps/disk/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REPLIES  4 /* receives that are posted */
#define CLOSE_MS 10000

#define SPOILT 40 /* byte of a key: among the random ones */

enum { COOKIE_REPLY = DISK_WINDOW }; /* its receives follow the requests' numbers */

struct pending {
	struct disk_request request;
	unsigned char head[DISK_REQUEST_SIZE];
	bool used, sent, ended;
	uint32_t bytes;
	struct disk_result result;
};

struct disk_client {
	slmpm_ctx ctx;
	slmpm_peer peer;
	slmpm_cq cq;
	slmpm_mem mem;
	struct slmpm_key key;
	char *base;
	size_t size;
	bool foreign;
	unsigned in_flight;
	struct pending pending[DISK_WINDOW];
	unsigned char reply[REPLIES][DISK_REPLY_SIZE];
};

/* ---- what has happened ---- */

static int post_receive(struct disk_client *c, uint64_t i)
{
	const struct slmpm_iov piece = {c->reply[i], sizeof(c->reply[i])};
	const struct slmpm_how how = {
		.size = sizeof(how), .cq = c->cq, .cookie = COOKIE_REPLY + i, .timeout_ms = -1};

	return (int)slmpm_recvv(c->peer, DISK_STREAM_REPLY, &piece, 1, &how, NULL);
}

/* The request that TAG names; NULL: there is none, the controller made it up. */
static struct pending *find(struct disk_client *c, uint32_t tag)
{
	struct pending *p = &c->pending[tag % DISK_WINDOW];

	return tag < DISK_WINDOW && p->used && !p->ended ? p : NULL;
}

static int landed(struct disk_client *c, const struct slmpm_done *done)
{
	struct pending *p = find(c, done->imm);

	if (!p || p->request.op != DISK_READ || done->len != p->bytes ||
	    done->cookie != p->request.address)
		return -SLMPM_EPROTO;
	p->ended = true;
	p->result.bytes = p->bytes;
	return 0;
}

static int replied(struct disk_client *c, const struct slmpm_done *done)
{
	uint64_t i = done->cookie - COOKIE_REPLY;
	struct disk_reply reply;
	struct pending *p;

	if (done->status < 0)
		return done->status;
	if (done->len != DISK_REPLY_SIZE || !disk_reply_unpack(&reply, c->reply[i]))
		return -SLMPM_EPROTO;
	p = find(c, reply.tag);
	/* A read that went well is told by its data alone. */
	if (!p || (reply.op && reply.op != p->request.op) ||
	    (p->request.op == DISK_READ && reply.status == DISK_OK))
		return -SLMPM_EPROTO;
	p->ended = true;
	p->result.status = reply.status;
	p->result.info = reply.info;
	p->result.bytes = reply.status == DISK_OK ? p->bytes : 0;
	memcpy(p->result.detail, reply.detail, sizeof(p->result.detail));
	return post_receive(c, i);
}

static int take(struct disk_client *c, const struct slmpm_done *done)
{
	if (done->op == SLMPM_OP_NOTIFY)
		return landed(c, done);
	if (done->op == SLMPM_OP_RECV)
		return replied(c, done);
	if (done->status < 0)
		return done->status;
	c->pending[done->cookie].sent = true;
	return 0;
}

static int lost(int rc)
{
	if (rc == -SLMPM_EPROTO)
		fprintf(stderr, "%s: the controller answers what was not asked\n",
			program_invocation_short_name);
	else
		fprintf(stderr, "%s: the controller is lost: %s\n", program_invocation_short_name,
			slmpm_strerror(rc));
	return rc;
}

static struct pending *ended(struct disk_client *c)
{
	for (int i = 0; i < DISK_WINDOW; i++)
		if (c->pending[i].used && c->pending[i].sent && c->pending[i].ended)
			return &c->pending[i];
	return NULL;
}

int disk_next(struct disk_client *c, struct disk_result *result)
{
	struct slmpm_done done[8];
	struct pending *p;
	int rc = 0;

	while (!(p = ended(c))) {
		if (!c->in_flight)
			return 0;
		rc = slmpm_cq_wait(c->cq, done, 8, -1);
		for (int i = 0, n = rc; i < n && rc >= 0; i++)
			rc = take(c, &done[i]);
		if (rc < 0)
			return lost(rc);
	}
	*result = p->result;
	p->used = false;
	c->in_flight--;
	return 1;
}

/* ---- requests ---- */

static int send_request(struct disk_client *c, const struct disk_request *want, const void *data,
			uint32_t bytes, uint64_t cookie)
{
	struct slmpm_how how = {.size = sizeof(how), .cq = c->cq, .timeout_ms = -1};
	struct slmpm_iov piece[2] = {{NULL, DISK_REQUEST_SIZE}, {(void *)(uintptr_t)data, bytes}};
	struct pending *p;
	int rc;

	for (how.cookie = 0; how.cookie < DISK_WINDOW; how.cookie++)
		if (!c->pending[how.cookie].used)
			break;
	if (how.cookie == DISK_WINDOW)
		return -SLMPM_EAGAIN;
	p = &c->pending[how.cookie];
	*p = (struct pending){.request = *want, .used = true, .bytes = bytes};
	p->request.tag = (uint32_t)how.cookie;
	p->request.key = c->key;
	p->result.cookie = cookie;
	disk_request_pack(&p->request, p->head);
	piece[0].base = p->head;
	rc = slmpm_sendv(c->peer, DISK_STREAM_REQUEST, piece, data ? 2 : 1, &how, NULL);
	if (rc < 0) {
		p->used = false;
		return lost(rc);
	}
	c->in_flight++;
	return 0;
}

int disk_read(struct disk_client *c, uint32_t drive, struct disk_place from, uint32_t sectors,
	      uint64_t address, uint32_t bytes, uint64_t cookie)
{
	const struct disk_request r = {.op = DISK_READ,
				       .drive = drive,
				       .place = from,
				       .sectors = sectors,
				       .address = address};

	return send_request(c, &r, NULL, bytes, cookie);
}

int disk_write(struct disk_client *c, uint32_t drive, struct disk_place to, uint32_t sectors,
	       const void *data, uint32_t bytes, uint64_t cookie)
{
	const struct disk_request r = {
		.op = DISK_WRITE, .drive = drive, .place = to, .sectors = sectors};

	return send_request(c, &r, data, bytes, cookie);
}

int disk_sync(struct disk_client *c, uint32_t drive, uint64_t cookie)
{
	const struct disk_request r = {.op = DISK_SYNC, .drive = drive};

	return send_request(c, &r, NULL, 0, cookie);
}

int disk_identify(struct disk_client *c, uint32_t drive, struct disk_result *result)
{
	const struct disk_request r = {.op = DISK_IDENTIFY, .drive = drive};
	int rc = send_request(c, &r, NULL, 0, 0);

	return rc < 0 ? rc : disk_next(c, result);
}

/* ---- start and end ---- */

/* Beside this program, or whatever PATH finds. */
static void find_controller(char *path, size_t size)
{
	static const char name[] = "disk_controller";
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof(name));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	memcpy(slash ? slash + 1 : path, name, sizeof(name));
	if (access(path, X_OK))
		memcpy(path, name, sizeof(name));
}

static int make_region(struct disk_client *c)
{
	void *base = NULL;
	int rc;

	if (c->foreign) {
		base = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (base == MAP_FAILED)
			return -SLMPM_ENOMEM;
		rc = slmpm_mem_register(c->ctx, base, c->size, SLMPM_WRITE, &c->mem);
	} else {
		rc = slmpm_mem_alloc(c->ctx, c->size, SLMPM_WRITE, &c->mem, &base);
	}
	c->base = base;
	if (rc >= 0)
		rc = slmpm_mem_notify(c->mem, (slmpm_ctr){0}, c->cq);
	return rc < 0 ? rc : slmpm_mem_key(c->mem, c->peer, SLMPM_WRITE, &c->key);
}

static int connect_controller(struct disk_client *c, const struct disk_client_options *o)
{
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	char path[4096];
	int rc = slmpm_open(&c->ctx, NULL);

	find_controller(path, sizeof(path));
	how.ctx = c->ctx;
	if (rc >= 0)
		rc = slmpm_cq_create(c->ctx, &c->cq);
	if (rc >= 0)
		rc = slmpm_spawn(&c->peer, o->controller ? o->controller : path, o->argv, &how);
	if (rc >= 0)
		rc = make_region(c);
	for (uint64_t i = 0; i < REPLIES && rc >= 0; i++)
		rc = post_receive(c, i);
	return rc;
}

int disk_start(struct disk_client **client, const struct disk_client_options *options)
{
	struct disk_client *c = calloc(1, sizeof(*c));
	int rc = -SLMPM_ENOMEM;

	*client = c;
	if (!c) {
		fprintf(stderr, "%s: no memory\n", program_invocation_short_name);
		return rc;
	}
	c->size = options->memory;
	c->foreign = options->foreign;
	rc = connect_controller(c, options);
	if (rc >= 0)
		return 0;
	fprintf(stderr, "%s: %s%s\n", program_invocation_short_name,
		c->peer.id && rc == -SLMPM_EDEAD ? "the controller is lost: " : "",
		slmpm_error_detail());
	disk_stop(c);
	*client = NULL;
	return rc;
}

int disk_stop(struct disk_client *c)
{
	int status = 0;

	if (c->peer.id) {
		slmpm_close(c->peer, CLOSE_MS);
		status = slmpm_join(c->peer, NULL, CLOSE_MS);
		if (status < 0)
			slmpm_kill(c->peer, 0);
	}
	if (c->mem.id) {
		slmpm_mem_notify(c->mem, (slmpm_ctr){0}, (slmpm_cq){0});
		slmpm_mem_destroy(c->mem, CLOSE_MS);
	}
	if (c->ctx.id)
		slmpm_shut(c->ctx, CLOSE_MS);
	if (c->foreign && c->base)
		munmap(c->base, c->size);
	free(c);
	return status;
}

void disk_spoil_key(struct disk_client *c)
{
	c->key.bytes[SPOILT] ^= 1;
}

char *disk_memory(const struct disk_client *c)
{
	return c->base;
}
