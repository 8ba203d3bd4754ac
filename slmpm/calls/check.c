/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine offers, each found by a real try; and the fabrics built in. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "shm/mapping.h"
#include "slmpm/bond/bond.h"
#include "slmpm/base/routes.h"
#include "slmpm/base/config.h"
#include "slmpm/context.h"
#include "slmpm/connect/control.h"
#include "slmpm/domain.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/error.h"
#include "slmpm/mirror/track.h"
#include "slmpm/track/finder.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/base/sized.h"
#include "slmpm/part.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

/* Of some shape: io_uring is tried. */
static const struct fabric_config with_uring = {
	.segments = 64,
	.segment_size = 64,
	.engine = FABRIC_ENGINE_URING,
};

__attribute__((format(printf, 3, 4))) static void check_found(struct slmpm_check *c, int state,
							      const char *format, ...)
{
	va_list args;

	c->state = state;
	va_start(args, format);
	vsnprintf(c->detail, sizeof(c->detail), format, args);
	va_end(args);
}

static void check_seals(struct slmpm_check *c)
{
	struct mapping m;
	int rc = mapping_create(&m, "slmpm-check", 65536);

	if (rc == 0 && mapping_close_seals(&m) == 0 && mapping_seals_closed(m.fd))
		check_found(c, 1, "memory without a name, sealed");
	else
		check_found(c, -1,
			    "a sealed memfd cannot be made (%s): Linux 4.14 or later is needed",
			    strerror(rc ? -rc : errno));
	if (rc == 0)
		mapping_destroy(&m);
}

static void check_membarrier(struct slmpm_check *c)
{
	struct fabric_caps caps;

	(void)fabric_find("shm")->probe(NULL, &caps);
	check_found(c, caps.membarrier, "%s",
		    caps.membarrier ? "the sleeper pays for the barrier of both sides" :
				      "refused here: each send fences instead");
}

/* A child reads a word of ours, as a peer would. */
static void check_attach(struct slmpm_check *c)
{
	static volatile int word = 4711;
	pid_t parent = getpid(), child = fork();
	int status = 0;

	if (child == 0) {
		int copy = 0;
		struct iovec to = {&copy, sizeof(copy)};
		struct iovec from = {(void *)(uintptr_t)&word, sizeof(word)};

		_exit(process_vm_readv(parent, &to, 1, &from, 1, 0) != sizeof(copy) ||
		      copy != 4711);
	}
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
		check_found(
			c, 1,
			"a child read this process's memory; used between a process and those it "
			"starts (SLMPM_ATTACH)");
	else
		check_found(
			c, 0,
			"refused (ptrace scope or a filter): large transfers go through the ring");
}

static void check_uring(struct slmpm_check *c)
{
	const struct fabric *fabric = fabric_find("tcp");
	struct fabric_caps caps = {.uring = 0};

	if (fabric)
		(void)fabric->probe(&with_uring, &caps);
	if (caps.uring > 0)
		check_found(c, 1, "a socket was received by it");
	else
		check_found(c, 0, "refused (%s): sockets are served by plain calls",
			    fabric ? strerror(-caps.uring) : "not tried");
}

static void check_huge(struct slmpm_check *c)
{
	void *at = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	check_found(c, at != MAP_FAILED, "%s",
		    at != MAP_FAILED ?
			    "a huge page could be had" :
			    "none reserved (/proc/sys/vm/nr_hugepages): ordinary pages are used");
	if (at != MAP_FAILED)
		munmap(at, HUGE_PAGE);
}

static void check_memlock(struct slmpm_check *c)
{
	struct rlimit l = {0, 0};
	bool enough;

	(void)getrlimit(RLIMIT_MEMLOCK, &l);
	enough = l.rlim_cur >= slmpm_memory_per_peer();
	if (l.rlim_cur == RLIM_INFINITY)
		check_found(c, enough, "unlimited");
	else
		check_found(c, enough, "%llu KiB (ulimit -l)",
			    (unsigned long long)l.rlim_cur / 1024);
}

static uint64_t check_link_memory(const struct config *config, const struct fabric *fabric)
{
	struct fabric_config shape = {.segment_size = (uint32_t)config->segment_size};
	struct fabric_caps caps;

	if (!fabric)
		return 0;
	shape.segments = domain_segments(fabric, shape.segment_size);
	(void)fabric->probe(&shape, &caps); /* what cannot run now would take as much */
	return caps.link_memory + fabric->link_size;
}

static void check_files(struct slmpm_check *c)
{
	const struct config *config = config_get();
	uint64_t ring = config ? check_link_memory(config, fabric_find(config->fabric)) : 0;
	struct rlimit files = {0, 0}, size = {0, 0};
	bool enough;

	(void)getrlimit(RLIMIT_NOFILE, &files);
	(void)getrlimit(RLIMIT_FSIZE, &size);
	enough = files.rlim_cur >= 64 && size.rlim_cur >= ring;
	check_found(c, enough ? 1 : -1,
		    "%llu descriptors (ulimit -n), 2 a peer; file size %s (ulimit -f)",
		    (unsigned long long)files.rlim_cur,
		    size.rlim_cur == RLIM_INFINITY ? "unlimited" :
		    enough                         ? "enough" :
						     "too small for a ring");
}

static void check_cgroup(struct slmpm_check *c)
{
	char text[64] = "";
	FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");

	if (f && !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (!*text || !strcmp(text, "max"))
		check_found(c, 1, "no memory limit found");
	else
		check_found(c, 1, "memory.max %.32s; a peer needs %llu KiB", text,
			    (unsigned long long)slmpm_memory_per_peer() / 1024);
}

static const struct {
	const char *name;
	void (*run)(struct slmpm_check *);
	/* Else a way to track a mirror: what it does, and what is done without. */
	int track;
	const char *works, *less;
} checks[] = {
	{"memfd seals", .run = check_seals},
	{"membarrier", .run = check_membarrier},
	{"cross-memory attach", .run = check_attach},
	{"io_uring", .run = check_uring},
	{"tracking: pagemap", .track = SLMPM_TRACK_PAGEMAP,
	 .works = "a page that was written has been told",
	 .less = "tracked mirrors take another way"},
	{"tracking: fault", .track = SLMPM_TRACK_FAULT,
	 .works = "a thread has opened a page that was written",
	 .less = "tracked mirrors take another way"},
	{"tracking: signal", .track = SLMPM_TRACK_SIGNAL,
	 .works = "a handler of SIGSEGV has opened a page that was written; system calls that "
		  "write there get EFAULT",
	 .less = "tracked mirrors compare all their memory"},
	{"huge pages", .run = check_huge},
	{"locked memory", .run = check_memlock},
	{"files", .run = check_files},
	{"cgroup", .run = check_cgroup},
};

static void check_track(struct slmpm_check *c, int i)
{
	const char *why = track_try(checks[i].track);

	if (why)
		check_found(c, 0, "refused (%s): %s", why, checks[i].less);
	else
		check_found(c, 1, "%s%s", checks[i].works,
			    checks[i].track == SLMPM_TRACK_FAULT && !track_fault_of_kernel() ?
				    "; system calls that write there get EFAULT "
				    "(/proc/sys/vm/unprivileged_userfaultfd)" :
				    "");
}

int slmpm_check_at(int i, struct slmpm_check *check)
{
	struct slmpm_check now = {.size = sizeof(now)};

	if (i < 0 || (size_t)i >= sizeof(checks) / sizeof(checks[0]))
		return error_set(SLMPM_ENOENT, "check %d", i);
	if (sized_check_own("slmpm_check_at", check, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	snprintf(now.name, sizeof(now.name), "%s", checks[i].name);
	if (checks[i].run)
		checks[i].run(&now);
	else
		check_track(&now, i);
	sized_give_own(check, &now, sizeof(now));
	return 0;
}

/* By what a fabric of sockets receives and sends, as it is set and as the kernel lets it. */
static void describe_engine(int uring, char *text, size_t size)
{
	const struct config *config = config_get();
	int64_t engine = config ? config->tcp_engine : FABRIC_ENGINE_AUTO;
	bool in = engine == FABRIC_ENGINE_URING || engine == FABRIC_ENGINE_URING_RECV;
	bool out = engine == FABRIC_ENGINE_URING || engine == FABRIC_ENGINE_URING_SEND;

	if (engine == FABRIC_ENGINE_PLAIN)
		snprintf(text, size, "receives and sends by plain calls");
	else if (uring < 0)
		snprintf(text, size, "receives and sends by plain calls: io_uring is refused (%s)",
			 strerror(-uring));
	else if (engine == FABRIC_ENGINE_AUTO)
		snprintf(text, size,
			 "receives and sends by plain calls, the fastest; io_uring works, too");
	else
		snprintf(text, size, "receives by %s; sends by %s", in ? "io_uring" : "plain calls",
			 out ? "io_uring" : "plain calls");
}

int slmpm_fabric_at(int i, struct slmpm_fabric_info *info)
{
	static const char *const commits[] = {"commit word", "counter", "event", "stream"};
	const struct fabric *fabric = fabric_at(i);
	struct slmpm_fabric_info now = {.size = sizeof(now)};
	struct fabric_caps caps;

	if (!fabric)
		return error_set(SLMPM_ENOENT, "fabric %d", i);
	if (sized_check_own("slmpm_fabric_at", info, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	now.available = fabric->probe(&with_uring, &caps) == 0;
	snprintf(now.name, sizeof(now.name), "%s", fabric->name);
	snprintf(now.capabilities, sizeof(now.capabilities), "%s%s%s%s%s%s%s",
		 caps.ops & 1U << FABRIC_SEND ? "send" : "",
		 caps.ops & 1U << FABRIC_FLUSH ? ", flush" : "",
		 (caps.ops | caps.later) & 1U << FABRIC_WRITE ? ", write" : "",
		 (caps.ops | caps.later) & 1U << FABRIC_READ ? ", read" : "",
		 (caps.ops | caps.later) & 1U << FABRIC_ATOMIC ? ", atomic" : "",
		 caps.land_min ? ", landing" : "",
		 caps.memory & FABRIC_MEMORY_HOST ? ", host memory" : "");
	snprintf(now.commit, sizeof(now.commit), "%s", commits[caps.commit]);
	snprintf(now.detail, sizeof(now.detail), "%s", now.available ? "" : caps.why_not);
	if (now.available && caps.uring)
		describe_engine(caps.uring, now.detail, sizeof(now.detail));
	now.packet_max = caps.message_max;
	sized_give_own(info, &now, sizeof(now));
	return 0;
}

/* Its links, with several of them what joins these, and what each endpoint has. */
uint64_t slmpm_memory_per_peer(void)
{
	const struct config *config = config_get();
	const struct fabric *fabric = config ? fabric_find(config->fabric) : NULL;
	uint64_t links = 0;

	if (!fabric)
		return 0;
	for (uint32_t i = 0; i < config->routes.count; i++)
		links += check_link_memory(config,
					   config->routes.route[i].fabric[0] ?
						   fabric_find(config->routes.route[i].fabric) :
						   fabric);
	if (config->routes.count > 1)
		links += (uint64_t)config->links_log + bond_fabric.link_size;
	return links + sizeof(union endpoint_slot) + parts.peer_size + sizeof(struct control) +
	       monitor_memory();
}
