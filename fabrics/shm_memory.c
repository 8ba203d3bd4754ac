/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions over shared memory, two kinds of them:
 *
 *     allocated         a sealed object of its own, passed by descriptor and mapped by the peer
 *     the application's  where the kernel lets one process reach another's memory (cross-memory
 *                        attach): its address
 *
 * A copy by attaching (shm/attach.h) is done between processes only that trust each other with
 * their time (link->attach), and nothing is touched when a grant arrives. Whether it works the
 * first transfer of a link finds out, by a real try: the owner has told where a random word lies,
 * the peer reads it and writes it back beside it. Both must be the same user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fabrics/shm.h"
#include "shm/copy.h"

#define LABEL      "slmpm-region"
#define READ_SHORT 4096 /* a page: the kernel reads /proc/PID/mem page by page, through a buffer */

enum kind { NOTHING, MAPPED, ATTACHED }; /* m->own[KIND] */
enum { KIND, DESCRIPTOR, ADDRESS };      /* of m->own */

#define REACH_MAP    1
#define REACH_ATTACH 2

struct reach { /* blob of a region, little-endian */
	uint32_t how, zero;
	uint64_t size;
	uint64_t address; /* REACH_ATTACH: */
	struct attach_probe probe;
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

static int shm_memory_offer(struct shm_link *l, const struct fabric_memory *m, bool writable,
			    struct fabric_blob *blob)
{
	struct reach reach = {.how = LITTLE_32(REACH_MAP), .size = LITTLE_64(m->size)};
	int fd = (int)m->own[DESCRIPTOR];
	struct attach_probe probe;

	if (m->allocated) {
		/* What the mapping allows nothing else can forbid. */
		if (writable ? !m->writable : !mapping_is_read_only(fd))
			return -ENOTSUP;
		blob->fd = fd;
	} else {
		if (!l->base.attach || !attach_own_probe(&probe))
			return -ENOTSUP;
		reach.how = LITTLE_32(REACH_ATTACH);
		reach.address = LITTLE_64((uint64_t)(uintptr_t)m->base);
		reach.probe = probe;
		reach.probe.at = LITTLE_64(probe.at);
		reach.probe.echo = LITTLE_64(probe.echo);
	}
	memcpy(blob->bytes, &reach, sizeof(reach));
	blob->length = sizeof(reach);
	return 0;
}

/* ---- a peer's memory ------------------------------------------------------------------------ */

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
	if (pread(fd, value, PROBE_SIZE, (off_t)l->probe.at) != PROBE_SIZE ||
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
		state = attach_works_with(l->base.pid, &l->probe) ? ATTACH_WORKS : ATTACH_REFUSED;
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

static struct attach_probe peers_probe(const struct reach *reach)
{
	struct attach_probe p = reach->probe;

	p.at = LITTLE_64(p.at);
	p.echo = LITTLE_64(p.echo);
	return p;
}

/* Noted, and not tried before it is used. */
static void note_peers(struct shm_link *l, struct fabric_memory *m, const struct reach *reach)
{
	if (!l->base.attach || l->base.pid <= 0 ||
	    atomic_load_explicit(&l->attach, memory_order_relaxed) == ATTACH_REFUSED)
		return;
	if (!l->probe.at) /* the same for each region; before the first transfer could read it */
		l->probe = peers_probe(reach);
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
 * A process is reached by its number, which another has some time after its end. A process that
 * executes another program has other memory at the same addresses, and its end of the connection
 * is closed. Either may be between this look and the copy: what protects is that the number of
 * one that has just ended comes late, as a rule, and that the kernel asks who reaches whom.
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
	/* Pairs with the exchange in open_memory: another thread may have opened it. */
	int fd = atomic_load_explicit(&l->memory_fd, memory_order_acquire) - 1;

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
