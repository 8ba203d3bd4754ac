/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * An accelerator that speaks the language of sharing badly: offers that hold nothing, answers to
 * what was never asked, too many, too short, too long. It is a program of slmpm.h, not of dacs.h.
 */
#include "tests/dacs/pair.h"

#include <slmpm.h>

#define SHARE  UINT32_C(0xffffff03) /* the stream of offers and answers */
#define WORD   UINT32_C(0xffffff01) /* of mailbox words, in the immediate */
#define NOTE   88                   /* bytes of a note: six little-endian words and a key */
#define OFFERS 6000                 /* more than a host keeps */

static slmpm_peer host;

/* A note of its first words, its key, if any, from a pattern. */
static void note(uint32_t type, uint32_t id, uint32_t family, size_t len)
{
	uint32_t head[6] = {type, id, family, 0x60, 0x60, 0};
	unsigned char bytes[NOTE + 8];

	pair_fill(bytes, sizeof(bytes), id);
	for (int i = 0; i < 24; i++)
		bytes[i] = (unsigned char)(head[i / 4] >> 8 * (i % 4));
	CHECK(slmpm_send(host, SHARE, bytes, len, 5000) == 0, "%s", slmpm_error_detail());
}

static void say(uint32_t word)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = word, .timeout_ms = 5000};
	struct slmpm_iov empty = {.base = NULL};

	CHECK(slmpm_sendv(host, WORD, &empty, 1, &how, NULL) >= 0, "%s", slmpm_error_detail());
}

/* Until the host hangs up. */
static void hear(void)
{
	char byte;

	while (slmpm_recv(host, SLMPM_ANY_STREAM, &byte, 1, NULL, -1) != -SLMPM_ECLOSED)
		;
}

static int role_babble(int argc, char **argv)
{
	(void)argc, (void)argv;
	CHECK(slmpm_parent(&host) == 0, "%s", slmpm_error_detail());
	for (uint32_t id = 0; id < 40; id++) {
		note(id % 10, id, id % 3, NOTE);              /* all types, three families */
		note(id % 10, id, id % 3, id);                /* too short */
		note(id % 10, id, id % 3, NOTE + 1 + id % 8); /* too long */
		note(id, UINT32_MAX - id, UINT32_MAX, NOTE);
	}
	say(1);
	hear();
	return 0;
}

/* More offers than are kept: says when one has been refused. */
static int role_flood(int argc, char **argv)
{
	bool refused = false;

	(void)argc, (void)argv;
	CHECK(slmpm_parent(&host) == 0, "%s", slmpm_error_detail());
	for (uint32_t id = 1; id <= OFFERS; id++)
		note(1, id, 0, NOTE);
	say(1);
	for (;;) {
		unsigned char bytes[NOTE] = {0};
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, bytes, NOTE, NULL, -1);

		if (n == -SLMPM_ECLOSED)
			return 0;
		if (n == NOTE && bytes[0] == 3 && !refused) {
			say(2);
			refused = true;
		}
	}
}

/* Says yes to an offer that it never opened, and no to the second. */
static int role_answer(int argc, char **argv)
{
	uint32_t offers = 0;

	(void)argc, (void)argv;
	CHECK(slmpm_parent(&host) == 0, "%s", slmpm_error_detail());
	for (;;) {
		unsigned char bytes[NOTE] = {0};
		int64_t n = slmpm_recv(host, SLMPM_ANY_STREAM, bytes, NOTE, NULL, -1);
		uint32_t id = bytes[4] | (uint32_t)bytes[5] << 8;

		if (n == -SLMPM_ECLOSED)
			return 0;
		if (n != NOTE || bytes[0] != 1)
			continue;
		note(offers ? 3 : 2, id, 0, NOTE);
		note(2, id, 0, NOTE); /* once more */
		offers++;
	}
}

/* ---- cases ---- */

static void nothing_is_accepted(const char *role, bool refuses)
{
	dacs_remote_mem_t mem = 1;
	dacs_mem_t newer = 1;
	uint32_t word = 0;
	struct child c;

	setenv("SLMPM_TIMEOUT", "5000", 1);
	OK(dacs_init(0));
	c = pair_start(role, NULL);
	OK(dacs_mailbox_read(&word, AT(c))); /* behind all of it */
	CHECK(word == 1, "word %u", word);
	OK(dacs_exit());

	setenv("SLMPM_TIMEOUT", "200", 1);
	OK(dacs_init(0));
	c = pair_start(role, NULL);
	for (int i = 0; i < 2; i++) {
		EXPECT(dacs_remote_mem_accept(AT(c), &mem), DACS_ERR_DACSD_FAILURE);
		EXPECT(dacs_mem_accept(AT(c), &newer), DACS_ERR_DACSD_FAILURE);
	}
	CHECK(mem == 1 && newer == 1, "a handle was written");
	OK(dacs_mailbox_read(&word, AT(c)));
	if (refuses) {
		OK(dacs_mailbox_read(&word, AT(c)));
		CHECK(word == 2, "word %u", word);
	}
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
}

static int babble_is_no_offer(int argc, char **argv)
{
	(void)argc, (void)argv;
	nothing_is_accepted("babble", false);
	return 0;
}

static int a_flood_is_stemmed(int argc, char **argv)
{
	(void)argc, (void)argv;
	nothing_is_accepted("flood", true);
	return 0;
}

/* A lie about having accepted harms the liar alone. */
static int answers_are_taken_once(int argc, char **argv)
{
	dacs_remote_mem_t mem;
	struct child c;
	char byte;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "5000", 1);
	OK(dacs_init(0));
	c = pair_start("answer", NULL);
	OK(dacs_remote_mem_create(&byte, 1, DACS_READ_WRITE, &mem));
	OK(dacs_remote_mem_share(AT(c), mem));
	EXPECT(dacs_remote_mem_share(AT(c), mem), DACS_ERR_NO_RESOURCE);
	OK(dacs_remote_mem_destroy(&mem));
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	return 0;
}

static const struct pair_entry roles[] = {
	{"babble", role_babble}, {"flood", role_flood}, {"answer", role_answer}, {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"babble is no offer", babble_is_no_offer},
	{"a flood is stemmed", a_flood_is_stemmed},
	{"answers are taken once", answers_are_taken_once},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
