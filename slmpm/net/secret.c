/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets as text, from a file, made up; and the proof of one. It is a keyed hash of both hellos,
 * whose nonces are new each time: the secret itself never travels, nor does a proof serve twice, or
 * for the other side.
 */
#include "slmpm/net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/base/error.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool secret_parse(struct secret *secret, const char *text)
{
	struct secret s = {.known = true};

	if (strlen(text) != SECRET_TEXT - 1)
		return false;
	for (int i = 0; i < SECRET_SIZE; i++, text += 2) {
		int high = digit(text[0]), low = digit(text[1]);

		if (high < 0 || low < 0)
			return false;
		s.bytes[i] = (unsigned char)(high << 4 | low);
	}
	*secret = s;
	return true;
}

void secret_text(const struct secret *secret, char text[SECRET_TEXT])
{
	for (int i = 0; i < SECRET_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", secret->bytes[i]);
}

int secret_make(struct secret *secret)
{
	secret->known = true;
	if (getrandom(secret->bytes, SECRET_SIZE, 0) != SECRET_SIZE)
		return -EIO;
	return 0;
}

/* Nobody else may have read it. */
static int check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return error_system(-errno, path);
	if (!S_ISREG(st.st_mode))
		return error_set(SLMPM_EINVAL, "SLMPM_SECRET=@%.80s: not a file", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return error_set(SLMPM_EACCES, "SLMPM_SECRET=@%.80s: another user's", path);
	if (st.st_mode & 077)
		return error_set(SLMPM_EACCES,
				 "SLMPM_SECRET=@%.80s: others may read it (mode %03o): chmod 600",
				 path, (unsigned)st.st_mode & 0777);
	return 0;
}

static int secret_read_file(const char *path, char text[SECRET_TEXT + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	ssize_t n;

	if (fd < 0)
		return error_system(-errno, path);
	rc = check_file(fd, path);
	n = rc == 0 ? read(fd, text, SECRET_TEXT) : 0;
	if (n < 0)
		rc = error_system(-errno, path);
	close(fd);
	if (rc < 0)
		return rc;
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	return 0;
}

int secret_configured(struct secret *secret)
{
	const struct config *config = config_get();
	char text[SECRET_TEXT + 1];
	int rc;

	secret->known = false;
	if (!config)
		return -SLMPM_EINVAL;
	if (!*config->secret)
		return 0;
	if (*config->secret != '@')
		return secret_parse(secret, config->secret) ?
			       0 :
			       error_set(SLMPM_EINVAL, "SLMPM_SECRET: 32 hex digits, or @FILE");
	rc = secret_read_file(config->secret + 1, text);
	if (rc < 0)
		return rc;
	return secret_parse(secret, text) ?
		       0 :
		       error_set(SLMPM_EINVAL, "SLMPM_SECRET=@%.80s: 32 hex digits",
				 config->secret + 1);
}

void secret_prove(const struct secret *secret, bool active, const struct wire_hello *connector,
		  const struct wire_hello *acceptor, unsigned char proof[SIPHASH_SIZE])
{
	unsigned char said[8 + 2 * sizeof(struct wire_hello)] = {active ? 1 : 2};

	memcpy(said + 8, connector, sizeof(*connector));
	memcpy(said + 8 + sizeof(*connector), acceptor, sizeof(*acceptor));
	siphash(secret->bytes, said, sizeof(said), proof);
}
