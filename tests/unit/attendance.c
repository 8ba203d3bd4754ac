/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* libs: -Wl,--wrap=bootstrap_pass,--wrap=pair_due,--wrap=pair_want,--wrap=pair_unwant */
/* libs: -Wl,--wrap=group_break,--wrap=group_left,--wrap=connect_socket */
/* libs: -Wl,--wrap=watch_add,--wrap=watch_remove,--wrap=bootstrap_await_room,--wrap=calloc */
/*
 * Meetings by messages: slmpm/group/attendance.c as it is, at members that come, leave and die. All
 * orders of that, of arrivals, and of ends that others see early or late are gone through. And how
 * long one that is said to be gone is asked for; what is said last, without room and memory; which
 * connections are wanted after a shrink.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/group/pairing.h"
#include "tests/lib/test.h"

#define N       3
#define DEPTH   200
#define WAITING 8 /* messages of one connection */
#define TABLE   (1u << 20)
#define LAST    2 /* meetings, at most */

struct scene {
	const char *name;
	unsigned meetings, kills, leaves; /* of the highest ranks; of the lowest ones */
	bool lost; /* others may find one gone that has left, before its last words or without */
};

static const struct scene *scene;

struct message {
	uint8_t step, rank, came, through, passed, count;
	uint64_t view;
};

struct known { /* of another: what counts of struct distant */
	uint64_t noted, view, has;
	uint8_t came, passed, fact;
	bool gone, ended;
	uint8_t left;
};

struct node {
	uint64_t view, version;
	uint8_t came, met, passed, number;
	bool changed, meets, pending, dead, left;
	int8_t outcome[LAST + 1]; /* 1: passed; -1: not; 0: none yet */
	struct known of[N];
	uint8_t count[N];
	struct message on_way[N][WAITING]; /* to each */
};

struct world {
	struct node node[N];
};

static struct world w, path[DEPTH];
static uint64_t seen[TABLE], states;
static struct group groups[N];
static struct member members[N][N];
static struct distant distants[N][N];
static struct pair pairs[N][N];
static struct endpoint ends[N][N];
static struct rooms rooms[N][N];
static struct context context;
static bool full, memoryless; /* no connection takes more; there is no memory */

/* ---- in place of the library's --------------------------------------------------------------- */

int __wrap_bootstrap_pass(struct endpoint *ep, void *packet, size_t length, uint32_t type,
			  const int *fds, size_t count);
void __wrap_pair_due(struct member *m, uint64_t when);
void __wrap_pair_want(struct member *m);
void __wrap_pair_unwant(struct member *m);
void __wrap_group_break(struct group *g, int status, int32_t culprit);
void __wrap_group_left(struct group *g, uint32_t rank);
int __wrap_connect_socket(const struct url *url, uint64_t deadline);
void __wrap_bootstrap_await_room(struct endpoint *ep, bool on);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_watch_add(struct context *ctx, struct watch *watch);
void __wrap_watch_remove(struct context *ctx, struct watch *watch);

int __wrap_bootstrap_pass(struct endpoint *ep, void *data, size_t length, uint32_t type,
			  const int *fds, size_t count)
{
	const size_t at = (size_t)(ep - ends[0]);
	const struct wire_group *packet = data;
	struct node *from = &w.node[at / N];
	const unsigned to = (unsigned)(at % N);

	(void)length, (void)type, (void)fds, (void)count;
	if (full)
		return -EAGAIN;
	if (packet->error)
		return 0;
	CHECK(from->count[to] < WAITING, "%s: no room for a message", scene->name);
	from->on_way[to][from->count[to]++] = (struct message){(uint8_t)packet->step,
							       (uint8_t)packet->rank,
							       (uint8_t)packet->came,
							       (uint8_t)packet->through,
							       (uint8_t)packet->passed,
							       (uint8_t)packet->count,
							       packet->view};
	return 0;
}

void __wrap_pair_due(struct member *m, uint64_t when)
{
	m->when = when;
}

void __wrap_pair_want(struct member *m)
{
	m->wanted++;
}

void __wrap_pair_unwant(struct member *m)
{
	m->wanted--;
}

void __wrap_bootstrap_await_room(struct endpoint *ep, bool on)
{
	(void)ep, (void)on;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return memoryless ? NULL : __real_calloc(n, size);
}

void __wrap_group_break(struct group *g, int status, int32_t culprit)
{
	(void)g, (void)status, (void)culprit;
}

void __wrap_group_left(struct group *g, uint32_t rank)
{
	(void)g, (void)rank;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void take_out(unsigned i)
{
	const struct attendance *a = &groups[i].attendance;
	struct node *n = &w.node[i];

	n->view = a->view;
	n->version = a->version;
	n->came = (uint8_t)a->came;
	n->met = (uint8_t)a->met;
	n->passed = (uint8_t)a->passed;
	n->changed = a->changed;
	n->meets = a->meets;
	n->number = (uint8_t)groups[i].meeting.number;
	for (unsigned j = 0; j < N; j++) {
		const struct distant *d = &distants[i][j];

		n->of[j] = (struct known){.noted = d->noted,
					  .view = d->view,
					  .has = d->has,
					  .came = (uint8_t)d->came,
					  .passed = (uint8_t)d->passed,
					  .fact = (uint8_t)d->fact,
					  .gone = d->gone,
					  .ended = members[i][j].ended,
					  .left = (uint8_t)d->left};
	}
}

/* BOARD_LEFT is all ones. */
static uint64_t widened(uint8_t came)
{
	return came == UINT8_MAX ? BOARD_LEFT : came;
}

static void put_in(unsigned i)
{
	struct attendance *a = &groups[i].attendance;
	const struct node *n = &w.node[i];

	*a = (struct attendance){.came = n->came,
				 .met = n->met,
				 .passed = n->passed,
				 .view = n->view,
				 .version = n->version,
				 .users = n->meets,
				 .meets = n->meets,
				 .changed = n->changed};
	groups[i].meeting.number = n->number;
	for (unsigned j = 0; j < N; j++) {
		const struct known *k = &n->of[j];
		struct distant *d = &distants[i][j];

		d->noted = k->noted;
		d->view = k->view;
		d->has = k->has;
		d->came = widened(k->came);
		d->passed = k->passed;
		d->fact = widened(k->fact);
		d->gone = k->gone;
		d->left = k->left;
		members[i][j].ended = k->ended;
		ends[i][j].state =
			k->gone || n->left || n->dead ? SLMPM_PEER_CLOSED : SLMPM_PEER_UP;
	}
}

static bool is_new(void)
{
	const unsigned char *bytes = (const void *)&w;
	uint64_t h = 1, word, at;

	for (size_t k = 0; k + 8 <= sizeof(w); k += 8) {
		memcpy(&word, bytes + k, 8);
		if (!word)
			continue;
		h = (h ^ word ^ k << 48) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	h = h ? h : 1;
	at = h % TABLE;
	while (seen[at] && seen[at] != h)
		at = (at + 1) % TABLE;
	if (seen[at])
		return false;
	seen[at] = h;
	CHECK(++states < TABLE / 2, "%s: too many states", scene->name);
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void judge(unsigned i, unsigned number)
{
	for (unsigned j = 0; j < N; j++) {
		const struct node *o = &w.node[j];

		CHECK(o->dead || (scene->lost && o->left) || !o->outcome[number] ||
			      o->outcome[number] == w.node[i].outcome[number],
		      "%s: meeting %u is %d at %u, %d at %u", scene->name, number,
		      o->outcome[number], j, w.node[i].outcome[number], i);
	}
}

static bool comes(unsigned i)
{
	struct node *n = &w.node[i];

	if (n->dead || n->left || n->pending || n->number == scene->meetings)
		return false;
	n->pending = true;
	attendance_come(&groups[i], ++groups[i].meeting.number);
	return true;
}

static bool decides(unsigned i)
{
	struct node *n = &w.node[i];
	int rc;

	if (n->dead || n->left || !n->pending)
		return false;
	rc = attendance_decide(&groups[i]);
	if (!rc)
		return true;
	attendance_settled(&groups[i], rc > 0);
	n->pending = false;
	n->outcome[n->number] = rc > 0 ? 1 : -1;
	judge(i, n->number);
	return true;
}

static bool leaves(unsigned i)
{
	struct node *n = &w.node[i];

	if (n->dead || n->left || i >= scene->leaves)
		return false;
	distant_left(&groups[i], true, (const uint64_t[2]){0});
	n->left = true;
	return true;
}

static void drop(unsigned i, unsigned j)
{
	memset(w.node[i].on_way[j], 0, sizeof(w.node[i].on_way[j]));
	w.node[i].count[j] = 0;
}

static bool dies(unsigned i)
{
	struct node *n = &w.node[i];

	if (n->dead || n->left || i + scene->kills < N)
		return false;
	n->dead = true;
	for (unsigned j = 0; j < N; j++)
		drop(j, i);
	return true;
}

/* J finds that I is gone; of one that has died what had not come by then is lost. */
static bool sees(unsigned i, unsigned j)
{
	const struct node *n = &w.node[i];

	if (!(n->dead || (scene->lost && n->left)) || w.node[j].dead || w.node[j].left ||
	    w.node[j].of[i].gone || i == j)
		return false;
	if (n->dead)
		drop(i, j);
	members[j][i].ended = true;
	attendance_gone(&members[j][i]);
	return true;
}

static bool arrives(unsigned i, unsigned j)
{
	struct node *n = &w.node[i];
	struct message m = n->on_way[j][0];
	struct wire_group packet = {.step = m.step,
				    .rank = m.rank,
				    .came = widened(m.came),
				    .through = m.through,
				    .passed = m.passed,
				    .count = widened(m.count),
				    .view = m.view};

	if (!n->count[j] || w.node[j].dead || w.node[j].left)
		return false;
	n->count[j]--;
	memmove(&n->on_way[j][0], &n->on_way[j][1], sizeof(m) * (WAITING - 1));
	memset(&n->on_way[j][n->count[j]], 0, sizeof(m));
	if (m.step == GROUP_ENDED) {
		packet.came = 0;
		packet.what = WIRE_GROUP_IN_ORDER;
		CHECK(distant_ended(&ends[j][i], &packet) == 0, "ENDED");
	} else {
		CHECK(attendance_said(&ends[j][i], &packet) == 0, "ATTENDS");
	}
	return true;
}

/* ---- all ways -------------------------------------------------------------------------------- */

static bool act(unsigned what, unsigned i, unsigned j)
{
	switch (what) {
	case 0: return i != j && arrives(i, j);
	case 1: return sees(i, j);
	case 2: return i == j && decides(i);
	case 3: return i == j && comes(i);
	case 4: return i == j && leaves(i);
	default: return i == j && dies(i);
	}
}

static void stands(void)
{
	for (unsigned i = 0; i < N; i++)
		CHECK(w.node[i].dead || w.node[i].left || !w.node[i].pending,
		      "%s: %u waits for ever", scene->name, i);
}

static void go(unsigned depth)
{
	struct world *here = &path[depth];
	bool moves = false;

	CHECK(depth + 1 < DEPTH, "%s: no end of steps", scene->name);
	if (!is_new())
		return;
	*here = w;
	for (unsigned k = 0; k < 6 * N * N; k++) {
		const unsigned what = k / (N * N), i = k / N % N, j = k % N;

		for (unsigned r = 0; r < N; r++)
			put_in(r);
		if (!act(what, i, j))
			continue;
		for (unsigned r = 0; r < N; r++)
			take_out(r);
		if (memcmp(here, &w, sizeof(w)) != 0) {
			moves |= what < 4;
			go(depth + 1);
		}
		w = *here;
	}
	if (!moves)
		stands();
}

static void set_up(void)
{
	static struct board own;
	static uint32_t seats[N] = {0, 1, 2};

	memset(&w, 0, sizeof(w));
	for (unsigned i = 0; i < N; i++) {
		groups[i] = (struct group){
			.ctx = &context,
			.state = GROUP_HAS_FORMED,
			.members = members[i],
			.seats = N,
			.apart = true,
			.boards = {.rank = i, .size = N, .own = &own, .seats = seats}};
		for (unsigned j = 0; j < N; j++) {
			distants[i][j] = (struct distant){0};
			pairs[i][j] = (struct pair){.ep = &ends[i][j], .member = &members[i][j]};
			rooms[i][j].pair = &pairs[i][j];
			ends[i][j].rooms = &rooms[i][j];
			ends[i][j].ctx = &context;
			ends[i][j].state = SLMPM_PEER_UP;
			members[i][j] = (struct member){.group = &groups[i],
							.pair = i != j ? &pairs[i][j] : NULL,
							.distant = i != j ? &distants[i][j] : NULL};
		}
	}
}

static void search(const struct scene *s)
{
	scene = s;
	memset(seen, 0, sizeof(seen));
	memset(path, 0, sizeof(path));
	states = 0;
	set_up();
	go(0);
	printf("%s: %llu states\n", s->name, (unsigned long long)states);
}

/* ---- who is said to be gone ------------------------------------------------------------------ */

static _Atomic unsigned attempts;
static _Atomic int attempt_comes_to;

int __wrap_connect_socket(const struct url *url, uint64_t deadline)
{
	(void)url, (void)deadline;
	attempts++;
	return attempt_comes_to;
}

int __wrap_watch_add(struct context *ctx, struct watch *watch)
{
	(void)ctx, (void)watch;
	return 0;
}

void __wrap_watch_remove(struct context *ctx, struct watch *watch)
{
	(void)ctx, (void)watch;
}

/* By a thread of the attempt's own. */
static void await_attempt(struct member *m)
{
	struct pollfd p = {.fd = m->distant->answered.fd, .events = POLLIN};

	CHECK(poll(&p, 1, 10000) == 1, "no attempt");
	m->distant->has_answered = true;
}

/* Until that shows it. */
static void is_asked_for(void)
{
	struct wire_group packet = {.step = GROUP_ATTENDS, .rank = 3};
	struct member *m = &members[0][2];

	set_up();
	strcpy(m->distant->url, "tcp://127.0.0.1:1");
	ends[0][2].state = SLMPM_PEER_CONNECTING; /* and comes to nothing */
	CHECK(attendance_said(&ends[0][1], &packet) == 0, "ATTENDS");
	m->pair = NULL;
	for (unsigned k = 1; k <= 3; k++) {
		attempt_comes_to = k < 3 ? -SLMPM_ETIMEOUT : -SLMPM_ENOENT;
		distant_step(m, 0);
		CHECK(m->distant->attempt, "no attempt %u", k);
		await_attempt(m);
		distant_step(m, 0);
	}
	CHECK(m->distant->gone, "it is not gone");
	distant_step(m, 0);
	CHECK(attempts == 3, "%u attempts", attempts);
}

/* ---- what cannot be so ----------------------------------------------------------------------- */

static void says(unsigned i, uint64_t through, uint64_t passed)
{
	const struct wire_group packet = {
		.step = GROUP_ATTENDS, .through = through, .passed = passed};

	CHECK(attendance_said(&ends[0][i], &packet) == 0, "ATTENDS");
}

static void counts(uint64_t through, uint64_t passed)
{
	const struct attendance *a = &groups[0].attendance;

	CHECK(a->through == through && a->passed == passed, "through %llu, passed %llu",
	      (unsigned long long)a->through, (unsigned long long)a->passed);
}

/* Before this member has come so far; one that repeats it may have come further. */
static void says_too_much(void)
{
	const struct attendance *a = &groups[0].attendance;

	set_up();
	says(1, UINT64_MAX, UINT64_MAX);
	says(2, 5, 1);
	counts(0, 0);
	CHECK(!a->view, "it is part of the view");
	attendance_come(&groups[0], 1);
	counts(0, 1);
	groups[0].boards.posted = 5;
	attendance_broken(&groups[0]);
	counts(5, 1);
}

/* Of one that lives as well as any: it counts when that is found to be gone. */
static void says_of_another(void)
{
	const struct wire_group packet = {.step = GROUP_ATTENDS, .rank = 3, .count = 9};
	const struct distant *d = &distants[0][2];

	set_up();
	CHECK(attendance_said(&ends[0][1], &packet) == 0, "ATTENDS");
	CHECK(!d->came, "it has come to meeting %llu", (unsigned long long)d->came);
	members[0][2].ended = true;
	attendance_gone(&members[0][2]);
	CHECK(d->came == 9, "it had come to meeting %llu", (unsigned long long)d->came);
}

/* ---- last words ------------------------------------------------------------------------------ */

/* Twice: what is kept for that is there again. */
static void leaves_without_memory(void)
{
	set_up();
	groups[0].attendance.through = 7;
	groups[0].attendance.met = 3;
	CHECK(groups_reserve(&ends[0][1]), "no memory");
	for (unsigned k = 0; k < 2; k++) {
		const struct message *m = &w.node[0].on_way[1][k];

		full = memoryless = true;
		distant_left(&groups[0], true, (const uint64_t[2]){0});
		full = memoryless = false;
		CHECK(groups_send_unsent(rooms[0][1].groups) == 0, "it is full");
		CHECK(w.node[0].count[1] == k + 1 && m->step == GROUP_ENDED && m->through == 7 &&
			      m->passed == 3,
		      "%u: step %u, through %u, passed %u", w.node[0].count[1], m->step, m->through,
		      m->passed);
	}
	groups[1].boards.posted = 7;
	CHECK(arrives(0, 1), "nothing comes");
	CHECK(groups[1].attendance.through == 7, "through %llu",
	      (unsigned long long)groups[1].attendance.through);
}

/* ---- which connections are wanted ------------------------------------------------------------ */

/* A meeting wants one with the last, which had been left out before. */
static void shrinks(void)
{
	static const struct board *of[N];
	const struct member *m = members[0];

	set_up();
	groups[0].boards.size = 2;
	groups[0].boards.of = of;
	members[0][2].out = true;
	members[0][2].wanted = 1;
	CHECK(survivors_begin(&groups[0]) == 0, "no memory");
	CHECK(m[1].wanted == 1 && m[2].wanted == 1, "%u, %u", m[1].wanted, m[2].wanted);
	survivors_end(&groups[0]);
	CHECK(m[1].wanted == 0 && m[2].wanted == 1, "%u, %u", m[1].wanted, m[2].wanted);
}

int main(void)
{
	static const struct scene scenes[] = {
		{"one dies", 1, 1, 0, false},
		{"one dies, one leaves", 1, 1, 1, false},
		{"two meetings", 2, 1, 0, false},
		{"last words are lost", 1, 0, 1, true},
	};

	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		search(&scenes[i]);
	is_asked_for();
	says_too_much();
	says_of_another();
	leaves_without_memory();
	shrinks();
	return 0;
}
