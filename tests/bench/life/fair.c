/* SPDX-License-Identifier: BSD-3-Clause */
/* Many accelerators that send without a pause to one host: what the slowest gets through. */
#include "tests/bench/life/life.h"

#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, PATIENCE_MS = 10000 };

int fair_accelerator(const char *number)
{
	uint64_t mine = strtoull(number, NULL, 10);
	slmpm_peer host;
	char go;

	if (slmpm_parent(&host) < 0 || slmpm_send(host, 0, &mine, sizeof mine, PATIENCE_MS) < 0 ||
	    slmpm_recv(host, 0, &go, 1, NULL, PATIENCE_MS) < 0)
		return slmpm_perror("flood");
	while (slmpm_send(host, 0, &mine, sizeof mine, -1) >= 0)
		;
	return 0;
}

struct crowd {
	slmpm_ctx ctx;
	slmpm_peer peer[MOST];
	unsigned n; /* started */
	uint64_t got[MOST];
};

static int gather(struct crowd *c, unsigned n)
{
	struct slmpm_spawn_options how = {
		.size = sizeof how, .flags = SLMPM_SPAWN_DIE_WITH_HOST, .ctx = c->ctx};
	char number[16];
	char *const argv[] = {"--flood", number, NULL};
	uint64_t word;
	int64_t rc = 0;

	for (; c->n < n; c->n++) {
		snprintf(number, sizeof number, "%u", c->n);
		rc = slmpm_spawn(&c->peer[c->n], LIFE_SELF, argv, &how);
		if (rc < 0)
			return (int)rc;
	}
	for (unsigned i = 0; i < n && rc >= 0; i++) /* all are there before the first sends */
		rc = slmpm_recv(c->peer[i], 0, &word, sizeof word, NULL, PATIENCE_MS);
	for (unsigned i = 0; i < n && rc >= 0; i++)
		rc = slmpm_send(c->peer[i], 0, "", 1, PATIENCE_MS);
	return rc < 0 ? (int)rc : 0;
}

static int count(struct crowd *c, uint64_t ms)
{
	uint64_t end = life_now() + ms * 1000000, word;

	for (unsigned turn = 0; turn % 64 || life_now() < end; turn++) {
		int64_t len =
			slmpm_recv(slmpm_any(c->ctx), 0, &word, sizeof word, NULL, PATIENCE_MS);

		if (len < 0)
			return (int)len;
		if (len == sizeof word && word < c->n)
			c->got[word]++;
	}
	return 0;
}

static double share(const struct crowd *c)
{
	uint64_t least = UINT64_MAX, most = 0, all = 0;

	for (unsigned i = 0; i < c->n; i++) {
		least = c->got[i] < least ? c->got[i] : least;
		most = c->got[i] > most ? c->got[i] : most;
		all += c->got[i];
	}
	fprintf(stderr, "fair: %llu messages of %u, from %llu to %llu each\n",
		(unsigned long long)all, c->n, (unsigned long long)least, (unsigned long long)most);
	return all ? (double)least * c->n / (double)all : 0;
}

const char *fair_share(unsigned n, uint64_t ms, double *value)
{
	static struct crowd c;
	int rc;

	c = (struct crowd){.n = 0};
	if (n < 1 || n > MOST)
		return "1 to 64";
	if (slmpm_open(&c.ctx, NULL) < 0)
		return slmpm_error_detail();
	rc = gather(&c, n);
	if (rc >= 0)
		rc = count(&c, ms);
	if (rc < 0)
		slmpm_perror("fair");
	*value = share(&c);
	for (unsigned i = 0; i < c.n; i++)
		slmpm_kill(c.peer[i], 0);
	for (unsigned i = 0; i < c.n; i++)
		slmpm_join(c.peer[i], NULL, PATIENCE_MS);
	slmpm_shut(c.ctx, 0);
	return rc < 0 ? slmpm_strerror(rc) : NULL;
}
