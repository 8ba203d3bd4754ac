/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which of several links a pair measures (--to, a job's "link"): side 0 uses the handle that an address
 * finds, side 1 one of the same link, so that both ways go by it.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

/* The address of link N as known here, and its handle. Not all links have one. */
static int find_by_link(struct pair *p, uint32_t n, slmpm_peer *found)
{
	struct slmpm_address a = {.size = sizeof(a)};

	for (int i = 0; slmpm_peer_address(p->peer, i, &a) >= 0; i++)
		if (a.link == n)
			return slmpm_peer_find(found, p->ctx, a.text);
	return -SLMPM_ENOENT;
}

int pair_by_link(struct pair *p, uint64_t number)
{
	uint32_t n = (uint32_t)number - 1;
	int rc;

	if (!number || p->by == number)
		return 0;
	rc = slmpm_link_use(p->peer, n);
	if (rc < 0) {
		slmpm_perror("slmpm_perftest: link");
		return rc == -SLMPM_ENOENT ? -SLMPM_ENOTSUP : rc;
	}
	(void)find_by_link(p, n, &p->peer);
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
