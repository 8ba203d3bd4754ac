/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of groups that form, as they come: checked, and what follows from them. */
#include "slmpm/group/group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/board/reach.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/endpoint.h"
#include "slmpm/group/page.h"
#include "slmpm/net/net.h"
#include "slmpm/plan/plan.h"

struct came { /* a packet */
	struct endpoint *ep;
	const struct wire_group *packet;
	uint32_t step, number;
	int *fds, n;
	bool lost;
};

_Static_assert(WIRE_GROUP_MEMBERS <= BOARD_MAPS, "a packet's boards");
_Static_assert(sizeof(((struct wire_group *)0)->pids) == (WIRE_GROUP_MEMBERS - 1) * sizeof(int32_t),
	       "those behind the first");

/* Of each member a board, a bell, a process. What is none of these is for others to close: with
 * some it may take for ever. */
static bool are_known(const int *fds, uint32_t members)
{
	for (uint32_t i = 0; i < members; i++, fds += WIRE_GROUP_FDS)
		if (!bell_is_local(fds[1]) || !foreign_is_process(fds[2]))
			return false;
	return true;
}

/* Bells of a packet that comes too late, or in vain. */
static void drop_bells(struct came *c)
{
	for (int i = 0; i < c->n; i++)
		if (c->fds[i] >= 0 && bell_is(c->fds[i])) {
			close(c->fds[i]);
			c->fds[i] = -1;
		}
}

static int take_fd(struct came *c, int i)
{
	int fd = c->fds[i];

	c->fds[i] = -1;
	return fd;
}

/* ---- at who founds -------------------------------------------------------------------------- */

/* For RC, of the system; G may have waited for it. */
static void join_failed(struct joining *j, struct group *g, uint32_t rank, int rc)
{
	struct groups *of = j->ep->rooms->groups;
	char text[ERROR_DETAIL];
	int error = -error_system(rc, "the board cannot be had");

	snprintf(text, sizeof(text), "%s", group_detail());
	if (g) {
		formation_in_vain(g, rank);
		formation_lacks(g, rank, error, text);
	} else { /* who joins learns it now, the others when it is founded */
		struct failed_join failed = {
			.tag = j->tag, .part = j->part, .here = true, .error = error};

		error_fit(failed.text, sizeof(failed.text), text);
		failed_note(&of->failed, &failed);
	}
	joining_end(j, error, text);
}

/* What the other side says of an end; 0: it says nothing that it may. */
static int said_end(const struct came *c, char *text, size_t size)
{
	uint32_t error = LITTLE_32(c->packet->error);

	control_text(text, size, c->packet->text, sizeof(c->packet->text));
	return error && error <= WIRE_ERROR_LAST ? -wire_status(error) : 0;
}

/* It has nothing to come with: a group that waits for it fails, or the next one. */
static int take_failed_join(struct came *c, struct groups *of)
{
	struct failed_join failed = {.tag = LITTLE_32(c->packet->tag), .part = c->packet->what};

	failed.error = said_end(c, failed.text, sizeof(failed.text));
	if (PEER_FAULT(!failed.error || c->n || c->lost))
		return -SLMPM_EPROTO;
	of->their_last = c->number;
	if (joining_refusal(&of->their_refused, failed.tag, failed.part, c->number))
		return 0;
	failed_note(&of->failed, &failed);
	formation_no_join(of);
	return 0;
}

/* Kept until a group wants it. */
static int take_join(struct came *c)
{
	struct groups *of = groups_of(c->ep);
	bool passes = bootstrap_passes(c->ep);
	const struct board *map = NULL;
	struct joining *j;
	struct group *g;
	uint32_t rank = 0;
	int rc, error;

	if (!of)
		return -SLMPM_ENOMEM;
	if (PEER_FAULT(c->number != of->their_last + 1 || of->their_count >= WIRE_GROUP_JOINS ||
		       LITTLE_32(c->packet->what) & ~WIRE_GROUP_PART))
		return -SLMPM_EPROTO;
	if (c->packet->error)
		return take_failed_join(c, of);
	if (PEER_FAULT(passes && !c->lost && (c->n != 2 || !bell_is(c->fds[1]))))
		return -SLMPM_EPROTO;
	rc = c->lost ? -EMFILE : passes ? board_map(&map, c->fds[0]) : 0;
	if (rc == -EPROTO)
		return -SLMPM_EPROTO;
	j = joining_new(of, false);
	if (!j) {
		board_unmap(map);
		return -SLMPM_ENOMEM;
	}
	j->tag = LITTLE_32(c->packet->tag);
	j->part = c->packet->what;
	j->map = map;
	if (rc == 0 && of->failed.tag == j->tag && of->failed.part == j->part)
		of->failed.error = 0;
	error = joining_refusal(&of->their_refused, j->tag, j->part, j->number);
	g = error ? NULL : formation_of(c->ep, j->tag, j->part, &rank);
	if (passes && rc == 0) {
		j->board = take_fd(c, 0);
		j->bell = take_fd(c, 1);
	}
	if (error)
		joining_end(j, error, of->their_refused.text);
	else if (rc < 0) /* for want of descriptors, or of memory */
		join_failed(j, g, rank, rc);
	else if (g)
		formation_joined(g, j, rank);
	return 0;
}

static int take_listens(struct came *c, struct joining *j)
{
	uint32_t port = LITTLE_32(c->packet->what);

	if (PEER_FAULT(!j->group || !j->group->apart || j->port || !port || port > UINT16_MAX))
		return -SLMPM_EPROTO;
	formation_listens(j, (uint16_t)port, LITTLE_32(c->packet->machine));
	return 0;
}

static int take_ready(struct joining *j)
{
	if (PEER_FAULT(!j->group || j->ready || j->due || j->next != j->group->boards.size))
		return -SLMPM_EPROTO;
	formation_ready(j);
	return 0;
}

static int group_withdrawn(struct came *c, struct joining *j)
{
	char text[sizeof(c->packet->text)];
	int error = said_end(c, text, sizeof(text));
	struct group *g = j->group;
	uint32_t rank = j->rank;

	if (PEER_FAULT(!error))
		return -SLMPM_EPROTO;
	joining_free(j);
	if (g)
		formation_withdrawn(g, rank, error, text);
	return 0;
}

/* ---- at who joins --------------------------------------------------------------------------- */

/* It cannot be a member, for RC, of which the detail says more: which the other side gets. */
static int joining_refuse(struct joining *j, int rc)
{
	char text[ERROR_DETAIL];

	snprintf(text, sizeof(text), "%s", group_detail());
	j->group->lacks = error_is_lack(-rc);
	group_fail(j->group, -rc, "%s", text);
	joining_end(j, -rc, text);
	return 0;
}

/* The same, RC being of the system. */
static int joining_give_up(struct joining *j, int rc, const char *what)
{
	return joining_refuse(j, error_system(rc, what));
}

static void skip_own(struct joining *j)
{
	j->next += j->next == j->group->boards.rank;
}

static void note_all(struct joining *j)
{
	if (j->next < j->group->boards.size)
		return;
	j->ready = true;
	if (j->ep->life->attach)
		reach_offer(&j->group->boards);
	joining_send(j, DUE_READY);
}

/* A name would have to be looked up. */
static bool is_numeric(const char *host)
{
	unsigned char address[16];

	return !strcmp(host, "*") || inet_pton(AF_INET, host, address) == 1 ||
	       inet_pton(AF_INET6, host, address) == 1;
}

/* Where the other side says; nothing: where it is connected. */
static int listen_apart(struct came *c, struct joining *j)
{
	char host[NET_NAME];
	int rc;

	control_text(host, sizeof(host), c->packet->host, sizeof(c->packet->host));
	if (!*host && !bootstrap_host(c->ep, false, host))
		snprintf(host, sizeof(host), "127.0.0.1");
	if (PEER_FAULT(!is_numeric(host)))
		return -SLMPM_EPROTO;
	j->group->apart = true;
	j->group->members[j->group->boards.rank].machine = net_machine();
	rc = distant_listen(j->group, host);
	j->port = rc < 0 ? 0 : distant_port(j->group);
	return rc;
}

static uint64_t long_of(const uint32_t words[2])
{
	return LITTLE_32(words[0]) | (uint64_t)LITTLE_32(words[1]) << 32;
}

static int take_begin(struct came *c, struct joining *j)
{
	uint32_t size = LITTLE_32(c->packet->size), rank = LITTLE_32(c->packet->rank);
	uint32_t how = LITTLE_32(c->packet->what);
	struct algorithms a = {.forced = long_of(c->packet->kinds),
			       .any_order = how & WIRE_GROUP_ANY_ORDER};

	for (int i = 0; i < PLAN_LIMITS; i++)
		a.limits[i] = long_of(c->packet->limits[i]);

	if (PEER_FAULT(j->begun || !size || size > SLMPM_GROUP_MAX || rank >= size ||
		       how & ~(WIRE_GROUP_APART | WIRE_GROUP_ANY_ORDER | WIRE_GROUP_LOCAL) ||
		       (how & WIRE_GROUP_APART ?
				j->group->whole != NULL :
				how & WIRE_GROUP_LOCAL || !bootstrap_passes(c->ep)) ||
		       !algorithms_are_known(&a)))
		return -SLMPM_EPROTO;
	j->begun = true;
	j->group->algorithms = a;
	j->group->meets_local = how & WIRE_GROUP_LOCAL;
	if (!group_size(j->group, size, rank))
		return joining_give_up(j, -ENOMEM, "a group");
	if (how & WIRE_GROUP_APART) {
		int rc = listen_apart(c, j);

		if (rc == -SLMPM_EPROTO)
			return rc;
		if (rc < 0)
			return joining_refuse(j, rc);
		joining_send(j, DUE_LISTENS);
	}
	skip_own(j);
	note_all(j);
	return 0;
}

static int take_distant(struct came *c, struct joining *j)
{
	char url[sizeof(c->packet->url)];
	unsigned char key[SECRET_SIZE];
	int rc;

	if (PEER_FAULT(!j->begun || j->ready || LITTLE_32(c->packet->rank) != j->next || c->n))
		return -SLMPM_EPROTO;
	control_text(url, sizeof(url), c->packet->url, sizeof(c->packet->url));
	memcpy(key, c->packet->key, sizeof(key));
	bootstrap_mask(c->ep, true, j->number, j->next, key);
	rc = distant_put(j->group, j->next, url, key);
	if (PEER_FAULT(rc == -EPROTO))
		return -SLMPM_EPROTO;
	if (rc < 0)
		return joining_give_up(j, rc, "a group");
	j->group->boards.processes[j->next] = (int32_t)LITTLE_32((uint32_t)c->packet->pid);
	j->group->members[j->next].machine = LITTLE_32(c->packet->machine);
	j->next++;
	skip_own(j);
	note_all(j);
	return 0;
}

/* Others of whom nothing has come. */
static uint32_t members_left(const struct joining *j)
{
	const struct boards *b = &j->group->boards;

	return b->size - j->next - (b->rank > j->next);
}

/* N, by descriptors: as they must be, or lost. */
static bool members_are_sound(const struct came *c, const struct joining *j, uint32_t n)
{
	if (!j->begun || j->ready || LITTLE_32(c->packet->rank) != j->next ||
	    n > WIRE_GROUP_MEMBERS || n > members_left(j))
		return false;
	return c->lost || (c->n == (int)(n * WIRE_GROUP_FDS) && are_known(c->fds, n));
}

/* The Ith of a packet; MAP is the group's then, else the caller's. */
static int put_member(struct came *c, struct joining *j, uint32_t i, const struct board *map)
{
	int *fds = c->fds + (size_t)i * WIRE_GROUP_FDS;
	int32_t pid = i ? c->packet->pids[i - 1] : c->packet->pid;
	int rc = group_put(j->group, j->next, map, fds[1], fds[2],
			   (int32_t)LITTLE_32((uint32_t)pid));

	if (rc < 0)
		return rc;
	close(fds[0]); /* sealed memory: no file system is asked */
	fds[0] = fds[1] = fds[2] = -1;
	j->next++;
	skip_own(j);
	return 0;
}

/* As many of N as can be: 0, or a negative errno for the next one. */
static int put_members(struct came *c, struct joining *j, uint32_t n)
{
	const struct board *maps[WIRE_GROUP_MEMBERS];
	int boards[WIRE_GROUP_MEMBERS], error, rc = 0;
	uint32_t mapped, i;

	for (i = 0; i < n; i++)
		boards[i] = c->fds[i * WIRE_GROUP_FDS];
	mapped = boards_map(maps, boards, n, &error);
	for (i = 0; i < mapped && rc == 0; i += rc == 0)
		rc = put_member(c, j, i, maps[i]);
	while (i < mapped)
		board_unmap(maps[i++]);
	return rc < 0 ? rc : error;
}

static int take_member(struct came *c, struct joining *j)
{
	uint32_t n = c->packet->size ? LITTLE_32(c->packet->size) : 1;
	char what[32];
	int rc;

	if (j->group->apart)
		return take_distant(c, j);
	if (PEER_FAULT(!members_are_sound(c, j, n)))
		return -SLMPM_EPROTO;
	rc = c->lost ? -EMFILE : put_members(c, j, n);
	if (rc == -EPROTO)
		return -SLMPM_EPROTO;
	if (rc < 0) {
		/* Of a part: not its rank in the group that is split. */
		if (j->part)
			snprintf(what, sizeof(what), "another member's board");
		else
			snprintf(what, sizeof(what), "the board of rank %u", j->next);
		drop_bells(c);
		return joining_give_up(j, rc, what);
	}
	note_all(j);
	return 0;
}

static int take_formed(struct joining *j)
{
	struct group *g = j->group;

	if (PEER_FAULT(!j->ready || j->due))
		return -SLMPM_EPROTO;
	g->founder = handle_id(j->ep);
	g->join = j->number;
	group_has_formed(g);
	group_page_begin(g);
	joining_free(j);
	return 0;
}

static int take_refused(struct came *c, struct joining *j)
{
	char text[sizeof(c->packet->text)];
	int error = said_end(c, text, sizeof(text));

	if (PEER_FAULT(!error))
		return -SLMPM_EPROTO;
	group_fail(j->group, error, "%s says: %s", c->ep->life->name, text);
	joining_free(j);
	return 0;
}

/* Before this side joins, or as it does. */
static int take_failed(struct came *c)
{
	struct groups *of = groups_of(c->ep);
	struct failed_join failed, *next = of ? &of->our_refused : NULL;
	char text[sizeof(next->text)];
	int error = said_end(c, text, sizeof(text));

	if (!of)
		return -SLMPM_ENOMEM;
	if (PEER_FAULT(!error || c->number > of->our_last))
		return -SLMPM_EPROTO;
	failed = (struct failed_join){
		.tag = LITTLE_32(c->packet->tag), .behind = c->number, .error = error};
	memcpy(failed.text, text, sizeof(text));
	failed_note(next, &failed);
	LIST_EACH_ENTRY(struct joining, j, &of->ours, node) {
		if (j->over || !joining_refusal(next, j->tag, j->part, j->number))
			continue;
		group_fail(j->group, error, "%s says: %s", c->ep->life->name, text);
		joining_end(j, error, text); /* the other side may keep it */
		break;
	}
	return 0;
}

/* ---- either --------------------------------------------------------------------------------- */

static int take_step(struct came *c, struct joining *j)
{
	switch (c->step) {
	case GROUP_READY: return take_ready(j);
	case GROUP_LISTENS: return take_listens(c, j);
	case GROUP_WITHDRAWN: return group_withdrawn(c, j);
	case GROUP_BEGIN: return take_begin(c, j);
	case GROUP_MEMBER: return take_member(c, j);
	case GROUP_FORMED: return take_formed(j);
	default: return take_refused(c, j);
	}
}

int group_packet(struct endpoint *ep, const struct wire_group *packet, int *fds, int n, bool lost)
{
	struct came c = {ep, packet, LITTLE_32(packet->step), LITTLE_32(packet->number), fds,
			 n,  lost};
	struct groups *of = ep->rooms->groups;
	bool ours = c.step >= GROUP_BEGIN && c.step != GROUP_LISTENS;
	struct joining *j;

	if (PEER_FAULT(c.step < GROUP_JOIN || c.step > GROUP_RELEASED ||
		       (n && c.step != GROUP_JOIN && c.step != GROUP_MEMBER)))
		return -SLMPM_EPROTO;
	if (c.step == GROUP_JOIN)
		return take_join(&c);
	if (c.step == GROUP_FAILED)
		return take_failed(&c);
	if (c.step == GROUP_RELEASED)
		return pair_released(ep);
	if (c.step == GROUP_ENDED)
		return distant_ended(ep, packet);
	if (c.step == GROUP_ATTENDS)
		return attendance_said(ep, packet);
	if (c.step == GROUP_STANDS)
		return stalled_said(ep, packet);
	if (c.step > GROUP_ENDED)
		return survivor_said(ep, packet);
	/* What has ended meanwhile may be spoken of still; what never was may not. */
	if (PEER_FAULT(!of || c.number - 1 >= (ours ? of->our_last : of->their_last)))
		return -SLMPM_EPROTO;
	j = joining_find(ours ? &of->ours : &of->theirs, c.number);
	/* What is still due of it would be dropped there, and its place is free there already. */
	if (j && j->over && c.step == GROUP_WITHDRAWN)
		joining_free(j);
	else if (j && !j->over)
		return take_step(&c, j);
	drop_bells(&c);
	return 0;
}
