#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The loop of slmpm_arm(3), as the page shows it, serves two clients over several links: bursts with pauses, during which
# links come up, and one of which loses a link in the middle. Both get all their answers: an event of a link
# closes nobody; and both are closed once they have gone.
# native-only
# timeout: 90
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

awk '/^# / { on = /^# EXAMPLE/ } on && /^```/ { open = !open; next } on && open' doc/man/slmpm_arm.3.scd |
	sed 's/\\\\/\\/g' >"$work/page.c"
grep -q '^int serve(slmpm_ctx ctx, int other)' "$work/page.c" || { echo "the page has another example"; exit 1; }
cat "$work/page.c" - >"$work/serve.c" <<'C'
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURSTS 6
#define BURST  40
#define LENGTH 3000

static char url[64];

/* The client's sockets of TCP end: its link over that is lost, the peer is not. */
static int cut(void)
{
	int n = 0;

	for (int fd = 3; fd < 256; fd++) {
		int domain = 0, listens = 0;
		socklen_t size = sizeof(domain);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_INET &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens)
			n += shutdown(fd, SHUT_RDWR) == 0;
	}
	return n;
}

static int complain(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, slmpm_error_detail());
	return 1;
}

/* Links move while this one is in the library. */
static void pause_a_while(slmpm_peer server, int ms)
{
	(void)slmpm_recv(server, 2, NULL, 0, NULL, ms);
}

static int client(int cuts)
{
	static char out[LENGTH], in[LENGTH];
	slmpm_ctx none = {0};
	slmpm_peer server;
	int lost = 0;

	while (slmpm_connect(&server, none, url, 5000) < 0)
		usleep(10000);
	for (int b = 0; b < BURSTS; b++) {
		for (int i = 0; i < BURST; i++) {
			memset(out, b * BURST + i, LENGTH);
			if (slmpm_send(server, 1, out, LENGTH, 10000) < 0)
				return complain("client sends");
			if (i == BURST / 2 && cuts && b % 2)
				lost += cut();
		}
		for (int i = 0; i < BURST; i++) {
			memset(out, b * BURST + i, LENGTH);
			if (slmpm_recv(server, 1, in, LENGTH, NULL, 10000) != LENGTH || memcmp(in, out, LENGTH))
				return complain("client is answered");
		}
		pause_a_while(server, 50);
	}
	if (cuts && !lost)
		return complain("no link could be cut");
	return slmpm_close(server, 5000) < 0 ? complain("client closes") : 0;
}

/* Both, and then a byte that says how they ended; by then the server has heard of it. */
static int clients(int tell)
{
	pid_t pids[2];
	int status, bad = 0;

	for (int i = 0; i < 2; i++)
		if ((pids[i] = fork()) == 0)
			_exit(client(i));
	for (int i = 0; i < 2; i++)
		bad |= waitpid(pids[i], &status, 0) != pids[i] || status != 0;
	usleep(300000);
	return write(tell, bad ? "b" : "g", 1) != 1;
}

int main(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer peers[2];
	slmpm_ctx ctx;
	int ends[2];
	char how;

	snprintf(url, sizeof(url), "shm:man-arm-%d", (int)getpid());
	if (pipe(ends) < 0)
		return 1;
	if (fork() == 0)
		_exit(clients(ends[1]));
	if (slmpm_open(&ctx, NULL) < 0 || slmpm_listen(&listener, ctx, url) < 0)
		return complain("server");
	for (int i = 0; i < 2; i++)
		if (slmpm_accept(listener, &peers[i], 10000) < 0)
			return complain("accept");
	if (serve(ctx, ends[0]) != 0 || read(ends[0], &how, 1) != 1)
		return complain("serve");
	for (int i = 0; i < 2; i++)
		if (slmpm_peer_query(peers[i], &info) != -SLMPM_EHANDLE)
			return complain("one who has gone was not closed");
	return how == 'g' ? 0 : complain("a client");
}
C
${CC:-gcc} -std=gnu11 -Wall -Wextra -Iinclude "$work/serve.c" -o "$work/serve" -L"$SLMPM_BUILD/lib" -lslmpm \
	-Wl,-rpath,"$SLMPM_BUILD/lib" || exit 1

bad=0
for links in shm,tcp tcp,tcp; do
	export SLMPM_FABRIC=${links%%,*} SLMPM_LINKS=$links SLMPM_LINKS_AFTER=0
	timeout 40 "$work/serve" 2>"$work/said" || { echo "$links: exit status $?" >&2; cat "$work/said" >&2; bad=1; }
	for word in 'lost' 'closed'; do
		grep -qi "$word" "$work/said" || { echo "$links: nothing was $word" >&2; cat "$work/said" >&2; bad=1; }
	done
done
exit $bad
