/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer says when it refuses, and what it says that is refused: told by code, shown as
 * text. */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <slmpm.h>

#include "slmpm/base/wire.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

struct answer {
	int listener;
	const void *packet;
	size_t length;
};

/* Answers the first connection with one packet and waits until it has been dropped for it. */
static int answer(void *arg)
{
	const struct answer *a = arg;
	char sink[512];
	int fd = accept(a->listener, NULL, NULL);

	CHECK(fd >= 0, "nobody came");
	CHECK(send(fd, a->packet, a->length, 0) == (ssize_t)a->length, "not sent");
	while (recv(fd, sink, sizeof(sink), 0) > 0)
		;
	return 0;
}

static int listen_raw(char url[64])
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static int number;

	snprintf(url, 64, "shm:refusal-%d-%d", (int)getpid(), number++);
	n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "slmpm/%u/%s", (unsigned)getuid(),
		     url + 4);
	CHECK(bind(fd, (struct sockaddr *)&sa,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0 &&
		      listen(fd, 1) == 0,
	      "no socket");
	return fd;
}

/* slmpm_connect to a peer that answers with PACKET ends as ERROR, with WORD in its text. */
static void refused(const void *packet, size_t length, int error, const char *word)
{
	struct answer a = {.packet = packet, .length = length};
	slmpm_ctx none = {0};
	slmpm_peer peer;
	char url[64];
	pid_t child;
	int rc;

	a.listener = listen_raw(url);
	child = child_start(answer, &a, 20);
	close(a.listener);
	rc = slmpm_connect(&peer, none, url, 10000);
	CHECK(rc == -error, "%d instead of %d: %s", rc, -error, slmpm_error_detail());
	CHECK(strstr(slmpm_error_detail(), word), "\"%s\" lacks \"%s\"", slmpm_error_detail(),
	      word);
	for (const char *at = slmpm_error_detail(); *at; at++)
		CHECK(*at >= ' ' && *at <= '~', "character 0x%x in the text", *at);
	CHECK(child_wait(child) == 0, "the raw peer failed");
}

static void says(uint32_t error, const char *reason, int expected)
{
	struct wire_bye bye = {.head = {LITTLE_32(WIRE_BYE), LITTLE_32(sizeof(bye))},
			       .error = LITTLE_32(error)};

	memcpy(bye.reason, reason, strlen(reason));
	refused(&bye, sizeof(bye), expected, "it says: ");
}

static struct wire_hello hello(void)
{
	return (struct wire_hello){
		.head = {LITTLE_32(WIRE_HELLO), LITTLE_32(sizeof(struct wire_hello))},
		.magic = LITTLE_64(WIRE_MAGIC),
		.major = LITTLE_16(WIRE_MAJOR),
		.byte_order = LITTLE_32(1),
		.packet_max = LITTLE_64(8192),
		.eager_max = LITTLE_64(8192),
		.eager_credit = LITTLE_64(1 << 20),
		.loan_max = LITTLE_64(1 << 20),
		.version = "0.1.0",
		.fabric = "shm",
	};
}

int main(void)
{
	struct wire_hello h = hello();

	says(wire_error(-SLMPM_EVERSION), "too old", SLMPM_EVERSION);
	says(wire_error(-SLMPM_ENOTSUP), "another fabric", SLMPM_ENOTSUP);
	says(wire_error(-SLMPM_ENOFILE), "out of file descriptors in this version", SLMPM_ENOFILE);
	says(wire_error(-SLMPM_ECLOSED), "its listener was closed", SLMPM_ECLOSED);
	says(wire_error(-SLMPM_EPROTO), "\033[2Jnonsense\n", SLMPM_EPROTO);
	says(wire_error(-SLMPM_EHANDLE), "a code that no peer may set", SLMPM_EPROTO);
	says(0x80000000, "nor this", SLMPM_EPROTO);

	h.major = LITTLE_16(WIRE_MAJOR + 1);
	memset(h.version, '\033', sizeof(h.version));
	refused(&h, sizeof(h), SLMPM_EVERSION, "wire version");
	return 0;
}
