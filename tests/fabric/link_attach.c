/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the application's that a fabric lets a peer reach: what lies there when it is reached,
 * by whom, and between processes.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "slmpm/bond/bond.h"
#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/child.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/reach.h"

#define SIZE      REACH_SIZE
#define LONG_READ 8192 /* bytes, by the process's number */
#define WRITE     (1u << FABRIC_WRITE)
#define READ      (1u << FABRIC_READ)

/* ---- memory of the application's ------------------------------------------------------------- */

static void foreign_memory_is_reached(void **state)
{
	unsigned char *memory;
	struct fabric_memory own = {.size = SIZE, .writable = true}, far;
	struct link_pair p;

	(void)state;
	reach_or_skip(); /* which does not come back */
	own.base = memory = malloc(SIZE);
	assert_non_null(memory);
	link_pair_open(&p, fabric, 64, 64);
	far = reach_from_right(&p, &own, true);
	if (far.ops) {
		unsigned char byte = 1;

		assert_true(far.ops == (WRITE | READ) || far.ops == READ);
		reach_exchange(p.link[RIGHT], &far, memory);
		fabric->dereg(p.domain[RIGHT], &far);
		far = reach_from_right(&p, &own, false);
		assert_int_equal(far.ops, READ);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_WRITE, &far, 0, &byte, 1), -ENOTSUP);
	} else {
		printf("%s does not reach another's memory here\n", fabric->name);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	memory[0] = 1; /* it stays the application's */
	free(memory);
	link_pair_close(&p);
}

/* What is unmapped behind our back is an error, what is mapped again is what is reached. */
static void memory_is_what_lies_there_now(void **state)
{
	size_t size = 8 << 12;
	unsigned char *at =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fabric_memory own = {.base = at, .size = size, .writable = true}, far;
	unsigned char data[8 << 12];
	struct link_pair p;

	(void)state;
	reach_or_skip();
	assert_true(at != MAP_FAILED);
	memset(at, 1, size);
	link_pair_open(&p, fabric, 64, 64);
	far = reach_from_right(&p, &own, true);
	if (far.ops) {
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), 1);
		assert_true(data[0] == 1 && data[size - 1] == 1);
		munmap(at + size / 2, size / 2);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), -EFAULT);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_WRITE, &far, 0, data, size), -EFAULT);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, 0, data, size / 2), 1);
		assert_true(mmap(at, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
		memset(at, 2, size);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), 1);
		assert_true(data[0] == 2 && data[size - 1] == 2);
		memset(data, 3, size);
		assert_int_equal(reach(p.link[RIGHT], FABRIC_WRITE, &far, 0, data, size), 1);
		assert_true(at[0] == 3 && at[size - 1] == 3);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	munmap(at, size);
	link_pair_close(&p);
}

/* Of a bond each link is told. */
static void tell_process(struct fabric_link *l, int descriptor, pid_t pid)
{
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		struct fabric_link *one = bonded_is(fabric) ? bond_port(l, i) : l;

		if (one) {
			one->process = descriptor;
			one->pid = pid;
		}
	}
}

static void allow(struct fabric_link *l, bool allowed)
{
	for (uint32_t i = 0; i < BOND_PATHS; i++) {
		struct fabric_link *one = bonded_is(fabric) ? bond_port(l, i) : l;

		if (one)
			one->attach = allowed;
	}
}

/* What it comes to once the first transfer has tried. */
static uint64_t reached(struct fabric_link *l, struct fabric_memory *far)
{
	unsigned char byte;

	if (far->ops && reach(l, FABRIC_READ, far, 0, &byte, 1) < 0)
		assert_int_equal(far->ops, 0);
	return far->ops;
}

/* A process that does not have the bytes that its peer tells of is another one. */
static void a_stranger_is_not_attached_to(void **state)
{
	struct fabric_memory own = {.base = state, .size = 8, .writable = true};
	struct fabric_memory far = {.size = 8, .writable = true};
	struct fabric_blob blob = {.fd = -1};
	struct link_pair p;

	reach_or_skip();
	link_pair_open(&p, fabric, 64, 64);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	blob.bytes[blob.length - 1] ^= 1;
	assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
	assert_int_equal(reached(p.link[RIGHT], &far), 0);
	link_pair_close(&p);
	/* And one whose number nobody knows. */
	link_pair_open(&p, fabric, 64, 64);
	tell_process(p.link[RIGHT], -1, 0);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
	assert_int_equal(far.ops, 0);
	link_pair_close(&p);
}

static int be_user(void *arg)
{
	const uid_t *user = arg;

	if (setresuid(*user, *user, *user) != 0)
		return 1;
	kill(getpid(), SIGSTOP);
	return 0;
}

/* A process that has our probe in its memory and is USER's: what can be done with its memory. */
static uint64_t reached_of(uid_t user)
{
	struct fabric_memory own = {.base = &user, .size = 8, .writable = true};
	struct fabric_memory far = {.size = 8, .writable = true};
	struct fabric_blob blob = {.fd = -1};
	struct link_pair p;
	pid_t child;

	link_pair_open(&p, fabric, 64, 64);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	child = child_start(be_user, &user, 30);
	actor_await_state(child, "T");
	tell_process(p.link[RIGHT], -1, child);
	assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
	(void)reached(p.link[RIGHT], &far);
	kill(child, SIGKILL);
	(void)child_wait(child);
	link_pair_close(&p);
	return far.ops;
}

static void another_user_is_not_attached_to(void **state)
{
	(void)state;
	reach_or_skip();
	if (geteuid() != 0) /* the kernel sees to it */
		skip();
	if (!reached_of(0))
		skip();
	assert_int_equal(reached_of(65534), 0);
}

static void attaching_can_be_forbidden(void **state)
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
	struct fabric_memory own = {.base = state, .size = 8, .writable = true};
	struct fabric_memory far = {.size = 8, .writable = true};
	struct fabric_blob blob = {.fd = -1};
	struct link_pair p;

	reach_or_skip();
	link_pair_make(&p, fabric, config);
	link_pair_connect(&p);
	allow(p.link[RIGHT], false);
	assert_int_equal(fabric->reg(p.link[RIGHT], &own, true, true, &blob), -ENOTSUP);
	if (fabric->reg(p.link[LEFT], &own, true, true, &blob) == 0) {
		assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
		assert_int_equal(far.ops, 0);
	}
	link_pair_close(&p);
}

/* ---- between processes ----------------------------------------------------------------------- */

struct far_side {
	int blobs[SIDES], bells[SIDES];
};

static struct link_end enter(struct far_side *f, int side)
{
	struct fabric_config config = link_config(64, 64);
	struct link_end e;

	close(f->blobs[!side]);
	close(f->bells[!side]);
	link_end_open(&e, fabric, &config, side, f->bells[side]);
	e.link->active = side == LEFT;
	CHECK(link_end_meet(&e, f->blobs[side], 16) == 0, "connecting");
	return e;
}

/* The child owns both kinds of memory, and says when it has seen what was written. */
static int owner(void *arg)
{
	struct far_side *f = arg;
	struct link_end e = enter(f, LEFT);
	unsigned char *memory = malloc(SIZE);
	struct fabric_memory m[2] = {{.size = SIZE, .writable = true},
				     {.base = memory, .size = SIZE, .writable = true}};
	char go;

	CHECK(memory, "memory");
	CHECK(fabric->alloc(e.domain, &m[0]) == 0, "alloc");
	for (int i = 0; i < 2; i++) {
		struct fabric_blob blob = {.fd = -1};

		actor_fill(m[i].base, 1, SIZE);
		CHECK(fabric->reg(e.link, &m[i], true, true, &blob) == 0, "reg");
		link_send_blob(f->blobs[LEFT], &blob);
		CHECK(read(f->blobs[LEFT], &go, 1) == 1, "the other side");
		CHECK(go == 'n' || actor_filled(m[i].base, 2, SIZE), "what was written");
		fabric->dereg(e.domain, &m[i]);
	}
	CHECK(write(f->blobs[LEFT], "d", 1) == 1, "the other side");
	pause(); /* until killed: the memory is still looked at */
	free(memory);
	return 0;
}

static int leave(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * It may have gone to another process, when the peer's has ended: so its end is looked at. Shorter
 * reads go by a descriptor of the memory itself, which no other process gets.
 */
static void number_is_not_trusted(struct link_end *e, struct fabric_memory *far)
{
	int64_t until = actor_now_ms() + PATIENCE;
	pid_t gone = child_start(leave, NULL, 20);
	static unsigned char bytes[LONG_READ];
	int rc, process;

	process = (int)syscall(SYS_pidfd_open, gone, 0);
	if (process < 0) {
		(void)child_wait(gone);
		return;
	}
	tell_process(e->link, process, e->link->pid);
	do {
		rc = reach(e->link, FABRIC_READ, far, 0, bytes, LONG_READ);
		assert_true(rc == -ESRCH || (rc == 1 && actor_now_ms() < until));
	} while (rc == 1);
	(void)child_wait(gone);
	close(process);
	tell_process(e->link, -1, e->link->pid);
}

static void another_process_is_reached(void **state)
{
	unsigned char *data;
	struct far_side f;
	struct link_end e;
	pid_t child;
	struct fabric_memory attached = {.ops = 0};
	char done;

	(void)state;
	reach_or_skip();
	data = malloc(SIZE);
	assert_non_null(data);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f.blobs), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f.bells), 0);
	child = child_start(owner, &f, 30);
	e = enter(&f, RIGHT);
	tell_process(e.link, -1, child);
	e.link->pid = child;
	for (int i = 0; i < 2; i++) {
		struct fabric_memory far = {.size = SIZE, .writable = true};
		struct fabric_blob blob;

		link_receive_blob(f.blobs[RIGHT], &blob);
		assert_int_equal(fabric->reg(e.link, &far, false, true, &blob), 0);
		link_forget(&blob);
		if (far.ops) {
			assert_int_equal(reach(e.link, FABRIC_READ, &far, 0, data, SIZE), 1);
			assert_true(actor_filled(data, 1, SIZE));
			actor_fill(data, 2, SIZE);
			assert_int_equal(reach(e.link, FABRIC_WRITE, &far, 0, data, SIZE), 1);
		} else {
			printf("memory of kind %d is not reached here\n", i);
			assert_int_equal(i, 1);
		}
		assert_int_equal(write(f.blobs[RIGHT], far.ops ? "y" : "n", 1), 1);
		if (i)
			attached = far;
		else
			fabric->dereg(e.domain, &far);
	}
	assert_int_equal(read(f.blobs[RIGHT], &done, 1), 1);
	if (attached.ops)
		number_is_not_trusted(&e, &attached);
	kill(child, SIGKILL);
	(void)child_wait(child);
	if (attached.ops)
		assert_int_equal(reach(e.link, FABRIC_READ, &attached, 0, data, 1), -ESRCH);
	fabric->dereg(e.domain, &attached);
	link_end_close(&e);
	close(f.blobs[RIGHT]);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(foreign_memory_is_reached),
		FABRIC_TEST(memory_is_what_lies_there_now),
		FABRIC_TEST(a_stranger_is_not_attached_to),
		FABRIC_TEST(another_user_is_not_attached_to),
		FABRIC_TEST(attaching_can_be_forbidden),
		FABRIC_TEST(another_process_is_reached),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
