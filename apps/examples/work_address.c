/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One work queue sends to many addresses, of which only a few are connected at a time: here all of
 * them are a single accelerator's, which listens at each and adds up what comes.
 * work_address [ADDRESSES]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY 80
#define MOST 90

static slmpm_ctx none;

static void url_of(char *url, size_t size, int process, int i)
{
	snprintf(url, size, "shm:work-address-%d-%d", process, i);
}

/* ---- who listens ---------------------------------------------------------------------------- */

static int take_one(slmpm_listener listener, uint64_t *sum)
{
	uint64_t word;
	slmpm_peer peer;

	if (slmpm_accept(listener, &peer, 20000) < 0)
		return slmpm_perror("slmpm_accept");
	if (slmpm_recv(peer, 0, &word, sizeof(word), NULL, 20000) < 0)
		return slmpm_perror("receive");
	*sum += word;
	return slmpm_close(peer, 1000) < 0 ? slmpm_perror("slmpm_close") : 0;
}

static int listen_at_all(int n)
{
	static slmpm_listener listeners[MOST];
	uint64_t sum = 0;
	slmpm_peer host;
	char url[64];

	if (slmpm_parent(&host) < 0)
		return slmpm_perror("slmpm_parent");
	for (int i = 0; i < n; i++) {
		url_of(url, sizeof(url), getppid(), i);
		if (slmpm_listen(&listeners[i], none, url) < 0)
			return slmpm_perror("slmpm_listen");
	}
	if (slmpm_send(host, 0, "ready", 5, -1) < 0)
		return slmpm_perror("send");
	for (int i = 0; i < n; i++)
		if (take_one(listeners[i], &sum))
			return 1;
	return slmpm_send(host, 0, &sum, sizeof(sum), -1) < 0 ? slmpm_perror("send") : 0;
}

/* ---- who sends ------------------------------------------------------------------------------ */

/* Each in a channel of its own: none waits for another's connection. */
static int send_to_all(slmpm_wq wq, int n)
{
	static uint64_t words[MOST];

	for (int i = 0; i < n; i++) {
		struct slmpm_iov piece = {&words[i], sizeof(words[i])};
		struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_SEND};
		char url[64];

		words[i] = (uint64_t)i;
		url_of(url, sizeof(url), getpid(), i);
		if (slmpm_peer_at(&wr.peer, none, url) < 0)
			return slmpm_perror("slmpm_peer_at");
		wr.channel = (uint32_t)i;
		wr.iov = &piece;
		wr.iov_count = 1;
		if (slmpm_post(wq, &wr, 1) < 0)
			return slmpm_perror("slmpm_post");
	}
	return slmpm_wq_drain(wq, 20000) < 0 ? slmpm_perror("slmpm_wq_drain") : 0;
}

static int host(slmpm_peer server, int n)
{
	struct slmpm_wq_options options = {
		.size = sizeof(options), .depth = MOST, .channels = MOST};
	uint64_t sum = 0, all = (uint64_t)n * (uint64_t)(n - 1) / 2;
	slmpm_wq wq;
	char word[8];

	if (slmpm_recv(server, 0, word, sizeof(word), NULL, 20000) < 0)
		return slmpm_perror("receive");
	if (slmpm_cq_create(none, &options.cq) < 0 || slmpm_wq_create(none, &options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	if (send_to_all(wq, n))
		return 1;
	if (slmpm_recv(server, 0, &sum, sizeof(sum), NULL, 20000) < 0)
		return slmpm_perror("receive");
	if (sum != all)
		return fprintf(stderr, "what came is not what was sent\n") > 0;
	printf("%d addresses have had their word\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	int help = argc > 1 && !strcmp(argv[1], "-h"), failed;
	char number[16], *words[] = {"listen", number, NULL};
	int n = argc > 1 ? atoi(argv[argc - 1]) : MANY;
	slmpm_peer server;

	if (help || n < 1 || n > MOST || argc > 3) {
		fprintf(help ? stdout : stderr, "usage: work_address [ADDRESSES]  (1 to %d)\n",
			MOST);
		return help ? 0 : 2;
	}
	if (argc == 3)
		return listen_at_all(n);
	snprintf(number, sizeof(number), "%d", n);
	if (slmpm_spawn(&server, argv[0], words, NULL) < 0)
		return slmpm_perror("slmpm_spawn");
	failed = host(server, n);
	return failed | (slmpm_join(server, NULL, 5000) != 0);
}
