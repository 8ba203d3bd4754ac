/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-memory attach, and whether it works with a process (attach.h). */
#include "shm/attach.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHUNK ((uint64_t)1 << 30) /* the kernel moves less than 2 GiB a call */

/* For ever, since others may come to it when what it was for is gone. */
static unsigned char probe[PROBE_SIZE], echo[PROBE_SIZE];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool attach_own_probe(struct attach_probe *own)
{
	static pid_t owner; /* a forked child needs bytes of its own */
	bool has;

	pthread_mutex_lock(&lock);
	if (owner != getpid())
		owner = getrandom(probe, PROBE_SIZE, 0) == PROBE_SIZE ? getpid() : 0;
	has = owner != 0;
	memcpy(own->value, probe, PROBE_SIZE);
	pthread_mutex_unlock(&lock);
	own->at = (uint64_t)(uintptr_t)probe;
	own->echo = (uint64_t)(uintptr_t)echo;
	return has;
}

void attach_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int attach_copy(int32_t pid, void *local, uint64_t remote, uint64_t n, bool write)
{
	unsigned char *at = local;

	if (remote > UINTPTR_MAX || n > UINTPTR_MAX - remote) /* of a process with longer ones */
		return -EFAULT;
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

/* Who may do more than another process must not do it at that one's word: its number may come to be
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

int attach_finds(int32_t pid, const struct attach_probe *p)
{
	unsigned char value[PROBE_SIZE];
	int rc = attach_copy(pid, value, p->at, PROBE_SIZE, false);

	return rc == 1 ? memcmp(value, p->value, PROBE_SIZE) == 0 : rc;
}

/* Reads what only that process can know, and writes it: one with the same number does not have it,
 * and a kernel that refuses says so here. */
bool attach_works_with(int32_t pid, const struct attach_probe *p)
{
	unsigned char value[PROBE_SIZE];

	memcpy(value, p->value, PROBE_SIZE);
	return pid > 0 && is_same_user(pid) && attach_finds(pid, p) == 1 &&
	       attach_copy(pid, value, p->echo, PROBE_SIZE, true) == 1;
}
