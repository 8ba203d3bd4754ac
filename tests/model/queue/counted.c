/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A work queue whose entries move a counter of the peer's, which was granted. The left side posts
 * them; small letters go to channel 0, capital ones to channel 1:
 *
 *	s S  SEND, counted
 *	l    SEND in two packets, counted
 *	p    SEND that is not
 *	n N  COUNT: one more
 *	q    SEND, counted, silent
 *	m    COUNT, silent
 *
 * and `1`.. cancels the first.. entry, `r` resets the queue. The right one revokes the key (`v`) or
 * destroys the counter (`d`). `.` is no call.
 *
 * What must hold: a message is there before it is counted, and those counted in front of it in its
 * channel are counted before it is there; each is counted once, and has ended as its completion
 * says; who may not count is refused, and moves nothing; a silent entry says nothing but that it
 * has failed.
 */
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/message/inbound.h"
#include "slmpm/workqueue/workqueue.h"
#include "tests/model/queue/heap.h"
#include "tests/model/queue/scene.h"

#define STREAM   7
#define ENTRIES  6
#define CHANNELS 2
#define LONG     20

static struct counted {
	slmpm_wq wq;
	slmpm_ctr ctr; /* the right side's */
	slmpm_mem word;
	slmpm_rmem rctr;
	uint8_t posted, done, failed, silent; /* SILENT: posted */
	uint8_t counted;                      /* the counter, as it was last seen */
	bool refused;                         /* the key is no more */
	struct {
		uint8_t number; /* from 1, in its queue */
		uint8_t channel;
		bool counts, message, silent;
		bool over, cancelled; /* a cancel of it may have been in time; ... */
		bool fails;           /* ... was */
		int16_t status;
	} of[ENTRIES];
} play;

static unsigned char bytes[ENTRIES][LONG];

static struct workqueue *queue_now(void)
{
	return handle_get(&workqueue_table, play.wq.id);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* What is under way goes there while the play is set up. */
static void settle_now(void)
{
	heap_leave();
	scene_rest();
	heap_enter();
}

static void set_up(void)
{
	const struct slmpm_wq_options options = {
		.size = sizeof(options),
		.depth = ENTRIES,
		.channels = CHANNELS,
		.cq = sides[LEFT].cq,
	};
	struct slmpm_key key;
	bool right;

	for (int i = 0; i < ENTRIES; i++)
		memset(bytes[i], i + 1, LONG);
	right = slmpm_wq_create(sides[LEFT].handle, &options, &play.wq) == 0 &&
		slmpm_ctr_create(sides[RIGHT].handle, &play.ctr) == 0 &&
		slmpm_ctr_mem(play.ctr, &play.word) == 0 &&
		slmpm_mem_key(play.word, sides[RIGHT].peer, SLMPM_COUNT, &key) == 0;
	settle_now();
	right = right && slmpm_mem_open(sides[LEFT].peer, &key, &play.rctr) == 0;
	settle_now();
	scene_require(right, "the checker: no counter");
}

static void post(char letter)
{
	char kind = (char)(letter | ('a' - 'A'));
	bool message = strchr("slpq", kind), silent = strchr("qm", kind), counts = kind != 'p';
	unsigned i = play.posted;
	struct slmpm_iov piece = {bytes[i], kind == 'l' ? LONG : 1};
	struct slmpm_wr wr = {
		.size = sizeof(wr),
		.op = message ? SLMPM_OP_SEND : SLMPM_OP_COUNT,
		.flags = (message ? 0 : SLMPM_RELATIVE) | (silent ? SLMPM_SILENT : 0),
		.channel = letter < 'a',
		.cookie = i,
	};

	if (message) {
		wr.peer = sides[LEFT].peer;
		wr.stream = STREAM;
		wr.imm = i + 1;
		wr.iov = &piece;
		wr.iov_count = 1;
	} else {
		wr.value = 1;
	}
	if (counts)
		wr.rctr = play.rctr;
	play.of[i].channel = (uint8_t)wr.channel;
	play.of[i].counts = counts;
	play.of[i].message = message;
	play.of[i].silent = silent;
	play.posted++;
	if (slmpm_post(play.wq, &wr, 1) != 1) {
		play.posted--;
		memset(&play.of[i], 0, sizeof(play.of[i]));
		return;
	}
	play.of[i].number = (uint8_t)queue_now()->posted;
	play.silent += silent;
}

/* NUMBER, or with 0 all; RC: what the call has returned. */
static void note_cancelled(unsigned number, int rc)
{
	for (unsigned i = 0; i < play.posted; i++) {
		if (number && play.of[i].number != number)
			continue;
		play.of[i].cancelled = true;
		play.of[i].fails |= !rc && number && !play.of[i].over;
	}
}

static void cancel(unsigned number)
{
	note_cancelled(number, slmpm_wq_cancel(play.wq, number));
}

static void act(int side, char letter)
{
	(void)side;
	heap_enter();
	if (letter == 'v')
		play.refused |= slmpm_mem_revoke(play.word, sides[RIGHT].peer, 0) == 0;
	else if (letter == 'd')
		play.refused |= slmpm_ctr_destroy(play.ctr) == 0;
	else if (letter == 'r')
		note_cancelled(0, slmpm_wq_reset(play.wq));
	else if (letter > '0' && letter <= '9')
		cancel((unsigned)(letter - '0'));
	else if (letter != '.')
		post(letter);
	heap_leave();
}

/* ---- judging -------------------------------------------------------------------------------- */

/* Why it may fail. */
static bool is_reason(unsigned i, int status)
{
	switch (status) {
	case -SLMPM_EACCES: return play.of[i].counts && play.refused;
	case -SLMPM_ECANCELED: return true; /* by itself, or behind one that has failed */
	default: return sides[RIGHT].dead;
	}
}

static void ended(int side, const struct slmpm_done *done)
{
	unsigned i = (unsigned)done->cookie;

	if (side != LEFT)
		return;
	scene_require(i < play.posted && !play.of[i].over, "an entry has ended twice");
	scene_require(!play.of[i].silent || done->status < 0,
		      "a silent entry says that it is done");
	scene_require(done->status >= 0 || is_reason(i, done->status),
		      "an entry has failed for no reason");
	scene_require(done->status < 0 || !play.of[i].fails, "an entry was cancelled and is done");
	for (unsigned j = 0; j < i; j++)
		scene_require(play.of[j].channel != play.of[i].channel || play.of[j].over ||
				      play.of[j].silent,
			      "entries have ended out of order");
	play.of[i].over = true;
	play.of[i].status = (int16_t)done->status;
	if (done->status < 0)
		play.failed++;
	else
		play.done++;
}

/* Message I, all of it. */
static bool has_come(unsigned i)
{
	LIST_EACH_ENTRY(const struct inbound, m, &sides[RIGHT].ep->messages->unexpected, node)
		if (m->imm == i + 1)
			return m->got == m->total;
	return false;
}

static void see_counter(void)
{
	const struct counter *c = handle_get(&counter_table, play.ctr.id);

	if (!c)
		return;
	scene_require(c->done >= play.counted && (!play.refused || c->done == play.counted),
		      "a counter has moved that is not theirs");
	play.counted = (uint8_t)c->done;
}

/* Those in front of I in its channel that count. */
static unsigned counted_before(unsigned i)
{
	unsigned n = 0;

	for (unsigned j = 0; j < i; j++)
		n += play.of[j].counts && play.of[j].channel == play.of[i].channel;
	return n;
}

static void step_over(void)
{
	const struct workqueue *wq = queue_now();
	unsigned may = 0, must = 0;

	see_counter();
	for (unsigned i = 0; i < play.posted; i++) {
		may += play.of[i].counts && (!play.of[i].message || has_come(i));
		must += play.of[i].counts && play.of[i].over && !play.of[i].status;
		if (play.of[i].message && has_come(i) && !play.refused)
			scene_require(play.counted >= counted_before(i),
				      "a message came before those in front of it were counted");
	}
	scene_require(play.counted <= may, "a message is counted that is not there");
	scene_require(play.counted >= must, "an entry is done and not counted");
	scene_require(!wq || (wq->failed == play.failed && wq->done >= play.done &&
			      wq->done <= (unsigned)play.done + play.silent),
		      "a queue's totals are not those of its completions");
}

static void settled(void)
{
	const struct workqueue *wq = queue_now();
	unsigned counted = 0, cancelled = 0;

	if (sides[LEFT].dead)
		return;
	scene_require(wq->done + wq->failed == wq->posted, "an entry stands that may go");
	for (unsigned i = 0; i < play.posted; i++) {
		counted += play.of[i].counts && play.of[i].status >= 0;
		cancelled += play.of[i].counts && play.of[i].status == -SLMPM_ECANCELED &&
			     play.of[i].cancelled;
	}
	if (!sides[RIGHT].dead)
		scene_require(play.counted >= counted && play.counted <= counted + cancelled,
			      "not as many are counted as are done");
}

const struct play play_counted = {
	.state = &play,
	.size = sizeof(play),
	.set_up = set_up,
	.act = act,
	.ended = ended,
	.step_over = step_over,
	.settled = settled,
};
