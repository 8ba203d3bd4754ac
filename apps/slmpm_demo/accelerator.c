/* SPDX-License-Identifier: BSD-3-Clause */
/* The accelerator: hashes each slot's files from the messages where they lie, answers digests. */
#include "apps/slmpm_demo/demo.h"

#include <signal.h>
#include <string.h>

struct accel {
	slmpm_peer host;
	struct digest *slots[WINDOW_MAX];
	unsigned char *places; /* the region that large files are put into, or NULL */
	unsigned count;        /* slots that have places there */
	uint64_t turn[WINDOW_MAX];
	slmpm_group group; /* of --reduce, or 0 */
	struct counts counts;
};

/* What a file has come to. */
static void conclude(struct accel *a, struct digest *d, unsigned char text[ANSWER_SIZE])
{
	uint64_t bytes = digest_end(d, text);

	count_write(text + DIGEST_SIZE, bytes);
	counts_add(&a->counts, bytes);
}

static int say(struct accel *a, uint32_t what, const void *text, size_t len)
{
	const struct slmpm_iov piece = {.base = (void *)(uintptr_t)text, .len = len};
	const struct slmpm_how how = {.size = sizeof(how), .imm = what, .timeout_ms = -1};

	return slmpm_sendv(a->host, ANSWER_STREAM, &piece, 1, &how, NULL);
}

static int answer(struct accel *a, uint32_t slot, struct digest *d)
{
	unsigned char text[ANSWER_SIZE];

	conclude(a, d, text);
	return say(a, slot, text, sizeof(text));
}

/* Whatever comes of it: the host says so. */
static void reduce(struct accel *a)
{
	struct counts all;

	if (!a->group.id)
		return;
	counts_reduce(a->group, &a->counts, &all);
	slmpm_group_destroy(a->group);
}

static int bye(slmpm_peer host)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_COUNTERS, .timeout_ms = 5000};
	struct slmpm_stats s = {.size = sizeof(s)};
	struct slmpm_iov piece;
	char text[64];
	int rc;

	slmpm_peer_stats(host, &s, sizeof(s));
	snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)s.remote_writes,
		 (unsigned long long)s.remote_reads);
	piece = (struct slmpm_iov){.base = text, .len = strlen(text)};
	rc = slmpm_sendv(host, ANSWER_STREAM, &piece, 1, &how, NULL);
	return rc < 0 ? rc : slmpm_close(host, 5000);
}

/* Hashes what has been put for SLOT, of which the message at DATA tells the length. */
static int take_placed(struct accel *a, uint32_t slot, const void *data, int64_t len)
{
	uint64_t count = len == 8 ? count_read(data) : UINT64_MAX;

	if (slot >= a->count || count > PLACE)
		return -SLMPM_EPROTO;
	digest_add(a->slots[slot], a->places + place_of(slot, a->turn[slot]++), count);
	return say(a, IMM_TAKEN | slot, NULL, 0);
}

/* Hashes the pieces of a loan of LEN bytes, gives it back, and answers what has ended in it. */
static int take_pieces(struct accel *a, uint32_t slot, const unsigned char *data, size_t len)
{
	unsigned char text[PIECES * ANSWER_SIZE];
	struct digest *d = a->slots[slot];
	size_t ended = 0, n;
	uint64_t line;
	uint32_t imm;
	int rc;

	for (size_t at = 0; at + LINE <= len; at += LINE + (n + LINE - 1) / LINE * LINE) {
		line = count_read(data + at);
		n = line & UINT32_MAX;
		imm = (uint32_t)(line >> 32);
		if (n > len - at - LINE || ended == sizeof(text))
			return -SLMPM_EPROTO;
		digest_add(d, data + at + LINE, n);
		if (imm & IMM_FORGET) {
			digest_drop(d);
		} else if (imm & IMM_LAST) {
			conclude(a, d, text + ended);
			ended += ANSWER_SIZE;
		}
	}
	rc = slmpm_release(a->host, data);
	return rc < 0 ? rc : say(a, IMM_TAKEN | slot, text, ended);
}

static int work(struct accel *a)
{
	struct slmpm_done done;
	const void *data;
	struct digest *d;
	int64_t len;
	int rc = 0;

	while (rc >= 0) {
		len = slmpm_hold(a->host, SLMPM_ANY_STREAM, &data, &done, -1);
		if (len < 0)
			return (int)len;
		if (done.imm & IMM_BYE) {
			reduce(a);
			return bye(a->host);
		}
		if (done.imm & IMM_BALLAST) {
			rc = slmpm_release(a->host, data);
			continue;
		}
		if (done.stream >= WINDOW_MAX)
			return -SLMPM_EPROTO;
		d = a->slots[done.stream];
		if (done.imm & IMM_PIECES) {
			rc = take_pieces(a, done.stream, data, (size_t)len);
			continue;
		}
		if (done.imm & IMM_PLACED)
			rc = take_placed(a, done.stream, data, len);
		else
			digest_add(d, data, (size_t)len);
		if (rc >= 0)
			rc = slmpm_release(a->host, data);
		if (done.imm & IMM_FORGET)
			digest_drop(d);
		else if (rc >= 0 && done.imm & IMM_LAST)
			rc = answer(a, done.stream, d);
	}
	return rc;
}

/* A region with places for SLOTS slots and one of ballast, which the host may write. */
static int share_places(struct accel *a, unsigned slots)
{
	slmpm_mem mem;
	void *base;
	int rc = slmpm_mem_alloc((slmpm_ctx){0}, (slots + 1) * (size_t)PLACES * PLACE, SLMPM_WRITE,
				 &mem, &base);

	if (rc < 0)
		return rc;
	a->places = base;
	a->count = slots;
	return slmpm_mem_share(mem, a->host, SLMPM_WRITE, 5000);
}

int accelerator_run(unsigned slots, bool reduces)
{
	static struct accel a;
	int rc = slmpm_parent(&a.host);

	/* The host ends its accelerators: Ctrl-C means it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (rc == -SLMPM_ESTATE)
		return slmpm_perror("slmpm_demo: --accelerator is for its own use");
	if (rc < 0)
		return slmpm_perror("slmpm_demo: accelerator");
	for (int i = 0; i < WINDOW_MAX; i++) {
		a.slots[i] = digest_new();
		if (!a.slots[i])
			return 1;
	}
	rc = slots ? share_places(&a, slots) : 0;
	if (rc >= 0 && reduces)
		rc = slmpm_group_join(&a.group, a.host, COUNTS_TAG, COUNTS_MS);
	if (rc >= 0)
		rc = say(&a, IMM_READY, NULL, 0);
	if (rc >= 0)
		rc = work(&a);
	for (int i = 0; i < WINDOW_MAX; i++)
		digest_free(a.slots[i]);
	/* A host that ended early has nobody left to tell. */
	if (rc < 0 && rc != -SLMPM_EDEAD && rc != -SLMPM_ECLOSED)
		return slmpm_perror("slmpm_demo: accelerator");
	return rc < 0;
}
