/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iceoryx through its C binding: payload copied into and out of a chunk ("copy"), or written and
 * read in the chunk ("inplace"), or copied by a receiver that sleeps in a wait set ("waitset").
 * Its daemon must be running.
 */
#include <stdbool.h> /* the binding's headers rely on it */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>
#include <iceoryx_binding_c/wait_set.h>
#include "tests/bench/peers/pair.h"

static iox_pub_storage_t pub_room;
static iox_sub_storage_t sub_room;
static iox_pub_t pub;
static iox_sub_t sub;
static iox_ws_storage_t set_room;
static iox_ws_t set; /* of who sleeps */

static void open_side(int side)
{
	char mine[16], theirs[16], app[64], pair[64];
	iox_pub_options_t po;
	iox_sub_options_t so;

	snprintf(mine, sizeof mine, "%d", (int)getpid());
	pair_exchange(side, mine, theirs, sizeof mine);
	snprintf(app, sizeof app, "bench-iceoryx-%s", mine);
	snprintf(pair, sizeof pair, "pair-%s", side ? theirs : mine);
	iox_runtime_init(app);
	iox_pub_options_init(&po);
	po.subscriberTooSlowPolicy = ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER;
	iox_sub_options_init(&so);
	so.queueFullPolicy = QueueFullPolicy_BLOCK_PRODUCER;
	so.queueCapacity = 16;
	pub = iox_pub_init(&pub_room, "bench", pair, side ? "ba" : "ab", &po);
	sub = iox_sub_init(&sub_room, "bench", pair, side ? "ab" : "ba", &so);
	if (!pub || !sub)
		pair_die("publisher", "refused");
	while (iox_sub_get_subscription_state(sub) != SubscribeState_SUBSCRIBED ||
	       !iox_pub_has_subscribers(pub))
		usleep(1000); /* the daemon joins the two in rounds of its own; it tells nobody */
	pair_exchange(side, mine, theirs, sizeof mine);
}

static void waitset_open(int side)
{
	open_side(side);
	set = iox_ws_init(&set_room);
	if (iox_ws_attach_subscriber_state(set, sub, SubscriberState_HAS_DATA, 0, NULL) !=
	    WaitSetResult_SUCCESS)
		pair_die("wait set", "refused");
}

static void *loan(size_t len)
{
	void *p;

	while (iox_pub_loan_aligned_chunk(pub, &p, (uint32_t)len, 64) != AllocationResult_SUCCESS)
		; /* all chunks are under way */
	return p;
}

static const void *take(void)
{
	const void *p = NULL;
	enum iox_ChunkReceiveResult r;

	while ((r = iox_sub_take_chunk(sub, &p)) == ChunkReceiveResult_NO_CHUNK_AVAILABLE)
		if (set) {
			iox_notification_info_t what;
			uint64_t missed;

			iox_ws_wait(set, &what, 1, &missed);
		}
	if (r != ChunkReceiveResult_SUCCESS)
		pair_die("take", "refused");
	return p;
}

static void copy_send(const void *buf, size_t len)
{
	void *p = loan(len);

	memcpy(p, buf, len);
	iox_pub_publish_chunk(pub, p);
}

static void copy_recv(void *buf, size_t len)
{
	const void *p = take();

	memcpy(buf, p, len);
	iox_sub_release_chunk(sub, p);
}

static void place_send(const void *buf, size_t len)
{
	static uint64_t i;
	void *p = loan(len);

	(void)buf;
	pair_produce(p, len, i++);
	iox_pub_publish_chunk(pub, p);
}

static void place_recv(void *buf, size_t len)
{
	const void *p = take();

	(void)buf;
	pair_consume(p, len);
	iox_sub_release_chunk(sub, p);
}

static void close_side(int side)
{
	(void)side;
	if (set) {
		iox_ws_detach_subscriber_state(set, sub, SubscriberState_HAS_DATA);
		iox_ws_deinit(set);
	}
	iox_pub_deinit(pub);
	iox_sub_deinit(sub);
	iox_runtime_shutdown();
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "copy",
		 .open = open_side,
		 .send = copy_send,
		 .recv = copy_recv,
		 .close = close_side},
		{.name = "waitset",
		 .open = waitset_open,
		 .send = copy_send,
		 .recv = copy_recv,
		 .close = close_side},
		{.name = "inplace",
		 .open = open_side,
		 .send = place_send,
		 .recv = place_recv,
		 .close = close_side,
		 .flags = PAIR_IN_PLACE},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
