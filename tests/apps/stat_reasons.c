/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -ljansson */
/*
 * Each reason that there is (slmpm_reason_name) is brought about once, told by the operation
 * itself, and then seen from outside: slmpm_stat --json counts it under its protocol. A reason
 * without a scene fails.
 */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/chosen.h"
#include "tests/lib/links.h"
#include "tests/lib/settings.h"

#define MANY   128
#define REGION KIB(256)

enum { MESSAGES = 1, KEY, STOP, NOTHING }; /* streams */

struct stage {
	slmpm_ctx ctx;
	slmpm_peer to, from; /* of one process; or FROM is another, which is stopped */
	int reader;          /* that one */
	slmpm_peer other;    /* a third process, or none */
	slmpm_mem mem;
	slmpm_rmem rmem;
	struct chosen in_flight[MANY];
	int count;
};

struct scene {
	int protocol;
	bool stops; /* the other side is a process, and stopped */
	const char *set[10];
	bool (*play)(struct stage *s); /* false: not on this machine */
	bool helps;                    /* the other side is a process, which has an engine */
};

/* ---- the other side -------------------------------------------------------------------------- */

/* Lends memory, stops when it is told to, takes what comes. */
static int reader(slmpm_peer host, char **words)
{
	struct slmpm_key key;
	struct slmpm_done done;
	slmpm_mem mem;
	void *base;

	(void)words;
	OK(slmpm_mem_alloc((slmpm_ctx){0}, REGION, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key));
	OK(slmpm_send(host, KEY, &key, sizeof(key), PATIENCE));
	while (slmpm_recv(host, SLMPM_ANY_STREAM, chosen_bytes, sizeof(chosen_bytes), &done,
			  PATIENCE) >= 0)
		if (done.stream == STOP)
			CHECK(raise(SIGSTOP) == 0, "not stopped");
	return 0;
}

static int taker(slmpm_peer host, char **words)
{
	struct slmpm_done done = {.stream = MESSAGES};

	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	while (done.stream != STOP)
		CHECK(slmpm_recv(host, SLMPM_ANY_STREAM, chosen_bytes, sizeof(chosen_bytes), &done,
				 PATIENCE) >= 0,
		      "%s", slmpm_error_detail());
	return 0;
}

static void open_reader(struct stage *s)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	s->to = actor_spawn("reader", NULL, NULL);
	EXPECT(slmpm_recv(s->to, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(s->to, &key, &s->rmem));
	OK(slmpm_peer_query(s->to, &info));
	s->reader = info.pid;
	if (getenv("SLMPM_LINKS") && strchr(getenv("SLMPM_LINKS"), ','))
		links_await();
	OK(slmpm_send(s->to, STOP, NULL, 0, PATIENCE));
	actor_await_state(info.pid, "T");
}

static void open_helper(struct stage *s)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_key key;

	OK(slmpm_default(&s->ctx));
	settings_set("SLMPM_ENGINE", "thread"); /* this process has read its own */
	s->to = actor_spawn("reader", NULL, NULL);
	EXPECT(slmpm_recv(s->to, KEY, &key, sizeof(key), NULL, PATIENCE), sizeof(key));
	OK(slmpm_mem_open(s->to, &key, &s->rmem));
	OK(slmpm_peer_query(s->to, &info));
	s->reader = info.pid;
}

static void open_pair(struct stage *s)
{
	struct slmpm_key key;
	void *base;

	OK(slmpm_default(&s->ctx));
	actor_pair(s->ctx, &s->to, &s->from);
	OK(slmpm_mem_alloc(s->ctx, REGION, SLMPM_READ_WRITE, &s->mem, &base));
	OK(slmpm_mem_key(s->mem, s->from, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(s->to, &key, &s->rmem));
}

static void settle(struct stage *s)
{
	struct slmpm_done done;

	if (s->reader)
		CHECK(kill(s->reader, SIGCONT) == 0, "not resumed");
	for (int i = 0; i < s->count; i++) {
		EXPECT(slmpm_wait(&s->in_flight[i].req, 1, &done, PATIENCE), 0);
		OK(done.status);
	}
}

static void close_stage(struct stage *s)
{
	if (s->other.id) {
		OK(slmpm_send(s->other, STOP, NULL, 0, PATIENCE));
		actor_join(s->other, 0);
	}
	OK(slmpm_mem_release(s->rmem));
	if (s->reader) {
		OK(slmpm_close(s->to, PATIENCE));
		actor_join(s->to, 0);
	} else {
		OK(slmpm_mem_destroy(s->mem, PATIENCE));
	}
	OK(slmpm_shut(s->ctx, PATIENCE));
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static struct slmpm_mode put(struct stage *s, size_t len, uint32_t flags)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = flags};
	struct slmpm_mode mode = {.size = sizeof(mode)};
	slmpm_req *req = &s->in_flight[s->count++].req;

	OK(slmpm_put(s->rmem, 0, chosen_bytes, len, &how, req));
	OK(slmpm_req_mode(*req, &mode));
	return mode;
}

static bool expect_put(struct stage *s, size_t len, uint32_t flags, int protocol,
		       enum slmpm_reason reason)
{
	struct slmpm_mode mode = put(s, len, flags);

	chosen_expect(&mode, "put", protocol, reason);
	return true;
}

static void send_many(struct stage *s, int n, size_t len)
{
	while (n--)
		chosen_post(s->to, len, 0, &s->in_flight[s->count++]);
}

static bool expect_send(struct stage *s, size_t len, uint32_t flags, enum slmpm_reason reason)
{
	chosen_send(s->to, len, flags, SLMPM_BY_SMT, reason, &s->in_flight[s->count++]);
	if (s->from.id)
		EXPECT(slmpm_recv(s->from, MESSAGES, chosen_bytes, len, NULL, PATIENCE), len);
	return true;
}

static bool at_once(struct stage *s)
{
	return expect_put(s, 8, 0, SLMPM_BY_PUT, SLMPM_REASON_SHORT);
}

static bool as_the_call_says(struct stage *s)
{
	return expect_send(s, KIB(16), 0, SLMPM_REASON_CALL);
}

static bool wished_for(struct stage *s)
{
	return expect_put(s, 8, SLMPM_VIA(SLMPM_BY_REQUEST), SLMPM_BY_REQUEST, SLMPM_REASON_HINT);
}

static bool strictly(struct stage *s)
{
	return expect_send(s, KIB(16), SLMPM_STRICT, SLMPM_REASON_STRICT);
}

static bool without_a_mapping(struct stage *s)
{
	return expect_put(s, 8, 0, SLMPM_BY_REQUEST, SLMPM_REASON_ONLY);
}

static bool set_so(struct stage *s)
{
	return expect_put(s, 8, 0, SLMPM_BY_REQUEST, SLMPM_REASON_SETTING);
}

static bool for_the_engine(struct stage *s)
{
	return expect_put(s, KIB(100), 0, SLMPM_BY_PUT, SLMPM_REASON_SIZE);
}

/* Puts for the engine, until there are more than it does beside the calls. */
static bool put_past_engine(struct stage *s, enum slmpm_reason reason)
{
	struct slmpm_mode mode;

	do
		mode = put(s, KIB(100), 0);
	while (mode.reason == SLMPM_REASON_SIZE && s->count < MANY);
	chosen_expect(&mode, "put", SLMPM_BY_REQUEST, reason);
	return true;
}

static bool past_a_busy_engine(struct stage *s)
{
	return put_past_engine(s, SLMPM_REASON_QUEUE);
}

static bool behind_another(struct stage *s)
{
	put(s, 8, SLMPM_VIA(SLMPM_BY_REQUEST) | SLMPM_REMOTE);
	return expect_put(s, 8, SLMPM_FENCE, SLMPM_BY_REQUEST, SLMPM_REASON_ORDER);
}

static bool past_a_full_ring(struct stage *s)
{
	send_many(s, 40, KIB(16));
	return expect_put(s, 8, SLMPM_VIA(SLMPM_BY_REQUEST), SLMPM_BY_PUT, SLMPM_REASON_RING);
}

static bool past_a_long_queue(struct stage *s)
{
	send_many(s, 16, KIB(16));
	return expect_put(s, 8, SLMPM_VIA(SLMPM_BY_REQUEST), SLMPM_BY_PUT, SLMPM_REASON_QUEUE);
}

static bool past_engine_and_ring(struct stage *s)
{
	send_many(s, 40, KIB(16));
	return put_past_engine(s, SLMPM_REASON_BOTH);
}

/* The ring to another peer is full, that to this one not. */
static bool past_what_others_load(struct stage *s)
{
	slmpm_peer full = s->to, free = actor_spawn_ready("taker");
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_mode mode = {.size = sizeof(mode)};

	links_await();
	send_many(s, 40, KIB(16));
	do {
		s->to = free;
		OK(slmpm_send(free, MESSAGES, chosen_bytes, KIB(24), PATIENCE));
		OK(slmpm_peer_mode(free, &mode));
		s->to = full;
		CHECK(actor_now_ms() < until, "because: %s", slmpm_reason_name((int)mode.reason));
	} while (mode.reason != SLMPM_REASON_AGGREGATE);
	CHECK(!strcmp(mode.fabric, "tcp"), "over %s", mode.fabric);
	s->other = free;
	return true;
}

static bool by_another_link(struct stage *s)
{
	send_many(s, 40, KIB(16));
	return expect_send(s, KIB(24), 0, SLMPM_REASON_LINK);
}

static bool to_one_who_sleeps(struct stage *s)
{
	return expect_send(s, KIB(16), SLMPM_VIA(SLMPM_BY_RGET), SLMPM_REASON_ABSENT);
}

/* Long ones whose receives are there, until one has gone so. */
static bool send_until(struct stage *s, enum slmpm_reason reason)
{
	static unsigned char got[KIB(128)];
	const struct slmpm_iov piece = {chosen_bytes, sizeof(got)}, place = {got, sizeof(got)};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	struct slmpm_done done[2] = {{0}};

	for (int i = 0; i < 3000 && done[0].reason != reason; i++) {
		slmpm_req req[2];

		OK(slmpm_recvv(s->from, MESSAGES, &place, 1, &how, &req[1]));
		OK(slmpm_sendv(s->to, MESSAGES, &piece, 1, &how, &req[0]));
		for (int k = 0; k < 2; k++)
			EXPECT(slmpm_wait(&req[k], 1, &done[k], PATIENCE), 0);
		OK(done[0].status);
		if (done[0].reason == SLMPM_REASON_CALL || done[0].reason == SLMPM_REASON_ONLY)
			return false; /* nothing is fetched here */
	}
	CHECK(done[0].reason == reason, "the last one: %s", slmpm_reason_name(done[0].reason));
	return true;
}

static bool tried(struct stage *s)
{
	return send_until(s, SLMPM_REASON_TRIAL);
}

static bool known_to_be_faster(struct stage *s)
{
	return send_until(s, SLMPM_REASON_FASTER);
}

/* Memory outside of regions, to which it has to attach. One that does not come to it is not waited
 * for. */
static bool by_the_peers_engine(struct stage *s)
{
	int64_t until = actor_now_ms() + PATIENCE;
	struct slmpm_done done;

	do {
		struct slmpm_mode mode = put(s, KIB(200), SLMPM_VIA(SLMPM_BY_PUT));

		if (mode.reason != SLMPM_REASON_ABSENT)
			chosen_expect(&mode, "under way", SLMPM_BY_PUT, SLMPM_REASON_ENGINE);
		EXPECT(slmpm_wait(&s->in_flight[--s->count].req, 1, &done, PATIENCE), 0);
		OK(done.status);
	} while (done.reason == SLMPM_REASON_ABSENT && actor_now_ms() < until);
	CHECK(done.reason == SLMPM_REASON_ENGINE, "%s", slmpm_reason_name((int)done.reason));
	return true;
}

static bool out_of_its_reach(struct stage *s)
{
	struct slmpm_mode mode = put(s, KIB(200), 0);

	chosen_expect(&mode, "done", SLMPM_BY_PUT, SLMPM_REASON_UNREACHABLE);
	return true;
}

#define ANY  -1            /* protocol */
#define BUSY SLMPM_REASONS /* the other case of a queue: the engine's */
static const struct scene scenes[SLMPM_REASONS + 1] = {
	[SLMPM_REASON_SHORT] = {SLMPM_BY_PUT, false, {NULL}, at_once, false},
	[SLMPM_REASON_CALL] = {SLMPM_BY_SMT, false, {NULL}, as_the_call_says, false},
	[SLMPM_REASON_HINT] = {SLMPM_BY_REQUEST, false, {NULL}, wished_for, false},
	[SLMPM_REASON_STRICT] = {SLMPM_BY_SMT, false, {NULL}, strictly, false},
	[SLMPM_REASON_ONLY] = {SLMPM_BY_REQUEST, false, {"FABRIC=tcp"}, without_a_mapping, false},
	[SLMPM_REASON_SETTING] = {SLMPM_BY_REQUEST, false, {"RMA=ring"}, set_so, false},
	[SLMPM_REASON_SIZE] = {SLMPM_BY_PUT, false, {"ENGINE=inline"}, for_the_engine, false},
	[SLMPM_REASON_FASTER] = {ANY, false, {"EAGER_MAX=16k"}, known_to_be_faster, false},
	[SLMPM_REASON_TRIAL] = {ANY, false, {"EAGER_MAX=16k"}, tried, false},
	[SLMPM_REASON_RING] = {SLMPM_BY_PUT, true, {"MODE_RING=50"}, past_a_full_ring, false},
	[SLMPM_REASON_QUEUE] = {SLMPM_BY_PUT,
				true,
				{"MODE_RING=101", "MODE_QUEUE=4", "EAGER_CREDIT=64k"},
				past_a_long_queue,
				false},
	[BUSY] = {SLMPM_BY_REQUEST,
		  false,
		  {"ENGINE=inline", "MODE_DMA=4"},
		  past_a_busy_engine,
		  false},
	[SLMPM_REASON_BOTH] = {SLMPM_BY_REQUEST,
			       true,
			       {"LINKS=shm,tcp", "LINKS_AFTER=0", "ENGINE=inline", "MODE_DMA=4",
				"MODE_RING=50"},
			       past_engine_and_ring,
			       false},
	[SLMPM_REASON_AGGREGATE] = {SLMPM_BY_SMT,
				    true,
				    {"LINKS=shm,tcp", "LINKS_AFTER=0", "AGGREGATE=y",
				     "MONITOR_MS=20", "MODE_RING=30", "MODE_BULK=20k",
				     "EAGER_MAX=16k", "FETCH=never"},
				    past_what_others_load,
				    false},
	[SLMPM_REASON_ORDER] = {SLMPM_BY_REQUEST, false, {NULL}, behind_another, false},
	[SLMPM_REASON_ABSENT] = {SLMPM_BY_SMT, false, {"WAIT=block"}, to_one_who_sleeps, false},
	[SLMPM_REASON_LINK] = {SLMPM_BY_SMT,
			       true,
			       {"LINKS=shm,tcp", "LINKS_AFTER=0", "MODE_LINK=any", "MODE_RING=50",
				"MODE_BULK=20k", "EAGER_MAX=16k", "FETCH=never"},
			       by_another_link,
			       false},
	[SLMPM_REASON_ENGINE] =
		{SLMPM_BY_PUT, false, {"ATTACH=y", "ASK_MIN=64k"}, by_the_peers_engine, true},
	[SLMPM_REASON_UNREACHABLE] =
		{SLMPM_BY_PUT, false, {"ATTACH=n", "ASK_MIN=64k"}, out_of_its_reach, true},
};

/* ---- from outside ---------------------------------------------------------------------------- */

static json_t *inspect(void)
{
	const char *build = getenv("SLMPM_BUILD");
	char command[512];
	json_error_t why;
	json_t *all;
	FILE *out;

	snprintf(command, sizeof(command), "'%s/bin/slmpm_stat' --json %d", build ? build : "build",
		 (int)getpid());
	out = popen(command, "re");
	CHECK(out, "no slmpm_stat");
	all = json_loadf(out, 0, &why);
	CHECK(pclose(out) == 0 && all, "%s: %s", command, all ? "failed" : why.text);
	return all;
}

/* Of all links of this process: how often REASON is told for PROTOCOL, or for any. */
static json_int_t notified(const json_t *all, int protocol, int reason)
{
	const char *wanted = protocol == ANY ? NULL : slmpm_protocol_name(protocol);
	json_int_t sum = 0;
	const json_t *link;
	size_t i;

	json_array_foreach(json_object_get(all, "links"), i, link)
	{
		json_t *by = json_object_get(link, "reasons"), *counts;
		const char *name;

		CHECK(by, "a link without reasons");
		json_object_foreach(by, name, counts)
		{
			if (!wanted || !strcmp(name, wanted))
				sum += json_integer_value(
					json_object_get(counts, slmpm_reason_name(reason)));
		}
	}
	return sum;
}

/* When nothing is under way each request has its reason. */
static void adds_up(const json_t *all)
{
	const json_t *link;
	size_t i;

	json_array_foreach(json_object_get(all, "links"), i, link) for (int p = 0;
									p < SLMPM_PROTOCOLS; p++)
	{
		const char *name = slmpm_protocol_name(p);
		json_t *reasons = json_object_get(json_object_get(link, "reasons"), name);
		json_int_t left = json_integer_value(
			json_object_get(json_object_get(link, "requests"), name));
		json_t *count;
		const char *why;

		json_object_foreach(reasons, why, count) left -= json_integer_value(count);
		CHECK(!left, "%s: %d more requests than reasons", name, (int)left);
	}
}

/* Prometheus refuses all where two samples have the same name and labels: links to one peer,
 * say. */
static void no_sample_twice(void)
{
	const char *build = getenv("SLMPM_BUILD");
	char command[512], twice[256] = "";
	FILE *out;

	snprintf(
		command, sizeof(command),
		"'%s/bin/slmpm_stat' --prometheus %d | grep '^slmpm_' | sed 's/ [^ ]*$//' | sort | uniq -d",
		build ? build : "build", (int)getpid());
	out = popen(command, "re");
	CHECK(out, "no slmpm_stat");
	CHECK(!fgets(twice, sizeof(twice), out), "there twice: %s", twice);
	CHECK(pclose(out) == 0, "%s failed", command);
}

/* What a process shows follows while it waits. */
static void await_told(const struct stage *s, int protocol, int reason)
{
	int64_t until = actor_now_ms() + PATIENCE;
	json_t *all = inspect();

	while (!notified(all, protocol, reason)) {
		CHECK(actor_now_ms() < until, "slmpm_stat does not tell it: %s",
		      json_dumps(all, 0));
		json_decref(all);
		EXPECT(slmpm_recv(s->to, NOTHING, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
		all = inspect();
	}
	CHECK(!notified(all, ANY, SLMPM_REASON_NONE), "something has gone for no reason");
	adds_up(all);
	json_decref(all);
	no_sample_twice();
}

static int play(void *number)
{
	int reason = *(int *)number;
	const struct scene *scene = &scenes[reason];
	struct stage s = {.count = 0};
	bool there;

	for (int i = 0; scene->set[i]; i++) {
		char name[64];
		size_t length = strcspn(scene->set[i], "=");

		snprintf(name, sizeof(name), "SLMPM_%.*s", (int)length, scene->set[i]);
		settings_set(name, scene->set[i] + length + 1);
	}
	scene->helps ? open_helper(&s) : scene->stops ? open_reader(&s) : open_pair(&s);
	there = scene->play(&s);
	settle(&s);
	if (there)
		await_told(&s, scene->protocol, reason == BUSY ? SLMPM_REASON_QUEUE : reason);
	else
		printf("  not on this machine\n");
	close_stage(&s);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"reader", reader}, {"taker", taker}, {NULL, NULL}};
	int reason = SLMPM_REASON_NONE + 1;

	actor_begin(argc, argv, roles);
	settings_one_link("shm");
	for (; slmpm_reason_name(reason); reason++) {
		CHECK(scenes[reason].play, "no scene for the reason \"%s\"",
		      slmpm_reason_name(reason));
		settings_run(slmpm_reason_name(reason), play, &reason);
	}
	EXPECT(reason, SLMPM_REASONS);
	settings_run("queue of the engine", play, &reason);
	return 0;
}
