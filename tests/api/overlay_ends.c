/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Networks that end: a node dies, leaves, or does not come; each other one learns which, also those
 * far from it, and what waits ends. Networks that differ, buffers that are full, messages that no
 * call takes, and buffers that are too small.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm_overlay.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define SHORT 200 /* ms: what never comes */

static struct slmpm_network line_of(uint32_t n)
{
	const uint32_t extent[3] = {n, 1, 1};
	struct slmpm_network net = {.size = sizeof(net)};

	OK(slmpm_network_make(&net, SLMPM_NETWORK_TORUS, n, extent, 0));
	return net;
}

static slmpm_overlay laid(const struct crew *crew, const struct slmpm_overlay_options *options)
{
	const struct slmpm_network net = line_of((uint32_t)crew->members);
	slmpm_overlay o;

	OK(slmpm_overlay_open(&o, crew->group[0], &net, options, PATIENCE));
	return o;
}

/* ---- a death --------------------------------------------------------------------------------- */

/* When the others have left the barrier, and wait. */
static void die(void)
{
	usleep(100000 * (useconds_t)actor_slow());
	(void)raise(SIGKILL);
}

/* Rank 2 of 0 - 1 - 2 - 3 dies: 0 waits for rank 3's message, 3 for an exchange. */
static void dies(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew, NULL);
	struct slmpm_overlay_info info = {.size = sizeof(info)};
	struct slmpm_iov out[SLMPM_NETWORK_LINKS] = {{0}}, in[SLMPM_NETWORK_LINKS] = {{0}};
	int64_t before = actor_now_ms();
	char byte = 1;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == crew->victim)
		die();
	if (rank == 3)
		REFUSED(slmpm_overlay_exchange(o, out, in, PATIENCE), SLMPM_EDEAD, "rank 2");
	else
		REFUSED(slmpm_overlay_recv(o, 3, SLMPM_ANY_STREAM, &byte, 1, NULL, PATIENCE),
			SLMPM_EDEAD, "rank 2");
	CHECK(actor_now_ms() - before < 2000 * actor_slow(), "%lld ms",
	      (long long)(actor_now_ms() - before));
	REFUSED(slmpm_overlay_send(o, 1, 0, &byte, 1, NULL, NULL), SLMPM_EDEAD, "rank 2");
	OK(slmpm_overlay_query(o, &info));
	CHECK(info.status == -SLMPM_EDEAD && info.culprit == 2, "%d by %d", info.status,
	      info.culprit);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* The group goes on without it, and a new network without its node. */
static void goes_on(const struct crew *crew, int rank)
{
	struct slmpm_network net = line_of(3);
	slmpm_overlay o = laid(crew, NULL);
	int own = rank - (rank > crew->victim), other = -1;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == crew->victim)
		die();
	REFUSED(slmpm_overlay_recv(o, 0, 7, NULL, 0, NULL, PATIENCE), SLMPM_EDEAD, "rank 2");
	REFUSED(slmpm_group_shrink(crew->group[0], PATIENCE), SLMPM_EBUSY, "networks");
	OK(slmpm_overlay_close(o, PATIENCE));
	OK(slmpm_group_shrink(crew->group[0], PATIENCE));
	OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
	OK(slmpm_overlay_send(o, 2 - (uint32_t)own, 0, &own, sizeof(own), NULL, NULL));
	EXPECT(slmpm_overlay_recv(o, 2 - (uint32_t)own, 0, &other, sizeof(other), NULL, PATIENCE),
	       sizeof(other));
	EXPECT(other, 2 - own);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* Rank 0 does not know it yet; the others wait for it in slmpm_group_shrink. */
static void lays_without(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(4);
	slmpm_overlay o;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == crew->victim)
		die();
	if (rank == 0) {
		usleep(150000 * (useconds_t)actor_slow());
		REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, NULL, 1500 * actor_slow()),
			SLMPM_EDEAD, "rank 2");
	} else {
		REFUSED(slmpm_barrier(crew->group[0], PATIENCE), SLMPM_EDEAD, "rank 2");
	}
	OK(slmpm_group_shrink(crew->group[0], PATIENCE));
}

/* What is sent ends, too. */
static void sends_end(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew, NULL);
	static char text[1 << 20];
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == crew->victim)
		die();
	if (rank == 0) {
		OK(slmpm_overlay_send(o, 2, 0, text, sizeof(text), NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
		CHECK(done.status == -SLMPM_EDEAD && done.imm == 2, "%d, rank %u", done.status,
		      done.imm);
	} else {
		REFUSED(slmpm_overlay_recv(o, 0, SLMPM_ANY_STREAM, NULL, 0, NULL, PATIENCE),
			SLMPM_EDEAD, "rank 2");
	}
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* ---- those that do not come ------------------------------------------------------------------ */

static void late(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(3);
	slmpm_overlay o;
	char byte;

	if (rank == 0) { /* its neighbour has laid it, and gives it up then */
		OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
		REFUSED(slmpm_overlay_recv(o, 2, 0, &byte, 1, NULL, PATIENCE), SLMPM_ECLOSED,
			"rank 1");
		OK(slmpm_overlay_close(o, PATIENCE));
	}
	if (rank == 1)
		REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, NULL, SHORT), SLMPM_ETIMEOUT,
			"rank 2");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == 2) /* it counts there all the same */
		REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE), SLMPM_ECLOSED,
			"rank 1");
	OK(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE));
	REFUSED(slmpm_overlay_recv(o, 0, 0, &byte, 1, NULL, 0), SLMPM_EAGAIN, "rank 0");
	if (rank != 1) /* 1 has not come, and passes on what 0 and 2 send */
		REFUSED(slmpm_overlay_close(o, SHORT), SLMPM_ETIMEOUT, "not all nodes");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void differ(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(2);
	const struct slmpm_overlay_options options = {.size = sizeof(options),
						      .buffers = rank ? 2 : 3};
	slmpm_overlay o;

	REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, &options, PATIENCE), SLMPM_EINVAL,
		"another one");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

static void differ_in_length(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(2);
	const struct slmpm_overlay_options options = {.size = sizeof(options),
						      .message_max = rank ? 100 : 200};
	slmpm_overlay o;

	REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, &options, PATIENCE), SLMPM_EINVAL,
		"another one");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

#define TIMES 20

/* One tries again and again, and the other comes then: as often. */
static void retries(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(2);
	slmpm_overlay o;

	for (int i = 0; rank == 0 && i < TIMES; i++)
		REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, NULL, i ? 1 : SHORT),
			SLMPM_ETIMEOUT, "rank 1");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	for (int i = 0; rank == 1 && i < TIMES; i++)
		REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, NULL, PATIENCE), SLMPM_ECLOSED,
			"rank 0");
	OK(slmpm_overlay_close(laid(crew, NULL), PATIENCE));
}

/* 2 dies while 0 is stopped, and its link is full: 1 closes the network, and 0 learns it yet. */
static void is_stopped(const struct crew *crew, int rank)
{
	const struct slmpm_overlay_options options = {.size = sizeof(options),
						      .buffers = SLMPM_OVERLAY_BUFFERS,
						      .packet = 16000,
						      .message_max = 16 << 20};
	slmpm_overlay o = laid(crew, &options);
	struct slmpm_overlay_info info = {.size = sizeof(info)};
	int64_t before = actor_now_ms();
	char *text = calloc(1, options.message_max);
	slmpm_req req;

	CHECK(text, "no memory");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == crew->victim) {
		usleep(300000 * (useconds_t)actor_slow());
		(void)raise(SIGKILL);
	}
	if (rank == 1) {
		usleep(50000);
		OK(slmpm_overlay_send(o, 0, 0, text, options.message_max, NULL, &req));
		while (!info.status && actor_now_ms() - before < PATIENCE)
			OK(slmpm_overlay_query(o, &info));
		EXPECT(info.status, -SLMPM_EDEAD);
		before = actor_now_ms();
		OK(slmpm_overlay_close(o, 5000 * actor_slow()));
		CHECK(actor_now_ms() - before < 2000 * actor_slow(), "it took long");
		(void)kill(getppid(), SIGCONT);
	} else {
		(void)raise(SIGSTOP);
		REFUSED(slmpm_overlay_recv(o, 1, 0, text, options.message_max, NULL, PATIENCE),
			SLMPM_EDEAD, "rank 2");
		OK(slmpm_overlay_close(o, PATIENCE));
	}
	free(text);
}

/* One ends its context, its group with it, while the other waits. */
static void leaves(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew, NULL);

	OK(slmpm_barrier(crew->group[0], PATIENCE));
	if (rank == 0)
		REFUSED(slmpm_overlay_recv(o, 1, 0, NULL, 0, NULL, PATIENCE), SLMPM_ECLOSED,
			"rank 1");
	else
		OK(slmpm_shut(crew->ctx, PATIENCE));
	if (rank)
		_exit(0);
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* ---- full ------------------------------------------------------------------------------------ */

/* 0 sends to 2, which takes nothing: what has room in its memory and in the buffers goes. */
static void full(const struct crew *crew, int rank)
{
	const struct slmpm_overlay_options options = {.size = sizeof(options),
						      .buffers = 2,
						      .packet = 128,
						      .unread_max = 1000,
						      .message_max = 500};
	slmpm_overlay o = laid(crew, &options);
	struct slmpm_overlay_info info = {.size = sizeof(info)};
	struct slmpm_overlay_message m = {.size = sizeof(m)};
	const struct slmpm_how soon = {.size = sizeof(soon), .timeout_ms = SHORT};
	char text[500] = {0};
	int sent = 0, rc = 0;

	if (rank == 0) {
		REFUSED(slmpm_overlay_send(o, 2, 0, text, 501, NULL, NULL), SLMPM_ELIMIT, "500");
		while (rc == 0 && sent < 100) {
			text[0] = (char)sent;
			rc = slmpm_overlay_send(o, 2, 0, text, 500, &soon, NULL);
			sent += rc == 0;
		}
		EXPECT(rc, -SLMPM_ETIMEOUT);
		CHECK(strstr(slmpm_error_detail(), "rank 2"), "%s", slmpm_error_detail());
		CHECK(sent >= 3 && sent <= 5, "%d messages", sent);
	} else if (rank == 1) {
		EXPECT(slmpm_overlay_recv(o, 0, 0, text, 500, NULL, 3 * SHORT), -SLMPM_ETIMEOUT);
	}
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	OK(slmpm_broadcast(crew->group[0], &sent, 1, SLMPM_INT32, 0, PATIENCE));
	if (rank == 2) {
		OK(slmpm_overlay_query(o, &info));
		CHECK(info.unread == 1000 && info.held[0] == 2, "%llu bytes, %u packets",
		      (unsigned long long)info.unread, info.held[0]);
		REFUSED(slmpm_overlay_recv(o, 0, 0, text, 499, &m, PATIENCE), SLMPM_ETRUNC, "500");
		CHECK(m.len == 500 && m.source == 0, "%llu bytes", (unsigned long long)m.len);
		for (int i = 0; i < sent; i++) {
			EXPECT(slmpm_overlay_recv(o, 0, 0, text, 500, NULL, PATIENCE), 500);
			CHECK(text[0] == i, "message %d", text[0]);
		}
	}
	OK(slmpm_overlay_close(o, PATIENCE));
}

/* To itself, by streams; and parts of an exchange that are longer than their places. */
static void own(const struct crew *crew, int rank)
{
	slmpm_overlay o = laid(crew, NULL);
	struct slmpm_iov out[SLMPM_NETWORK_LINKS] = {{0}}, in[SLMPM_NETWORK_LINKS] = {{0}};
	struct slmpm_how how = {.size = sizeof(how), .cookie = 5};
	struct slmpm_done done;
	char text[8] = "1234567";
	slmpm_req req;

	OK(slmpm_overlay_send(o, (uint32_t)rank, 3, "three", 6, NULL, NULL));
	OK(slmpm_overlay_send(o, (uint32_t)rank, 4, "four", 5, NULL, &req));
	EXPECT(slmpm_wait(&req, 1, &done, 0), 0);
	EXPECT(slmpm_overlay_recv(o, SLMPM_OVERLAY_ANY, 4, text, 8, NULL, 0), 5);
	EXPECT(slmpm_overlay_recv(o, (uint32_t)rank, 3, text, 8, NULL, 0), 6);
	CHECK(!strcmp(text, "three"), "%s", text);
	OK(slmpm_cq_create(crew->ctx, &how.cq));
	OK(slmpm_overlay_send(o, (uint32_t)!rank, 0, text, 6, &how, NULL));
	EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == 5 && done.len == 6 && done.op == SLMPM_OP_SEND, "cookie %llu",
	      (unsigned long long)done.cookie);
	EXPECT(slmpm_overlay_recv(o, (uint32_t)!rank, 0, text, 8, NULL, PATIENCE), 6);
	out[rank] = (struct slmpm_iov){text, 6};
	in[rank] = (struct slmpm_iov){text, 3};
	REFUSED(slmpm_overlay_exchange(o, out, in, PATIENCE), SLMPM_ETRUNC, "6 bytes");
	EXPECT(in[rank].len, 3);
	OK(slmpm_overlay_close(o, PATIENCE));
	OK(slmpm_cq_destroy(how.cq));
}

/* ---- what is refused ------------------------------------------------------------------------ */

/* No more to itself than it may leave unread: none else would take it meanwhile. */
static void own_unread(const struct crew *crew, int rank)
{
	const struct slmpm_overlay_options options = {.size = sizeof(options), .unread_max = 1000};
	struct slmpm_overlay_info info = {.size = sizeof(info)};
	slmpm_overlay o = laid(crew, &options);
	const uint32_t self = (uint32_t)rank;
	static char data[2000];
	slmpm_req req = {0};

	OK(slmpm_overlay_send(o, self, 0, data, 600, NULL, NULL));
	REFUSED(slmpm_overlay_send(o, self, 0, data, 600, NULL, NULL), SLMPM_ELIMIT, "unread");
	REFUSED(slmpm_overlay_send(o, self, 0, data, 600, NULL, &req), SLMPM_ELIMIT, "unread");
	OK(slmpm_overlay_query(o, &info));
	CHECK(!req.id && info.unread == 600, "%llu are unread", (unsigned long long)info.unread);
	EXPECT(slmpm_overlay_recv(o, self, 0, data, sizeof(data), NULL, 0), 600);
	/* Nor more of those without bytes. */
	for (int k = 0; k < 1000 / 64; k++)
		OK(slmpm_overlay_send(o, self, 0, NULL, 0, NULL, NULL));
	REFUSED(slmpm_overlay_send(o, self, 0, NULL, 0, NULL, NULL), SLMPM_ELIMIT, "unread");
	for (int k = 0; k < 1000 / 64; k++)
		EXPECT(slmpm_overlay_recv(o, self, 0, data, sizeof(data), NULL, 0), 0);
	/* One may be as long as any. */
	OK(slmpm_overlay_send(o, self, 0, data, sizeof(data), NULL, NULL));
	EXPECT(slmpm_overlay_recv(o, self, 0, data, sizeof(data), NULL, 0), (int)sizeof(data));
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void refused(const struct crew *crew, int rank)
{
	const struct slmpm_network net = line_of(2), other = line_of(3);
	struct slmpm_overlay_options options = {.size = sizeof(options), .packet = 15};
	struct slmpm_iov none[SLMPM_NETWORK_LINKS] = {{0}};
	struct slmpm_overlay_info info = {.size = 0};
	slmpm_overlay o, bad = {77};
	char byte = 0;

	REFUSED(slmpm_overlay_open(&o, crew->group[0], &other, NULL, 0), SLMPM_EINVAL, "3 nodes");
	REFUSED(slmpm_overlay_open(&o, crew->group[0], NULL, NULL, 0), SLMPM_EINVAL, "open");
	REFUSED(slmpm_overlay_open(NULL, crew->group[0], &net, NULL, 0), SLMPM_EINVAL, "handle");
	REFUSED(slmpm_overlay_open(&o, crew->group[0], &net, &options, 0), SLMPM_EINVAL, "15");
	REFUSED(slmpm_overlay_query(bad, &info), SLMPM_EHANDLE, "network");
	REFUSED(slmpm_overlay_close(bad, 0), SLMPM_EHANDLE, "network");
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	o = laid(crew, NULL);
	REFUSED(slmpm_overlay_query(o, &info), SLMPM_EINVAL, "query");
	REFUSED(slmpm_overlay_send(o, 2, 0, &byte, 1, NULL, NULL), SLMPM_EINVAL, "rank 2");
	REFUSED(slmpm_overlay_send(o, 0, UINT32_MAX, &byte, 1, NULL, NULL), SLMPM_EINVAL, "stream");
	REFUSED(slmpm_overlay_send(o, 0, 0, NULL, 1, NULL, NULL), SLMPM_EINVAL, "data");
	REFUSED(slmpm_overlay_recv(o, 2, 0, &byte, 1, NULL, 0), SLMPM_EINVAL, "rank 2");
	REFUSED(slmpm_overlay_recv(o, 0, 0, NULL, 1, NULL, 0), SLMPM_EINVAL, "place");
	REFUSED(slmpm_overlay_exchange(o, NULL, none, 0), SLMPM_EINVAL, "nothing to send");
	none[rank].len = 1;
	REFUSED(slmpm_overlay_exchange(o, none, none, 0), SLMPM_EINVAL, "no memory");
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void play(const char *what, int n, crew_body *body, int victim)
{
	const struct crew crew = {.members = n,
				  .groups = 1,
				  .body = body,
				  .victim = victim,
				  .code = victim ? -SIGKILL : 0};
	int64_t before = actor_now_ms();

	crew_run(&crew, 40);
	printf("%s: %lld ms\n", what, (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	play("one dies", 4, dies, 2);
	play("the others go on", 4, goes_on, 2);
	play("it is laid without one", 4, lays_without, 2);
	play("what is sent ends", 3, sends_end, 2);
	play("one is late", 3, late, 0);
	play("they differ", 2, differ, 0);
	play("they differ in length", 2, differ_in_length, 0);
	play("one tries again", 2, retries, 0);
	play("one is stopped", 3, is_stopped, 2);
	play("one leaves", 2, leaves, 0);
	play("full", 3, full, 0);
	play("own", 2, own, 0);
	play("own, unread", 2, own_unread, 0);
	play("refused", 2, refused, 0);
	return 0;
}
