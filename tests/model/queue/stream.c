/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream bound to a managed receive queue. The left process sends, each message by an entry of
 * its work queue:
 *
 *	s w  short, now or refused; and once it may
 *	l v  the same in two packets
 *	h u  the same in three, of which only the first comes unasked
 *	i    short, once it may, or refused when a second has gone by
 *	m    short and now, one of a burst
 *	a    by slmpm_sendv, without a queue; `k` takes that back
 *
 * and `1`.. cancels the first.. entry, `r` resets the queue. Where it is spread over two links, `x`
 * and `y` are the end of one, or a new one in its place, and with `z` the next message looks for
 * another than the present link, as if enough had gone by that. The right one owns the receive
 * queue: `c` creates it, `p` posts an entry, `q` one that is too short for what is not, `e` enables
 * one more, `1`.. cancels the first.. entry, `r` resets the queue, `d` destroys it.
 *
 * What must hold: no message for an entry that is disabled; none out of order, lost, or twice; each
 * send is taken or refused, by both sides' accounts; who waits goes when it may.
 */
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/inbound.h"
#include "slmpm/workqueue/workqueue.h"
#include "tests/model/queue/heap.h"
#include "tests/model/queue/scene.h"

#define STREAM   7
#define MESSAGES 6
#define ENTRIES  6
#define LONG     24
#define LONGEST  40
#define BOTH     3  /* links */
#define PACKET   64 /* what each message counts for besides its bytes */
#define PLENTY   (1u << 20)

enum fate { UNUSED, POSTED, TAKEN, REFUSED, FAILED };

static struct stream {
	slmpm_wq sends, receives;
	slmpm_req plain; /* of a message that no queue sends, the last such: */
	uint8_t plain_of;
	uint8_t messages; /* posted */
	struct {
		uint8_t fate, channel; /* enum fate */
		uint8_t length;
		uint8_t number; /* of its entry, or 0 */
		uint8_t blames; /* the entry for which it has failed, or 0 */
		uint8_t got;    /* times */
		bool cancelled;
	} of[MESSAGES];
	uint8_t entries, ended;
	uint8_t first; /* of the queue that there is now */
	struct {
		uint8_t message, over; /* from 1, or 0: none */
	} entry[ENTRIES];
	unsigned char buffers[ENTRIES][LONGEST];
} play;

static unsigned char bytes[MESSAGES][LONGEST];

static struct workqueue *queue_of(slmpm_wq wq)
{
	return handle_get(&workqueue_table, wq.id);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void create_receives(void)
{
	const struct slmpm_wq_options options = {
		.size = sizeof(options),
		.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
		.depth = ENTRIES,
		.cq = sides[RIGHT].cq,
		.peer = scene->shared ? slmpm_any(sides[RIGHT].handle) : sides[RIGHT].peer,
		.stream = STREAM,
	};
	int rc = slmpm_wq_create(sides[RIGHT].handle, &options, &play.receives);

	if (rc == 0)
		play.first = play.entries;
	else
		scene_require(sides[RIGHT].ep->state != SLMPM_PEER_UP, "no receive queue");
}

static void set_up(void)
{
	const struct slmpm_wq_options options = {
		.size = sizeof(options),
		.flags = scene->spread ? SLMPM_WQ_SPREAD : 0,
		.depth = MESSAGES,
		.channels = MESSAGES + 1,
		.cq = sides[LEFT].cq,
	};

	cables.links = scene->spread ? BOTH : 0;
	for (int i = 0; i < MESSAGES; i++)
		memset(bytes[i], i + 1, LONGEST);
	scene_require(slmpm_wq_create(sides[LEFT].handle, &options, &play.sends) == 0,
		      "the checker: no work queue");
	if (scene->bound)
		create_receives();
}

/* As its newest entry was posted WAS what its queue now is. What has begun goes by a link that is
 * up; by another than before, or by one that was looked for: by that which had the least to do. */
static void judge_choice(const struct workqueue *was)
{
	const struct workqueue *wq = queue_of(play.sends);
	uint32_t link = wq->spread.link, up = cables.links;

	if (wq->spread.run == was->spread.run) /* it has not begun */
		return;
	scene_require(up >> link & 1, "a link was chosen that is down");
	for (uint32_t i = 0; i < MODE_LINKS; i++)
		scene_require((link == was->spread.link && was->spread.run < PLENTY) ||
				      !(up >> i & 1) ||
				      was->spread.load[i] >= was->spread.load[link],
			      "a link was chosen that has more to do than another");
}

static void post_send(int timeout_ms, size_t length, uint32_t flags)
{
	const struct workqueue was = *queue_of(play.sends);
	unsigned i = play.messages;
	struct slmpm_iov piece = {bytes[i], length};
	const struct slmpm_wr wr = {
		.size = sizeof(wr),
		.op = SLMPM_OP_SEND,
		.flags = flags,
		.channel = timeout_ms ? 0 : 1 + i,
		.cookie = i,
		.peer = sides[LEFT].peer,
		.stream = STREAM,
		.imm = i + 1,
		.iov = &piece,
		.iov_count = 1,
		.timeout_ms = timeout_ms,
	};
	int rc;

	play.of[i].channel = (uint8_t)wr.channel;
	play.of[i].fate = POSTED;
	play.of[i].length = (uint8_t)length;
	play.messages++;
	rc = slmpm_post(play.sends, &wr, 1);
	judge_choice(&was);
	if (rc == 1)
		play.of[i].number = (uint8_t)queue_of(play.sends)->posted;
	else /* it is no entry: refused at once, or behind one that has failed */
		play.of[i].fate = rc == -SLMPM_EDISABLED ? REFUSED : FAILED;
}

static void send_plain(void)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = play.messages + 1u};
	unsigned i = play.messages++;
	struct slmpm_iov piece = {bytes[i], 1};
	int rc = slmpm_sendv(sides[LEFT].peer, STREAM, &piece, 1, &how, &play.plain);

	play.of[i].channel = 1;
	play.of[i].fate = rc == 0 ? POSTED : rc == -SLMPM_EDISABLED ? REFUSED : FAILED;
	play.plain_of = (uint8_t)i;
}

static void post_receive(size_t length)
{
	unsigned i = play.entries;
	struct slmpm_iov piece = {play.buffers[i], length};
	const struct slmpm_wr wr = {
		.size = sizeof(wr),
		.op = SLMPM_OP_RECV,
		.cookie = i,
		.iov = &piece,
		.iov_count = 1,
	};

	if (slmpm_post(play.receives, &wr, 1) == 1)
		play.entries++;
}

static void cancel_send(unsigned number)
{
	for (unsigned i = 0; i < play.messages; i++)
		play.of[i].cancelled |= play.of[i].number == number;
	(void)slmpm_wq_cancel(play.sends, number);
}

/* Not the last one: then none could be chosen. */
static void change_link(uint32_t link)
{
	if (cables.links != link)
		cables.links ^= link;
}

static void call_left(char letter)
{
	switch (letter) {
	case 's': post_send(0, 1, 0); break;
	case 'w': post_send(-1, 1, 0); break;
	case 'l': post_send(0, LONG, 0); break;
	case 'v': post_send(-1, LONG, 0); break;
	case 'h': post_send(0, LONGEST, 0); break;
	case 'u': post_send(-1, LONGEST, 0); break;
	case 'i': post_send(1000, 1, 0); break;
	case 'r': (void)slmpm_wq_reset(play.sends); break;
	case 'm': post_send(0, 1, SLMPM_MORE); break;
	case 'a': send_plain(); break;
	case 'x': change_link(1); break;
	case 'y': change_link(2); break;
	case 'z': queue_of(play.sends)->spread.run = PLENTY; break;
	case 'k':
		if (play.of[play.plain_of].fate == POSTED && slmpm_cancel(play.plain) == 0)
			play.of[play.plain_of].fate = FAILED;
		break;
	default: cancel_send((unsigned)(letter - '0'));
	}
}

static void call_right(char letter)
{
	const struct workqueue *wq = queue_of(play.receives);

	switch (letter) {
	case 'c': create_receives(); break;
	case 'p': post_receive(LONGEST); break;
	case 'q': post_receive(1); break;
	case 'r': (void)slmpm_wq_reset(play.receives); break;
	case 'e': (void)(wq && slmpm_wq_enable(play.receives, wq->enabled + 1)); break;
	case 'd': (void)slmpm_wq_destroy(play.receives); break;
	default: (void)slmpm_wq_cancel(play.receives, (uint64_t)(letter - '0'));
	}
}

static void act(int side, char letter)
{
	heap_enter();
	if (side == LEFT)
		call_left(letter);
	else
		call_right(letter);
	heap_leave();
}

/* ---- judging -------------------------------------------------------------------------------- */

static void send_ended(const struct slmpm_done *done)
{
	unsigned i = (unsigned)done->cookie;

	scene_require(i < play.messages && play.of[i].fate == POSTED, "a send has ended twice");
	play.of[i].fate = done->status == 0                ? TAKEN :
			  done->status == -SLMPM_EDISABLED ? REFUSED :
							     FAILED;
	if (done->status == -SLMPM_ECANCELED && !play.of[i].cancelled)
		play.of[i].blames = (uint8_t)done->len;
}

/* Those that wait in one channel, and those that do not wait at all, keep their order. */
static bool is_in_order(unsigned a, unsigned b)
{
	return !play.of[a].channel != !play.of[b].channel || a < b;
}

static void receive_ended_with(const struct slmpm_done *done)
{
	unsigned i = (unsigned)done->cookie, m = done->imm;
	const struct workqueue *wq = queue_of(play.receives);

	scene_require(i < play.entries && !play.entry[i].over, "a receive has ended twice");
	play.entry[i].over = 1;
	play.ended++;
	if (done->status < 0 && done->status != -SLMPM_ETRUNC)
		return;
	scene_require(m && m <= play.messages, "a message that was never sent");
	scene_require(!play.of[m - 1].got++, "a message came twice");
	scene_require(!wq || i < play.first || i - play.first < wq->enabled,
		      "a message for a disabled entry");
	scene_require(play.buffers[i][0] == m &&
			      (done->status < 0 || play.buffers[i][done->len - 1] == m),
		      "the bytes of another message");
	play.entry[i].message = (uint8_t)m;
	for (unsigned j = 0; j < ENTRIES; j++) {
		unsigned other = play.entry[j].message;

		if (!other || j == i)
			continue;
		scene_require(j < i ? is_in_order(other - 1, m - 1) : is_in_order(m - 1, other - 1),
			      "messages out of order");
	}
}

static void ended(int side, const struct slmpm_done *done)
{
	if (side == LEFT)
		send_ended(done);
	else
		receive_ended_with(done);
}

/* What no queue sends has ended without a completion. */
static void judge_plain(void)
{
	const struct request *r = handle_get(&request_table, play.plain.id);

	if (r && r->done && play.of[play.plain_of].fate == POSTED)
		play.of[play.plain_of].fate = r->result.status == 0                ? TAKEN :
					      r->result.status == -SLMPM_EDISABLED ? REFUSED :
										     FAILED;
}

/* Of each link what is under way, and together all that was done. */
static void judge_links(const struct workqueue *wq)
{
	uint64_t load[MODE_LINKS] = {0}, sent = 0;

	for (uint32_t i = 0; i < wq->depth; i++)
		if (wq->work[i].part.by)
			load[wq->work[i].part.by - 1] += wq->work[i].part.bytes + PACKET;
	for (int i = 0; i < MODE_LINKS; i++) {
		scene_require(wq->spread.load[i] == load[i],
			      "a link's load is not what is under way");
		sent += wq->spread.bytes[i];
	}
	for (unsigned i = 0; i < play.messages; i++)
		sent -= play.of[i].fate == TAKEN && play.of[i].number ? play.of[i].length : 0;
	scene_require(!sent, "the links have not carried what was sent");
}

static void step_over(void)
{
	const struct workqueue *wq = queue_of(play.receives);

	if (scene->spread)
		judge_links(queue_of(play.sends));
	if (play.plain.id)
		judge_plain();
	for (unsigned i = play.first; wq && i < play.entries; i++)
		scene_require(i - play.first < wq->enabled || !play.buffers[i][0],
			      "the buffer of a disabled entry has changed");
}

static unsigned count_unexpected(unsigned message)
{
	unsigned n = 0;

	LIST_EACH_ENTRY(struct inbound, m, &sides[RIGHT].ep->messages->unexpected, node)
		n += m->imm == message || !message;
	return n;
}

static void judge_message(unsigned i)
{
	unsigned there = play.of[i].got + count_unexpected(i + 1);

	if (play.of[i].fate == TAKEN && !sides[RIGHT].dead)
		scene_require(there == 1, "a message that was taken is lost");
	if (play.of[i].fate == REFUSED)
		scene_require(!there, "a message was refused and has come");
	if (play.of[i].fate == FAILED && !sides[LEFT].dead && !sides[RIGHT].dead)
		scene_require(!there, "a message was cancelled and has come");
}

/* Those behind one that failed say which: of several the first. */
static void judge_blame(void)
{
	unsigned first = 0;

	for (unsigned i = play.messages; i-- > 0;)
		if (!play.of[i].channel && play.of[i].number && play.of[i].fate >= REFUSED &&
		    !play.of[i].blames)
			first = play.of[i].number;
	for (unsigned i = 0; i < play.messages; i++)
		scene_require(!play.of[i].blames || play.of[i].blames == first,
			      "another entry is blamed");
}

/* The one that stands, if it is to wait no longer than a time. */
static void judge_deadline(void)
{
	const struct workqueue *wq = queue_of(play.sends);
	const struct work *w = wq->channels[0].at;

	if (w && w->waited && w->wr.timeout_ms > 0)
		scene_require(wq->channels[0].deadline > clock_now(), "a send waits too long");
}

/* That no peer has, of a queue of any. */
static int64_t free_entries_of(const struct workqueue *wq)
{
	return wq ? (int64_t)(receive_allowed(wq) - wq->receive.reserved) : 0;
}

/* Those that wait wait for what is not there. */
static void judge_waiting(const struct binding *b)
{
	bool waits = false;

	for (unsigned i = 0; i < play.messages; i++)
		waits |= play.of[i].fate == POSTED;
	judge_deadline();
	if (!waits)
		return;
	scene_require(!sides[RIGHT].dead, "a send to a dead peer waits for ever");
	scene_require(b && !binding_allows(b), "a send waits that may go");
	scene_require(list_empty(&b->shared.waiting) && !b->shared.asks,
		      "a claim was never answered");
	scene_require(!scene->shared || free_entries_of(queue_of(play.receives)) <= 0,
		      "a send waits although an entry is free");
}

/* What the sender may send still is what the owner has for it. */
static void judge_counts(const struct binding *b)
{
	const struct workqueue *wq = queue_of(play.receives);
	int64_t room, here;

	scene_require(!b == !wq, "one side knows of a queue, and the other does not");
	if (!b || !wq)
		return;
	room = (int64_t)(b->allowed - b->sent);
	here = (int64_t)(wq->enabled - wq->done - (wq->failed - wq->receive.ahead) -
			 count_unexpected(0));
	scene_require(!scene->shared || room == 0 || !list_empty(&b->shared.unused),
		      "what is not used is never given back");
	scene_require(!scene->shared || !scene->bound || wq->receive.empty ||
			      free_entries_of(wq) >= 0,
		      "more is reserved than there is");
	room += scene->shared ? free_entries_of(wq) : 0;
	scene_require(room == here, "the two sides count differently");
}

/* Nobody dead is waited for. */
static void judge_dead(void)
{
	const struct workqueue *wq = queue_of(play.receives);

	if (sides[LEFT].dead && !sides[RIGHT].dead && wq && wq->enabled && play.entries)
		scene_require(play.ended == play.entries, "a receive from a dead peer waits");
}

static void settled(void)
{
	const struct endpoint *left = sides[LEFT].ep, *right = sides[RIGHT].ep;
	const struct binding *b = sides[LEFT].dead ? NULL : binding_find(left, STREAM);

	for (unsigned i = 0; i < play.messages; i++)
		judge_message(i);
	judge_blame();
	if (!sides[LEFT].dead)
		judge_waiting(b);
	if (sides[LEFT].dead || sides[RIGHT].dead) {
		judge_dead();
		return;
	}
	judge_counts(b);
	scene_require(right->rooms->bindings->told == right->rooms->bindings->known,
		      "the owner was never answered");
	scene_require(list_empty(&left->link.queue) && list_empty(&right->link.queue) &&
			      list_empty(&left->link.deferred) && list_empty(&right->link.deferred),
		      "something was never sent");
}

const struct play play_stream = {
	.state = &play,
	.size = sizeof(play),
	.set_up = set_up,
	.act = act,
	.ended = ended,
	.step_over = step_over,
	.settled = settled,
};
