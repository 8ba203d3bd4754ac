/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: how they are written, and sockets at those of TCP, found in bounded time. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <slmpm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/net/url.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define SECONDS 20
#define SECRET  "000102030405060708090a0b0c0d0e0f"

struct writing {
	const char *text, *host, *port; /* host NULL: it is not understood ... */
	const char *word;               /* ... and the detail says so; else: how it is shown */
};

static const struct writing writings[] = {
	{"tcp://127.0.0.1:4711", "127.0.0.1", "4711", "tcp://127.0.0.1:4711"},
	{"tcp://[::1]:0", "::1", "0", "tcp://[::1]:0"},
	{"tcp://[fe80::1%eth0]:65535", "fe80::1%eth0", "65535", "tcp://[fe80::1%eth0]:65535"},
	{"tcp://*:1", "", "1", "tcp://*:1"},
	{"tcp://:1", "", "1", "tcp://:1"},
	{"tcp://a-name.example:80", "a-name.example", "80", "tcp://a-name.example:80"},
	{"tcp://h:7#" SECRET, "h", "7", "tcp://h:7"},
	{"tcp://", NULL, NULL, "write tcp://host:port"},
	{"tcp://host", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:65536", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:-1", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:80x", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:http", NULL, NULL, "write tcp://host:port"},
	{"tcp://::1:80", NULL, NULL, "tcp://[::1]:port"},
	{"tcp://[]:80", NULL, NULL, "tcp://[::1]:port"},
	{"tcp://[::1:80", NULL, NULL, "tcp://[::1]:port"},
	{"tcp://a b:80", NULL, NULL, "write tcp://host:port"},
	{"tcp://user@host:80", NULL, NULL, "write tcp://host:port"},
	{"tcp://host:80/path", NULL, NULL, "write tcp://host:port"},
	{"tcp://**:80", NULL, NULL, "write tcp://host:port"},
	{"tcp://h:7#", NULL, NULL, "32 hex digits"},
	{"tcp://h:7#cafe", NULL, NULL, "\"tcp://h:7#...\""},
	{"udp://h:7", NULL, NULL, "tcp://host:port"},
	{"TCP://h:7", NULL, NULL, "tcp://host:port"},
	{"shm:", NULL, NULL, "shm:NAME"},
	{"shm:/", NULL, NULL, "write shm:NAME or shm:/path"},
	{"shm://", NULL, NULL, "write shm:NAME or shm:/path"},
	{"shm://work", NULL, NULL, "write shm:work, or shm:/path"},
	{"shm:///tmp/x", NULL, NULL, "shm:/path"},
	{"", NULL, NULL, "shm:NAME"},
};

static void read_all(void)
{
	static char endless[4096] = "tcp://";
	struct url url;

	for (size_t i = 0; i < sizeof(writings) / sizeof(*writings); i++) {
		const struct writing *w = &writings[i];
		int rc = url_parse(&url, w->text);

		CHECK(rc == (w->host ? 0 : -SLMPM_EADDRESS), "%s: %d", w->text, rc);
		CHECK(w->host || strstr(slmpm_error_detail(), w->word), "%s: \"%s\"", w->text,
		      slmpm_error_detail());
		CHECK(!strstr(slmpm_error_detail(), "cafe"), "a secret is shown");
		if (!w->host)
			continue;
		CHECK(url.kind == URL_TCP && !strcmp(url.host, w->host) &&
			      !strcmp(url.port, w->port) && !strcmp(url.text, w->word),
		      "%s: \"%s\" \"%s\", shown as \"%s\"", w->text, url.host, url.port, url.text);
		CHECK(url.secret.known == !!strchr(w->text, '#'), "%s: its secret", w->text);
	}
	memset(endless + 6, 'x', sizeof(endless) - 7);
	CHECK(url_parse(&url, endless) == -SLMPM_EADDRESS, "an endless name");
	CHECK(url_parse(&url, NULL) == -SLMPM_EADDRESS, "none");
	CHECK(url_parse(&url, "shm:x") == 0 && url.kind == URL_LOCAL && !*url_path(&url), "shm:x");
	CHECK(url_parse(&url, "shm:/a/b") == 0 && !strcmp(url_path(&url), "/a/b"), "shm:/a/b");
}

/* ---- sockets -------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int listen_at(const char *text)
{
	struct url url;
	int rc = url_parse(&url, text);

	return rc < 0 ? rc : url_listen(&url, 4);
}

static int connect_to(const char *host, unsigned port, int ms)
{
	struct url url;
	char text[128];
	int rc;

	snprintf(text, sizeof(text), "tcp://%s:%u", host, port);
	rc = url_parse(&url, text);
	return rc < 0 ? rc : url_connect(&url, (now_ms() + (uint64_t)ms) * 1000000);
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof(sa);

	CHECK(getsockname(fd, (struct sockaddr *)&sa, &size) == 0, "no name");
	return ntohs(sa.ss_family == AF_INET ? ((struct sockaddr_in *)&sa)->sin_port :
					       ((struct sockaddr_in6 *)&sa)->sin6_port);
}

/* A listener at AT is reached as TO. */
static void meet(const char *at, const char *to)
{
	int listener = listen_at(at), there, here;

	CHECK(listener >= 0, "%s: %s", at, slmpm_error_detail());
	there = connect_to(to, port_of(listener), 5000);
	CHECK(there >= 0, "%s: %s", at, slmpm_error_detail());
	here = accept(listener, NULL, NULL);
	CHECK(here >= 0, "%s: nobody came", at);
	close(here);
	close(there);
	close(listener);
}

static void expect(int rc, int error, const char *word)
{
	CHECK(rc == -error && strstr(slmpm_error_detail(), word), "%d, \"%s\" lacks \"%s\"", rc,
	      slmpm_error_detail(), word);
}

static bool has_ipv6(void)
{
	int fd = listen_at("tcp://[::1]:0");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void find_sockets(void)
{
	char text[64];
	int fd, again;

	meet("tcp://127.0.0.1:0", "127.0.0.1");
	meet("tcp://127.0.0.1:0", "localhost");
	meet("tcp://localhost:0", "127.0.0.1");
	meet("tcp://127.0.0.1:0", "");
	if (has_ipv6())
		meet("tcp://[::1]:0", "[::1]");
	fd = listen_at("tcp://127.0.0.1:0");
	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u", port_of(fd));
	expect(listen_at(text), SLMPM_EBUSY, "somebody listens there already");
	again = (int)port_of(fd);
	close(fd);
	expect(connect_to("127.0.0.1", (unsigned)again, 5000), SLMPM_ENOENT,
	       "nobody listens there");
	expect(connect_to("localhost", (unsigned)again, 5000), SLMPM_ENOENT,
	       "nobody listens there");
}

/* Addresses of documentation, and the wildcard: nobody is asked before it is allowed. */
static void refuse_far(void)
{
	expect(listen_at("tcp://*:0"), SLMPM_EACCES, "SLMPM_INSECURE=y");
	expect(listen_at("tcp://192.0.2.1:0"), SLMPM_EACCES, "192.0.2.1:0 is not of this machine");
	expect(connect_to("192.0.2.1", 9, 5000), SLMPM_EACCES, "SLMPM_INSECURE=y");
	expect(connect_to("[2001:db8::1]", 9, 5000), SLMPM_EACCES, "[2001:db8::1]:9");
	expect(connect_to("[::ffff:192.0.2.1]", 9, 5000), SLMPM_EACCES, "192.0.2.1:9");
	meet("tcp://[::ffff:127.0.0.1]:0", "127.0.0.1");
}

/* A queue that is full answers nobody; a name that is not known, sooner or later. */
static void end_in_time(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
	uint64_t begin = now_ms();

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 0) == 0,
	      "no socket");
	for (int i = 0; (rc = connect_to("127.0.0.1", port_of(fd), 300)) >= 0; i++)
		CHECK(i < 64, "its queue has no end");
	expect(rc, SLMPM_ETIMEOUT, "no answer");
	CHECK(now_ms() - begin < 5000, "%d ms", (int)(now_ms() - begin));
	begin = now_ms();
	rc = connect_to("no-such-host.invalid", 9, 300);
	CHECK(rc == -SLMPM_EADDRESS || rc == -SLMPM_ETIMEOUT, "%d, %s", rc, slmpm_error_detail());
	CHECK(now_ms() - begin < 3000, "%d ms", (int)(now_ms() - begin));
}

static int allowed(void *arg)
{
	(void)arg;
	setenv("SLMPM_INSECURE", "y", 1);
	meet("tcp://*:0", "127.0.0.1");
	meet("tcp://:0", "localhost");
	if (has_ipv6())
		meet("tcp://:0", "[::1]");
	return 0;
}

int main(void)
{
	unsetenv("SLMPM_INSECURE");
	CHECK(child_run(allowed, NULL, SECONDS) == 0, "allowed: see above");
	read_all();
	find_sockets();
	refuse_far();
	end_in_time();
	return 0;
}
