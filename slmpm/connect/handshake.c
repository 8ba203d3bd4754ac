/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake, the same on both sides:
 *
 *     HELLO  version, limits, nonce          each side, at once
 *     NONCE  the peer's nonce, returned after its pidfd was taken
 *     ROUND  0, 1, ...: the fabric's blobs and descriptors, until it says connected
 *
 * Over TCP a PROOF takes the nonce's place, that the secret is known: first of who connected, and
 * then, if that holds, of the other. Nothing else is used before.
 *
 * Each step has an exact length, a legal state and a deadline.
 */
#include "slmpm/connect/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "slmpm/am/am.h"
#include "slmpm/domain.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/base/error.h"
#include "slmpm/message/fetch.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/connect/listener.h"
#include "slmpm/link/addressee.h"
#include "slmpm/base/log.h"
#include "slmpm/region/memory.h"
#include "slmpm/share/share.h"
#include "slmpm/stats.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define PAYLOAD_LEAST (HELLO_PACKET_LEAST + CHECKSUM_SPARE)

int handshake_refuse(struct endpoint *ep, int error, const char *why)
{
	endpoint_refused(ep, error, why);
	return -EPROTO;
}

/* Of a connection beside the control connection. */
static bool is_loss(int rc)
{
	return rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EPIPE || rc == -ETIMEDOUT ||
	       rc == -EHOSTUNREACH || rc == -ENETUNREACH;
}

/* Not the peer's doing, or not its lie: an errno. */
static int handshake_fail(struct endpoint *ep, int rc, const char *what)
{
	char why[112], text[ERROR_SYSTEM];
	int error = is_loss(rc) ? SLMPM_EDEAD : -error_system(rc, what);

	ep->life->lacks = error_is_lack(error);
	snprintf(why, sizeof(why), "%s: %s", what, error_text(rc, text));
	return handshake_refuse(ep, error, why);
}

/* The first offer takes a ring of zeroed pages: made while the peer is loaded, or reads our hello.
 * Who comes by a listener gets none before it has shown itself. */
static void prepare_round(struct control *c)
{
	int rc = rounds_write(&c->rounds, &c->packet, &c->fd);

	c->made = rc < 0 ? rc : 1;
}

/* What the program is called: by the system where it was started as /proc/self/exe. */
static void own_name(char *name, size_t size)
{
	char path[PATH_MAX];
	ssize_t n = -1;

	if (!strncmp(program_invocation_name, "/proc/", 6))
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	snprintf(name, size, "%s", n > 0 ? strrchr(path, '/') + 1 : program_invocation_short_name);
}

static int send_round(struct control *c)
{
	if (!c->made)
		prepare_round(c);
	if (c->made < 0)
		return handshake_fail(c->ep, c->made, "no memory for a ring is to be had");
	c->made = 0;
	if (c->rounds.round == 0 && *config_get()->name)
		snprintf(c->packet.name, sizeof(c->packet.name), "%s", config_get()->name);
	else if (c->rounds.round == 0)
		own_name(c->packet.name, sizeof(c->packet.name));
	return control_send(c, &c->packet, sizeof(c->packet), WIRE_ROUND, c->fd);
}

/* What the side that connected (ACTIVE) says, or the other. */
static void prove(const struct control_stream *s, bool active, unsigned char proof[SIPHASH_SIZE])
{
	secret_prove(&s->secret, active, s->active ? &s->ours : &s->theirs,
		     s->active ? &s->theirs : &s->ours, proof);
}

static int send_proof(struct control *c)
{
	struct wire_proof proof = {.head.type = 0};
	const struct listener *l = c->ep->rooms->listener;

	if (l)
		near_invite(&l->near, &proof.near, &c->stream->guest);
	prove(c->stream, c->stream->active, proof.proof);
	return control_send(c, &proof, sizeof(proof), WIRE_PROOF, -1);
}

static int take_hello(struct control *c, const struct received *r)
{
	const struct wire_hello *hello = &r->packet.hello;
	struct endpoint *ep = c->ep;
	struct wire_nonce nonce = {.nonce = hello->nonce};

	if (r->length != sizeof(*hello) || r->fd_count)
		return handshake_refuse(ep, SLMPM_EPROTO, "its hello has the wrong length");
	if (hello_inspect(ep, hello) < 0)
		return -EPROTO;
	if (c->stream) {
		c->stream->theirs = *hello;
		c->step = WAIT_PROOF;
		return c->stream->active ? send_proof(c) : 0;
	}
	bootstrap_moved(ep);
	c->step = WAIT_NONCE;
	if (hello_agree(c, hello) < 0)
		return -EPROTO;
	return control_send(c, &nonce, sizeof(nonce), WIRE_NONCE, -1);
}

static struct log_limit unauthenticated;

static int take_proof(struct control *c, const struct received *r)
{
	const struct listener *l = c->ep->rooms->listener;
	unsigned char right[SIPHASH_SIZE];
	int rc = l && l->home ? parts.admit(c->ep, r->packet.proof.proof) : 0;

	if (rc < 0 && rc != -SLMPM_EACCES)
		return handshake_refuse(c->ep, -rc, "it connects itself, or there is no memory");
	prove(c->stream, !c->stream->active, right);
	if (rc < 0 || !key_same_secret(right, r->packet.proof.proof)) {
		stats_violation("secret");
		log_limited(&unauthenticated, SLMPM_LOG_WARN,
			    "%s: refused: it does not know the secret", c->ep->life->name);
		return handshake_refuse(c->ep, SLMPM_EACCES, "the secrets of the two sides differ");
	}
	if (c->stream->active && !c->stream->stays) {
		int fd = near_go(&r->packet.proof.near);

		if (fd >= 0)
			return bootstrap_move(c->ep, fd);
	}
	if (hello_agree(c, &c->stream->theirs) < 0)
		return -EPROTO;
	c->step = WAIT_ROUND;
	rc = c->stream->active ? 0 : send_proof(c);
	return rc < 0 ? rc : send_round(c);
}

static int take_nonce(struct control *c, const struct received *r)
{
	if (r->length != sizeof(r->packet.nonce) || r->fd_count ||
	    LITTLE_64(r->packet.nonce.nonce) != c->nonce)
		return handshake_refuse(c->ep, SLMPM_EPROTO, "it does not return the nonce");
	c->step = WAIT_ROUND;
	return send_round(c);
}

static void connected(struct control *c)
{
	struct endpoint *ep = c->ep;

	c->step = CONNECTED;
	c->deadline = UINT64_MAX;
	list_remove(&c->node);
	if (!(c->features & WIRE_FEATURE_ACTIVE))
		am_refuse(ep);
	endpoint_up(ep);
	if (!(c->features & WIRE_FEATURE_BUNDLE))
		ep->bundle.most = 0;
	if (c->features & WIRE_FEATURE_WHOLE)
		endpoint_whole(ep);
	/* Where bytes are to land in their place only what is asked for has one. */
	ep->life->unasked = c->features & WIRE_FEATURE_UNASKED &&
			    !domain_caps(ep->link.port->domain->fabric)->land_min;
	ep->life->mirrored = c->features & WIRE_FEATURE_MIRROR;
	ep->rooms->regions->agreed = c->features & WIRE_FEATURE_MEMORY;
	if (c->features & WIRE_FEATURE_FETCH)
		fetch_open(ep);
	if (c->features & WIRE_FEATURE_SHARE)
		share_open(ep);
	ep->ask_min = ask_least(ep, c->engine);
	monitor_agreed(ep, c->features);
	secondary_begin(ep);
	silence_watch(c);
}

/* The fabric has said RC of this round, when ASKED again or at once. While that is open what the
 * peer sends, which may be connected already, waits in the socket. */
static int handshake_take_answer(struct control *c, int rc, bool asked)
{
	struct endpoint *ep = c->ep;
	char why[112];

	if (rc == 2 || asked)
		watch_for_end(ep->ctx, &c->socket, rc == 2);
	if (rc == -EPROTO && ep->link.port->violation) {
		snprintf(why, sizeof(why), "impossible %s", ep->link.port->violation);
		return handshake_refuse(ep, SLMPM_EPROTO, why);
	}
	if (rc < 0)
		return handshake_fail(ep, rc,
				      is_loss(rc) ? "its link cannot be reached" :
						    "the ring that it offers cannot be used");
	if (rc == 2)
		return 0;
	if (rc == 1)
		return send_round(c);
	if (ep->link.port->payload_max < PAYLOAD_LEAST ||
	    ep->link.port->payload_max_in < PAYLOAD_LEAST)
		return handshake_refuse(ep, SLMPM_EPROTO, "impossible size of a ring");
	rc = secondary_open(c);
	if (rc == 0)
		rc = addressee_begin(ep);
	if (rc < 0)
		return handshake_fail(ep, rc, "no memory for its links is to be had");
	connected(c);
	return 0;
}

static int handshake_take_round(struct control *c, struct received *r)
{
	const struct wire_round *round = &r->packet.round;
	struct endpoint *ep = c->ep;

	if (!rounds_is_sound(r) || LITTLE_32(round->round) != (uint32_t)c->rounds.round ||
	    round->link || round->life)
		return handshake_refuse(ep, SLMPM_EPROTO, "a step of the handshake is malformed");
	if (c->rounds.round == 0) /* who says a round has shown who it is */
		control_text(ep->rooms->figures->totals->offered,
			     sizeof(ep->rooms->figures->totals->offered), round->name,
			     sizeof(round->name));
	return handshake_take_answer(c, rounds_take(ep, &c->rounds, r), false);
}

void handshake_ends(struct endpoint *ep, int rc)
{
	if (rc >= 0 || rc == -EPIPE || rc == -ECONNRESET || ep->state != SLMPM_PEER_CONNECTING)
		return;
	(void)handshake_fail(ep, rc, "handshake");
}

void handshake_ask(struct control *c)
{
	struct endpoint *ep = c->ep;
	int rc = ep->state == SLMPM_PEER_CONNECTING ? rounds_ask(ep, &c->rounds) : 2;

	if (rc == 2)
		return;
	handshake_ends(ep, handshake_take_answer(c, rc, true));
	context_changed(ep->ctx);
}

void handshake_ask_again(struct context *ctx)
{
	LIST_EACH_ENTRY(struct control, c, &ctx->deadlines, node)
		handshake_ask(c);
	secondary_ask_all(ctx);
}

/* An accelerator waits as long as its host lives, which may compute; the host gives each step its
 * time, for it may have computed between two of them. */
static void limit_step(struct control *c)
{
	if (c->ep->life->is_parent)
		return;
	if ((c->deadline == UINT64_MAX || c->ep->rooms->process || c->patient) &&
	    c->step != CONNECTED)
		c->deadline = clock_now() + (uint64_t)config_get()->handshake_ms * 1000000;
}

int handshake_begin(struct control *c)
{
	int rc;

	if (getrandom(&c->nonce, sizeof(c->nonce), 0) != sizeof(c->nonce))
		return -EIO;
	if ((!c->ep->rooms->process && !c->patient) || c->stream)
		limit_step(c);
	rc = hello_send(c);
	if (rc == 0 && !c->ep->rooms->listener && !c->stream)
		prepare_round(c);
	return rc;
}

int handshake_packet(struct control *c, struct received *r)
{
	uint32_t type = LITTLE_32(r->packet.head.type);

	limit_step(c);
	if (type == WIRE_HELLO && c->step == WAIT_HELLO)
		return take_hello(c, r);
	if (type == WIRE_NONCE && c->step == WAIT_NONCE)
		return take_nonce(c, r);
	if (type == WIRE_PROOF && c->step == WAIT_PROOF)
		return take_proof(c, r);
	if (type == WIRE_ROUND && c->step == WAIT_ROUND)
		return handshake_take_round(c, r);
	endpoint_poison(c->ep, "control packet out of turn");
	return -EPROTO;
}
