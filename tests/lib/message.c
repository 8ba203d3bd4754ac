/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, taking and comparing messages through the public calls. */
#include "tests/lib/message.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *filled(uint64_t seed, size_t n)
{
	unsigned char *data = malloc(n ? n : 1);

	CHECK(data, "out of memory");
	actor_fill(data, seed, n);
	return data;
}

void message_send(slmpm_peer to, uint32_t stream, uint64_t seed, size_t n, uint32_t flags)
{
	struct slmpm_iov iov = {filled(seed, n), n};
	struct slmpm_how how = {
		.size = sizeof(how),
		.flags = flags,
		.imm = message_imm(seed),
		.timeout_ms = PATIENCE,
	};

	OK(slmpm_sendv(to, stream, &iov, 1, &how, NULL));
	memset(iov.base, 0xee, n); /* it is ours again */
	free(iov.base);
}

void message_start(struct message *m, slmpm_peer to, uint32_t stream, uint64_t seed, size_t n)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = message_imm(seed)};
	struct slmpm_iov iov;

	m->data = filled(seed, n);
	iov = (struct slmpm_iov){m->data, n};
	OK(slmpm_sendv(to, stream, &iov, 1, &how, &m->req));
}

void message_end(struct message *m, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_wait(&m->req, 1, &done, PATIENCE), 0);
	CHECK(done.status == status, "a send ended with %d, not %d: %s", done.status, status,
	      slmpm_error_detail());
	CHECK(!m->req.id, "the handle is still there");
	free(m->data);
	m->data = NULL;
}

void message_check(const void *data, const struct slmpm_done *done, uint64_t seed, size_t n)
{
	CHECK(done->len == n && done->status == 0 && done->imm == message_imm(seed),
	      "message %llu of %zu bytes: came as %u, %llu bytes, status %d",
	      (unsigned long long)seed, n, done->imm, (unsigned long long)done->len, done->status);
	CHECK(actor_filled(data, seed, n), "message %llu of %zu bytes: altered",
	      (unsigned long long)seed, n);
}

struct slmpm_done message_take(slmpm_peer from, uint32_t stream, uint64_t seed, size_t n)
{
	unsigned char *data = malloc(n ? n : 1);
	struct slmpm_done done;

	CHECK(data, "out of memory");
	EXPECT(slmpm_recv(from, stream, data, n, &done, PATIENCE), n);
	message_check(data, &done, seed, n);
	CHECK(stream == SLMPM_ANY_STREAM || done.stream == stream, "message %llu: stream %u",
	      (unsigned long long)seed, done.stream);
	free(data);
	return done;
}

void message_none(slmpm_peer from, uint32_t stream)
{
	char byte;

	EXPECT(slmpm_probe(from, stream, NULL, 0), 0);
	EXPECT(slmpm_recv(from, stream, &byte, 1, NULL, 0), -SLMPM_EAGAIN);
}

static struct slmpm_peer_info info_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info;
}

size_t message_eager(slmpm_peer peer)
{
	return info_of(peer).eager_max;
}

size_t message_packet(slmpm_peer peer)
{
	return info_of(peer).packet_max;
}

size_t message_credit(void)
{
	const char *text = getenv("SLMPM_EAGER_CREDIT"), *fabric = getenv("SLMPM_FABRIC"),
		   *links = getenv("SLMPM_LINKS");
	char *end;
	size_t n;

	if (!text)
		return fabric && strcmp(fabric, "tcp") == 0 && (!links || strcmp(links, "1") == 0) ?
			       4 << 20 :
			       1 << 20;
	n = strtoull(text, &end, 10);
	return n << (*end == 'k' ? 10 : *end == 'm' ? 20 : 0);
}
