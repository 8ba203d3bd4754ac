/* SPDX-License-Identifier: BSD-3-Clause */
/* Children under ptrace, moved on step by step. */
#include "tests/lib/step.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define CAN_STEP 1
#else
#define CAN_STEP 0
#endif

/* Where the body is over. Its address is how the tracer knows. */
__attribute__((noinline)) static void end_of_body(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Into the tracer's hands; where one instruction does it, none of the C library's is stepped. */
static inline __attribute__((always_inline)) void stop_here(void)
{
#ifdef __x86_64__
	__asm__ volatile("int3");
#else
	raise(SIGSTOP);
#endif
}

static uintptr_t instruction_of(pid_t pid)
{
#if CAN_STEP
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof(regs)};

	CHECK(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io) == 0, "cannot read registers");
#ifdef __x86_64__
	return regs.rip;
#else
	return regs.pc;
#endif
#else
	(void)pid;
	return 0;
#endif
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR, "waitpid failed");
	return status;
}

/* A stopped child, about to run the body; -1 when it may not be traced. */
static pid_t start(const struct step_body *body)
{
	pid_t pid;
	int status;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	CHECK(pid >= 0, "fork failed");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
			_exit(TEST_SKIPPED);
		stop_here();
		body->run(body->arg);
		end_of_body();
		_exit(0);
	}
	status = wait_for(pid);
	if (!WIFSTOPPED(status))
		return -1;
	(void)ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	return pid;
}

static void kill_off(pid_t pid)
{
	kill(pid, SIGKILL);
	while (!WIFSIGNALED(wait_for(pid)))
		;
}

/* One step on: 1, or 0 at the body's end. */
static int advance(pid_t pid, enum step_unit unit, int *deliver)
{
	long rc;
	int status, stop;

	for (;;) {
		if (unit == STEP_INSTRUCTION)
			rc = ptrace(PTRACE_SINGLESTEP, pid, 0, *deliver);
		else
			rc = ptrace(PTRACE_SYSCALL, pid, 0, *deliver);
		if (rc != 0)
			return 0;
		*deliver = 0;
		status = wait_for(pid);
		if (!WIFSTOPPED(status))
			return 0;
		stop = WSTOPSIG(status);
		if (stop == (unit == STEP_INSTRUCTION ? SIGTRAP : (SIGTRAP | 0x80)))
			return 1;
		*deliver = stop; /* a signal of its own: handed on, no step */
	}
}

static void do_nothing(void *arg)
{
	(void)arg;
}

bool step_possible(enum step_unit unit)
{
	static const struct step_body nothing = {.run = do_nothing};

	return CAN_STEP && step_count(&nothing, unit, NULL, 100000) >= 0;
}

long step_count(const struct step_body *body, enum step_unit unit, uintptr_t *addresses, long most)
{
	pid_t pid = start(body);
	int deliver = 0;
	long count = 0;

	if (pid < 0)
		return -1;
	while (advance(pid, unit, &deliver)) {
		if (unit == STEP_INSTRUCTION) {
			uintptr_t at = instruction_of(pid);

			if (at == (uintptr_t)end_of_body) {
				kill_off(pid);
				return count;
			}
			if (addresses && count < most)
				addresses[count] = at;
		}
		if (++count > most) {
			kill_off(pid);
			return -1;
		}
	}
	return unit == STEP_INSTRUCTION ? -1 : count;
}

bool step_kill(const struct step_body *body, enum step_unit unit, long steps)
{
	pid_t pid = start(body);
	int deliver = 0;

	CHECK(pid > 0, "the child may not be traced");
	while (steps-- > 0)
		if (!advance(pid, unit, &deliver))
			return false;
	kill_off(pid);
	return true;
}

struct visit {
	uintptr_t address;
	long index;
};

static int by_address(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_value(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

long step_thin(const uintptr_t *addresses, long count, int visits, long *points)
{
	struct visit *all = calloc((size_t)count + 1, sizeof(*all));
	long kept = 0, nth = 0;

	CHECK(all, "out of memory");
	for (long i = 0; i < count; i++)
		all[i] = (struct visit){addresses[i], i};
	qsort(all, (size_t)count, sizeof(*all), by_address);
	for (long i = 0; i < count; i++) {
		nth = i && all[i].address == all[i - 1].address ? nth + 1 : 0;
		if (nth < visits || (nth & (nth - 1)) == 0)
			points[kept++] = all[i].index;
	}
	free(all);
	qsort(points, (size_t)kept, sizeof(*points), by_value);
	return kept;
}
