/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Packets that say whom they are for: whoever asks, by setting or by option, between a host and its
 * accelerator and between processes that have met by address, over both fabrics, all that can be
 * sent arrives both ways. Nobody asks: nobody says so.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/message.h"
#include "tests/lib/settings.h"

#define LONGEST (600 << 10)
#define ELEMENT 9

static slmpm_ctx ctx;
static unsigned char bytes[LONGEST], got[LONGEST];
static uint64_t handled;

static void count(const struct slmpm_am *am, void *arg)
{
	(void)arg;
	CHECK(actor_filled(am->data, am->data_len, am->data_len), "an active message's data");
	handled++;
}

/* ---- all that goes one way ------------------------------------------------------------------- */

static void give_messages(slmpm_peer to)
{
	static const size_t sizes[] = {0, 1, 8, 9000, 70000, LONGEST};
	struct slmpm_how more = {.size = sizeof(more), .flags = SLMPM_MORE, .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {bytes, 8}, burst[20];
	void *loan;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		OK(slmpm_send(to, 1, bytes, sizes[i], PATIENCE));
	for (int i = 0; i < 40; i++) {
		more.flags = i < 39 ? SLMPM_MORE : 0;
		OK(slmpm_sendv(to, 2, &iov, 1, &more, NULL));
	}
	for (int i = 0; i < 20; i++)
		burst[i] = iov;
	EXPECT(slmpm_send_burst(to, 2, burst, 20, PATIENCE), 20);
	for (int i = 0; i < 2; i++) { /* in the ring, and in an area */
		size_t n = i ? 300000 : 100;

		OK(slmpm_loan(to, 3, n, &loan, PATIENCE));
		actor_fill(loan, 1, n);
		OK(slmpm_commit(to, loan, n, &more));
	}
}

static void take(slmpm_peer from, uint32_t stream, size_t n)
{
	EXPECT(slmpm_recv(from, stream, got, sizeof(got), NULL, PATIENCE), (int64_t)n);
	CHECK(actor_filled(got, 1, n), "other bytes on stream %u", stream);
}

static void take_messages(slmpm_peer from)
{
	static const size_t sizes[] = {0, 1, 8, 9000, 70000, LONGEST};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		take(from, 1, sizes[i]);
	for (int i = 0; i < 60; i++)
		take(from, 2, 8);
	take(from, 3, 100);
	take(from, 3, 300000);
}

static void give_active(slmpm_peer to)
{
	static const size_t sizes[] = {1, 64, 20000, 400000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		actor_fill(got, sizes[i], sizes[i]);
		OK(slmpm_am(to, 7, "head", 4, got, sizes[i], NULL, NULL));
		OK(slmpm_am(to, 7, NULL, 0, got, sizes[i], NULL, NULL));
	}
}

static void take_active(void)
{
	unsigned idle = 0;

	for (handled = 0; handled < 8;)
		if (slmpm_progress(ctx) == 0)
			actor_idle(ctx, &idle);
}

static void operate(slmpm_peer owner)
{
	struct slmpm_how how = {
		.size = sizeof(how), .flags = SLMPM_REMOTE | SLMPM_NOTIFY, .timeout_ms = PATIENCE};
	struct slmpm_key key;
	slmpm_rmem rmem;
	uint64_t old;

	EXPECT(slmpm_recv(owner, 4, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(owner, &key, &rmem));
	OK(slmpm_put(rmem, 64, bytes, LONGEST - 64, &how, NULL));
	memset(got, 0, LONGEST);
	OK(slmpm_get(rmem, 64, got, LONGEST - 64, NULL, NULL));
	CHECK(actor_filled(got, 1, LONGEST - 64), "other bytes in the region");
	OK(slmpm_atomic(rmem, 8, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 8, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	CHECK(old == 5, "the word was %llu", (unsigned long long)old);
	OK(slmpm_mem_release(rmem));
}

static slmpm_mem offer(slmpm_peer to)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;

	OK(slmpm_mem_alloc(ctx, LONGEST, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(to, 4, &key, sizeof(key), PATIENCE));
	return mem;
}

static void expect_header(slmpm_peer peer, uint32_t header)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_stats stats = actor_stats(peer);
	struct slmpm_monitor m;

	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_monitor(peer, &m, sizeof(m)));
	CHECK(info.header == header && m.header == header, "header 0x%x and 0x%x, not 0x%x",
	      info.header, m.header, header);
	CHECK(!stats.misaddressed && !stats.violations && !m.misaddressed, "refused");
}

static void both_ways(slmpm_peer peer, bool first)
{
	slmpm_mem mem = offer(peer);

	OK(slmpm_am_handler(ctx, 7, count, NULL));
	actor_fill(bytes, 1, sizeof(bytes));
	actor_tell(peer, 1);
	actor_hear(peer, 1);
	for (int turn = 0; turn < 2; turn++) {
		if ((turn == 0) == first) {
			give_messages(peer);
			give_active(peer);
			operate(peer);
			actor_hear(peer, 2);
		} else {
			take_messages(peer);
			take_active();
			actor_tell(peer, 2);
		}
	}
	actor_tell(peer, 3);
	actor_hear(peer, 3);
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* ---- who asks -------------------------------------------------------------------------------- */

static uint32_t header_of(const char *word)
{
	return !strcmp(word, "address") ? SLMPM_HEADER_IDS | SLMPM_HEADER_ADDRESS :
	       !strcmp(word, "ids")     ? SLMPM_HEADER_IDS :
					  0;
}

static int accelerate(slmpm_peer host, char **words)
{
	slmpm_peer peer = host;

	if (words[1])
		OK(slmpm_connect(&peer, ctx, words[1], PATIENCE));
	expect_header(peer, header_of(words[0]));
	both_ways(peer, false);
	return 0;
}

static const struct actor roles[] = {{"accelerate", accelerate}, {0}};

static void open_context(const char *word, bool by_option)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = by_option ? header_of(word) : 0};

	if (!by_option)
		setenv("SLMPM_HEADER", word, 1);
	OK(slmpm_open(&ctx, &o));
	unsetenv("SLMPM_HEADER"); /* who is started does not ask */
}

static int related(void *arg)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .element = ELEMENT};
	const char *word = arg;
	slmpm_peer peer;

	open_context(word, false);
	o.ctx = ctx;
	peer = actor_spawn_with(&o, "accelerate", word, NULL);
	both_ways(peer, true);
	expect_header(peer, header_of(word));
	actor_join(peer, 0);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* The accelerator does not ask, and meets this process by address. */
static void met_at(const char *url, const char *word)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct slmpm_spawn_options o = {.size = sizeof(o)};
	char at[400];
	slmpm_listener l;
	slmpm_peer peer, started;

	open_context(word, true);
	OK(slmpm_listen(&l, ctx, url));
	OK(slmpm_listener_query(l, &info));
	snprintf(at, sizeof(at), info.port ? "%s#%s" : "%s", info.url, info.secret);
	o.ctx = ctx;
	started = actor_spawn_with(&o, "accelerate", word, at);
	OK(slmpm_accept(l, &peer, PATIENCE));
	both_ways(peer, true);
	expect_header(peer, header_of(word));
	actor_join(started, 0);
	OK(slmpm_shut(ctx, PATIENCE));
}

static int met(void *arg)
{
	met_at("shm:header", arg);
	return 0;
}

static int met_by_tcp(void *arg)
{
	met_at("tcp://127.0.0.1:0", arg);
	return 0;
}

static void run(int (*body)(void *), const char *what, const char *word)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %s", what, word);
	settings_run(text, body, word);
}

int main(int argc, char **argv)
{
	static const char *const words[] = {"none", "ids", "address"};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_ATTACH", "y");
	for (size_t i = 0; i < 3; i++) {
		settings_one_link("shm");
		run(related, "host and accelerator", words[i]);
		run(met, "by a name", words[i]);
		setenv("SLMPM_RMA", "ring", 1);
		run(related, "by requests", words[i]);
		unsetenv("SLMPM_RMA");
		settings_one_link("tcp");
		run(related, "host and accelerator over TCP", words[i]);
		run(met_by_tcp, "by the network", words[i]);
	}
	return 0;
}
