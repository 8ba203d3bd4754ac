/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A work queue: the host writes blocks of its standard input into two places of an accelerator's
 * region, in turn, and tells how long each is; put and message are posted at once and executed in
 * order. The accelerator (this same program, started again) counts lines. work_queue <FILE
 */
#include <slmpm.h>
#include <stdio.h>
#include <string.h>

#define BLOCK  65536
#define PLACES 2
#define FILLED 1 /* streams: this place has so many bytes, ... */
#define EMPTY  2 /* ... has been read; with a length: of the lines counted */

static int accelerator(void)
{
	static uint64_t lines;
	slmpm_peer host;
	slmpm_mem mem;
	uint32_t len;
	void *base;

	if (slmpm_parent(&host) < 0 ||
	    slmpm_mem_alloc((slmpm_ctx){0}, PLACES * BLOCK, SLMPM_WRITE, &mem, &base) < 0 ||
	    slmpm_mem_share(mem, host, SLMPM_WRITE, 5000) < 0)
		return slmpm_perror("accelerator");
	for (uint64_t turn = 0;; turn++) {
		const char *place = (char *)base + turn % PLACES * BLOCK;

		if (slmpm_recv(host, FILLED, &len, sizeof(len), NULL, -1) < 0)
			return slmpm_perror("receive");
		if (!len) /* the end of the file */
			break;
		for (uint32_t i = 0; i < len; i++)
			lines += place[i] == '\n';
		if (slmpm_send(host, EMPTY, NULL, 0, -1) < 0)
			return slmpm_perror("send");
	}
	return slmpm_send(host, EMPTY, &lines, sizeof(lines), -1) < 0 ? slmpm_perror("send") : 0;
}

/* A put and the message behind it. Only the message's end is told; or an error of either. */
static int post(slmpm_wq wq, slmpm_peer accel, slmpm_rmem places, uint64_t turn,
		struct slmpm_iov *block, uint32_t *len)
{
	struct slmpm_iov said = {len, sizeof(*len)};
	struct slmpm_wr wr[2] = {
		{
			.size = sizeof(wr[0]),
			.op = SLMPM_OP_PUT,
			.flags = SLMPM_SILENT,
			.rmem = places,
			.offset = turn % PLACES * BLOCK,
			.iov = block,
			.iov_count = 1,
		},
		{
			.size = sizeof(wr[0]),
			.op = SLMPM_OP_SEND,
			.peer = accel,
			.stream = FILLED,
			.iov = &said,
			.iov_count = 1,
		},
	};

	return slmpm_post(wq, wr, 2) == 2 ? 0 : -1;
}

static int stream(slmpm_peer accel, slmpm_rmem places, slmpm_wq wq, slmpm_cq cq)
{
	static char blocks[PLACES][BLOCK];
	static uint32_t lens[PLACES];
	struct slmpm_done done;
	uint64_t lines = 0, empty = 0, notified = 0;

	for (uint64_t turn = 0;; turn++) {
		struct slmpm_iov block = {blocks[turn % PLACES], 0};

		/* Both are to be free: the place there, and the block here. */
		for (; turn - empty >= PLACES; empty++)
			if (slmpm_recv(accel, EMPTY, NULL, 0, NULL, -1) < 0)
				return slmpm_perror("receive");
		for (; turn - notified >= PLACES; notified++)
			if (slmpm_cq_wait(cq, &done, 1, -1) < 0 || done.status < 0)
				return slmpm_perror("put");
		block.len = fread(block.base, 1, BLOCK, stdin);
		lens[turn % PLACES] = (uint32_t)block.len;
		if (post(wq, accel, places, turn, &block, &lens[turn % PLACES]) < 0)
			return slmpm_perror("slmpm_post");
		if (!block.len)
			break;
	}
	while (slmpm_recv(accel, EMPTY, &lines, sizeof(lines), NULL, -1) == 0)
		;
	printf("%llu lines\n", (unsigned long long)lines);
	return 0;
}

int main(int argc, char **argv)
{
	char *words[] = {"accelerator", NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h");
	struct slmpm_wq_options options = {.size = sizeof(options)};
	slmpm_rmem places;
	slmpm_peer accel;
	slmpm_wq wq;
	slmpm_cq cq;

	if (argc > 1 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (argc > 1) {
		fprintf(help ? stdout : stderr, "usage: work_queue <file\n");
		return help ? 0 : 2;
	}
	if (slmpm_spawn(&accel, argv[0], words, NULL) < 0 ||
	    slmpm_mem_accept(accel, &places, 5000) < 0 || slmpm_cq_create((slmpm_ctx){0}, &cq) < 0)
		return slmpm_perror("accelerator");
	options.cq = cq;
	if (slmpm_wq_create((slmpm_ctx){0}, &options, &wq) < 0)
		return slmpm_perror("slmpm_wq_create");
	return stream(accel, places, wq, cq) || slmpm_join(accel, NULL, 5000) != 0;
}
