/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reception FIFO: accelerators (this same program, started again) put readings into a table of
 * the host's, but none gets there that the host's processor has not looked at: it stores what is
 * sound and drops the rest. fifo [ACCELERATORS]
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST     16
#define READINGS 1000 /* of each accelerator */

struct reading {
	uint32_t number;
	int32_t celsius;
};

/* Every tenth is none. */
static struct reading measure(uint32_t number)
{
	return (struct reading){number, number % 10 == 9 ? -999 : (int32_t)(number % 40)};
}

static int accelerator(int index)
{
	const struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_FIFO, .timeout_ms = -1};
	slmpm_rmem table;
	slmpm_peer host;

	if (slmpm_parent(&host) < 0 || slmpm_mem_accept(host, &table, 5000) < 0)
		return slmpm_perror("accelerator");
	for (uint32_t i = 0; i < READINGS; i++) {
		struct reading r = measure(i);
		uint64_t at = ((uint64_t)index * READINGS + i) * sizeof(r);

		if (slmpm_put(table, at, &r, sizeof(r), &how, NULL) < 0)
			return slmpm_perror("slmpm_put");
	}
	return slmpm_close(host, 5000) < 0 ? slmpm_perror("close") : 0;
}

static int is_sound(const struct slmpm_fifo *entry)
{
	struct reading r;

	if (entry->len != sizeof(r))
		return 0;
	memcpy(&r, entry->data, sizeof(r));
	return r.celsius >= -273;
}

/* Takes what ACCEL puts until it has closed. */
static int collect(slmpm_peer accel, uint64_t *stored, uint64_t *dropped)
{
	struct slmpm_fifo entry;
	int rc;

	while ((rc = slmpm_fifo_take(accel, &entry, -1)) >= 0) {
		int sound = is_sound(&entry);

		++*(sound ? stored : dropped);
		if (sound)
			rc = slmpm_fifo_store(&entry, entry.mem, entry.offset, NULL, NULL);
		else
			rc = slmpm_fifo_drop(&entry);
		if (rc < 0)
			return slmpm_perror("entry");
	}
	return rc == -SLMPM_ECLOSED ? 0 : slmpm_perror("slmpm_fifo_take");
}

int main(int argc, char **argv)
{
	char number[16], *words[] = {"accelerator", number, NULL};
	int n = argc > 1 ? atoi(argv[1]) : 2, rc = 0;
	int help = argc > 1 && !strcmp(argv[1], "-h");
	uint64_t stored = 0, dropped = 0, warm = 0;
	slmpm_peer accels[MOST];
	slmpm_mem mem;
	void *base;

	if (argc > 2 && !strcmp(argv[1], words[0]))
		return accelerator(atoi(argv[2]));
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr, "usage: fifo [1 to %d accelerators]\n", MOST);
		return help ? 0 : 2;
	}
	if (slmpm_mem_alloc((slmpm_ctx){0}, (size_t)n * READINGS * sizeof(struct reading),
			    SLMPM_READ_WRITE, &mem, &base) < 0)
		return slmpm_perror("slmpm_mem_alloc");
	for (int i = 0; i < n; i++) {
		snprintf(number, sizeof(number), "%d", i);
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0 ||
		    slmpm_mem_share(mem, accels[i], SLMPM_WRITE, 5000) < 0)
			return slmpm_perror("accelerator");
	}
	for (int i = 0; i < n; i++)
		rc |= collect(accels[i], &stored, &dropped) ||
		      slmpm_join(accels[i], NULL, 5000) != 0;
	for (int i = 0; i < n * READINGS; i++)
		warm += ((struct reading *)base)[i].celsius >= 20;
	printf("%llu stored, %llu dropped, %llu of 20 degrees or more\n",
	       (unsigned long long)stored, (unsigned long long)dropped, (unsigned long long)warm);
	return rc;
}
