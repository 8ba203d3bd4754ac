/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections among the members of a group, made by need. Of two members the lower makes a pair of
 * sockets and gives one to the higher by its bell; the higher asks for that by the lower's bell.
 * Bells are held by all members: what the two say on their boards, which they alone can write,
 * shows whose socket it is. So no member listens, and no address or secret is passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/board/reach.h"
#include "slmpm/completion/late.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/group/alloc.h"
#include "slmpm/group/pairing.h"
#include "slmpm/link/wait.h"

#define CALL    "slmpm_group_peer"
#define BUSY_MS 1  /* its bell is full, or the board is */
#define RING_MS 50 /* then it is rung again, unless there is an answer */
#define RINGS   64 /* taken at once: more than wait in a bell as a rule */

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

/* Does this process make it, and not the member? */
static bool is_maker(const struct member *m)
{
	return m->group->boards.rank < pair_rank(m);
}

/* It has left the group in order. */
static bool has_left_group(const struct member *m)
{
	uint32_t r = pair_rank(m), culprit = r;

	if (m->distant)
		return m->distant->left || m->distant->refused;
	return boards_ended(&m->group->boards, r, &culprit) == -SLMPM_ECLOSED && culprit == r;
}

static bool may_pair(const struct group *g)
{
	return g->state == GROUP_HAS_FORMED && g->boards.own && !g->shut;
}

void pair_due(struct member *m, uint64_t when)
{
	struct context *ctx = m->group->ctx;

	if (m->out || !may_pair(m->group))
		return;
	m->when = when;
	list_remove(&m->pairing);
	list_append(&ctx->pairing, &m->pairing);
	context_changed(ctx);
}

static bool pair_show(struct member *m, uint64_t what)
{
	m->shows_lack = pair_errno(what);
	return boards_pair(&m->group->boards, pair_rank(m), what);
}

/* This side says nothing of it any more. */
static void pair_withdraw(struct member *m)
{
	if (m->distant)
		return;
	if (!m->shows_lack) /* else the other side may have to see it yet */
		(void)pair_show(m, PAIR_NONE);
	if (m->offer >= 0)
		close(m->offer);
	m->offer = -1;
	m->rung = false;
}

/* ---- sockets -------------------------------------------------------------------------------- */

/* What names a socket for ever; PAIR_NONE: it is none of a pair. */
static uint64_t cookie_of(int fd)
{
	int domain = 0, type = 0;
	uint64_t cookie = 0;
	socklen_t size = sizeof(domain), wide = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &wide) != 0)
		return PAIR_NONE;
	return cookie & PAIR_ASKED;
}

bool pair_attach(struct member *m, struct endpoint *ep, bool own)
{
	struct context *ctx = m->group->ctx;
	struct pair *p = groups_reserve(ep) ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return false;
	*p = (struct pair){.ep = ep, .member = m, .own = own};
	list_append(&ctx->paired, &p->node);
	m->pair = ep->rooms->pair = p;
	if (endpoint_has_ended(ep))
		pair_due(m, clock_now() + PAIR_AGAIN_MS * PAIR_MS);
	return true;
}

int pair_adopt(struct member *m, const struct connection *c, bool own)
{
	int rc = 0;
	struct endpoint *ep = connect_adopt(m->group->ctx, c, NULL, &rc);

	if (!ep)
		return rc;
	if (pair_attach(m, ep, own))
		return 0;
	endpoint_free(ep);
	return error_set(SLMPM_ENOMEM, "for a connection");
}

/* Boards hold numbers of the system. */
static int errno_of(int rc)
{
	if (rc == -SLMPM_ENOFILE)
		return -EMFILE;
	return rc == -SLMPM_ENOMEM ? -ENOMEM : -EIO;
}

static void note_own_error(struct member *m, int error)
{
	m->error = error;
	m->error_is_theirs = false;
	m->group->ctx->news |= error < 0;
}

void pair_note_lack(struct member *m, int rc)
{
	note_own_error(m, errno_of(rc));
}

/* Its connection, over FD; OWN: this side made it. As pair_adopt. */
static int pair_new(struct member *m, int fd, bool own)
{
	int32_t number = reach_number(m->process.fd);
	struct connection c = {.fd = fd,
			       .pair = true,
			       .active = own,
			       .process = fcntl(m->process.fd, F_DUPFD_CLOEXEC, 0),
			       .pid = number > 0 ? number : 0};

	if (c.process < 0) {
		int rc = error_system(-errno, "a connection");

		close(fd);
		return rc;
	}
	return pair_adopt(m, &c, own);
}

void pair_drop(struct member *m)
{
	struct pair *p = m->pair;

	if (!p)
		return;
	m->pair = NULL;
	p->member = NULL;
	m->group->ctx->unpaired = true;
	if (pair_lives(p))
		pair_close(p, "it has a new connection");
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Its bell has no other end: it ends just now, or has left, which shows in a moment. */
static bool is_closed_end(int error)
{
	return error == -EPIPE || error == -ECONNREFUSED || error == -ECONNRESET;
}

/* After that it lives, and has closed it. */
static bool is_ending(const struct member *m, uint64_t now)
{
	return is_closed_end(m->error) && now - m->closed_at < PAIR_SAID_MS * PAIR_MS;
}

static void pair_failed(struct member *m, int error, uint64_t now)
{
	if (is_closed_end(error) && !is_closed_end(m->error))
		m->closed_at = now;
	note_own_error(m, error);
	if (is_ending(m, now))
		pair_due(m, m->closed_at + PAIR_SAID_MS * PAIR_MS);
}

/* This process lacks what one takes: the other side may wait for it. */
static void pair_show_lack(struct member *m, int error)
{
	const struct boards *b = &m->group->boards;

	note_own_error(m, error);
	if (pair_show(m, pair_of_lack(++m->lack_count, -error)))
		(void)bell_pass(b->bells[pair_rank(m)], b->seats[b->rank], -1);
}

/* True: the other side has shown one since a connection was wanted last. */
static bool pair_take_lack(struct member *m)
{
	const uint64_t said = boards_paired(&m->group->boards, pair_rank(m));

	if (!m->wanted || said == m->lack_seen || !pair_errno(said))
		return false;
	m->lack_seen = said;
	m->error = -pair_errno(said);
	m->error_is_theirs = true;
	return true;
}

/* By its bell FD, or a question for one: true, it has gone. */
static bool pair_pass(struct member *m, int fd, uint64_t now)
{
	const struct boards *b = &m->group->boards;
	int rc = bell_pass(b->bells[pair_rank(m)], b->seats[b->rank], fd);

	if (bell_is_busy(rc)) {
		pair_due(m, now + BUSY_MS * PAIR_MS);
		return false;
	}
	pair_failed(m, rc, now);
	return true;
}

static void pair_offer(struct member *m, uint64_t now)
{
	if (m->offer < 0 || !pair_pass(m, m->offer, now))
		return;
	close(m->offer); /* its end ends the connection, where it has not been taken */
	m->offer = -1;
}

static void pair_make(struct member *m, uint64_t now)
{
	struct group *g = m->group;
	int ends[2], rc;

	if (!m->wanted && boards_paired(&g->boards, pair_rank(m)) != PAIR_ASKED)
		return;
	pair_drop(m);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
		pair_show_lack(m, -errno);
		pair_due(m, now + PAIR_AGAIN_MS * PAIR_MS);
		return;
	}
	if (!pair_show(m, cookie_of(ends[1]))) {
		close(ends[0]);
		close(ends[1]);
		pair_due(m, now + BUSY_MS * PAIR_MS);
		return;
	}
	rc = pair_new(m, ends[0], true);
	if (rc < 0) {
		close(ends[1]);
		pair_withdraw(m);
		pair_show_lack(m, errno_of(rc));
		pair_due(m, now + PAIR_AGAIN_MS * PAIR_MS);
		return;
	}
	m->offer = ends[1];
	pair_offer(m, now);
}

/* Again until there is an answer: a ring may be lost. That a later one cannot be rung is no error:
 * the bell is full, or the member has just died, which is seen otherwise. */
static void pair_ring(struct member *m, uint64_t now)
{
	const struct boards *b = &m->group->boards;

	if (m->rung)
		(void)bell_pass(b->bells[pair_rank(m)], b->seats[b->rank], -1);
	else
		m->rung = pair_pass(m, -1, now) && !m->error;
	if (m->rung)
		pair_due(m, now + RING_MS * PAIR_MS);
}

static void pair_ask(struct member *m, uint64_t now)
{
	if (!m->wanted)
		pair_withdraw(m);
	else if (pair_show(m, PAIR_ASKED))
		pair_ring(m, now);
	else
		pair_due(m, now + BUSY_MS * PAIR_MS);
}

static void pair_step(struct member *m, uint64_t now)
{
	list_remove(&m->pairing);
	if (m->distant)
		distant_step(m, now);
	else if (m->ended || has_left_group(m))
		pair_withdraw(m);
	else if (!pair_is_up(m->pair) && pair_take_lack(m))
		pair_withdraw(m);
	else if (pair_lives(m->pair))
		pair_offer(m, now);
	else if (is_maker(m))
		pair_make(m, now);
	else
		pair_ask(m, now);
	m->group->ctx->news |= m->wanted && m->error;
}

uint64_t pairs_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (UNLIKELY(ctx->unpaired))
		pairs_reap(ctx);
	LIST_EACH_ENTRY(struct member, m, &ctx->pairing, pairing)
		if (m->when <= now)
			pair_step(m, now);
	LIST_EACH_ENTRY(const struct member, m, &ctx->pairing, pairing)
		next = m->when < next ? m->when : next;
	return next;
}

/* ---- what comes by the bell ----------------------------------------------------------------- */

static bool is_from(const struct member *m, int fd)
{
	uint64_t cookie = cookie_of(fd);

	return !is_maker(m) && !m->ended && cookie && cookie != PAIR_ASKED &&
	       cookie == boards_paired(&m->group->boards, pair_rank(m));
}

/* A socket: where it is not the member's its maker sees its end, and why where there is no room. */
static void pair_came(struct member *m, const struct bell_word *word)
{
	int rc;

	if (!is_from(m, word->fd)) {
		foreign_close(word->fd, word->sender);
		return;
	}
	pair_drop(m);
	rc = pair_new(m, word->fd, false);
	if (rc < 0)
		pair_show_lack(m, errno_of(rc));
}

/* Perhaps the member's: this process has no descriptor for it. */
static void pair_missed(struct member *m)
{
	const uint64_t said = boards_paired(&m->group->boards, pair_rank(m));

	if (!is_maker(m) && !m->ended && said && said != PAIR_ASKED && !pair_errno(said) &&
	    !pair_lives(m->pair))
		pair_show_lack(m, -EMFILE);
}

/* Of a member, by its first rank. */
static struct member *sender_of(const struct group *g, const struct bell_word *word)
{
	if (!may_pair(g) || word->rank >= g->seats || g->members[word->rank].out ||
	    word->rank == g->boards.seats[g->boards.rank])
		return NULL;
	return &g->members[word->rank];
}

/* An unwanted socket has no holder any more: its maker sees its end, and makes another. */
static void take_word(struct group *g, const struct bell_word *word)
{
	struct member *m = sender_of(g, word);

	g->asked_early |= g->state == GROUP_IS_FORMING;
	if (m && alloc_came(g, word))
		return;
	if (m && word->fd >= 0)
		pair_came(m, word);
	else if (word->fd >= 0)
		foreign_close(word->fd, word->sender);
	else if (m && word->lost)
		pair_missed(m);
	else if (m && !word->unwanted && (is_maker(m) || m->wanted))
		pair_due(m, clock_now());
}

/* Any holder of the bell may send any rank: from others than the members nothing is wanted, and
 * each of these has its own share of the places. In another namespace they have no number. */
static bool is_wanted(struct group *g)
{
	const struct member *m;
	struct bell_word word;
	int32_t number;

	if (foreign_is_empty())
		return true;
	if (!g->bell_noted)
		g->bell_noted = bell_note_sender(g->bell.fd);
	if (!g->bell_noted || !bell_peek(g->bell.fd, &word) || !word.pair ||
	    !(m = sender_of(g, &word)))
		return false;
	number = reach_number(m->process.fd);
	return word.sender == (number > 0 ? number : 0) && foreign_has_room(1, word.sender);
}

void pairs_rang(struct group *g)
{
	struct bell_word word;

	for (int i = 0; i < RINGS; i++) {
		bool wanted = is_wanted(g); /* it may begin to note */

		if (!bell_take(g->bell.fd, &word, wanted, g->bell_noted))
			return;
		if (word.pair)
			take_word(g, &word);
		else if (word.fd >= 0)
			foreign_close(word.fd, word.sender);
	}
}

void pairs_formed(struct group *g)
{
	for (uint32_t r = g->boards.rank + 1; g->asked_early && r < g->boards.size; r++)
		if (boards_paired(&g->boards, r) == PAIR_ASKED)
			pair_due(&g->members[r], 0);
}

/* ---- life ----------------------------------------------------------------------------------- */

void pair_up(struct endpoint *ep)
{
	struct pair *p = ep->rooms->pair;

	ep->ctx->unpaired |= p && !p->member;
	if (!p || !p->member)
		return;
	if (ep->rooms->listener)
		listener_take(ep);
	pair_withdraw(p->member);
	p->member->error = 0;
	p->member->error_is_theirs = false;
	distant_up(p->member);
	ep->ctx->news = true;
}

static void pair_reset(const struct member *m, const struct endpoint *ep)
{
	struct distant *d = m->distant;

	if (d && !ep->life->was_up && ep->life->error == SLMPM_EDEAD && !d->reset_at)
		d->reset_at = clock_now();
}

void pair_ended(struct endpoint *ep)
{
	struct pair *p = ep->rooms->pair;

	if (!p)
		return;
	ep->ctx->unpaired = ep->ctx->news = true;
	if (!p->member)
		return;
	if (is_maker(p->member))
		pair_withdraw(p->member);
	pair_reset(p->member, ep);
	pair_due(p->member,
		 clock_now() + PAIR_AGAIN_MS * PAIR_MS); /* it may have been asked for again */
	if (p->member->distant && ep->life->was_up)
		distant_lost(p->member, ep->life->error);
}

void pair_left(struct endpoint *ep)
{
	struct pair *p = ep->rooms->pair;

	if (!p)
		return;
	if (p->member)
		p->member->pair = NULL;
	ep->rooms->pair = NULL;
	list_remove(&p->node);
	free(p);
}

void pairs_stop(struct context *ctx)
{
	LIST_EACH_ENTRY(struct member, m, &ctx->pairing, pairing)
		list_remove(&m->pairing);
}

static struct pair *pair_let_go(struct member *m)
{
	struct pair *p = m->pair;

	list_remove(&m->pairing);
	if (m->offer >= 0)
		close(m->offer);
	m->offer = -1;
	m->pair = NULL;
	if (p)
		p->member = NULL;
	return p;
}

/* One that is not up yet ends by itself, for the member does. */
void pair_leave(struct member *m)
{
	const struct pair *p = pair_let_go(m);

	m->group->ctx->unpaired |= p != NULL;
}

/* Made for G alone, and not up yet: at the other side it may be. */
static bool is_half_up(const struct group *g, const struct pair *p)
{
	return p && g->apart && !p->ep->life->was_up && !p->known;
}

void pairs_end(struct group *g)
{
	for (uint32_t s = 0; s < g->seats; s++) {
		const struct pair *p = g->members[s].pair;

		if (is_half_up(g, p) && pair_lives(p))
			pair_close(p, "its group has gone");
	}
}

void pairs_leave(struct group *g)
{
	pairs_end(g);
	for (uint32_t s = 0; s < g->seats; s++) {
		struct pair *p = pair_let_go(&g->members[s]);

		if (is_half_up(g, p)) /* else it may be known at the other side */
			endpoint_free(p->ep);
	}
	if (list_empty(&g->ctx->paired))
		return;
	g->ctx->unpaired = true; /* of a part: it was formed by others' */
	context_changed(g->ctx);
}

/* ---- for the rooms above -------------------------------------------------------------------- */

struct endpoint *pair_endpoint(const struct group *g, uint32_t rank)
{
	const struct pair *p = member_of(g, rank)->pair;

	return p && p->ep->state == SLMPM_PEER_UP ? p->ep : NULL;
}

struct member *pair_member(const struct endpoint *ep)
{
	return ep->rooms->pair ? ep->rooms->pair->member : NULL;
}

/* Nothing listens there any more: whether it has died say those that were connected with it. */
static bool may_have_died(const struct member *m)
{
	const struct distant *d = m->distant;

	return d && d->refused && !d->left && clock_now() - d->refused_at < PAIR_SAID_MS * PAIR_MS;
}

int pair_gone(const struct group *g, uint32_t rank)
{
	struct member *m = member_of(g, rank);
	const bool failed = m->wanted && m->error;

	if (m->ended || (failed && member_is_dead(m)) ||
	    (g->status == -SLMPM_EDEAD && g->culprit == (int32_t)rank))
		return -SLMPM_EDEAD;
	if (may_have_died(m))
		return 0;
	if (has_left_group(m))
		return -SLMPM_ECLOSED;
	return failed && !is_ending(m, clock_now()) ? error_code(m->error) : 0;
}

/* ---- the call ------------------------------------------------------------------------------- */

/* Its connection was reset amid the handshake: whether it lives a further attempt shows. */
static bool was_reset(const struct member *m)
{
	const struct distant *d = m->distant;

	return d && m->pair->ep->life->error == SLMPM_EDEAD &&
	       clock_now() - d->reset_at < PAIR_SAID_MS * PAIR_MS;
}

/* Tried again: it left before the other side was through, or its time was up. */
static bool comes_again(const struct member *m)
{
	const struct life *life = m->pair->ep->life;

	return m->pair->older || life->was_up || life->error == SLMPM_ECLOSED ||
	       life->error == SLMPM_ETIMEOUT || life->error == SLMPM_ELIMIT || was_reset(m);
}

bool pair_is_decided(void *arg)
{
	const struct member *m = arg;
	const struct pair *p = m->pair;

	return m->out || pair_is_up(p) || (m->error && !is_ending(m, clock_now())) || m->ended ||
	       (has_left_group(m) && !may_have_died(m)) || (p && !pair_lives(p) && !comes_again(m));
}

COLD uint32_t pair_culprit(const struct member *m)
{
	const struct pair *p = m->pair;
	const bool lacks = m->error ? !m->error_is_theirs && !is_closed_end(m->error) :
				      p && !pair_lives(p) && p->ep->life->lacks;

	return lacks ? m->group->boards.rank : pair_rank(m);
}

/* Others may get this text as well: whose lack it is. */
static COLD int lack_error(const struct member *m, const char *call)
{
	const struct boards *b = &m->group->boards;
	char what[128];

	if (m->error_is_theirs)
		(void)snprintf(what, sizeof(what), "%s: a connection of " BOARD_MEMBER, call,
			       BOARD_MEMBER_OF(b, pair_rank(m)));
	else
		(void)snprintf(what, sizeof(what),
			       "%s: a connection of " BOARD_MEMBER " with rank %u", call,
			       BOARD_MEMBER_OF(b, b->rank), pair_rank(m));
	return error_system(m->error, what);
}

COLD int pair_error(struct member *m, const char *call, int timeout_ms)
{
	struct pair *p = m->pair;
	uint32_t r = pair_rank(m);
	char what[128];

	if (m->out)
		return error_set(m->ended ? SLMPM_EDEAD : SLMPM_ECLOSED,
				 "%s: process %d is not in the group any more", call, m->pid);
	snprintf(what, sizeof(what), "%s: a connection with rank %u", call, r);
	if (m->ended || (is_closed_end(m->error) && member_is_dead(m)))
		return error_set(SLMPM_EDEAD, "%s: " BOARD_MEMBER " has died", call,
				 BOARD_MEMBER_OF(&m->group->boards, r));
	if (m->distant && m->distant->refused)
		return error_set(SLMPM_ECLOSED,
				 "%s: " BOARD_MEMBER " has left the group, or has died", call,
				 BOARD_MEMBER_OF(&m->group->boards, r));
	if (has_left_group(m))
		return error_set(SLMPM_ECLOSED, "%s: " BOARD_MEMBER " has left the group", call,
				 BOARD_MEMBER_OF(&m->group->boards, r));
	if (m->error && !is_ending(m, clock_now()))
		return lack_error(m, call);
	if (p && !pair_lives(p) && !comes_again(m))
		return error_set(p->ep->life->error ? p->ep->life->error : SLMPM_ECLOSED,
				 "%s: " BOARD_MEMBER ": %s", call,
				 BOARD_MEMBER_OF(&m->group->boards, pair_culprit(m)),
				 p->ep->life->reason);
	if (m->distant && *m->distant->why && !pair_lives(p))
		return late_error(m->group->ctx, NULL, timeout_ms, "%s: %s", what, m->distant->why);
	return late_error(m->group->ctx, pair_lives(p) ? p->ep : NULL, timeout_ms,
			  "%s: it has not answered", what);
}

void pair_want(struct member *m)
{
	if (!pair_lives(m->pair))
		pair_drop(m);
	else
		m->pair->older = !m->wanted && !pair_is_up(m->pair);
	m->wanted++;
	if (!m->distant)
		m->lack_seen = boards_paired(&m->group->boards, pair_rank(m));
	m->error = 0;
	m->error_is_theirs = false;
	pair_due(m, 0);
}

void pair_unwant(struct member *m)
{
	m->wanted--;
	if (!m->wanted && !pair_lives(m->pair)) /* it is not asked for any more */
		pair_due(m, 0);
}

static int pair_await(struct member *m, int timeout_ms)
{
	struct context *ctx = m->group->ctx;
	int rc = 0;

	pair_want(m);
	if (!timeout_ms)
		(void)wait_inspect(ctx);
	(void)wait_until(ctx, pair_is_decided, m, timeout_ms);
	if (!pair_is_up(m->pair))
		rc = pair_error(m, CALL, timeout_ms);
	pair_unwant(m);
	return rc;
}

static int check_pair(const struct group *g, int rank)
{
	int rc = group_is_joined(g, CALL);

	if (rc < 0)
		return rc;
	if (g->shrinking)
		return error_set(SLMPM_EBUSY, CALL ": another thread calls slmpm_group_shrink");
	if (rank < 0 || (uint32_t)rank >= g->boards.size)
		return error_set(SLMPM_EINVAL, CALL ": rank %d of %u members", rank,
				 g->boards.size);
	if ((uint32_t)rank == g->boards.rank)
		return error_set(SLMPM_EINVAL, CALL ": rank %d is this process", rank);
	return context_forbids(g->ctx, CALL);
}

struct endpoint *group_pair(struct group *g, int rank, int timeout_ms, int *rc)
{
	struct member *m;

	*rc = check_pair(g, rank);
	if (*rc < 0)
		return NULL;
	m = member_of(g, (uint32_t)rank);
	if (pair_is_up(m->pair))
		return m->pair->ep;
	g->waits++;
	*rc = pair_await(m, timeout_ms);
	g->waits--;
	return *rc == 0 ? m->pair->ep : NULL;
}

int slmpm_group_peer(slmpm_group group, int rank, slmpm_peer *peer, int timeout_ms)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);
	struct endpoint *ep;

	if (!g)
		return rc;
	if (!peer) {
		rc = error_set(SLMPM_EINVAL, CALL ": no place for the peer");
	} else if ((ep = group_pair(g, rank, timeout_ms, &rc)) != NULL) {
		peer->id = handle_id(ep);
		ep->rooms->pair->known = true;
	}
	context_unlock(ctx);
	return rc;
}
