/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a conversation between two versions of the library (version.sh builds it with each):
 * version_peer listen|connect|spawn|answer NAME. Exit status 0: understood; 3: refused, and the
 * reason is printed; 1: neither.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <slmpm.h>

#define PATIENCE 10000
#define LONGEST  ((size_t)300000)

static unsigned char out[LONGEST], in[LONGEST];

static int fail(const char *what, int64_t rc)
{
	printf("%s: %lld: %s\n", what, (long long)rc, slmpm_error_detail());
	return rc == -SLMPM_EVERSION ? 3 : 1;
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(i * 31 + n);
}

/* Every way to send; the other side sends the bytes back plainly. */
static int64_t say(slmpm_peer peer, size_t n, int way)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_MORE, .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {out, n};
	int64_t rc;
	void *at;

	fill(n);
	if (way == 0)
		return slmpm_send(peer, 1, out, n, PATIENCE);
	if (way == 1) { /* a burst of two, as one or as it likes */
		rc = slmpm_sendv(peer, 2, &iov, 1, &how, NULL);
		return rc < 0 ? rc : slmpm_send(peer, 1, out, n, PATIENCE);
	}
	rc = slmpm_loan(peer, 1, n, &at, PATIENCE);
	if (rc < 0)
		return rc;
	memcpy(at, out, n);
	return slmpm_commit(peer, at, n, NULL);
}

static int ask(slmpm_peer peer)
{
	static const size_t lengths[] = {1, 8, 40, 120, 2000, 8192, 30000, LONGEST};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (int way = 0; way < 3; way++)
			for (int turn = 0; turn < 50; turn++) {
				int64_t rc = say(peer, lengths[i], way);

				if (rc < 0)
					return fail("sending", rc);
				rc = slmpm_recv(peer, 3, in, sizeof(in), NULL, PATIENCE);
				if (rc < 0)
					return fail("receiving", rc);
				if ((size_t)rc != lengths[i] || memcmp(in, out, lengths[i]) != 0) {
					printf("%zu bytes came back as %lld\n", lengths[i],
					       (long long)rc);
					return 1;
				}
			}
	return 0;
}

static int answer(slmpm_peer peer)
{
	for (;;) {
		struct slmpm_done done;
		int64_t rc = slmpm_recv(peer, SLMPM_ANY_STREAM, in, sizeof(in), &done, PATIENCE);

		if (rc == -SLMPM_ECLOSED)
			return 0;
		if (rc < 0)
			return fail("receiving", rc);
		if (done.stream == 2) /* the first of a burst */
			continue;
		rc = slmpm_send(peer, 3, in, (size_t)rc, PATIENCE);
		if (rc < 0)
			return fail("sending", rc);
	}
}

static int end(slmpm_peer peer, int result)
{
	int64_t rc = slmpm_close(peer, PATIENCE);

	return result || rc == 0 ? result : fail("closing", rc);
}

int main(int argc, char **argv)
{
	char *words[] = {(char[]){"answer"}, (char[]){"-"}, NULL};
	slmpm_ctx none = {0};
	slmpm_listener listener;
	slmpm_peer peer;
	int64_t rc;

	if (argc != 3)
		return 2;
	alarm(40);
	if (!strcmp(argv[1], "listen")) {
		rc = slmpm_listen(&listener, none, argv[2]);
		printf("listening\n");
		fflush(stdout);
		if (rc == 0)
			rc = slmpm_accept(listener, &peer, PATIENCE);
		return rc < 0 ? fail("accepting", rc) : end(peer, answer(peer));
	}
	if (!strcmp(argv[1], "connect")) {
		rc = slmpm_connect(&peer, none, argv[2], PATIENCE);
		return rc < 0 ? fail("connecting", rc) : end(peer, ask(peer));
	}
	if (!strcmp(argv[1], "spawn")) {
		int result;

		rc = slmpm_spawn(&peer, argv[2], words, NULL);
		if (rc < 0)
			return fail("starting", rc);
		result = ask(peer);
		rc = slmpm_join(peer, NULL, PATIENCE);
		return result ? result : (int)rc;
	}
	rc = slmpm_parent(&peer);
	return rc < 0 ? fail("being started", rc) : answer(peer);
}
