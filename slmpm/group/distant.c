/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of a group without boards: each listens, and who founds has told all where, and each pair
 * a key of its own. Either of two may connect; of two attempts at once the lower rank's stands.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/base/config.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/dial/dial.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/group/pairing.h"
#include "slmpm/net/net.h"
#include "slmpm/part.h"

/* ---- where they are ------------------------------------------------------------------------- */

int distant_listen(struct group *g, const char *host)
{
	char url[NET_NAME + 16];

	snprintf(g->host, sizeof(g->host), "%s", strcmp(host, "*") != 0 ? host : "127.0.0.1");
	snprintf(url, sizeof(url), strchr(host, ':') ? "tcp://[%s]:0" : "tcp://%s:0", host);
	return listener_open(g->ctx, url, &g->listener);
}

uint16_t distant_port(const struct group *g)
{
	return net_port(g->listener->watch.fd);
}

static void attempt_answered(struct context *ctx, struct watch *w)
{
	struct member *m = w->owner;

	if (w->fd < 0) /* it has been dropped meanwhile */
		return;
	watch_remove(ctx, w); /* it stays readable */
	m->distant->has_answered = true;
	pair_due(m, 0);
}

int distant_put(struct group *g, uint32_t rank, const char *url, const unsigned char *key)
{
	struct member *m = &g->members[rank];
	struct distant *d = calloc(1, sizeof(*d));
	struct url parsed;

	if (!d)
		return -ENOMEM;
	if (url_parse(&parsed, url) < 0 || parsed.kind != URL_TCP) {
		free(d);
		return -EPROTO;
	}
	snprintf(d->url, sizeof(d->url), "%s", url);
	memcpy(d->key.bytes, key, sizeof(d->key.bytes));
	d->key.known = true;
	d->answered = (struct watch){.ready = attempt_answered, .fd = -1, .owner = m};
	m->distant = d;
	return 0;
}

static void drop_attempt_of(struct member *m)
{
	struct distant *d = m->distant;

	if (!d->attempt)
		return;
	watch_remove(m->group->ctx, &d->answered);
	d->answered.fd = -1;
	attempt_drop(d->attempt);
	d->attempt = NULL;
	d->has_answered = false;
}

void distant_free(struct member *m)
{
	if (!m->distant)
		return;
	drop_attempt_of(m);
	free(m->distant->stands);
	free(m->distant);
	m->distant = NULL;
}

void distant_forked(const struct member *m)
{
	if (m->distant && m->distant->attempt)
		close(m->distant->answered.fd);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static void attempt_for(struct member *m, uint64_t now)
{
	const uint64_t until = now + (uint64_t)config_get()->handshake_ms * PAIR_MS;
	struct distant *d = m->distant;
	int bell = attempt_begin(&d->attempt, d->url, until);

	d->answered.fd = bell < 0 ? -1 : bell;
	if (bell >= 0 && watch_add(m->group->ctx, &d->answered) == 0)
		return;
	m->error = bell < 0 ? bell : -ENOMEM;
	drop_attempt_of(m);
	m->group->ctx->news = true;
	pair_due(m, now + PAIR_AGAIN_MS * PAIR_MS); /* of a thread there may be one by then */
}

static void take_attempt(struct member *m, uint64_t now)
{
	struct distant *d = m->distant;
	struct connection c = {.stream = true, .stays = d->stays, .secret = &d->key};
	struct attempt_result got;
	int rc;

	attempt_take(d->attempt, &got);
	d->attempt = NULL;
	d->has_answered = false;
	d->answered.fd = -1;
	snprintf(d->why, sizeof(d->why), "%.*s", (int)sizeof(d->why) - 1,
		 got.rc < 0 ? got.detail : "");
	if (got.rc == -SLMPM_ENOFILE || got.rc == -SLMPM_ENOMEM) { /* which says nothing of M */
		pair_note_lack(m, got.rc);
		pair_due(m, now + PAIR_AGAIN_MS * PAIR_MS);
		return;
	}
	/* It listened when the group was formed. */
	if (got.rc == -SLMPM_ENOENT || (got.rc < 0 && d->lost)) {
		m->ended = d->lost || d->founder_lost;
		d->refused = !m->ended;
		d->refused_at = now;
		pair_due(m, now + PAIR_SAID_MS * PAIR_MS);
		m->group->ctx->news = true;
		attendance_gone(m);
		distant_inspect(m->group);
		return;
	}
	c.fd = got.rc;
	rc = got.rc < 0 ? 0 : pair_adopt(m, &c, true);
	if (rc < 0)
		pair_note_lack(m, rc);
	if (got.rc < 0 || rc < 0)
		pair_due(m, now + PAIR_AGAIN_MS * PAIR_MS);
}

const char *distant_unreached(const struct group *g, uint32_t rank)
{
	const struct distant *d = member_of(g, rank)->distant;

	return d ? d->why : "";
}

/* It was found on this machine, and could not be reached so after all: over the network then. */
static bool was_near(const struct pair *p)
{
	return p->own && !p->ep->life->was_up && p->ep->life->error != SLMPM_ETIMEOUT &&
	       p->ep->rooms->control && !connect_is_stream(p->ep);
}

void distant_step(struct member *m, uint64_t now)
{
	struct distant *d = m->distant;

	if (d->left || d->refused || m->ended) {
		drop_attempt_of(m);
		m->group->ctx->news = true; /* it has been waited for long enough, perhaps */
		return;
	}
	if (pair_lives(m->pair)) {
		attendance_show(m);
		survivor_show(m);
		return;
	}
	if (d->attempt && !d->has_answered)
		return;
	if (d->attempt) {
		take_attempt(m, now);
		return;
	}
	if (!m->wanted && !d->lost && !d->questioned)
		return;
	d->stays |= m->pair && was_near(m->pair);
	pair_drop(m);
	attempt_for(m, now);
}

/* ---- those that come ------------------------------------------------------------------------ */

static struct group *group_at(const struct listener *l)
{
	LIST_EACH_ENTRY(struct group, g, &l->ctx->groups, node)
		if (g->listener == l)
			return g;
	return NULL;
}

static struct member *member_of_proof(struct group *g, const struct control_stream *s,
				      const unsigned char *proof)
{
	for (uint32_t seat = 0; g->members && seat < g->seats; seat++) {
		struct member *m = &g->members[seat];
		const struct distant *d = m->distant;
		unsigned char right[SIPHASH_SIZE];

		if (!d || m->out)
			continue;
		secret_prove(&d->key, true, &s->theirs, &s->ours, right);
		if (!memcmp(right, proof, sizeof(right)))
			return m;
	}
	return NULL;
}

/* This side's own connection stands, or its attempt, where it is the lower rank's: the other one
 * has begun before it knew, or finds this one ended before this side does, and comes again. */
static bool stands(const struct member *m)
{
	return m->group->boards.rank < pair_rank(m) &&
	       (m->distant->attempt || (pair_lives(m->pair) && m->pair->own));
}

int distant_admit(struct endpoint *ep, const unsigned char *proof)
{
	struct group *g = group_at(ep->rooms->listener);
	struct control_stream *s = ep->rooms->control->stream;
	struct member *m = g ? member_of_proof(g, s, proof) : NULL;

	if (!m)
		return -SLMPM_EACCES;
	if (stands(m))
		return -SLMPM_ELIMIT;
	s->secret = m->distant->key;
	m->distant->why[0] = 0;
	drop_attempt_of(m);
	pair_drop(m);
	return pair_attach(m, ep, false) ? 0 : -SLMPM_ENOMEM;
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void send_ended(const struct member *m, struct wire_group packet)
{
	packet.step = LITTLE_32(GROUP_ENDED);
	if (pair_is_up(m->pair))
		groups_send(m->pair->ep, &packet);
}

static struct wire_group broken_packet(const struct group *g, int error, uint32_t culprit)
{
	struct wire_group packet = {
		.number = LITTLE_32(g->boards.generation),
		.error = LITTLE_32(wire_error(error)),
		.rank = LITTLE_32(culprit < g->boards.size ? culprit + 1 : 0),
	};

	error_fit(packet.text, sizeof(packet.text), g->error ? g->detail : g->said);
	return packet;
}

/* By the connection with PEER, which JOIN has gone by: members that have none with each other learn
 * it so, also if that one leaves then. */
static void send_joined(uint64_t peer, uint32_t join, uint32_t what, struct wire_group packet)
{
	struct endpoint *ep = peer ? endpoint_get((slmpm_peer){peer}) : NULL;

	if ((!packet.error || what & WIRE_GROUP_LOST) && ep && !bootstrap_forms_local(ep))
		return; /* an older one takes the one for a fault, the other for a death */
	packet.step = LITTLE_32(GROUP_ENDED);
	packet.tag = LITTLE_32(join);
	packet.what = LITTLE_32(what);
	if (ep && ep->state == SLMPM_PEER_UP && !ep->closing)
		groups_send(ep, &packet);
}

void distant_left(struct group *g, bool in_order, const uint64_t did[2])
{
	const struct wire_group packet = {
		.number = LITTLE_32(g->boards.generation),
		.what = LITTLE_32(in_order ? WIRE_GROUP_IN_ORDER : 0),
		.through = LITTLE_64(g->attendance.through),
		.passed = LITTLE_64(g->attendance.met),
		.did = {LITTLE_64(did[0]), LITTLE_64(did[1])},
	};

	for (uint32_t r = 0; g->state == GROUP_HAS_FORMED && r < g->boards.size; r++)
		send_ended(member_of(g, r), packet);
	if (g->state == GROUP_HAS_FORMED)
		send_joined(g->founder, g->join, 0, packet);
	g->spread = true; /* what others do of it is not this member's to say any more */
}

void distant_end(struct group *g, int error, uint32_t culprit)
{
	struct wire_group packet;

	if (g->state != GROUP_HAS_FORMED || !g->members || g->spread)
		return;
	g->spread = true;
	packet = broken_packet(g, error, culprit);
	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct member *m = member_of(g, r);

		send_ended(m, packet);
		if (!pair_is_up(m->pair))
			send_joined(m->peer, m->join, WIRE_GROUP_FOUNDS, packet);
	}
	send_joined(g->founder, g->join, 0, packet);
}

void distant_spread(struct group *g)
{
	if (g->status && !g->left)
		distant_end(g, g->status, g->culprit < 0 ? BOARD_NONE : (uint32_t)g->culprit);
}

void distant_up(struct member *m)
{
	struct group *g = m->group;

	if (!m->distant || g->state != GROUP_HAS_FORMED || g->shut)
		return;
	m->distant->lost = m->distant->questioned = m->distant->founder_lost = false;
	m->distant->why[0] = 0;
	m->distant->reset_at = 0;
	if (g->status && !g->left)
		send_ended(m, broken_packet(g, g->status, (uint32_t)g->culprit));
	attendance_up(m);
	survivor_up(m);
	g->blocked.again = g->inspect_at = 0; /* M has not seen what has been shown */
}

/* By whose doing it is broken, as M says: a rank. */
static int32_t broken_by(const struct member *m)
{
	const uint32_t said = m->distant->broke.rank;

	return said && said <= m->group->boards.size ? (int32_t)said - 1 : (int32_t)pair_rank(m);
}

void distant_inspect(struct group *g)
{
	for (uint32_t r = 0; r < g->boards.size; r++) {
		const struct member *m = member_of(g, r);
		const struct distant *d = m->distant;

		if (!d)
			continue;
		if (d->broke.error && d->broke.generation == g->boards.generation)
			group_break(g, d->broke.error, broken_by(m));
		else if (d->left)
			group_left(g, r);
		else if (m->ended || d->lost)
			group_break(g, -SLMPM_EDEAD, (int32_t)r);
	}
	parts.machine->inspect(g);
	distant_spread(g);
}

/* ---- by the connections of joins ------------------------------------------------------------- */

/* That EP founds, and this process has joined; NULL: it has gone. */
static struct group *group_joined(const struct endpoint *ep, uint32_t join)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node)
		if (g->founder == handle_id(ep) && g->join == join)
			return g;
	return NULL;
}

/* EP's side, as the member of a group that this process founds; NULL: it is none any more. */
static struct member *member_joined(const struct endpoint *ep, uint32_t join)
{
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node)
		for (uint32_t s = 0; g->members && s < g->seats; s++)
			if (g->members[s].peer == handle_id(ep) && g->members[s].join == join &&
			    !g->members[s].out)
				return &g->members[s];
	return NULL;
}

/* Who founds has lost RANK: whether it has died an attempt to connect with it shows, or has. */
static void rank_missed(struct group *g, uint32_t rank)
{
	struct member *m = member_of(g, rank);
	struct distant *d = m->distant;

	if (!d || d->left || m->ended || pair_is_up(m->pair))
		return;
	d->founder_lost = true;
	if (!d->refused) {
		d->questioned = true;
		pair_due(m, 0);
		return;
	}
	m->ended = true;
	d->refused = false;
	g->ctx->news = true;
	distant_inspect(g);
}

static void joined_lost(struct group *g, const struct member *m)
{
	const uint32_t lost = pair_rank(m);
	struct wire_group packet = {
		.number = LITTLE_32(g->boards.generation),
		.error = LITTLE_32(wire_error(-SLMPM_EDEAD)),
		.rank = LITTLE_32(lost + 1),
	};

	snprintf(packet.text, sizeof(packet.text), BOARD_MEMBER " has died",
		 BOARD_MEMBER_OF(&g->boards, lost));
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (r != lost)
			send_joined(member_of(g, r)->peer, member_of(g, r)->join,
				    WIRE_GROUP_FOUNDS | WIRE_GROUP_LOST, packet);
	rank_missed(g, lost);
}

void distant_peer_ended(struct endpoint *ep)
{
	if (ep->life->error != SLMPM_EDEAD)
		return;
	LIST_EACH_ENTRY(struct group, g, &ep->ctx->groups, node)
		for (uint32_t s = 0; g->apart && g->state == GROUP_HAS_FORMED && s < g->seats;
		     s++) {
			const struct member *m = &g->members[s];

			if (m->peer == handle_id(ep) && !m->has_left && !m->out)
				joined_lost(g, m);
		}
}

/* It goes on to all others: who founds has such a connection with each. */
static void joined_ended(const struct endpoint *ep, const struct wire_group *packet)
{
	const uint32_t what = LITTLE_32(packet->what), rank = LITTLE_32(packet->rank);
	const bool founds = what & WIRE_GROUP_FOUNDS;
	struct member *m = founds ? NULL : member_joined(ep, LITTLE_32(packet->tag));
	struct group *g = m ? m->group : founds ? group_joined(ep, LITTLE_32(packet->tag)) : NULL;

	if (m && !packet->error) {
		m->has_left = true;
		return;
	}
	if (!g || !g->apart || g->state != GROUP_HAS_FORMED ||
	    LITTLE_32(packet->number) != g->boards.generation || (g->status && !g->left))
		return;
	if (founds && what & WIRE_GROUP_LOST) {
		if (rank && rank <= g->boards.size)
			rank_missed(g, rank - 1);
		return;
	}
	control_text(g->said, sizeof(g->said), packet->text, sizeof(packet->text));
	group_break(g, wire_status(LITTLE_32(packet->error)),
		    rank && rank <= g->boards.size ? (int32_t)rank - 1 : -1);
	distant_inspect(g);
}

int distant_ended(struct endpoint *ep, const struct wire_group *packet)
{
	uint32_t error = LITTLE_32(packet->error), generation = LITTLE_32(packet->number);
	struct pair *p = ep->rooms->pair;
	struct member *m = p ? p->member : NULL;
	struct group *g = m ? m->group : NULL;

	if (PEER_FAULT(error > WIRE_ERROR_LAST ||
		       LITTLE_32(packet->what) & ~(WIRE_GROUP_IN_ORDER | WIRE_GROUP_FOUNDS) ||
		       (packet->tag ? !error && LITTLE_32(packet->what) & WIRE_GROUP_FOUNDS :
				      !p || (g && !g->apart))))
		return -SLMPM_EPROTO;
	if (packet->tag) {
		joined_ended(ep, packet);
		return 0;
	}
	if (!m || m->out)
		return 0;
	if (!error) {
		m->distant->left = packet->what ? LEFT_IN_ORDER : LEFT_AT_END;
		m->distant->left_in = generation;
		for (int lane = 0; lane < 2; lane++)
			m->distant->did[lane] = LITTLE_64(packet->did[lane]);
		attendance_left(m, packet);
	} else {
		m->distant->broke.generation = generation;
		m->distant->broke.rank = LITTLE_32(packet->rank);
		m->distant->broke.error = wire_status(error);
		/* Words of another end than the one that is known would be wrong for it. */
		if (generation == g->boards.generation &&
		    (!g->status || g->left ||
		     (!g->said[0] && m->distant->broke.error == g->status &&
		      broken_by(m) == g->culprit)))
			control_text(g->said, sizeof(g->said), packet->text, sizeof(packet->text));
	}
	distant_inspect(g);
	g->ctx->news = true;
	return 0;
}

/* A connection ends with its member, or as one of the two gives it up for another, or the network
 * does; who breaks the protocol is asked nothing more. */
void distant_lost(struct member *m, int error)
{
	if (error == SLMPM_ECLOSED)
		return;
	m->distant->lost = error == SLMPM_EDEAD;
	m->ended |= !m->distant->lost;
	attendance_gone(m);
	pair_due(m, 0);
	distant_inspect(m->group);
}

void distant_leave(struct member *m)
{
	if (m->distant)
		drop_attempt_of(m);
}
