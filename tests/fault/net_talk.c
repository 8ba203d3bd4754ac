/* SPDX-License-Identifier: BSD-3-Clause */
/* helper */
/*
 * One end of a connection between two hosts, for net_lost.sh, net_outage.sh and net_ways.sh:
 *	net_talk echo URL           says "port N", and sends back what comes
 *	net_talk ask URL COUNT      so many messages of all lengths, each after the last one's echo, and
 *	                            "at N" now and then
 *	net_talk stream URL         a stream of long ones; nobody needs to send them back
 *	net_talk doze URL           the same as ask, and between two it is in no call for a while
 *	net_talk idle URL           nothing
 * Who connects says "joined". At its end each says "end NAME MS COUNT AT WHY": the error's name or
 * "none", how long after anything last went well it came, how often it went well, and when this was
 * (ms since the machine began).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define LONG    100000u
#define DOZE_US 700000

enum { ECHOED, STREAMED };

static unsigned char out[LONG], in[LONG];
static int64_t last;
static unsigned long well;

static void went_well(void)
{
	last = actor_now_ms();
	well++;
}

static const char *name_of(int64_t rc)
{
	switch (rc) {
	case -SLMPM_EDEAD: return "EDEAD";
	case -SLMPM_ECLOSED: return "ECLOSED";
	case -SLMPM_EPROTO: return "EPROTO";
	default: return rc < 0 ? slmpm_error_detail() : "none";
	}
}

static int say_end(int64_t rc)
{
	printf("end %s %lld %lu %lld %s\n", name_of(rc), (long long)(actor_now_ms() - last), well,
	       (long long)actor_now_ms(), rc < 0 ? slmpm_error_detail() : "");
	return 0;
}

static int echo(slmpm_peer peer)
{
	struct slmpm_done done;
	int64_t rc;

	for (;;) {
		rc = slmpm_recv(peer, SLMPM_ANY_STREAM, in, sizeof(in), &done, -1);
		if (rc >= 0 && done.stream == ECHOED)
			rc = slmpm_send(peer, ECHOED, in, (size_t)rc, -1);
		if (rc < 0)
			return say_end(rc);
		went_well();
	}
}

static int64_t ask_once(slmpm_peer peer, unsigned long i)
{
	size_t size = i * 7919 % (i % 16 ? 2000 : LONG);
	int64_t rc;

	actor_fill(out, i, size);
	rc = slmpm_send(peer, ECHOED, out, size, -1);
	if (rc < 0)
		return rc;
	rc = slmpm_recv(peer, ECHOED, in, sizeof(in), NULL, -1);
	CHECK(rc < 0 || (rc == (int64_t)size && actor_filled(in, i, size)),
	      "message %lu of %zu bytes comes back damaged", i, size);
	return rc;
}

/* PAUSE_US between two, in no call. */
static int ask(slmpm_peer peer, unsigned long count, useconds_t pause_us)
{
	int64_t rc = 0;

	while (well < count && (rc = ask_once(peer, well)) >= 0) {
		went_well();
		if (pause_us)
			usleep(pause_us);
		if (well % 128 == 0)
			printf("at %lu\n", well);
	}
	return say_end(rc);
}

static int stream(slmpm_peer peer)
{
	int rc;

	while ((rc = slmpm_send(peer, STREAMED, out, LONG, -1)) == 0)
		went_well();
	return say_end(rc);
}

static int idle(slmpm_peer peer)
{
	return say_end(slmpm_recv(peer, ECHOED, in, sizeof(in), NULL, -1));
}

static int listen_at(const char *url)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer peer;

	OK(slmpm_listen(&listener, (slmpm_ctx){0}, url));
	OK(slmpm_listener_query(listener, &info));
	printf("port %u\n", info.port);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	went_well();
	return echo(peer);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	slmpm_peer peer;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(mode, "echo") == 0)
		return listen_at(argv[2]);
	CHECK(*mode, "usage: net_talk echo|ask|doze|stream|idle URL [COUNT]");
	OK(slmpm_connect(&peer, (slmpm_ctx){0}, argv[2], PATIENCE));
	went_well();
	well = 0;
	printf("joined\n");
	if (strcmp(mode, "ask") == 0)
		return ask(peer, argc > 3 ? strtoul(argv[3], NULL, 0) : ~0ul, 0);
	if (strcmp(mode, "doze") == 0)
		return ask(peer, ~0ul, DOZE_US);
	return strcmp(mode, "stream") == 0 ? stream(peer) : idle(peer);
}
