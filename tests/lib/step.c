/* SPDX-License-Identifier: BSD-3-Clause */
/* Children under ptrace, moved on step by step. */
#include "tests/lib/step.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/child.h"
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

/* The child, and whose steps are meant: another of its threads, or the same. */
static struct {
	pid_t leader, thread;
	_Atomic bool *over; /* another's: the body is, in memory that both sides have */
} child;

/* Until it stops or ends: the status; 0 also when a body of which another thread is meant is
 * over. */
static int wait_for(pid_t pid, const struct step_body *body)
{
	bool inspections = body->beside || pid != child.leader;
	int status;
	pid_t rc;

	while ((rc = waitpid(pid, &status, __WALL | (inspections ? WNOHANG : 0))) != pid) {
		CHECK(rc == 0 || errno == EINTR, "waitpid failed");
		if (rc != 0)
			continue;
		if (pid != child.leader && atomic_load(child.over))
			return 0;
		if (body->beside)
			body->beside(body->arg);
		(void)sched_yield();
	}
	return status;
}

static void end_with_tracer(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
}

static _Noreturn void play(const struct step_body *body)
{
	end_with_tracer();
	if (body->prepare)
		body->prepare(body->arg);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
		_exit(TEST_SKIPPED);
	stop_here();
	body->run(body->arg);
	end_of_body();
	_exit(0);
}

static _Noreturn void play_beside(const struct step_body *body, int go)
{
	char byte;

	end_with_tracer();
	if (body->prepare)
		body->prepare(body->arg);
	CHECK(read(go, &byte, 1) == 1, "nobody says go");
	body->run(body->arg);
	atomic_store(child.over, true);
	for (;;)
		pause();
}

/* Stops the thread that is meant before the body begins. */
static pid_t hold_thread(const struct step_body *body, int go)
{
	pid_t tid = body->thread(body->arg);
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;

	child.thread = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, options) != 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || !WIFSTOPPED(wait_for(tid, body)))
		return -1;
	CHECK(write(go, "g", 1) == 1, "no word to the child");
	return tid;
}

static pid_t start_beside(const struct step_body *body)
{
	int go[2];
	pid_t tid;

	if (!child.over)
		child.over = child_common(sizeof(*child.over));
	CHECK(pipe(go) == 0, "no pipe");
	atomic_store(child.over, false);
	child.leader = fork();
	CHECK(child.leader >= 0, "fork failed");
	if (child.leader == 0)
		play_beside(body, go[0]);
	close(go[0]);
	if (body->meet)
		body->meet(body->arg);
	tid = hold_thread(body, go[1]);
	close(go[1]);
	return tid;
}

/* A stopped child, or its thread, about to run the body; -1 when it may not be traced. */
static pid_t start(const struct step_body *body)
{
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	if (body->thread)
		return start_beside(body);
	pid = fork();
	CHECK(pid >= 0, "fork failed");
	if (pid == 0)
		play(body);
	child.leader = child.thread = pid;
	if (body->meet)
		body->meet(body->arg);
	if (!WIFSTOPPED(wait_for(pid, body)))
		return -1;
	(void)ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	do
		while (waitpid(pid, &status, __WALL) < 0)
			CHECK(errno == EINTR, "waitpid failed");
	while (!WIFSIGNALED(status));
}

static void kill_off(void)
{
	kill(child.leader, SIGKILL);
	if (child.thread != child.leader)
		reap(child.thread);
	reap(child.leader);
}

/* One step on: 1, or 0 at the body's end. */
static int advance(pid_t pid, const struct step_body *body, enum step_unit unit, int *deliver)
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
		status = wait_for(pid, body);
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
	while (advance(pid, body, unit, &deliver)) {
		if (unit == STEP_INSTRUCTION) {
			uintptr_t at = instruction_of(pid);

			if (at == (uintptr_t)end_of_body) {
				kill_off();
				return count;
			}
			if (addresses && count < most)
				addresses[count] = at;
		}
		if (++count > most) {
			kill_off();
			return -1;
		}
	}
	if (body->thread)
		kill_off();
	return unit == STEP_INSTRUCTION && !body->thread ? -1 : count;
}

static bool walk(pid_t pid, const struct step_body *body, enum step_unit unit, long steps)
{
	int deliver = 0;

	while (steps-- > 0)
		if (!advance(pid, body, unit, &deliver))
			return false;
	return true;
}

#ifdef __x86_64__
/* On to where the instruction at ADDRESS is next; a trap takes its place meanwhile. */
static bool run_to(pid_t pid, const struct step_body *body, uintptr_t address)
{
	void *at = (void *)address; /* NOLINT: the child's */
	long word, deliver = 0;
	int status;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
	CHECK(errno == 0 && ptrace(PTRACE_POKETEXT, pid, at, (word & ~0xffL) | 0xcc) == 0,
	      "no breakpoint can be set");
	for (;;) {
		if (ptrace(PTRACE_CONT, pid, 0, deliver) != 0)
			return false;
		status = wait_for(pid, body);
		if (!WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGTRAP && instruction_of(pid) == address + 1)
			break;
		deliver = WSTOPSIG(status);
	}
	CHECK(ptrace(PTRACE_POKETEXT, pid, at, word) == 0 &&
		      ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip),
			     address) == 0,
	      "a breakpoint cannot be left");
	return true;
}

/* From one visit to the next; a repeated instruction is at its place again after one step. */
static bool go_to(pid_t pid, const struct step_body *body, const struct step_point *point)
{
	if (!run_to(pid, body, point->address))
		return false;
	for (long i = 0; i < point->visit; i++) {
		if (!walk(pid, body, STEP_INSTRUCTION, 1))
			return false;
		if (instruction_of(pid) != point->address && !run_to(pid, body, point->address))
			return false;
	}
	return true;
}
#endif

bool step_kill(const struct step_body *body, enum step_unit unit, const struct step_point *point)
{
	pid_t pid = start(body);
	bool there;

	CHECK(pid > 0, "the child may not be traced");
#ifdef __x86_64__
	if (unit == STEP_INSTRUCTION && point->address && !body->thread)
		there = go_to(pid, body, point);
	else
#endif
		there = walk(pid, body, unit, point->steps);
	if (there || body->thread)
		kill_off();
	return there;
}

static int by_address(const void *a, const void *b)
{
	const struct step_point *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->steps < y->steps ? -1 : x->steps > y->steps;
}

static int by_steps(const void *a, const void *b)
{
	const struct step_point *x = a, *y = b;

	return x->steps < y->steps ? -1 : x->steps > y->steps;
}

long step_thin(const uintptr_t *addresses, long count, int visits, struct step_point *points)
{
	uintptr_t address = 0;
	long kept = 0, nth = 0;

	for (long i = 0; i < count; i++)
		points[i] = (struct step_point){i + 1, addresses[i], 0};
	qsort(points, (size_t)count, sizeof(*points), by_address);
	for (long i = 0; i < count; i++) {
		struct step_point p = points[i];

		nth = p.address == address ? nth + 1 : 0;
		address = p.address;
		p.visit = nth;
		if (nth < visits || (nth & (nth - 1)) == 0)
			points[kept++] = p;
	}
	qsort(points, (size_t)kept, sizeof(*points), by_steps);
	return kept;
}
