/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only: sanitizers have handlers and masks of their own */
/*
 * A mirror tracked by signal beside the application's own handlers of SIGSEGV: what is not the
 * library's goes to them as if it was not there, and a fault that nobody takes ends the process.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define PAGES 4

static size_t page;
static unsigned char *memory; /* PAGES of the mirror's, and one that nobody may touch */
static slmpm_mirror mirror;
static volatile sig_atomic_t calls;
static const char *volatile wrong; /* what a handler has found to be */
static int want_flags;

static void track(void)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = SLMPM_TRACK_SIGNAL};
	slmpm_ctx ctx;

	page = (size_t)getpagesize();
	memory = mmap(NULL, (PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	CHECK(memory != MAP_FAILED, "memory");
	OK(mprotect(memory + PAGES * page, page, PROT_NONE));
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_mirror_create(ctx, memory, PAGES * page, &o, &mirror));
}

static void tracked(void)
{
	static unsigned char mark;

	mark++;
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page + 1] = mark;
	EXPECT(slmpm_mirror_scan(mirror), PAGES);
	EXPECT(slmpm_mirror_scan(mirror), 0);
}

static void fault(void)
{
	((volatile unsigned char *)memory)[PAGES * page + 16] = 1;
}

static bool blocks(int number)
{
	sigset_t now;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, number);
}

static void install(void (*handler)(int), void (*action)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = {.sa_flags = flags};

	if (action)
		act.sa_sigaction = action;
	else
		act.sa_handler = handler;
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR1);
	OK(sigaction(SIGSEGV, &act, NULL));
}

/* ---- what it sees ---------------------------------------------------------------------------- */

/* It opens the page, and stores in the mirror where it may. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	bool deferred = !(want_flags & SA_NODEFER);

	calls++;
	if (number != SIGSEGV || !context || info->si_addr != memory + PAGES * page + 16 ||
	    info->si_code != SEGV_ACCERR)
		wrong = "the signal";
	if (!blocks(SIGUSR1) || blocks(SIGUSR2) || blocks(SIGSEGV) != deferred)
		wrong = "the mask";
	if (!deferred)
		memory[2 * page + 7]++;
	(void)mprotect(memory + PAGES * page, page, PROT_READ | PROT_WRITE);
}

static int with_action(void *flags)
{
	want_flags = *(int *)flags;
	install(NULL, on_fault, SA_SIGINFO | want_flags);
	track();
	tracked();
	EXPECT(calls, 0);
	for (int i = 1; i < 4; i++) {
		errno = 4711;
		fault();
		CHECK(!wrong, "%s is not as it was without the library", wrong);
		EXPECT(calls, i);
		EXPECT(errno, 4711);
		CHECK(!blocks(SIGUSR1) && !blocks(SIGSEGV), "the mask afterwards");
		EXPECT(slmpm_mirror_scan(mirror), want_flags & SA_NODEFER ? 1 : 0);
		OK(mprotect(memory + PAGES * page, page, PROT_NONE));
		tracked();
	}
	OK(slmpm_mirror_destroy(mirror));
	fault();
	EXPECT(calls, 4);
	return 0;
}

/* ---- one that jumps -------------------------------------------------------------------------- */

static sigjmp_buf back;

static void jump(int number)
{
	calls += number == SIGSEGV;
	siglongjmp(back, 1);
}

static int with_jump(void *arg)
{
	(void)arg;
	install(jump, NULL, 0);
	track();
	for (int i = 0; i < 4; i++) {
		tracked();
		if (sigsetjmp(back, 1) == 0)
			fault();
		EXPECT(calls, i + 1);
		CHECK(!blocks(SIGSEGV) && !blocks(SIGUSR1), "the mask afterwards");
	}
	/* What is there only to be read stays so: a fetch, a null pointer. */
	if (sigsetjmp(back, 1) == 0)
		(void)*(volatile unsigned char *)(memory + PAGES * page);
	EXPECT(calls, 5);
	if (sigsetjmp(back, 1) == 0)
		((void (*)(void))(uintptr_t)(memory + page))();
	EXPECT(calls, 6);
	tracked();
	return 0;
}

/* ---- none, or one for a single time ---------------------------------------------------------- */

static int dies(void *sent)
{
	track();
	tracked();
	if (sent)
		OK(kill(getpid(), SIGSEGV));
	else
		fault();
	return 1;
}

static int ignored(void *arg)
{
	(void)arg;
	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR, "signal");
	track();
	tracked();
	OK(kill(getpid(), SIGSEGV));
	tracked();
	fault(); /* cannot be */
	return 1;
}

static int once(void *arg)
{
	(void)arg;
	install(NULL, on_fault, SA_SIGINFO | (int)SA_RESETHAND);
	track();
	fault();
	EXPECT(calls, 1);
	OK(mprotect(memory + PAGES * page, page, PROT_NONE));
	tracked();
	fault();
	return 1;
}

/* ---- a later one ----------------------------------------------------------------------------- */

static struct sigaction before;

static void hands_on(int number, siginfo_t *info, void *context)
{
	calls++;
	before.sa_sigaction(number, info, context);
}

static int later(void *arg)
{
	struct sigaction act = {.sa_sigaction = hands_on, .sa_flags = SA_SIGINFO};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = SLMPM_TRACK_SIGNAL};
	slmpm_mirror another;

	(void)arg;
	track();
	OK(sigaction(SIGSEGV, &act, &before));
	tracked();
	CHECK(calls > 0, "the later handler has not been called");
	calls = 0;
	REFUSED(slmpm_mirror_track_works(SLMPM_TRACK_SIGNAL), SLMPM_ENOTSUP, "over");
	OK(slmpm_mirror_destroy(mirror));
	REFUSED(slmpm_mirror_create((slmpm_ctx){0}, memory, PAGES * page, &o, &another),
		SLMPM_ENOTSUP, "over");
	OK(sigaction(SIGSEGV, &before, NULL));
	OK(slmpm_mirror_create((slmpm_ctx){0}, memory, PAGES * page, &o, &mirror));
	tracked();
	EXPECT(calls, 0);
	return 0;
}

/* ---- other signals, and a thread that blocks it ---------------------------------------------- */

static void on_user(int number)
{
	(void)number;
	memory[3 * page]++;
}

static int in_handlers(void *arg)
{
	struct sigaction act = {.sa_handler = on_user};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = SLMPM_TRACK_SIGNAL};
	slmpm_mirror other;
	sigset_t one;

	(void)arg;
	sigfillset(&act.sa_mask);
	sigdelset(&act.sa_mask, SIGSEGV);
	OK(sigaction(SIGUSR1, &act, NULL));
	track();
	for (int i = 0; i < 3; i++) {
		OK(raise(SIGUSR1));
		EXPECT(slmpm_mirror_scan(mirror), 1);
	}
	OK(slmpm_mirror_destroy(mirror));
	sigemptyset(&one);
	sigaddset(&one, SIGSEGV);
	OK(pthread_sigmask(SIG_BLOCK, &one, NULL));
	REFUSED(slmpm_mirror_create((slmpm_ctx){0}, memory, PAGES * page, &o, &other),
		SLMPM_ENOTSUP, "blocks");
	OK(pthread_sigmask(SIG_UNBLOCK, &one, NULL));
	return 0;
}

/* ---- other signals, whose handler jumps out of a store --------------------------------------- */

static atomic_bool over;
static pthread_t stores;

static void jump_out(int unused)
{
	(void)unused;
	siglongjmp(back, 1);
}

static void *disturb(void *unused)
{
	while (!atomic_load(&over)) {
		OK(pthread_kill(stores, SIGUSR1));
		sched_yield();
	}
	return unused;
}

static int jumped_out_of(void *arg)
{
	struct sigaction act = {.sa_handler = jump_out};
	static volatile unsigned rounds, jumps;
	pthread_t thread;
	sigset_t one;

	(void)arg;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	OK(pthread_sigmask(SIG_BLOCK, &one, NULL));
	OK(sigaction(SIGUSR1, &act, NULL));
	track();
	stores = pthread_self();
	OK(pthread_create(&thread, NULL, disturb, NULL));
	while (rounds < 2000 || jumps < 200) {
		(void)slmpm_mirror_scan(mirror);
		rounds++;
		if (sigsetjmp(back, 1) == 0) {
			OK(pthread_sigmask(SIG_UNBLOCK, &one, NULL));
			for (size_t i = 0; i < PAGES; i++)
				((volatile unsigned char *)memory)[i * page]++;
		} else {
			jumps++;
		}
		OK(pthread_sigmask(SIG_BLOCK, &one, NULL));
	}
	atomic_store(&over, true);
	OK(pthread_join(thread, NULL));
	(void)slmpm_mirror_scan(mirror);
	tracked();
	OK(slmpm_mirror_destroy(mirror)); /* waits for handlers that look at it */
	return 0;
}

int main(void)
{
	int plain = 0, nested = SA_NODEFER, apart = SA_ONSTACK;

	EXPECT(child_run(with_action, &plain, 20), 0);
	EXPECT(child_run(with_action, &nested, 20), 0);
	EXPECT(child_run(with_action, &apart, 20), 0);
	EXPECT(child_run(with_jump, NULL, 20), 0);
	EXPECT(child_run(dies, NULL, 20), -SIGSEGV);
	EXPECT(child_run(dies, &plain, 20), -SIGSEGV);
	EXPECT(child_run(ignored, NULL, 20), -SIGSEGV);
	EXPECT(child_run(once, NULL, 20), -SIGSEGV);
	EXPECT(child_run(later, NULL, 20), 0);
	EXPECT(child_run(in_handlers, NULL, 20), 0);
	EXPECT(child_run(jumped_out_of, NULL, 20), 0);
	return 0;
}
