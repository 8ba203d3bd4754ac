/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One state of the members and their boards, and one step: a member makes an access, notices who is
 * dead, sleeps or wakes; one of its stores becomes visible; or it dies, and then all of them are.
 */
#include "tests/model/step.h"

#include <stdio.h>
#include <string.h>

#include "tests/model/board/members.h"
#include "tests/model/coroutine.h"

#define BELOW 2048 /* bytes under the used stack kept zero: what a call finds there is no state */

struct model_world model;
const struct scene *model_scene;

static unsigned char stacks[MEMBERS][COROUTINE_STACK] __attribute__((aligned(4096)));
static struct coroutine coroutines[MEMBERS];
static bool tracing;

/* ---- for the members ------------------------------------------------------------------------- */

uint64_t model_ask(struct asked asked)
{
	struct model_member *m = &model.members[model.running];

	m->asked = asked;
	coroutine_yield(&coroutines[model.running]);
	return m->result;
}

void model_wrong(const char *text)
{
	if (!model.fault)
		model.fault = text;
	for (;;)
		(void)model_ask((struct asked){.kind = ASK_END});
}

uint64_t model_own(unsigned word)
{
	const struct model_member *m = &model.members[model.running];

	for (unsigned i = m->late_count; i--;)
		if (m->late[i].word == word)
			return m->late[i].value;
	return model.words[model.running][word];
}

void model_ring(unsigned member)
{
	model.members[member].bell = 1;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static bool may_show(const struct model_member *m, unsigned i)
{
	for (unsigned before = 0; before < i; before++)
		if (m->late[i].release || m->late[before].word == m->late[i].word ||
		    m->late[before].fenced != m->late[i].fenced)
			return false;
	return true;
}

static void see_store(unsigned who, unsigned word, uint64_t value)
{
	model.words[who][word] = value;
	if (word == WORD_BUFFER && model.taken_back && !model.fault)
		model.fault = "a buffer is written that is its owner's again";
}

static void show_store(unsigned who, unsigned i)
{
	struct model_member *m = &model.members[who];

	see_store(who, m->late[i].word, m->late[i].value);
	m->late_count--;
	memmove(&m->late[i], &m->late[i + 1], (m->late_count - i) * sizeof(m->late[0]));
	memset(&m->late[m->late_count], 0, sizeof(m->late[0]));
	if (!m->late_count)
		m->fences = 0;
}

/* None sees it yet: no step. */
void member_store(struct asked asked)
{
	struct model_member *m = &model.members[model.running];

	if (!model_scene->fine) {
		see_store(model.running, asked.word, asked.value);
		return;
	}
	if (m->late_count == LATE_MOST)
		model_wrong("the checker: more stores than it has room for");
	m->late[m->late_count++] =
		(struct late_store){asked.word, asked.release, m->fences, asked.value};
}

/* ---- ways ------------------------------------------------------------------------------------ */

static unsigned unnoticed(const struct model_member *m)
{
	unsigned dead = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		dead |= (unsigned)model.members[i].dead << i;
	return dead & ~(unsigned)m->noticed;
}

/* The Nth way to notice some of those in SET, or none; SET itself where there are no more. */
static unsigned subset(unsigned set, unsigned n)
{
	unsigned sub = 0;

	while (n--)
		sub = (sub - set) & set;
	return sub;
}

static unsigned ways_of_member(const struct model_member *m)
{
	if (m->dead)
		return 0;
	switch (m->asked.kind) {
	case ASK_FENCE: return !m->late_count;
	case ASK_NOTICE: return m->woken ? 1 : 1u << __builtin_popcount(unnoticed(m));
	case ASK_SLEEP: return m->bell || unnoticed(m) || !m->spun;
	case ASK_WRITER:
		return model.words[m->asked.of][m->asked.word] != m->asked.value ||
		       (unnoticed(m) >> m->asked.of & 1);
	case ASK_END: return 0;
	default: return 1;
	}
}

static bool may_die(const struct model_member *m)
{
	return !m->dead && model.deaths < model_scene->kills;
}

enum step_kind { STEP_MEMBER, STEP_SHOW, STEP_DIE };

struct one_way {
	enum step_kind kind;
	unsigned who, way;
};

/* The WAYth of all, or how many there are where there are not so many. */
static unsigned find_way(unsigned way, struct one_way *found)
{
	unsigned n = 0;

	for (unsigned who = 0; who < model_scene->members; who++) {
		const struct model_member *m = &model.members[who];
		unsigned ways = ways_of_member(m);

		if (way >= n && way < n + ways)
			*found = (struct one_way){STEP_MEMBER, who, way - n};
		n += ways;
		for (unsigned i = 0; i < m->late_count; i++) {
			if (!may_show(m, i))
				continue;
			if (way == n++)
				*found = (struct one_way){STEP_SHOW, who, i};
		}
		if (may_die(m) && way == n++)
			*found = (struct one_way){STEP_DIE, who, 0};
	}
	return n;
}

/* But for deaths there is no way to go on. */
bool model_stands(void)
{
	for (unsigned who = 0; who < model_scene->members; who++)
		if (ways_of_member(&model.members[who]) || model.members[who].late_count)
			return false;
	return true;
}

unsigned step_ways(const struct search *s)
{
	struct one_way none;

	(void)s;
	return find_way(UINT32_MAX, &none);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run(unsigned who)
{
	struct coroutine *c = &coroutines[who];

	memset((unsigned char *)c->sp - BELOW, 0, BELOW);
	model.running = (uint8_t)who;
	coroutine_resume(c);
	model.running = MEMBERS;
}

static void perform(unsigned who, unsigned way)
{
	struct model_member *m = &model.members[who];
	const struct asked *a = &m->asked;

	m->result = 0;
	switch (a->kind) {
	case ASK_LOAD: m->result = model.words[a->of][a->word]; break;
	case ASK_IS_GONE: m->result = model.members[a->of].dead; break;
	case ASK_NOTICE:
		m->noticed |= (uint8_t)(m->woken ? unnoticed(m) : subset(unnoticed(m), way));
		m->woken = 0;
		break;
	case ASK_SLEEP:
		m->woken = !m->bell && unnoticed(m);
		m->spun |= !m->bell && !m->woken;
		m->bell = 0;
		break;
	case ASK_WRITER: m->noticed |= (uint8_t)unnoticed(m); break;
	default: break;
	}
}

static void die(unsigned who)
{
	struct model_member *m = &model.members[who];

	while (m->late_count)
		show_store(who, 0);
	memset(&m->asked, 0, sizeof(m->asked));
	m->result = 0;
	m->dead = 1;
	m->noticed = m->bell = m->woken = m->spun = m->over = 0;
	model.deaths++;
}

static void see_end(unsigned who)
{
	struct model_member *m = &model.members[who];

	m->over |= m->asked.kind == ASK_END;
}

static void say(const struct one_way *w)
{
	static const char *const kinds[] = {"loads", "fence", "notices", "wakes",
					    "looks", "waits", "end"};
	static const char *const words[] = {"asleep",   "ended",  "version",   "generation",
					    "posted",   "gone",   "verdict",   "its base",
					    "its gone", "claims", "withdrawn", "a write"};
	const struct model_member *m = &model.members[w->who];

	printf("    %u  ", w->who);
	if (w->kind == STEP_DIE)
		printf("is killed\n");
	else if (w->kind == STEP_SHOW)
		printf("%s %#llx is seen\n", words[m->late[w->way].word],
		       (unsigned long long)m->late[w->way].value);
	else if (m->asked.kind == ASK_LOAD)
		printf("loads %s of %u: %#llx\n", words[m->asked.word], m->asked.of,
		       (unsigned long long)model.words[m->asked.of][m->asked.word]);
	else
		printf("%s %u\n", kinds[m->asked.kind], w->way);
}

void step_take(const struct search *s, unsigned way)
{
	struct one_way w = {0};

	(void)s;
	(void)find_way(way, &w);
	if (tracing)
		say(&w);
	if (w.kind == STEP_DIE) {
		die(w.who);
	} else if (w.kind == STEP_SHOW) {
		show_store(w.who, w.way);
	} else {
		perform(w.who, w.way);
		if (!model.fault)
			run(w.who);
		see_end(w.who);
	}
}

void step_show(const struct search *s, unsigned way)
{
	tracing = true;
	step_take(s, way);
	tracing = false;
}

void step_start(const struct search *s)
{
	(void)s;
	memset(&model, 0, sizeof(model));
	members_start();
	for (unsigned who = 0; who < model_scene->members; who++)
		coroutine_init(&coroutines[who], stacks[who], members_live);
	for (unsigned who = 0; who < model_scene->members && !model.fault; who++) {
		run(who);
		see_end(who);
	}
}

const char *step_fault(void)
{
	return model.fault;
}

/* ---- the state as bytes ---------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *at, size_t size)
{
	const unsigned char *bytes = at;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (; size; size--)
		hash = (hash ^ *bytes++) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

uint64_t step_hash(const struct search *s)
{
	uint64_t hash = mix(1, &model, sizeof(model));

	(void)s;
	hash = mix(hash, members_private, members_private_size);
	for (unsigned who = 0; who < model_scene->members; who++)
		if (!model.members[who].dead && !model.members[who].over)
			hash = mix(hash, coroutines[who].sp, coroutine_used(&coroutines[who]));
	return hash;
}

size_t step_size(const struct search *s)
{
	size_t size = sizeof(model) + members_private_size + sizeof(coroutines);

	(void)s;
	for (unsigned who = 0; who < model_scene->members; who++)
		size += coroutine_used(&coroutines[who]);
	return size;
}

static unsigned char *put(unsigned char *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return to + size;
}

void step_save(const struct search *s, void *to)
{
	unsigned char *at = to;

	(void)s;
	at = put(at, &model, sizeof(model));
	at = put(at, members_private, members_private_size);
	at = put(at, coroutines, sizeof(coroutines));
	for (unsigned who = 0; who < model_scene->members; who++)
		at = put(at, coroutines[who].sp, coroutine_used(&coroutines[who]));
}

static const unsigned char *get(void *to, const unsigned char *from, size_t size)
{
	memcpy(to, from, size);
	return from + size;
}

void step_restore(const struct search *s, const void *from, size_t size)
{
	const unsigned char *at = from;

	(void)s;
	(void)size;
	at = get(&model, at, sizeof(model));
	at = get(members_private, at, members_private_size);
	at = get(coroutines, at, sizeof(coroutines));
	for (unsigned who = 0; who < model_scene->members; who++)
		at = get(coroutines[who].sp, at, coroutine_used(&coroutines[who]));
}
