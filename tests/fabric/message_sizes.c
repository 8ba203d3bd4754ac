/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of every kind of length, bursts and loans, echoed by a second process and compared. */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x,                 \
				slmpm_error_detail());                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define MOST  ((size_t)1 << 20)
#define BURST 1000

static unsigned char *out, *in;

static void echo(void)
{
	struct slmpm_done done;
	slmpm_peer host;
	int64_t n;

	CHECK(slmpm_parent(&host) == 0);
	while ((n = slmpm_recv(host, SLMPM_ANY_STREAM, in, MOST, &done, -1)) >= 0)
		CHECK(slmpm_send(host, done.stream, in, (size_t)n, -1) == 0);
	CHECK(n == -SLMPM_ECLOSED);
}

static void lengths(slmpm_peer peer)
{
	static const size_t sizes[] = {0,    1,    7,    8,     31,    32,    33,    64,  4096,
				       8191, 8192, 8193, 16384, 32768, 32769, 65536, MOST};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t at = 0; at < sizes[i]; at++)
			out[at] = (unsigned char)(at * 31 + i);
		memset(in, 0, sizes[i]);
		CHECK(slmpm_send(peer, 3, out, sizes[i], 5000) == 0);
		CHECK(slmpm_recv(peer, 3, in, MOST, NULL, 5000) == (int64_t)sizes[i]);
		CHECK(!memcmp(out, in, sizes[i]));
	}
}

/* A burst travels in bundles; its messages come one by one, in order, each as long as it was. */
static void bursts(slmpm_peer peer)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 5000};

	for (uint64_t i = 0; i < BURST; i++) {
		uint64_t words[16];
		struct slmpm_iov iov = {words, 8 * (1 + i / 100 % 4)};

		for (int k = 0; k < 16; k++)
			words[k] = i;
		how.flags = i % 37 == 36 || i == BURST - 1 ? 0 : SLMPM_MORE;
		CHECK(slmpm_sendv(peer, 5, &iov, 1, &how, NULL) == 0);
	}
	for (uint64_t i = 0; i < BURST; i++) {
		uint64_t words[16] = {0};

		CHECK(slmpm_recv(peer, 5, words, sizeof(words), NULL, 5000) ==
		      (int64_t)(8 * (1 + i / 100 % 4)));
		CHECK(words[0] == i);
	}
}

static void loans(slmpm_peer peer)
{
	static const size_t sizes[] = {8, 4096, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const void *held;
		void *buf;

		CHECK(slmpm_loan(peer, 7, sizes[i], &buf, 5000) == 0);
		memset(buf, (int)i + 1, sizes[i]);
		CHECK(slmpm_commit(peer, buf, sizes[i], NULL) == 0);
		CHECK(slmpm_hold(peer, 7, &held, NULL, 5000) == (int64_t)sizes[i]);
		for (size_t at = 0; at < sizes[i]; at++)
			CHECK(((const unsigned char *)held)[at] == i + 1);
		CHECK(slmpm_release(peer, held) == 0);
		CHECK(slmpm_release(peer, held) == -SLMPM_ESTATE);
	}
}

static void truncated(slmpm_peer peer)
{
	struct slmpm_done done;

	CHECK(slmpm_send(peer, 9, out, 100, 5000) == 0);
	CHECK(slmpm_recv(peer, 9, in, 10, &done, 5000) == -SLMPM_ETRUNC);
	CHECK(done.len == 100);
	CHECK(slmpm_recv(peer, 9, in, 10, NULL, 0) == -SLMPM_ETIMEOUT);
}

int main(int argc, char **argv)
{
	char *again[] = {"echo", NULL};
	struct slmpm_stats stats;
	slmpm_peer peer;
	int status;

	out = malloc(MOST);
	in = malloc(MOST);
	CHECK(out && in);
	if (argc > 1) {
		echo();
		return 0;
	}
	CHECK(slmpm_spawn(&peer, "/proc/self/exe", again, NULL) == 0);
	(void)argv;
	lengths(peer);
	bursts(peer);
	loans(peer);
	truncated(peer);
	CHECK(slmpm_peer_stats(peer, &stats, sizeof(stats)) == 0);
	CHECK(stats.remote_reads == 0 && stats.violations == 0);
	CHECK(slmpm_close(peer, 5000) == 0);
	CHECK(slmpm_join(peer, &status, 5000) == 0 && status == 0);
	CHECK(slmpm_send(peer, 0, out, 1, 0) == -SLMPM_EHANDLE);
	free(out);
	free(in);
	return 0;
}
