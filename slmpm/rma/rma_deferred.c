/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side whose memory it is: the answers that it has deferred. There are
 * never more than one for each request that the peer may have under way; they go out as there is
 * room, a turn each, and a read's bytes are looked up again for each packet (R9).
 */
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

#define READ_TURN 8 /* packets of one response before the next answer's turn */

struct rma_job *rma_defer(struct endpoint *ep, uint8_t opcode, uint64_t seq, int status)
{
	struct rma *m = ep->rma;

	for (struct rma_job *j = m->jobs; j < m->jobs + RMA_WINDOW; j++) {
		if (j->opcode)
			continue;
		*j = (struct rma_job){.opcode = opcode, .seq = seq, .status = status};
		m->job_count++;
		endpoint_block(ep, BLOCK_ANSWERS, true);
		return j;
	}
	endpoint_poison(ep, "number of requests under way");
	return NULL;
}

static int post_acknowledge(struct endpoint *ep, const struct rma_job *j)
{
	uint64_t old = LITTLE_64(j->old);
	bool atomic = j->opcode == WIRE_ATOMIC_ACKNOWLEDGE;
	struct packet p = {
		.opcode = j->opcode,
		.seq = j->seq,
		.extent = wire_error(j->status),
		.data = atomic ? &old : NULL,
		.length = atomic ? sizeof(old) : 0,
	};

	return link_post_request(ep, &p, NULL);
}

/* The next packet of a read's response. */
static int post_response(struct endpoint *ep, struct rma_job *j)
{
	uint64_t left = j->target.length - j->sent;
	bool last = left <= ep->packet_max;
	uint32_t n = last ? (uint32_t)left : ep->packet_max;
	struct packet p = {
		.seq = j->seq,
		.length = n,
		.extent = j->sent ? j->sent : j->target.length,
	};
	const struct region *region = rma_find(ep, &j->target, SLMPM_READ, &j->status);
	int rc;

	p.opcode = last ? (j->sent ? WIRE_READ_LAST : WIRE_READ_ONLY) :
			  (j->sent ? WIRE_READ_MIDDLE : WIRE_READ_FIRST);
	if (region) {
		p.data = rma_staged(ep, region_at(region, j->target.offset + j->sent), n);
		j->status = p.data ? 0 : -SLMPM_ENOMEM;
	}
	if (j->status) {
		j->opcode = WIRE_ACKNOWLEDGE;
		return post_acknowledge(ep, j);
	}
	rc = link_post_request(ep, &p, NULL);
	if (rc == 1) {
		ep->link.run = 0;
		j->sent += n;
	}
	return rc;
}

/* One answer's turn: packets posted. */
static int post_answer(struct endpoint *ep, struct rma_job *j, bool *stop)
{
	int n = 0;

	do {
		int rc = j->opcode == WIRE_READ_ONLY ? post_response(ep, j) :
						       post_acknowledge(ep, j);

		if (rc != 1) {
			*stop = true;
			return n;
		}
		n++;
		if (j->opcode != WIRE_READ_ONLY || j->sent == j->target.length) {
			j->opcode = 0;
			endpoint_block(ep, BLOCK_ANSWERS, --ep->rma->job_count);
			return n;
		}
	} while (n < READ_TURN);
	return n;
}

bool rma_has_deferred(const struct endpoint *ep)
{
	for (int i = 0; i < RMA_WINDOW; i++)
		if (ep->rma->jobs[i].opcode && ep->rma->jobs[i].opcode != WIRE_READ_ONLY)
			return true;
	return false;
}

int rma_serve(struct endpoint *ep)
{
	struct rma *m = ep->rma;
	bool stop = false;
	int n = 0;

	if (!m->job_count)
		return 0;
	for (int i = 0; i < RMA_WINDOW && n < LINK_TURN && m->job_count && !stop; i++) {
		struct rma_job *j = &m->jobs[m->next_job];

		if (j->opcode)
			n += post_answer(ep, j, &stop);
		if (!stop)
			m->next_job = (m->next_job + 1) % RMA_WINDOW;
	}
	return n;
}
