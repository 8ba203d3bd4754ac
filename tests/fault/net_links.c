/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Peers with several links over TCP, of which some are cut in the middle of a stream both ways: by
 * a reset or one way's end. Each message arrives once, whole and in order; so it does when
 * the control connection breaks; and with the last link comes the definite error.
 */
#include <string.h>

#include "tests/lib/net_pair.h"
#include "tests/lib/random.h"

#define LINKS    4u
#define WINDOW   6u
#define MESSAGES 300u
#define LONGEST  400000u

enum { FIRST_LINK = 1, CONNECTIONS = 1 + LINKS }; /* of a pair; 0 is the control connection */

struct flow { /* one way of a pair */
	slmpm_peer from, to;
	uint32_t sent, received; /* begun */
	uint32_t out, in;        /* ended */
	slmpm_req sending[WINDOW], receiving[WINDOW];
	unsigned char *bytes[WINDOW], *room[WINDOW];
};

static struct net net;
static struct flow flow[PROXY_WAYS];

static size_t length_of(uint32_t number)
{
	static const size_t lengths[] = {8, 100, 3000, 8, 20000, LONGEST, 64, 70000};

	return lengths[number % 8];
}

static void open_flows(const struct net_pair *p)
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

static void close_flows(void)
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

/* Both ways until so many have arrived. */
static void stream(uint32_t limit)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (flow[0].in < limit || flow[1].in < limit || flow[0].out < limit ||
	       flow[1].out < limit) {
		for (int way = 0; way < PROXY_WAYS; way++) {
			begin(&flow[way], limit);
			end(&flow[way]);
		}
		CHECK(slmpm_progress(net.ctx) >= 0, "progress: %s", slmpm_error_detail());
		CHECK(actor_now_ms() < until, "%u and %u of %u messages came", flow[0].in,
		      flow[1].in, limit);
	}
}

static struct net_pair *join(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct net_pair *p = net_join(&net, NULL);

	while (proxy_connections() < p->first + CONNECTIONS) {
		CHECK(slmpm_progress(net.ctx) >= 0, "progress: %s", slmpm_error_detail());
		CHECK(actor_now_ms() < until, "%u connections", proxy_connections() - p->first);
	}
	return p;
}

static void cut(const struct net_pair *p, unsigned connection, enum proxy_fate fate, uint64_t later)
{
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct proxy_rule rule = {.fate = fate};

		rule.at = proxy_passed(p->first + connection, (enum proxy_way)way) + later;
		proxy_rule(p->first + connection, (enum proxy_way)way, rule);
	}
}

/* The link in use, then the next one, at some bytes from there on. */
static void links_are_cut(enum proxy_fate fate, struct rng *chance)
{
	struct net_pair *p = join();

	open_flows(p);
	stream(MESSAGES / 4);
	for (unsigned i = 1; i < LINKS; i++) {
		cut(p, FIRST_LINK + i - 1, fate, rng_below(chance, 500000));
		stream((i + 1) * MESSAGES / LINKS);
	}
	net_check_others(&net);
	close_flows();
	net_part(&net);
}

/* Whoever cannot say farewell any more is not gone. */
static void control_is_cut(void)
{
	struct net_pair *p = join();

	open_flows(p);
	stream(50);
	cut(p, NET_CONTROL, PROXY_RESET, 0);
	stream(100);
	cut(p, FIRST_LINK, PROXY_RESET, 1000);
	stream(150);
	for (unsigned i = 0; i < LINKS; i++)
		cut(p, FIRST_LINK + i, PROXY_RESET, 0);
	for (int way = 0; way < PROXY_WAYS; way++) {
		unsigned char byte;
		int64_t rc = slmpm_recv(p->end[way], 2, &byte, 1, NULL, PATIENCE);

		CHECK(rc == -SLMPM_EDEAD, "without a link: %lld (%s)", (long long)rc,
		      slmpm_error_detail());
		CHECK(strstr(slmpm_error_detail(), "link 0: ") &&
			      strstr(slmpm_error_detail(), "link 1: "),
		      "not all reasons: %s", slmpm_error_detail());
	}
	net_check_others(&net);
	close_flows();
	net_part(&net);
}

/* An orderly end is none of a link's losses. */
static void peers_part_in_order(void)
{
	for (int i = 0; i < 5; i++) {
		struct net_pair *p = join();
		unsigned char byte = 0;
		int64_t rc;

		for (int k = 0; k < 20; k++)
			OK(slmpm_send(p->end[0], 1, &byte, 1, PATIENCE));
		OK(slmpm_close(p->end[0], PATIENCE));
		p->end[0] = (slmpm_peer){0};
		for (int k = 0; k < 20; k++)
			EXPECT(slmpm_recv(p->end[1], 1, &byte, 1, NULL, PATIENCE), 1);
		rc = slmpm_recv(p->end[1], 1, &byte, 1, NULL, PATIENCE);
		CHECK(rc == -SLMPM_ECLOSED, "after an orderly end: %lld (%s)", (long long)rc,
		      slmpm_error_detail());
		net_part(&net);
	}
}

int main(void)
{
	struct rng chance = {rng_run_seed(0x11)};

	setenv("SLMPM_LINKS", "4", 1);
	setenv("SLMPM_LINKS_LOG", "1m", 1);
	net_open(&net);
	peers_part_in_order();
	for (int i = 0; i < 4; i++)
		links_are_cut(i % 2 ? PROXY_HALF_CLOSE : PROXY_RESET, &chance);
	control_is_cut();
	net_shut(&net);
	return 0;
}
