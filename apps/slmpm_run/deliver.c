/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of a start elsewhere: the agent's hello, what it is told, files, the program's
 * start. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/slmpm_run/run.h"
#include "apps/slmpm_run/ship.h"

#define PATIENCE_MS 600000 /* who waits for the start gives up before */

/* Its agent says why not. */
static int refused(struct delivery *d, const struct frame *f)
{
	return delivery_fail(d, get_error(f->data), "%s", (const char *)f->data + 4);
}

static int await_hello(struct delivery *d)
{
	static const char hello[] = FRAME_MAGIC " ";
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	char begin[33];
	struct frame f;
	ssize_t rest;
	int rc = inlet_next(&d->in, &f, PATIENCE_MS);

	if (rc == -EPIPE && !d->in.have)
		return delivery_gone(d, "before an agent answered");
	if (rc == 1 && f.type == FRAME_FAILED && f.length >= 4)
		return refused(d, &f);
	if (rc == 1 && f.type == FRAME_HELLO && f.length > sizeof(hello) - 1 &&
	    !memcmp(f.data, hello, sizeof(hello) - 1)) {
		int version = atoi((const char *)f.data + sizeof(hello) - 1);

		if (version == FRAME_VERSION)
			return 0;
		return delivery_fail(d, SLMPM_EVERSION, "its agent speaks version %d, this one %d",
				     version, FRAME_VERSION);
	}
	rest = poll(&p, 1, 100) == 1 && d->in.have < sizeof(begin) ?
		       read(d->fd, d->in.bytes + d->in.have, sizeof(begin) - d->in.have) :
		       0;
	d->in.have += rest > 0 ? (size_t)rest : 0;
	snprintf(begin, sizeof(begin), "%.*s", (int)(d->in.have < 32 ? d->in.have : 32),
		 (const char *)d->in.bytes);
	return delivery_fail(d, SLMPM_EPROTO, "it says \"%s\" where an agent's hello should be",
			     begin);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int sent(struct delivery *d, int rc, const char *why)
{
	if (rc >= 0)
		return 0;
	if (rc == -EPIPE || rc == -ECONNRESET)
		return delivery_gone(d, "while files were sent");
	return delivery_fail(d, SLMPM_EACCES, "%s", why);
}

/* The private folder, with all its files. */
static int send_folder(struct delivery *d, const char *folder)
{
	DIR *list = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	if (!list)
		return delivery_fail(d, SLMPM_EACCES, "%.120s: %s", folder, strerror(errno));
	while (rc == 0 && (entry = readdir(list))) {
		char path[PATH_MAX], name[SHIP_NAME], why[256];
		struct stat st;

		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		snprintf(name, sizeof(name), "cwd/%s", entry->d_name);
		rc = sent(d, ship_file(d->fd, &d->in, path, name, OFFER_ALWAYS, why), why);
	}
	closedir(list);
	return rc;
}

struct libraries {
	struct delivery *d;
	uint32_t flags;
	int rc;
};

static int send_library(const char *path, const char *name, void *arg)
{
	struct libraries *l = arg;
	char as[SHIP_NAME], why[256];

	if (snprintf(as, sizeof(as), "lib/%s", name) >= (int)sizeof(as))
		return 0;
	l->rc = sent(l->d, ship_file(l->d->fd, &l->d->in, path, as, l->flags, why), why);
	return l->rc ? -1 : 0;
}

static const char *library_path(const struct delivery *d)
{
	char **env = records_all(&d->request, "env");
	const char *path = secure_getenv("LD_LIBRARY_PATH");

	for (size_t i = 0; env && env[i]; i++)
		if (!strncmp(env[i], "LD_LIBRARY_PATH=", 16))
			path = env[i] + 16;
	free(env);
	return path;
}

static const char *last_name(const char *path)
{
	return strrchr(path, '/') + 1; /* it is absolute */
}

/* Does PATH lie right in the folder that is carried? */
static bool is_carried(const char *path, const char *carry)
{
	size_t n = strlen(carry);

	return n && !strncmp(path, carry, n) && path[n] == '/' && !strchr(path + n + 1, '/');
}

static int send_files(struct delivery *d)
{
	const char *program = delivery_value(d, "program"), *carry = delivery_value(d, "carry");
	struct libraries l = {.d = d};
	char name[SHIP_NAME], why[256];
	int rc = *carry ? send_folder(d, carry) : 0;

	if (rc || !*program || !strcmp(delivery_value(d, "ship"), "never"))
		return rc;
	l.flags = !strcmp(delivery_value(d, "ship"), "always") ? OFFER_ALWAYS : 0;
	if (!is_carried(program, carry)) {
		snprintf(name, sizeof(name), "program/%s", last_name(program));
		rc = ship_file(d->fd, &d->in, program, name, l.flags, why);
		if (rc > 0) /* where it lies now it does not find its libraries */
			l.flags = OFFER_ALWAYS;
		rc = sent(d, rc, why);
	}
	if (rc == 0 && needed_each(program, library_path(d), send_library, &l) < 0)
		rc = l.rc;
	return rc;
}

/* ---- what is to be run ---------------------------------------------------------------------- */

static int send_start(struct delivery *d)
{
	static const char *const ours[] = {"host=", "remote=", "agent=", "ship=", "program="};
	const char *program = delivery_value(d, "program"), *carry = delivery_value(d, "carry");
	struct records r = {NULL, 0};
	bool good = true;
	int rc;

	for (size_t at = 0; at < d->request.length; at += strlen(d->request.text + at) + 1) {
		const char *text = d->request.text + at;
		bool mine = false;
		char key[16];

		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			mine |= !strncmp(text, ours[i], strlen(ours[i]));
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(text, "="), text);
		if (!mine)
			good &= records_add(&r, key, strchr(text, '=') + 1);
	}
	if (*program && !strcmp(delivery_value(d, "ship"), "never") &&
	    !is_carried(program, carry)) {
		good &= records_add(&r, "command", program);
	} else if (*program) {
		char name[SHIP_NAME];

		snprintf(name, sizeof(name), "%s/%s",
			 is_carried(program, carry) ? "cwd" : "program", last_name(program));
		good &= records_add(&r, "image", name);
	}
	if (!good || r.length > FRAME_MAX)
		rc = delivery_fail(d, SLMPM_ENOMEM, "its arguments and environment are too long");
	else if (frame_send(d->fd, FRAME_START, r.text, r.length, PATIENCE_MS) < 0)
		rc = delivery_gone(d, "before it was told what to run");
	else
		rc = 0;
	free(r.text);
	return rc;
}

static int await_start(struct delivery *d)
{
	struct frame f;
	int rc = inlet_next(&d->in, &f, PATIENCE_MS);

	if (rc == 1 && f.type == FRAME_STARTED && f.length == 4)
		return 0;
	if (rc == 1 && f.type == FRAME_FAILED && f.length >= 4)
		return refused(d, &f);
	if (rc == -EPIPE)
		return delivery_gone(d, "before the program ran");
	return delivery_fail(d, SLMPM_EPROTO, "its agent does not keep to the rules");
}

int deliver(struct delivery *d)
{
	int rc = delivery_start(d);

	if (rc == 0)
		rc = await_hello(d);
	if (rc == 0)
		rc = send_start(d);
	if (rc == 0)
		rc = send_files(d);
	if (rc == 0 && frame_send(d->fd, FRAME_GO, NULL, 0, PATIENCE_MS) < 0)
		rc = delivery_gone(d, "before the program ran");
	return rc == 0 ? await_start(d) : rc;
}
