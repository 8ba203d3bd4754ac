/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * Operations that a fabric begins and tells of later (tests/fabric/masked.h), and what comes in
 * between: packets that a fenced one follows, a deadline, a region that is released, a link that is
 * lost, many that wait behind one.
 */
#include <stdlib.h>

#include "tests/fabric/masked.h"
#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SIZE 4096
#define MANY 100000

static const slmpm_ctx none;
static slmpm_peer near, far;
static slmpm_mem mem;
static slmpm_rmem rmem;
static unsigned char *memory;

static void reach(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_key key;
	void *base;

	actor_pair(none, &near, &far);
	OK(slmpm_mem_alloc(none, SIZE, SLMPM_READ_WRITE, &mem, &base));
	memory = base;
	OK(slmpm_mem_key(mem, far, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(near, &key, &rmem));
	actor_settle(near, far);
	OK(slmpm_rmem_query(rmem, &info));
	CHECK(!strcmp(info.path, "fabric"), "reached by %s", info.path);
}

/* What goes by packets, for it notifies, has not been seen to when the fabric reads. */
static int fenced(void *arg)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	uint64_t word = 7, got = 0;

	(void)arg;
	later_lands = later_hurries = true;
	reach();
	for (int i = 0; i < 2; i++, word++) {
		slmpm_req req[2] = {{0}, {0}};

		how.flags = i ? SLMPM_NOTIFY | SLMPM_BARRIER : SLMPM_NOTIFY;
		OK(slmpm_put(rmem, 0, &word, sizeof(word), &how, &req[0]));
		how.flags = SLMPM_FENCE;
		OK(slmpm_get(rmem, 0, &got, sizeof(got), &how, &req[1]));
		for (int n = 0; n < 2; n++)
			CHECK(slmpm_wait(req, 2, NULL, PATIENCE) >= 0, "%s", slmpm_error_detail());
		CHECK(got == word, "%llu behind a put of %llu", (unsigned long long)got,
		      (unsigned long long)word);
	}
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

/* Who waited no longer leaves its memory to the fabric until a flush. */
static int stalled(void *arg)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = 50};
	struct slmpm_how fence = {.size = sizeof(fence), .timeout_ms = 50, .flags = SLMPM_FENCE};
	uint64_t word = 7, got = 1, other = 0;
	slmpm_req req;

	(void)arg;
	reach();
	later_stalls = true;
	memcpy(memory, &word, sizeof(word));
	REFUSED(slmpm_get(rmem, 0, &got, sizeof(got), &how, NULL), SLMPM_EBUSY, "buffer");
	REFUSED(slmpm_put(rmem, 8, &word, sizeof(word), &how, NULL), SLMPM_EBUSY, "buffer");
	OK(slmpm_get(rmem, 0, &other, sizeof(other), &how, &req));
	REFUSED(slmpm_cancel(req), SLMPM_EBUSY, "too far");
	EXPECT(slmpm_flush(near, 50), -SLMPM_ETIMEOUT);
	EXPECT(slmpm_put(rmem, 16, &word, sizeof(word), &fence, NULL), -SLMPM_ETIMEOUT);
	EXPECT(slmpm_mem_release(rmem), -SLMPM_EBUSY);
	CHECK(got == 1, "%llu: read meanwhile", (unsigned long long)got);
	later_stalls = false;
	OK(slmpm_flush(near, PATIENCE));
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	CHECK(got == 7 && other == 7 && memory[8] == 7 && memory[16] == 0, "%llu, %llu, %u, %u",
	      (unsigned long long)got, (unsigned long long)other, memory[8], memory[16]);
	OK(slmpm_put(rmem, 16, &got, sizeof(got), &fence, NULL));
	CHECK(memory[16] == 7, "%u", memory[16]);
	/* And once more, to the end of the peer. */
	later_stalls = true;
	REFUSED(slmpm_get(rmem, 0, &got, sizeof(got), &how, NULL), SLMPM_EBUSY, "buffer");
	OK(slmpm_close(near, 50));
	later_stalls = false;
	OK(slmpm_close(far, PATIENCE));
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

/* The owner's fabric must not serve a grant that there is none of any more. */
static int released(void *arg)
{
	(void)arg;
	reach();
	CHECK(later_words[0] == FABRIC_ACCESS_DIRECT, "the word says %u", later_words[0]);
	later_words[0] = 99;
	OK(slmpm_mem_release(rmem));
	actor_settle(near, far);
	CHECK(later_words[0] == FABRIC_ACCESS_REVOKED, "the word says %u", later_words[0]);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

/* Each that is done begins the next. */
static int many(void *arg)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	uint64_t word = 7;

	(void)arg;
	reach();
	OK(slmpm_ctr_create(none, &how.ctr));
	later_stalls = true;
	how.flags = SLMPM_BARRIER;
	OK(slmpm_put(rmem, 0, &word, sizeof(word), &how, NULL));
	how.flags = 0;
	for (int i = 0; i < MANY; i++)
		OK(slmpm_put(rmem, 0, &word, 0, &how, NULL));
	later_stalls = false;
	OK(slmpm_ctr_wait(how.ctr, SLMPM_ALL, PATIENCE));
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

/* The other link goes on; what the first had in hand comes by packets. */
static int cut(void *arg)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	uint64_t word = 7, got = 0;
	slmpm_req req[2];

	(void)arg;
	reach();
	while (slmpm_send(near, 5, NULL, 0, PATIENCE) == 0 && !later_cut) {
		struct slmpm_link_info link = {.size = sizeof(link)};

		OK(slmpm_recv(far, 5, NULL, 0, NULL, PATIENCE));
		if (slmpm_link_query(near, 1, &link) == 0 && link.state == SLMPM_LINK_UP)
			break;
	}
	memcpy(memory, &word, sizeof(word));
	later_stalls = true;
	OK(slmpm_get(rmem, 0, &got, sizeof(got), &how, &req[0]));
	OK(slmpm_put(rmem, 8, &word, sizeof(word), &how, &req[1]));
	later_cut = true;
	for (int n = 0; n < 2; n++)
		CHECK(slmpm_wait(req, 2, NULL, 5000) >= 0, "%s", slmpm_error_detail());
	later_stalls = false;
	actor_settle(near, far);
	CHECK(got == 7 && memory[8] == 7, "%llu, %u", (unsigned long long)got, memory[8]);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	settings_one_link("later");
	if (argc < 2 || !strcmp(argv[1], "fenced"))
		settings_run("fenced behind packets", fenced, NULL);
	if (argc < 2 || !strcmp(argv[1], "stalled"))
		settings_run("stalled", stalled, NULL);
	if (argc < 2 || !strcmp(argv[1], "released"))
		settings_run("released", released, NULL);
	if (argc < 2 || !strcmp(argv[1], "many"))
		settings_run("many", many, NULL);
	settings_set("SLMPM_LINKS", "later,tcp");
	settings_set("SLMPM_LINKS_AFTER", "0");
	if (argc < 2 || !strcmp(argv[1], "cut"))
		settings_run("cut", cut, NULL);
	return 0;
}
