/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * Every call that has a timeout, with 0 and with a short one, against a peer that is stopped: who
 * only tries is told SLMPM_EAGAIN, who waited SLMPM_ETIMEOUT, and both of whom is suspect. Over
 * both fabrics, spawned and connected. try_once.sh holds the lists against the headers.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define SHORT 5         /* ms */
#define WORDS 512       /* of a mirror */
#define LONG  (2 << 20) /* a loan in an area, and what no ring takes */

enum { KEY = 1, GROWING, FILL, NOTHING };

static char url[64], door[64];
static uint64_t words[WORDS], more_words[WORDS];
static unsigned char bytes[LONG];

/* ---- the peer, until it is stopped ---------------------------------------------------------- */

static void prepare(slmpm_peer host)
{
	static const struct slmpm_how part = {.size = sizeof(part), .flags = SLMPM_PART};
	slmpm_listener listener;
	struct slmpm_key key;
	slmpm_mirror mirror;
	slmpm_rmem rmem;
	slmpm_mem mem;
	void *at;

	OK(slmpm_mem_alloc((slmpm_ctx){0}, LONG, SLMPM_READ_WRITE, &mem, &at));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	OK(slmpm_mem_accept(host, &rmem, PATIENCE));
	OK(slmpm_mirror_create((slmpm_ctx){0}, words, sizeof(words), NULL, &mirror));
	OK(slmpm_mirror_attach(mirror, host, 1, SLMPM_MIRROR_FOLLOW | SLMPM_MIRROR_BOTH, PATIENCE));
	OK(slmpm_listen(&listener, (slmpm_ctx){0}, door));
	OK(slmpm_loan(host, GROWING, LONG, &at, PATIENCE));
	OK(slmpm_commit(host, at, 1000, &part));
	for (;;) /* until it is killed */
		(void)slmpm_recv(host, NOTHING, NULL, 0, NULL, PATIENCE);
}

static int role_peer(slmpm_peer host, char **argv)
{
	snprintf(door, sizeof(door), "%s", argv[0]);
	prepare(host);
	return 0;
}

static int call(void *unused)
{
	slmpm_peer host;

	(void)unused;
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	prepare(host);
	return 0;
}

/* ---- this side ------------------------------------------------------------------------------ */

static slmpm_ctx ctx;
static slmpm_peer peer;
static slmpm_listener listener;
static slmpm_mem mem, shared;
static slmpm_rmem rmem;
static slmpm_mirror mirror, lone; /* the peer has nothing for this one */
static slmpm_ctr ctr;
static slmpm_wq queue; /* an entry waits */
static slmpm_cq cq;
static slmpm_req req, queued, in_flight;
static const void *growing;
static void *loan;
static struct slmpm_done done;
static struct slmpm_how how = {.size = sizeof(how)};
static struct slmpm_iov piece = {bytes, LONG / 2}, small = {bytes, 64};
static const struct slmpm_span span = {0, 64};
static uint64_t sequence;
static bool maps;

/* With .timeout_ms. */
static const struct slmpm_how *within(int timeout_ms)
{
	how.timeout_ms = timeout_ms;
	return &how;
}

#define CALL(name, call)                                                                           \
	static int64_t try_##name(int timeout_ms)                                                  \
	{                                                                                          \
		return call;                                                                       \
	}

CALL(accept, slmpm_accept(listener, &(slmpm_peer){0}, timeout_ms))
CALL(connect, slmpm_connect(&(slmpm_peer){0}, ctx, door, timeout_ms))
CALL(join, slmpm_join(peer, NULL, timeout_ms))
CALL(send, slmpm_send(peer, FILL, bytes, LONG / 2, timeout_ms))
CALL(recv, slmpm_recv(peer, NOTHING, bytes, 8, NULL, timeout_ms))
CALL(recv_any, slmpm_recv(slmpm_any(ctx), NOTHING, bytes, 8, NULL, timeout_ms))
CALL(sendv, slmpm_sendv(peer, FILL, &piece, 1, within(timeout_ms), NULL))
CALL(recvv, slmpm_recvv(peer, NOTHING, &piece, 1, within(timeout_ms), NULL))
CALL(send_burst, slmpm_send_burst(peer, FILL, &small, 1, timeout_ms))
CALL(recv_burst, slmpm_recv_burst(peer, NOTHING, &small, 1, NULL, timeout_ms))
CALL(probe, slmpm_probe(peer, NOTHING, &done, timeout_ms))
CALL(wait, slmpm_wait(&req, 1, &done, timeout_ms))
CALL(commit, slmpm_commit(peer, loan, 1000, within(timeout_ms)))
CALL(hold, slmpm_hold(peer, NOTHING, &(const void *){NULL}, NULL, timeout_ms))
CALL(more, slmpm_more(peer, growing, 1000, &done, timeout_ms))
CALL(mem_share, slmpm_mem_share(mem, peer, SLMPM_READ, timeout_ms))
CALL(mem_accept, slmpm_mem_accept(peer, &(slmpm_rmem){0}, timeout_ms))
CALL(mem_revoke, slmpm_mem_revoke(mem, peer, timeout_ms))
CALL(mem_destroy, slmpm_mem_destroy(shared, timeout_ms))
CALL(put, slmpm_put(rmem, 0, bytes, 64, within(timeout_ms), NULL))
CALL(get, slmpm_get(rmem, 0, bytes, 64, within(timeout_ms), NULL))
CALL(putv, slmpm_putv(rmem, &span, 1, &small, 1, within(timeout_ms), NULL))
CALL(getv, slmpm_getv(rmem, &span, 1, &small, 1, within(timeout_ms), NULL))
CALL(atomic, slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, NULL, within(timeout_ms), NULL))
CALL(am, slmpm_am(peer, 1, NULL, 0, bytes, 64, within(timeout_ms), NULL))
CALL(flush, slmpm_flush(peer, timeout_ms))
CALL(fifo_take, slmpm_fifo_take(peer, &(struct slmpm_fifo){0}, timeout_ms))
CALL(mirror_attach, slmpm_mirror_attach(lone, peer, 9, SLMPM_MIRROR_LEAD, timeout_ms))
CALL(mirror_begin, slmpm_mirror_begin(mirror, timeout_ms))
CALL(mirror_flush, slmpm_mirror_flush(mirror, timeout_ms))
CALL(mirror_wait, slmpm_mirror_wait(mirror, peer, &sequence, timeout_ms))
CALL(mirror_snapshot, slmpm_mirror_snapshot(mirror, peer, &span, 1, bytes, &sequence, timeout_ms))
CALL(ctr_wait, slmpm_ctr_wait(ctr, SLMPM_ALL, timeout_ms))
CALL(cq_wait, slmpm_cq_wait(cq, &done, 1, timeout_ms))
CALL(wq_drain, slmpm_wq_drain(queue, timeout_ms))
CALL(next_event,
     slmpm_next_event(ctx, &(struct slmpm_event){.size = sizeof(struct slmpm_event)}, timeout_ms))

/* One is open at a time. */
static int64_t try_loan(int timeout_ms)
{
	if (loan)
		OK(slmpm_abort(peer, loan));
	loan = NULL;
	return slmpm_loan(peer, FILL, 64, &(void *){NULL}, timeout_ms);
}

enum outcome {
	LATE,         /* SLMPM_EAGAIN, SLMPM_ETIMEOUT */
	NOTHING_CAME, /* 0 both times */
	MAPPED,       /* 0 where the memory is mapped, else late */
	GOES,         /* 0: it waits for nobody here (revoke_late.c has who must) */
};

static const struct trial {
	const char *call;
	int64_t (*try)(int timeout_ms);
	enum outcome outcome;
	const char *says; /* NULL: that the peer is suspect */
} trials[] = {
	{"slmpm_accept", try_accept, LATE, "shm:"},
	{"slmpm_connect", try_connect, LATE, "shm:"},
	{"slmpm_join", try_join, LATE, NULL},
	{"slmpm_recv", try_recv, LATE, NULL},
	{"slmpm_recv", try_recv_any, LATE, NULL},
	{"slmpm_recvv", try_recvv, LATE, NULL},
	{"slmpm_recv_burst", try_recv_burst, LATE, NULL},
	{"slmpm_probe", try_probe, NOTHING_CAME, NULL},
	{"slmpm_next_event", try_next_event, NOTHING_CAME, NULL},
	{"slmpm_hold", try_hold, LATE, NULL},
	{"slmpm_more", try_more, LATE, NULL},
	{"slmpm_wait", try_wait, LATE, NULL},
	{"slmpm_send", try_send, LATE, NULL},
	{"slmpm_sendv", try_sendv, LATE, NULL},
	{"slmpm_send_burst", try_send_burst, LATE, NULL},
	{"slmpm_commit", try_commit, LATE, NULL},
	{"slmpm_loan", try_loan, LATE, NULL},
	{"slmpm_mem_share", try_mem_share, LATE, NULL},
	{"slmpm_mem_accept", try_mem_accept, LATE, NULL},
	{"slmpm_mem_revoke", try_mem_revoke, GOES, ""},
	{"slmpm_mem_destroy", try_mem_destroy, LATE, NULL},
	{"slmpm_put", try_put, MAPPED, NULL},
	{"slmpm_get", try_get, MAPPED, NULL},
	{"slmpm_putv", try_putv, MAPPED, NULL},
	{"slmpm_getv", try_getv, MAPPED, NULL},
	{"slmpm_atomic", try_atomic, MAPPED, NULL},
	{"slmpm_am", try_am, LATE, NULL},
	{"slmpm_flush", try_flush, MAPPED, NULL},
	{"slmpm_fifo_take", try_fifo_take, LATE, NULL},
	{"slmpm_mirror_attach", try_mirror_attach, LATE, NULL},
	{"slmpm_mirror_flush", try_mirror_flush, LATE, NULL},
	{"slmpm_mirror_begin", try_mirror_begin, LATE, NULL},
	{"slmpm_mirror_wait", try_mirror_wait, LATE, NULL},
	{"slmpm_mirror_snapshot", try_mirror_snapshot, LATE, NULL},
	{"slmpm_ctr_wait", try_ctr_wait, LATE, NULL},
	{"slmpm_cq_wait", try_cq_wait, LATE, NULL},
	{"slmpm_wq_drain", try_wq_drain, LATE, NULL},
	/* These end what they end, and tell what was lost, at 0 as well: at the end of this test. */
	{"slmpm_close", NULL, LATE, NULL},
	{"slmpm_shut", NULL, LATE, NULL},
	/* A group needs answers (group_ends.c); over TCP there is none. */
	{"slmpm_group_create", NULL, LATE, NULL},
	{"slmpm_group_join", NULL, LATE, NULL},
	{"slmpm_group_peer", NULL, LATE, NULL},
	{"slmpm_group_split", NULL, LATE, NULL},
	{"slmpm_group_alloc", NULL, LATE, NULL},
	{"slmpm_group_meet", NULL, LATE, NULL},
	{"slmpm_group_shrink", NULL, LATE, NULL},
	{"slmpm_group_drive", NULL, LATE, NULL},
	{"slmpm_group_serve", NULL, GOES, NULL},  /* how operations end that come later */
	{"slmpm_overlay_open", NULL, LATE, NULL}, /* overlay_ends.c */
	{"slmpm_overlay_close", NULL, LATE, NULL},
	{"slmpm_overlay_send", NULL, LATE, NULL},
	{"slmpm_overlay_recv", NULL, LATE, NULL},
	{"slmpm_overlay_exchange", NULL, LATE, NULL},
	{"slmpm_overlay_wait", NULL, LATE, NULL},
	{"slmpm_put_all", NULL, LATE, NULL},
	{"slmpm_collect", NULL, LATE, NULL},
	{"slmpm_collective", NULL, LATE, NULL},
	{"slmpm_collective_start", NULL, LATE, NULL},
	{"slmpm_prepared_start", NULL, LATE, NULL},
	{"slmpm_barrier", NULL, LATE, NULL},
	{"slmpm_broadcast", NULL, LATE, NULL},
	{"slmpm_reduce", NULL, LATE, NULL},
	{"slmpm_allreduce", NULL, LATE, NULL},
	{"slmpm_scatter", NULL, LATE, NULL},
	{"slmpm_gather", NULL, LATE, NULL},
	{"slmpm_allgather", NULL, LATE, NULL},
	{"slmpm_alltoall", NULL, LATE, NULL},
	{"slmpm_reduce_scatter", NULL, LATE, NULL},
	{"slmpm_scan", NULL, LATE, NULL},
	{"slmpm_exscan", NULL, LATE, NULL},
	/* A store into this process's memory waits for nobody. */
	{"slmpm_fifo_store", NULL, LATE, NULL},
};

static void expect_code(const struct trial *t, int64_t rc, int timeout_ms)
{
	const char *says = t->says ? t->says : "suspect", *detail = slmpm_error_detail();
	bool late = t->outcome == LATE || (t->outcome == MAPPED && !maps);
	int64_t want = !late ? 0 : timeout_ms ? -SLMPM_ETIMEOUT : -SLMPM_EAGAIN;

	CHECK(rc == want, "%s within %d ms: %lld, expected %lld (%s)", t->call, timeout_ms,
	      (long long)rc, (long long)want, detail);
	CHECK(!late || strstr(detail, says), "%s within %d ms: \"%s\"", t->call, timeout_ms,
	      detail);
}

static void drop_events(void)
{
	while (try_next_event(0) == 1)
		;
}

static void both_times(const struct trial *t)
{
	drop_events();
	expect_code(t, t->try(0), 0);
	drop_events();
	expect_code(t, t->try(SHORT), SHORT);
}

/* A closed one can still be joined. */
static void try_all(bool closed)
{
	for (const struct trial *t = trials; t < trials + sizeof(trials) / sizeof(trials[0]); t++)
		if (t->try && closed == (t->try == try_join))
			both_times(t);
}

/* All that the calls need is there while the peer runs. */
static void set_up(void)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct slmpm_how notified = {.size = sizeof(notified)};
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_wr wait = {.size = sizeof(wait), .op = SLMPM_OP_WAIT, .value = 100};
	struct slmpm_key key;
	void *at;

	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &cq));
	wait.ctr = ctr;
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &queue));
	EXPECT(slmpm_post(queue, &wait, 1), 1);
	EXPECT(slmpm_recv(peer, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, &rmem));
	OK(slmpm_rmem_query(rmem, &info));
	maps = !strcmp(info.path, "map");
	OK(slmpm_mem_alloc(ctx, LONG, SLMPM_READ_WRITE, &mem, &at));
	OK(slmpm_mem_alloc(ctx, 4096, SLMPM_READ_WRITE, &shared, &at));
	OK(slmpm_mem_share(shared, peer, SLMPM_READ, PATIENCE));
	OK(slmpm_mirror_create(ctx, words, sizeof(words), NULL, &mirror));
	OK(slmpm_mirror_create(ctx, more_words, sizeof(more_words), NULL, &lone));
	OK(slmpm_mirror_attach(mirror, peer, 1, SLMPM_MIRROR_LEAD | SLMPM_MIRROR_BOTH, PATIENCE));
	EXPECT(slmpm_hold(peer, GROWING, &growing, &done, PATIENCE), 1000);
	notified.ctr = ctr;
	OK(slmpm_recvv(peer, NOTHING, &small, 1, &notified, NULL));
	notified.ctr = (slmpm_ctr){0};
	notified.cq = cq;
	OK(slmpm_recvv(peer, NOTHING, &small, 1, &notified, NULL));
	OK(slmpm_recvv(peer, NOTHING, &small, 1, NULL, &req));
	OK(slmpm_loan(peer, FILL, LONG, &loan, PATIENCE));
}

static void stop(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int64_t rc;

	OK(slmpm_peer_query(peer, &info));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	do
		rc = slmpm_send(peer, FILL, bytes, 20000, SHORT);
	while (rc == 0);
	do /* to the last segment */
		rc = slmpm_send(peer, FILL, bytes, 8, SHORT);
	while (rc == 0);
	EXPECT(rc, -SLMPM_ETIMEOUT);
	OK(slmpm_sendv(peer, FILL, &piece, 1, NULL, &queued)); /* a commit stays behind it */
	OK(slmpm_mirror_set(mirror, words, 1, sizeof(words)));
	OK(slmpm_put(rmem, 0, bytes, 64, NULL, &in_flight));
}

static int tries(void *spawn)
{
	static const struct slmpm_spawn_options options = {.size = sizeof(options)};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	pid_t caller = 0;

	snprintf(url, sizeof(url), "shm:try-%d", (int)getpid());
	snprintf(door, sizeof(door), "%.40s-door", url);
	OK(slmpm_default(&ctx));
	OK(slmpm_listen(&listener, ctx, url));
	if (spawn) {
		peer = actor_spawn_with(&options, "peer", door, NULL);
	} else {
		caller = child_start(call, NULL, 50);
		OK(slmpm_accept(listener, &peer, PATIENCE));
	}
	set_up();
	stop();
	try_all(false);
	OK(slmpm_peer_query(peer, &info));
	EXPECT(slmpm_close(peer, 0), -SLMPM_ETIMEOUT);
	CHECK(strstr(slmpm_error_detail(), "stopped"), "\"%s\"", slmpm_error_detail());
	if (spawn)
		try_all(true);
	OK(kill(info.pid, SIGKILL));
	if (spawn)
		EXPECT(slmpm_join(peer, NULL, PATIENCE), 128 + SIGKILL);
	else
		(void)child_wait(caller);
	OK(slmpm_shut(ctx, 0));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"peer", role_peer}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_RING_SEGMENTS", "1024"); /* full before the credit is used up */
	for (int i = 0; i < 2; i++) {
		settings_one_link(fabrics[i]);
		settings_run("to a spawned peer", tries, "spawned");
		settings_run("to a connected one", tries, NULL);
	}
	return 0;
}
