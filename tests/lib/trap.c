/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault handlers behind trap.h. */
#include "tests/lib/trap.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/lib/test.h"

#define AREAS 8

static struct {
	unsigned char *base;
	size_t size;
} areas[AREAS];
static int armed;
static struct trap_counts counts;

#ifdef __x86_64__
#define FAULT_WRITE 2 /* bit of the page-fault error code */
#define TRAP_FLAG   0x100

bool trap_possible(void)
{
	return true;
}

static void protect(int protection)
{
	for (int i = 0; i < armed; i++)
		if (mprotect(areas[i].base, areas[i].size, protection) != 0)
			_exit(3);
}

static bool trapped(const unsigned char *address)
{
	for (int i = 0; i < armed; i++)
		if (address >= areas[i].base && address < areas[i].base + areas[i].size)
			return true;
	return false;
}

/* Does the instruction at IP, known to write memory, read it as well? */
static bool reads_too(const unsigned char *ip)
{
	bool repeated = false;

	for (;; ip++) {
		if (*ip == 0xf0) /* lock */
			return true;
		if (*ip == 0xf2 || *ip == 0xf3)
			repeated = true;
		else if (*ip != 0x66 && *ip != 0x67 && *ip != 0x64 && *ip != 0x65 &&
			 (*ip & 0xf0) != 0x40)
			break;
	}
	if (*ip == 0x0f) {
		switch (ip[1]) {
		case 0xab:
		case 0xb3:
		case 0xbb:
		case 0xba: /* bit set, reset, complement */
		case 0xa4:
		case 0xa5:
		case 0xac:
		case 0xad: /* double shifts */
		case 0xb0:
		case 0xb1:
		case 0xc0:
		case 0xc1: /* cmpxchg, xadd */
		case 0xc7: /* cmpxchg16b */ return !repeated || ip[1] != 0xc7;
		default: return false;
		}
	}
	if (*ip < 0x38) /* add, or, adc, sbb, and, sub, xor into memory */
		return (*ip & 7) < 2;
	switch (*ip) {
	case 0x80:
	case 0x81:
	case 0x83: /* the same with a constant */
	case 0x86:
	case 0x87: /* xchg */
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3: /* shifts */
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff: /* not, neg, inc, dec */ return true;
	default: return false;
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t ip = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];

	(void)number;
	if (!trapped(info->si_addr)) { /* a fault of its own: let it end the process */
		(void)signal(SIGSEGV, SIG_DFL);
		return;
	}
	if (!(u->uc_mcontext.gregs[REG_ERR] & FAULT_WRITE) ||
	    reads_too((const unsigned char *)ip)) {
		if (counts.loads++ == 0) {
			counts.first_load = ip;
			counts.address = (uintptr_t)info->si_addr;
		}
	} else {
		counts.stores++;
	}
	protect(PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/* One instruction later. */
static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	protect(PROT_NONE);
}

static void handle(void)
{
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	sigfillset(&fault.sa_mask);
	sigfillset(&step.sa_mask);
	CHECK(sigaction(SIGSEGV, &fault, NULL) == 0 && sigaction(SIGTRAP, &step, NULL) == 0,
	      "no handlers");
}
#else
bool trap_possible(void)
{
	return false;
}

static void protect(int protection)
{
	(void)protection;
}

static void handle(void) {}
#endif

void trap_loads(void *base, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	CHECK((uintptr_t)base % page == 0 && armed < AREAS, "cannot trap this area");
	if (armed == 0) {
		memset(&counts, 0, sizeof(counts));
		handle();
	}
	areas[armed].base = base;
	areas[armed].size = (size + page - 1) / page * page;
	armed++;
	protect(PROT_NONE);
}

struct trap_counts trap_seen(void)
{
	return counts;
}

struct trap_counts trap_end(void)
{
	protect(PROT_READ | PROT_WRITE);
	armed = 0;
	return counts;
}
