/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Threads store into a tracked mirror while another looks and sends: what a thread had stored
 * before a flush is there afterwards, and in the end each last value is. Each way to track.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/actor.h"
#include "tests/lib/random.h"

#define PAGES   48
#define THREADS 3
#define WORDS   32 /* of a thread, on as many pages */
#define LOOKS   300

static slmpm_ctx ctx;
static slmpm_peer near, far;
static size_t page, bytes;
static unsigned char *leads, *follows;
static slmpm_mirror leader, follower;
static atomic_bool stop;

struct writer {
	pthread_t thread;
	unsigned number;
	_Atomic uint64_t stored; /* so many rounds: each word has this value, or the next */
};

static struct writer writers[THREADS];

/* Threads share pages, of which some have one word alone. */
static uint64_t *word(unsigned char *memory, unsigned number, unsigned i)
{
	size_t at = (i * (number + 1)) % PAGES * page + 64 * i + 8 * number;

	return (uint64_t *)(void *)(memory + at);
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct rng g = {w->number};

	for (uint64_t round = 1; !atomic_load(&stop); round++) {
		for (unsigned i = 0; i < WORDS; i++)
			__atomic_store_n(word(leads, w->number, i), round, __ATOMIC_RELAXED);
		atomic_store(&w->stored, round);
		if (rng_below(&g, 8) == 0)
			sched_yield();
	}
	return NULL;
}

static struct slmpm_mirror_info info_of(slmpm_mirror m, slmpm_peer peer)
{
	struct slmpm_mirror_info info = {.size = sizeof(info)};

	OK(slmpm_mirror_query(m, peer, &info));
	return info;
}

/* What was stored before is there. */
static void flush(void)
{
	uint64_t sent;

	OK(slmpm_mirror_flush(leader, PATIENCE));
	sent = info_of(leader, near).sent;
	for (unsigned idle = 0; info_of(follower, far).sequence < sent;)
		if (!slmpm_progress(ctx))
			actor_idle(ctx, &idle);
}

static void look_once(const char *name)
{
	uint64_t before[THREADS], value;

	for (int t = 0; t < THREADS; t++)
		before[t] = atomic_load(&writers[t].stored);
	flush();
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < WORDS; i++) {
			value = *word(follows, t, i);
			CHECK(value >= before[t], "%s: thread %u's word %u is %llu, not %llu", name,
			      t, i, (unsigned long long)value, (unsigned long long)before[t]);
		}
}

static void await_writers(void)
{
	uint64_t seen;

	for (int t = 0; t < THREADS; t++) {
		seen = atomic_load(&writers[t].stored);
		while (atomic_load(&writers[t].stored) == seen)
			sched_yield();
	}
}

static void under(const char *name)
{
	atomic_store(&stop, false);
	for (unsigned t = 0; t < THREADS; t++) {
		writers[t].number = t;
		atomic_store(&writers[t].stored, 0);
		OK(pthread_create(&writers[t].thread, NULL, write_on, &writers[t]));
	}
	await_writers();
	for (int i = 0; i < LOOKS; i++) {
		look_once(name);
		if (i % 8 == 0)
			await_writers();
	}
	atomic_store(&stop, true);
	for (int t = 0; t < THREADS; t++)
		OK(pthread_join(writers[t].thread, NULL));
	flush();
	CHECK(!memcmp(leads, follows, bytes), "%s: the last values are not all there", name);
}

static void *map(bool shared)
{
	int fd = shared ? memfd_create("tracked", MFD_CLOEXEC) : -1;
	void *at;

	OK(shared ? ftruncate(fd, (off_t)bytes) : 0);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	CHECK(at != MAP_FAILED, "memory");
	if (shared)
		close(fd);
	return at;
}

static void tracked(uint32_t how, bool shared)
{
	static const char *const names[] = {"", "", "pagemap", "fault", "signal", "twin"};
	const struct slmpm_mirror_options o = {.size = sizeof(o), .track = how};
	int rc;

	leads = map(shared);
	follows = map(false);
	OK(slmpm_mirror_create(ctx, leads, bytes, &o, &leader));
	OK(slmpm_mirror_create(ctx, follows, bytes, NULL, &follower));
	do /* the one before may still be on its way out */
		rc = slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, 0);
	while (rc == -SLMPM_EBUSY);
	EXPECT(rc, -SLMPM_EAGAIN);
	OK(slmpm_mirror_attach(follower, far, 1, SLMPM_MIRROR_FOLLOW, PATIENCE));
	OK(slmpm_mirror_attach(leader, near, 1, SLMPM_MIRROR_LEAD, PATIENCE));
	under(names[how]);
	OK(slmpm_mirror_destroy(leader));
	OK(slmpm_mirror_destroy(follower));
	OK(munmap(leads, bytes));
	OK(munmap(follows, bytes));
}

int main(void)
{
	page = (size_t)getpagesize();
	bytes = PAGES * page;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &near, &far);
	for (uint32_t how = SLMPM_TRACK_PAGEMAP; how <= SLMPM_TRACK_TWIN; how++) {
		if (slmpm_mirror_track_works((int)how) < 0) {
			printf("%s\n", slmpm_error_detail());
			continue;
		}
		tracked(how, false);
		tracked(how, true);
	}
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
