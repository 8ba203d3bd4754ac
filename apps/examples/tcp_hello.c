/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hello between programs that did not start each other, over TCP. One listens and says how it is
 * found; the other, with the secret in its environment, connects:
 *
 *     tcp_hello -l tcp://127.0.0.1:0
 *     SLMPM_SECRET=... tcp_hello tcp://127.0.0.1:PORT
 */
#include <slmpm.h>
#include <stdio.h>
#include <string.h>

#define MS 60000

static int answer(slmpm_ctx ctx, const char *url)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer guest;
	char text[64];
	int64_t len;

	if (slmpm_listen(&listener, ctx, url) < 0 || slmpm_listener_query(listener, &info) < 0)
		return slmpm_perror("listen");
	printf("SLMPM_SECRET=%s tcp_hello %s\n", info.secret, info.url);
	fflush(stdout);
	if (slmpm_accept(listener, &guest, MS) < 0)
		return slmpm_perror("accept");
	len = slmpm_recv(guest, 0, text, sizeof(text), NULL, MS);
	if (len < 0)
		return slmpm_perror("receive");
	printf("%.*s\n", (int)len, text);
	if (slmpm_send(guest, 0, "hello yourself", 14, MS) < 0)
		return slmpm_perror("send");
	return slmpm_close(guest, MS) < 0 ? slmpm_perror("close") : 0;
}

static int greet(slmpm_ctx ctx, const char *url)
{
	slmpm_peer host;
	char text[64];
	int64_t len;

	if (slmpm_connect(&host, ctx, url, MS) < 0)
		return slmpm_perror("connect");
	if (slmpm_send(host, 0, "hello over TCP", 14, MS) < 0)
		return slmpm_perror("send");
	len = slmpm_recv(host, 0, text, sizeof(text), NULL, MS);
	if (len < 0)
		return slmpm_perror("receive");
	printf("%.*s\n", (int)len, text);
	return slmpm_close(host, MS) < 0 ? slmpm_perror("close") : 0;
}

int main(int argc, char **argv)
{
	int listen = argc == 3 && !strcmp(argv[1], "-l");
	int help = argc > 1 && !strcmp(argv[1], "-h");
	slmpm_ctx ctx;

	if (help || argc != 2 + listen || argv[1 + listen][0] == '-') {
		fprintf(help ? stdout : stderr, "usage: %s [-l] tcp://HOST:PORT\n",
			argc ? argv[0] : "tcp_hello");
		return help ? 0 : 2;
	}
	if (slmpm_open(&ctx, NULL) < 0)
		return slmpm_perror("open");
	return listen ? answer(ctx, argv[2]) : greet(ctx, argv[1]);
}
