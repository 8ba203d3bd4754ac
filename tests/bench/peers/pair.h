/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one measurement of a two-process channel. A peer says how to open its channel and how to
 * move one message; the pair does the rest: start, pinning, orders on stdin, answers on stdout
 * (the line protocol is in tests/bench/README.md).
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <stddef.h>
#include <stdint.h>

#define PAIR_MAX    ((size_t)4 << 20) /* largest message */
#define PAIR_WINDOW 64u   /* messages in flight in a stream, where the API allows several */
#define PAIR_BLOB   4096u /* largest address that pair_exchange() carries */

enum {
	PAIR_IN_PLACE = 1, /* send() writes and recv() reads the payload where it lies: loans */
	PAIR_TOUCHES = 2,  /* the streams call pair_produce() and pair_consume() themselves */
	PAIR_PUT = 4, /* send() puts, all but its last word the message's; recv() polls for that */
};

struct peer {
	const char *name;                          /* the first argument selects it */
	void (*before)(void);                      /* once, before there are two processes */
	void (*open)(int side);                    /* side 0 is the one that answers orders */
	void (*send)(const void *buf, size_t len); /* buf is free again on return */
	void (*recv)(void *buf, size_t len);
	/* n equal messages; absent: n times send() and recv() */
	void (*stream_send)(void *buf, size_t len, uint64_t n, int touch);
	void (*stream_recv)(void *buf, size_t len, uint64_t n, int touch);
	void (*close)(int side);
	int flags;
	size_t most; /* largest message; 0: PAIR_MAX */
};

/* Forks a pair of the peer that argv[1] names on the CPUs of argv[2] ("0,1") and serves. */
int pair_main(int argc, char **argv, const struct peer *peers);

/* The same for programs that bring their own two processes; area is shared and zeroed. */
size_t pair_area_size(void);
int pair_serve(const struct peer *peer, void *area, int side, const char *cpus);

/* Gives this side's blob to the other and takes the other's. Never timed. */
void pair_exchange(int side, const void *mine, void *theirs, size_t len);

/* What "touched" means: every byte written before, every byte read after. */
void pair_produce(void *buf, size_t len, uint64_t i);
void pair_consume(const void *buf, size_t len);

/* Messages are received into BUF, of PAIR_MAX bytes, from now on: open() knows of a better
 * place. */
void pair_receive_at(void *buf);

void *pair_shared(size_t len); /* zeroed memory that a later fork() shares */
_Noreturn void pair_die(const char *what, const char *why);

#endif
