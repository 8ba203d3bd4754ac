/* SPDX-License-Identifier: BSD-3-Clause */
/* Some messages of each way are always under way. */
#include "tests/lib/net_flow.h"

#include <string.h>

#define WINDOW  6u
#define LONGEST 400000u

struct flow { /* one way of a pair */
	slmpm_peer from, to;
	uint32_t sent, received; /* begun */
	uint32_t out, in;        /* ended */
	slmpm_req sending[WINDOW], receiving[WINDOW];
	unsigned char *bytes[WINDOW], *room[WINDOW];
};

static struct flow flow[PROXY_WAYS];

static size_t length_of(uint32_t number)
{
	static const size_t lengths[] = {8, 100, 3000, 8, 20000, LONGEST, 64, 70000};

	return lengths[number % 8];
}

void flows_open(const struct net_pair *p)
{
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct flow *f = &flow[way];

		memset(f, 0, sizeof(*f));
		f->from = p->end[way];
		f->to = p->end[!way];
		for (unsigned i = 0; i < WINDOW; i++) {
			f->bytes[i] = malloc(LONGEST);
			f->room[i] = malloc(LONGEST);
			CHECK(f->bytes[i] && f->room[i], "out of memory");
		}
	}
}

void flows_close(void)
{
	for (int way = 0; way < PROXY_WAYS; way++)
		for (unsigned i = 0; i < WINDOW; i++) {
			free(flow[way].bytes[i]);
			free(flow[way].room[i]);
		}
}

static void begin(struct flow *f, uint32_t limit)
{
	while (f->sent < limit && f->sent - f->out < WINDOW) {
		unsigned i = f->sent % WINDOW;
		struct slmpm_iov iov = {f->bytes[i], length_of(f->sent)};

		actor_fill(f->bytes[i], f->sent + 1, iov.len);
		OK(slmpm_sendv(f->from, 1, &iov, 1, NULL, &f->sending[i]));
		f->sent++;
	}
	while (f->received < limit && f->received - f->in < WINDOW) {
		unsigned i = f->received % WINDOW;
		struct slmpm_iov iov = {f->room[i], LONGEST};

		OK(slmpm_recvv(f->to, 1, &iov, 1, NULL, &f->receiving[i]));
		f->received++;
	}
}

static void end(struct flow *f)
{
	struct slmpm_done done;

	while (f->out < f->sent && slmpm_test(&f->sending[f->out % WINDOW], &done)) {
		CHECK(done.status == 0, "message %u was not sent: %d (%s)", f->out, done.status,
		      slmpm_error_detail());
		f->out++;
	}
	while (f->in < f->received && slmpm_test(&f->receiving[f->in % WINDOW], &done)) {
		CHECK(done.status == 0 && done.len == length_of(f->in),
		      "message %u: %llu bytes, %d (%s)", f->in, (unsigned long long)done.len,
		      done.status, slmpm_error_detail());
		CHECK(actor_filled(f->room[f->in % WINDOW], f->in + 1, done.len),
		      "message %u is another, or damaged", f->in);
		f->in++;
	}
}

void flows_run(const struct net *n, uint32_t limit)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (flow[0].in < limit || flow[1].in < limit || flow[0].out < limit ||
	       flow[1].out < limit) {
		for (int way = 0; way < PROXY_WAYS; way++) {
			begin(&flow[way], limit);
			end(&flow[way]);
		}
		CHECK(slmpm_progress(n->ctx) >= 0, "progress: %s", slmpm_error_detail());
		CHECK(actor_now_ms() < until, "%u and %u of %u messages came", flow[0].in,
		      flow[1].in, limit);
	}
}
