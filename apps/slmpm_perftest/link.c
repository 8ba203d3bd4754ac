/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which of several links a pair measures (--to, a job's "link"): side 0 uses the handle that an address
 * finds, side 1 one of the same link, so that both ways go by it.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <stdlib.h>
#include <string.h>

/* The address of link N as known here, and its handle. Not all links have one of their own: of
 * several with one address the first is found. */
static int find_by_link(struct pair *p, uint32_t n, slmpm_peer *found)
{
	struct slmpm_address a = {.size = sizeof(a)}, before = a;

	for (int i = 0; slmpm_peer_address(p->peer, i, &a) >= 0; i++) {
		if (a.link != n)
			continue;
		for (int k = 0; k < i && slmpm_peer_address(p->peer, k, &before) >= 0; k++)
			if (!strcmp(before.text, a.text))
				return -SLMPM_ENOENT;
		return slmpm_peer_find(found, p->ctx, a.text);
	}
	return -SLMPM_ENOENT;
}

uint32_t pair_link_in_use(const struct pair *p, struct slmpm_link_info *link)
{
	uint32_t n = 0;

	while (slmpm_link_query(p->peer, n, link) >= 0 && !link->used)
		n++;
	return link->used ? n : 0;
}

/* As it was before any was asked for; a setting may have asked. */
static int by_usual(struct pair *p)
{
	const char *setting = getenv("SLMPM_LINK");
	bool set = setting && *setting >= '0' && *setting <= '9';
	int rc;

	p->peer = p->usual.peer;
	rc = slmpm_link_use(p->peer, set ? (uint32_t)(*setting - '0') : p->usual.link);
	return rc < 0 || set ? rc : slmpm_link_use(p->peer, SLMPM_LINK_ANY);
}

/* What is measured before it stands goes by another. */
static int await_link(struct pair *p, uint32_t n)
{
	uint64_t until = now_ns() + LINK_MS * UINT64_C(1000000), now;
	struct slmpm_link_info link = {.size = sizeof(link)};
	struct slmpm_event event = {.size = sizeof(event)};
	int rc;

	while ((rc = slmpm_link_query(p->peer, n, &link)) >= 0 && link.state != SLMPM_LINK_UP) {
		now = now_ns();
		if (now >= until)
			return -SLMPM_ETIMEOUT;
		(void)slmpm_next_event(p->ctx, &event, (int)((until - now) / 1000000) + 1);
	}
	return rc;
}

static int by_number(struct pair *p, uint32_t n)
{
	struct slmpm_link_info link = {.size = sizeof(link)};
	int rc;

	if (!p->by) {
		p->usual.peer = p->peer;
		p->usual.link = pair_link_in_use(p, &link);
	}
	rc = slmpm_link_use(p->peer, n);
	if (rc >= 0)
		rc = await_link(p, n);
	if (rc >= 0)
		(void)find_by_link(p, n, &p->peer);
	return rc;
}

int pair_by_link(struct pair *p, uint64_t number)
{
	int rc;

	if (p->by == number)
		return 0;
	rc = number ? by_number(p, (uint32_t)number - 1) : by_usual(p);
	if (rc == -SLMPM_ETIMEOUT)
		fprintf(stderr, "slmpm_perftest: link %llu does not stand\n",
			(unsigned long long)number - 1);
	else if (rc < 0)
		slmpm_perror("slmpm_perftest: link");
	if (rc < 0)
		return rc == -SLMPM_ENOENT ? -SLMPM_ENOTSUP : rc;
	pair_region_end(p);
	p->by = number;
	return 0;
}

/* What it could have been. */
static void list_addresses(struct pair *p)
{
	struct slmpm_address a = {.size = sizeof(a)};

	fprintf(stderr, "slmpm_perftest: the second side has");
	for (int i = 0; slmpm_peer_address(p->peer, i, &a) >= 0; i++)
		fprintf(stderr, " %s", a.text);
	fprintf(stderr, "\n");
}

/* Its links come one after the other. */
static int await_address(struct pair *p, const char *address)
{
	uint64_t until = now_ns() + LINK_MS * UINT64_C(1000000), now;
	struct slmpm_event event = {.size = sizeof(event)};
	int rc;

	while ((rc = slmpm_peer_find(&p->peer, p->ctx, address)) == -SLMPM_ENOENT &&
	       (now = now_ns()) < until)
		(void)slmpm_next_event(p->ctx, &event, (int)((until - now) / 1000000) + 1);
	return rc;
}

int pair_to(struct pair *p, const char *address)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_iov nothing = {NULL, 0};
	struct slmpm_done done;
	slmpm_req req;
	int rc = await_address(p, address);

	if (rc < 0) {
		slmpm_perror("slmpm_perftest: --to");
		if (rc == -SLMPM_ENOENT)
			list_addresses(p);
		return rc;
	}
	/* An empty line: which link takes it is what such a handle means. */
	rc = slmpm_sendv(p->peer, STREAM_CONTROL, &nothing, 1, &how, &req);
	if (rc >= 0)
		rc = slmpm_wait(&req, 1, &done, ANSWER_MS);
	if (rc >= 0)
		rc = done.status;
	if (rc < 0)
		return slmpm_perror("slmpm_perftest: --to");
	p->by = (done.flags & SLMPM_ON_LINK_MASK) / SLMPM_ON_LINK(0);
	return 0;
}
