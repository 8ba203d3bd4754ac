/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -lcrypto */
/* Secrets: as text, from files that only their owner reads, and what proves that one is known. */
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/net/secret.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define DIGITS  "000102030405060708090a0b0c0d0e0f"
#define LONGEST 300
#define SECONDS 20

/* The same by another's hand. */
static void openssl_siphash(const unsigned char *key, const void *data, size_t n,
			    unsigned char *out)
{
	size_t size = SIPHASH_SIZE;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
			       OSSL_PARAM_construct_end()};
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);

	CHECK(c && EVP_MAC_init(c, key, SIPHASH_SIZE, params) == 1, "no SipHash in OpenSSL");
	CHECK(EVP_MAC_update(c, data, n) == 1 && EVP_MAC_final(c, out, &size, size) == 1 &&
		      size == SIPHASH_SIZE,
	      "OpenSSL");
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
}

static void hash_as_others(void)
{
	unsigned char data[LONGEST], ours[SIPHASH_SIZE], theirs[SIPHASH_SIZE];
	struct secret s = {.known = false};

	CHECK(secret_parse(&s, DIGITS), "%s", DIGITS);
	for (int i = 0; i < LONGEST; i++)
		data[i] = (unsigned char)(i * 37);
	for (size_t n = 0; n <= LONGEST; n++) {
		siphash(s.bytes, data, n, ours);
		openssl_siphash(s.bytes, data, n, theirs);
		CHECK(!memcmp(ours, theirs, sizeof(ours)), "%zu bytes", n);
	}
}

static void text_both_ways(void)
{
	static const char *const wrong[] = {
		"",
		"0",
		DIGITS "0",
		DIGITS "\n",
		"000102030405060708090a0b0c0d0e0g",
		" 00102030405060708090a0b0c0d0e0f",
		"0x0102030405060708090a0b0c0d0e0f",
	};
	struct secret s = {.known = false}, made, other;
	char text[SECRET_TEXT];

	CHECK(secret_parse(&s, "000102030405060708090A0B0C0D0E0F") && s.known, "upper case");
	for (int i = 0; i < SECRET_SIZE; i++)
		CHECK(s.bytes[i] == i, "byte %d", i);
	secret_text(&s, text);
	CHECK(!strcmp(text, DIGITS), "%s", text);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(!secret_parse(&s, wrong[i]) && s.bytes[5] == 5, "\"%s\"", wrong[i]);
	CHECK(secret_make(&made) == 0 && secret_make(&other) == 0 && made.known, "made up");
	CHECK(memcmp(made.bytes, other.bytes, SECRET_SIZE) != 0, "the same twice");
}

/* Of these two hellos, of this side, by this secret. */
static void prove(void)
{
	struct wire_hello a = {.nonce = 1}, b = {.nonce = 2}, c = {.nonce = 3};
	struct secret s, other;
	unsigned char proof[SIPHASH_SIZE], again[SIPHASH_SIZE];

	CHECK(secret_make(&s) == 0 && secret_make(&other) == 0, "made up");
	secret_prove(&s, true, &a, &b, proof);
	secret_prove(&s, true, &a, &b, again);
	CHECK(!memcmp(proof, again, sizeof(proof)), "the same is not the same");
	secret_prove(&s, false, &a, &b, again);
	CHECK(memcmp(proof, again, sizeof(proof)) != 0, "it serves the other side");
	secret_prove(&s, true, &b, &a, again);
	CHECK(memcmp(proof, again, sizeof(proof)) != 0, "it serves the other way round");
	secret_prove(&s, true, &a, &c, again);
	CHECK(memcmp(proof, again, sizeof(proof)) != 0, "it serves another time");
	secret_prove(&other, true, &a, &b, again);
	CHECK(memcmp(proof, again, sizeof(proof)) != 0, "any secret makes it");
}

#define NOBODY  65534
#define FOREIGN 01000 /* in a mode: the file is somebody else's */

struct setting {
	const char *text; /* of SLMPM_SECRET; NULL: the file */
	const char *file; /* its text */
	mode_t mode;
	int error;        /* 0: it is DIGITS */
	const char *word; /* of the detail */
};

static const struct setting settings[] = {
	{DIGITS, NULL, 0, 0, NULL},
	{"tea", NULL, 0, SLMPM_EINVAL, "32 hex digits"},
	{"@/nonexistent/secret", NULL, 0, SLMPM_ENOENT, "/nonexistent/secret"},
	{"@/dev/null", NULL, 0, SLMPM_EINVAL, "not a file"},
	{NULL, DIGITS, 0600, 0, NULL},
	{NULL, DIGITS "\n", 0400, 0, NULL},
	{NULL, DIGITS "\r\n# mine", 0600, 0, NULL},
	{NULL, DIGITS, 0640, SLMPM_EACCES, "others may read it (mode 640)"},
	{NULL, DIGITS, 0604, SLMPM_EACCES, "chmod 600"},
	{NULL, DIGITS, 0600 | FOREIGN, SLMPM_EACCES, "another user's"},
	{NULL, DIGITS "00", 0600, SLMPM_EINVAL, "32 hex digits"},
	{NULL, "", 0600, SLMPM_EINVAL, "32 hex digits"},
};

static void write_file(const char *path, const struct setting *t)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t n = strlen(t->file);

	CHECK(fd >= 0 && write(fd, t->file, n) == (ssize_t)n && fchmod(fd, t->mode) == 0, "%s",
	      path);
	CHECK(!(t->mode & FOREIGN) || fchown(fd, NOBODY, NOBODY) == 0, "%s", path);
	close(fd);
}

/* The settings are read once a process. */
static int try_setting(void *arg)
{
	const struct setting *t = arg;
	char path[] = "/tmp/slmpm-secret-XXXXXX", value[64], text[SECRET_TEXT];
	struct slmpm_setting shown = {.size = sizeof(shown)};
	struct secret s;
	int rc;

	if (!t->text) {
		int fd = mkstemp(path);

		CHECK(fd >= 0, "%s", path);
		close(fd);
		write_file(path, t);
		snprintf(value, sizeof(value), "@%s", path);
	}
	setenv("SLMPM_SECRET", t->text ? t->text : value, 1);
	rc = secret_configured(&s);
	if (!t->text)
		unlink(path);
	CHECK(rc == -t->error, "%d (%s)", rc, slmpm_error_detail());
	CHECK(s.known == !t->error, "known");
	if (t->word)
		CHECK(strstr(slmpm_error_detail(), t->word), "\"%s\"", slmpm_error_detail());
	if (!t->error)
		secret_text(&s, text);
	CHECK(t->error || !strcmp(text, DIGITS), "%s", text);
	for (int i = 0; slmpm_setting_at(i, &shown) == 0; i++)
		CHECK(strcmp(shown.name, "SECRET") != 0 || !strcmp(shown.value, "(hidden)"),
		      "it is shown: %s", shown.value);
	return 0;
}

int main(void)
{
	struct secret s;

	unsetenv("SLMPM_SECRET");
	hash_as_others();
	text_both_ways();
	prove();
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		CHECK((settings[i].mode & FOREIGN && geteuid()) ||
			      child_run(try_setting, (void *)(uintptr_t)&settings[i], SECONDS) == 0,
		      "setting %zu: see above", i);
	CHECK(secret_configured(&s) == 0 && !s.known, "none");
	return 0;
}
