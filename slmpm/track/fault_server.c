/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that the kernel tells of faults: begun, and ended. */
#include "slmpm/track/fault_server.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "slmpm/engine/transfer.h"
#include "slmpm/track/uffd.h"

static void *fault_server_serve(void *arg)
{
	const struct fault_server *s = arg;
	struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop, .events = POLLIN}};

	while (!fds[1].revents) {
		(void)poll(fds, 2, -1);
		if (fds[0].revents)
			s->take(s->fd);
	}
	return NULL;
}

/* What the kernel writes is asked about where it lets us; a kernel says what it has only to one who
 * wants nothing. */
static int open_with(struct fault_server *s, int flags)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, UFFDIO_API, &api) == 0 ? 0 : -errno;
	close(fd);
	if (rc < 0)
		return rc;
	s->features = api.features & (UFFD_REMOVED | UFFD_SHARED | UFFD_UNPOPULATED);
	return uffd_open(flags, s->features);
}

void fault_server_forget(struct fault_server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->stop >= 0)
		close(s->stop);
	free(s);
}

int fault_server_start(struct fault_server **server, fault_take *take)
{
	struct fault_server *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->take = take;
	s->stop = eventfd(0, EFD_CLOEXEC);
	rc = s->stop < 0 ? -errno : 0;
	s->fd = open_with(s, 0);
	s->of_kernel = s->fd >= 0;
	if (s->fd < 0)
		s->fd = open_with(s, UFFD_USERS_ALONE);
	if (rc == 0 && s->fd < 0)
		rc = s->fd;
	if (rc == 0)
		rc = engine_start_thread(&s->thread, fault_server_serve, s);
	if (rc < 0)
		fault_server_forget(s);
	else
		*server = s;
	return rc;
}

void fault_server_end(struct fault_server *s)
{
	const uint64_t one = 1;

	(void)!write(s->stop, &one, sizeof(one));
	pthread_join(s->thread, NULL);
	fault_server_forget(s);
}
