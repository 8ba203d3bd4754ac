/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a fabric lets a peer reach: allocated and the application's, what may be done with
 * it, fresh pages in place of old ones, and what no peer says.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/fabric_suite.h"

#define SIZE   ((uint64_t)200000)
#define WRITE  (1u << FABRIC_WRITE)
#define READ   (1u << FABRIC_READ)
#define ATOMIC (1u << FABRIC_ATOMIC)

static void need_regions(void)
{
	if (!fabric->reg || !fabric->alloc)
		skip();
}

static struct fabric_memory allocated(struct link_pair *p, bool writable)
{
	struct fabric_memory m = {.size = SIZE, .writable = writable};

	assert_int_equal(fabric->alloc(p->domain[LEFT], &m), 0);
	assert_true(m.base && m.allocated);
	assert_int_equal((uintptr_t)m.base % 4096, 0);
	return m;
}

/* What RIGHT makes of what LEFT says of M. */
static struct fabric_memory reached(struct link_pair *p, struct fabric_memory *m, bool writable)
{
	struct fabric_memory far = {.size = m->size, .writable = writable};
	struct fabric_blob blob = {.fds = {-1, -1}};

	assert_int_equal(fabric->reg(p->link[LEFT], m, true, writable, &blob), 0);
	assert_int_equal(fabric->reg(p->link[RIGHT], &far, false, writable, &blob), 0);
	return far;
}

static int post(struct fabric_link *l, uint8_t op, struct fabric_memory *m, uint64_t offset,
		void *data, uint64_t size)
{
	struct fabric_wr wr = {.op = op, .into = data, .memory = m, .offset = offset, .size = size};

	return fabric->post(l, &wr);
}

static uint64_t atomic(struct fabric_link *l, struct fabric_memory *m, uint64_t offset, uint32_t op,
		       uint32_t bits, uint64_t operand, uint64_t compare)
{
	struct fabric_atomic a = {.op = op, .bits = bits, .operand = operand, .compare = compare};

	assert_int_equal(post(l, FABRIC_ATOMIC, m, offset, &a, bits / 8), 1);
	return a.old;
}

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

/* A peer that may write has the object in its hands: it cannot close it to the next. */
static void peers_cannot_seal(void **state)
{
	struct fabric_blob blob = {.fds = {-1, -1}};
	struct fabric_memory own, far;
	struct link_pair p;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	if (blob.fd_count)
		(void)fcntl(blob.fds[0], F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	far = reached(&p, &own, true);
	assert_true(far.ops & WRITE);
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

/* Writes and reads of many lengths at both edges and between. */
static void exchange(struct fabric_link *l, struct fabric_memory *far, unsigned char *near)
{
	static const uint64_t lengths[] = {0, 1, 3, 4, 8, 15, 16, 31, 64, 65, 4096, 70001, SIZE};
	unsigned char *data = malloc(SIZE);

	assert_non_null(data);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t n = lengths[i], places[] = {0, (SIZE - n) / 2 | 1, SIZE - n};

		for (int j = 0; j < 3; j++) {
			uint64_t at = places[j] + n > SIZE ? SIZE - n : places[j];

			memset(near, 0x55, SIZE);
			actor_fill(data, i + 1, n);
			assert_int_equal(post(l, FABRIC_WRITE, far, at, data, n), 1);
			assert_true(actor_filled(near + at, i + 1, n));
			assert_true(!at || near[at - 1] == 0x55);
			assert_true(at + n == SIZE || near[at + n] == 0x55);
			actor_fill(near + at, i + 100, n);
			assert_int_equal(post(l, FABRIC_READ, far, at, data, n), 1);
			assert_true(actor_filled(data, i + 100, n));
		}
	}
	free(data);
}

static void allocated_memory_is_reached(void **state)
{
	struct fabric_memory own, far;
	struct link_pair p;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	for (uint64_t i = 0; i < SIZE; i++)
		assert_int_equal(((unsigned char *)own.base)[i], 0);
	far = reached(&p, &own, true);
	assert_true((far.ops & (WRITE | READ)) == (WRITE | READ));
	exchange(p.link[RIGHT], &far, own.base);
	fabric->dereg(p.domain[RIGHT], &far);
	assert_true(!far.ops && !far.base);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static void atomics_are_atomic(void **state)
{
	struct fabric_memory own, far;
	struct fabric_atomic odd = {.op = FABRIC_SWAP, .bits = 64};
	struct link_pair p;
	uint64_t *word;
	uint32_t *half;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	far = reached(&p, &own, true);
	if (far.ops & ATOMIC) {
		word = (uint64_t *)own.base + 1;
		half = (uint32_t *)own.base + 5;
		*word = 40;
		*half = UINT32_MAX;
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_FETCH_ADD, 64, 2, 0), 40);
		assert_int_equal(*word, 42);
		assert_int_equal(atomic(p.link[RIGHT], &far, 20, FABRIC_FETCH_ADD, 32, 2, 0),
				 UINT32_MAX);
		assert_int_equal(*half, 1); /* and no carry beyond it */
		assert_int_equal(((uint32_t *)own.base)[6], 0);
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_COMPARE_SWAP, 64, 7, 41),
				 42);
		assert_int_equal(*word, 42);
		assert_int_equal(atomic(p.link[RIGHT], &far, 8, FABRIC_COMPARE_SWAP, 64, 7, 42),
				 42);
		assert_int_equal(*word, 7);
		assert_true(atomic(p.link[RIGHT], &far, 8, FABRIC_SWAP, 64, UINT64_MAX, 0) == 7);
		assert_true(*word == UINT64_MAX);
		assert_int_equal(atomic(p.link[RIGHT], &far, 20, FABRIC_SWAP, 32, 9, 0), 1);
		assert_int_equal(*half, 9);
		assert_int_equal(post(p.link[RIGHT], FABRIC_ATOMIC, &far, 4, &odd, 8), -EINVAL);
		odd.bits = 16;
		assert_int_equal(post(p.link[RIGHT], FABRIC_ATOMIC, &far, 8, &odd, 2), -EINVAL);
		odd = (struct fabric_atomic){.op = 9, .bits = 64};
		assert_int_equal(post(p.link[RIGHT], FABRIC_ATOMIC, &far, 8, &odd, 8), -EINVAL);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static int store_into(void *at)
{
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on */
	*(volatile unsigned char *)at = 1;
	return 0;
}

static int make_writable(void *at)
{
	return mprotect(at, 4096, PROT_READ | PROT_WRITE) == 0;
}

/* Who may only read cannot write, whatever he does to his mapping. */
static void reading_is_enforced(void **state)
{
	struct fabric_memory own, far;
	struct fabric_blob blob;
	struct link_pair p;
	unsigned char byte = 7;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, false);
	memset(own.base, 5, SIZE); /* its owner writes it */
	far = reached(&p, &own, false);
	assert_true(far.ops == READ);
	assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, SIZE - 1, &byte, 1), 1);
	assert_int_equal(byte, 5);
	assert_int_equal(post(p.link[RIGHT], FABRIC_WRITE, &far, 0, &byte, 1), -ENOTSUP);
	assert_int_equal(post(p.link[RIGHT], FABRIC_ATOMIC, &far, 0, &byte, 1), -ENOTSUP);
	if (far.base) {
		/* A child has no mapping at all; in this process no store gets through. */
		assert_int_equal(make_writable(far.base), 0);
		assert_true(child_run(store_into, far.base, 20) != 0);
	}
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), -ENOTSUP);
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	own = allocated(&p, true);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, false, &blob), -ENOTSUP);
	fabric->dereg(p.domain[LEFT], &own);
	link_pair_close(&p);
}

static void fresh_pages_leave_the_old_ones_behind(void **state)
{
	struct fabric_memory own, far, again;
	struct link_pair p;
	void *base;
	unsigned char byte = 9;

	(void)state;
	need_regions();
	for (int writable = 0; writable < 2; writable++) {
		link_pair_open(&p, fabric, 64, 64);
		own = allocated(&p, writable);
		base = own.base;
		actor_fill(base, 3, SIZE);
		far = reached(&p, &own, writable);
		assert_int_equal(fabric->alloc(p.domain[LEFT], &own), 0);
		assert_ptr_equal(own.base, base);
		assert_true(actor_filled(base, 3, SIZE));
		((unsigned char *)base)[0] ^= 1;
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, 0, &byte, 1), 1);
		assert_int_equal(byte, ((unsigned char *)base)[0] ^ 1);
		if (writable) {
			byte = (unsigned char)~byte;
			assert_int_equal(post(p.link[RIGHT], FABRIC_WRITE, &far, 1, &byte, 1), 1);
			((unsigned char *)base)[0] ^= 1;
			assert_true(actor_filled(base, 3, SIZE));
			((unsigned char *)base)[0] ^= 1;
		}
		again = reached(&p, &own, writable); /* and who asks now reaches the new ones */
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &again, 0, &byte, 1), 1);
		assert_int_equal(byte, ((unsigned char *)base)[0]);
		fabric->dereg(p.domain[RIGHT], &again);
		fabric->dereg(p.domain[RIGHT], &far);
		fabric->dereg(p.domain[LEFT], &own);
		link_pair_close(&p);
	}
}

static void limits_are_errors(void **state)
{
	struct fabric_memory m = {.size = UINT64_C(1) << 62, .writable = true};
	struct link_pair p;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	assert_true(fabric->alloc(p.domain[LEFT], &m) < 0);
	assert_null(m.base);
	link_pair_close(&p);
}

/* ---- memory of the application's ------------------------------------------------------------- */

static void foreign_memory_is_reached(void **state)
{
	unsigned char *memory = malloc(SIZE);
	struct fabric_memory own = {.base = memory, .size = SIZE, .writable = true}, far;
	struct link_pair p;

	(void)state;
	need_regions();
	assert_non_null(memory);
	link_pair_open(&p, fabric, 64, 64);
	far = reached(&p, &own, true);
	if (far.ops) {
		unsigned char byte = 1;

		assert_true(far.ops == (WRITE | READ) || far.ops == READ);
		exchange(p.link[RIGHT], &far, memory);
		fabric->dereg(p.domain[RIGHT], &far);
		far = reached(&p, &own, false);
		assert_int_equal(far.ops, READ);
		assert_int_equal(post(p.link[RIGHT], FABRIC_WRITE, &far, 0, &byte, 1), -ENOTSUP);
	} else {
		printf("%s does not reach another's memory here\n", fabric->name);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	fabric->dereg(p.domain[LEFT], &own);
	memory[0] = 1; /* it stays the application's */
	free(memory);
	link_pair_close(&p);
}

/* What is unmapped behind our back is an error, what is mapped anew is what is reached. */
static void memory_is_what_lies_there_now(void **state)
{
	size_t size = 8 << 12;
	unsigned char *at =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fabric_memory own = {.base = at, .size = size, .writable = true}, far;
	unsigned char data[8 << 12];
	struct link_pair p;

	(void)state;
	need_regions();
	assert_true(at != MAP_FAILED);
	memset(at, 1, size);
	link_pair_open(&p, fabric, 64, 64);
	far = reached(&p, &own, true);
	if (far.ops) {
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), 1);
		assert_true(data[0] == 1 && data[size - 1] == 1);
		munmap(at + size / 2, size / 2);
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), -EFAULT);
		assert_int_equal(post(p.link[RIGHT], FABRIC_WRITE, &far, 0, data, size), -EFAULT);
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, 0, data, size / 2), 1);
		assert_true(mmap(at, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
		memset(at, 2, size);
		assert_int_equal(post(p.link[RIGHT], FABRIC_READ, &far, 0, data, size), 1);
		assert_true(data[0] == 2 && data[size - 1] == 2);
		memset(data, 3, size);
		assert_int_equal(post(p.link[RIGHT], FABRIC_WRITE, &far, 0, data, size), 1);
		assert_true(at[0] == 3 && at[size - 1] == 3);
	}
	fabric->dereg(p.domain[RIGHT], &far);
	munmap(at, size);
	link_pair_close(&p);
}

/* A process that does not have the bytes that its peer tells of is another one. */
static void a_stranger_is_not_attached_to(void **state)
{
	struct fabric_memory own = {.base = state, .size = 8, .writable = true};
	struct fabric_memory far = {.size = 8, .writable = true};
	struct fabric_blob blob = {.fds = {-1, -1}};
	struct link_pair p;

	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	blob.bytes[blob.length - 1] ^= 1;
	assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
	assert_int_equal(far.ops, 0);
	link_pair_close(&p);
	/* And one whose number nobody knows. */
	link_pair_open(&p, fabric, 64, 64);
	p.link[RIGHT]->pid = 0;
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
	struct fabric_blob blob = {.fds = {-1, -1}};
	struct link_pair p;
	pid_t child;

	link_pair_open(&p, fabric, 64, 64);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &blob), 0);
	child = child_start(be_user, &user, 30);
	actor_await_state(child, "T");
	p.link[RIGHT]->pid = child;
	assert_int_equal(fabric->reg(p.link[RIGHT], &far, false, true, &blob), 0);
	kill(child, SIGKILL);
	(void)child_wait(child);
	link_pair_close(&p);
	return far.ops;
}

static void another_user_is_not_attached_to(void **state)
{
	(void)state;
	need_regions();
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
	struct fabric_blob blob = {.fds = {-1, -1}};
	struct link_pair p;

	need_regions();
	config[RIGHT].attach = false;
	link_pair_make(&p, fabric, config);
	link_pair_connect(&p);
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

static void pass(int socket, struct fabric_blob *blob)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = blob, .iov_len = sizeof(*blob)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	size_t size = (size_t)blob->fd_count * sizeof(int);

	if (size) {
		struct cmsghdr *c;

		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(size);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), blob->fds, size);
	}
	CHECK(sendmsg(socket, &msg, 0) == sizeof(*blob), "passing a blob");
}

static void catch (int socket, struct fabric_blob *blob)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov = {.iov_base = blob, .iov_len = sizeof(*blob)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *c;

	CHECK(recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) == sizeof(*blob), "no blob");
	blob->fds[0] = blob->fds[1] = -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(blob->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
}

static struct link_end enter(struct far_side *f, int side)
{
	struct fabric_config config = link_config(64, 64);
	struct link_end e;

	close(f->blobs[!side]);
	close(f->bells[!side]);
	link_end_open(&e, fabric, &config, f->bells[side]);
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
		struct fabric_blob blob = {.fds = {-1, -1}};

		actor_fill(m[i].base, 1, SIZE);
		CHECK(fabric->reg(e.link, &m[i], true, true, &blob) == 0, "reg");
		pass(f->blobs[LEFT], &blob);
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

/* It may have gone to another process, when the peer's has ended: so its end is looked at. */
static void number_is_not_trusted(struct link_end *e, struct fabric_memory *far)
{
	int64_t until = actor_now_ms() + PATIENCE;
	pid_t gone = child_start(leave, NULL, 20);
	unsigned char byte;
	int rc;

	e->link->process = (int)syscall(SYS_pidfd_open, gone, 0);
	if (e->link->process < 0) {
		(void)child_wait(gone);
		return;
	}
	do {
		rc = post(e->link, FABRIC_READ, far, 0, &byte, 1);
		assert_true(rc == -ESRCH || (rc == 1 && actor_now_ms() < until));
	} while (rc == 1);
	(void)child_wait(gone);
	close(e->link->process);
	e->link->process = -1;
}

static void another_process_is_reached(void **state)
{
	unsigned char *data = malloc(SIZE);
	struct far_side f;
	struct link_end e;
	pid_t child;
	struct fabric_memory attached = {.ops = 0};
	char done;

	(void)state;
	need_regions();
	assert_non_null(data);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f.blobs), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f.bells), 0);
	child = child_start(owner, &f, 30);
	e = enter(&f, RIGHT);
	e.link->pid = child;
	for (int i = 0; i < 2; i++) {
		struct fabric_memory far = {.size = SIZE, .writable = true};
		struct fabric_blob blob;

		catch (f.blobs[RIGHT], &blob);
		assert_int_equal(fabric->reg(e.link, &far, false, true, &blob), 0);
		link_forget(&blob);
		if (far.ops) {
			assert_int_equal(post(e.link, FABRIC_READ, &far, 0, data, SIZE), 1);
			assert_true(actor_filled(data, 1, SIZE));
			actor_fill(data, 2, SIZE);
			assert_int_equal(post(e.link, FABRIC_WRITE, &far, 0, data, SIZE), 1);
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
		assert_int_equal(post(e.link, FABRIC_READ, &attached, 0, data, 1), -ESRCH);
	fabric->dereg(e.domain, &attached);
	link_end_close(&e);
	close(f.blobs[RIGHT]);
	free(data);
}

/* ---- what no peer says ----------------------------------------------------------------------- */

static int said(struct link_pair *p, const struct fabric_blob *blob, uint64_t size, bool writable)
{
	struct fabric_memory far = {.size = size, .writable = writable};
	struct fabric_blob copy = *blob;
	int rc = fabric->reg(p->link[RIGHT], &far, false, writable, &copy);

	assert_true(rc == 0 || (!far.base && !far.ops));
	if (rc == 0)
		fabric->dereg(p->domain[RIGHT], &far);
	return rc;
}

static void lies_are_found_out(void **state)
{
	struct fabric_memory own, sealed;
	struct fabric_blob good = {.fds = {-1, -1}}, bad, reading = {.fds = {-1, -1}};
	struct link_pair p;
	int loose;

	(void)state;
	need_regions();
	link_pair_open(&p, fabric, 64, 64);
	own = allocated(&p, true);
	sealed = allocated(&p, false);
	assert_int_equal(fabric->reg(p.link[LEFT], &own, true, true, &good), 0);
	assert_int_equal(fabric->reg(p.link[LEFT], &sealed, true, false, &reading), 0);
	assert_int_equal(said(&p, &good, SIZE, true), 0);
	assert_int_equal(said(&p, &good, SIZE, false), 0);
	assert_int_equal(said(&p, &good, SIZE - 1, true), -EPROTO);
	assert_int_equal(said(&p, &good, SIZE + 1, true), -EPROTO);
	for (uint32_t length = 0; length < sizeof(bad.bytes); length++) {
		bad = good;
		bad.length = length;
		if (length != good.length)
			assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
	}
	bad = good;
	bad.fd_count = 0;
	assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
	if (good.fd_count) {
		assert_int_equal(said(&p, &reading, SIZE, true), -EPROTO);
		/* An object whose owner can still shrink it, and one that is none. */
		loose = memfd_create("slmpm-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_true(loose >= 0 && ftruncate(loose, SIZE) == 0);
		bad = good;
		bad.fds[0] = loose;
		assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
		bad.fds[0] = p.end[LEFT].bell;
		assert_int_equal(said(&p, &bad, SIZE, true), -EPROTO);
		close(loose);
	}
	/* Any byte of it may be anything: an answer, and nothing that stays. */
	for (uint32_t i = 0; i < good.length * 8; i++) {
		bad = good;
		bad.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		(void)said(&p, &bad, SIZE, true);
	}
	fabric->dereg(p.domain[LEFT], &own);
	fabric->dereg(p.domain[LEFT], &sealed);
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(allocated_memory_is_reached),
		FABRIC_TEST(atomics_are_atomic),
		FABRIC_TEST(reading_is_enforced),
		FABRIC_TEST(fresh_pages_leave_the_old_ones_behind),
		FABRIC_TEST(limits_are_errors),
		FABRIC_TEST(foreign_memory_is_reached),
		FABRIC_TEST(memory_is_what_lies_there_now),
		FABRIC_TEST(a_stranger_is_not_attached_to),
		FABRIC_TEST(another_user_is_not_attached_to),
		FABRIC_TEST(attaching_can_be_forbidden),
		FABRIC_TEST(another_process_is_reached),
		FABRIC_TEST(lies_are_found_out),
		FABRIC_TEST(peers_cannot_seal),
	};

	return FABRIC_SUITE(tests);
}
