/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking: one bell an announcement, none without, none that blocks; membarrier refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "shm/doorbell.h"
#include "tests/lib/child.h"

/* Two sides; each one's `asleep` word stands in the other's memory. */
struct sides {
	_Atomic uint64_t words[2];
	struct doorbell a, b;
	int fds[2];
	atomic_int bells[2];
};

static void open_sides(struct sides *s, int type, bool fence)
{
	atomic_init(&s->words[0], 0);
	atomic_init(&s->words[1], 0);
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, s->fds), 0);
	for (int i = 0; i < 2; i++)
		s->bells[i] = s->fds[i];
	s->a = (struct doorbell){.asleep_in = &s->words[0],
				 .asleep_out = &s->words[1],
				 .fd = &s->bells[0],
				 .no_membarrier = fence,
				 .fence = fence};
	s->b = (struct doorbell){.asleep_in = &s->words[1],
				 .asleep_out = &s->words[0],
				 .fd = &s->bells[1],
				 .no_membarrier = fence,
				 .fence = fence};
}

static void close_sides(struct sides *s)
{
	close(s->fds[0]);
	close(s->fds[1]);
}

/* Bells that have come in at FD, taken off it. */
static int bells_at(int fd)
{
	char byte;
	int count = 0;

	while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
		assert_int_equal(byte, 'b');
		count++;
	}
	return count;
}

static void an_awake_peer_is_not_rung(void **state)
{
	(void)state;
	for (int fence = 0; fence < 2; fence++) {
		struct sides s;

		open_sides(&s, SOCK_SEQPACKET, fence);
		for (int i = 0; i < 100; i++)
			doorbell_check(&s.a);
		assert_int_equal(bells_at(*s.b.fd), 0);
		assert_true(s.a.bells == 0 && s.a.writes == 0);
		close_sides(&s);
	}
}

static void one_announcement_brings_one_bell(void **state)
{
	(void)state;
	for (int fence = 0; fence < 2; fence++) {
		struct sides s;

		open_sides(&s, SOCK_SEQPACKET, fence);
		for (uint64_t i = 1; i <= 50; i++) {
			doorbell_announce(&s.b);
			assert_true(LITTLE_64(atomic_load(&s.words[0])) & 1);
			for (int commits = 0; commits < 10; commits++)
				doorbell_check(&s.a);
			assert_int_equal(bells_at(*s.b.fd), 1);
			doorbell_retract(&s.b);
			assert_false(LITTLE_64(atomic_load(&s.words[0])) & 1);
			for (int commits = 0; commits < 10; commits++)
				doorbell_check(&s.a);
			assert_int_equal(bells_at(*s.b.fd), 0);
			assert_true(s.a.bells == i && s.b.writes == 2 * i);
		}
		assert_int_equal(bells_at(*s.a.fd), 0); /* the other way nothing happened */
		close_sides(&s);
	}
}

static void a_retracted_announcement_rings_nobody(void **state)
{
	struct sides s;

	(void)state;
	open_sides(&s, SOCK_SEQPACKET, true);
	doorbell_announce(&s.b);
	doorbell_retract(&s.b);
	doorbell_check(&s.a);
	assert_int_equal(bells_at(*s.b.fd), 0);
	close_sides(&s);
}

static void both_sides_may_sleep(void **state)
{
	struct sides s;

	(void)state;
	open_sides(&s, SOCK_STREAM, true);
	doorbell_announce(&s.a);
	doorbell_announce(&s.b);
	doorbell_check(&s.a);
	doorbell_check(&s.b);
	assert_int_equal(bells_at(*s.a.fd), 1);
	assert_int_equal(bells_at(*s.b.fd), 1);
	close_sides(&s);
}

static void beside_a_sleeper_a_fence_is_enough(void **state)
{
	struct sides s;

	(void)state;
	open_sides(&s, SOCK_STREAM, false);
	assert_true(doorbell_unfenced(&s.a));
	doorbell_announce(&s.b);
	assert_true(s.b.fence);
	assert_false(doorbell_unfenced(&s.a));
	assert_true(doorbell_unfenced(&s.b)); /* side A has announced nothing */
	doorbell_retract(&s.b);
	assert_true(s.b.fence); /* not yet fenced behind it */
	doorbell_retracted();
	doorbell_resume(&s.b);
	assert_false(s.b.fence);
	assert_true(doorbell_unfenced(&s.a));
	close_sides(&s);
}

static int ring_a_full_socket(void *arg)
{
	struct sides *s = arg;

	while (send(*s->a.fd, "x", 1, MSG_DONTWAIT) == 1)
		;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return 2;
	for (int i = 0; i < 10; i++) {
		doorbell_announce(&s->b);
		doorbell_check(&s->a);
		doorbell_retract(&s->b);
	}
	return s->a.bells == 10 ? 0 : 3;
}

static void a_full_socket_does_not_block_the_ringer(void **state)
{
	static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sides s;

		open_sides(&s, types[i], false);
		assert_int_equal(child_run(ring_a_full_socket, &s, 10), 0);
		close_sides(&s);
	}
}

static int ring_a_dead_peer(void *arg)
{
	struct sides *s = arg;

	doorbell_announce(&s->b);
	doorbell_check(&s->a); /* SIGPIPE would end this child */
	return s->a.bells == 1 ? 0 : 2;
}

static void a_dead_peer_raises_no_signal(void **state)
{
	struct sides s;

	(void)state;
	open_sides(&s, SOCK_STREAM, false);
	close(s.fds[1]);
	assert_int_equal(child_run(ring_a_dead_peer, &s, 10), 0);
	close(s.fds[0]);
}

static int membarrier_answers(void *arg)
{
	(void)arg;
	if (!barrier_works())
		return 77;
	for (int i = 0; i < 100; i++)
		barrier_all();
	return barrier_works() ? 0 : 2; /* asking twice is allowed */
}

static void membarrier_registers_and_fences(void **state)
{
	int rc = child_run(membarrier_answers, NULL, 20);

	(void)state;
	if (rc == 77) {
		print_message("skipped: no membarrier here\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

/* The filter of a sandbox that does not know membarrier. */
static int refuse_membarrier(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(program) / sizeof(*program), program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int without_membarrier(void *arg)
{
	struct timespec begin, end;
	struct sides *s = arg;

	if (refuse_membarrier() != 0 || syscall(SYS_membarrier, 0, 0, 0) != -1 || errno != EPERM)
		return 77;
	if (barrier_works())
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	barrier_all(); /* waits, until no store can be under way any more */
	clock_gettime(CLOCK_MONOTONIC, &end);
	if ((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec < 50000)
		return 4;
	s->a.fence = s->b.fence = s->a.no_membarrier = s->b.no_membarrier = true;
	doorbell_announce(&s->b);
	doorbell_check(&s->a);
	return bells_at(*s->b.fd) == 1 ? 0 : 3;
}

static void refused_membarrier_falls_back_to_the_fence(void **state)
{
	struct sides s;
	int rc;

	(void)state;
	open_sides(&s, SOCK_SEQPACKET, false);
	rc = child_run(without_membarrier, &s, 10);
	close_sides(&s);
	if (rc == 77) {
		print_message("skipped: no seccomp filters here\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_awake_peer_is_not_rung),
		cmocka_unit_test(one_announcement_brings_one_bell),
		cmocka_unit_test(a_retracted_announcement_rings_nobody),
		cmocka_unit_test(both_sides_may_sleep),
		cmocka_unit_test(beside_a_sleeper_a_fence_is_enough),
		cmocka_unit_test(a_full_socket_does_not_block_the_ringer),
		cmocka_unit_test(a_dead_peer_raises_no_signal),
		cmocka_unit_test(membarrier_registers_and_fences),
		cmocka_unit_test(refused_membarrier_falls_back_to_the_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
