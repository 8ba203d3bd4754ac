/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and records: bytes in and out, numbers little-endian. */
#include "apps/slmpm_run/frame.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm.h>

void put_32(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

uint32_t get_32(const unsigned char *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}

void put_64(unsigned char *to, uint64_t value)
{
	put_32(to, (uint32_t)value);
	put_32(to + 4, (uint32_t)(value >> 32));
}

uint64_t get_64(const unsigned char *from)
{
	return get_32(from) | (uint64_t)get_32(from + 4) << 32;
}

void put_error(unsigned char *to, int error)
{
	put_32(to, (uint32_t)(error - SLMPM_ERROR_BASE));
}

int get_error(const unsigned char *from)
{
	uint32_t error = get_32(from);
	bool is_known = error && error <= INT_MAX - SLMPM_ERROR_BASE &&
			slmpm_error_name(SLMPM_ERROR_BASE + (int)error);

	return is_known ? SLMPM_ERROR_BASE + (int)error : SLMPM_ESYSTEM;
}

/* ---- in ---- */

static bool make_room(struct inlet *in, size_t room)
{
	unsigned char *wider;

	if (in->room >= room)
		return true;
	wider = realloc(in->bytes, room);
	if (!wider)
		return false;
	in->bytes = wider;
	in->room = room;
	return true;
}

/* Is there a whole one? Never more is asked for than a frame may have. */
static int inspect(struct inlet *in, struct frame *f)
{
	uint32_t length;

	if (in->have < FRAME_HEAD)
		return 0;
	length = get_32(in->bytes);
	if (length > FRAME_MAX || !in->bytes[4] || in->bytes[4] >= FRAME_TYPES)
		return -EPROTO;
	if (!make_room(in, FRAME_HEAD + (size_t)length + 1))
		return -ENOMEM;
	if (in->have < FRAME_HEAD + (size_t)length)
		return 0;
	*f = (struct frame){(enum frame_type)in->bytes[4], length, in->bytes + FRAME_HEAD};
	in->taken = FRAME_HEAD + (size_t)length;
	return 1;
}

int inlet_next(struct inlet *in, struct frame *f, int wait_ms)
{
	struct pollfd p = {.fd = in->fd, .events = POLLIN};
	ssize_t n;
	int rc;

	if (in->taken) { /* little lies behind it: a frame's 0 has overwritten nothing */
		memmove(in->bytes, in->bytes + in->taken, in->have - in->taken);
		in->have -= in->taken;
		in->taken = 0;
	}
	if (!make_room(in, 4096))
		return -ENOMEM;
	while ((rc = inspect(in, f)) == 0) {
		size_t want =
			in->have < FRAME_HEAD ? FRAME_HEAD : FRAME_HEAD + (size_t)get_32(in->bytes);

		n = poll(&p, 1, wait_ms);
		if (n == 0)
			return 0;
		/* No more than this frame: so nothing lies behind it. */
		n = n < 0 ? n : read(in->fd, in->bytes + in->have, want - in->have);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return errno == ECONNRESET ? -EPIPE : -errno;
		if (n == 0)
			return -EPIPE;
		in->have += n > 0 ? (size_t)n : 0;
	}
	if (rc == 1)
		f->data[f->length] = 0;
	return rc;
}

void inlet_free(struct inlet *in)
{
	free(in->bytes);
	in->bytes = NULL;
	in->have = in->room = in->taken = 0;
}

/* ---- out ---- */

static int write_all(int fd, const unsigned char *data, size_t length, int wait_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	while (length) {
		ssize_t n = write(fd, data, length);

		if (n > 0) {
			data += n;
			length -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			if (poll(&p, 1, wait_ms) == 0)
				return -ETIMEDOUT;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int frame_send(int fd, enum frame_type type, const void *data, size_t length, int wait_ms)
{
	unsigned char head[FRAME_HEAD];
	int rc;

	put_32(head, (uint32_t)length);
	head[4] = (unsigned char)type;
	rc = write_all(fd, head, sizeof(head), wait_ms);
	return rc < 0 ? rc : write_all(fd, data, length, wait_ms);
}

/* ---- records ---- */

bool records_good(const struct records *r)
{
	const char *at = r->text, *end = r->text + r->length;

	if (r->length && end[-1])
		return false;
	while (at < end) {
		size_t n = strlen(at);

		if (strcspn(at, "=") == 0 || !memchr(at, '=', n))
			return false;
		at += n + 1;
	}
	return true;
}

/* The next one of KEY from AT on. */
static const char *find(const struct records *r, const char *at, const char *key)
{
	size_t n = strlen(key);

	for (; at < r->text + r->length; at += strlen(at) + 1)
		if (!strncmp(at, key, n) && at[n] == '=')
			return at + n + 1;
	return NULL;
}

const char *records_value(const struct records *r, const char *key)
{
	return find(r, r->text, key);
}

char **records_all(const struct records *r, const char *key)
{
	size_t n = 0;
	const char *at;
	char **all;

	for (at = records_value(r, key); at; at = find(r, at + strlen(at) + 1, key))
		n++;
	all = calloc(n + 1, sizeof(*all));
	n = 0;
	for (at = records_value(r, key); all && at; at = find(r, at + strlen(at) + 1, key))
		all[n++] = (char *)(uintptr_t)at;
	return all;
}

bool records_add(struct records *r, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value);
	char *wider = realloc(r->text, r->length + k + v + 2);

	if (!wider)
		return false;
	r->text = wider;
	memcpy(wider + r->length, key, k);
	wider[r->length + k] = '=';
	memcpy(wider + r->length + k + 1, value, v + 1);
	r->length += k + v + 2;
	return true;
}
