/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/*
 * A peer, of the same user and otherwise unrelated, whose memory never answers: behind a file
 * system of its own, or watched by userfaultfd. It grants that memory to be attached to, and
 * announces messages that lie there; or it posts one as any program does. Every call of its victim
 * ends at its deadline, and SIGKILL ends the victim. Where both have said that they trust each
 * other with that (SLMPM_ATTACH=y) the first transfer hangs, and not the grant: so the trap is one.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/mire.h"
#include "tests/lib/raw_key.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/raw_region.h"

#define NOBODY 65534
#define SIZE   65536
#define LENGTH 100000 /* of a message that would be fetched */
#define BRIEF  100    /* ms */
#define NAME   "hostile-attach"
#define STREAM 1

/* Seen by all processes. */
static struct {
	_Atomic int listening, at, through, no_trap, server;
} * common;

static const struct trap {
	const char *name;
	void *(*make)(size_t size);
} traps[] = {{"a file system", mire_of_file}, {"userfaultfd", mire_of_memory}};

static struct run {
	const struct trap *trap;
	bool trusts; /* both sides do */
	bool posts;  /* a message by the library, in place of announcements by hand */
} run;

/* One that others of its user may look into, and that still dies with who started it. */
static void become_nobody(void)
{
	CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
		      prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0,
	      "another user");
}

/* ---- the offender ---------------------------------------------------------------------------- */

static unsigned char probe[16] = "here is my value", echo[16];

/* Legal: as doc/wire.md has it. */
static struct wire_grant grant_of(const void *memory, struct raw_map_blob *blob)
{
	struct wire_grant g = raw_keys_grant(SIZE);
	/* The first try is caught as well. */
	const void *probed = run.trusts ? (const void *)probe : memory;

	*blob = (struct raw_map_blob){
		.how = LITTLE_32(2),
		.size = LITTLE_64(SIZE),
		.rest = {LITTLE_64((uint64_t)(uintptr_t)memory),
			 LITTLE_64((uint64_t)(uintptr_t)probed),
			 LITTLE_64((uint64_t)(uintptr_t)echo)},
	};
	memcpy(blob->probe, probe, sizeof(probe));
	g.blob_length = LITTLE_32(sizeof(*blob));
	memcpy(g.blob, blob, sizeof(*blob));
	return g;
}

static void announce(struct raw_peer *p, const void *memory, struct raw_map_blob blob)
{
	struct {
		struct wire_fetch head;
		struct wire_range range;
		struct raw_map_blob reach;
	} a = {
		.head = {.count = LITTLE_32(1)},
		.range = {LITTLE_64((uint64_t)(uintptr_t)memory), LITTLE_64(LENGTH)},
		.reach = blob,
	};

	a.reach.size = UINT64_MAX; /* all of its memory */
	a.reach.rest[0] = 0;
	raw_post(p, WIRE_FETCH, ++p->sent, wire_route(STREAM, 0), LENGTH, &a, sizeof(a));
}

/* With a hint that it be fetched. Where it is not, its own packets wait for that memory. */
static void post(void *memory)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_VIA(SLMPM_BY_RGET)};
	const struct slmpm_iov piece = {memory, MIRE_SIZE};
	slmpm_req req;
	slmpm_peer peer;
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_connect(&peer, ctx, "shm:" NAME, PATIENCE));
	OK(slmpm_sendv(peer, STREAM, &piece, 1, &how, &req));
	(void)slmpm_wait(&req, 1, NULL, -1);
	pause();
}

static int offend(void *arg)
{
	struct raw_map_blob blob;
	struct wire_grant g;
	struct raw_peer p;
	void *memory = run.trap->make(MIRE_SIZE);

	(void)arg;
	common->no_trap = !memory;
	common->listening += !memory ? 2 : 0;
	if (!memory)
		return 0;
	common->server = mire_server();
	become_nobody();
	g = grant_of(memory, &blob);
	while (!common->listening)
		usleep(1000);
	if (run.posts)
		post(memory);
	raw_begin(&p, raw_connect(NAME));
	p.hello.features = LITTLE_64(WIRE_FEATURES | (run.trusts ? WIRE_FEATURE_ATTACH : 0));
	raw_steps(&p, RAW_HELLO, RAW_UP);
	CHECK(raw_say_packet(p.fd, WIRE_GRANT, &g, sizeof(g), -1), "the grant");
	raw_post(&p, WIRE_REGION_OFFER, 0, 0, 1, raw_keys->foreign.bytes, SLMPM_KEY_SIZE);
	announce(&p, memory, blob);
	raw_ring_bell(&p);
	pause();
	return 0;
}

/* ---- its victim ------------------------------------------------------------------------------ */

#define STEP(call, want)                                                                           \
	do {                                                                                       \
		int64_t begin_ = actor_now_ms();                                                   \
		common->at++;                                                                      \
		EXPECT(call, want);                                                                \
		CHECK(actor_now_ms() - begin_ < (BRIEF + 1000) * actor_slow(), "%s took %d ms",    \
		      #call, (int)(actor_now_ms() - begin_));                                      \
	} while (0)

static unsigned char large[MIRE_SIZE];

/* A posted receive of what lies there, and what is posted the other way, which nobody reads. */
static void use_posted(slmpm_peer peer)
{
	const struct slmpm_iov piece = {large, sizeof(large)};
	struct slmpm_done done;
	slmpm_req in, out;

	STEP(slmpm_send(peer, 2, "short", 6, BRIEF), 0);
	STEP(slmpm_recvv(peer, STREAM, &piece, 1, NULL, &in), 0);
	STEP(slmpm_sendv(peer, 2, &piece, 1, NULL, &out), 0);
	for (int i = 0; i < 3; i++) {
		STEP(slmpm_wait(&in, 1, &done, BRIEF), -SLMPM_ETIMEOUT);
		STEP(slmpm_wait(&out, 1, &done, BRIEF), -SLMPM_ETIMEOUT);
		STEP(slmpm_recv(peer, 3, NULL, 0, NULL, BRIEF), -SLMPM_ETIMEOUT);
	}
	STEP(slmpm_cancel(out), 0);
	STEP(slmpm_cancel(in), 0);
	STEP(slmpm_wait(&out, 1, &done, BRIEF), 0);
	STEP(slmpm_wait(&in, 1, &done, BRIEF), 0);
}

static void use(slmpm_peer peer, slmpm_rmem theirs)
{
	const struct slmpm_how brief = {.size = sizeof(brief), .timeout_ms = BRIEF};
	const struct slmpm_how landed = {
		.size = sizeof(landed), .timeout_ms = BRIEF, .flags = SLMPM_REMOTE};
	const struct slmpm_how fetched = {.size = sizeof(fetched),
					  .timeout_ms = BRIEF,
					  .flags = SLMPM_VIA(SLMPM_BY_RGET) | SLMPM_STRICT};
	const struct slmpm_iov piece = {large, LENGTH};
	unsigned char data[16];
	uint64_t old;

	STEP(slmpm_get(theirs, 0, data, sizeof(data), &brief, NULL), -SLMPM_ETIMEOUT);
	STEP(slmpm_put(theirs, 0, data, sizeof(data), &landed, NULL), -SLMPM_ETIMEOUT);
	STEP(slmpm_atomic(theirs, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, &brief, NULL),
	     -SLMPM_ETIMEOUT);
	STEP(slmpm_flush(peer, BRIEF), -SLMPM_ETIMEOUT);
	STEP(slmpm_recv(peer, STREAM, large, LENGTH, NULL, BRIEF), -SLMPM_ETIMEOUT);
	STEP(slmpm_sendv(peer, 2, &piece, 1, &fetched, NULL), -SLMPM_ENOTSUP);
	STEP(slmpm_send(peer, 2, "short", 6, BRIEF), 0);
	STEP(slmpm_send(peer, 2, large, LENGTH, BRIEF), -SLMPM_ETIMEOUT);
}

/* Posted as well: where they trust each other it is fetched. */
static void receive_for_ever(slmpm_peer peer)
{
	const struct slmpm_iov piece = {large, sizeof(large)};
	slmpm_req in;

	if (slmpm_recvv(peer, STREAM, &piece, 1, NULL, &in) == 0)
		(void)slmpm_wait(&in, 1, NULL, -1);
}

static int suffer(void *arg)
{
	slmpm_ctx ctx;
	slmpm_listener listener;
	slmpm_peer peer;
	slmpm_rmem theirs = {0};
	unsigned char byte;

	(void)arg;
	become_nobody();
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, "shm:" NAME));
	common->listening = 1;
	OK(slmpm_accept(listener, &peer, PATIENCE));
	if (!run.posts)
		OK(slmpm_mem_accept(peer, &theirs, PATIENCE));
	if (!run.trusts && run.posts)
		use_posted(peer);
	else if (!run.trusts)
		use(peer, theirs);
	common->through = 1;
	if (run.trusts && !run.posts)
		(void)slmpm_get(theirs, 0, &byte, 1, NULL, NULL);
	else
		receive_for_ever(peer);
	common->through = 2;
	return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void await_through(int64_t ms, int victim)
{
	int64_t until = actor_now_ms() + ms;

	while (!common->through && !common->no_trap)
		CHECK(actor_now_ms() < until && waitpid(victim, NULL, WNOHANG) == 0,
		      "call %d has not ended", common->at);
}

/* It is to die while the other lives. */
static void kill_one(pid_t pid, const char *what)
{
	int64_t until = actor_now_ms() + 5000 * actor_slow();

	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		CHECK(actor_now_ms() < until, "%s", what);
		usleep(1000);
	}
}

static int meet(void *arg)
{
	pid_t offender = child_start(offend, NULL, 60), victim = child_start(suffer, NULL, 60);

	(void)arg;
	await_through(30000, victim);
	if (common->no_trap) {
		kill_one(victim, "it cannot be killed");
		return child_wait(offender);
	}
	usleep(300000);
	EXPECT(common->through, 1); /* still in its last call */
	if (!run.trusts)
		kill_one(victim, "the victim cannot be killed");
	if (common->server)
		kill(common->server, SIGKILL);
	kill_one(offender, "the offender cannot be killed");
	if (run.trusts) /* its memory is gone, and what waited for it goes on */
		EXPECT(child_wait(victim), 0);
	return 0;
}

int main(void)
{
	int made = 0;

	if (geteuid() != 0) {
		printf("only root can make memory that never answers, and be another user\n");
		return 77;
	}
	raw_keys_make();
	common = child_common(sizeof(*common));
	for (size_t i = 0; i < sizeof(traps) / sizeof(*traps); i++) {
		for (int how = 0; how < 4; how++) {
			run = (struct run){&traps[i], how & 1, how >> 1};
			memset(common, 0, sizeof(*common));
			setenv("SLMPM_ATTACH", run.trusts ? "y" : "auto", 1);
			printf("%s%s%s\n", traps[i].name, run.trusts ? ", trusted" : "",
			       run.posts ? ", posted" : "");
			fflush(stdout);
			CHECK(child_run(meet, NULL, 100) == 0, "%s: see above", traps[i].name);
			made += !common->no_trap;
			if (common->no_trap)
				printf("not to be had\n");
		}
	}
	if (made < 8) {
		printf("memory that never answers cannot be had here\n");
		return 77;
	}
	return 0;
}
