/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions over shared memory, two kinds of them:
 *
 *     allocated         a sealed object of its own, passed by descriptor and mapped by the peer
 *     the application's  where the kernel lets one process reach another's memory (cross-memory
 *                        attach): its address
 *
 * A copy by attaching ends when the owner's memory answers, and what lies there is the owner's
 * choice: behind FUSE or userfaultfd it never ends, and a thread that waits so cannot be killed. So
 * it is done between processes only that trust each other with that (link->attach), and nothing is
 * touched when a grant arrives. Whether it works the first transfer of a link finds out, by a real
 * try: the owner has told where a random word lies, the peer reads it and writes it back beside it.
 * Both must be the same user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fabrics/shm.h"
#include "shm/copy.h"

#define LABEL      "slmpm-region"
#define READ_SHORT 4096 /* a page: the kernel reads /proc/PID/mem page by page, through a buffer */
#define CHUNK      ((uint64_t)1 << 30) /* the kernel moves less than 2 GiB a call */

enum kind { NOTHING, MAPPED, ATTACHED }; /* m->own[KIND] */
enum { KIND, DESCRIPTOR, ADDRESS };      /* of m->own */

#define REACH_MAP    1
#define REACH_ATTACH 2

struct reach { /* blob of a region, little-endian */
	uint32_t how, zero;
	uint64_t size;
	uint64_t address; /* REACH_ATTACH: */
	struct shm_probe probe;
};
_Static_assert(sizeof(struct reach) == 56, "wire layout");

/* ---- own memory ----------------------------------------------------------------------------- */

/* The pages of m->fresh take the old ones' place in one step. */
static int replace(struct fabric_memory *m)
{
	if (mremap(m->fresh->base, m->size, m->size, MREMAP_MAYMOVE | MREMAP_FIXED, m->base) ==
	    MAP_FAILED)
		return -errno;
	close((int)m->own[DESCRIPTOR]);
	m->own[DESCRIPTOR] = m->fresh->own[DESCRIPTOR];
	*m->fresh = (struct fabric_memory){.base = NULL};
	return 0;
}

int shm_alloc(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct mapping map;
	int rc;

	(void)domain;
	if (m->fresh)
		return replace(m);
	rc = mapping_create_by(&map, LABEL, m->size, m->deadline, FABRIC_ALLOC_STEP);
	/* Who may write gets the object itself, and is not to add seals that keep others out. */
	if (rc == 0)
		rc = m->writable ? mapping_keep_seals(&map) : mapping_close_seals(&map);
	if (rc < 0) {
		mapping_destroy(&map);
		return rc;
	}
	m->base = map.base;
	m->allocated = true;
	m->own[KIND] = MAPPED;
	m->own[DESCRIPTOR] = (uint64_t)map.fd;
	return 0;
}

void shm_dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct mapping map = {.base = m->base, .size = m->size, .fd = (int)m->own[DESCRIPTOR]};

	(void)domain;
	if (m->own[KIND] == MAPPED) {
		mapping_destroy(&map);
		m->base = NULL;
	}
	m->own[KIND] = NOTHING;
	m->ops = 0;
}

/* Random bytes that tell this process from any other, and a place for a peer to write them to: for
 * ever, since it may come to that when the link is gone. */
static unsigned char probe[PROBE_SIZE], echo[PROBE_SIZE];

static bool has_probe(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pid_t owner; /* a forked child needs bytes of its own */
	bool has;

	pthread_mutex_lock(&lock);
	if (owner != getpid())
		owner = getrandom(probe, PROBE_SIZE, 0) == PROBE_SIZE ? getpid() : 0;
	has = owner != 0;
	pthread_mutex_unlock(&lock);
	return has;
}

static int shm_memory_offer(struct shm_link *l, const struct fabric_memory *m, bool writable,
			    struct fabric_blob *blob)
{
	struct reach reach = {.how = LITTLE_32(REACH_MAP), .size = LITTLE_64(m->size)};
	int fd = (int)m->own[DESCRIPTOR];

	if (m->allocated) {
		/* What the mapping allows nothing else can forbid. */
		if (writable ? !m->writable : !mapping_is_read_only(fd))
			return -ENOTSUP;
		blob->fd = fd;
	} else {
		if (!l->base.attach || !has_probe())
			return -ENOTSUP;
		reach.how = LITTLE_32(REACH_ATTACH);
		reach.address = LITTLE_64((uint64_t)(uintptr_t)m->base);
		reach.probe.at = LITTLE_64((uint64_t)(uintptr_t)probe);
		reach.probe.echo = LITTLE_64((uint64_t)(uintptr_t)echo);
		memcpy(reach.probe.value, probe, PROBE_SIZE);
	}
	memcpy(blob->bytes, &reach, sizeof(reach));
	blob->length = sizeof(reach);
	return 0;
}

/* ---- a peer's memory ------------------------------------------------------------------------ */

/* N bytes between LOCAL and REMOTE, an address of process PID. */
static int attach_copy(int32_t pid, void *local, uint64_t remote, uint64_t n, bool write)
{
	unsigned char *at = local;

	while (n) {
		size_t most = n < CHUNK ? (size_t)n : CHUNK;
		struct iovec here = {at, most}, there = {(void *)(uintptr_t)remote, most};
		ssize_t moved = write ? process_vm_writev(pid, &here, 1, &there, 1, 0) :
					process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (moved <= 0)
			return moved < 0 ? -errno : -EFAULT;
		at += moved;
		remote += (uint64_t)moved;
		n -= (uint64_t)moved;
	}
	return 1;
}

/* Who may do more than the peer must not do it at the peer's word: that process may come to be
 * another program's, at addresses that it chose before. */
static bool is_same_user(int32_t pid)
{
	unsigned id[4] = {0}, own = geteuid();
	char path[32], line[128];
	bool same = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !same && fgets(line, sizeof(line), f))
		same = sscanf(line, "Uid: %u %u %u %u", id, id + 1, id + 2, id + 3) == 4 &&
		       id[0] == own && id[1] == own && id[2] == own && id[3] == own;
	if (f)
		fclose(f);
	return same;
}

/* Reads what only this peer can know, and writes it: a process with the same number does not have
 * it, and a kernel that refuses says so here. */
static bool try_attach(const struct shm_link *l)
{
	const struct shm_probe *p = &l->probe;
	unsigned char value[PROBE_SIZE];
	int32_t pid = l->base.pid;

	return is_same_user(pid) &&
	       attach_copy(pid, value, LITTLE_64(p->at), PROBE_SIZE, false) == 1 &&
	       memcmp(value, p->value, PROBE_SIZE) == 0 &&
	       attach_copy(pid, value, LITTLE_64(p->echo), PROBE_SIZE, true) == 1;
}

/*
 * A short read by this descriptor is quicker, and needs no is_there: the probe shows once that it
 * is the peer's memory. Read-only, for a write would ignore the protection of pages.
 */
static void open_memory(struct shm_link *l)
{
	unsigned char value[PROBE_SIZE];
	char path[32];
	int fd, none = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", l->base.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (pread(fd, value, PROBE_SIZE, (off_t)LITTLE_64(l->probe.at)) != PROBE_SIZE ||
	    memcmp(value, l->probe.value, PROBE_SIZE) != 0 ||
	    !atomic_compare_exchange_strong(&l->memory_fd, &none, fd + 1))
		close(fd);
}

void shm_close_memory(struct shm_link *l)
{
	int fd = atomic_exchange(&l->memory_fd, 0) - 1;

	if (fd >= 0)
		close(fd);
}

static COLD bool attach_works(struct shm_link *l)
{
	uint32_t state = atomic_load_explicit(&l->attach, memory_order_relaxed);

	if (state == ATTACH_UNTRIED) {
		state = try_attach(l) ? ATTACH_WORKS : ATTACH_REFUSED;
		if (state == ATTACH_WORKS)
			open_memory(l);
		atomic_store_explicit(&l->attach, state, memory_order_relaxed);
	}
	return state == ATTACH_WORKS;
}

static int map_peers(struct fabric_memory *m, const struct fabric_blob *blob)
{
	struct mapping map;
	enum mapping_access access = m->writable ? MAPPING_WRITE : MAPPING_READ;
	int rc = mapping_attach(&map, blob->fd, m->size, access);

	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return 0; /* ours to lack: it is not reached, then */
	if (rc < 0)
		return -EPROTO;
	m->base = map.base;
	m->own[KIND] = MAPPED;
	m->own[DESCRIPTOR] = (uint64_t)map.fd;
	m->ops = 1u << FABRIC_READ;
	if (m->writable)
		m->ops |= 1u << FABRIC_WRITE | 1u << FABRIC_ATOMIC;
	return 0;
}

/* Noted, and not tried before it is used. */
static void note_peers(struct shm_link *l, struct fabric_memory *m, const struct reach *reach)
{
	if (!l->base.attach || l->base.pid <= 0 ||
	    atomic_load_explicit(&l->attach, memory_order_relaxed) == ATTACH_REFUSED)
		return;
	if (!l->probe.at) /* the same for each region; before the first transfer could read it */
		l->probe = reach->probe;
	m->own[KIND] = ATTACHED;
	m->own[ADDRESS] = LITTLE_64(reach->address);
	m->ops = 1u << FABRIC_READ;
	if (m->writable)
		m->ops |= 1u << FABRIC_WRITE;
}

static int shm_memory_take(struct shm_link *l, struct fabric_memory *m,
			   const struct fabric_blob *blob)
{
	struct reach reach;

	m->base = NULL;
	m->ops = 0;
	if (blob->length != sizeof(reach))
		return -EPROTO;
	memcpy(&reach, blob->bytes, sizeof(reach));
	if (reach.zero || LITTLE_64(reach.size) != m->size)
		return -EPROTO;
	if (LITTLE_32(reach.how) == REACH_MAP)
		return blob->fd >= 0 ? map_peers(m, blob) : -EPROTO;
	if (LITTLE_32(reach.how) != REACH_ATTACH || blob->fd >= 0 ||
	    LITTLE_64(reach.address) > UINT64_MAX - m->size || !reach.probe.at)
		return -EPROTO;
	note_peers(l, m, &reach);
	return 0;
}

int shm_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
	    struct fabric_blob *blob)
{
	struct shm_link *l = (struct shm_link *)link;

	return own ? shm_memory_offer(l, m, writable, blob) : shm_memory_take(l, m, blob);
}

/* ---- operations ----------------------------------------------------------------------------- */

#define APPLY(type)                                                                                \
	static uint64_t apply_##type(void *at, const struct fabric_atomic *a)                      \
	{                                                                                          \
		_Atomic type *word = at;                                                           \
		type compare = (type)a->compare;                                                   \
                                                                                                   \
		if (a->op == FABRIC_FETCH_ADD)                                                     \
			return atomic_fetch_add(word, (type)a->operand);                           \
		if (a->op == FABRIC_SWAP)                                                          \
			return atomic_exchange(word, (type)a->operand);                            \
		(void)atomic_compare_exchange_strong(word, &compare, (type)a->operand);            \
		return compare;                                                                    \
	}
APPLY(uint32_t)
APPLY(uint64_t)

static int apply(void *at, struct fabric_atomic *a)
{
	if (a->bits == 8 && a->op == FABRIC_SWAP) { /* an access word */
		a->old = atomic_exchange((_Atomic unsigned char *)at, (unsigned char)a->operand);
		return 1;
	}
	if (a->op < FABRIC_FETCH_ADD || a->op > FABRIC_SWAP || (a->bits != 32 && a->bits != 64) ||
	    (uintptr_t)at % (a->bits / 8))
		return -EINVAL;
	a->old = a->bits == 64 ? apply_uint64_t(at, a) : apply_uint32_t(at, a);
	return 1;
}

/*
 * A process is reached by its number, which another has some time after its end; so soon that it
 * would be between this look and the copy, it cannot be. A process that executes another program
 * has other memory at the same addresses, and its end of the connection is closed.
 */
static bool is_there(const struct shm_link *l)
{
	struct pollfd ends[] = {{.fd = l->base.process, .events = POLLIN},
				{.fd = l->base.bell, .events = POLLRDHUP}};
	int n;

	/* Closed here, behind the peer; if only just, another may have the number by now. */
	if (ends[1].fd < 0)
		return false;
	do
		n = poll(ends, 2, 0);
	while (n < 0 && errno == EINTR); /* a signal, though it does not wait */
	return n == 0;
}

/* False: the caller attaches, which says why where it fails, too. */
static bool read_shortly(const struct shm_link *l, const struct fabric_wr *wr)
{
	int fd = atomic_load_explicit(&l->memory_fd, memory_order_relaxed) - 1;

	return fd >= 0 && !atomic_load_explicit(&l->ended, memory_order_relaxed) &&
	       wr->op == FABRIC_READ && wr->size <= READ_SHORT &&
	       pread(fd, wr->into, wr->size, (off_t)(wr->memory->own[ADDRESS] + wr->offset)) ==
		       (ssize_t)wr->size;
}

/* Its memory may live on in a thread or a child that shares it: from now on no read succeeds. */
static COLD int has_gone(struct shm_link *l)
{
	atomic_store_explicit(&l->ended, true, memory_order_relaxed);
	return -ESRCH;
}

static int reach_attached(struct shm_link *l, const struct fabric_wr *wr)
{
	struct fabric_memory *m = wr->memory;
	bool write = wr->op == FABRIC_WRITE;
	int rc;

	if (read_shortly(l, wr))
		return 1;
	if (UNLIKELY(!is_there(l)))
		return has_gone(l);
	if (UNLIKELY(!attach_works(l))) {
		m->ops = 0;
		return -EPERM;
	}
	/* Cast: what is written from is only read. */
	rc = attach_copy(l->base.pid, write ? (void *)(uintptr_t)wr->data : wr->into,
			 m->own[ADDRESS] + wr->offset, wr->size, write);

	if (rc == -EPERM)
		m->ops = 0;
	return rc == -ESRCH ? has_gone(l) : rc;
}

int shm_reach(struct shm_link *l, const struct fabric_wr *wr)
{
	const struct fabric_memory *m = wr->memory;
	unsigned char *at;

	if (UNLIKELY(wr->op > FABRIC_ATOMIC || !(m->ops & 1u << wr->op)))
		return -ENOTSUP;
	if (m->own[KIND] == ATTACHED)
		return reach_attached(l, wr);
	at = (unsigned char *)m->base + wr->offset;
	switch (wr->op) {
	case FABRIC_WRITE: copy_payload(at, wr->data, wr->size); return 1;
	case FABRIC_READ: copy_payload(wr->into, at, wr->size); return 1;
	default: return apply(at, wr->into);
	}
}
