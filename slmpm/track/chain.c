/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of SIGSEGV, and how it hands on what is not ours. */
#include "slmpm/track/chain.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	chain_take *_Atomic take; /* set when BEFORE is */
	struct sigaction before;
	_Atomic bool spent; /* BEFORE was to be called once, and has been */
} chain = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- whose is it? --------------------------------------------------------------------------- */

/* It may be a store, not the fetching of an instruction. */
static bool is_store(const siginfo_t *info, const void *context)
{
	const ucontext_t *c = context;

	if (info->si_code != SEGV_ACCERR)
		return false;
#if defined(__x86_64__) || defined(__i386__)
	return c->uc_mcontext.gregs[REG_ERR] & 2;
#elif defined(__aarch64__)
	return c->uc_mcontext.pc != (uintptr_t)info->si_addr;
#else
	return c != NULL;
#endif
}

/*
 * It can be stored there by now: it was ours when the thread faulted, and has been opened since.
 * The kernel tries, by an operation that changes nothing.
 */
static bool is_open(uintptr_t at)
{
	static uint32_t none;
	const int or_nothing = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0);

	return syscall(SYS_futex, &none, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, (void *)0,
		       (void *)(at & ~(uintptr_t)3), or_nothing) >= 0;
}

/* ---- who was there before ------------------------------------------------------------------- */

/* As the kernel would: a fault that nobody takes ends the process where it is, with its core; what
 * another process has sent does so unless it is ignored. */
static void without_handler(const siginfo_t *info, bool ignored)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	bool sent = info->si_code <= 0;

	if (sent && ignored)
		return;
	(void)sigaction(SIGSEGV, &usual, NULL);
	if (sent)
		(void)syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), SIGSEGV,
			      info);
}

/* With the mask that it would have: the thread's, and its own. */
static void call(const struct sigaction *to, int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	sigset_t during = to->sa_mask, before;

	if (!(to->sa_flags & SA_NODEFER))
		(void)sigaddset(&during, SIGSEGV);
	(void)pthread_sigmask(SIG_SETMASK, &c->uc_sigmask, &before);
	(void)pthread_sigmask(SIG_BLOCK, &during, NULL);
	if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(number, info, context);
	else
		to->sa_handler(number);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void hand_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *to = &chain.before;
	bool none = !(to->sa_flags & SA_SIGINFO) &&
		    (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN);

	if (none)
		without_handler(info, to->sa_handler == SIG_IGN);
	else if (to->sa_flags & (int)SA_RESETHAND && atomic_exchange(&chain.spent, true))
		without_handler(info, false);
	else
		call(to, number, info, context);
}

static void chain_handle(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	int saved = errno;
	chain_take *take = atomic_load(&chain.take);
	bool ours = is_store(info, context) && (take(at) || is_open(at));

	errno = saved;
	if (!ours)
		hand_on(number, info, context);
}

/* ---- ours ----------------------------------------------------------------------------------- */

/* A handler of another signal could jump out of ours, which then would count as at work for ever.
 * What an instruction causes cannot be put off. */
static void block_others(sigset_t *mask)
{
	static const int causes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

	(void)sigfillset(mask);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		(void)sigdelset(mask, causes[i]);
}

/* With the lock. Who was there before is known before ours can run. */
static int install(chain_take *take)
{
	struct sigaction ours = {.sa_sigaction = chain_handle}, now;
	int rc;

	if (sigaction(SIGSEGV, NULL, &now) != 0)
		return -errno;
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == chain_handle)
		return 0;
	if (atomic_load(&chain.take))
		return -EBUSY;
	chain.before = now;
	atomic_store(&chain.take, take);
	block_others(&ours.sa_mask);
	ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | (now.sa_flags & SA_RESTART);
	if (sigaction(SIGSEGV, &ours, NULL) == 0)
		return 0;
	rc = -errno;
	atomic_store(&chain.take, NULL);
	return rc;
}

int chain_install(chain_take *take)
{
	sigset_t blocked;
	int rc;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (sigismember(&blocked, SIGSEGV))
		return -EDEADLK;
	pthread_mutex_lock(&chain.lock);
	rc = install(take);
	pthread_mutex_unlock(&chain.lock);
	return rc;
}

void chain_forked(void)
{
	chain.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
