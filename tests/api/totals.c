/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/*
 * Lifetime totals by peer: what the test has counted itself over many connections, on shared memory
 * and TCP; more ids than are kept; strangers; two connections of one id; a child of fork; a reader
 * beside.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define MOST   (SLMPM_TOTALS_MAX + 1)
#define CYCLES 25
#define IDS    1100

static struct slmpm_totals all[MOST];
static slmpm_ctx ctx;

/* Those of this process, or of PID: how many. */
static int inspect(int pid)
{
	int n = pid ? slmpm_totals_read(pid, all, sizeof(*all), MOST) :
		      slmpm_totals(ctx, all, sizeof(*all), MOST);

	CHECK(n >= 1 && n <= MOST, "%d totals: %s", n, slmpm_error_detail());
	CHECK(!strcmp(all[0].id, "others") && all[0].place == 0, "the first are \"%s\"", all[0].id);
	return n;
}

static struct slmpm_totals total_of(const char *id)
{
	int n = inspect(0);

	for (int i = 0; i < n; i++)
		if (!strcmp(all[i].id, id))
			return all[i];
	return (struct slmpm_totals){.size = 0};
}

/* ---- a peer that comes again and again ---- */

struct counted {
	uint64_t sent, sent_bytes, received, received_bytes, puts, put_bytes;
};

static int come_again(void *arg)
{
	static unsigned char got[100000];
	const char *url = arg;

	for (uint64_t i = 0; i < CYCLES; i++) {
		slmpm_ctx none = {0};
		slmpm_peer peer;

		OK(slmpm_connect(&peer, none, url, PATIENCE));
		for (uint64_t k = 0; k <= i; k++) {
			EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE),
			       (int64_t)(k * 3000));
			OK(slmpm_send(peer, 2, got, (size_t)i, PATIENCE));
		}
		EXPECT(slmpm_recv(peer, 3, got, 1, NULL, PATIENCE), 0);
		OK(slmpm_close(peer, PATIENCE));
	}
	return 0;
}

static void talk(slmpm_peer peer, uint64_t i, struct counted *c)
{
	static unsigned char bytes[100000];

	for (uint64_t k = 0; k <= i; k++) {
		OK(slmpm_send(peer, 1, bytes, (size_t)k * 3000, PATIENCE));
		EXPECT(slmpm_recv(peer, 2, bytes, sizeof(bytes), NULL, PATIENCE), (int64_t)i);
		c->sent++;
		c->sent_bytes += k * 3000;
		c->received++;
		c->received_bytes += i;
	}
	OK(slmpm_send(peer, 3, NULL, 0, PATIENCE));
	c->sent++;
}

static void expect_total(const char *id, const struct counted *c, uint64_t connections, int live)
{
	struct slmpm_totals t = total_of(id);

	CHECK(t.connections == connections && (int)t.live == live,
	      "%s: %llu connections, %u live, not %llu and %d", id,
	      (unsigned long long)t.connections, t.live, (unsigned long long)connections, live);
	CHECK(t.sent_messages == c->sent && t.sent_bytes == c->sent_bytes &&
		      t.received_messages == c->received && t.received_bytes == c->received_bytes,
	      "%s: sent %llu of %llu, %llu of %llu bytes; received %llu of %llu, %llu of %llu", id,
	      (unsigned long long)t.sent_messages, (unsigned long long)c->sent,
	      (unsigned long long)t.sent_bytes, (unsigned long long)c->sent_bytes,
	      (unsigned long long)t.received_messages, (unsigned long long)c->received,
	      (unsigned long long)t.received_bytes, (unsigned long long)c->received_bytes);
	CHECK(t.sent_packets >= t.sent_messages && t.received_packets >= t.received_messages &&
		      t.sent_segments >= t.sent_packets &&
		      t.received_segments >= t.received_packets,
	      "%s: %llu packets of %llu segments out, %llu of %llu in", id,
	      (unsigned long long)t.sent_packets, (unsigned long long)t.sent_segments,
	      (unsigned long long)t.received_packets, (unsigned long long)t.received_segments);
}

static const char *listen_at(slmpm_listener *l, const char *url, char at[400])
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(l, ctx, url));
	OK(slmpm_listener_query(*l, &info));
	snprintf(at, 400, info.port ? "%s#%s" : "%s", info.url, info.secret);
	return at;
}

static void comes_again(const char *url, struct counted *c, uint64_t *connections)
{
	char at[400];
	slmpm_listener l;
	slmpm_peer peer;
	pid_t pid;

	listen_at(&l, url, at);
	pid = child_start(come_again, at, 60);
	for (uint64_t i = 0; i < CYCLES; i++) {
		OK(slmpm_accept(l, &peer, PATIENCE));
		++*connections;
		talk(peer, i, c);
		expect_total("known", c, *connections, 1);
		while (slmpm_recv(peer, 9, NULL, 0, NULL, PATIENCE) != -SLMPM_ECLOSED)
			;
		expect_total("known", c, *connections, 0);
		OK(slmpm_close(peer, PATIENCE));
		expect_total("known", c, *connections, 0);
	}
	CHECK(child_wait(pid) == 0, "%s: see above", url);
	OK(slmpm_unlisten(l));
}

/* ---- a stranger that calls itself so ---- */

static int come_as_known(void *arg)
{
	const char *url = arg;
	slmpm_ctx none = {0};
	slmpm_peer peer;

	EXPECT(slmpm_connect(&peer, none, url, PATIENCE), -SLMPM_EACCES);
	return 0;
}

static void caller(const struct counted *c, uint64_t connections)
{
	char at[400], wrong[440];
	int64_t until = actor_now_ms() + PATIENCE;
	uint64_t refused = total_of("others").refused;
	slmpm_listener l;
	pid_t pid;

	listen_at(&l, "tcp://127.0.0.1:0", at);
	snprintf(wrong, sizeof(wrong), "%.*s#%032d", (int)strcspn(at, "#"), at, 7);
	pid = child_start(come_as_known, wrong, 30);
	while (total_of("others").refused == refused) {
		CHECK(actor_now_ms() < until, "nobody was refused");
		(void)slmpm_progress(ctx);
	}
	EXPECT(total_of("others").refused, refused + 1);
	expect_total("known", c, connections, 0);
	CHECK(child_wait(pid) == 0, "stranger: see above");
	OK(slmpm_unlisten(l));
}

/* ---- two at once, another name, fork ---- */

static void say(slmpm_peer from, slmpm_peer to, int n)
{
	uint64_t word = 7;

	for (int i = 0; i < n; i++) {
		OK(slmpm_send(from, 1, &word, 8, PATIENCE));
		EXPECT(slmpm_recv(to, 1, &word, 8, NULL, PATIENCE), 8);
	}
}

static void two_at_once(void)
{
	slmpm_peer a[2], b[2];

	for (int i = 0; i < 2; i++) {
		actor_pair(ctx, &a[i], &b[i]);
		OK(slmpm_peer_id(b[i], "sink"));
		say(a[i], b[i], 5 + i); /* counts for its name later */
		OK(slmpm_peer_id(a[i], "twins"));
	}
	expect_total("twins", &(struct counted){.sent = 11, .sent_bytes = 88}, 2, 2);
	expect_total("sink", &(struct counted){.received = 11, .received_bytes = 88}, 2, 2);
	OK(slmpm_close(a[0], PATIENCE));
	say(a[1], b[1], 1);
	expect_total("twins", &(struct counted){.sent = 12, .sent_bytes = 96}, 2, 1);
	OK(slmpm_peer_id(a[1], "single"));
	expect_total("twins", &(struct counted){.sent = 5, .sent_bytes = 40}, 1, 0);
	expect_total("single", &(struct counted){.sent = 7, .sent_bytes = 56}, 1, 1);
	REFUSED(slmpm_peer_id(a[1], ""), SLMPM_EINVAL, "1 to 31");
	REFUSED(slmpm_peer_id(a[1], "a\nb"), SLMPM_EINVAL, "printable");
	REFUSED(slmpm_peer_id(a[1], "0123456789012345678901234567890x"), SLMPM_EINVAL, "1 to 31");
	REFUSED(slmpm_peer_id(a[0], "x"), SLMPM_EHANDLE, "");
	OK(slmpm_close(a[1], PATIENCE));
	OK(slmpm_close(b[0], PATIENCE));
	OK(slmpm_close(b[1], PATIENCE));
}

static void forked(void)
{
	slmpm_ctx own;
	slmpm_peer a, b;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0, "no child");
	if (pid == 0) {
		OK(slmpm_open(&own, NULL));
		ctx = own;
		EXPECT(inspect(0), 1);
		CHECK(!all[0].connections && !all[0].refused, "the parent's totals");
		actor_pair(own, &a, &b);
		OK(slmpm_peer_id(a, "twins"));
		say(a, b, 3);
		expect_total("twins", &(struct counted){.sent = 3, .sent_bytes = 24}, 1, 1);
		OK(slmpm_shut(own, PATIENCE));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child: see above");
	expect_total("twins", &(struct counted){.sent = 5, .sent_bytes = 40}, 1, 0);
}

/* ---- more ids than are kept, and who reads meanwhile ---- */

static int stop[2]; /* a pipe whose end is the reader's */

static uint64_t connected; /* of all of them, when last summed */

static uint64_t sum(int n)
{
	uint64_t messages = 0;

	connected = 0;
	for (int i = 0; i < n; i++) {
		/* All messages from then on are of 8 bytes, one connection an id. */
		CHECK(strncmp(all[i].id, "id-", 3) != 0 ||
			      (all[i].sent_bytes == 8 * all[i].sent_messages &&
			       all[i].connections == 1 && all[i].live <= 1),
		      "%s: torn", all[i].id);
		messages += all[i].sent_messages;
		connected += all[i].connections;
	}
	return messages;
}

static int read_beside(void *arg)
{
	uint64_t before = 0, inspections = 0;
	char end;

	(void)arg;
	close(stop[1]);
	do {
		uint64_t now = sum(inspect(getppid()));

		CHECK(now >= before, "%llu messages, and before %llu", (unsigned long long)now,
		      (unsigned long long)before);
		before = now;
		inspections++;
		(void)usleep(1000);
	} while (recv(stop[0], &end, 1, MSG_DONTWAIT) != 0);
	printf("%llu looks\n", (unsigned long long)inspections);
	CHECK(inspections > 20, "%llu looks", (unsigned long long)inspections);
	return 0;
}

static void many_ids(void)
{
	uint64_t before = sum(inspect(0)), said = 0, ids = (uint64_t)inspect(0) - 1;
	uint64_t connections = connected;
	slmpm_peer a, b;
	char id[32];
	pid_t pid;
	int n;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, stop) == 0, "no pair");
	pid = child_start(read_beside, NULL, 60);
	close(stop[0]);
	for (int i = 0; i < IDS; i++) {
		actor_pair(ctx, &a, &b);
		OK(slmpm_peer_id(b, "sink"));
		snprintf(id, sizeof(id), "id-%d", i);
		OK(slmpm_peer_id(a, id));
		say(a, b, i % 5 + 1);
		said += (uint64_t)(i % 5) + 1;
		OK(slmpm_close(a, PATIENCE));
		OK(slmpm_close(b, PATIENCE));
	}
	n = inspect(0);
	EXPECT(n, MOST);
	EXPECT(sum(n), before + said);
	EXPECT(connected, connections + 2 * (uint64_t)IDS);
	/* "sink" has been there before, and all the time. */
	EXPECT(all[0].ids, ids + IDS - SLMPM_TOTALS_MAX);
	CHECK(!total_of("id-0").size && total_of("id-1099").sent_messages == 5, "who was kept?");
	EXPECT(total_of("id-1099").connections, 1);
	EXPECT(total_of("sink").received_messages >= said, 1);
	close(stop[1]);
	CHECK(child_wait(pid) == 0, "the reader: see above");
}

/* One that has ended, but is not closed, when others have had its place. */
static void closed_late(void)
{
	slmpm_peer old, partner, a, b;
	char id[32];
	int n;

	actor_pair(ctx, &old, &partner);
	OK(slmpm_peer_id(partner, "sink"));
	OK(slmpm_peer_id(old, "old"));
	say(old, partner, 3);
	OK(slmpm_close(partner, PATIENCE));
	EXPECT(slmpm_recv(old, 1, id, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	for (int i = 0; i < IDS; i++) {
		actor_pair(ctx, &a, &b);
		OK(slmpm_peer_id(b, "sink"));
		snprintf(id, sizeof(id), "id-%d", i);
		OK(slmpm_peer_id(a, id));
		say(a, b, 1);
		OK(slmpm_close(a, PATIENCE));
		OK(slmpm_close(b, PATIENCE));
	}
	CHECK(!total_of("old").size, "it is kept");
	EXPECT(sum(inspect(0)), IDS + 3);
	OK(slmpm_peer_id(old, "known again"));
	n = inspect(0);
	EXPECT(n, MOST);
	for (int i = 1; i < n; i++)
		CHECK(strncmp(all[i].id, "id-", 3) != 0 ||
			      (all[i].connections == 1 && all[i].sent_messages == 1),
		      "%s: %llu connections, %llu messages", all[i].id,
		      (unsigned long long)all[i].connections,
		      (unsigned long long)all[i].sent_messages);
	expect_total("known again", &(struct counted){.sent = 3, .sent_bytes = 24}, 1, 0);
	EXPECT(sum(inspect(0)), IDS + 3);
	OK(slmpm_close(old, PATIENCE));
	EXPECT(sum(inspect(0)), IDS + 3);
}

static int late(void *unused)
{
	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	closed_late();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int over_tcp(void *unused)
{
	struct counted c = {0};
	uint64_t connections = 0;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	comes_again("tcp://127.0.0.1:0", &c, &connections);
	comes_again("tcp://127.0.0.1:0", &c, &connections);
	caller(&c, connections);
	two_at_once();
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int here(void *unused)
{
	struct counted c = {0};
	uint64_t connections = 0;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	comes_again("shm:totals", &c, &connections);
	comes_again("tcp://127.0.0.1:0", &c, &connections);
	caller(&c, connections);
	two_at_once();
	forked();
	many_ids();
	OK(slmpm_shut(ctx, PATIENCE));
	REFUSED(slmpm_totals(ctx, all, sizeof(*all), MOST), SLMPM_EHANDLE, "");
	return 0;
}

int main(void)
{
	slmpm_ctx none = {0};

	settings_set("SLMPM_NAME", "known");
	settings_one_link("shm");
	settings_run("over shared memory", here, NULL);
	settings_run("closed late", late, NULL);
	settings_one_link("tcp");
	settings_run("over TCP", over_tcp, NULL);
	REFUSED(slmpm_totals(none, all, 0, MOST), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_totals_read(1, all, sizeof(*all), -1), SLMPM_EINVAL, "-1");
	REFUSED(slmpm_totals_read(1, all, sizeof(*all), MOST), SLMPM_ENOENT, "process 1");
	return 0;
}
