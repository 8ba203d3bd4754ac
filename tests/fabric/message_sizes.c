/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Messages of every length that is at the edge of something (segment, bundle, packet, eager limit,
 * credit, ring) up to 32 MiB, sent and received in every way, to a second process and back, under
 * many settings. huge.c has the longest.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

enum { ECHO = 3, BUILD = 7, LOOK = 9 };

static unsigned char *out, *in;
static size_t most;

static void *memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	CHECK(p != MAP_FAILED, "no %zu bytes", n);
	return p;
}

/* ---- the other side ------------------------------------------------------------------------- */

/* From where it lies into a loan: back in place. */
static void build_back(slmpm_peer host)
{
	const void *held;
	void *buf;
	int64_t n = slmpm_hold(host, BUILD, &held, NULL, -1);

	CHECK(n >= 0, "hold: %s", slmpm_error_detail());
	OK(slmpm_loan(host, BUILD, (size_t)n, &buf, PATIENCE));
	memcpy(buf, held, (size_t)n);
	OK(slmpm_release(host, held));
	OK(slmpm_commit(host, buf, (size_t)n, NULL));
}

static int echo(slmpm_peer host, char **words)
{
	struct slmpm_done done;
	int rc;

	most = strtoull(words[0], NULL, 10);
	in = memory(most + 1);
	while ((rc = slmpm_probe(host, SLMPM_ANY_STREAM, &done, -1)) == 1) {
		if (done.stream == BUILD) {
			build_back(host);
		} else {
			int64_t n = slmpm_recv(host, done.stream, in, most, NULL, -1);
			uint64_t good;

			EXPECT(n, done.len);
			good = actor_filled(in, done.imm, (size_t)n);
			if (done.stream == ECHO)
				OK(slmpm_send(host, ECHO, in, (size_t)n, -1));
			else
				OK(slmpm_send(host, LOOK, &good, sizeof(good), -1));
		}
	}
	EXPECT(rc, -SLMPM_ECLOSED);
	return 0;
}

/* ---- the ways ------------------------------------------------------------------------------- */

static void plainly(slmpm_peer peer, size_t n)
{
	struct slmpm_done done;

	actor_fill(out, n, n);
	memset(in, 0x55, n + 1);
	OK(slmpm_send(peer, ECHO, out, n, PATIENCE));
	EXPECT(slmpm_recv(peer, ECHO, in, n, &done, PATIENCE), n);
	CHECK(done.len == n && done.stream == ECHO && done.status == 0 && done.imm == 0 &&
		      done.peer.id == peer.id,
	      "%zu bytes: what came with them", n);
	CHECK(actor_filled(in, n, n) && in[n] == 0x55, "%zu bytes came back altered", n);
}

/* Three pieces out, two in, whose receive is there before: of odd lengths, one of them empty. */
static void in_pieces(slmpm_peer peer, size_t n)
{
	struct slmpm_iov from[] = {{out, n / 3}, {NULL, 0}, {out + n / 3, n - n / 3}};
	struct slmpm_iov to[] = {{in, n / 5 * 2}, {in + n / 5 * 2, n - n / 5 * 2}};
	struct slmpm_done done;
	slmpm_req req[2];

	actor_fill(out, n + 1, n);
	memset(in, 0x55, n + 1);
	OK(slmpm_recvv(peer, ECHO, to, 2, NULL, &req[0]));
	OK(slmpm_sendv(peer, ECHO, from, 3, NULL, &req[1]));
	for (int i = 0; i < 2; i++) {
		int at = slmpm_wait(req, 2, &done, PATIENCE);

		CHECK(at >= 0 && done.status == 0 && done.len == n, "%zu bytes in pieces: %s", n,
		      slmpm_error_detail());
	}
	CHECK(actor_filled(in, n + 1, n) && in[n] == 0x55, "%zu bytes in pieces: altered", n);
}

static void in_place(slmpm_peer peer, size_t n)
{
	const void *held;
	void *buf;

	OK(slmpm_loan(peer, BUILD, n, &buf, PATIENCE));
	CHECK((uintptr_t)buf % 32 == 0, "a loan of %zu bytes at %p", n, buf);
	actor_fill(buf, n + 2, n);
	OK(slmpm_commit(peer, buf, n, NULL));
	EXPECT(slmpm_hold(peer, BUILD, &held, NULL, PATIENCE), n);
	CHECK(actor_filled(held, n + 2, n), "a loan of %zu bytes came back altered", n);
	OK(slmpm_release(peer, held));
	EXPECT(slmpm_release(peer, held), -SLMPM_ESTATE);
}

/* Too large to be carried twice: the other side says whether it is whole. */
static void one_way(slmpm_peer peer, size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = (uint32_t)n, .timeout_ms = PATIENCE};
	struct slmpm_iov iov = {out, n};
	uint64_t good = 0;

	actor_fill(out, (uint32_t)n, n);
	OK(slmpm_sendv(peer, LOOK, &iov, 1, &how, NULL));
	EXPECT(slmpm_recv(peer, LOOK, &good, sizeof(good), NULL, PATIENCE), sizeof(good));
	CHECK(good, "%zu bytes arrived altered", n);
}

/* ---- the lengths ---------------------------------------------------------------------------- */

static void around(slmpm_peer peer, size_t edge, uint64_t loan_max)
{
	for (size_t n = edge ? edge - 1 : 0; n <= edge + 1; n++) {
		if (n > most)
			return;
		if (n > (size_t)4 << 20) {
			one_way(peer, n);
			continue;
		}
		plainly(peer, n);
		in_pieces(peer, n);
		if (n <= loan_max)
			in_place(peer, n);
	}
}

static void all_lengths(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_stats stats;

	plainly(peer, 0); /* and it is connected */
	OK(slmpm_peer_query(peer, &info));
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	for (size_t n = 0; n < 260; n += 2)
		around(peer, n, info.loan_max);
	for (size_t n = 512; n <= most; n *= n < 65536 ? 2 : 4)
		around(peer, n, info.loan_max);
	for (size_t k = 1; k <= 3; k++)
		around(peer, info.packet_max * k, info.loan_max);
	around(peer, info.eager_max, info.loan_max);
	around(peer, stats.out_segments * 64, info.loan_max);
	around(peer, 2048, info.loan_max);
	if (info.loan_max < (64 << 20))
		REFUSED(slmpm_loan(peer, 0, info.loan_max + 1, &(void *){NULL}, 0), SLMPM_ELIMIT,
			"at most");
	one_way(peer, most);
}

/* ---- under each setting --------------------------------------------------------------------- */

static int test(const struct setting *s)
{
	struct slmpm_stats stats;
	char text[32];
	slmpm_peer peer;

	most = s->bytes / (actor_slow() > 1 ? 16 : 1);
	out = memory(most + 1);
	in = memory(most + 1);
	snprintf(text, sizeof(text), "%zu", most);
	peer = actor_spawn("echo", text, NULL);
	all_lengths(peer);
	REFUSED(slmpm_send(peer, 0, out, SLMPM_MESSAGE_MAX + 1, 0), SLMPM_ELIMIT, "at most");
	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.violations == 0 && stats.checksum_errors == 0 &&
		      stats.sent_messages == stats.received_messages,
	      "the figures do not add up");
	OK(slmpm_close(peer, PATIENCE));
	actor_join(peer, 0);
	EXPECT(slmpm_send(peer, 0, out, 1, 0), -SLMPM_EHANDLE);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"echo", echo}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	return settings_each(test, 30);
}
