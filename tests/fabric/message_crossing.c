/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* Two processes that send to each other as fast as they can, at once and on many streams, by every
 * way to send and to receive; each takes the other's messages in the order they were sent. */
#include <string.h>

#include "tests/lib/message.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define STREAMS 37
#define FLIGHT  16
#define LONGEST ((size_t)200000)

static struct rng chance;

static uint32_t below(uint32_t n)
{
	return rng_below(&chance, n);
}

/* Number I, in either process: both know its length and stream. */
static size_t length_of(uint64_t i)
{
	switch (i * 7 % 16) {
	case 0: return i * 7919 % LONGEST;
	case 1:
	case 2: return i * 977 % 9000;
	default: return i % 130;
	}
}

static uint32_t stream_of(uint64_t i)
{
	return (uint32_t)(i / 5 * 11 % STREAMS);
}

struct interval {
	struct message sends[FLIGHT];
	int count;
	uint64_t next, last;
};

static bool launch(slmpm_peer peer, struct interval *f)
{
	uint64_t before = f->next;

	while (f->count < FLIGHT && f->next < f->last) {
		message_start(&f->sends[f->count++], peer, stream_of(f->next), f->next,
			      length_of(f->next));
		f->next++;
	}
	return f->next > before;
}

static bool land(struct interval *f)
{
	int before = f->count;

	for (int i = f->count - 1; i >= 0; i--) {
		struct slmpm_done done;

		if (slmpm_test(&f->sends[i].req, &done) != 1)
			continue;
		CHECK(done.status == 0, "a send ended with %d", done.status);
		free(f->sends[i].data);
		f->sends[i] = f->sends[--f->count];
	}
	return f->count < before;
}

/* The next of the other side's, by one call or another; false when it is not there yet. */
static bool take(slmpm_peer peer, uint64_t i)
{
	static unsigned char data[LONGEST];
	uint32_t stream = below(2) ? stream_of(i) : SLMPM_ANY_STREAM;
	size_t n = length_of(i);
	struct slmpm_done done;
	const void *held;
	int64_t got;

	if (below(4) == 0) {
		got = slmpm_hold(peer, stream, &held, &done, 0);
		if (got >= 0) {
			message_check(held, &done, i, n);
			OK(slmpm_release(peer, held));
		}
	} else {
		got = slmpm_recv(below(2) ? peer : slmpm_any((slmpm_ctx){0}), stream, data,
				 below(2) ? n : LONGEST, &done, below(8) ? 0 : 1);
		if (got >= 0)
			message_check(data, &done, i, n);
	}
	CHECK(got >= 0 ? got == (int64_t)n && done.stream == stream_of(i) :
			 got == -SLMPM_ETIMEOUT || got == -SLMPM_EAGAIN,
	      "message %llu of %zu bytes: %lld: %s", (unsigned long long)i, n, (long long)got,
	      slmpm_error_detail());
	return got >= 0;
}

static void talk(slmpm_peer peer, uint64_t count)
{
	struct interval f = {.last = count};
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();
	unsigned idle = 0;

	for (uint64_t taken = 0; taken < count || f.count || f.next < count;) {
		bool done = launch(peer, &f);

		if (taken < count && take(peer, taken)) {
			taken++;
			done = true;
		} else if (taken == count) {
			done |= slmpm_progress((slmpm_ctx){0}) > 0;
		}
		done |= land(&f);
		/* The other side may be waiting for this processor. */
		if (done)
			idle = 0;
		else
			actor_idle((slmpm_ctx){0}, &idle);
		CHECK(actor_now_ms() < until, "%llu of %llu taken, %llu begun, %d under way",
		      (unsigned long long)taken, (unsigned long long)count,
		      (unsigned long long)f.next, f.count);
	}
}

static int answer(slmpm_peer host, char **words)
{
	chance.state = 2;
	talk(host, strtoull(words[0], NULL, 10));
	message_none(host, SLMPM_ANY_STREAM);
	OK(slmpm_close(host, PATIENCE));
	return 0;
}

static int test(const struct setting *s)
{
	/* Where little fits the ring, each packet is a change of processes. */
	uint64_t count = actor_slow() > 1 ? 1000 : s->bytes < (size_t)8 << 20 ? 2000 : 10000;
	struct slmpm_stats stats;
	slmpm_peer peer;
	char text[32];

	chance.state = 1;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
	peer = actor_spawn("answer", text, NULL);
	talk(peer, count);
	REFUSED(slmpm_recv(peer, SLMPM_ANY_STREAM, NULL, 0, NULL, PATIENCE), SLMPM_ECLOSED, "");
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.sent_messages == count && stats.received_messages == count &&
		      !stats.violations && !stats.checksum_errors,
	      "%llu sent, %llu received", (unsigned long long)stats.sent_messages,
	      (unsigned long long)stats.received_messages);
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"answer", answer}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return settings_each(test, 30);
}
