/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * Of a user who has more descriptors on their way than a process may have open, that one cannot
 * send any: both sides of its handshake learn that it lacks descriptors, in words, and no fault is
 * the other's.
 */
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define SENT 200 /* are on their way */
#define OPEN 64  /* may be open */

static void send_many(void)
{
	static char space[CMSG_SPACE(SENT * sizeof(int))];
	struct iovec iov = {.iov_base = space, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int ends[2], fds[SENT];

	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	for (int i = 0; i < SENT; i++)
		fds[i] = 1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	CHECK(sendmsg(ends[0], &msg, 0) == 1, "sendmsg");
}

/* Who may do anything may do that as well. */
static void drop_rights(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	CHECK(syscall(SYS_capset, &head, none) == 0, "capset");
}

static int is_limited(slmpm_peer unused, char **words)
{
	const struct rlimit most = {OPEN, OPEN};
	slmpm_peer host;

	(void)unused;
	(void)words;
	send_many();
	drop_rights();
	CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0, "setrlimit");
	REFUSED(slmpm_parent(&host), SLMPM_ENOFILE,
		"handshake: too many descriptors of this user's are on their way");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-is_limited", is_limited}, {NULL, NULL}};
	slmpm_peer child;
	char word[8];

	actor_begin(argc, argv, roles);
	settings_one_link("shm");
	child = actor_spawn("-is_limited", NULL, NULL);
	REFUSED(slmpm_recv(child, 0, word, sizeof(word), NULL, PATIENCE), SLMPM_ENOFILE,
		"it says: handshake: too many descriptors");
	actor_join(child, 0);
	return 0;
}
