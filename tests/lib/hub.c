/* SPDX-License-Identifier: BSD-3-Clause */
/* The hub, its leaves, and what chance picks for them. */
#include "tests/lib/hub.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MS 10000

struct hub hub;

uint32_t hub_below(uint32_t n)
{
	return rng_below(&hub.rng, n);
}

slmpm_peer hub_sender(int channel)
{
	return channel < LEAVES ? hub.to_leaf[channel] : hub.to_hub[channel - LEAVES];
}

int hub_channel(int side, slmpm_peer peer)
{
	if (side < LEAVES)
		return side;
	for (int i = 0; i < LEAVES; i++)
		if (hub.to_leaf[i].id == peer.id)
			return LEAVES + i;
	CHECK(0, "a message of nobody");
}

size_t hub_length(void)
{
	switch (hub_below(8)) {
	case 0: return 0;
	case 1: return hub_below(20000);
	case 2: return hub_below(4) ? hub_below(9000) : hub_below((uint32_t)LONGEST);
	default: return hub_below(300);
	}
}

uint32_t hub_stream(bool receiving)
{
	return receiving && !hub_below(4) ? SLMPM_ANY_STREAM : hub_below(3);
}

int hub_cut(struct slmpm_iov iov[5], void *buf, size_t n)
{
	int pieces = 1 + (int)hub_below(5);
	unsigned char *at = buf;

	for (int i = 0; i < pieces; i++) {
		size_t take = i == pieces - 1 ? n : hub_below((uint32_t)n + 1);

		iov[i] = (struct slmpm_iov){at, take};
		at += take;
		n -= take;
	}
	return pieces;
}

static void *connect_leaves(void *arg)
{
	for (int i = 0; i < LEAVES; i++)
		OK(slmpm_connect(&hub.to_hub[i], hub.contexts[i], arg, MS));
	return NULL;
}

void hub_begin(void)
{
	static const uint32_t segments[] = {0, 128, 256, 1024};
	char url[64];
	slmpm_listener listener;
	pthread_t thread;

	hub.any_peer = hub_below(2);
	hub.take_back = hub_below(2);
	for (int i = 0; i <= LEAVES; i++) {
		struct slmpm_options o = {.size = sizeof(o),
					  .ring_segments = segments[hub_below(4)]};

		OK(slmpm_open(&hub.contexts[i], &o));
	}
	memset(hub.ghosts, 0, sizeof(hub.ghosts));
	for (int i = 0; i < CHANNELS; i++)
		mail_reset(&hub.channels[i],
			   i >= LEAVES && hub.any_peer ? MAIL_MONOTONE : MAIL_EXACT);
	snprintf(url, sizeof(url), "shm:random-%d", (int)getpid());
	OK(slmpm_listen(&listener, hub.contexts[LEAVES], url));
	CHECK(pthread_create(&thread, NULL, connect_leaves, url) == 0, "thread");
	for (int i = 0; i < LEAVES; i++)
		OK(slmpm_accept(listener, &hub.to_leaf[i], MS));
	pthread_join(thread, NULL);
	OK(slmpm_unlisten(listener));
	for (int i = 0; i < CHANNELS; i++) {
		struct slmpm_peer_info info = {.size = sizeof(info)};

		OK(slmpm_peer_query(hub_sender(i), &info));
		hub.packet_max[i] = info.packet_max;
	}
}

void hub_end(void)
{
	struct slmpm_stats stats;
	char byte;

	for (int i = 0; i < CHANNELS; i++) {
		mail_check_order(&hub.channels[i]);
		OK(slmpm_peer_stats(hub_sender(i), &stats, sizeof(stats)));
		CHECK(!stats.violations && !stats.queue_depth, "statistics");
	}
	for (int i = 0; i < LEAVES; i++) {
		bool hub_first = hub_below(2);
		slmpm_peer first = hub_first ? hub.to_leaf[i] : hub.to_hub[i];
		slmpm_peer second = hub_first ? hub.to_hub[i] : hub.to_leaf[i];

		OK(slmpm_close(first, MS));
		CHECK(slmpm_recv(second, SLMPM_ANY_STREAM, &byte, 1, NULL, MS) == -SLMPM_ECLOSED,
		      "%s", slmpm_error_detail());
		OK(slmpm_close(second, MS));
	}
	for (int i = 0; i <= LEAVES; i++)
		OK(slmpm_shut(hub.contexts[i], 0));
}
