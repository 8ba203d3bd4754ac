/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mirror that finds changes by itself costs who stores and who looks, each way: "track
 * [ROUNDS]" prints Markdown. Both ends of the mirror are this process's, so that nothing but the
 * publisher's side is in a flush.
 */
#include <slmpm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/plain.h"
#include "tests/bench/stats.h"

enum { ROUNDS = 61, FLUSHES = 100, SMALL = 16, LARGE = 4096, PATIENCE_MS = 5000 };

static const char *const ways[] = {"calls", "auto", "pagemap", "fault", "signal", "twin"};

static slmpm_ctx ctx;
static slmpm_peer near, far;
static size_t page;
static unsigned char *memory;

static double micros(void)
{
	return now() * 1e6;
}

static slmpm_mirror mirror_of(void *base, size_t size, uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	slmpm_mirror m;

	ok(slmpm_mirror_create(ctx, base, size, &o, &m), "slmpm_mirror_create");
	return m;
}

static void store(size_t at)
{
	((volatile unsigned char *)memory)[at]++;
}

/* ---- what is measured, in microseconds ------------------------------------------------------- */

enum { FIRST, IDLE, ONE, ALL, FLUSH, FIGURES };

static const char *const heads[FIGURES] = {"first store to a page", "look, nothing stored",
					   "look, one byte stored", "look, a byte of each page",
					   "8 B stored and flushed"};

static double inspect(slmpm_mirror m)
{
	double from = micros();

	ok(slmpm_mirror_scan(m), "slmpm_mirror_scan");
	return micros() - from;
}

static void inspections(slmpm_mirror m, size_t pages, double *figures)
{
	double from = micros();

	for (size_t i = 0; i < pages; i++)
		store(i * page);
	figures[FIRST] = (micros() - from) / (double)pages;
	figures[ALL] = inspect(m);
	(void)inspect(m); /* whom the first has met has gone */
	figures[IDLE] = inspect(m);
	store(page / 2);
	figures[ONE] = inspect(m);
	(void)inspect(m);
}

/* A word is changed and on its way; the other end takes it meanwhile only where it must. */
static double flushes(slmpm_mirror m, uint32_t how)
{
	uint64_t *word = (uint64_t *)(void *)(memory + page);
	double from = micros();

	for (int i = 0; i < FLUSHES; i++) {
		if (how == SLMPM_TRACK_NONE)
			ok(slmpm_mirror_store64(m, word, *word + 1), "slmpm_mirror_store64");
		else
			__atomic_store_n(word, *word + 1, __ATOMIC_RELAXED);
		ok(slmpm_mirror_flush(m, PATIENCE_MS), "slmpm_mirror_flush");
	}
	from = micros() - from;
	while (slmpm_progress(ctx) > 0)
		;
	return from / FLUSHES;
}

static void measure(size_t pages, uint32_t how)
{
	static double samples[FIGURES][ROUNDS];
	slmpm_mirror leader = mirror_of(memory, pages * page, how);
	slmpm_mirror follower = mirror_of(memory + LARGE * page, pages * page, SLMPM_TRACK_NONE);

	(void)slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, 0);
	ok(slmpm_mirror_attach(follower, far, 1, SLMPM_MIRROR_FOLLOW, PATIENCE_MS), "follow");
	ok(slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, PATIENCE_MS), "lead");
	for (int i = 0; i < ROUNDS; i++) {
		double figures[FIGURES];

		inspections(leader, pages, figures);
		ok(slmpm_mirror_flush(leader, PATIENCE_MS), "slmpm_mirror_flush");
		while (slmpm_progress(ctx) > 0)
			;
		figures[FLUSH] = flushes(leader, how);
		for (int k = 0; k < FIGURES; k++)
			samples[k][i] = figures[k];
	}
	ok(slmpm_mirror_destroy(leader), "slmpm_mirror_destroy");
	ok(slmpm_mirror_destroy(follower), "slmpm_mirror_destroy");
	printf("| %zu KiB, %s |", pages * page / 1024, ways[how]);
	for (int k = 0; k < FIGURES; k++)
		if (how || k == FLUSH)
			printf(" %.3g |", median(samples[k], ROUNDS));
		else
			printf(" |");
	printf("\n");
}

static void pair(void)
{
	slmpm_listener listener;
	char url[64];

	snprintf(url, sizeof(url), "shm:track-%d", (int)getpid());
	ok(slmpm_listen(&listener, ctx, url), "slmpm_listen");
	ok(slmpm_connect(&near, ctx, url, PATIENCE_MS), "slmpm_connect");
	ok(slmpm_accept(listener, &far, PATIENCE_MS), "slmpm_accept");
}

int main(void)
{
	page = (size_t)getpagesize();
	memory = mmap(NULL, 2 * LARGE * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	memset(memory, 1, 2 * LARGE * page);
	ok(slmpm_open(&ctx, NULL), "slmpm_open");
	pair();
	printf("| us |");
	for (int k = 0; k < FIGURES; k++)
		printf(" %s |", heads[k]);
	printf("\n| --- | --- | --- | --- | --- | --- |\n");
	for (size_t pages = SMALL; pages <= LARGE; pages *= 16)
		for (uint32_t how = SLMPM_TRACK_NONE; how <= SLMPM_TRACK_TWIN; how++) {
			if (how == SLMPM_TRACK_AUTO)
				continue;
			if (slmpm_mirror_track_works((int)how) < 0)
				fprintf(stderr, "%s\n", slmpm_error_detail());
			else
				measure(pages, how);
		}
	return 0;
}
