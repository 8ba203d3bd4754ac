/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two work queues of one context, A and B, which is managed; the application's calls, the library's
 * thread, and a peer that may die. A letter is one entry posted: small ones to A, capital ones to
 * B; the second of a pair goes to channel 1, all others to channel 0.
 *
 *	w x  WAIT for one more entry of the other queue that is done
 *	b    WAIT for one more entry of the other queue that has begun
 *	i    as w, for a second at most
 *	m    WAIT for one more entry of B that is enabled
 *	k    WAIT for one more of the counter
 *	u    WAIT for one more completion
 *	n    COUNT: one more
 *	e f  ENABLE one more of B
 *	r t  RECV from the peer, which sends nothing
 *	o    SEND, for which there may be no room yet
 *	g    SEND to an entry of the peer's that is disabled, which waits
 *	d q  the same, which is refused
 *	c    CALC of two turns
 *
 * `.` is no call; `+` enables one more of B; `1` to `4` cancel an entry of A, `5` to `8` one of B;
 * `y` and `z` reset A and B, `!` and `?` destroy them. Where A is kept, `^` runs it once more.
 *
 * What must hold: each entry ends once, those of a channel in their order; a WAIT that succeeds has
 * what it waits for; one that fails was cancelled, or stands behind an entry that failed, or waits
 * for what cannot come, and names the first to blame; in the end none stands that may go.
 */
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/workqueue/workqueue.h"
#include "tests/model/queue/heap.h"
#include "tests/model/queue/scene.h"

#define STREAM   7
#define ENTRIES  8 /* of a queue */
#define CHANNELS 2
#define ELEMENTS 8192 /* two turns of a CALC */

enum { A, B, QUEUES };
enum awaited { NONE, DONE, BEGUN, ENABLED, COUNTER, ENDS, AWAITED };

struct entry {
	uint8_t op, channel;
	uint8_t subject, target; /* of a WAIT: enum awaited, and where that is to be */
	bool waits;              /* a SEND: for its entry */
	bool timed;
	bool over, cancelled;
};

static struct local {
	slmpm_wq wq[QUEUES], sink; /* the peer's, of which no entry is enabled */
	slmpm_ctr ctr;
	bool gone[QUEUES];
	bool dropped; /* by this step: what A kept */
	/* Totals; entries that there are, and the number before the first one's. */
	uint8_t posted[QUEUES], done[QUEUES], failed[QUEUES], count[QUEUES], base[QUEUES];
	uint8_t enabled, counted;
	uint8_t last[QUEUES][CHANNELS]; /* that has ended, receives aside */
	struct {
		uint8_t number; /* the entry that stopped the channel, from 1; or 0 */
		int16_t status;
	} stop[QUEUES][CHANNELS], before[QUEUES][CHANNELS]; /* `before` this step */
	struct {
		bool there;
		uint8_t next;
	} waits[QUEUES][AWAITED]; /* relative: where the next is to be */
	struct entry entries[QUEUES][ENTRIES];
} play;

static double numbers[2 * ELEMENTS], sums[2 * ELEMENTS];

static struct workqueue *queue_of(int q)
{
	return handle_get(&workqueue_table, play.wq[q].id);
}

static uint64_t total_of(int q, unsigned subject)
{
	const struct workqueue *t = queue_of(!q);

	if (subject == COUNTER)
		return ((struct counter *)handle_get(&counter_table, play.ctr.id))->done;
	if (subject == ENDS)
		return ((struct queue *)handle_get(&queue_table, sides[LEFT].cq.id))->tail;
	if (!t)
		return 0;
	return subject == DONE ? t->done : subject == BEGUN ? t->begun : t->enabled;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void set_up(void)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o),
		.depth = ENTRIES,
		.channels = CHANNELS,
		.cq = sides[LEFT].cq,
	};
	struct slmpm_wq_options sink = {
		.size = sizeof(sink),
		.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
		.depth = 1,
		.cq = sides[RIGHT].cq,
		.peer = sides[RIGHT].peer,
		.stream = STREAM,
	};
	bool right;

	o.flags = scene->kept ? SLMPM_WQ_KEPT : 0;
	right = slmpm_wq_create(sides[LEFT].handle, &o, &play.wq[A]) == 0;
	o.flags = SLMPM_WQ_MANAGED;
	right &= slmpm_wq_create(sides[LEFT].handle, &o, &play.wq[B]) == 0;
	right &= slmpm_wq_create(sides[RIGHT].handle, &sink, &play.sink) == 0;
	right &= slmpm_ctr_create(sides[LEFT].handle, &play.ctr) == 0;
	scene_require(right, "the checker: a scene cannot be set up");
}

static struct slmpm_wr wait_of(int q, unsigned subject)
{
	struct slmpm_wr wr = {.op = SLMPM_OP_WAIT, .flags = SLMPM_RELATIVE, .value = 1};

	if (subject == COUNTER)
		wr.ctr = play.ctr;
	else if (subject == ENDS)
		wr.cq = sides[LEFT].cq;
	else
		wr.wq = play.wq[!q];
	wr.index = subject == DONE    ? SLMPM_WQ_DONE :
		   subject == BEGUN   ? SLMPM_WQ_BEGUN :
		   subject == ENABLED ? SLMPM_WQ_ENABLED :
					0;
	return wr;
}

static unsigned subject_of(char small)
{
	switch (small) {
	case 'w':
	case 'i':
	case 'x': return DONE;
	case 'b': return BEGUN;
	case 'm': return ENABLED;
	case 'k': return COUNTER;
	case 'u': return ENDS;
	default: return NONE;
	}
}

static struct slmpm_wr send_of(uint32_t stream, int timeout_ms)
{
	static struct slmpm_iov piece = {numbers, 1};

	return (struct slmpm_wr){.op = SLMPM_OP_SEND,
				 .peer = sides[LEFT].peer,
				 .stream = stream,
				 .iov = &piece,
				 .iov_count = 1,
				 .timeout_ms = timeout_ms};
}

static struct slmpm_wr calc_of(void)
{
	static struct slmpm_operand arg = {.at = numbers}, target = {.at = sums};
	static struct slmpm_calc calc = {.size = sizeof(calc),
					 .op = SLMPM_CALC_SUM,
					 .type = SLMPM_DOUBLE,
					 .count = {ELEMENTS},
					 .args = &arg,
					 .targets = &target,
					 .arg_count = 1,
					 .target_count = 1};

	return (struct slmpm_wr){.op = SLMPM_OP_CALC, .calc = &calc};
}

static struct slmpm_wr receive_of(void)
{
	static struct slmpm_iov piece = {sums, 1};

	return (struct slmpm_wr){
		.op = SLMPM_OP_RECV, .peer = sides[LEFT].peer, .iov = &piece, .iov_count = 1};
}

static struct slmpm_wr request_of(int q, char small)
{
	switch (small) {
	case 'n':
		return (struct slmpm_wr){
			.op = SLMPM_OP_COUNT, .flags = SLMPM_RELATIVE, .ctr = play.ctr, .value = 1};
	case 'e':
	case 'f':
		return (struct slmpm_wr){.op = SLMPM_OP_ENABLE,
					 .flags = SLMPM_RELATIVE,
					 .wq = play.wq[B],
					 .value = 1};
	case 'r':
	case 't': return receive_of();
	case 'o': return send_of(STREAM + 1, 0);
	case 'g': return send_of(STREAM, -1);
	case 'd':
	case 'q': return send_of(STREAM, 0);
	case 'c': return calc_of();
	default: return wait_of(q, subject_of(small));
	}
}

/* A WAIT has been posted: where its total is to be, counted from where it was at the first one. */
static void note_wait(int q, struct entry *e, uint64_t total)
{
	if (!play.waits[q][e->subject].there)
		play.waits[q][e->subject].next = (uint8_t)total;
	play.waits[q][e->subject].there = true;
	e->target = ++play.waits[q][e->subject].next;
}

static void post(int q, char small)
{
	struct entry *e = &play.entries[q][play.count[q]];
	struct slmpm_wr wr = request_of(q, small);
	uint64_t total;

	wr.size = sizeof(wr);
	wr.channel = strchr("xftq", small) != NULL;
	wr.cookie = (unsigned)q * ENTRIES + play.count[q];
	e->op = (uint8_t)wr.op;
	e->channel = (uint8_t)wr.channel;
	e->subject = (uint8_t)subject_of(small);
	e->waits = small == 'g';
	e->timed = small == 'i';
	if (e->timed)
		wr.timeout_ms = 1000;
	total = total_of(q, e->subject);
	if (slmpm_post(play.wq[q], &wr, 1) != 1) {
		memset(e, 0, sizeof(*e));
		return;
	}
	play.posted[q]++;
	play.count[q]++;
	if (e->subject)
		note_wait(q, e, total);
}

/* NUMBER, or with 0 all: whether those that failed have been taken back is what the code says. */
static void note_cancelled(int q, unsigned number)
{
	for (unsigned i = 0; i < play.count[q]; i++)
		if (!number || play.base[q] + i + 1 == number)
			play.entries[q][i].cancelled = true;
}

static void cancel(int q, unsigned number)
{
	if (slmpm_wq_cancel(play.wq[q], number) != -SLMPM_EINVAL)
		note_cancelled(q, number);
}

static void reset(int q, bool destroy)
{
	int rc = destroy ? slmpm_wq_destroy(play.wq[q]) : slmpm_wq_reset(play.wq[q]);

	if (rc == -SLMPM_EHANDLE)
		return;
	note_cancelled(q, 0);
	play.gone[q] |= rc == 0 && destroy;
	play.dropped |= rc == 0 && q == A && scene->kept;
}

/* Each waits for as much more as all on its subject have taken in a run. */
static void run_again(void)
{
	uint8_t taken[AWAITED] = {0};

	if (slmpm_wq_arm(play.wq[A]) != 0)
		return;
	for (unsigned i = 0; i < play.count[A]; i++)
		taken[play.entries[A][i].subject]++;
	for (unsigned i = 0; i < play.count[A]; i++) {
		struct entry *e = &play.entries[A][i];

		e->target += taken[e->subject];
		e->cancelled = e->over = false;
	}
	for (int s = DONE; s < AWAITED; s++)
		play.waits[A][s].next += taken[s];
	play.base[A] += play.count[A];
	play.posted[A] += play.count[A];
	memset(play.last[A], 0, sizeof(play.last[A]));
}

/* A reset that has succeeded lets channels go on: no entry is to blame any more. */
static void note_reset(int q)
{
	const struct workqueue *wq = queue_of(q);

	if (wq && !wq->stopped) {
		memset(play.stop[q], 0, sizeof(play.stop[q]));
		memset(play.last[q], 0, sizeof(play.last[q]));
	}
	if (wq && list_empty(&wq->subjects))
		memset(play.waits[q], 0, sizeof(play.waits[q]));
}

static void enable_one(void)
{
	const struct workqueue *b = queue_of(B);

	if (b && slmpm_wq_enable(play.wq[B], b->enabled + 1) == 0)
		play.enabled++;
}

static void act(int side, char letter)
{
	(void)side;
	heap_enter();
	if (letter == '+')
		enable_one();
	else if (letter == '^')
		run_again();
	else if (letter >= '1' && letter <= '8')
		cancel(letter > '4', (unsigned)(letter - '1') % 4 + 1);
	else if (letter == 'y' || letter == 'z')
		reset(letter == 'z', false);
	else if (letter == '!' || letter == '?')
		reset(letter == '?', true);
	else if (letter >= 'a')
		post(A, letter);
	else if (letter >= 'A')
		post(B, (char)(letter + 'a' - 'A'));
	heap_leave();
}

/* ---- judging -------------------------------------------------------------------------------- */

/* The first entry of T to blame, of those in STOPS; 0: none. */
static unsigned first_of(const void *stops, int *status)
{
	const __typeof__(play.stop[0][0]) *stop = stops;
	unsigned first = 0;

	for (int c = 0; c < CHANNELS; c++)
		if (stop[c].number && (!first || stop[c].number < first)) {
			first = stop[c].number;
			*status = stop[c].status;
		}
	return first;
}

static bool is_blamed(const void *stops, const struct slmpm_done *done)
{
	int status = 0;

	return done->len && first_of(stops, &status) == done->len && status == done->status;
}

/* Its failure says why. */
static void judge_failure(int q, const struct entry *e, const struct slmpm_done *done)
{
	bool behind = done->status == -SLMPM_ECANCELED && done->len &&
		      play.stop[q][e->channel].number == done->len;
	bool stranded = e->subject == DONE || e->subject == BEGUN;

	stranded = stranded && (is_blamed(play.stop[!q], done) || is_blamed(play.before[!q], done));
	if (stranded && e->subject == DONE)
		stranded = e->target > play.posted[!q] - play.failed[!q];
	scene_require(behind || stranded ||
			      (e->timed && cables.now && done->status == -SLMPM_ETIMEOUT) ||
			      (e->cancelled && done->status == -SLMPM_ECANCELED) || !e->subject,
		      "a WAIT has failed for no reason");
}

static void note_stop(int q, unsigned number, const struct slmpm_done *done)
{
	const struct entry *e = &play.entries[q][number - play.base[q] - 1];

	if (play.stop[q][e->channel].number &&
	    (e->op == SLMPM_OP_RECV || play.stop[q][e->channel].number < number))
		return;
	play.stop[q][e->channel].number = (uint8_t)number;
	play.stop[q][e->channel].status = (int16_t)done->status;
}

static void ended(int side, const struct slmpm_done *done)
{
	int q = done->cookie >= ENTRIES;
	unsigned i = (unsigned)done->cookie % ENTRIES;
	struct entry *e = &play.entries[q][i];

	if (side != LEFT)
		return;
	scene_require(!e->over, "an entry has ended twice");
	e->over = true;
	if (e->op != SLMPM_OP_RECV) {
		scene_require(i + 1 > play.last[q][e->channel], "entries have ended out of order");
		play.last[q][e->channel] = (uint8_t)(i + 1);
	}
	if (done->status < 0) {
		judge_failure(q, e, done);
		note_stop(q, play.base[q] + i + 1, done);
		play.failed[q]++;
		return;
	}
	play.done[q]++;
	if (e->op == SLMPM_OP_ENABLE)
		play.enabled++;
	if (e->op == SLMPM_OP_COUNT)
		play.counted++;
	scene_require(q == A || !queue_of(B) || i < queue_of(B)->enabled,
		      "an entry has ended that is disabled");
	scene_require(!e->subject || done->len >= e->target, "a WAIT has ended too early");
	scene_require(!e->subject || !queue_of(!q) || total_of(q, e->subject) >= e->target,
		      "a WAIT has ended before its total was there");
}

/* A queue that keeps its entries drops them when it is reset. */
static void forget_kept(void)
{
	for (unsigned i = 0; i < play.count[A]; i++)
		scene_require(play.entries[A][i].over,
			      "a queue is reset, and an entry has not ended");
	play.dropped = false;
	memset(play.entries[A], 0, sizeof(play.entries[A]));
	play.base[A] = play.posted[A];
	play.count[A] = 0;
}

static void step_over(void)
{
	if (play.dropped)
		forget_kept();
	scene_require(!queue_of(B) || queue_of(B)->enabled == play.enabled,
		      "not as many are enabled as were to be");
	scene_require(total_of(A, COUNTER) == play.counted, "the counter is not what was counted");
	for (int q = 0; q < QUEUES; q++) {
		const struct workqueue *wq = queue_of(q);

		note_reset(q);
		memcpy(play.before[q], play.stop[q], sizeof(play.stop[q]));
		scene_require(!wq || (wq->done == play.done[q] && wq->failed == play.failed[q] &&
				      wq->posted == play.posted[q]),
			      "a queue's totals are not those of its completions");
		scene_require(!play.gone[q] || play.done[q] + play.failed[q] == play.posted[q],
			      "a queue is gone, and an entry has not ended");
	}
}

/* All before it in its channel have ended, receives aside. */
static bool is_head(int q, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (!play.entries[q][j].over && play.entries[q][j].op != SLMPM_OP_RECV &&
		    play.entries[q][j].channel == play.entries[q][i].channel)
			return false;
	return true;
}

/* One that has not ended is in its turn: what does it wait for? */
static void judge_head(int q, unsigned i)
{
	const struct entry *e = &play.entries[q][i];
	const struct workqueue *wq = queue_of(q);
	const struct workqueue *other = queue_of(!q);
	int status = 0;

	if (q == B && i >= wq->enabled)
		return;
	scene_require(!e->timed || wq->channels[e->channel].deadline > clock_now(),
		      "a WAIT stands too long");
	scene_require(!e->cancelled || e->op == SLMPM_OP_RECV || e->op == SLMPM_OP_SEND,
		      "an entry was cancelled and has not ended");
	scene_require(!play.stop[q][e->channel].number || e->op == SLMPM_OP_RECV,
		      "a channel has stopped, and an entry stands in it");
	if (e->subject)
		scene_require(total_of(q, e->subject) < e->target, "a WAIT stands that is over");
	if (e->subject == DONE && first_of(play.stop[!q], &status))
		scene_require(e->target <= play.posted[!q] - play.failed[!q],
			      "a WAIT stands that is in vain");
	if (e->subject == BEGUN && first_of(play.stop[!q], &status))
		scene_require(e->target <=
				      other->begun + other->posted - other->done - other->failed,
			      "a WAIT stands that is in vain");
	scene_require(e->subject || e->op == SLMPM_OP_RECV || (e->op == SLMPM_OP_SEND && e->waits),
		      "an entry stands that may go");
	scene_require(!sides[RIGHT].dead || e->subject, "an entry waits for a dead peer");
}

static void settled(void)
{
	for (int q = 0; q < QUEUES; q++)
		for (unsigned i = 0; queue_of(q) && i < play.count[q]; i++)
			if (!play.entries[q][i].over && is_head(q, i))
				judge_head(q, i);
}

const struct play play_local = {
	.state = &play,
	.size = sizeof(play),
	.set_up = set_up,
	.act = act,
	.ended = ended,
	.step_over = step_over,
	.settled = settled,
};
