/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer with two links, its handles by plain id and by the address of each link, and a mate that
 * answers in many ways.
 */
#ifndef TESTS_API_ADDRESSED_H
#define TESTS_API_ADDRESSED_H

#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define ROUNDS 12
#define REGION (2 << 20)
#define LONG   (300 << 10) /* a loan in an area */

enum { ECHO, TAKE, STORE, MIRROR, END }; /* streams to the mate */
enum { ASK = 7, ANSWER };                /* handlers */

static slmpm_peer peer, by[2]; /* its plain handle, those of its links */
static slmpm_cq cq;
static slmpm_rmem regions[3]; /* opened by these */

/* ---- the mate ------------------------------------------------------------------------------- */

static void answer(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	OK(slmpm_am_reply(am, ANSWER, am->head, am->head_len, am->data, am->data_len));
}

static void give_key(slmpm_mem mem, slmpm_peer host)
{
	struct slmpm_key key;

	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, TAKE, &key, sizeof(key), PATIENCE));
}

static void store_one(slmpm_peer host, slmpm_mem mem)
{
	struct slmpm_fifo entry;

	OK(slmpm_fifo_take(host, &entry, PATIENCE));
	OK(slmpm_fifo_store(&entry, mem, entry.offset, NULL, NULL));
}

static void follow(slmpm_peer host, uint64_t *words, slmpm_mirror *mirror)
{
	uint64_t sequence = 0;

	OK(slmpm_mirror_create((slmpm_ctx){0}, words, 4096, NULL, mirror));
	OK(slmpm_mirror_attach(*mirror, host, 5, SLMPM_MIRROR_FOLLOW, PATIENCE));
	while (words[0] != 77)
		OK(slmpm_mirror_wait(*mirror, host, &sequence, PATIENCE));
}

/* A region, handlers and a mirror; sends back what it is sent. */
static int mate(slmpm_peer host, char **words)
{
	static unsigned char got[LONG];
	static uint64_t mirrored[512];
	struct slmpm_done done = {.stream = ECHO};
	slmpm_mirror mirror;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *base;

	(void)words;
	OK(slmpm_am_handler((slmpm_ctx){0}, ASK, answer, NULL));
	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ_WRITE, &mem, &base));
	for (int i = 0; i < 3; i++)
		give_key(mem, host);
	while (done.stream != END) {
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, got, sizeof(got), &done, PATIENCE);

		CHECK(n >= 0, "mate: %s", slmpm_error_detail());
		switch (done.stream) {
		case TAKE:
			OK(slmpm_mem_accept(host, &rmem, PATIENCE));
			OK(slmpm_mem_release(rmem));
			break;
		case STORE: store_one(host, mem); break;
		case MIRROR: follow(host, mirrored, &mirror); break;
		default: break;
		}
		OK(slmpm_send(host, done.stream, got, (size_t)n, PATIENCE));
	}
	return 0;
}

static inline void expect_back(uint32_t stream, uint64_t seed, size_t len)
{
	static unsigned char back[LONG];

	EXPECT(slmpm_recv(by[seed % 2], stream, back, sizeof(back), NULL, PATIENCE), len);
	CHECK(actor_filled(back, seed, len), "other bytes came back");
}

/* ---- the host -------------------------------------------------------------------------------- */

static void open_regions(void)
{
	const slmpm_peer handles[3] = {peer, by[0], by[1]};
	struct slmpm_key key;

	for (int i = 0; i < 3; i++) {
		EXPECT(slmpm_recv(handles[i], TAKE, &key, sizeof(key), NULL, PATIENCE),
		       sizeof(key));
		OK(slmpm_mem_open(handles[i], &key, &regions[i]));
	}
}

static inline void spawn(void)
{
	const struct slmpm_spawn_options how = {.size = sizeof(how), .element = 1};

	peer = actor_spawn_with(&how, "mate", NULL, NULL);
	links_await();
}

static inline void find(const char *first, const char *second)
{
	OK(slmpm_peer_find(&by[0], (slmpm_ctx){0}, first));
	if (second)
		OK(slmpm_peer_find(&by[1], (slmpm_ctx){0}, second));
	else /* both have the same: the handles that addresses of their own would give */
		for (uint64_t link = 0; link < 2; link++)
			by[link].id = peer.id | (link + 1) << 24;
	OK(slmpm_cq_create((slmpm_ctx){0}, &cq));
	open_regions();
}

static inline void end(void)
{
	OK(slmpm_send(by[1], END, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(by[0], END, NULL, 0, NULL, PATIENCE), 0);
	EXPECT(slmpm_join(by[1], NULL, PATIENCE), 0);
	EXPECT(slmpm_am(by[1], ASK, NULL, 0, NULL, 0, NULL, NULL), -SLMPM_EHANDLE);
}

/* The mate's role, or SETUP, in which the host plays what it likes. */
static inline int addressed_main(int argc, char **argv, void (*setup)(void))
{
	static const struct actor roles[] = {{"mate", mate}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_PCI", "03:00.0");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_LINKS", "shm,tcp");
	setup();
	return 0;
}

#endif
