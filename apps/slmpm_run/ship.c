/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether two machines share files is not asked: a file that has the same digest at the same path
 * over there is used there, any other is sent and removed at the end.
 */
#include "apps/slmpm_run/ship.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OFFER_HEAD (4 + 4 + 8 + DIGEST_SIZE)
#define WAIT_MS    60000 /* without a byte moving */

int ship_digest(int fd, unsigned char digest[DIGEST_SIZE], uint64_t *size)
{
	static unsigned char chunk[FRAME_DATA];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool good = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
	ssize_t n = 1;
	int rc = good ? 0 : -ENOMEM;

	*size = 0;
	while (rc == 0 && n > 0) {
		n = pread(fd, chunk, sizeof(chunk), (off_t)*size);
		if (n < 0)
			rc = -errno;
		else if (EVP_DigestUpdate(md, chunk, (size_t)n) != 1)
			rc = -ENOMEM;
		else
			*size += (uint64_t)n;
	}
	if (rc == 0 && EVP_DigestFinal_ex(md, digest, NULL) != 1)
		rc = -ENOMEM;
	EVP_MD_CTX_free(md);
	return rc;
}

static int open_regular(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return -EACCES;
}

/* ---- the relay's side --------------------------------------------------------------------- */

static int send_offer(int out, const struct offer *o)
{
	size_t path = strlen(o->path) + 1, name = strlen(o->name) + 1;
	unsigned char *text = malloc(OFFER_HEAD + path + name);
	int rc;

	if (!text)
		return -ENOMEM;
	put_32(text, o->flags);
	put_32(text + 4, o->mode);
	put_64(text + 8, o->size);
	memcpy(text + 16, o->digest, DIGEST_SIZE);
	memcpy(text + OFFER_HEAD, o->path, path);
	memcpy(text + OFFER_HEAD + path, o->name, name);
	rc = frame_send(out, FRAME_FILE, text, OFFER_HEAD + path + name, WAIT_MS);
	free(text);
	return rc;
}

/* A refusal says why. */
static int refused(const struct frame *f, char why[256])
{
	if (f->type != FRAME_FAILED || f->length < 4)
		return -EPROTO;
	snprintf(why, 256, "%s", (const char *)f->data + 4);
	return -EACCES;
}

static int send_content(int out, int fd, uint64_t size)
{
	static unsigned char chunk[FRAME_DATA];
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && at < size) {
		ssize_t n = pread(fd, chunk, sizeof(chunk), (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO; /* it has become shorter */
		if ((uint64_t)n > size - at)
			n = (ssize_t)(size - at);
		rc = frame_send(out, FRAME_DATA_PART, chunk, (size_t)n, WAIT_MS);
		at += (uint64_t)n;
	}
	return rc;
}

int ship_file(int out, struct inlet *in, const char *path, const char *name, uint32_t flags,
	      char why[256])
{
	struct offer o = {.flags = flags, .path = path, .name = name};
	struct frame f;
	struct stat st;
	int fd = open_regular(path, &st), rc = fd < 0 ? fd : 0;

	why[0] = 0;
	if (rc == 0) {
		o.mode = st.st_mode & 0777;
		rc = ship_digest(fd, o.digest, &o.size);
	}
	if (rc < 0) {
		snprintf(why, 256, "%s: %s", path, strerror(-rc));
	} else {
		rc = send_offer(out, &o);
		rc = rc < 0 ? rc : inlet_next(in, &f, WAIT_MS);
		rc = rc == 0 ? -ETIMEDOUT : rc;
		if (rc == 1 && (f.type != FRAME_ANSWER || f.length != 1))
			rc = refused(&f, why);
		if (rc == 1)
			rc = f.data[0] ? 1 : 0;
		if (rc == 1) {
			rc = send_content(out, fd, o.size);
			rc = rc < 0 ? rc : 1;
		}
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0 && !why[0])
		snprintf(why, 256, "%s could not be sent: %s", path, strerror(-rc));
	return rc;
}

/* ---- the agent's ---------------------------------------------------------------------------- */

/* One of the three folders, and one name in it that leads nowhere else. */
static bool is_good_name(const char *name)
{
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	if (!slash || strchr(slash + 1, '/') || !slash[1] || !strcmp(slash + 1, ".") ||
	    !strcmp(slash + 1, "..") || strlen(slash + 1) > NAME_MAX)
		return false;
	return (n == 7 && !strncmp(name, "program", 7)) || (n == 3 && !strncmp(name, "lib", 3)) ||
	       (n == 3 && !strncmp(name, "cwd", 3));
}

static bool read_offer(struct offer *o, const struct frame *f)
{
	size_t path;

	if (f->length < OFFER_HEAD + 2 || f->data[f->length - 1])
		return false;
	o->flags = get_32(f->data);
	o->mode = get_32(f->data + 4);
	o->size = get_64(f->data + 8);
	memcpy(o->digest, f->data + 16, DIGEST_SIZE);
	o->path = (const char *)f->data + OFFER_HEAD;
	path = strlen(o->path) + 1;
	if (OFFER_HEAD + path >= f->length)
		return false;
	o->name = o->path + path;
	return OFFER_HEAD + path + strlen(o->name) + 1 == f->length && is_good_name(o->name) &&
	       !(o->mode & ~0777u) && !(o->flags & ~OFFER_ALWAYS);
}

/* Nobody but this user and root can put something else there after it has been looked at: no group
 * either, whoever is in it. */
static bool is_safe(const char *path)
{
	const char *end = path;
	char part[PATH_MAX];
	struct stat st;

	while (*end) {
		end++;
		end += strcspn(end, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (lstat(part, &st) != 0 || (st.st_uid && st.st_uid != geteuid()))
			return false;
		if (st.st_mode & (S_IWOTH | S_IWGRP) && !S_ISLNK(st.st_mode) &&
		    !(S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX))
			return false;
	}
	return true;
}

static bool is_there(const struct offer *o)
{
	unsigned char digest[DIGEST_SIZE];
	char real[PATH_MAX];
	struct stat st;
	uint64_t size;
	int fd;
	bool same;

	if (o->flags & OFFER_ALWAYS || o->path[0] != '/' || !realpath(o->path, real) ||
	    !is_safe(o->path) || !is_safe(real))
		return false;
	fd = open_regular(o->path, &st);
	if (fd < 0)
		return false;
	same = (uint64_t)st.st_size == o->size && ship_digest(fd, digest, &size) == 0 &&
	       !memcmp(digest, o->digest, DIGEST_SIZE) &&
	       (!(o->mode & 0111) || access(o->path, X_OK) == 0);
	close(fd);
	return same;
}

static int receive_content(struct inlet *in, int fd, uint64_t size)
{
	uint64_t at = 0;
	struct frame f;
	int rc = 1;

	while (at < size) {
		rc = inlet_next(in, &f, WAIT_MS);
		if (rc <= 0)
			return rc == 0 ? -ETIMEDOUT : rc;
		if (f.type != FRAME_DATA_PART || !f.length || f.length > size - at)
			return -EPROTO;
		for (uint32_t done = 0; done < f.length;) {
			ssize_t n = write(fd, f.data + done, f.length - done);

			if (n < 0 && errno != EINTR)
				return -errno;
			done += n > 0 ? (uint32_t)n : 0;
		}
		at += f.length;
	}
	return 0;
}

static int make_file(const char *folder, const char *name, uint32_t mode, char **path)
{
	int fd;

	if (asprintf(path, "%s/%s", folder, name) < 0) {
		*path = NULL;
		return -ENOMEM;
	}
	*strrchr(*path, '/') = 0;
	fd = mkdir(*path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
	(*path)[strlen(*path)] = '/';
	if (fd < 0)
		return fd;
	fd = open(*path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode & 0700) | 0600);
	return fd < 0 ? -errno : fd;
}

int ship_take(int out, struct inlet *in, const struct frame *f, const char *folder,
	      char name[SHIP_NAME], char **used, char why[256])
{
	unsigned char digest[DIGEST_SIZE], want;
	struct offer o;
	uint64_t size;
	int fd = -1, rc = 0;

	*used = NULL;
	if (!read_offer(&o, f))
		return snprintf(why, 256, "a file is offered wrongly"), -EPROTO;
	snprintf(name, SHIP_NAME, "%s", o.name);
	want = !is_there(&o);
	if (want)
		rc = make_file(folder, o.name, o.mode, used);
	else
		*used = strdup(o.path);
	if (rc > 0) {
		fd = rc;
		rc = 0;
	}
	if (rc == 0) /* what F points at is gone behind this */
		rc = frame_send(out, FRAME_ANSWER, &want, 1, WAIT_MS);
	memcpy(digest, o.digest, DIGEST_SIZE);
	size = o.size;
	if (rc == 0 && want) {
		unsigned char got[DIGEST_SIZE];

		rc = receive_content(in, fd, size);
		if (rc == 0)
			rc = ship_digest(fd, got, &size);
		if (rc == 0 && memcmp(got, digest, DIGEST_SIZE) != 0)
			rc = -EBADMSG;
	}
	if (fd >= 0 && fchmod(fd, (o.mode & 0700) | 0400) != 0 && rc == 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		snprintf(why, 256, "%s: %s", *used ? *used : "a file",
			 rc == -EBADMSG ? "it arrived damaged" : strerror(-rc));
	return rc < 0 ? rc : want;
}
