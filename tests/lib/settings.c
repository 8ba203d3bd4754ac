/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that make messages take every path: tiny rings, short packets, little credit. */
#include "tests/lib/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

#define K ((size_t)1 << 10)
#define M ((size_t)1 << 20)

/* clang-format off */
const struct setting settings[] = {
	{ "plain", { NULL }, { NULL }, 32 * M },
	{ "checked", { "SLMPM_CHECK=1" }, { NULL }, 16 * M },
	{ "checked from one side", { NULL }, { "SLMPM_CHECK=1" }, 8 * M },
	{ "two segments", { "SLMPM_RING_SEGMENTS=2", "SLMPM_SEGMENT_SIZE=4k" }, { NULL }, 4 * M },
	{ "eight segments", { "SLMPM_RING_SEGMENTS=8", "SLMPM_SEGMENT_SIZE=1k" }, { NULL }, 4 * M },
	{ "smallest ring", { "SLMPM_RING_SEGMENTS=128" }, { NULL }, 8 * M },
	{ "few large segments", { "SLMPM_RING_SEGMENTS=4", "SLMPM_SEGMENT_SIZE=32k" }, { NULL }, 16 * M },
	{ "rings that differ", { "SLMPM_RING_SEGMENTS=1k" }, { "SLMPM_RING_SEGMENTS=4", "SLMPM_SEGMENT_SIZE=2k" }, 8 * M },
	{ "short packets", { "SLMPM_PACKET_MAX=256" }, { NULL }, 8 * M },
	{ "long packets", { "SLMPM_PACKET_MAX=64k", "SLMPM_RING_SEGMENTS=16k" }, { NULL }, 32 * M },
	{ "nothing eager", { "SLMPM_EAGER_MAX=0", "SLMPM_EAGER_CREDIT=64k" }, { NULL }, 16 * M },
	{ "all eager", { "SLMPM_EAGER_MAX=8m", "SLMPM_EAGER_CREDIT=16m" }, { NULL }, 32 * M },
	{ "small loans", { "SLMPM_LOAN_MAX=64k" }, { NULL }, 8 * M },
	{ "publish every", { "SLMPM_PUBLISH=every", "SLMPM_RING_SEGMENTS=256" }, { NULL }, 8 * M },
	{ "spin", { "SLMPM_WAIT=spin" }, { NULL }, 16 * M },
	{ "block", { "SLMPM_WAIT=block" }, { NULL }, 16 * M },
	{ "block without membarrier", { "SLMPM_WAIT=block", "SLMPM_MEMBARRIER=n" }, { NULL }, 8 * M },
	{ "fetched", { "SLMPM_FETCH=always", "SLMPM_FETCH_MIN=1" }, { NULL }, 32 * M },
	{ "fetched, short packets", { "SLMPM_FETCH=always", "SLMPM_FETCH_MIN=1", "SLMPM_PACKET_MAX=256" }, { NULL }, 16 * M },
	{ "fetched, nothing eager", { "SLMPM_FETCH=always", "SLMPM_FETCH_MIN=1", "SLMPM_PACKET_MAX=256", "SLMPM_EAGER_MAX=0" }, { NULL }, 16 * M },
	{ "fetched by one side", { "SLMPM_FETCH=always", "SLMPM_FETCH_MIN=1", "SLMPM_PACKET_MAX=256" }, { "SLMPM_ATTACH=n" }, 16 * M },
	{ "fetched asleep", { "SLMPM_FETCH=always", "SLMPM_FETCH_MIN=1", "SLMPM_PACKET_MAX=1k", "SLMPM_WAIT=block", "SLMPM_EAGER_MAX=8k" }, { NULL }, 16 * M },
	{ "fetched or not", { "SLMPM_FETCH=auto", "SLMPM_FETCH_MIN=0", "SLMPM_PACKET_MAX=1k" }, { NULL }, 16 * M },
	{ "nothing fetched", { "SLMPM_ATTACH=n" }, { NULL }, 32 * M },
	{ "everything small", { "SLMPM_CHECK=1", "SLMPM_RING_SEGMENTS=128", "SLMPM_PACKET_MAX=256",
	  "SLMPM_EAGER_MAX=300", "SLMPM_EAGER_CREDIT=64k", "SLMPM_WAIT=block" }, { NULL }, 4 * M },
	{ "over TCP", { "SLMPM_FABRIC=tcp" }, { NULL }, 16 * M },
	{ "over TCP, checked", { "SLMPM_FABRIC=tcp", "SLMPM_CHECK=1" }, { NULL }, 8 * M },
	{ "over TCP, nothing eager", { "SLMPM_FABRIC=tcp", "SLMPM_EAGER_MAX=0", "SLMPM_EAGER_CREDIT=64k" }, { NULL }, 8 * M },
	{ "over TCP, io_uring", { "SLMPM_FABRIC=tcp", "SLMPM_TCP_ENGINE=uring" }, { NULL }, 16 * M },
	{ "over TCP, io_uring asleep", { "SLMPM_FABRIC=tcp", "SLMPM_TCP_ENGINE=uring-recv", "SLMPM_WAIT=block" }, { "SLMPM_TCP_ENGINE=uring-send" }, 4 * M },
	{ "over TCP, small", { "SLMPM_FABRIC=tcp", "SLMPM_RING_SEGMENTS=128", "SLMPM_PACKET_MAX=256",
	  "SLMPM_EAGER_MAX=300", "SLMPM_EAGER_CREDIT=64k", "SLMPM_WAIT=block" }, { NULL }, 1 * M },
	{ "two links", { "SLMPM_LINKS=2" }, { NULL }, 8 * M },
	{ "more links than the peer has", { "SLMPM_LINKS=4", "SLMPM_LINKS_LOG=64k", "SLMPM_LINKS_AFTER=0" }, { "SLMPM_LINKS=3" }, 4 * M },
	{ "two links over TCP", { "SLMPM_FABRIC=tcp", "SLMPM_LINKS=2" }, { NULL }, 8 * M },
	{ "shared memory and TCP", { "SLMPM_LINKS=shm,tcp", "SLMPM_LINK=1" }, { "SLMPM_LINK=auto" }, 8 * M },
	{ "TCP and shared memory", { "SLMPM_FABRIC=tcp", "SLMPM_LINKS=tcp,shm", "SLMPM_LINK=1" }, { "SLMPM_LINK=auto" }, 8 * M },
	{ NULL, { NULL }, { NULL }, 0 },
};
/* clang-format on */

void settings_one_link(const char *fabric)
{
	CHECK(!fabric || setenv("SLMPM_FABRIC", fabric, 1) == 0, "setenv");
	CHECK(setenv("SLMPM_LINKS", "1", 1) == 0 && unsetenv("SLMPM_LINK") == 0, "setenv");
}

static const struct setting *current;

const struct setting *settings_current(void)
{
	return current;
}

struct run {
	int (*body)(const struct setting *s);
	const struct setting *setting;
};

static int run(void *arg)
{
	const struct run *r = arg;

	current = r->setting;
	/* Who is here on both sides trusts itself: messages are fetched, also between unrelated
	 * processes. */
	CHECK(setenv("SLMPM_ATTACH", "y", 0) == 0, "setenv");
	for (size_t i = 0; i < 6 && current->both[i]; i++)
		CHECK(putenv((char *)(uintptr_t)current->both[i]) == 0, "putenv");
	return r->body(current);
}

/* Where a fabric is named already, one of another fabric is no setting of it. */
static bool is_of_this_fabric(const struct setting *s)
{
	static const char name[] = "SLMPM_FABRIC=";
	const char *fabric = getenv("SLMPM_FABRIC");

	for (size_t i = 0; i < 6 && s->both[i] && fabric; i++)
		if (!strncmp(s->both[i], name, strlen(name)) &&
		    strcmp(s->both[i] + strlen(name), fabric) != 0)
			return false;
	return true;
}

int settings_each(int (*body)(const struct setting *s), unsigned seconds)
{
	const char *only = getenv("SLMPM_TEST_SETTING");
	int failed = 0;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct setting *s = settings; s->name; s++) {
		struct run r = {body, s};
		int64_t begin = actor_now_ms();
		int status;

		if (only ? strcmp(only, s->name) != 0 :
			   !actor_tries((size_t)(s - settings)) || !is_of_this_fabric(s))
			continue;
		status = child_run(run, &r, seconds * (unsigned)actor_slow());
		printf("%-26s %s %lld ms\n", s->name,
		       !status              ? "ok" :
		       status == CHILD_LATE ? "LATE" :
					      "FAILED",
		       (long long)(actor_now_ms() - begin));
		if (status && status != CHILD_LATE)
			printf("%-26s status %d\n", "", status);
		fflush(stdout);
		failed |= status;
	}
	return failed ? 1 : 0;
}

void settings_set(const char *name, const char *value)
{
	CHECK(setenv(name, value, 1) == 0, "setenv");
}

void settings_run(const char *what, int (*body)(void *), const void *arg)
{
	printf("%s\n", what);
	fflush(stdout);
	CHECK(child_run(body, (void *)(uintptr_t)arg, 30 * (unsigned)actor_slow()) == 0,
	      "%s: see above", what);
}
