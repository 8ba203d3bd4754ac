/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that kills, a process that kills, the survivor's account. */
#include "tests/lib/death.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define IN_TIME_MS 100

pid_t pid_of(slmpm_peer peer)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(peer, &info));
	return info.pid;
}

_Noreturn void death_now(void)
{
	for (;;)
		(void)kill(getpid(), SIGKILL);
}

static void on_touch(int number)
{
	(void)number;
	death_now();
}

void *death_trap(size_t size, size_t at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (size + page - 1) / page * page, safe = at / page * page;
	unsigned char *base =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(base != MAP_FAILED, "no memory to die in");
	actor_fill(base, size, safe);
	CHECK(mprotect(base + safe, whole - safe, PROT_NONE) == 0, "the trap cannot be set");
	(void)signal(SIGSEGV, on_touch);
	return base;
}

struct order {
	pid_t victim, watched;
	int64_t *killed_at;
};

static int carry_out(void *arg)
{
	const struct order *o = arg;

	actor_await_state(o->watched, "S");
	__atomic_store_n(o->killed_at, actor_now_ms(), __ATOMIC_RELEASE);
	return kill(o->victim, SIGKILL) == 0 ? 0 : 1;
}

struct killer death_when_asleep(pid_t victim)
{
	struct killer k;
	struct order o = {.victim = victim, .watched = getpid()};

	k.killed_at = child_common(sizeof(*k.killed_at));
	CHECK(victim > 1, "process %d is nobody to kill", (int)victim);
	o.killed_at = k.killed_at;
	k.pid = child_start(carry_out, &o, 60);
	return k;
}

/* It is over; the milliseconds since. */
static int64_t since(struct killer *k)
{
	int64_t ms = actor_now_ms() - __atomic_load_n(k->killed_at, __ATOMIC_ACQUIRE);

	CHECK(child_wait(k->pid) == 0, "the killer failed");
	(void)munmap(k->killed_at, sizeof(*k->killed_at));
	return ms;
}

void death_in_time(struct killer *k)
{
	int64_t ms = since(k);

	CHECK(ms <= IN_TIME_MS * actor_slow(), "the end was known after %lld ms", (long long)ms);
}

void death_expect(slmpm_ctx ctx, slmpm_peer peer, enum slmpm_event_type type, int error,
		  const char *word)
{
	static const uint32_t states[] = {
		[SLMPM_EVENT_CLOSED] = SLMPM_PEER_CLOSED,
		[SLMPM_EVENT_DEAD] = SLMPM_PEER_DEAD,
		[SLMPM_EVENT_POISONED] = SLMPM_PEER_POISONED,
	};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_event e = {.size = sizeof(e)};
	int ups = 0, ends = 0;
	char byte;

	REFUSED(slmpm_recv(peer, SLMPM_ANY_STREAM, &byte, 1, NULL, PATIENCE), error, word);
	REFUSED(slmpm_send(peer, 1, "x", 1, PATIENCE), error, word);
	OK(slmpm_peer_query(peer, &info));
	CHECK(info.state == states[type], "%s: state %u", info.name, info.state);
	while (slmpm_next_event(ctx, &e, 0) == 1) {
		CHECK(e.peer.id == peer.id, "an event of somebody else: %s", e.detail);
		if (e.type == SLMPM_EVENT_LINK_UP || e.type == SLMPM_EVENT_LINK_LOST)
			continue;
		ups += e.type == SLMPM_EVENT_UP;
		ends += e.type == type;
		CHECK(e.type == SLMPM_EVENT_UP || e.type == type, "event %u: %s", e.type, e.detail);
		if (e.type != type)
			continue;
		CHECK(e.error == -error && e.pid == info.pid && strstr(e.detail, word),
		      "the last event: error %d, process %d, \"%s\"", e.error, e.pid, e.detail);
		CHECK(e.read <= e.written, "%llu read of %llu", (unsigned long long)e.read,
		      (unsigned long long)e.written);
	}
	CHECK(ups <= 1 && ends == 1, "%d events of its beginning, %d of its end", ups, ends);
}

struct holdings holdings_now(void)
{
	return (struct holdings){actor_descriptors(), actor_mappings()};
}

void holdings_expect(struct holdings before, const char *when)
{
	struct holdings now = holdings_now();

	/* What a peer has sent is closed by another process, in a moment. */
	for (int ms = 0; ms < 2000 && now.descriptors > before.descriptors; ms++) {
		usleep(1000);
		now = holdings_now();
	}
	CHECK(now.descriptors <= before.descriptors && now.mappings <= before.mappings,
	      "%s: %d descriptors, %d mappings; before %d and %d", when, now.descriptors,
	      now.mappings, before.descriptors, before.mappings);
}
