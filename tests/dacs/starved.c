/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 30 */
/* native-only */
/*
 * Mutexes and groups where memory runs out just when a partner is to be told something: it is told
 * later, and an offer that could not be accepted stands.
 */
#include "tests/dacs/pair.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define MESSAGES 300 /* more than a ring holds */
#define STREAM   5

static char text[64];

/* ---- memory that runs out: in front of the C library's --------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

static unsigned left; /* until they fail; 0: they do not */
static bool failed;

static bool fails(void)
{
	if (!left)
		return false;
	if (left > 1) {
		left--;
		return false;
	}
	failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

/* The N-th allocation from now on, from 1, and all behind it fail. */
static void starve_from(unsigned n)
{
	failed = false;
	left = n;
}

/* No more. True: some did. */
static bool starve_end(void)
{
	left = 0;
	return failed;
}

/* ---- the accelerator, whose calls end at a deadline ------------------------------------------ */

static void recv_all(void)
{
	char got[sizeof(text)];

	for (int i = 0; i < MESSAGES; i++)
		EXPECT(pair_recv(pair_parent(), STREAM, got, sizeof(got), DACS_BYTE_SWAP_DISABLE),
		       DACS_WID_READY);
}

/* Its offer stands when the call has ended. */
static int role_owner(int argc, char **argv)
{
	dacs_mutex_t mutex;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mutex_init(&mutex));
	EXPECT(dacs_mutex_share(UP, mutex), DACS_ERR_DACSD_FAILURE);
	pair_tell(pair_parent(), (uint32_t)getpid());
	recv_all();
	LATE(dacs_mailbox_read(&word, UP), DACS_SUCCESS); /* it has been accepted, behind those */
	while (dacs_mutex_destroy(&mutex) == DACS_ERR_DACSD_FAILURE)
		;
	OK(dacs_exit());
	return 0;
}

/* Stands at the barrier when the call has ended. */
static int role_member(int argc, char **argv)
{
	bool early = atoi(argv[0]);
	dacs_group_t group;

	(void)argc;
	OK(dacs_init(0));
	LATE(dacs_group_accept(UP, &group), DACS_SUCCESS);
	if (early)
		EXPECT(dacs_barrier_wait(group), DACS_ERR_DACSD_FAILURE);
	pair_tell(pair_parent(), (uint32_t)getpid());
	recv_all();
	LATE(dacs_barrier_wait(group), DACS_SUCCESS);
	LATE(dacs_group_leave(&group), DACS_SUCCESS);
	OK(dacs_exit());
	return 0;
}

/* ---- the host -------------------------------------------------------------------------------- */

struct stopped {
	struct child child;
	pid_t pid;
	dacs_wid_t wid;
};

/* Stops it, and fills its ring: what is said from now on takes memory. */
static void stop(struct stopped *s)
{
	uint32_t word = 0;
	siginfo_t info;

	OK(dacs_mailbox_read(&word, AT(s->child)));
	s->pid = (pid_t)word;
	CHECK(kill(s->pid, SIGSTOP) == 0, "no such process");
	CHECK(waitid(P_PID, (id_t)s->pid, &info, WSTOPPED | WNOWAIT) == 0, "it does not stop");
	OK(dacs_wid_reserve(&s->wid));
	for (int i = 0; i < MESSAGES; i++)
		OK(dacs_send(text, sizeof(text), AT(s->child), STREAM, s->wid,
			     DACS_BYTE_SWAP_DISABLE));
}

static void go_on(struct stopped *s)
{
	CHECK(kill(s->pid, SIGCONT) == 0, "no such process");
	EXPECT(dacs_wait(s->wid), DACS_WID_READY);
	OK(dacs_wid_release(&s->wid));
}

static struct child start(const char *role, const char *a)
{
	struct child c;

	setenv("SLMPM_TIMEOUT", "300", 1); /* the child's */
	c = pair_start(role, a);
	unsetenv("SLMPM_TIMEOUT");
	return c;
}

static int accepted_later(int argc, char **argv)
{
	struct stopped s;
	dacs_mutex_t mutex;
	DACS_ERR_T rc;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	s.child = start("owner", NULL);
	stop(&s);
	for (unsigned n = 1;; n++) {
		starve_from(n);
		rc = dacs_mutex_accept(AT(s.child), &mutex);
		if (!starve_end() || rc != DACS_ERR_NO_RESOURCE)
			break;
		CHECK(n < 20, "there is never enough");
	}
	OK(rc);
	go_on(&s);
	OK(dacs_mutex_lock(mutex));
	OK(dacs_mutex_unlock(mutex));
	pair_tell(s.child, 1);
	OK(dacs_mutex_release(&mutex));
	pair_end(s.child, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static void tell_member(bool early)
{
	struct stopped s;
	dacs_group_t group;

	OK(dacs_init(0));
	s.child = start("member", early ? "1" : "0");
	OK(dacs_group_init(&group, 0));
	OK(dacs_group_add_member(DACS_DE_SELF, DACS_PID_SELF, group));
	OK(dacs_group_add_member(AT(s.child), group));
	if (early) {
		starve_from(1); /* for a meeting: then the owner counts, and has to tell */
		OK(dacs_group_close(group));
		CHECK(starve_end(), "it took no memory");
	}
	stop(&s);
	starve_from(1);
	if (early)
		OK(dacs_barrier_wait(group));
	else
		OK(dacs_group_close(group));
	CHECK(starve_end(), "it took no memory");
	go_on(&s);
	if (!early)
		OK(dacs_barrier_wait(group));
	pair_end(s.child, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_group_destroy(&group));
	OK(dacs_exit());
}

static int closed_later(int argc, char **argv)
{
	(void)argc, (void)argv;
	tell_member(false);
	return 0;
}

static int passed_later(int argc, char **argv)
{
	(void)argc, (void)argv;
	tell_member(true);
	return 0;
}

static const struct pair_entry roles[] = {
	{"owner", role_owner},
	{"member", role_member},
	{0},
};

static const struct pair_entry cases[] = {
	{"an offer accepted later", accepted_later},
	{"a group closed", closed_later},
	{"a barrier passed", passed_later},
	{0},
};

int main(int argc, char **argv)
{
	setenv("SLMPM_RING_SEGMENTS", "128", 1);
	return pair_main(argc, argv, cases, roles);
}
