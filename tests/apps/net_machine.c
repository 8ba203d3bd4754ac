/* SPDX-License-Identifier: BSD-3-Clause */
/* helper: of net_group.sh */
/*
 * Groups of members of which several are on each host, which meet in memory there: what operations
 * come to that have functions of the program's own, are long, or are waited for asleep; and that of
 * a member that differs, is late or dies, its rank in the whole group is said. Who
 * leaves in order ends none that does without it.
 */
#include <dirent.h>
#include <signal.h>
#include <slmpm_group.h>
#include <slmpm_plan.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS 6
#define WAIT_MS 10000
#define LONG    4000 /* elements: more than a post, and than are gathered */
#define CULPRIT 4    /* as the root of the first host, whose ranks are even; no leader */
#define LEFT_MS 1500 /* that it makes no progress then */
#define BUSY_MS 600  /* the same of one that goes on */
#define ROUNDS  4    /* groups made and left */
#define LATE_MS 600  /* more than what was said of the operation before it counts */

enum {
	RIGHT = 1,
	FOUNDER_LACKS,
	OTHER_LACKS,
	DIFFERS,
	DIFFERED,
	LACKS,
	SKIPS,
	LATE,
	BLOCKS,
	DIES, /* the last of a run, and so are: */
	STOPS,
	WRITES,
	RELEASES,
	BREAKS,
	LEAVES,
	EXITS,
	GROUPS
};

static slmpm_group group;
static bool lacks; /* one has no memory with the others of its host */
static struct slmpm_group_info own = {.size = sizeof(own)};

static void check(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", own.rank, what, slmpm_error_detail());
	exit(1);
}

static void query(void)
{
	check(slmpm_group_query(group, &own) == 0, "slmpm_group_query");
}

static void check_hosts(const char *what)
{
	query();
	/* Of fewer there may be no two on a host, or on another. */
	check(lacks || own.members < 4 || !strcmp(slmpm_plan_algorithm(own.algorithm), "hosts"),
	      what);
}

/* ---- what they come to ----------------------------------------------------------------------- */

struct affine { /* x -> a x + b: composed, which does not commute */
	uint32_t a, b;
};

static struct affine affine_of(int rank)
{
	return (struct affine){(uint32_t)rank * 2 + 3, (uint32_t)rank + 1};
}

static struct affine then(struct affine f, struct affine g)
{
	return (struct affine){f.a * g.a, f.b * g.a + g.b};
}

static void compose(void *to, const void *left, const void *right, size_t n, void *arg)
{
	const struct affine *f = left, *g = right;
	struct affine *out = to;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		out[i] = then(f[i], g[i]);
}

static void check_own(int root)
{
	const struct slmpm_combine own_way = {
		.size = sizeof(own_way), .function = compose, .width = sizeof(struct affine)};
	struct affine part[2] = {affine_of(own.rank), affine_of(own.rank + 1)}, all[2] = {{0}};
	struct affine right[2] = {affine_of(0), affine_of(1)};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .from = part,
			       .to = all,
			       .count = 2,
			       .combine = &own_way};

	for (int r = 1; r < (int)own.members; r++)
		for (int i = 0; i < 2; i++)
			right[i] = then(right[i], affine_of(r + i));
	check(slmpm_collective(group, &c, WAIT_MS) == 0, "a function of its own");
	check(!memcmp(all, right, sizeof(all)), "a function of its own: another result");
	check_hosts("a function of its own does not go within each host first");
	memset(all, 0, sizeof(all));
	c.kind = SLMPM_COLL_REDUCE;
	c.root = root;
	check(slmpm_collective(group, &c, WAIT_MS) == 0, "a reduce of its own");
	check(own.rank != root || !memcmp(all, right, sizeof(all)), "its own: another result");
}

static void add(void *to, const void *left, const void *right, size_t n, void *arg)
{
	const uint32_t *a = left, *b = right;
	uint32_t *out = to;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		out[i] = a[i] + b[i];
}

/* In any order: sums go between hosts, of each as it is. */
static void check_own_sum(int root)
{
	const struct slmpm_combine own_way = {.size = sizeof(own_way),
					      .function = add,
					      .width = sizeof(uint32_t),
					      .flags = SLMPM_COLL_COMMUTES};
	const uint32_t n = own.members, sum = n * (n - 1) / 2;
	uint32_t part[3] = {(uint32_t)own.rank, (uint32_t)own.rank + 1, 1}, all[3] = {0};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .from = part,
			       .to = all,
			       .count = 3,
			       .combine = &own_way};

	check(slmpm_collective(group, &c, WAIT_MS) == 0, "a sum of its own");
	check(all[0] == sum && all[1] == sum + n && all[2] == n, "its own: another sum");
	c.kind = SLMPM_COLL_REDUCE;
	c.root = root;
	all[0] = all[1] = all[2] = 0;
	check(slmpm_collective(group, &c, WAIT_MS) == 0, "a sum of its own at a root");
	check(own.rank != root || (all[0] == sum && all[1] == sum + n && all[2] == n),
	      "its own at a root: another sum");
}

static void check_long(int root)
{
	static int32_t words[LONG], sums[LONG];
	const int n = (int)own.members;

	for (int i = 0; i < LONG; i++)
		words[i] = own.rank + i;
	check(slmpm_reduce(group, words, sums, LONG, SLMPM_INT32, SLMPM_CALC_SUM, root, WAIT_MS) ==
		      0,
	      "a long reduce");
	check_hosts("a long reduce does not go within each host first");
	for (int i = 0; i < LONG && own.rank == root; i++)
		check(sums[i] == n * i + n * (n - 1) / 2, "a long reduce: another sum");
	check(slmpm_broadcast(group, sums, LONG, SLMPM_INT32, root, WAIT_MS) == 0, "a long one");
	check(slmpm_allreduce(group, SLMPM_IN_PLACE, words, LONG, SLMPM_INT32, SLMPM_CALC_SUM,
			      WAIT_MS) == 0,
	      "a long allreduce");
	check(!memcmp(words, sums, sizeof(words)), "a long allreduce: another sum");
}

/* Both are started, and waited for asleep. */
static void check_started(void)
{
	const double part = 0.1 * own.rank;
	double all = -1, right = 0;
	const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	const struct slmpm_coll sum = {.size = sizeof(sum),
				       .kind = SLMPM_COLL_ALLREDUCE,
				       .type = SLMPM_DOUBLE,
				       .op = SLMPM_CALC_SUM,
				       .from = &part,
				       .to = &all,
				       .count = 1};
	slmpm_req both[2];

	check(slmpm_collective_start(group, &barrier, NULL, &both[0]) == 0, "start");
	check(slmpm_collective_start(group, &sum, NULL, &both[1]) == 0, "start");
	struct slmpm_done done;
	for (int i = 0; i < 2; i++)
		check(slmpm_wait(both, 2, &done, WAIT_MS) >= 0 && done.status == 0,
		      "one that was started");
	for (int r = 0; r < (int)own.members; r++)
		right += 0.1 * r;
	check(all == right, "one that was started: another sum");
	check_hosts("one that was started does not go within each host first");
}

static void check_results(void)
{
	for (int root = 0; root < (int)own.members; root++) {
		check_own(root);
		check_own_sum(root);
		check_long(root);
		check_started();
	}
}

/* ---- without --------------------------------------------------------------------------------- */

/* LACKING has no descriptor for memory with those on its host: then all go by messages. */
static void do_without(int lacking)
{
	const struct slmpm_coll tagged = {
		.size = sizeof(tagged), .kind = SLMPM_COLL_BARRIER, .tag = 1};
	struct rlimit all, few;
	slmpm_peer peer;

	for (int r = 0; r < MEMBERS; r++)
		if (r != own.rank)
			check(slmpm_group_peer(group, r, &peer, WAIT_MS) == 0, "slmpm_group_peer");
	check(slmpm_collective(group, &tagged, WAIT_MS) == 0, "all are connected");
	check(getrlimit(RLIMIT_NOFILE, &all) == 0, "getrlimit");
	few = all;
	few.rlim_cur = (rlim_t)dup(0);
	close((int)few.rlim_cur);
	if (own.rank == lacking)
		setrlimit(RLIMIT_NOFILE, &few);
	lacks = true;
	check_results();
	lacks = false;
	setrlimit(RLIMIT_NOFILE, &all);
}

static void founder_lacks(void)
{
	do_without(1);
}

static void other_lacks(void)
{
	do_without(CULPRIT);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* All but who has CAUSED it name that one. */
static void check_error(int rc, int error, int culprit, const char *what)
{
	query();
	if (rc == -SLMPM_ECLOSED && error == -SLMPM_EDEAD) /* it cannot be connected with */
		rc = error;
	if (rc == error && (culprit < 0 || own.culprit == culprit))
		return;
	fprintf(stderr, "rank %d: %s: %s by rank %d: %s\n", own.rank, what, slmpm_error_name(-rc),
		own.culprit, slmpm_error_detail());
	exit(1);
}

static int sum_of(int count)
{
	int64_t one[2] = {1, 1}, all[2];

	return slmpm_allreduce(group, one, all, (uint64_t)count, SLMPM_INT64, SLMPM_CALC_SUM,
			       WAIT_MS);
}

static void differ(void)
{
	check(sum_of(1) == 0, "a sum");
	check_error(sum_of(own.rank == CULPRIT ? 2 : 1), -SLMPM_EINVAL, -1, "one differs");
	check(strstr(slmpm_error_detail(), "operation 2, allreduce") != NULL, "of which operation");
	check(strstr(slmpm_error_detail(), "rank 4 (process") != NULL, "by which rank");
}

/* What went by messages is named, though it is in memory that it shows. */
static void differ_before(void)
{
	int64_t parts[MEMBERS] = {0}, one;
	int rc = slmpm_scatter(group, parts, &one, 1, SLMPM_INT64,
			       own.rank == CULPRIT ? CULPRIT : 1, WAIT_MS);

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = slmpm_barrier(group, WAIT_MS);
	check_error(rc, -SLMPM_EINVAL, -1, "one has another root");
	check(strstr(slmpm_error_detail(), "operation 1, scatter") &&
		      strstr(slmpm_error_detail(), "root 1") &&
		      strstr(slmpm_error_detail(), "root 4") &&
		      strstr(slmpm_error_detail(), "rank 4 (process"),
	      "by which rank, in which");
}

/* It has no memory for the rings of its connections. */
static void lack_memory(void)
{
	struct rlimit all, few;

	check(getrlimit(RLIMIT_FSIZE, &all) == 0, "getrlimit");
	few = all;
	few.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	if (own.rank == CULPRIT)
		setrlimit(RLIMIT_FSIZE, &few);
	else
		usleep(50 * 1000); /* none has connected with it before */
	check(sum_of(1) < 0, "one lacks memory");
	query();
	check(own.culprit == CULPRIT && strstr(slmpm_error_detail(), "rank 4 (process"),
	      "which one");
	setrlimit(RLIMIT_FSIZE, &all);
}

/* The last of a chain leaves out what goes by messages alone: by what goes in memory it is seen. */
static void skip(void)
{
	static char bytes[200 << 10];
	int rc = slmpm_barrier(group, WAIT_MS);

	if (rc == 0 && own.rank != MEMBERS - 1)
		rc = slmpm_broadcast(group, bytes, sizeof(bytes), SLMPM_UINT8, 0, WAIT_MS);
	for (int i = 0; i < 32 && rc == 0; i++)
		rc = slmpm_barrier(group, WAIT_MS);
	check_error(rc, -SLMPM_EINVAL, -1, "one leaves an operation out");
}

static void be_late(void)
{
	check(sum_of(1) == 0, "a sum");
	if (own.rank != CULPRIT)
		check_error(slmpm_barrier(group, LATE_MS), -SLMPM_ETIMEOUT, CULPRIT, "one is late");
	else
		while (own.status == 0)
			query();
}

/* One blocks in an operation with a tag, the others in one without. */
static void block(void)
{
	const struct slmpm_coll tagged = {
		.size = sizeof(tagged), .kind = SLMPM_COLL_BARRIER, .tag = 5};
	int rc;

	check(sum_of(1) == 0, "a sum");
	if (own.rank == CULPRIT)
		rc = slmpm_collective(group, &tagged, WAIT_MS);
	else
		rc = slmpm_barrier(group, WAIT_MS);
	check_error(rc, -SLMPM_EINVAL, -1, "each waits for the other");
	check(strstr(slmpm_error_detail(), "tag 5") != NULL, "in which operation");
	check(strstr(slmpm_error_detail(), "rank 4 (process") != NULL, "by which rank");
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Rank 5 breaks it while rank 2 waits for what rank 1 or 3, which make no progress just then, has
 * still to send: that operation ends well, and then rank 2 makes none. Nor does rank 0, by which
 * alone rank 4 is connected: that one learns it all the same. */
static void break_amid(void)
{
	int64_t one = 1, all = 0, begun;
	const struct slmpm_coll sum = {.size = sizeof(sum),
				       .kind = SLMPM_COLL_REDUCE,
				       .type = SLMPM_INT64,
				       .op = SLMPM_CALC_SUM,
				       .root = 2,
				       .from = &one,
				       .to = &all,
				       .count = 1};
	struct slmpm_done done;
	slmpm_peer peer;
	slmpm_req req;
	int rc;

	check(sum_of(1) == 0, "a sum");
	check(own.rank != sum.root || slmpm_group_peer(group, 5, &peer, WAIT_MS) == 0, "a peer");
	check(slmpm_barrier(group, WAIT_MS) == 0, "barrier");
	begun = now_ms();
	if (own.rank == 5)
		usleep(10 * 1000);
	check(slmpm_collective_start(group, &sum, NULL, &req) == 0, "start");
	if (own.rank == 1 || own.rank == 3)
		usleep(50 * 1000);
	rc = slmpm_wait(&req, 1, &done, WAIT_MS) < 0 ? -1 : (int)done.status;
	if (own.rank == 0 || own.rank == sum.root)
		usleep(BUSY_MS * 1000);
	else if (rc == 0)
		check(slmpm_barrier(group, own.rank == 5 ? 1 : WAIT_MS) < 0, "it was not broken");
	check(own.rank != CULPRIT || now_ms() - begun < BUSY_MS * 3 / 4, "it is broken: late");
}

/* ---- one is stopped as it writes ------------------------------------------------------------- */

static bool stops;

/* The library's is this, too. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
			  const struct iovec *there, unsigned long m, unsigned long flags)
{
	if (stops)
		raise(SIGSTOP);
	return syscall(SYS_process_vm_writev, pid, here, n, there, m, flags);
}

/* Rank 0, to the buffer of the other one on its host, which is said. Where the kernel does not let
 * them nothing is. */
static void stop_writing(void)
{
	static int64_t words[2 * LONG];
	int64_t pid = getpid(), pids[4];
	slmpm_group part;
	int rc;

	check(slmpm_group_split(&part, group, own.rank < 4 ? 0 : SLMPM_COLOR_NONE, 0, WAIT_MS) == 0,
	      "slmpm_group_split");
	if (own.rank >= 4)
		return;
	check(slmpm_allgather(part, &pid, pids, 1, SLMPM_INT64, WAIT_MS) == 0, "processes");
	check(slmpm_broadcast(part, words, 2 * LONG, SLMPM_INT64, 0, WAIT_MS) == 0, "a broadcast");
	stops = own.rank == 0;
	rc = slmpm_broadcast(part, words, 2 * LONG, SLMPM_INT64, 0, LATE_MS);
	if (own.rank == 2 && rc < 0)
		check(strstr(slmpm_error_detail(), "rank 0 (process") &&
			      strstr(slmpm_error_detail(), "stopped as it writes"),
		      "who writes");
	if (own.rank == 2)
		(void)kill((pid_t)pids[0], SIGCONT);
	check(slmpm_group_destroy(part) == 0, "slmpm_group_destroy");
}

/* ---- what is not needed any more ------------------------------------------------------------- */

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	check(d != NULL, "descriptors");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Connections go with the groups, and so do those by which members of a host have met. */
static void release(void)
{
	const int64_t end = now_ms() + WAIT_MS;
	slmpm_ctx ctx = {0};
	int first = 0;

	for (int i = 0; i < ROUNDS; i++) {
		slmpm_group part;

		check(slmpm_group_split(&part, group, 0, 0, WAIT_MS) == 0, "slmpm_group_split");
		check(slmpm_barrier(part, WAIT_MS) == 0, "barrier");
		check(slmpm_group_destroy(part) == 0, "slmpm_group_destroy");
		first = i ? first : descriptors();
	}
	while (descriptors() > first && now_ms() < end)
		check(slmpm_progress(ctx) >= 0, "slmpm_progress");
	check(descriptors() <= first, "connections stay");
	check(slmpm_barrier(group, WAIT_MS) == 0, "barrier");
}

/* ---- one leaves in order --------------------------------------------------------------------- */

/* Then it makes no progress: those that need it learn it all the same. */
static void leave(void)
{
	int64_t begun;

	check(sum_of(1) == 0, "a sum");
	begun = now_ms();
	if (own.rank == CULPRIT) {
		check(slmpm_group_destroy(group) == 0, "slmpm_group_destroy");
		usleep(LEFT_MS * 1000);
		return;
	}
	check_error(slmpm_barrier(group, WAIT_MS), -SLMPM_ECLOSED, CULPRIT, "one has left");
	check(now_ms() - begun < LEFT_MS * 3 / 4, "one has left: late");
}

/* It does its part of the last one, leaves, and ends, while that waits for those of the other host:
 * it ends well. */
static void leave_and_exit(void)
{
	int64_t one = 1, all = 0;
	int rc;

	check(sum_of(1) == 0, "a sum");
	if (own.rank % 2) /* of the second host */
		usleep(500 * 1000);
	rc = slmpm_reduce(group, &one, &all, 1, SLMPM_INT64, SLMPM_CALC_SUM, 0, WAIT_MS);
	check(rc == 0, "one has left behind its part");
	check(own.rank != 0 || all == MEMBERS, "one has left behind its part: another sum");
	if (own.rank != CULPRIT)
		return;
	check(slmpm_group_destroy(group) == 0, "slmpm_group_destroy");
	_exit(0);
}

/* ---- one ends amid any step ------------------------------------------------------------------ */

static int end_signal;
static unsigned seed;

static void end_here(int signal)
{
	(void)signal;
	raise(end_signal);
}

/* The same at all members. */
static unsigned draw(unsigned k)
{
	unsigned x = (seed * 64 + k) * 2654435761u;

	x ^= x >> 15;
	x *= 2246822519u;
	return x ^ x >> 13;
}

static int any_operation(unsigned k, int timeout_ms)
{
	static double parts[LONG], sums[LONG];
	static int64_t words[LONG], all[LONG];
	const unsigned x = draw(k), count = x % 8 ? x % 5 : x % LONG;
	const int root = (int)(draw(~k) % own.members);

	switch (x >> 8 & 3) {
	case 0: return slmpm_barrier(group, timeout_ms);
	case 1: return slmpm_broadcast(group, words, count, SLMPM_INT64, root, timeout_ms);
	case 2:
		return slmpm_reduce(group, words, all, count, SLMPM_INT64, SLMPM_CALC_SUM, root,
				    timeout_ms);
	default:
		return slmpm_allreduce(group, parts, sums, count, SLMPM_DOUBLE, SLMPM_CALC_SUM,
				       timeout_ms);
	}
}

static void end_one(unsigned k, int error, int timeout_ms)
{
	const int culprit = (int)(draw(k) % own.members);
	const struct itimerval soon = {.it_value.tv_usec = 1 + (long)(draw(~k) % 20000)};
	int rc = 0;

	if (own.rank == culprit) {
		signal(SIGALRM, end_here);
		setitimer(ITIMER_REAL, &soon, NULL);
	}
	for (unsigned i = 0; rc == 0; i++)
		rc = any_operation(i, timeout_ms);
	check_error(rc, error, culprit, "one has ended");
}

static void die(void)
{
	end_signal = SIGKILL;
	for (unsigned k = 1; own.members > 2; k++) {
		const unsigned members = own.members;

		end_one(k, -SLMPM_EDEAD, WAIT_MS);
		check(slmpm_group_shrink(group, WAIT_MS) == 0, "slmpm_group_shrink");
		query();
		check(own.members == members - 1, "who is left");
		check_results();
	}
}

static void stop(void)
{
	end_signal = SIGSTOP;
	end_one(1, -SLMPM_ETIMEOUT, LATE_MS);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void join_group(uint32_t tag)
{
	slmpm_peer host;

	check(slmpm_parent(&host) >= 0, "slmpm_parent");
	check(slmpm_group_join(&group, host, tag, WAIT_MS) == 0, "slmpm_group_join");
	query();
}

/* What is done: from a group's tag to another's. */
static const struct run {
	char name[8];
	uint32_t first, last;
	int ends; /* processes that do so by themselves */
} runs[] = {{"die", RIGHT, DIES, 2},
	    {"stop", STOPS, STOPS, MEMBERS - 1},
	    {"write", WRITES, WRITES, MEMBERS},
	    {"leave", RELEASES, EXITS, MEMBERS}};

static const struct run *run_of(const char *name)
{
	size_t i = sizeof(runs) / sizeof(runs[0]) - 1;

	while (i > 0 && strcmp(runs[i].name, name))
		i--;
	return &runs[i];
}

static int accelerator(const struct run *run)
{
	typedef void play(void);
	static play *const part[] = {NULL,          check_results, founder_lacks, other_lacks,
				     differ,        differ_before, lack_memory,   skip,
				     be_late,       block,         die,           stop,
				     stop_writing,  release,       break_amid,    leave,
				     leave_and_exit};

	for (uint32_t tag = run->first; tag <= run->last; tag++) {
		join_group(tag);
		part[tag]();
		for (int k = 0; k < 3 && tag <= OTHER_LACKS; k++)
			check(slmpm_group_meet(group, WAIT_MS) == 0, "meet");
		check(tag != DIES || slmpm_barrier(group, WAIT_MS) == 0, "barrier");
		if (tag != LEAVES || own.rank != CULPRIT)
			check(slmpm_group_destroy(group) == 0, "slmpm_group_destroy");
	}
	return 0;
}

/* "net_machine [SEED [die | stop | write | leave]]": those that end are chosen by it. */
int main(int argc, char **argv)
{
	const struct run *run = run_of(argc > 2 ? argv[2] : "die");
	char name[sizeof(run->name)];
	char *words[] = {argc > 1 ? argv[1] : "1", name, "accelerator", NULL};
	slmpm_peer accels[MEMBERS];
	slmpm_group groups[GROUPS];
	int ended = 0;

	memcpy(name, run->name, sizeof(name));
	seed = (unsigned)atoi(words[0]);
	if (run->first == WRITES)
		setenv("SLMPM_ATTACH", "y", 1);
	if (argc == 4)
		return accelerator(run);
	for (int i = 0; i < MEMBERS; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("slmpm_spawn");
	for (uint32_t tag = run->first; tag <= run->last; tag++)
		if (slmpm_group_create(&groups[tag], (slmpm_ctx){0}, accels, MEMBERS, tag,
				       WAIT_MS) < 0)
			return slmpm_perror("slmpm_group_create");
	for (int i = 0; run->first != STOPS && i < MEMBERS; i++)
		ended += slmpm_join(accels[i], NULL, WAIT_MS) == 0;
	if (run->first != STOPS)
		return ended != run->ends;
	/* One is stopped. */
	for (int i = 0; ended < run->ends; i = (i + 1) % MEMBERS)
		ended += slmpm_join(accels[i], NULL, 10) == 0;
	for (int i = 0; i < MEMBERS; i++)
		(void)slmpm_kill(accels[i], 0);
	return 0;
}
