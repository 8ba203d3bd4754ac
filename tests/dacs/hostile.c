/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* waits */
/* timeout: 60 */
/*
 * An accelerator that speaks the language of sharing badly: offers that hold nothing, answers to
 * what was never asked, too many, too short, too long; words about regions, mutexes and groups. It
 * is a program of slmpm.h, not of dacs.h.
 */
#include "tests/dacs/pair.h"

#include <slmpm.h>

#define MAIL      2  /* the handler of mailbox words, of 4 bytes */
#define WORD      24 /* bytes of a word: type, value, two handles */
#define OFFER     96 /* of an offer of a region: a word, its accesses, a key */
#define WORD_MAX  (OFFER + 8)
#define OFFERS    6000 /* more than a host keeps */
#define NO_HANDLE UINT64_C(99)

static slmpm_peer host;

/* LEN bytes, little-endian: type, value, the handle here, the liar's; a key, if any, from a
 * pattern. */
static void word(uint32_t type, uint32_t value, uint64_t to, uint64_t from, size_t len)
{
	unsigned char bytes[WORD_MAX];

	pair_fill(bytes, sizeof(bytes), value);
	for (size_t i = 0; i < 4; i++) {
		bytes[i] = (unsigned char)(type >> 8 * i);
		bytes[4 + i] = (unsigned char)(value >> 8 * i);
	}
	for (size_t i = 0; i < 8; i++) {
		bytes[8 + i] = (unsigned char)(to >> 8 * i);
		bytes[16 + i] = (unsigned char)(from >> 8 * i);
	}
	CHECK(slmpm_am(host, 1, bytes, len, NULL, 0, NULL, NULL) == 0, "%s", slmpm_error_detail());
}

static void say(uint32_t word)
{
	const unsigned char bytes[4] = {(unsigned char)word};

	CHECK(slmpm_am(host, MAIL, bytes, sizeof(bytes), NULL, 0, NULL, NULL) == 0, "%s",
	      slmpm_error_detail());
}

/* The host has hung up, or is no more. */
static bool is_over(int64_t rc)
{
	return rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD;
}

static void hear(void)
{
	char byte;

	while (!is_over(slmpm_recv(host, SLMPM_ANY_STREAM, &byte, 1, NULL, -1)))
		;
}

static uint64_t handle_of(const unsigned char *bytes)
{
	uint64_t handle = 0;

	for (int i = 7; i >= 0; i--)
		handle = handle << 8 | bytes[16 + i];
	return handle;
}

static int role_babble(int argc, char **argv)
{
	(void)argc, (void)argv;
	CHECK(slmpm_parent(&host) == 0, "%s", slmpm_error_detail());
	for (uint32_t i = 0; i < 40; i++) {
		word(i % 10, i % 3, 0, i, OFFER);             /* all types, three families */
		word(i % 10, i % 3, 0, i, i);                 /* too short */
		word(i % 10, i % 3, 0, i, OFFER + 1 + i % 8); /* too long */
		word(1, i % 2, 0, UINT32_MAX - i, WORD);      /* a region without a key */
		word(i, UINT32_MAX, 0, UINT32_MAX - i, OFFER);
	}
	say(1);
	hear();
	return 0;
}

static bool refused;

static void note_refusal(const struct slmpm_am *am, void *arg)
{
	const unsigned char *bytes = am->head;

	(void)arg;
	refused |= am->head_len == WORD && bytes[0] == 4;
}

/* Handlers run while it waits for an event, of which there is none but the end. */
static bool has_ended(slmpm_ctx ctx)
{
	struct slmpm_event event = {.size = sizeof(event)};

	return slmpm_next_event(ctx, &event, 1) == 1 && is_over(event.error);
}

/* More offers than are kept: says when one has been refused. */
static int role_flood(int argc, char **argv)
{
	slmpm_ctx ctx = {0};

	(void)argc, (void)argv;
	CHECK(slmpm_am_handler(ctx, 1, note_refusal, NULL) == 0 && slmpm_parent(&host) == 0, "%s",
	      slmpm_error_detail());
	for (uint64_t i = 1; i <= OFFERS; i++)
		word(1, 0, 0, i, OFFER);
	say(1);
	while (!refused)
		CHECK(!has_ended(ctx), "nothing was refused");
	say(2);
	hear();
	return 0;
}

/* Says yes to the first offer, and no to the second, without opening them; and at once the
 * contrary. */
static void answer(const struct slmpm_am *am, void *arg)
{
	const unsigned char *bytes = am->head;
	static bool second;

	(void)arg;
	if (am->head_len != OFFER || bytes[0] != 1)
		return;
	word(second ? 4 : 3, 0, handle_of(bytes), NO_HANDLE, WORD);
	word(second ? 3 : 4, 0, handle_of(bytes), NO_HANDLE, WORD);
	second = true;
}

static int role_answer(int argc, char **argv)
{
	slmpm_ctx ctx = {0};

	(void)argc, (void)argv;
	CHECK(slmpm_am_handler(ctx, 1, answer, NULL) == 0 && slmpm_parent(&host) == 0, "%s",
	      slmpm_error_detail());
	hear();
	return 0;
}

/* ---- words about mutexes and groups ---- */

static uint64_t offered[2]; /* handles of the host that it has sent: of a mutex, of a group */

static void note_offer(const struct slmpm_am *am, void *arg)
{
	const unsigned char *bytes = am->head;

	(void)arg;
	if (am->head_len == WORD && bytes[0] == 1 && (bytes[4] == 2 || bytes[4] == 3))
		offered[bytes[4] - 2] = handle_of(bytes);
}

/* Accepts what it is offered, twice, and says everything there is about it and about nothing. The
 * locks that it asks for are its own until it leaves. */
static int role_words(int argc, char **argv)
{
	slmpm_ctx ctx = {0};

	(void)argc, (void)argv;
	CHECK(slmpm_am_handler(ctx, 1, note_offer, NULL) == 0 && slmpm_parent(&host) == 0, "%s",
	      slmpm_error_detail());
	for (uint32_t type = 0; type < 40; type++)
		for (size_t len = 0; len <= 32; len += 4)
			word(type, type % 5, type, UINT64_MAX - type, len);
	word(1, 2, 0, NO_HANDLE, WORD); /* a mutex that is none */
	say(1);
	for (int i = 0; i < 2; i++) {
		while (!offered[i]) {
			struct slmpm_event event = {.size = sizeof(event)};

			CHECK(slmpm_next_event(ctx, &event, 1) != 1 || !event.error, "%s",
			      event.detail);
		}
		for (uint32_t type = 2; type < 20; type++) {
			if (type == 5) /* LEAVE comes last */
				continue;
			word(3, 0, offered[i], 77, WORD);
			for (uint32_t value = 0; value < 3; value++)
				word(type, value, offered[i], 77, WORD);
			word(type, UINT32_MAX, offered[1 - i], 77, WORD);
			word(type, 0, offered[i] ^ 1, 77, WORD);
		}
	}
	say(2);
	for (int i = 0; i < 4; i++)
		word(5, 0, offered[i % 2], 77, WORD);
	hear();
	return 0;
}

/* ---- cases ---- */

/* It delays, as anybody may who has a mutex, and no more. */
static int words_harm_nobody(int argc, char **argv)
{
	dacs_mutex_t mutex, theirs;
	dacs_group_t group;
	struct child c;
	uint32_t said;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "5000", 1);
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	OK(dacs_group_init(&group, 0));
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	c = pair_start("words", NULL);
	OK(dacs_mailbox_read(&said, AT(c)));
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_mutex_share(AT(c), mutex));
	OK(dacs_group_add_member(AT(c), group));
	OK(dacs_mailbox_read(&said, AT(c)));
	CHECK(said == 2, "word %u", said);
	OK(dacs_group_close(group));
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_unlock(mutex));
	OK(dacs_barrier_wait(group)); /* alone, now */
	OK(dacs_group_destroy(&group));
	OK(dacs_mutex_destroy(&mutex));
	OK(dacs_mutex_accept(AT(c), &theirs));
	OK(dacs_mutex_release(&theirs));
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	return 0;
}

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
	/* all of it is there: taken as they come, offers that hold nothing are never too many */
	if (refuses)
		LATE(dacs_mailbox_read(&word, AT(c)), DACS_SUCCESS);
	for (int i = 0; i < 2; i++) {
		EXPECT(dacs_remote_mem_accept(AT(c), &mem), DACS_ERR_DACSD_FAILURE);
		EXPECT(dacs_mem_accept(AT(c), &newer), DACS_ERR_DACSD_FAILURE);
	}
	CHECK(mem == 1 && newer == 1, "a handle was written");
	LATE(dacs_mailbox_read(&word, AT(c)), DACS_SUCCESS);
	CHECK(word == (refuses ? 2 : 1), "word %u", word);
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

static const struct pair_entry roles[] = {{"babble", role_babble},
					  {"flood", role_flood},
					  {"answer", role_answer},
					  {"words", role_words},
					  {NULL, NULL}};

static const struct pair_entry cases[] = {
	{"babble is no offer", babble_is_no_offer},
	{"a flood is stemmed", a_flood_is_stemmed},
	{"answers are taken once", answers_are_taken_once},
	{"words harm nobody", words_harm_nobody},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
