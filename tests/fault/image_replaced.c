/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process whose memory is reached by its number (cross-memory attach) executes another program,
 * which has memory of its own at the same address: it is neither read nor written in the former's
 * stead.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

#define LENGTH 16384
#define AT     ((void *)(uintptr_t)UINT64_C(0x200000000000))
#define ROUNDS 5

enum { TOLD, GO, EXEC, OVER, PIPES };

static const struct {
	const char *name;
	size_t length;
	bool put;
} operations[] = {
	{"short get", 8, false},
	{"get", LENGTH, false},
	{"short put", 8, true},
	{"put", LENGTH, true},
};
#define OPERATIONS (sizeof(operations) / sizeof(*operations))

static int pipes[PIPES][2]; /* they stay open in the program executed */
static char url[64];

static void pass(int which)
{
	CHECK(write(pipes[which][1], "x", 1) == 1, "the pipe");
}

static void await(int which)
{
	char what;

	CHECK(read(pipes[which][0], &what, 1) == 1, "nobody is left");
}

static unsigned char *map_filled(int byte)
{
	unsigned char *at = mmap(AT, LENGTH, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(at == AT, "no memory at that address");
	memset(at, byte, LENGTH);
	return at;
}

static int owner(void *arg)
{
	unsigned char *at = map_filled('o');
	char notified[16], over[16];
	slmpm_peer host;
	slmpm_mem mem;

	(void)arg;
	OK(slmpm_connect(&host, (slmpm_ctx){0}, url, PATIENCE));
	OK(slmpm_mem_register((slmpm_ctx){0}, at, LENGTH, SLMPM_READ_WRITE, &mem));
	OK(slmpm_mem_share(mem, host, SLMPM_READ_WRITE, PATIENCE));
	await(EXEC);
	snprintf(notified, sizeof(notified), "%d", pipes[TOLD][1]);
	snprintf(over, sizeof(over), "%d", pipes[OVER][0]);
	execl("/proc/self/exe", "image", notified, over, (char *)NULL);
	return 1;
}

/* The other program. */
static int image(char **words)
{
	unsigned char *at = map_filled('i');

	alarm(30);
	pipes[TOLD][1] = atoi(words[1]);
	pipes[OVER][0] = atoi(words[2]);
	pass(TOLD);
	await(OVER);
	for (size_t i = 0; i < LENGTH; i++)
		if (at[i] != 'i')
			return 2;
	return 0;
}

static int host(void *arg)
{
	const size_t i = *(const size_t *)arg;
	static unsigned char bytes[LENGTH];
	struct slmpm_mem_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_rmem there;
	slmpm_peer peer;
	int rc;

	OK(slmpm_listen(&listener, (slmpm_ctx){0}, url));
	pass(TOLD);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_mem_accept(peer, &there, PATIENCE));
	OK(slmpm_get(there, 0, bytes, LENGTH, NULL, NULL));
	CHECK(bytes[0] == 'o' && bytes[LENGTH - 1] == 'o', "%c", bytes[0]);
	OK(slmpm_rmem_query(there, &info));
	if (strcmp(info.path, "attach"))
		_exit(TEST_SKIPPED); /* refused by the machine */
	pass(TOLD);
	await(GO);
	memset(bytes, 'h', LENGTH);
	rc = operations[i].put ? slmpm_put(there, 0, bytes, operations[i].length, NULL, NULL) :
				 slmpm_get(there, 0, bytes, operations[i].length, NULL, NULL);
	CHECK(rc == -SLMPM_EDEAD && bytes[0] == 'h', "%s: %d, %c (%s)", operations[i].name, rc,
	      bytes[0], slmpm_error_detail());
	return 0;
}

static int round_of(size_t i)
{
	pid_t listens = child_start(host, &i, 30), lends;
	int rc;

	await(TOLD);
	lends = child_start(owner, NULL, 30);
	await(TOLD);
	pass(EXEC);
	await(TOLD);
	pass(GO);
	rc = child_wait(listens);
	pass(OVER);
	CHECK(child_wait(lends) == 0, "%s: another program was written to", operations[i].name);
	return rc;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return image(argv);
	settings_one_link("shm");
	settings_set("SLMPM_ATTACH", "y");
	snprintf(url, sizeof(url), "shm:image-replaced-%d", (int)getpid());
	for (int i = 0; i < PIPES; i++)
		CHECK(pipe(pipes[i]) == 0, "no pipe");
	for (size_t i = 0; i < ROUNDS * OPERATIONS; i++) {
		int rc = round_of(i % OPERATIONS);

		if (rc == TEST_SKIPPED)
			test_skip("cross-memory attach is refused here");
		CHECK(rc == 0, "%s: ended with %d", operations[i % OPERATIONS].name, rc);
	}
	return 0;
}
