/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who writes into a protected page waits until a thread of ours, which the kernel notifies, has
 * noted the page and opened it. One serves all mirrors of the process; it touches no protected
 * page.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "slmpm/base/list.h"
#include "slmpm/engine/transfer.h"
#include "slmpm/track/uffd.h"
#include "slmpm/track/written.h"

#define MESSAGES 16

struct fault_pages {
	struct written written;
	struct list node;
	int fd;
};

struct fault_server {
	pthread_t thread;
	int fd, stop;      /* descriptors */
	uint64_t features; /* that fd has */
	bool of_kernel;    /* what the kernel writes for a system call waits, too; else it fails */
};

static struct {
	pthread_mutex_t lock;
	struct list all;             /* struct fault_pages */
	struct fault_server *server; /* while there are any */
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = {&faults.all, &faults.all}};

/* ---- what the thread receives ---------------------------------------------------------------- */

static struct fault_pages *pages_at(uintptr_t at)
{
	LIST_EACH_ENTRY(struct fault_pages, p, &faults.all, node)
		if (at >= p->written.pages.lo && at < p->written.pages.hi)
			return p;
	return NULL;
}

static void track_fault_take_fault(int fd, uintptr_t at)
{
	struct fault_pages *p = pages_at(at);
	uint64_t page = p ? p->written.page : (uint64_t)sysconf(_SC_PAGESIZE);
	struct uffdio_range range = {.start = at / page * page, .len = page};

	/* Not watched any more, or the kernel cannot just now: who waits does so again. */
	if (!p || written_open_at(&p->written, at) < 0)
		(void)ioctl(fd, UFFDIO_WAKE, &range);
}

/* Memory is about to be given back: its pages will be empty, and not protected, when that is done,
 * of which nobody tells. */
static void take_removal(uintptr_t lo, uintptr_t hi)
{
	LIST_EACH_ENTRY(struct fault_pages, p, &faults.all, node)
		written_mark_always(&p->written, lo, hi);
}

/* Who gives memory back goes on as soon as that is read: the lock makes its next scan wait until it
 * is noted, too. */
static void take_messages(int fd)
{
	struct uffd_msg m[MESSAGES];
	ssize_t got;

	pthread_mutex_lock(&faults.lock);
	got = read(fd, m, sizeof(m));
	for (ssize_t i = 0; i < got / (ssize_t)sizeof(*m); i++) {
		if (m[i].event == UFFD_EVENT_PAGEFAULT)
			track_fault_take_fault(fd, (uintptr_t)m[i].arg.pagefault.address);
		else if (m[i].event == UFFD_EVENT_REMOVE)
			take_removal((uintptr_t)m[i].arg.remove.start,
				     (uintptr_t)m[i].arg.remove.end);
	}
	pthread_mutex_unlock(&faults.lock);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void *fault_server_serve(void *arg)
{
	const struct fault_server *s = arg;
	struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop, .events = POLLIN}};

	while (!fds[1].revents) {
		(void)poll(fds, 2, -1);
		if (fds[0].revents)
			take_messages(s->fd);
	}
	return NULL;
}

/* What the kernel writes is asked about where it lets us; the features that a kernel has it shows
 * only to one who wants none. */
static int open_with(struct fault_server *s, int flags)
{
	uint64_t has = 0;
	int fd = uffd_open(flags, 0, &has);

	if (fd < 0)
		return fd;
	close(fd);
	s->features = has & (UFFD_REMOVED | UFFD_SHARED | UFFD_UNPOPULATED);
	return uffd_open(flags, s->features, &has);
}

/* In a child, which has no such thread. */
static void fault_server_forget(struct fault_server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->stop >= 0)
		close(s->stop);
	free(s);
}

static int fault_server_start(struct fault_server **server)
{
	struct fault_server *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
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

/* ---- pages ---------------------------------------------------------------------------------- */

static int fault_protect(struct written *w, uintptr_t lo, uintptr_t hi, bool on)
{
	return uffd_protect(((const struct fault_pages *)w)->fd, lo, hi, on);
}

/* With the lock; the last pages have gone. The thread takes the lock, too, so it is given back
 * meanwhile: who comes then starts another. */
static void end(void)
{
	struct fault_server *s = faults.server;
	const uint64_t one = 1;

	faults.server = NULL;
	pthread_mutex_unlock(&faults.lock);
	(void)!write(s->stop, &one, sizeof(one));
	pthread_join(s->thread, NULL);
	fault_server_forget(s);
	pthread_mutex_lock(&faults.lock);
}

/* With the lock. */
static int track_fault_watch(struct fault_pages *p, const struct range *range)
{
	int rc = 0;

	if (!faults.server)
		rc = fault_server_start(&faults.server);
	if (rc < 0)
		return rc;
	p->fd = faults.server->fd;
	/* Before Linux 6.4 a page that is not there cannot be protected: reading makes one. */
	if (!(faults.server->features & UFFD_UNPOPULATED))
		for (uintptr_t at = range->lo; at < range->hi; at += range->page)
			(void)*(volatile const unsigned char *)at;
	list_append(&faults.all, &p->node);
	return uffd_watch(p->fd, range->lo, range->hi);
}

static void close_fault(struct pages *pages)
{
	struct fault_pages *p = (struct fault_pages *)pages;
	struct uffdio_range range = {.start = pages->lo, .len = pages->hi - pages->lo};

	pthread_mutex_lock(&faults.lock);
	if (!list_empty(&p->node)) { /* who waits there goes on */
		list_remove(&p->node);
		(void)ioctl(p->fd, UFFDIO_UNREGISTER, &range);
		(void)ioctl(p->fd, UFFDIO_WAKE, &range);
		if (list_empty(&faults.all))
			end();
	}
	pthread_mutex_unlock(&faults.lock);
	written_free(&p->written);
}

static int open_fault(struct pages **pages, const struct range *range)
{
	struct fault_pages *p = written_new(sizeof(*p), &track_fault, range, fault_protect);
	int rc;

	if (!p)
		return -ENOMEM;
	list_init(&p->node);
	pthread_mutex_lock(&faults.lock);
	rc = track_fault_watch(p, range);
	pthread_mutex_unlock(&faults.lock);
	if (rc < 0)
		close_fault(&p->written.pages);
	else
		*pages = &p->written.pages;
	return rc;
}

/* The child's memory is not watched, and it has no thread; its descriptors would keep the parent's
 * memory watched. */
static void track_fault_forked(struct pages *pages)
{
	(void)pages;
	if (faults.server)
		fault_server_forget(faults.server);
	faults.server = NULL;
	list_init(&faults.all);
	(void)pthread_mutex_init(&faults.lock, NULL);
}

static int track_fault_next(struct pages *pages, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	if (*at == pages->lo) {
		pthread_mutex_lock(&faults.lock);
		pthread_mutex_unlock(&faults.lock);
	}
	return written_next(pages, at, lo, hi);
}

/* Where the kernel waits as others do nothing has to be opened ahead. */
static bool track_fault_lies(uintptr_t lo, uintptr_t hi, bool unprotect)
{
	bool any = false;

	pthread_mutex_lock(&faults.lock);
	if (faults.server && !faults.server->of_kernel)
		LIST_EACH_ENTRY(struct fault_pages, p, &faults.all, node) {
			if (p->written.pages.lo >= hi || p->written.pages.hi <= lo)
				continue;
			any = true;
			if (unprotect)
				written_unprotect(&p->written.pages, lo, hi);
		}
	pthread_mutex_unlock(&faults.lock);
	return any;
}

bool track_fault_of_kernel(void)
{
	uint64_t has;
	int fd = uffd_open(0, 0, &has);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

const struct finder track_fault = {
	.name = "fault",
	.open = open_fault,
	.close = close_fault,
	.forked = track_fault_forked,
	.next = track_fault_next,
	.unprotect = written_unprotect,
	.lies = track_fault_lies,
};
