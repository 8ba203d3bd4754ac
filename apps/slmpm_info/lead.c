/* SPDX-License-Identifier: BSD-3-Clause */
/* One pair's side that says what is done (lead.h). */
#include "apps/slmpm_info/lead.h"

#include <string.h>

#include "apps/slmpm_info/pair.h"
#include "apps/slmpm_info/trial.h"

static int meet(struct lead *lead, int cpu)
{
	struct slmpm_mem_info info = {.size = sizeof(info)};
	struct pair_hello hello = {.cpu = cpu};
	struct slmpm_key key;
	void *base;
	int64_t n;
	int rc = slmpm_mem_alloc((slmpm_ctx){0}, PAIR_BYTES, SLMPM_READ_WRITE, &lead->mem, &base);

	if (rc >= 0)
		rc = slmpm_mem_key(lead->mem, lead->peer, SLMPM_READ_WRITE, &hello.key);
	if (rc >= 0)
		rc = slmpm_send(lead->peer, PAIR_ORDERS, &hello, sizeof(hello), PAIR_PATIENCE);
	if (rc < 0)
		return rc;
	lead->from = base;
	memset(base, 1, PAIR_BYTES);
	n = slmpm_recv(lead->peer, PAIR_ORDERS, &key, sizeof(key), NULL, PAIR_PATIENCE);
	if (n != sizeof(key))
		return n < 0 ? (int)n : -SLMPM_EPROTO;
	rc = slmpm_mem_open(lead->peer, &key, &lead->there);
	if (rc >= 0)
		rc = slmpm_rmem_query(lead->there, &info);
	lead->mapped = info.mapped;
	snprintf(lead->path, sizeof(lead->path), "%s", info.path);
	return rc;
}

int lead_begin(struct lead *lead, int cpu, char *const *envp)
{
	char *const argv[] = {TRIAL_FOLLOW, NULL};
	const struct slmpm_spawn_options how = {
		.size = sizeof(how),
		.flags = SLMPM_SPAWN_DIE_WITH_HOST,
		.envp = envp,
	};
	int rc = slmpm_spawn(&lead->peer, "/proc/self/exe", argv, &how);

	return rc < 0 ? rc : meet(lead, cpu);
}

int lead_order(struct lead *lead, uint64_t size, uint32_t count, uint32_t flags)
{
	struct pair_order o = {.size = size, .count = count, .flags = flags};

	return slmpm_send(lead->peer, PAIR_ORDERS, &o, sizeof(o), PAIR_PATIENCE);
}

int lead_answer(struct lead *lead)
{
	char nothing;

	return (int)slmpm_recv(lead->peer, PAIR_ORDERS, &nothing, 1, NULL, PAIR_PATIENCE);
}

void lead_end(struct lead *lead)
{
	slmpm_close(lead->peer, PAIR_PATIENCE);
	slmpm_join(lead->peer, NULL, PAIR_PATIENCE);
}
