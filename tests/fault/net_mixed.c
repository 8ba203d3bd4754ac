/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Peers of one machine with links over shared memory and TCP at once. Traffic goes by the one that
 * is asked for; the TCP link is cut again and again under a stream and comes back, while shared
 * memory goes on; memory that the peer maps is reached all the time.
 */
#include <string.h>

#include "tests/lib/net_flow.h"
#include "tests/lib/random.h"

#define SHM 0u
#define TCP 1u

static struct net net;
static struct net_pair pair;

static struct slmpm_link_info inspect(int end, uint32_t link)
{
	struct slmpm_link_info info = {.size = sizeof(info)};

	OK(slmpm_link_query(pair.end[end], link, &info));
	return info;
}

/* Until it has been made so often, and both ends use it, or not. */
static void await(uint32_t link, uint32_t made, bool used)
{
	int64_t until = actor_now_ms() + PATIENCE;

	for (int end = 0; end < PROXY_WAYS; end++)
		while (inspect(end, link).made < made || inspect(end, link).used != used) {
			struct slmpm_link_info info = inspect(end, link);

			CHECK(slmpm_progress(net.ctx) >= 0, "progress: %s", slmpm_error_detail());
			CHECK(actor_now_ms() < until,
			      "link %u of end %d: state %u, made %u times (%u), used %u (%s)", link,
			      end, info.state, info.made, made, info.used, info.reason);
		}
}

static void open_pair(slmpm_listener *listener)
{
	char url[64];

	snprintf(url, sizeof(url), "shm:slmpm-net-mixed-%d", (int)getpid());
	EXPECT(slmpm_open(&net.ctx, NULL), 0);
	EXPECT(slmpm_listen(listener, net.ctx, url), 0);
	EXPECT(slmpm_connect(&pair.end[0], net.ctx, url, PATIENCE), 0);
	EXPECT(slmpm_accept(*listener, &pair.end[1], PATIENCE), 0);
}

static void names_are_told(void)
{
	struct slmpm_link_info shm = inspect(0, SHM), tcp = inspect(0, TCP);

	CHECK(!strcmp(shm.fabric, "shm") && !strcmp(tcp.fabric, "tcp"), "links over %s and %s",
	      shm.fabric, tcp.fabric);
	CHECK(shm.state == SLMPM_LINK_UP && tcp.state == SLMPM_LINK_UP, "states %u, %u", shm.state,
	      tcp.state);
	REFUSED(slmpm_link_query(pair.end[0], 2, &shm), SLMPM_ENOENT, "it has 2");
	shm.size = sizeof(shm) - 1;
	REFUSED(slmpm_link_query(pair.end[0], 0, &shm), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_link_query(pair.end[0], 0, NULL), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_link_use(pair.end[0], 2), SLMPM_ENOENT, "it has 2");
	REFUSED(slmpm_link_use((slmpm_peer){77}, 0), SLMPM_EHANDLE, "");
}

/* It is used at both ends, and carries something. */
static void use(uint32_t link, uint32_t *messages)
{
	uint64_t before[2], after[2];

	for (int end = 0; end < PROXY_WAYS; end++)
		OK(slmpm_link_use(pair.end[end], link));
	await(link, 1, true);
	for (uint32_t i = 0; i < 2; i++)
		before[i] = inspect(0, i).written;
	flows_run(&net, *messages += 40);
	for (uint32_t i = 0; i < 2; i++)
		after[i] = inspect(0, i).written - before[i];
	/* Long messages pass one whose ring is full, which depends on who is faster. */
	CHECK(after[link] > 0, "nothing went by link %u, %llu segments by the other", link,
	      (unsigned long long)after[!link]);
}

static void cut(unsigned connection, uint64_t later)
{
	for (int way = 0; way < PROXY_WAYS; way++) {
		struct proxy_rule rule = {.fate = PROXY_RESET};

		rule.at = proxy_passed(connection, (enum proxy_way)way) + later;
		proxy_rule(connection, (enum proxy_way)way, rule);
	}
}

/* By what shared memory can do, whatever carries the messages. */
static slmpm_rmem share(uint64_t **words)
{
	slmpm_rmem there;
	slmpm_mem mem;
	struct slmpm_key key;
	struct slmpm_mem_info info = {.size = sizeof(info)};

	void *base;

	OK(slmpm_mem_alloc(net.ctx, 4096, SLMPM_READ | SLMPM_WRITE, &mem, &base));
	*words = base;
	OK(slmpm_mem_key(mem, pair.end[1], SLMPM_READ | SLMPM_WRITE, &key));
	OK(slmpm_mem_open(pair.end[0], &key, &there));
	OK(slmpm_rmem_query(there, &info));
	CHECK(!strcmp(info.path, "map"), "it goes by %s", info.path);
	return there;
}

static void put(slmpm_rmem there, const volatile uint64_t *words, uint64_t value)
{
	OK(slmpm_put(there, 8, &value, sizeof(value), NULL, NULL));
	CHECK(words[1] == value, "the region has %llu, not %llu", (unsigned long long)words[1],
	      (unsigned long long)value);
}

int main(void)
{
	struct rng chance = {rng_run_seed(0x13)};
	slmpm_listener listener;
	uint32_t messages = 0;
	uint64_t *words;
	slmpm_rmem there;

	setenv("SLMPM_FABRIC", "shm", 1);
	setenv("SLMPM_LINKS", "shm,tcp", 1);
	setenv("SLMPM_LINK", "1", 1);
	setenv("SLMPM_LINKS_LOG", "1m", 1);
	proxy_start();
	open_pair(&listener);
	await(TCP, 1, true); /* the one of the setting is opened at once */
	names_are_told();
	there = share(&words);
	flows_open(&pair);
	use(TCP, &messages);
	use(SHM, &messages);
	use(TCP, &messages);
	for (unsigned i = 0; i < 12; i++) {
		cut(i, rng_below(&chance, 300000));
		flows_run(&net, messages += 40);
		put(there, words, i);
		await(TCP, i + 2, true);
	}
	flows_close();
	proxy_stop();
	for (int end = 0; end < PROXY_WAYS; end++)
		OK(slmpm_close(pair.end[end], 1000));
	OK(slmpm_unlisten(listener));
	OK(slmpm_shut(net.ctx, 1000));
	return 0;
}
