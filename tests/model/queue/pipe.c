/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PIPE: the right side's entry forwards the left one's messages, back to it on another stream.
 * The left one sends: `s` short, `l` in two packets, `h` announced; into a managed receive queue,
 * where it is bound, it enables `e` one more entry; where not, `b` posts its receives. The right
 * one posts a PIPE through one buffer (`p`) or two (`q`), for as many messages as there can be, or
 * for two (`t`); `1` cancels it, `r` resets its queue. `.` is no call.
 *
 * What must hold: messages come back in their order, whole, each once; none for an entry that is
 * disabled; what was sent has come back when nothing moves any more, unless the PIPE has ended or
 * the entries are disabled; it says truly how many it has forwarded.
 */
#include <string.h>

#include "slmpm/message/inbound.h"
#include "slmpm/workqueue/workqueue.h"
#include "tests/model/queue/heap.h"
#include "tests/model/queue/scene.h"

#define FORTH    7
#define BACK     8
#define MESSAGES 4
#define LONG     20
#define LONGEST  30
#define BUFFERS  2

static struct pipe_play {
	slmpm_wq wq, receives; /* the right side's; the left side's */
	uint8_t sent, come, enabled;
	uint8_t entries, over; /* PIPEs: posted, ended */
	uint8_t most;          /* messages that they take */
	uint8_t taken;         /* that those which have ended have forwarded */
	bool failed, cancelled;
	bool received; /* the left side's receives are there */
	uint8_t length[MESSAGES];
	uint8_t got[MESSAGES]; /* by the receive's number: the message, from 1, or 0 */
	unsigned char back[MESSAGES][LONGEST];
	unsigned char room[BUFFERS][LONGEST];
} play;

static unsigned char bytes[MESSAGES][LONGEST];

/* ---- calls ---------------------------------------------------------------------------------- */

static void post_receives(void)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct slmpm_iov piece = {play.back[i], LONGEST};
		const struct slmpm_wr wr = {
			.size = sizeof(wr),
			.op = SLMPM_OP_RECV,
			.cookie = i,
			.iov = &piece,
			.iov_count = 1,
		};

		scene_require(slmpm_post(play.receives, &wr, 1) == 1 || sides[RIGHT].dead,
			      "the checker: no receive");
	}
	play.received = true;
}

static void set_up(void)
{
	const struct slmpm_wq_options piping = {
		.size = sizeof(piping),
		.flags = scene->spread ? SLMPM_WQ_SPREAD : 0,
		.depth = 2,
		.cq = sides[RIGHT].cq,
	};
	const struct slmpm_wq_options receives = {
		.size = sizeof(receives),
		.flags = SLMPM_WQ_RECEIVE | (scene->bound ? SLMPM_WQ_MANAGED : 0),
		.depth = MESSAGES,
		.cq = sides[LEFT].cq,
		.peer = sides[LEFT].peer,
		.stream = BACK,
	};

	cables.links = scene->spread ? 3 : 0;
	for (int i = 0; i < MESSAGES; i++)
		memset(bytes[i], i + 1, LONGEST);
	scene_require(slmpm_wq_create(sides[RIGHT].handle, &piping, &play.wq) == 0 &&
			      slmpm_wq_create(sides[LEFT].handle, &receives, &play.receives) == 0,
		      "the checker: no work queue");
	if (scene->bound)
		post_receives();
}

static void send_one(uint8_t length)
{
	unsigned i = play.sent;
	struct slmpm_iov piece = {bytes[i], length};
	const struct slmpm_how how = {.size = sizeof(how), .imm = i + 1};
	slmpm_req req;

	if (slmpm_sendv(sides[LEFT].peer, FORTH, &piece, 1, &how, &req) < 0)
		return;
	play.length[i] = length;
	play.sent++;
}

static void post_pipe(int buffers, uint8_t messages)
{
	struct slmpm_iov rooms[BUFFERS] = {{play.room[0], LONGEST}, {play.room[1], LONGEST}};
	const struct slmpm_wr wr = {
		.size = sizeof(wr),
		.op = SLMPM_OP_PIPE,
		.peer = sides[RIGHT].peer,
		.stream = BACK,
		.from = sides[RIGHT].peer,
		.from_stream = FORTH,
		.value = messages,
		.iov = rooms,
		.iov_count = buffers,
	};

	if (slmpm_post(play.wq, &wr, 1) != 1)
		return;
	play.entries++;
	play.most += messages;
}

static void enable_one(void)
{
	if (slmpm_wq_enable(play.receives, play.enabled + 1u) == 0)
		play.enabled++;
}

static void act(int side, char letter)
{
	(void)side;
	heap_enter();
	switch (letter) {
	case 's': send_one(1); break;
	case 'l': send_one(LONG); break;
	case 'h': send_one(LONGEST); break;
	case 'e': enable_one(); break;
	case 'b': post_receives(); break;
	case 'p': post_pipe(1, MESSAGES); break;
	case 'q': post_pipe(2, MESSAGES); break;
	case 't': post_pipe(1, 2); break;
	case '1': play.cancelled |= slmpm_wq_cancel(play.wq, 1) != -SLMPM_EINVAL; break;
	case 'r': play.cancelled |= slmpm_wq_reset(play.wq) != -SLMPM_EHANDLE; break;
	default: break;
	}
	heap_leave();
}

/* ---- judging -------------------------------------------------------------------------------- */

/* An announced one ends behind shorter ones: its entry is its turn. Cancelled ones lack. */
static void came_back(const struct slmpm_done *done)
{
	unsigned i = (unsigned)done->cookie, m = done->imm;

	if (done->status < 0)
		return;
	scene_require(m && m <= play.sent && (m == i + 1 || play.cancelled),
		      "messages out of order");
	for (unsigned j = 0; j < MESSAGES; j++)
		scene_require(!play.got[j] || j == i || (j < i) == (play.got[j] < m),
			      "messages out of order");
	play.got[i] = (uint8_t)m;
	scene_require(!scene->bound || i < play.enabled, "a message for a disabled entry");
	scene_require(done->len == play.length[m - 1] && play.back[i][0] == m &&
			      play.back[i][done->len - 1] == m,
		      "the bytes of another message");
	play.come++;
}

static void ended(int side, const struct slmpm_done *done)
{
	if (side == LEFT) {
		came_back(done);
		return;
	}
	play.over++;
	scene_require(play.over <= play.entries, "a PIPE has ended twice");
	scene_require(done->status >= 0 || play.cancelled || sides[LEFT].dead ||
			      done->status == -SLMPM_ECANCELED,
		      "a PIPE has failed for no reason");
	play.failed |= done->status < 0;
	if (done->status >= 0 || done->status != -SLMPM_ECANCELED || play.over == 1)
		play.taken = (uint8_t)(play.taken + done->len);
}

static void step_over(void)
{
	scene_require(play.come <= play.most, "more messages than the PIPEs take");
	if (scene->bound)
		for (unsigned i = play.enabled; i < MESSAGES; i++)
			scene_require(!play.back[i][0],
				      "the buffer of a disabled entry has changed");
}

/* Nothing is under way over any link. */
static bool is_unloaded(void)
{
	const struct workqueue *wq = handle_get(&workqueue_table, play.wq.id);
	uint64_t load = 0;

	for (int i = 0; i < MODE_LINKS; i++)
		load |= wq->spread.load[i];
	return !load;
}

/* Those that the left side's receives will have. */
static unsigned count_back(void)
{
	unsigned n = play.come;

	LIST_EACH_ENTRY(const struct inbound, m, &sides[LEFT].ep->messages->unexpected, node)
		n += m->stream == BACK;
	return n;
}

static void settled(void)
{
	unsigned wanted = play.sent < play.most ? play.sent : play.most;

	if (sides[LEFT].dead && !sides[RIGHT].dead)
		scene_require(play.over == play.entries, "a PIPE waits for a dead peer");
	if (sides[LEFT].dead || sides[RIGHT].dead)
		return;
	if (scene->bound && wanted > play.enabled)
		wanted = play.enabled;
	scene_require(play.failed || !play.received || play.come == wanted,
		      "a message stands that may go");
	scene_require(play.over < play.entries || play.taken == count_back(),
		      "a PIPE says that it has forwarded what it has not");
	scene_require(play.over < play.entries || is_unloaded(),
		      "a PIPE has ended, and a link's load has not");
	scene_require(!play.cancelled || play.over == play.entries,
		      "a PIPE was cancelled and has not ended");
}

const struct play play_pipe = {
	.state = &play,
	.size = sizeof(play),
	.set_up = set_up,
	.act = act,
	.ended = ended,
	.step_over = step_over,
	.settled = settled,
};
