/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * Requests wait for a peer that has stopped, whatever their kind: 1,100 of them cost messages with
 * another peer not an instruction more than the first few do, and those no more than a look at one
 * peer.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/settings.h"
#include "tests/lib/step.h"
#include "tests/lib/trips.h"

#define FEW  300 /* they fill its ring */
#define MANY 1100
#define LOOK 700 /* instructions */
#define LONG 200000

static unsigned char memory[LONG];
static slmpm_req reqs[MANY];

/* ---- who has stopped: its memory is reached by request ---- */

static void stop(const char *url)
{
	struct slmpm_key key;
	slmpm_ctx ctx;
	slmpm_peer host;
	slmpm_mem mem;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&host, ctx, url, PATIENCE));
	OK(slmpm_mem_register(ctx, memory, sizeof(memory), SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, 5, &key, sizeof(key), PATIENCE));
	for (;;)
		pause();
}

static slmpm_peer meet(slmpm_ctx ctx, slmpm_rmem *rmem)
{
	slmpm_listener listener;
	struct slmpm_key key;
	slmpm_peer peer;
	char url[64];

	snprintf(url, sizeof(url), "shm:queued-beside-%d", (int)getpid());
	OK(slmpm_listen(&listener, ctx, url));
	if (fork() == 0)
		stop(url);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_unlisten(listener));
	EXPECT(slmpm_recv(peer, 5, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(peer, &key, rmem));
	return peer;
}

/* ---- requests ---- */

static int queue_send(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, 4000};

	(void)rmem;
	return slmpm_sendv(to, 0, &iov, 1, NULL, req);
}

static int queue_long(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, LONG};

	(void)rmem;
	return slmpm_sendv(to, 0, &iov, 1, NULL, req);
}

static int queue_put(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};

	(void)to;
	return slmpm_put(rmem, 0, memory, 100, &how, req);
}

static int queue_get(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	(void)to;
	return slmpm_get(rmem, 0, memory, 100, NULL, req);
}

static int queue_recv(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req)
{
	const struct slmpm_iov iov = {memory, 8};

	(void)rmem;
	return (int)slmpm_recvv(to, 3, &iov, 1, NULL, req);
}

static const struct kind {
	const char *name;
	int (*queue)(slmpm_peer to, slmpm_rmem rmem, slmpm_req *req);
} kinds[] = {{"sends", queue_send},
	     {"long sends", queue_long},
	     {"puts", queue_put},
	     {"gets", queue_get},
	     {"receives", queue_recv}};

static const struct kind *kind = &kinds[0];
static long none[2]; /* instructions beside an idle stopped peer, received from one and from any */

static void queue(slmpm_ctx ctx, int n)
{
	slmpm_rmem rmem;
	slmpm_peer peer = meet(ctx, &rmem);

	for (int i = 0; i < n; i++)
		OK(kind->queue(peer, rmem, &reqs[i]));
}

/* ---- what they cost others ---- */

static long cost(int n, bool any)
{
	const struct trips t = {.beside = queue, .n = n, .any = any};
	long instructions;

	CHECK(trips_count(&t, &instructions), "a round trip has no end");
	return instructions;
}

static int beside(void *arg)
{
	kind = arg;
	for (int any = 0; any < 2; any++) {
		long few = cost(FEW, any), many = cost(MANY, any);

		printf("%s%s: %ld instructions with none, %ld with %d, %ld with %d\n", kind->name,
		       any ? ", from any" : "", none[any], few, FEW, many, MANY);
		CHECK(many * 100 <= few * 101, "%s for a stopped peer slow another", kind->name);
		CHECK(few <= none[any] + 2 * LOOK, "a stopped peer slows another");
	}
	return 0;
}

int main(void)
{
	if (!step_possible(STEP_INSTRUCTION))
		test_skip("instructions cannot be counted here");
	settings_one_link("shm");
	OK(setenv("SLMPM_ATTACH", "n", 1));
	OK(setenv("SLMPM_WAIT", "spin", 1));
	for (int any = 0; any < 2; any++)
		none[any] = cost(0, any);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		settings_run(kinds[i].name, beside, &kinds[i]);
	return 0;
}
