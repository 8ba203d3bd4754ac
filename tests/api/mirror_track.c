/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Tracked mirrors: each way on each kind of memory, the edges, memory that is given back, children,
 * system calls that write there, and who else handles SIGSEGV. A mirror alone is enough: what a
 * look finds is what would be sent.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define PAGES  12
#define BEFORE 64 /* of the first page, */
#define BEHIND 72 /* and of the last: no part of the mirror */

static const char *const names[] = {"", "", "pagemap", "fault", "signal", "twin"};

static slmpm_ctx ctx;
static size_t page, whole;
static unsigned char *memory; /* PAGES pages */
static slmpm_mirror mirror;

static int64_t inspect(void)
{
	return slmpm_mirror_scan(mirror);
}

/* A byte whose value it has not had lately. */
static void store(size_t at)
{
	static unsigned char mark;

	mark = (unsigned char)(mark % 255 + 1);
	if (memory[at] == mark)
		mark++;
	__atomic_store_n(memory + at, mark, __ATOMIC_RELAXED);
}

/* ---- memory of each kind --------------------------------------------------------------------- */

enum kind { ANONYMOUS, MEMFD, MEMFD_PRIVATE, HUGE_PAGES, FILE_SHARED, FILE_PRIVATE, KINDS };

static const char *const kinds[] = {"anonymous",  "memfd, shared", "memfd, private",
				    "huge pages", "file, shared",  "file, private"};

static unsigned char *map(enum kind kind)
{
	int flags = kind == MEMFD || kind == FILE_SHARED ? MAP_SHARED : MAP_PRIVATE, fd = -1;
	void *at;

	whole = kind == HUGE_PAGES ? (size_t)2 << 20 : page;
	if (kind == MEMFD || kind == MEMFD_PRIVATE)
		fd = memfd_create("tracked", MFD_CLOEXEC);
	if (kind == FILE_SHARED || kind == FILE_PRIVATE) {
		FILE *f = tmpfile();

		CHECK(f, "no temporary file");
		fd = dup(fileno(f));
		fclose(f);
	}
	if (fd < 0)
		flags |= MAP_ANONYMOUS | (kind == HUGE_PAGES ? MAP_HUGETLB : 0);
	else
		OK(ftruncate(fd, (off_t)(PAGES * whole)));
	at = mmap(NULL, PAGES * whole, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* How it is tracked; or NULL: it cannot be. */
static const char *track(uint32_t how)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	int rc = slmpm_mirror_create(ctx, memory + BEFORE, PAGES * whole - BEFORE - BEHIND, &o,
				     &mirror);

	if (rc == 0)
		return names[how];
	CHECK(rc == -SLMPM_ENOTSUP && strstr(slmpm_error_detail(), "tracked"), "%d: %s", rc,
	      slmpm_error_detail());
	return NULL;
}

static void untrack(void)
{
	OK(slmpm_mirror_destroy(mirror));
	for (size_t at = 0; at < PAGES; at++)
		store(at * whole); /* all is open */
}

static void found_everywhere(void)
{
	const size_t places[] = {BEFORE,
				 whole - 1,
				 whole,
				 2 * whole - 1,
				 5 * whole + 17,
				 (PAGES - 1) * whole - 1,
				 (PAGES - 1) * whole,
				 PAGES * whole - BEHIND - 1};
	const int64_t n = sizeof(places) / sizeof(places[0]);

	EXPECT(inspect(), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < n; i++)
			store(places[i]);
		EXPECT(inspect(), n);
		EXPECT(inspect(), 0);
		for (int i = 0; i < n; i++) {
			store(places[i]);
			EXPECT(inspect(), 1);
		}
	}
	for (size_t at = 1; at < PAGES - 1; at += 2) /* more runs than one by one */
		store(at * whole);
	EXPECT(inspect(), PAGES / 2 - 1);
	EXPECT(inspect(), 0);
	store(0);
	store(PAGES * whole - 1);
	EXPECT(inspect(), 0); /* no part of it */
}

/* Memory that is given back reads as zeros; that is no store, but those that follow are. */
static void given_back(enum kind kind)
{
	store(5 * whole + 17);
	(void)inspect();
	OK(madvise(memory + 4 * whole, 4 * whole, MADV_DONTNEED));
	CHECK(memory[5 * whole + 17] == 0 || kind != ANONYMOUS, "it is still there");
	(void)inspect();
	store(5 * whole + 17); /* what has become zero may be found with it */
	store(7 * whole);
	CHECK(inspect() >= 2, "stores behind it are lost");
	for (int i = 0; i < 3; i++) {
		store(5 * whole + 17);
		EXPECT(inspect(), 1);
		store(7 * whole);
		EXPECT(inspect(), 1);
	}
	EXPECT(inspect(), 0);
}

static int child(void *how)
{
	(void)how;
	for (size_t at = 0; at < PAGES; at++)
		store(at * whole + 3);
	return 0;
}

static void forked(uint32_t how, enum kind kind)
{
	bool shared = kind == MEMFD || kind == FILE_SHARED;

	store(3 * whole);
	EXPECT(child_run(child, &how, 20), 0);
	if (shared) /* another process's stores: this one's page tables know nothing of them */
		for (size_t at = 0; at < PAGES; at++)
			OK(slmpm_mirror_changed(mirror, memory + (at ? at * whole + 3 : BEFORE),
						1));
	EXPECT(inspect(), 1);
	store(3 * whole);
	store(8 * whole);
	EXPECT(inspect(), 2);
}

static void on(uint32_t how, enum kind kind)
{
	const char *name;

	memory = map(kind);
	if (!memory) {
		printf("%-16s none here\n", kinds[kind]);
		return;
	}
	memory[6 * whole] = 1; /* of the others some are not there yet */
	name = track(how);
	printf("%-16s %-8s %s\n", kinds[kind], names[how], name ? "works" : slmpm_error_detail());
	CHECK(name || kind != ANONYMOUS || slmpm_mirror_track_works((int)how) < 0,
	      "it worked on trial");
	CHECK(name || how < SLMPM_TRACK_SIGNAL, "that always works: %s", slmpm_error_detail());
	if (name) {
		found_everywhere();
		given_back(kind);
		forked(how, kind);
		untrack();
	}
	OK(munmap(memory, PAGES * whole));
}

/* ---- parts, and mirrors beside each other ---------------------------------------------------- */

/* Between the parts nobody is held up, or told. */
static void parts(uint32_t how)
{
	const struct slmpm_span spans[] = {{page + 8, 16}, {3 * page, 2 * page}, {7 * page, 8}};
	const struct slmpm_mirror_options o = {
		.size = sizeof(o), .track = how, .spans = spans, .span_count = 3};
	const struct slmpm_mirror_options small = {.size = sizeof(o), .track = how};
	slmpm_mirror other;

	memory = map(ANONYMOUS);
	OK(slmpm_mirror_create(ctx, memory, 8 * page, &o, &mirror));
	store(page);
	store(6 * page);
	store(8 * page - 1);
	EXPECT(inspect(), 0);
	store(page + 8);
	store(4 * page);
	store(7 * page + 7);
	EXPECT(inspect(), 3);
	/* Less than a page, right behind: they share one. */
	OK(slmpm_mirror_create(ctx, memory + 8 * page, 2 * page + 64, &small, &other));
	store(8 * page);
	store(10 * page + 63);
	EXPECT(inspect(), 0);
	EXPECT(slmpm_mirror_scan(other), 2);
	OK(slmpm_mirror_destroy(mirror));
	store(9 * page);
	EXPECT(slmpm_mirror_scan(other), 1);
	OK(slmpm_mirror_create(ctx, memory + 10 * page + 64, 64, &small, &mirror));
	store(10 * page + 64);
	EXPECT(inspect(), 1);
	OK(slmpm_mirror_destroy(mirror));
	OK(slmpm_mirror_destroy(other));
	OK(munmap(memory, PAGES * page));
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* What reads from a pipe into the mirror returns. */
static ssize_t read_into(size_t at, size_t n)
{
	unsigned char from[16];
	int ends[2];
	ssize_t got;

	memset(from, memory[at] + 1, sizeof(from));
	OK(pipe(ends));
	CHECK(write(ends[1], from, n) == (ssize_t)n, "a pipe");
	got = read(ends[0], memory + at, n);
	got = got < 0 ? -errno : got;
	close(ends[0]);
	close(ends[1]);
	return got;
}

static void system_calls(uint32_t how)
{
	ssize_t got;

	memory = map(ANONYMOUS);
	if (!track(how))
		return;
	got = read_into(2 * page + 5, 16);
	CHECK(got == 16 ||
		      (got == -EFAULT && (how == SLMPM_TRACK_FAULT || how == SLMPM_TRACK_SIGNAL)),
	      "%s: a read came back with %zd", names[how], got);
	EXPECT(inspect(), got < 0 ? 0 : got);
	EXPECT(read_into(BEFORE, 16), 16); /* the edges are open */
	EXPECT(inspect(), 16);
	/* Said before, it is let through, and found behind it. */
	OK(slmpm_mirror_begin(mirror, PATIENCE));
	OK(slmpm_mirror_changed(mirror, memory + 3 * page - 8, 16));
	EXPECT(read_into(3 * page - 8, 16), 16);
	OK(slmpm_mirror_end(mirror));
	memory[3 * page]++;
	EXPECT(inspect(), 1); /* the end has found the others */
	untrack();
	OK(munmap(memory, PAGES * page));
}

/* ---- messages that come in there ------------------------------------------------------------- */

static void transfer(slmpm_peer a, slmpm_peer b, const unsigned char *from, size_t n)
{
	const struct slmpm_iov source = {(void *)(uintptr_t)from, n}, target = {memory, n};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	slmpm_req reqs[2];

	EXPECT(slmpm_recvv(b, 3, &target, 1, &how, &reqs[0]), 0);
	EXPECT(slmpm_sendv(a, 3, &source, 1, &how, &reqs[1]), 0);
	for (int left = 2; left; left--) {
		struct slmpm_done done;

		CHECK(slmpm_wait(reqs, 2, &done, PATIENCE) >= 0, "%s", slmpm_error_detail());
		EXPECT(done.status, 0);
	}
}

/* The same by a get of B's. */
static void get(slmpm_peer a, slmpm_peer b, unsigned char *from, size_t n)
{
	struct slmpm_key key;
	slmpm_mem mem;
	slmpm_rmem rmem;

	OK(slmpm_mem_register(ctx, from, n, SLMPM_READ, &mem));
	OK(slmpm_mem_key(mem, a, SLMPM_READ, &key));
	OK(slmpm_mem_open(b, &key, &rmem));
	OK(slmpm_get(rmem, 0, memory, n, NULL, NULL));
	OK(slmpm_mem_release(rmem));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

/* Received through the ring or a socket, or fetched from the peer's memory: what the library itself
 * lets the kernel write. The mirror lies in the middle, with ASIDE bytes on either side of it. */
static void arrivals(uint32_t how, size_t n, size_t aside)
{
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	unsigned char *from = malloc(n);
	slmpm_peer a, b;

	CHECK(from, "memory");
	memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED, "memory");
	actor_pair(ctx, &a, &b);
	OK(slmpm_mirror_create(ctx, memory + aside, n - 2 * aside, &o, &mirror));
	for (uint64_t seed = 1; seed < 6; seed++) {
		actor_fill(from, seed, n);
		if (seed < 4)
			transfer(a, b, from, n);
		else
			get(a, b, from, n);
		CHECK(actor_filled(memory, seed, n), "%s: not what was sent", names[how]);
		EXPECT(inspect(), 0); /* it has been noted */
		__atomic_fetch_xor(memory + n / 2, 1, __ATOMIC_RELAXED);
		EXPECT(inspect(), 1);
	}
	OK(slmpm_mirror_destroy(mirror));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	OK(munmap(memory, n));
	free(from);
}

static int receives(void *settings)
{
	char *const *set = settings;

	for (; *set; set++)
		OK(putenv(*set));
	OK(slmpm_open(&ctx, NULL));
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++) {
		if (slmpm_mirror_track_works((int)how) < 0)
			continue;
		arrivals(how, 200 << 10, 0);
		arrivals(how, 3 << 20, 0);
		arrivals(how, (1 << 20) + 104, 0); /* whose last bytes no page is watched for */
		arrivals(how, 3 << 20, 1 << 20);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static void receives_each_way(void)
{
	static char *sets[][4] = {
		{NULL},
		{"SLMPM_FETCH=always", "SLMPM_FETCH_MIN=4k", NULL},
		{"SLMPM_FABRIC=tcp", NULL},
		{"SLMPM_FABRIC=tcp", "SLMPM_TCP_ENGINE=uring", NULL},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		EXPECT(child_run(receives, sets[i], 30), 0);
}

/* ---- the setting ----------------------------------------------------------------------------- */

static int by_setting(void *name)
{
	uint32_t how = 2;
	slmpm_peer a, b;
	struct slmpm_mirror_info info = {.size = sizeof(info)};
	int rc;

	while (strcmp(names[how], name) != 0)
		how++;
	OK(setenv("SLMPM_TRACK", name, 1));
	OK(slmpm_open(&ctx, NULL));
	memory = map(ANONYMOUS);
	rc = slmpm_mirror_track_works((int)how);
	if (rc < 0) {
		CHECK(!track(SLMPM_TRACK_AUTO), "it does not work");
		return 0;
	}
	CHECK(track(SLMPM_TRACK_AUTO), "%s", slmpm_error_detail());
	actor_pair(ctx, &a, &b);
	EXPECT(slmpm_mirror_attach(mirror, a, 1, SLMPM_MIRROR_LEAD, 0), -SLMPM_EAGAIN);
	OK(slmpm_mirror_query(mirror, a, &info));
	CHECK(!strcmp(info.track, name), "by %s, not by %s", info.track, (char *)name);
	untrack();
	/* The mirror's own hint goes before. */
	CHECK(track(SLMPM_TRACK_TWIN), "%s", slmpm_error_detail());
	OK(slmpm_mirror_attach(mirror, a, 2, SLMPM_MIRROR_LEAD, 0) == -SLMPM_EAGAIN ? 0 : -1);
	OK(slmpm_mirror_query(mirror, a, &info));
	CHECK(!strcmp(info.track, "twin"), "by %s", info.track);
	return 0;
}

int main(void)
{
	page = (size_t)getpagesize();
	receives_each_way();
	for (int how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++)
		EXPECT(child_run(by_setting, (void *)(uintptr_t)names[how], 20), 0);
	OK(slmpm_open(&ctx, NULL));
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++) {
		for (enum kind kind = 0; kind < KINDS; kind++)
			on(how, kind);
		if (slmpm_mirror_track_works((int)how) < 0)
			continue;
		parts(how);
		system_calls(how);
	}
	OK(slmpm_shut(ctx, 0));
	return 0;
}
