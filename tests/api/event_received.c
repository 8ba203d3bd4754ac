/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the event of a peer's end says of messages: its library has read them all, its program a
 * part; it says how many when it closes, and now and then before, which is what is left of it when
 * it is killed.
 */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

enum { RECEIVED = 300, LEFT = 20, LENGTH = 1000, CREDIT = 64 << 10, STREAM = 1, WORD = 2 };
/* Its last word came with a quarter of the credit, of which a message takes more than its bytes. */
#define BEHIND (CREDIT / 4 / LENGTH + 1)

static int role_taker(slmpm_peer host, char **words)
{
	char buffer[LENGTH];

	for (int i = 0; i < RECEIVED; i++)
		EXPECT(slmpm_recv(host, STREAM, buffer, sizeof(buffer), NULL, PATIENCE), LENGTH);
	EXPECT(slmpm_recv(host, WORD, NULL, 0, NULL, PATIENCE), 0); /* what it leaves has come */
	OK(slmpm_send(host, WORD, NULL, 0, PATIENCE));
	if (!strcmp(words[0], "killed"))
		(void)raise(SIGKILL);
	OK(slmpm_close(host, PATIENCE));
	return 0;
}

static struct slmpm_event end_of(slmpm_peer peer)
{
	struct slmpm_event event = {.size = sizeof(event)};

	do {
		EXPECT(slmpm_next_event((slmpm_ctx){0}, &event, PATIENCE), 1);
		CHECK(event.peer.id == peer.id, "an event of another peer");
	} while (event.error >= 0);
	return event;
}

static int check(void *end)
{
	static const char bytes[LENGTH];
	slmpm_peer taker = actor_spawn("taker", end, NULL);
	struct slmpm_event event;

	for (int i = 0; i < RECEIVED + LEFT; i++)
		OK(slmpm_send(taker, STREAM, bytes, LENGTH, PATIENCE));
	OK(slmpm_send(taker, WORD, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(taker, WORD, NULL, 0, NULL, PATIENCE), 0);
	event = end_of(taker);
	CHECK(event.sent == RECEIVED + LEFT + 1 && event.arrived <= event.sent &&
		      event.arrived >= event.received,
	      "%llu sent, %llu arrived", (unsigned long long)event.sent,
	      (unsigned long long)event.arrived);
	if (!strcmp(end, "closed"))
		CHECK(event.received == RECEIVED + 1, "%llu received",
		      (unsigned long long)event.received);
	else
		CHECK(event.received <= RECEIVED + 1 && event.received + BEHIND >= RECEIVED,
		      "%llu received before it was killed", (unsigned long long)event.received);
	(void)slmpm_join(taker, NULL, PATIENCE);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"taker", role_taker}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_EAGER_CREDIT", "64k");
	for (int i = 0; i < 2; i++) {
		settings_set("SLMPM_FABRIC", fabrics[i]);
		settings_run("closed", check, "closed");
		settings_run("killed", check, "killed");
	}
	return 0;
}
