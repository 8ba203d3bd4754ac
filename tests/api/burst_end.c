/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where bursts end early: lengths, credit, deadlines, what else is under way, peers that close or
 * are killed.
 */
#include <pthread.h>

#include "tests/api/burst.h"
#include "tests/lib/message.h"

/* N messages of LEN bytes from SEED on. */
static void fill_all(int n, size_t len, uint64_t seed)
{
	lay_out(from, n, out, len, 0);
	for (int i = 0; i < n; i++)
		actor_fill(from[i].base, seed + (uint64_t)i, len);
}

static void filled(int n, size_t len, uint64_t seed)
{
	for (int i = 0; i < n; i++)
		CHECK(into[i].len == len && actor_filled(into[i].base, seed + (uint64_t)i, len),
		      "message %d of %d: %zu bytes for %zu, or altered", i, n, into[i].len, len);
}

static void take_all(slmpm_peer peer, uint32_t stream, int n, size_t len, uint64_t seed)
{
	for (int got = 0, want, k; got < n; got += k) {
		want = n - got < MOST ? n - got : MOST;
		make_room(want, len);
		k = slmpm_recv_burst(peer, stream, into, want, NULL, PATIENCE);
		CHECK(k > 0 && k <= want, "%d of %d: %s", k, want, slmpm_error_detail());
		filled(k, len, seed + (uint64_t)got);
	}
}

/* The middle one of three does not fit: it is the next call's first, and cut only there. */
static void too_long(size_t n, size_t middle)
{
	struct slmpm_done done[3];

	lay_out(from, 3, out, n, middle);
	from[1].len = middle;
	for (int i = 0; i < 3; i++)
		actor_fill(from[i].base, (uint64_t)i, from[i].len);
	EXPECT(slmpm_send_burst(a, 1, from, 3, PATIENCE), 3);
	make_room(3, n);
	into[1].len = middle - 1;
	EXPECT(slmpm_recv_burst(b, 1, into, 3, done, PATIENCE), 1);
	CHECK(into[1].len == middle - 1, "a room is changed");
	REFUSED(slmpm_recv_burst(b, 1, into + 1, 2, done, PATIENCE), SLMPM_ETRUNC, "for a buffer");
	CHECK(done[0].status == -SLMPM_ETRUNC && done[0].len == middle &&
		      actor_filled(into[1].base, 1, middle - 1),
	      "%llu bytes of %zu", (unsigned long long)done[0].len, middle);
	EXPECT(slmpm_recv_burst(b, 1, into + 2, 1, NULL, PATIENCE), 1);
	CHECK(actor_filled(into[2].base, 2, n), "the one behind");
	nothing_there(b);
}

static void wrong(void)
{
	lay_out(from, 3, out, 8, 0);
	make_room(3, 8);
	EXPECT(slmpm_send_burst(a, 1, NULL, 0, 0), 0);
	EXPECT(slmpm_recv_burst(b, 1, NULL, 0, NULL, -1), 0);
	REFUSED(slmpm_send_burst(a, 1, from, -1, 0), SLMPM_EINVAL, "no messages");
	REFUSED(slmpm_send_burst(a, 1, NULL, 1, 0), SLMPM_EINVAL, "no messages");
	REFUSED(slmpm_send_burst(a, ANY, from, 3, 0), SLMPM_EINVAL, "stream");
	REFUSED(slmpm_recv_burst(b, 1, into, -1, NULL, 0), SLMPM_EINVAL, "no messages");
	REFUSED(slmpm_recv_burst(b, 1, NULL, 1, NULL, 0), SLMPM_EINVAL, "no messages");
	REFUSED(slmpm_send_burst((slmpm_peer){0}, 1, from, 3, 0), SLMPM_EHANDLE, "zero");
	REFUSED(slmpm_send_burst(slmpm_any(ctx), 1, from, 3, 0), SLMPM_EHANDLE, "peer");
	REFUSED(slmpm_recv_burst((slmpm_peer){0}, 1, into, 3, NULL, 0), SLMPM_EHANDLE, "zero");
	/* What stands before it goes. */
	for (int i = 0; i < 3; i++) {
		lay_out(from, 3, out, 8, 0);
		from[i].base = NULL;
		if (i)
			EXPECT(slmpm_send_burst(a, 1, from, 3, PATIENCE), i);
		REFUSED(slmpm_send_burst(a, 1, from + i, 3 - i, PATIENCE), SLMPM_EINVAL, "NULL");
		make_room(3, 8);
		into[i].base = NULL;
		if (i)
			EXPECT(slmpm_recv_burst(b, 1, into, 3, NULL, PATIENCE), i);
		REFUSED(slmpm_recv_burst(b, 1, into + i, 3 - i, NULL, PATIENCE), SLMPM_EINVAL,
			"NULL");
	}
	from[0] = from[1] = into[0] = into[1] = (struct slmpm_iov){NULL, 0}; /* empty ones */
	EXPECT(slmpm_send_burst(a, 1, from, 2, PATIENCE), 2);
	EXPECT(slmpm_recv_burst(b, 1, into, 2, NULL, PATIENCE), 2);
	nothing_there(b);
}

/* Nobody receives: as many go as the credit covers, and each of them arrives. */
static void until_the_credit_ends(size_t len)
{
	slmpm_peer c, d;
	int64_t begin;
	int n = 0, k, tries = 100;

	actor_pair(ctx, &c, &d);
	do {
		fill_all(MOST, len, (uint64_t)n);
		k = slmpm_send_burst(c, 1, from, MOST, 0);
		CHECK(k > 0 || k == -SLMPM_EAGAIN, "%d: %s", k, slmpm_error_detail());
		n += k > 0 ? k : 0;
		/* Where the ring is full before, it is read meanwhile. */
	} while (k == MOST || (n < (int)(message_credit() / (len + 64)) && --tries));
	EXPECT(n, message_credit() / (len + 64));
	begin = actor_now_ms();
	REFUSED(slmpm_send_burst(c, 1, from, 2, 30), SLMPM_ETIMEOUT, "not sent");
	CHECK(actor_now_ms() - begin >= 30, "too early");
	take_all(d, 1, 2, len, 0);
	fill_all(3, len, (uint64_t)n); /* there may be room for two */
	k = slmpm_send_burst(c, 1, from, 3, 1);
	CHECK(k == 2 || k == -SLMPM_ETIMEOUT, "%d", k);
	take_all(d, 1, n - 2 + (k > 0 ? k : 0), len, 2);
	nothing_there(d);
	OK(slmpm_close(c, PATIENCE));
	OK(slmpm_close(d, PATIENCE));
}

static void among_others(void)
{
	struct slmpm_done done;
	slmpm_req req;
	void *loan;

	fill_all(3, 40, 0);
	OK(slmpm_loan(a, 1, 8, &loan, PATIENCE));
	REFUSED(slmpm_send_burst(a, 1, from, 3, PATIENCE), SLMPM_EBUSY, "loan");
	OK(slmpm_abort(a, loan));
	/* A receive that was posted before comes first. */
	make_room(3, 40);
	OK(slmpm_recvv(b, 1, into, 1, NULL, &req));
	EXPECT(slmpm_send_burst(a, 1, from, 3, PATIENCE), 3);
	EXPECT(slmpm_recv_burst(b, 1, into + 1, 2, NULL, PATIENCE), 2);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	filled(3, 40, 0);
}

static void from_any(void)
{
	slmpm_peer c, d;
	struct slmpm_done done[20];
	int got[2] = {0, 0}, k;

	actor_pair(ctx, &c, &d);
	fill_all(20, 24, 0);
	EXPECT(slmpm_send_burst(a, 1, from, 20, PATIENCE), 20);
	EXPECT(slmpm_send_burst(c, 1, from, 20, PATIENCE), 20);
	while (got[0] + got[1] < 40) {
		make_room(20, 24);
		k = slmpm_recv_burst(slmpm_any(ctx), 1, into, 20, done, PATIENCE);
		CHECK(k > 0, "%s", slmpm_error_detail());
		for (int i = 0; i < k; i++)
			CHECK(actor_filled(into[i].base, (uint64_t)got[done[i].peer.id == d.id]++,
					   24),
			      "out of turn");
	}
	CHECK(got[0] == 20 && got[1] == 20, "%d and %d", got[0], got[1]);
	OK(slmpm_close(c, PATIENCE));
	OK(slmpm_close(d, PATIENCE));
}

/* One whose ring is never empty does not keep what another sent from being received. */
static void beside_a_stream(void)
{
	static unsigned char there[MOST * SHORT], room[4][MOST * SHORT];
	struct slmpm_iov whole = {there, sizeof(there)}, m[4];
	struct slmpm_done done;
	bool seen = false;
	slmpm_peer c, d;
	slmpm_req req;

	actor_pair(ctx, &c, &d);
	actor_fill(there, 9, sizeof(there));
	fill_all(5, 8, 0);
	OK(slmpm_sendv(a, 1, &whole, 1, NULL, &req));
	for (int i = 0; !seen && i < 100; i++) {
		int k;

		EXPECT(slmpm_send_burst(c, 1, from, 5, PATIENCE), 5);
		lay_out(m, 4, room[0], sizeof(there), 0);
		k = slmpm_recv_burst(slmpm_any(ctx), 1, m, 4, NULL, PATIENCE);
		CHECK(k > 0, "%s", slmpm_error_detail());
		for (int j = 0; j < k; j++)
			seen |= m[j].len == sizeof(there) && actor_filled(room[j], 9, m[j].len);
	}
	CHECK(seen, "it starves");
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	OK(slmpm_close(c, PATIENCE));
	OK(slmpm_close(d, PATIENCE));
}

static void closed(void)
{
	fill_all(MOST, 8, 5);
	EXPECT(slmpm_send_burst(a, 1, from, MOST, PATIENCE), MOST);
	OK(slmpm_close(a, PATIENCE));
	REFUSED(slmpm_send_burst(a, 1, from, 2, 0), SLMPM_EHANDLE, "no such peer");
	take_all(b, 1, MOST, 8, 5);
	REFUSED(slmpm_recv_burst(b, 1, into, 2, NULL, -1), SLMPM_ECLOSED, "closed");
	REFUSED(slmpm_send_burst(b, 1, from, 2, -1), SLMPM_ECLOSED, "closed");
}

/* ---- with another process -------------------------------------------------------------------- */

#define LONG 300000 /* beyond the eager limit */

/* Sends back what comes in bursts, in bursts. */
static int echo(slmpm_peer host, char **words)
{
	static unsigned char room[3][LONG];
	int k;

	(void)words;
	do {
		for (int i = 0; i < 3; i++)
			into[i] = (struct slmpm_iov){room[i], LONG};
		k = slmpm_recv_burst(host, 1, into, 3, NULL, -1);
		if (k > 0)
			EXPECT(slmpm_send_burst(host, 1, into, k, PATIENCE), k);
	} while (k > 0);
	return k == -SLMPM_ECLOSED ? 0 : 1;
}

static void *send_bursts(void *arg)
{
	const slmpm_peer *peer = arg;

	EXPECT(slmpm_send_burst(*peer, 1, from, 8, PATIENCE), 8);
	return NULL;
}

/* Long ones among the short: both ways at once, by two threads. */
static void there_and_back(void)
{
	static unsigned char there[2][LONG], back[LONG];
	static const size_t len[8] = {8, 8, LONG, 0, 16, 16, LONG, 8};
	struct slmpm_options how = {.size = sizeof(how), .flags = SLMPM_THREADS};
	struct slmpm_spawn_options o = {.size = sizeof(o)};
	slmpm_ctx shared;
	slmpm_peer peer;
	pthread_t thread;

	OK(slmpm_open(&shared, &how));
	o.ctx = shared;
	peer = actor_spawn_with(&o, "echo", NULL, NULL);
	for (int i = 0; i < 8; i++) {
		from[i] = (struct slmpm_iov){len[i] == LONG ? there[i == 6] : out + 64 * i, len[i]};
		actor_fill(from[i].base, (uint64_t)i, len[i]);
	}
	CHECK(!pthread_create(&thread, NULL, send_bursts, &peer), "thread");
	for (int i = 0; i < 8; i++) {
		struct slmpm_iov m = {back, LONG};

		EXPECT(slmpm_recv_burst(peer, 1, &m, 1, NULL, PATIENCE), 1);
		CHECK(m.len == len[i] && actor_filled(back, (uint64_t)i, m.len), "message %d", i);
	}
	CHECK(!pthread_join(thread, NULL), "join");
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	OK(slmpm_shut(shared, PATIENCE));
}

static int victim(slmpm_peer host, char **words)
{
	(void)words;
	fill_all(MOST, 16, 0);
	EXPECT(slmpm_send_burst(host, 1, from, MOST, PATIENCE), MOST);
	OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	return (int)slmpm_recv_burst(host, 1, into, 1, NULL, -1); /* killed in there */
}

static void killed(void)
{
	slmpm_peer peer = actor_spawn("victim", NULL, NULL);
	int k;

	take_all(peer, 1, MOST, 16, 0);
	OK(slmpm_kill(peer, 0));
	make_room(2, 16);
	REFUSED(slmpm_recv_burst(peer, 1, into, 2, NULL, -1), SLMPM_EDEAD, "signal 9");
	REFUSED(slmpm_send_burst(peer, 1, from, 2, -1), SLMPM_EDEAD, "signal 9");
	/* And one that is dead before its burst is read. */
	peer = actor_spawn("victim", NULL, NULL);
	EXPECT(slmpm_probe(peer, 2, NULL, PATIENCE), 1);
	OK(slmpm_kill(peer, 0));
	for (int got = 0; got < MOST; got += k) {
		make_room(7, 16);
		k = slmpm_recv_burst(peer, 1, into, got + 7 < MOST ? 7 : MOST - got, NULL,
				     PATIENCE);
		CHECK(k > 0, "after %d: %s", got, slmpm_error_detail());
		filled(k, 16, (uint64_t)got);
	}
	REFUSED(slmpm_recv_burst(peer, 1, into, 2, NULL, -1), SLMPM_EDEAD, "signal 9");
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"echo", echo},
		{"victim", victim},
		{NULL, NULL},
	};

	actor_begin(argc, argv, roles);
	OK(slmpm_default(&ctx));
	actor_pair(ctx, &a, &b);
	too_long(8, 9);
	too_long(64, 65);
	too_long(64, 200);
	too_long(8, 3000);
	wrong();
	until_the_credit_ends(8);
	until_the_credit_ends(300);
	among_others();
	from_any();
	beside_a_stream();
	closed();
	there_and_back();
	killed();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
