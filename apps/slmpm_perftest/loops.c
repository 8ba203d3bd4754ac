/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is measured: the loops that both sides run, and nothing in them but the library's calls.
 * Variants (touched, stamped) are one inlined function with constant flags, so that the plain loop
 * carries no test of them.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <string.h>

static volatile uint64_t sink;

void fill(void *buf, uint64_t len, uint64_t i)
{
	memset(buf, (int)(i & 127), len);
}

static __attribute__((noinline)) uint64_t sum_of(const unsigned char *bytes, uint64_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += *bytes++;
	return sum;
}

/* The plainest loop, as the peers' programs have it: it is part of what is measured. */
void consume(const void *buf, uint64_t len)
{
	const unsigned char *bytes = buf;
	uint64_t sum = 0, word;

	for (uint64_t i = 0; i < len / 8; i++) {
		memcpy(&word, bytes + 8 * i, 8);
		sum += word;
	}
	if (len % 8)
		sum += sum_of(bytes + len - len % 8, len % 8);
	sink = sum;
}

/* ---- one message ---- */

static ALWAYS_INLINE int put_one(struct pair *p, const struct job *j, uint64_t i, bool touch)
{
	if (touch)
		fill(p->tx, j->size, i);
	return slmpm_send(p->peer, STREAM_DATA, p->tx, j->size, -1);
}

static ALWAYS_INLINE int take_one(struct pair *p, const struct job *j, bool touch)
{
	int64_t len = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, NULL, -1);

	if (len < 0)
		return (int)len;
	if (touch)
		consume(p->rx, (uint64_t)len);
	return 0;
}

/* A touched loan beyond a packet is handed over in steps, so that the reader follows closely. */
static int fill_in_steps(struct pair *p, const struct job *j, char *buf, uint64_t i)
{
	const struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART, .timeout_ms = -1};
	uint64_t at = 0;
	int rc;

	for (; j->size - at > j->step; at += j->step) {
		fill(buf + at, j->step, i);
		rc = slmpm_commit(p->peer, buf, at + j->step, &part);
		if (rc < 0)
			return rc;
	}
	fill(buf + at, j->size - at, i);
	return slmpm_commit(p->peer, buf, j->size, NULL);
}

static ALWAYS_INLINE int loan_one(struct pair *p, const struct job *j, uint64_t i, bool touch)
{
	void *buf;
	int rc = slmpm_loan(p->peer, STREAM_DATA, j->size, &buf, -1);

	if (rc < 0)
		return rc;
	if (touch && j->size > p->packet_max)
		return fill_in_steps(p, j, buf, i);
	if (touch)
		fill(buf, j->size, i);
	return slmpm_commit(p->peer, buf, j->size, NULL);
}

static int consume_growing(struct pair *p, const char *buf, uint64_t have, struct slmpm_done *done)
{
	int64_t len;

	while (done->flags & SLMPM_PART) {
		len = slmpm_more(p->peer, buf, have, done, -1);
		if (len < 0)
			return (int)len;
		consume(buf + have, (uint64_t)len - have);
		have = (uint64_t)len;
	}
	return 0;
}

static ALWAYS_INLINE int hold_one(struct pair *p, bool touch)
{
	struct slmpm_done done;
	const void *buf;
	int64_t len = slmpm_hold(p->peer, STREAM_DATA, &buf, &done, -1);
	int rc;

	if (len < 0)
		return (int)len;
	if (touch) {
		consume(buf, (uint64_t)len);
		rc = consume_growing(p, buf, (uint64_t)len, &done);
		if (rc < 0)
			return rc;
	}
	return slmpm_release(p->peer, buf);
}

/* ---- latency: ping-pong, side 0 begins ---- */

static ALWAYS_INLINE int ping(struct pair *p, const struct job *j, struct hist *stamps, bool loan,
			      bool touch)
{
	uint64_t before = stamps ? now_ns() : 0, now;

	for (uint64_t i = 0; i < 2 * j->count; i++) {
		int rc;

		if ((i & 1) == (uint64_t)p->side)
			rc = loan ? loan_one(p, j, i, touch) : put_one(p, j, i, touch);
		else
			rc = loan ? hold_one(p, touch) : take_one(p, j, touch);
		if (rc < 0)
			return rc;
		if (stamps && (i & 1)) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return 0;
}

/* The receiver is left alone for a while before each message; clocks of one machine are one. */
static int idle_wait(struct pair *p, const struct job *j, struct hist *stamps)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	const struct slmpm_iov piece = {.base = p->tx, .len = j->size};
	const struct timespec rest = {(time_t)(j->idle_us / 1000000),
				      (long)(j->idle_us % 1000000) * 1000};
	struct slmpm_done done;
	int64_t rc = 0;

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		if (p->side == 0) {
			uint64_t until = now_ns() + j->idle_us * 1000;

			/* Sharing the receiver's CPU, only a sleeping sender leaves it idle. */
			if (!p->probes)
				nanosleep(&rest, NULL);
			while (now_ns() < until)
				relax();
			how.imm = (uint32_t)now_ns();
			if (j->touch)
				fill(p->tx, j->size, i);
			rc = slmpm_sendv(p->peer, STREAM_DATA, &piece, 1, &how, NULL);
		} else {
			rc = slmpm_recv(p->peer, STREAM_DATA, p->rx, j->size, &done, -1);
			if (rc >= 0 && j->touch)
				consume(p->rx, (uint64_t)rc);
			if (rc >= 0 && stamps)
				hist_add(stamps, (uint32_t)((uint32_t)now_ns() - done.imm));
		}
	}
	return rc < 0 ? (int)rc : 0;
}

int loop_send_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	if (j->idle_us)
		return idle_wait(p, j, stamps);
	if (stamps)
		return j->touch ? ping(p, j, stamps, false, true) :
				  ping(p, j, stamps, false, false);
	return j->touch ? ping(p, j, NULL, false, true) : ping(p, j, NULL, false, false);
}

int loop_loan_lat(struct pair *p, const struct job *j, struct hist *stamps)
{
	if (stamps)
		return j->touch ? ping(p, j, stamps, true, true) : ping(p, j, stamps, true, false);
	return j->touch ? ping(p, j, NULL, true, true) : ping(p, j, NULL, true, false);
}

/* ---- streams: side 0 sends, the end is side 1's report ---- */

static ALWAYS_INLINE int stream(struct pair *p, const struct job *j, bool loan, bool touch)
{
	for (uint64_t i = 0; i < j->count; i++) {
		int rc;

		if (p->side == 0)
			rc = loan ? loan_one(p, j, i, touch) : put_one(p, j, i, touch);
		else
			rc = loan ? hold_one(p, touch) : take_one(p, j, touch);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int loop_send_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return j->touch ? stream(p, j, false, true) : stream(p, j, false, false);
}

int loop_loan_stream(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)stamps;
	return j->touch ? stream(p, j, true, true) : stream(p, j, true, false);
}

/* ---- the machine's limits ---- */

int loop_copy(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t before;

	for (uint64_t i = 0; i < j->count; i++) {
		before = stamps ? now_ns() : 0;
		memcpy(p->rx, p->tx, j->size);
		__asm__ volatile("" : : "r"(p->rx) : "memory");
		if (stamps)
			hist_add(stamps, now_ns() - before);
	}
	return 0;
}

int loop_nothing(struct pair *p, const struct job *j, struct hist *stamps)
{
	(void)p;
	(void)j;
	(void)stamps;
	return 0; /* the probes around it are the measurement */
}
