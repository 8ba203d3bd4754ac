/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * One of two links over TCP falls silent for good and does not end, in the middle of streams both
 * ways, or after the last message: in bounded time its packets go by the other. A peer that is
 * stopped loses no link, however long it is.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/death.h"
#include "tests/lib/net_flow.h"
#include "tests/lib/random.h"

#define DEAD_MS 250
#define MANY    240u

#define CONNECTIONS 3u /* of a pair, at least */

static struct net net;
static unsigned char buffer[1 << 17];

static int dead_ms(void)
{
	return DEAD_MS * actor_slow();
}

/* Events of lost links that say WORD. */
static int losses(slmpm_ctx ctx, const char *word)
{
	struct slmpm_event e = {.size = sizeof(e)};
	int n = 0;

	while (slmpm_next_event(ctx, &e, 0) == 1)
		n += e.type == SLMPM_EVENT_LINK_LOST && strstr(e.detail, word) != NULL;
	return n;
}

static struct net_pair *join(void)
{
	struct net_pair *p = net_join(&net, NULL);

	net_await(&net, p, CONNECTIONS);
	return p;
}

/* WAYS: a bit for each that is silent, so many bytes on. */
static void silence(const struct net_pair *p, int ways, uint64_t later)
{
	unsigned link = net_busiest(p);

	for (int way = 0; way < PROXY_WAYS; way++)
		if (ways >> way & 1)
			net_rule(p, link, (enum proxy_way)way,
				 (struct proxy_rule){.fate = PROXY_SILENCE, .at = later});
}

/* Less than SLMPM_DEAD_MS is by itself, and room for a machine that is busy. */
static void check_time(const char *what, int ways, int64_t began)
{
	int64_t took = actor_now_ms() - began;

	CHECK(took < 4750 * actor_slow(), "%s, silent %d: it took %lld ms", what, ways,
	      (long long)took);
	printf("%s, silent %d: %lld ms\n", what, ways, (long long)took);
}

static void in_mid_stream(int ways, struct rng *chance)
{
	struct net_pair *p = join();
	uint32_t many = MANY;
	int64_t began;

	flows_open(p);
	flows_run(&net, MANY / 4);
	silence(p, ways, rng_below(chance, 300000));
	began = actor_now_ms();
	flows_run(&net, many);
	check_time("in mid-stream", ways, began);
	/* Traffic may have gone by the other link before as many bytes had passed this one. */
	while (losses(net.ctx, "is silent") == 0) {
		flows_run(&net, many += 4);
		CHECK(actor_now_ms() < began + PATIENCE, "nobody was told");
	}
	net_check_others(&net);
	flows_close();
	net_part(&net);
}

/* Who has sent sleeps; what it sent never came. */
static void behind_the_last_message(int ways)
{
	struct net_pair *p = join();
	struct slmpm_iov iov = {buffer, 8};
	slmpm_req request;
	int64_t began = actor_now_ms();

	silence(p, ways, 0);
	OK(slmpm_recvv(p->end[1], 1, &iov, 1, NULL, &request));
	OK(slmpm_send(p->end[0], 1, "unheard", 8, PATIENCE));
	OK(slmpm_wait(&request, 1, NULL, PATIENCE));
	CHECK(memcmp(buffer, "unheard", 8) == 0, "another message");
	check_time("behind the last message", ways, began);
	net_part(&net);
}

/* ---- a peer that is stopped ------------------------------------------------------------------ */

static int echo(slmpm_peer host, char **words)
{
	int64_t n;

	(void)words;
	while ((n = slmpm_recv(host, 1, buffer, sizeof(buffer), NULL, PATIENCE)) > 0)
		OK(slmpm_send(host, 2, buffer, (size_t)n, PATIENCE));
	EXPECT(n, -SLMPM_ECLOSED);
	return 0;
}

/* SIZE bytes at a time, until there is no room, or a few. */
static void stopped_peer_keeps_its_links(size_t size)
{
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	slmpm_peer peer;
	uint32_t sent = 0;
	int64_t n;

	OK(slmpm_open(&options.ctx, NULL));
	peer = actor_spawn_with(&options, "echo", NULL, NULL);
	actor_fill(buffer, 7, sizeof(buffer));
	OK(slmpm_send(peer, 1, buffer, size, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, buffer, size, NULL, PATIENCE), (int64_t)size);
	OK(kill(pid_of(peer), SIGSTOP));
	actor_await_state(pid_of(peer), "T");
	(void)losses(options.ctx, "");
	while (sent < 20 && slmpm_send(peer, 1, buffer, size, 20) == 0)
		sent++;
	EXPECT(slmpm_recv(peer, 3, buffer, 1, NULL, 6 * dead_ms()), -SLMPM_ETIMEOUT);
	CHECK(losses(options.ctx, "") == 0, "a stopped peer lost a link");
	OK(kill(pid_of(peer), SIGCONT));
	for (; sent; sent--) {
		n = slmpm_recv(peer, 2, buffer, sizeof(buffer), NULL, PATIENCE);
		CHECK(n == (int64_t)size && actor_filled(buffer, 7, size),
		      "%lld bytes of %zu came back (%s)", (long long)n, size, slmpm_error_detail());
	}
	CHECK(losses(options.ctx, "") == 0, "a peer that was stopped lost a link");
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	OK(slmpm_shut(options.ctx, PATIENCE));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"echo", echo}, {NULL, NULL}};
	struct rng chance = {rng_run_seed(0x51)};
	char text[16];

	snprintf(text, sizeof(text), "%d", dead_ms());
	setenv("SLMPM_DEAD_MS", text, 1);
	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_LINKS", "2", 1);
	setenv("SLMPM_LINKS_AFTER", "0", 1);
	actor_begin(argc, argv, roles);
	stopped_peer_keeps_its_links(100);
	stopped_peer_keeps_its_links(sizeof(buffer));
	net_open(&net);
	for (int ways = 1; ways < 4; ways++) {
		in_mid_stream(ways, &chance);
		behind_the_last_message(ways);
	}
	net_shut(&net);
	return 0;
}
