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
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/base/config.h"
#include "slmpm/base/error.h"

bool secret_parse(struct secret *secret, const char *text)
{
	if (strlen(text) != SECRET_TEXT - 1 ||
	    strspn(text, "0123456789abcdefABCDEF") != SECRET_TEXT - 1)
		return false;
	for (int i = 0; i < SECRET_SIZE; i++)
		(void)sscanf(text + 2 * i, "%2hhx", &secret->bytes[i]);
	secret->known = true;
	return true;
}

void secret_text(const struct secret *secret, char text[SECRET_TEXT])
{
	for (int i = 0; i < SECRET_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", secret->bytes[i]);
}

int secret_make(struct secret *secret)
{
	secret->known = getrandom(secret->bytes, SECRET_SIZE, 0) == SECRET_SIZE;
	return secret->known ? 0 : -EIO;
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

/* ---- SipHash-2-4-128, as its authors describe it: two rounds a word, four at each end ---- */

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void rounds(struct state *s, int n)
{
	while (n--) {
		s->a += s->b;
		s->c += s->d;
		s->b = rotate(s->b, 13) ^ s->a;
		s->d = rotate(s->d, 16) ^ s->c;
		s->a = rotate(s->a, 32);
		s->c += s->b;
		s->a += s->d;
		s->b = rotate(s->b, 17) ^ s->c;
		s->d = rotate(s->d, 21) ^ s->a;
		s->c = rotate(s->c, 32);
	}
}

static uint64_t siphash_load(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return LITTLE_64(word);
}

static void siphash_store(unsigned char *at, uint64_t word)
{
	word = LITTLE_64(word);
	memcpy(at, &word, sizeof(word));
}

static void siphash_take(struct state *s, uint64_t word)
{
	s->d ^= word;
	rounds(s, 2);
	s->a ^= word;
}

void siphash(const unsigned char key[SIPHASH_SIZE], const void *data, size_t n,
	     unsigned char out[SIPHASH_SIZE])
{
	uint64_t low = siphash_load(key), high = siphash_load(key + 8);
	struct state s = {
		.a = low ^ UINT64_C(0x736f6d6570736575),
		.b = high ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
		.c = low ^ UINT64_C(0x6c7967656e657261),
		.d = high ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *at = data;
	unsigned char last[8] = {0};

	for (size_t left = n; left >= 8; left -= 8, at += 8)
		siphash_take(&s, siphash_load(at));
	if (n % 8)
		memcpy(last, at, n % 8);
	last[7] = (unsigned char)n;
	siphash_take(&s, siphash_load(last));
	s.c ^= 0xee;
	rounds(&s, 4);
	siphash_store(out, s.a ^ s.b ^ s.c ^ s.d);
	s.b ^= 0xdd;
	rounds(&s, 4);
	siphash_store(out + 8, s.a ^ s.b ^ s.c ^ s.d);
}

void secret_prove(const struct secret *secret, bool active, const struct wire_hello *connector,
		  const struct wire_hello *acceptor, unsigned char proof[SIPHASH_SIZE])
{
	struct {
		uint64_t side;
		struct wire_hello connector, acceptor;
	} said = {LITTLE_64(active ? 1u : 2u), *connector, *acceptor};

	_Static_assert(sizeof(said) == 8 + 2 * sizeof(struct wire_hello), "no padding");
	siphash(secret->bytes, &said, sizeof(said), proof);
}
