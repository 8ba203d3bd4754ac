/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that join a mirror to a peer's, and part them. */
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/wait.h"

struct joining {
	slmpm_mirror mirror;
	slmpm_peer peer;
	uint32_t tag, how;
	bool asked;
	int rc; /* 0: not yet; 1 */
};

/* What an attachment that is new would stand beside. 1: none; 0: not yet. */
static int mirror_attach_may_attach(struct mirror *m, struct endpoint *ep, const struct joining *j)
{
	const struct attachment *leader = mirror_find(m, (slmpm_peer){0}), *same;
	uint32_t slot = 0;

	if (ep->state != SLMPM_PEER_UP)
		return endpoint_error(ep);
	if (!ep->life->mirrored)
		return error_set(SLMPM_ENOTSUP, "%s does not know mirrors", ep->life->name);
	if (j->how & SLMPM_MIRROR_FOLLOW && leader && leader->state != ATTACHMENT_STALE)
		return error_set(SLMPM_EBUSY, "the mirror has a leader");
	if (!mirrors_of(ep))
		return error_set(SLMPM_ENOMEM, "for mirrors");
	same = attachment_with_tag(ep->rooms->mirrors, j->tag);
	if (same && same->state == ATTACHMENT_ENDING)
		return 0;
	if (same)
		return error_set(SLMPM_EBUSY, "another mirror has tag %u with %s", j->tag,
				 ep->life->name);
	while (slot < MIRRORS_MAX && ep->rooms->mirrors->slots[slot])
		slot++;
	if (slot == MIRRORS_MAX)
		return error_set(SLMPM_ELIMIT, "%u mirrors with %s", MIRRORS_MAX, ep->life->name);
	return 1;
}

static int mirror_attach_begin(struct mirror *m, struct endpoint *ep, struct joining *j)
{
	struct attachment *a = mirror_find(m, j->peer);
	struct wanted *w;
	int rc;

	if (a && a->state != ATTACHMENT_STALE) {
		if (a->tag != j->tag || a->how != j->how)
			return error_set(SLMPM_EBUSY, "the mirror is attached to %s otherwise",
					 ep->life->name);
		return 1;
	}
	if (a && a->why) /* it has come to nothing meanwhile, of which nobody was notified */
		return 1;
	rc = mirror_attach_may_attach(m, ep, j);
	if (rc <= 0)
		return rc;
	if (a)
		attachment_leave(a);
	if (j->how & SLMPM_MIRROR_FOLLOW && (a = mirror_find(m, (slmpm_peer){0})))
		attachment_leave(a);
	a = attachment_new(m, ep, j->tag, j->how);
	if (!a)
		return error_set(SLMPM_ENOMEM, "for a mirror's changes");
	w = wanted_with(ep->rooms->mirrors, j->tag);
	if (w) {
		attachment_join(a, w);
		wanted_free(ep->rooms->mirrors, w);
	}
	return 1;
}

/* One that has come to nothing leaves only its reason. */
static int mirror_attach_conclude(struct attachment *a)
{
	const struct endpoint *ep = endpoint_of((slmpm_peer){a->peer});
	const char *name = ep ? ep->life->name : "the peer";
	int rc;

	if (a->why)
		rc = error_set(-a->error, "the mirrors here and at %s do not fit: %s", name,
			       a->why);
	else
		rc = error_set(-a->error, "%s has left the mirror", name);
	attachment_leave(a);
	return rc;
}

/* 0 not yet, 1 it has, negative. */
static int mirror_attach_inspect(struct joining *j)
{
	struct mirror *m = handle_get(&mirror_table, j->mirror.id);
	struct endpoint *ep = endpoint_of(j->peer);
	struct attachment *a;
	int rc;

	if (!m)
		return handle_error(&mirror_table, j->mirror.id);
	if (!j->asked) {
		if (!ep)
			return endpoint_bad_handle(j->peer);
		if (ep->state == SLMPM_PEER_CONNECTING)
			return 0;
		rc = mirror_attach_begin(m, ep, j);
		if (rc <= 0)
			return rc;
		j->asked = true;
	}
	a = mirror_find(m, j->peer);
	if (!a)
		return mirror_not_attached("slmpm_mirror_attach");
	if (a->state == ATTACHMENT_STALE)
		return mirror_attach_conclude(a);
	return a->state == ATTACHMENT_JOINED && (a->how & SLMPM_MIRROR_LEAD || a->sequence);
}

static bool has_joined(void *arg)
{
	struct joining *j = arg;

	if (!j->rc) /* what has ended is not inspected again */
		j->rc = mirror_attach_inspect(j);
	return j->rc;
}

static int explain_timeout(const struct joining *j, struct context *ctx, int timeout_ms)
{
	struct endpoint *ep = endpoint_of(j->peer);

	if (!j->asked && ep && ep->state == SLMPM_PEER_UP)
		return error_set(SLMPM_EBUSY, "a mirror of tag %u with %s is being detached",
				 j->tag, ep->life->name);
	return late_error(ctx, ep, timeout_ms, "the mirror of tag %u with %s is not there yet",
			  j->tag, ep ? ep->life->name : "the peer");
}

int slmpm_mirror_attach(slmpm_mirror mirror, slmpm_peer peer, uint32_t tag, uint32_t how,
			int timeout_ms)
{
	struct joining j = {.mirror = mirror, .peer = peer, .tag = tag, .how = how};
	uint32_t role = how & MIRROR_ROLES;
	struct endpoint *ep;
	struct context *ctx;
	struct mirror *m;
	int rc = 0;

	if ((role != SLMPM_MIRROR_LEAD && role != SLMPM_MIRROR_FOLLOW) ||
	    how & ~(MIRROR_ROLES | SLMPM_MIRROR_BOTH))
		return error_set(SLMPM_EINVAL, "slmpm_mirror_attach: how 0x%x", how);
	m = mirror_lock(mirror, &rc);
	if (!m)
		return rc;
	ctx = m->ctx;
	ep = endpoint_of(peer);
	if (!ep)
		rc = endpoint_bad_handle(peer);
	else if (ep->ctx != ctx)
		rc = error_set(SLMPM_EINVAL, "the peer belongs to another context than the mirror");
	else
		rc = timeout_ms ? context_forbids(ctx, "slmpm_mirror_attach") : 0;
	if (rc == 0)
		rc = wait_until(ctx, has_joined, &j, timeout_ms) < 0 ?
			     explain_timeout(&j, ctx, timeout_ms) :
			     j.rc;
	rc = rc > 0 ? 0 : rc;
	context_unlock(ctx);
	return rc;
}

int slmpm_mirror_detach(slmpm_mirror mirror, slmpm_peer peer)
{
	struct attachment *a;
	int rc = 0;
	struct mirror *m = mirror_lock(mirror, &rc);

	if (!m)
		return rc;
	a = mirror_find(m, peer);
	if (a)
		attachment_leave(a);
	else
		rc = mirror_not_attached("slmpm_mirror_detach");
	context_unlock(m->ctx);
	return rc;
}
