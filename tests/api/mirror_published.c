/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 90 */
/*
 * What readers of a mirror may rely on: publications, messages behind changes, what the library
 * itself brings there, and changes made in a handler.
 */
#include <string.h>

#include "tests/lib/mirror_ends.h"
#include "tests/lib/settings.h"

/* ---- publications ---------------------------------------------------------------------------- */

static void publications(void)
{
	const struct slmpm_span halves[] = {{ends.bytes / 2, 64}, {0, 64}};
	unsigned char copy[128];
	uint64_t sequence = 0, last;

	ends_mirror(NULL, 0);
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	last = ends_info(ends.follower, ends.far).sequence;
	for (uint64_t i = 1; i < 50; i++) {
		OK(slmpm_mirror_begin(ends.leader, PATIENCE));
		REFUSED(slmpm_mirror_begin(ends.leader, 0), SLMPM_ESTATE, "begin");
		REFUSED(slmpm_mirror_flush(ends.leader, 0), SLMPM_ESTATE, "begin");
		OK(slmpm_mirror_set(ends.leader, ends.leads, (int)i, ends.bytes));
		for (int k = 0; k < 3; k++)
			(void)slmpm_progress(ends.ctx);
		CHECK(ends.follows[0] != (unsigned char)i, "seen before its end");
		OK(slmpm_mirror_end(ends.leader));
		OK(slmpm_mirror_snapshot(ends.follower, ends.far, halves, 2, copy, &sequence,
					 PATIENCE));
		for (int k = 1; k < 128 && i > 1; k++)
			CHECK(copy[k] == copy[0], "publication %llu: byte %d is %u, not %u",
			      (unsigned long long)sequence, k, copy[k], copy[0]);
		CHECK(copy[0] == i || copy[0] == (unsigned char)(i - 1) || i == 1, "%u in %d",
		      copy[0], (int)i);
		OK(slmpm_mirror_wait(ends.follower, ends.far, &last, PATIENCE));
		OK(slmpm_mirror_snapshot(ends.follower, ends.far, halves, 1, copy, &sequence, 0));
		CHECK(sequence == last && copy[0] == i && copy[63] == i, "publication %llu",
		      (unsigned long long)sequence);
	}
	REFUSED(slmpm_mirror_end(ends.leader), SLMPM_ESTATE, "without");
	EXPECT(slmpm_mirror_wait(ends.follower, ends.far, &last, 0), -SLMPM_EAGAIN);
	ends_unmirror();
}

/* ---- messages behind ------------------------------------------------------------------------- */

static void messages_behind(void)
{
	uint64_t value;

	ends_mirror(NULL, 0);
	ends_settle(ends.leader, ends.near, ends.follower, ends.far);
	for (uint64_t i = 0; i < 300; i++) {
		OK(slmpm_mirror_store64(ends.leader, ends.leads + 4096, i));
		OK(slmpm_mirror_flush(ends.leader, PATIENCE));
		OK(slmpm_send(ends.near, 3, &i, sizeof(i), PATIENCE));
		EXPECT(slmpm_recv(ends.far, 3, &value, sizeof(value), NULL, PATIENCE),
		       sizeof(value));
		CHECK(*(uint64_t *)(void *)(ends.follows + 4096) == i && value == i, "message %d",
		      (int)i);
	}
	ends_unmirror();
}

/* ---- what the library itself brings there ---------------------------------------------------- */

/* The leader's memory is the target of everything that lands; a second pair is where it comes
 * from. */
static void landed_as(slmpm_peer from, slmpm_peer at, slmpm_mem mem, slmpm_rmem rmem,
		      slmpm_rmem other)
{
	struct slmpm_iov burst[3] = {
		{ends.leads + 3000, 8}, {ends.leads + 3100, 8}, {ends.leads + 3200, 8}};
	struct slmpm_how fifo = {.size = sizeof(fifo), .flags = SLMPM_FIFO, .timeout_ms = -1};
	struct slmpm_fifo entry;
	slmpm_req req;
	uint64_t old;

	for (int i = 0; i < 3; i++)
		OK(slmpm_send(from, 1, ends.room[2], 40, PATIENCE));
	EXPECT(slmpm_recv(at, 1, ends.leads + 96, 100, NULL, PATIENCE), 40);
	EXPECT(slmpm_recv(at, 1, ends.leads + 200, 20, NULL, PATIENCE), -SLMPM_ETRUNC);
	EXPECT(slmpm_recvv(at, 1, burst, 3, NULL, NULL), -SLMPM_ETRUNC);
	OK(slmpm_sendv(from, 2, &(struct slmpm_iov){ends.room[2], ends.bytes / 2}, 1, NULL, &req));
	EXPECT(slmpm_recv(at, 2, ends.leads + ends.bytes / 4, ends.bytes / 2, NULL, PATIENCE),
	       (int64_t)(ends.bytes / 2));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	ends_same("received");
	EXPECT(slmpm_send_burst(from, 3,
				(struct slmpm_iov[]){{ends.room[2], 8}, {ends.room[2] + 1, 8}}, 2,
				PATIENCE),
	       2);
	EXPECT(slmpm_recv_burst(at, 3, burst, 2, NULL, PATIENCE) > 0, 1);
	OK(slmpm_put(rmem, 500, ends.room[2], 700, NULL, NULL));
	OK(slmpm_flush(from, PATIENCE));
	OK(slmpm_atomic(rmem, 1600, SLMPM_FETCH_ADD, 64, 5, 0, &old, NULL, NULL));
	OK(slmpm_atomic(rmem, 1612, SLMPM_SWAP, 32, 9, 0, NULL, NULL, NULL));
	ends_same("put and atomic operations");
	OK(slmpm_put(rmem, 2000, ends.room[2], 100, &fifo, NULL));
	OK(slmpm_fifo_take(at, &entry, PATIENCE));
	OK(slmpm_fifo_store(&entry, mem, 2001, NULL, NULL));
	ends_same("stored out of a FIFO");
	OK(slmpm_get(other, 8, ends.leads + 4000, 333, NULL, NULL));
	OK(slmpm_get(other, 8, ends.leads + 5000, 333, NULL, &req));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	OK(slmpm_atomic(other, 0, SLMPM_FETCH_ADD, 64, 1, 0, ends.leads + 6000, NULL, NULL));
	ends_same("got");
	while (slmpm_recv(at, SLMPM_ANY_STREAM, ends.room[3], 100, NULL, 0) >= 0)
		;
}

static slmpm_rmem reach(slmpm_mem mem, slmpm_peer to, slmpm_peer from)
{
	struct slmpm_key key;
	slmpm_rmem rmem;

	OK(slmpm_mem_key(mem, to, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(from, &key, &rmem));
	return rmem;
}

static void landed(void)
{
	slmpm_peer from, at;
	slmpm_mem mem, other_mem, early_mem;
	slmpm_rmem rmem, other, early;
	slmpm_mirror m;

	actor_fill(ends.room[2], 77, ends.bytes);
	actor_pair(ends.ctx, &from, &at);
	OK(slmpm_mem_register(ends.ctx, ends.room[3], ends.bytes, SLMPM_READ_WRITE, &other_mem));
	other = reach(other_mem, from, at); /* its shortcut is there before the mirror */
	OK(slmpm_mem_register(ends.ctx, ends.room[2], ends.bytes, SLMPM_READ_WRITE, &early_mem));
	early = reach(early_mem, at, from);
	if (slmpm_mirror_create(ends.ctx, ends.room[2], 64, NULL, &m) == 0)
		OK(slmpm_mirror_destroy(m)); /* nobody could reach it by itself */
	else
		REFUSED(slmpm_mirror_create(ends.ctx, ends.room[2], 64, NULL, &m), SLMPM_EBUSY,
			"by itself");
	ends_mirror(NULL, 0);
	OK(slmpm_mem_register(ends.ctx, ends.leads, ends.bytes, SLMPM_READ_WRITE, &mem));
	rmem = reach(mem, at, from);
	landed_as(from, at, mem, rmem, other);
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_release(other));
	OK(slmpm_mem_release(early));
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_mem_destroy(other_mem, PATIENCE));
	OK(slmpm_mem_destroy(early_mem, PATIENCE));
	OK(slmpm_close(from, PATIENCE));
	OK(slmpm_close(at, PATIENCE));
	ends_unmirror();
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void in_handler(const struct slmpm_am *am, void *arg)
{
	(void)am;
	for (size_t at = 0; at < ends.bytes; at += 2048)
		OK(slmpm_mirror_set(ends.leader, ends.leads + at, 0x33, 1024));
	*(int *)arg = slmpm_mirror_flush(ends.leader, PATIENCE);
}

/* More than goes out at once: a flush would wait, and says why it does not. */
static void flushed_in_handler(void)
{
	unsigned idle = 0;
	int rc = 1;

	ends_mirror(NULL, 0);
	OK(slmpm_am_handler(ends.ctx, 5, in_handler, &rc));
	OK(slmpm_am(ends.near, 5, NULL, 0, NULL, 0, NULL, NULL));
	while (rc == 1)
		if (!slmpm_progress(ends.ctx))
			actor_idle(ends.ctx, &idle);
	CHECK(rc == -SLMPM_ESTATE || (rc == 0 && ends.bytes < ENDS_SIZE),
	      "a flush in a handler: %d", rc);
	OK(slmpm_am_handler(ends.ctx, 5, NULL, NULL));
	ends_same("changed in a handler");
	ends_unmirror();
}

static int under(const struct setting *s)
{
	ends_open(s);
	publications();
	messages_behind();
	landed();
	flushed_in_handler();
	return ends_close();
}

int main(void)
{
	return settings_each(under, 20);
}
