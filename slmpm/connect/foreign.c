/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing what a peer has sent, apart (foreign.h). */
#include "slmpm/connect/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define NOBODY    (-1)
#define CLOSING   (-2)
#define TICK_NS   10000000
#define NO_CHECKS __attribute__((no_sanitize("address", "thread", "undefined")))

/* Memory that this process shares with those two, who share no other with it. */
struct waiting {
	_Atomic int fd[FOREIGN_MAX];       /* NOBODY: free; CLOSING: somebody is at it, */
	_Atomic pid_t closer[FOREIGN_MAX]; /* this one; 0: it has not begun */
	/* A supervisor scans the slots. Sequentially consistent, as the slots are: who fills one
	 * and finds it busy is seen by it before it goes; else another is started. */
	_Atomic int busy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting *waiting;
static pid_t senders[FOREIGN_MAX]; /* of what is in each slot */
static bool kept;                  /* perhaps: no slot is scanned else */
static pid_t supervisor;           /* the last one: to be reaped */

/* ---- in the other processes: system calls alone, for locks may be held in their copy ---- */

/* Like fork, without its handlers, which would close descriptors that are not copies; and without a
 * signal at its end, so that the application's wait does not meet it. */
NO_CHECKS static pid_t start_apart(void)
{
#if defined(__s390x__)
	return (pid_t)syscall(SYS_clone, NULL, (long)CLONE_FILES, NULL, NULL, 0L);
#else
	return (pid_t)syscall(SYS_clone, (long)CLONE_FILES, NULL, NULL, NULL, 0L);
#endif
}

/* Slots that say FD. */
NO_CHECKS static int slots_of(const struct waiting *w, int fd)
{
	int n = 0;

	for (int i = 0; i < FOREIGN_MAX; i++)
		n += atomic_load(&w->fd[i]) == fd;
	return n;
}

/* The table is nobody's any more, but held: sockets and names in it would outlive their process. */
NO_CHECKS static void close_the_rest(const struct waiting *w)
{
	struct rlimit most = {.rlim_cur = 1 << 20};

	(void)getrlimit(RLIMIT_NOFILE, &most);
	for (rlim_t fd = 0; fd < most.rlim_cur; fd++)
		if (!slots_of(w, (int)fd))
			(void)syscall(SYS_close, (int)fd);
}

/*
 * All at once: a descriptor leaves the table before its file is asked, and what is left there every
 * other child of this process has, too, until it executes something, or ends. The slot says so
 * first: a supervisor that is killed in between loses a descriptor, where the next one would close
 * another of that number.
 */
NO_CHECKS static void begin_to_close(struct waiting *w, int i, int fd)
{
	pid_t pid;

	atomic_store(&w->closer[i], 0);
	atomic_store(&w->fd[i], CLOSING);
	pid = start_apart();
	if (pid == 0) {
		/* Its parent may be killed before it does the same. */
		atomic_store(&w->closer[i], (pid_t)syscall(SYS_getpid));
		(void)syscall(SYS_close, fd);
		_exit(0);
	}
	if (pid > 0)
		atomic_store(&w->closer[i], pid);
	else /* there is no process now */
		atomic_store(&w->fd[i], fd);
}

/* One that another supervisor began with, which was killed, is nobody's child here. */
NO_CHECKS static bool foreign_is_through(struct waiting *w, int i)
{
	pid_t closer = atomic_load(&w->closer[i]), ended;

	if (closer <= 0)
		return true;
	ended = waitpid(closer, NULL, __WALL | WNOHANG);
	return ended > 0 || (ended < 0 && kill(closer, 0) != 0);
}

/* What waits gets somebody, who is through gives the slot back: are any left? */
NO_CHECKS static bool go_over(struct waiting *w)
{
	bool left = false;

	for (int i = 0; i < FOREIGN_MAX; i++) {
		int fd = atomic_load(&w->fd[i]);

		if (fd >= 0) {
			begin_to_close(w, i, fd);
		} else if (fd == CLOSING && foreign_is_through(w, i)) {
			atomic_store(&w->fd[i], NOBODY);
			continue;
		}
		left |= fd != NOBODY;
	}
	return left;
}

NO_CHECKS static void supervise(struct waiting *w, pid_t parent)
{
	static const struct timespec tick = {0, TICK_NS};

	for (;;) {
		while (go_over(w)) {
			pid_t now;

			(void)nanosleep(&tick, NULL);
			now = getppid();
			/* 0: it is outside of this process namespace: nothing tells of its end. */
			if (now != parent && now != 0) {
				close_the_rest(w);
				return;
			}
		}
		atomic_store(&w->busy, 0);
		if (slots_of(w, NOBODY) == FOREIGN_MAX || atomic_exchange(&w->busy, 1))
			return;
	}
}

/* ---- in this process ---- */

static bool has_slots(void)
{
	void *at;

	if (waiting)
		return true;
	at = mmap(NULL, sizeof(*waiting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return false;
	waiting = at;
	for (int i = 0; i < FOREIGN_MAX; i++)
		atomic_init(&waiting->fd[i], NOBODY);
	return true;
}

static void start_supervisor(void)
{
	pid_t parent = getpid();
	sigset_t all, before;

	if (supervisor > 0)
		(void)waitpid(supervisor, NULL, __WALL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* its handlers are the application's */
	supervisor = start_apart();
	if (supervisor == 0) {
		supervise(waiting, parent);
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (supervisor < 0) /* tried again when the next comes */
		atomic_store(&waiting->busy, 0);
}

static bool foreign_keep(int fd, pid_t sender)
{
	for (int i = 0; i < FOREIGN_MAX; i++) {
		int nobody = NOBODY;

		if (!atomic_compare_exchange_strong(&waiting->fd[i], &nobody, fd))
			continue;
		senders[i] = sender;
		kept = true;
		return true;
	}
	return false;
}

/* Unless one scans the slots. Where it was killed it has left that word behind. */
static void want_supervisor(void)
{
	bool busy = atomic_exchange(&waiting->busy, 1);

	if (busy && supervisor > 0 && waitpid(supervisor, NULL, __WALL | WNOHANG) == 0)
		return;
	if (busy)
		supervisor = 0; /* reaped just now */
	start_supervisor();
}

/* The slots are the parent's, and so is their supervisor. */
void foreign_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	waiting = NULL;
	supervisor = 0;
	kept = false;
}

static int signal_error(int fd)
{
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 ? 0 : errno;
}

/* It may belong to another user, or be in another namespace (EINVAL). A filter of system calls says
 * EPERM, too, of any. */
bool foreign_is_process(int fd)
{
	switch (signal_error(fd)) {
	case 0:
	case ESRCH:
	case EINVAL: return true;
	case EPERM: return signal_error(-1) == EBADF;
	default: return false;
	}
}

void foreign_close(int fd, pid_t sender)
{
	/* No file system is asked. Of sockets one may be: who holds the last end of one closes the
	 * files that wait in it. */
	if (fcntl(fd, F_GET_SEALS) >= 0 || foreign_is_process(fd)) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&lock);
	if (has_slots() && foreign_keep(fd, sender))
		want_supervisor();
	pthread_mutex_unlock(&lock);
}

/* OWN: SENDER's among them. All, where there can be none. */
static int foreign_count(pid_t sender, int *own)
{
	int taken = 0;
	bool able;

	pthread_mutex_lock(&lock);
	able = has_slots();
	for (int i = 0; kept && i < FOREIGN_MAX; i++) {
		bool full = atomic_load(&waiting->fd[i]) != NOBODY;

		taken += full;
		*own += full && senders[i] == sender;
	}
	kept = taken;
	if (taken)
		want_supervisor();
	pthread_mutex_unlock(&lock);
	return able ? taken : FOREIGN_MAX;
}

bool foreign_has_room(int n, pid_t sender)
{
	int own = 0, taken = foreign_count(sender, &own);

	return taken + n <= FOREIGN_MAX && own + n <= FOREIGN_EACH;
}

bool foreign_is_empty(void)
{
	int own = 0;

	return foreign_count(0, &own) == 0;
}

bool foreign_has_none(pid_t sender)
{
	int own = 0;

	(void)foreign_count(sender, &own);
	return own == 0;
}
