/* SPDX-License-Identifier: BSD-3-Clause */
/* One trial, the side that is measured against: lends its memory, receives what it is told to. */
#include <slmpm.h>

#include "apps/slmpm_info/pair.h"
#include "apps/slmpm_info/trial.h"

static int open_theirs(slmpm_peer host, slmpm_rmem *theirs, int *cpu)
{
	struct pair_hello hello;
	int64_t n = slmpm_recv(host, PAIR_ORDERS, &hello, sizeof(hello), NULL, PAIR_PATIENCE);

	if (n != sizeof(hello))
		return n < 0 ? (int)n : -SLMPM_EPROTO;
	*cpu = hello.cpu;
	return slmpm_mem_open(host, &hello.key, theirs);
}

static int lend(slmpm_peer host, unsigned char **base)
{
	struct slmpm_key key;
	slmpm_mem mem;
	void *memory;
	int rc = slmpm_mem_alloc((slmpm_ctx){0}, PAIR_BYTES, SLMPM_READ_WRITE, &mem, &memory);

	if (rc >= 0)
		rc = slmpm_mem_key(mem, host, SLMPM_READ_WRITE, &key);
	if (rc < 0)
		return rc;
	*base = memory;
	return slmpm_send(host, PAIR_ORDERS, &key, sizeof(key), PAIR_PATIENCE);
}

static int obey(slmpm_peer host, const struct pair_order *o, unsigned char *to)
{
	int64_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < o->count && rc >= 0; i++) {
		n = slmpm_recv(host, PAIR_DATA, to, PAIR_BYTES, NULL, PAIR_PATIENCE);
		if (n < 0)
			return (int)n;
		if (o->flags & PAIR_TOUCH)
			(void)pair_read(to, o->size);
		if (o->flags & PAIR_EACH || i == o->count - 1)
			rc = slmpm_send(host, PAIR_ORDERS, "", 0, PAIR_PATIENCE);
	}
	return rc;
}

int trial_follow(void)
{
	struct pair_order o;
	unsigned char *base;
	slmpm_rmem theirs;
	slmpm_peer host;
	int cpu = -1, rc;

	if (slmpm_parent(&host) < 0 || open_theirs(host, &theirs, &cpu) < 0 ||
	    lend(host, &base) < 0)
		return slmpm_perror("slmpm_info: second process");
	pair_pin(cpu);
	for (;;) {
		int64_t n = slmpm_recv(host, PAIR_ORDERS, &o, sizeof(o), NULL, -1);

		if (n == -SLMPM_ECLOSED || n == -SLMPM_EDEAD)
			return 0;
		rc = n == sizeof(o) ? obey(host, &o, base) : -SLMPM_EPROTO;
		if (rc < 0)
			return slmpm_perror("slmpm_info: second process");
	}
}
