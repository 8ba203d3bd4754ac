/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Work requests for peers by address: why one fails, and that others go on meanwhile; what is not
 * closed; answers; a server that is killed and comes again; an application that sleeps.
 */
#include <pthread.h>
#include <signal.h>

#include "tests/api/peer_at.h"
#include "tests/lib/message.h"

#define NOWHERE "shm:nobody-is-here"

static slmpm_ctx ctx;
static slmpm_cq cq;
static slmpm_wq wq;
static slmpm_peer peers[EACH];
static struct word words[2 * EACH];
static struct slmpm_iov pieces[2 * EACH];

static void begin_with(const struct slmpm_options *options, uint32_t channels)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .channels = channels, .depth = 1024};

	OK(slmpm_open(&ctx, options));
	OK(slmpm_cq_create(ctx, &cq));
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
}

static void begin(uint32_t channels)
{
	begin_with(NULL, channels);
}

static void name(int count)
{
	for (int i = 0; i < count; i++)
		OK(slmpm_peer_at(&peers[i], ctx, world->urls[i]));
}

static void post(struct slmpm_wr wr)
{
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

/* The N-th word of all, number NUMBER of address TO. */
static void send_word(int n, uint32_t to, uint32_t number)
{
	words[n] = (struct word){to, number};
	pieces[n] = (struct slmpm_iov){&words[n], sizeof(words[n])};
	post(word_to(peers[to], to, &pieces[n]));
}

static struct slmpm_done next(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status, "entry of %llu: %s instead of %s",
	      (unsigned long long)done.cookie, slmpm_strerror(done.status), slmpm_strerror(status));
	return done;
}

static struct slmpm_peer_at_info look(slmpm_peer peer)
{
	struct slmpm_peer_at_info info = {.size = sizeof(info)};

	OK(slmpm_peer_at_query(peer, &info));
	return info;
}

static slmpm_peer connected(slmpm_peer peer)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (!look(peer).peer.id) {
		CHECK(actor_now_ms() < until, "it is not connected: %s", look(peer).reason);
		actor_nap(ctx);
	}
	return look(peer).peer;
}

static void wait_for_end(slmpm_peer peer)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (look(peer).peer.id) {
		CHECK(actor_now_ms() < until, "it is still connected");
		actor_nap(ctx);
	}
}

static void nothing_ends(void)
{
	int64_t until = actor_now_ms() + 50;
	struct slmpm_done done;

	do
		EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
	while (actor_now_ms() < until);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void refuse_others(slmpm_peer at)
{
	struct slmpm_wr wr = word_to(at, 0, NULL);
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE, .cq = cq};
	struct slmpm_iov piece = {words, 8};
	slmpm_wq receives;
	uint32_t word;

	wr.iov_count = 0;
	for (uint32_t op = SLMPM_OP_SEND; op <= SLMPM_OP_PIPE; op++) {
		wr.op = op;
		wr.iov = op == SLMPM_OP_PIPE ? &piece : NULL;
		wr.iov_count = op == SLMPM_OP_PIPE;
		wr.value = op == SLMPM_OP_PIPE;
		wr.from = slmpm_any(ctx);
		if (op == SLMPM_OP_PIPE)
			REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "by its address");
	}
	wr.peer = slmpm_any(ctx);
	wr.from = at;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "names one peer");
	o.peer = at;
	REFUSED(slmpm_wq_create(ctx, &o, &receives), SLMPM_EHANDLE, "by its address");
	REFUSED(slmpm_send(at, 0, &word, 4, 0), SLMPM_EHANDLE, "by its address");
	EXPECT(slmpm_recv(at, 0, &word, 4, NULL, 0), -SLMPM_EHANDLE);
	EXPECT(slmpm_peer_query(at,
				&(struct slmpm_peer_info){.size = sizeof(struct slmpm_peer_info)}),
	       -SLMPM_EHANDLE);
}

/* In a child of fork, while one is connected and another connects. */
static int forked(void *arg)
{
	struct slmpm_peer_at_info info = {.size = sizeof(info)};

	(void)arg;
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_peer_at_query(peers[i], &info), -SLMPM_EFORKED);
		EXPECT(slmpm_close(peers[i], 0), -SLMPM_EFORKED);
	}
	OK(slmpm_peer_at(&peers[0], (slmpm_ctx){0}, NOWHERE)); /* a context of its own */
	return 0;
}

/* Why, to its last word: no process is reached there. */
static void tells_all_of_it(void)
{
	static const char far[] = "tcp://192.0.2.1:5#00112233445566778899aabbccddeeff";
	slmpm_peer at, none;
	char detail[256];

	EXPECT(slmpm_connect(&none, ctx, far, 0), -SLMPM_EACCES);
	snprintf(detail, sizeof(detail), "%s", slmpm_error_detail());
	CHECK(strlen(detail) > 128, "too short: %s", detail);
	OK(slmpm_peer_at(&at, ctx, far));
	pieces[0] = (struct slmpm_iov){&words[0], sizeof(words[0])};
	post(word_to(at, 6, &pieces[0]));
	next(6, -SLMPM_EACCES);
	CHECK(!strcmp(look(at).reason, detail), "\"%s\", of \"%s\"", look(at).reason, detail);
	OK(slmpm_close(at, PATIENCE));
}

/* A dead letter does not keep others back, and stops its own channel alone. */
static int fails(void *arg)
{
	struct slmpm_peer_at_info info;
	struct slmpm_done done;
	slmpm_peer at, other;
	slmpm_ctx second;

	(void)arg;
	begin(8);
	name(2);
	OK(slmpm_peer_at(&at, ctx, NOWHERE));
	tells_all_of_it();
	REFUSED(slmpm_peer_at(&at, ctx, "usb:1"), SLMPM_EADDRESS, "usb:1");
	EXPECT(slmpm_peer_at(&at, ctx, NULL), -SLMPM_EADDRESS);
	EXPECT(slmpm_peer_at(NULL, ctx, NOWHERE), -SLMPM_EINVAL);
	EXPECT(slmpm_peer_at(&at, (slmpm_ctx){77}, NOWHERE), -SLMPM_EHANDLE);
	refuse_others(at);
	EXPECT(slmpm_peer_at_query(at, NULL), -SLMPM_EINVAL);
	words[0] = words[1] = (struct word){0, 0};
	pieces[0] = pieces[1] = (struct slmpm_iov){&words[0], sizeof(words[0])};
	post(word_to(at, 5, &pieces[0]));
	post(word_to(at, 5, &pieces[1]));
	EXPECT(slmpm_close(at, 0), -SLMPM_EBUSY);
	done = next(5, -SLMPM_ENOENT);
	CHECK(done.peer.id == at.id, "peer %llx", (unsigned long long)done.peer.id);
	next(5, -SLMPM_ECANCELED);
	info = look(at);
	CHECK(info.status == -SLMPM_ENOENT && strstr(info.reason, "nobody") &&
		      !strcmp(info.url, NOWHERE) && !info.connects,
	      "%d %s %s", info.status, info.reason, info.url);
	send_word(2, 1, 0);
	done = next(1, 0);
	info = look(peers[1]);
	CHECK(info.peer.id == done.peer.id && !info.status && info.connects == 1,
	      "%llx is connected, %llx was sent to", (unsigned long long)info.peer.id,
	      (unsigned long long)done.peer.id);
	OK(slmpm_wq_reset(wq));
	post(word_to(at, 5, &pieces[0]));
	(void)slmpm_progress(ctx);
	EXPECT(child_run(forked, NULL, 10), 0);
	next(5, -SLMPM_ENOENT);
	OK(slmpm_close(at, PATIENCE));
	EXPECT(slmpm_close(at, PATIENCE), -SLMPM_EHANDLE);
	EXPECT(slmpm_peer_at_query(at, &info), -SLMPM_EHANDLE);
	REFUSED(slmpm_peer_at_query(info.peer, &info), SLMPM_EINVAL, "not named by its address");
	OK(slmpm_close(peers[1], PATIENCE)); /* and its connection */
	EXPECT(slmpm_send(info.peer, 0, words, 4, 0), -SLMPM_EHANDLE);
	OK(slmpm_open(&second, NULL));
	OK(slmpm_peer_at(&other, second, NOWHERE));
	EXPECT(slmpm_post(wq,
			  &(struct slmpm_wr){.size = sizeof(struct slmpm_wr),
					     .op = SLMPM_OP_SEND,
					     .peer = other},
			  1),
	       -SLMPM_EINVAL);
	await_total(ctx, 1);
	OK(slmpm_shut(second, 0));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* One that takes in and does not answer: until the time is over, and others meanwhile. */
static int silent(void *pid)
{
	pid_t server = *(const pid_t *)pid;

	settings_set("SLMPM_HANDSHAKE_MS", "300");
	begin(8);
	name(EACH);
	CHECK(kill(server, SIGSTOP) == 0, "kill");
	send_word(0, 0, 0);
	/* Of the other server's. */
	OK(slmpm_peer_at(&peers[1], ctx, world->urls[EACH]));
	words[1] = (struct word){EACH, 0};
	pieces[1] = (struct slmpm_iov){&words[1], sizeof(words[1])};
	post(word_to(peers[1], 1, &pieces[1]));
	next(1, 0);
	next(0, -SLMPM_ETIMEOUT);
	CHECK(look(peers[0]).status == -SLMPM_ETIMEOUT, "%s", look(peers[0]).reason);
	CHECK(kill(server, SIGCONT) == 0, "kill");
	OK(slmpm_wq_reset(wq));
	send_word(0, 0, 0);
	next(0, 0);
	await_total(ctx, 2);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* It comes again at the same address. */
static int killed(void *pid)
{
	pid_t server = *(const pid_t *)pid;
	pid_t again;

	begin(8);
	OK(slmpm_peer_at(&peers[0], ctx, world->urls[2 * EACH]));
	words[0] = words[1] = (struct word){2 * EACH, 0};
	pieces[0] = pieces[1] = (struct slmpm_iov){&words[0], sizeof(words[0])};
	post(word_to(peers[0], 0, &pieces[0]));
	next(0, 0);
	await_total(ctx, 1);
	CHECK(kill(server, SIGKILL) == 0, "kill");
	wait_for_end(peers[0]);
	EXPECT(look(peers[0]).status, -SLMPM_EDEAD);
	post(word_to(peers[0], 0, &pieces[0]));
	next(0, -SLMPM_ENOENT);
	again = server_start(0, 2 * EACH, 1);
	OK(slmpm_wq_reset(wq));
	words[0].number = 1;
	post(word_to(peers[0], 0, &pieces[0]));
	next(0, 0);
	await_total(ctx, 2);
	CHECK(kill(again, SIGKILL) == 0, "kill");
	EXPECT(child_wait(again), -SIGKILL);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- one connection at a time ---------------------------------------------------------------- */

/* Neither unread, nor with a receive posted, nor held: it stays, and the other waits. */
static int stays(void *arg)
{
	struct slmpm_wr receive;
	struct word answer = {0};
	struct slmpm_iov place = {&answer, sizeof(answer)};
	const void *data;
	slmpm_peer first;

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "1");
	begin(8);
	name(4);
	receive = word_to(peers[0], 4, &place);
	receive.op = SLMPM_OP_RECV;
	post(receive); /* this, too, connects */
	first = connected(peers[0]);
	send_word(1, 1, 0);
	nothing_ends();
	CHECK(look(peers[0]).peer.id == first.id && !look(peers[1]).peer.id,
	      "the wrong one is connected");
	OK(slmpm_wq_cancel(wq, 1));
	next(4, -SLMPM_ECANCELED);
	next(1, 0);
	CHECK(!look(peers[0]).peer.id && look(peers[1]).peer.id, "the wrong one is connected");
	EXPECT(slmpm_send(first, 0, words, 4, 0), -SLMPM_EHANDLE);
	OK(slmpm_wq_reset(wq));

	send_word(2, 2, ANSWERED);
	first = next(2, 0).peer;
	EXPECT(slmpm_probe(first, 1, NULL, PATIENCE), 1);
	send_word(3, 3, 0);
	nothing_ends();
	EXPECT(slmpm_hold(first, 1, &data, NULL, PATIENCE), sizeof(answer));
	nothing_ends();
	OK(slmpm_release(first, data));
	next(3, 0);
	EXPECT(slmpm_release(first, data), -SLMPM_EHANDLE);
	await_total(ctx, 2);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* It is sent when this side has closed already, and the peer has not seen that: it is received. */
static int late(void *arg)
{
	struct word answer;
	slmpm_peer first;

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "1");
	begin(8);
	name(2);
	send_word(0, 0, LATE);
	first = next(0, 0).peer;
	while (!world->late)
		actor_nap(ctx);
	send_word(1, 1, 0);
	next(1, 0);
	CHECK(!look(peers[0]).peer.id && look(peers[1]).peer.id, "the wrong one is connected");
	EXPECT(slmpm_recv(first, 1, &answer, sizeof(answer), NULL, PATIENCE), sizeof(answer));
	EXPECT(answer.number, LATE);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* Questions to many, each with its answer: two connections. */
static int answers(void *arg)
{
	static struct word got[EACH];
	static struct slmpm_iov places[EACH];
	uint32_t ends[EACH] = {0};
	struct slmpm_done done;

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "2");
	begin(EACH);
	name(EACH);
	for (uint32_t i = 0; i < EACH; i++) {
		struct slmpm_wr receive;

		send_word((int)i, i, ANSWERED);
		places[i] = (struct slmpm_iov){&got[i], sizeof(got[i])};
		receive = word_to(peers[i], i, &places[i]);
		receive.op = SLMPM_OP_RECV;
		receive.stream = 1;
		post(receive);
	}
	for (int i = 0; i < 2 * EACH; i++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0, "%s", slmpm_strerror(done.status));
		ends[done.cookie]++;
	}
	for (uint32_t i = 0; i < EACH; i++)
		CHECK(ends[i] == 2 && got[i].address == i && got[i].number == ANSWERED,
		      "%u has no answer", i);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* Each is done when its handler has run. */
static int actives(void *arg)
{
	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "2");
	begin(EACH);
	name(EACH);
	for (uint32_t i = 0; i < EACH; i++) {
		struct slmpm_wr wr;

		words[i] = (struct word){i, 0};
		pieces[i] = (struct slmpm_iov){&words[i], sizeof(words[i])};
		wr = word_to(peers[i], i % 3, &pieces[i]);
		wr.op = SLMPM_OP_AM;
		wr.stream = 1;
		wr.flags = SLMPM_REMOTE;
		post(wr);
	}
	OK(slmpm_wq_drain(wq, PATIENCE * 2));
	EXPECT(world->total, EACH);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* A kept program, run again and again; what waits for a connection is cancelled. */
static int again(void *arg)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_KEPT};
	struct slmpm_wq_info info = {.size = sizeof(info)};
	slmpm_wq kept;

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "1");
	begin(8);
	name(8);
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &kept));
	for (uint32_t i = 0; i < 8; i++) {
		struct slmpm_wr wr;

		words[i] = (struct word){i, 0};
		pieces[i] = (struct slmpm_iov){&words[i], sizeof(words[i])};
		wr = word_to(peers[i], i % 2, &pieces[i]);
		EXPECT(slmpm_post(kept, &wr, 1), 1);
	}
	for (uint32_t run = 0; run < 5; run++) {
		if (run)
			OK(slmpm_wq_arm(kept));
		OK(slmpm_wq_drain(kept, PATIENCE));
		for (uint32_t i = 0; i < 8; i++)
			words[i].number++;
	}
	await_total(ctx, 40);
	CHECK(look(peers[7]).connects <= 5, "%llu connections",
	      (unsigned long long)look(peers[7]).connects);
	OK(slmpm_wq_destroy(kept));
	for (int i = 0; i < 4; i++) {
		send_word(8 + i, (uint32_t)i, 5);
		OK(slmpm_wq_cancel(wq, 0));
		OK(slmpm_wq_reset(wq));
	}
	OK(slmpm_wq_query(wq, &info));
	EXPECT(info.failed + info.done, 4);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- several threads ------------------------------------------------------------------------ */

#define THREADS 3
#define SHARE   (EACH / THREADS)

static void *post_share(void *arg)
{
	uint32_t from = *(const uint32_t *)arg * SHARE;
	struct slmpm_done done;

	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = from; i < from + SHARE; i++)
			send_word((int)(k * EACH + i), i, k);
	for (int i = 0; i < 2 * SHARE; i++) {
		EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
		CHECK(done.status == 0, "%s", slmpm_strerror(done.status));
	}
	return NULL;
}

static int threads(void *arg)
{
	struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	uint32_t numbers[THREADS];
	pthread_t t[THREADS];

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "4");
	begin_with(&options, EACH);
	name(EACH);
	for (uint32_t i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&t[i], NULL, post_share, &numbers[i]) == 0, "thread");
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0, "thread");
	await_total(ctx, 2 * THREADS * SHARE);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* ---- no thread in a call -------------------------------------------------------------------- */

static int asleep(void *arg)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	(void)arg;
	settings_set("SLMPM_CONNECTIONS", "3");
	settings_set("SLMPM_ENGINE", "thread");
	begin(EACH);
	name(EACH);
	for (uint32_t i = 0; i < 2 * EACH; i++)
		send_word((int)i, i % EACH, i / EACH);
	await_total((slmpm_ctx){0}, 2 * EACH); /* it sleeps */
	OK(slmpm_wq_query(wq, &info));
	CHECK(info.done == 2 * EACH && info.by_engine > EACH, "%llu done, %llu by the engine",
	      (unsigned long long)info.done, (unsigned long long)info.by_engine);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

/* What has been begun ends with the context. */
static int shut(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		begin(EACH);
		name(EACH);
		for (uint32_t k = 0; k < 20; k++)
			send_word((int)k, k, 0);
		for (int k = 0; k < i; k++)
			(void)slmpm_progress(ctx);
		OK(slmpm_shut(ctx, PATIENCE));
	}
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void run(const char *what, int (*body)(void *), int servers)
{
	pid_t pids[3];

	memset(world, 0, sizeof(*world));
	printf("%s\n", what);
	fflush(stdout);
	for (int i = 0; i < servers; i++)
		pids[i] = server_start(i, i * EACH, i == 2 ? 1 : EACH);
	CHECK(child_run(body, &pids[servers == 3 ? 2 : 0], 30 * (unsigned)actor_slow()) == 0,
	      "%s: see above", what);
	EXPECT(world->wrong, 0);
	world->over = true;
	for (int i = 0; i < servers; i++)
		EXPECT(child_wait(pids[i]), i == 2 ? -SIGKILL : 0);
}

/* Near: by TCP addresses over shared memory. */
static int all(void *how)
{
	bool near = !strcmp(how, "near");

	settings_one_link(near ? "shm" : how);
	by_tcp = strcmp(how, "shm") != 0;
	run("an address without a listener", fails, 1);
	run("a server that does not answer", silent, 2);
	run("a server that is killed", killed, 3);
	run("what is in use stays", stays, 1);
	run("a late answer", late, 1);
	run("answers", answers, 1);
	run("active messages", actives, 1);
	run("kept, and cancelled", again, 1);
	run("threads", threads, 1);
	run("the application sleeps", asleep, 1);
	run("a context closes", shut, 1);
	return 0;
}

int main(void)
{
	static char *const fabrics[] = {"shm", "tcp", "near"};

	world = child_common(sizeof(*world));
	settings_set("SLMPM_RING_SEGMENTS", "1k"); /* each connection makes two */
	for (int i = 0; i < 3; i++)
		CHECK(child_run(all, fabrics[i], 55 * (unsigned)actor_slow()) == 0, "%s: see above",
		      fabrics[i]);
	return 0;
}
