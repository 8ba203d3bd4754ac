/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* libs: -Wl,--wrap=board_unmap */
/*
 * Survivors that agree by messages: slmpm/board/agree.c as it is, at members that bring each other
 * copies of what it shows as slmpm/group/survivors.c does. All orders of passes, sends, arrivals,
 * deaths, and ends of connections that others see early or late are gone through.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/agree.h"
#include "tests/lib/test.h"

#define N       3
#define DEPTH   200
#define WAITING 4 /* messages of one connection */
#define TABLE   (1u << 20)

struct scene {
	const char *name;
	unsigned members, kills; /* of the highest ranks */
	unsigned shrinks;
	unsigned cuts; /* connections that end, and are made again */
	bool late;     /* what one that has died had sent comes behind its end, too, or else not */
};

static const struct scene *scene;

/* They are none that could be. */
void __wrap_board_unmap(const struct board *board);
void __wrap_board_unmap(const struct board *board)
{
	(void)board;
}

struct message {
	bool verdict;
	uint8_t generation, posted, gone;
};

struct node {
	struct boards b;
	struct agreement a;
	const struct board *of[N];
	int bells[N], watched[N];
	uint64_t answered[N];
	uint32_t seats[N];
	int32_t processes[N], numbers[N];
	struct attach_probe probes[N];
	bool dead, over, ended[N]; /* ENDED: by seat, that this one has seen to be dead */
	uint64_t has_view[N], has_verdict[N]; /* by seat: struct distant */
	struct message on_way[N][WAITING];    /* to seat */
	uint8_t count[N];
	uint8_t members[4], base[4]; /* of each generation that it has come to */
};

/* What can be different: struct board is long. */
struct word {
	uint64_t version, shown, posted, gone, decided, base, out;
};

struct world {
	struct node node[N];
	unsigned killed, cut;
};

static struct world w;
static struct board boards[N][N]; /* [i][i]: its own; [i][j]: i's copy of j's */

struct state {
	struct world w;
	struct word words[N][N];
};

static struct state path[DEPTH];
static uint64_t seen[TABLE], states;

/* ---- states ---------------------------------------------------------------------------------- */

static void save(struct state *s)
{
	s->w = w;
	for (unsigned i = 0; i < scene->members; i++)
		for (unsigned j = 0; j < scene->members; j++) {
			const struct board *b = &boards[i][j];

			s->words[i][j] = (struct word){b->view.version,       b->view.generation,
						       b->view.posted,        b->view.gone[0],
						       b->verdict.generation, b->verdict.base,
						       b->verdict.gone[0]};
		}
}

static void restore(const struct state *s)
{
	w = s->w;
	for (unsigned i = 0; i < scene->members; i++)
		for (unsigned j = 0; j < scene->members; j++) {
			const struct word *at = &s->words[i][j];
			struct board *b = &boards[i][j];

			b->view.version = at->version;
			b->view.generation = at->shown;
			b->view.posted = at->posted;
			b->view.gone[0] = at->gone;
			b->verdict.generation = at->decided;
			b->verdict.base = at->base;
			b->verdict.gone[0] = at->out;
		}
}

static uint64_t hash_of(const struct state *s)
{
	const uint64_t *at = (const void *)s;
	uint64_t h = 1;

	for (size_t k = 0; k < sizeof(*s) / 8; k++) {
		h ^= at[k];
		h *= UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h ? h : 1;
}

static bool is_new(uint64_t hash)
{
	uint64_t at = hash % TABLE;

	while (seen[at] && seen[at] != hash)
		at = (at + 1) % TABLE;
	if (seen[at])
		return false;
	seen[at] = hash;
	CHECK(++states < TABLE / 2, "%s: too many states", scene->name);
	return true;
}

/* ---- members --------------------------------------------------------------------------------- */

static bool node_is_gone(void *arg, uint32_t rank)
{
	const struct node *n = arg;

	return n->ended[n->b.seats[rank]];
}

static void node_leaves(void *arg, uint32_t rank)
{
	(void)arg;
	(void)rank;
}

static void begin(struct node *n)
{
	agree_begin(&n->a, &n->b, node_is_gone, node_leaves, n);
	n->a.apart = true;
}

static void judge(unsigned i)
{
	struct node *n = &w.node[i];
	uint32_t g = n->b.generation;

	for (uint32_t r = 0; r < n->b.size; r++)
		n->members[g] |= (uint8_t)(1 << n->b.seats[r]);
	n->base[g] = (uint8_t)n->b.posted;
	for (unsigned j = 0; j < scene->members; j++) {
		const struct node *o = &w.node[j];

		CHECK(n->members[g] >> j & 1 || o->dead, "%s: one that lives is left out",
		      scene->name);
		if (o->dead || !o->members[g])
			continue;
		CHECK(o->members[g] == n->members[g], "%s: %u has %x, %u has %x", scene->name, i,
		      n->members[g], j, o->members[g]);
		CHECK(o->base[g] == n->base[g], "%s: other numbers", scene->name);
	}
}

static void send_said(struct node *n, unsigned j, bool verdict, const struct said *said)
{
	CHECK(n->count[j] < WAITING, "%s: no room for a message", scene->name);
	n->on_way[j][n->count[j]++] = (struct message){
		verdict, (uint8_t)said->generation, (uint8_t)said->posted, (uint8_t)said->gone[0]};
}

/* survivor_show. One that dies amidst it has lost the rest: notice. */
static void show_to(struct node *n, unsigned j)
{
	uint64_t version = board_load(&n->b.own->view.version);
	struct said said;

	if (n->dead || n->ended[j] || n == &w.node[j])
		return;
	if (agree_give(&n->b, true, &said) && said.generation != n->has_verdict[j])
		send_said(n, j, true, &said);
	n->has_verdict[j] = said.generation;
	if (agree_give(&n->b, false, &said) && version != n->has_view[j])
		send_said(n, j, false, &said);
	n->has_view[j] = version;
}

/* shrink_advance */
static bool advance(unsigned i)
{
	struct node *n = &w.node[i];
	int rc;

	if (n->dead || n->over)
		return false;
	for (uint32_t r = 0; r < n->b.size; r++)
		if (n->ended[n->b.seats[r]])
			agree_mark(&n->a, r);
	rc = agree_step(&n->a);
	CHECK(rc >= 0, "%s: an honest member lies: %s", scene->name, slmpm_error_detail());
	if (!rc)
		return true;
	agree_end(&n->a);
	judge(i);
	n->over = n->b.generation == scene->shrinks;
	n->b.posted += i;
	if (!n->over)
		begin(n);
	else
		memset(&n->a, 0, sizeof(n->a));
	return true;
}

static bool pass(unsigned i)
{
	bool acts = advance(i);

	for (unsigned j = 0; acts && j < scene->members; j++)
		show_to(&w.node[i], j);
	return acts;
}

/* survivor_said */
static bool arrive(unsigned i, unsigned j)
{
	struct node *n = &w.node[i];
	struct message m = n->on_way[j][0];

	if (!n->count[j])
		return false;
	n->count[j]--;
	memmove(&n->on_way[j][0], &n->on_way[j][1], sizeof(m) * (WAITING - 1));
	memset(&n->on_way[j][n->count[j]], 0, sizeof(m));
	if (!w.node[j].dead && !w.node[j].ended[i]) {
		struct said said = {.generation = m.generation, .posted = m.posted};

		said.gone[0] = m.gone;
		agree_take(&boards[j][i], m.verdict, &said);
	}
	return true;
}

static void drop(unsigned i, unsigned j)
{
	struct node *n = &w.node[i];

	memset(n->on_way[j], 0, sizeof(n->on_way[j]));
	n->count[j] = 0;
	n->has_view[j] = n->has_verdict[j] = 0;
}

/* J sees I's end; what comes of it after that counts no more. */
static bool notice(unsigned i, unsigned j)
{
	if (i == j || !w.node[i].dead || w.node[j].dead || w.node[j].ended[i])
		return false;
	if (!scene->late)
		drop(i, j);
	w.node[j].ended[i] = true;
	return true;
}

static bool die(unsigned i)
{
	if (w.killed == scene->kills || w.node[i].dead || i + scene->kills < scene->members)
		return false;
	w.killed++;
	w.node[i].dead = true;
	memset(&w.node[i].a, 0, sizeof(w.node[i].a));
	for (unsigned j = 0; j < scene->members; j++) { /* it decides nothing any more */
		w.node[i].has_view[j] = w.node[i].has_verdict[j] = 0;
		memset(&boards[i][j].view, 0, sizeof(boards[i][j].view));
		memset(&boards[i][j].verdict, 0, sizeof(boards[i][j].verdict));
		drop(j, i);
	}
	return true;
}

static bool cut(unsigned i, unsigned j)
{
	if (i >= j || w.cut == scene->cuts || w.node[i].dead || w.node[j].dead)
		return false;
	w.cut++;
	drop(i, j);
	drop(j, i);
	show_to(&w.node[i], j);
	show_to(&w.node[j], i);
	return true;
}

/* ---- all ways -------------------------------------------------------------------------------- */

enum acts { PASS, ARRIVE, NOTICE, CUT, DIE, ACTS };

static bool act(unsigned what, unsigned i, unsigned j)
{
	switch (what) {
	case PASS: return j == 0 && pass(i);
	case ARRIVE: return arrive(i, j);
	case NOTICE: return notice(i, j);
	case CUT: return cut(i, j);
	default: return j == 0 && die(i);
	}
}

/* Nothing of the others can change anything any more. */
static void stands(void)
{
	for (unsigned i = 0; i < scene->members; i++)
		CHECK(w.node[i].dead || w.node[i].over, "%s: %u waits for ever", scene->name, i);
}

static void go(unsigned depth)
{
	struct state *here = &path[depth];
	bool moves = false;

	CHECK(depth + 1 < DEPTH, "%s: no end of steps", scene->name);
	memset(here, 0, sizeof(*here));
	save(here);
	if (!is_new(hash_of(here)))
		return;
	for (unsigned k = 0; k < ACTS * N * N; k++) {
		unsigned what = k / (N * N), i = k / N % N, j = k % N;

		if (i >= scene->members || j >= scene->members || !act(what, i, j))
			continue;
		save(&path[depth + 1]);
		if (memcmp(here, &path[depth + 1], sizeof(*here)) != 0) {
			moves |= what < CUT;
			go(depth + 1);
		}
		restore(here);
	}
	if (!moves)
		stands();
}

static void search(const struct scene *s)
{
	scene = s;
	memset(&w, 0, sizeof(w));
	memset(seen, 0, sizeof(seen));
	memset(path, 0, sizeof(path));
	states = 0;
	for (unsigned i = 0; i < s->members; i++) {
		struct node *n = &w.node[i];

		n->b = (struct boards){.size = s->members,
				       .rank = i,
				       .own = &boards[i][i],
				       .of = n->of,
				       .bells = n->bells,
				       .answered = n->answered,
				       .seats = n->seats,
				       .processes = n->processes,
				       .watched = n->watched,
				       .probes = n->probes,
				       .numbers = n->numbers,
				       .posted = i};
		for (unsigned r = 0; r < s->members; r++) {
			memset(&boards[i][r].view, 0, sizeof(boards[i][r].view));
			memset(&boards[i][r].verdict, 0, sizeof(boards[i][r].verdict));
			n->of[r] = &boards[i][r];
			n->bells[r] = n->watched[r] = -1;
			n->seats[r] = r;
		}
		begin(n);
	}
	go(0);
	printf("%s: %llu states\n", s->name, (unsigned long long)states);
}

int main(void)
{
	static const struct scene scenes[] = {
		{"one dies", 3, 1, 1, 0, true},
		{"two die", 3, 2, 1, 0, false},
		{"a connection ends", 3, 0, 1, 1, false},
		{"two members, a connection ends", 2, 0, 1, 1, false},
		{"two members, twice", 2, 1, 2, 0, true},
	};

	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		search(&scenes[i]);
	return 0;
}
