/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * What is to go by one link and no other (SLMPM_STRICT) while that is lost, and not to be had
 * again: it fails at once, naming link and peer, unless it has begun; then it arrives by the other
 * one, once, whole and in order.
 */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/net_pair.h"
#include "tests/lib/settings.h"

#define N    64u
#define LEN  32768u /* of N: more than credit, log and sockets take */
#define LINK 1u

static const uint32_t strict = SLMPM_STRICT | SLMPM_ON_LINK(LINK);
static const uint32_t requests =
	SLMPM_VIA(SLMPM_BY_REQUEST); /* no other way to memory over there */
static struct net net;
static struct net_pair *pair;
static unsigned connection; /* of the link */
static unsigned char out[N][LEN], in[LEN];
static slmpm_rmem rmem;
static unsigned char *memory;

static void open_memory(void)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc(net.ctx, sizeof(out), SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, pair->end[1], SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(pair->end[0], &key, &rmem));
	memory = base;
}

/* By what it carries: others may have made connections, too. */
static void find_connection(void)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = strict, .timeout_ms = PATIENCE};

	for (unsigned i = 0; i < N; i++) {
		struct slmpm_iov iov = {out[i], LEN};

		OK(slmpm_sendv(pair->end[0], 2, &iov, 1, &how, NULL));
		EXPECT(slmpm_recv(pair->end[1], 2, in, LEN, NULL, PATIENCE), LEN);
	}
	connection = net_busiest(pair);
}

static void join(void)
{
	struct slmpm_link_info info = {.size = sizeof(info)};
	int64_t until = actor_now_ms() + PATIENCE;

	net_open(&net);
	pair = net_join(&net, NULL);
	do {
		CHECK(actor_now_ms() < until, "link %u does not stand", LINK);
		CHECK(slmpm_progress(net.ctx) >= 0, "%s", slmpm_error_detail());
		OK(slmpm_link_query(pair->end[0], LINK, &info));
	} while (info.state != SLMPM_LINK_UP);
	for (unsigned i = 0; i < N; i++)
		actor_fill(out[i], i, LEN);
	open_memory();
	find_connection();
}

static void part(void)
{
	net_check_others(&net);
	net_part(&net);
	net_shut(&net);
}

static void rule(enum proxy_fate fate)
{
	for (int way = 0; way < PROXY_WAYS; way++)
		net_rule(pair, connection, (enum proxy_way)way,
			 (struct proxy_rule){.fate = fate, .at = PROXY_NOW});
}

/* And it comes no more. */
static void lose_link(void)
{
	unsigned next = proxy_connections();

	for (unsigned i = next; i < next + 20; i++)
		for (int way = 0; way < PROXY_WAYS; way++)
			proxy_rule(i, (enum proxy_way)way,
				   (struct proxy_rule){.fate = PROXY_RESET});
	rule(PROXY_RESET);
}

static struct slmpm_how by_link(uint32_t flags)
{
	return (struct slmpm_how){
		.size = sizeof(struct slmpm_how), .flags = flags, .timeout_ms = -1};
}

static void is_refused(int rc, int64_t since)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(pair->end[0], &info));
	CHECK(rc == -SLMPM_ESTATE, "it ends with %d (%s)", rc, slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), "link 1 ") &&
		      strstr(slmpm_error_detail(), "is lost: ") &&
		      strstr(slmpm_error_detail(), info.name),
	      "the reason: %s", slmpm_error_detail());
	CHECK(actor_now_ms() - since < 1000 * actor_slow(), "it takes its time");
}

/* Whoever asks later hears it at once, and others are not disturbed. */
static void lost_before(void)
{
	const struct slmpm_how how = by_link(strict), asks = by_link(strict | requests);
	const struct slmpm_how hint = by_link(SLMPM_ON_LINK(LINK));
	struct slmpm_link_info info = {.size = sizeof(info)};
	struct slmpm_iov iov = {out[0], LEN};
	int64_t since;

	join();
	lose_link();
	do {
		CHECK(slmpm_progress(net.ctx) >= 0, "%s", slmpm_error_detail());
		OK(slmpm_link_query(pair->end[0], LINK, &info));
	} while (info.state == SLMPM_LINK_UP);
	since = actor_now_ms();
	is_refused(slmpm_sendv(pair->end[0], 1, &iov, 1, &how, NULL), since);
	is_refused(slmpm_put(rmem, 0, out[1], LEN, &asks, NULL), since);
	is_refused(slmpm_get(rmem, 0, in, LEN, &asks, NULL), since);
	OK(slmpm_sendv(pair->end[0], 1, &iov, 1, &hint,
		       NULL)); /* one that is not strict goes by the other */
	EXPECT(slmpm_recv(pair->end[1], 1, in, LEN, NULL, PATIENCE), LEN);
	CHECK(!memcmp(in, out[0], LEN), "it is damaged");
	CHECK(!memory[0] && !memory[LEN - 1], "a refused put has been done");
	part();
}

static unsigned ended_well(slmpm_req *req, bool *well)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_wait(&req[i], 1, &done, PATIENCE), 0);
		CHECK(!done.status || done.status == -SLMPM_ESTATE, "%u ends with %d", i,
		      done.status);
		well[i] = !done.status;
		n += well[i];
	}
	return n;
}

/* Each once and whole, in order, and no other. */
static void come_in_order(const bool *sent)
{
	unsigned char end = 99;

	OK(slmpm_send(pair->end[0], 1, &end, 1, PATIENCE));
	for (unsigned i = 0; i < N; i++) {
		if (!sent[i])
			continue;
		EXPECT(slmpm_recv(pair->end[1], 1, in, LEN, NULL, PATIENCE), LEN);
		CHECK(!memcmp(in, out[i], LEN), "message %u is not next, or is damaged", i);
	}
	EXPECT(slmpm_recv(pair->end[1], 1, in, LEN, NULL, PATIENCE), 1);
	EXPECT(in[0], 99);
}

/* Of those under way some have begun. */
static void lost_amidst(void)
{
	const struct slmpm_how how = by_link(strict), asks = by_link(strict | requests);
	slmpm_req send[N], put[N];
	bool sent[N], stored[N];
	unsigned messages, puts;

	join();
	rule(PROXY_SILENCE);
	for (unsigned i = 0; i < N; i++) {
		struct slmpm_iov iov = {out[i], LEN};

		OK(slmpm_sendv(pair->end[0], 1, &iov, 1, &how, &send[i]));
		OK(slmpm_put(rmem, (uint64_t)i * LEN, out[i], LEN, &asks, &put[i]));
	}
	lose_link();
	messages = ended_well(send, sent);
	puts = ended_well(put, stored);
	CHECK(messages && messages < N && puts < N, "%u messages and %u puts of %u have begun",
	      messages, puts, N);
	come_in_order(sent);
	OK(slmpm_flush(pair->end[0], PATIENCE));
	for (unsigned i = 0; i < N; i++)
		if (stored[i])
			CHECK(!memcmp(memory + i * LEN, out[i], LEN), "put %u is damaged", i);
		else
			CHECK(!memory[i * LEN] && !memory[i * LEN + LEN - 1],
			      "put %u failed and has been done", i);
	part();
}

static int play(void *unused)
{
	(void)unused;
	lost_before();
	lost_amidst();
	return 0;
}

int main(void)
{
	static const char *const forms[] = {"ring", "am", "tag"};

	settings_set("SLMPM_LINKS", "2");
	settings_set("SLMPM_LINKS_AFTER", "0");
	settings_set("SLMPM_LINKS_LOG", "256k");
	for (int i = 0; i < 3; i++) {
		settings_set("SLMPM_RMA", forms[i]);
		settings_run(forms[i], play, NULL);
	}
	return 0;
}
