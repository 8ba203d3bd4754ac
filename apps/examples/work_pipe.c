/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three processes in a row: the host sends a long message in pieces to a relay, which passes them
 * on to the sink through a few small buffers, and what the sink answers back to the host. The relay
 * posts one PIPE for each way, and looks at nothing that comes. work_pipe [MIB]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW     4
#define MOST    64
#define PIECE   8192
#define BUFFERS 4
#define MIB     ((uint64_t)1 << 20)

enum { LONG_ONE = 1, ANSWER }; /* the streams */

struct sum {
	uint64_t bytes, words; /* how many; what its words come to */
};

/* Each word counts by its place. */
static void add(struct sum *sum, const uint64_t *piece, size_t n)
{
	for (size_t i = 0; i < n / sizeof(*piece); i++)
		sum->words = sum->words * 31 + piece[i];
	sum->bytes += n;
}

static void fill(uint64_t *piece, uint64_t at)
{
	for (size_t i = 0; i < PIECE / sizeof(*piece); i++)
		piece[i] = (at + i) * (at + i);
}

/* Takes all there is, and answers with its sum. */
static int sink(uint64_t total)
{
	struct sum sum = {0, 0};
	uint64_t piece[PIECE / 8];
	slmpm_peer relay;

	if (slmpm_parent(&relay) < 0)
		return slmpm_perror("slmpm_parent");
	while (sum.bytes < total) {
		int64_t n = slmpm_recv(relay, LONG_ONE, piece, sizeof(piece), NULL, -1);

		if (n < 0)
			return slmpm_perror("receive");
		add(&sum, piece, (size_t)n);
	}
	return slmpm_send(relay, ANSWER, &sum, sizeof(sum), -1) < 0 ? slmpm_perror("send") : 0;
}

/* PIECES from one peer to the other on STREAM, in a channel of their own. */
static int post_pipe(slmpm_wq wq, slmpm_peer from, slmpm_peer to, uint32_t stream, uint64_t pieces)
{
	static unsigned char memory[2][BUFFERS][PIECE];
	unsigned char(*own)[PIECE] = memory[stream == ANSWER];
	struct slmpm_iov buffers[BUFFERS];
	struct slmpm_wr pipe = {.size = sizeof(pipe), .op = SLMPM_OP_PIPE, .channel = stream};

	for (int i = 0; i < BUFFERS; i++)
		buffers[i] = (struct slmpm_iov){own[i], PIECE};
	pipe.from = from;
	pipe.peer = to;
	pipe.from_stream = pipe.stream = stream;
	pipe.iov = buffers;
	pipe.iov_count = BUFFERS;
	pipe.value = pieces;
	return slmpm_post(wq, &pipe, 1) == 1 ? 0 : -1;
}

static int relay(char *program, char *mib, uint64_t total)
{
	char *words[] = {"sink", mib, NULL};
	struct slmpm_wq_options options = {.size = sizeof(options)};
	slmpm_peer host, next;
	slmpm_wq wq;

	if (slmpm_parent(&host) < 0 || slmpm_spawn(&next, program, words, NULL) < 0)
		return slmpm_perror("slmpm_spawn");
	if (slmpm_cq_create((slmpm_ctx){0}, &options.cq) < 0 ||
	    slmpm_wq_create((slmpm_ctx){0}, &options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	if (post_pipe(wq, host, next, LONG_ONE, total / PIECE) < 0 ||
	    post_pipe(wq, next, host, ANSWER, 1) < 0)
		return slmpm_perror("slmpm_post");
	if (slmpm_wq_drain(wq, -1) < 0)
		return slmpm_perror("slmpm_wq_drain");
	return slmpm_join(next, NULL, 5000) != 0;
}

static int host(slmpm_peer next, uint64_t total)
{
	struct sum sent = {0, 0}, came = {0, 0};
	uint64_t piece[PIECE / 8];

	while (sent.bytes < total) {
		fill(piece, sent.bytes);
		if (slmpm_send(next, LONG_ONE, piece, sizeof(piece), -1) < 0)
			return slmpm_perror("send");
		add(&sent, piece, sizeof(piece));
	}
	if (slmpm_recv(next, ANSWER, &came, sizeof(came), NULL, -1) < 0)
		return slmpm_perror("receive");
	if (memcmp(&came, &sent, sizeof(sent)) != 0)
		return fprintf(stderr, "what came is not what was sent\n") > 0;
	printf("%llu MiB came through %d buffers of %d bytes\n",
	       (unsigned long long)(came.bytes / MIB), BUFFERS, PIECE);
	return 0;
}

int main(int argc, char **argv)
{
	const char *role = argc == 3 ? argv[1] : "";
	char mib[24], *words[] = {"relay", mib, NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h"), failed;
	long n = argc > 1 ? atol(argv[argc - 1]) : FEW;
	slmpm_peer next;

	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: work_pipe [MIB]  (1 to %d)\n", MOST);
		return help ? 0 : 2;
	}
	if (!strcmp(role, "relay"))
		return relay(argv[0], argv[2], (uint64_t)n * MIB);
	if (!strcmp(role, "sink"))
		return sink((uint64_t)n * MIB);
	snprintf(mib, sizeof(mib), "%ld", n);
	if (slmpm_spawn(&next, argv[0], words, NULL) < 0)
		return slmpm_perror("slmpm_spawn");
	failed = host(next, (uint64_t)n * MIB);
	return failed | (slmpm_join(next, NULL, 5000) != 0);
}
