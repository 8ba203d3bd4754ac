/* SPDX-License-Identifier: BSD-3-Clause */
/* helper */
/* libs: -ljansson */
/*
 * stat_page BYTE|random|dead: a process that shows a page of the monitor full of nonsense, or of
 * somebody else, until its standard input ends. stat_page json KEY...: what JSON on its standard
 * input has at each KEY.KEY...
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include <jansson.h>

#define PAGE 65536

struct head { /* as slmpm/monitor/monitor_layout.h has it */
	uint64_t magic;
	uint32_t version, pid, entries, entry_size, place_size, known, aggregate_place,
		aggregate_known;
	uint64_t zero[3];
};

static const json_t *walk(const json_t *at, char *path)
{
	for (char *key = strtok(path, "."); key && at; key = strtok(NULL, "."))
		at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) :
					 json_object_get(at, key);
	return at;
}

static int look_up(char **keys)
{
	json_t *all = json_loadf(stdin, 0, NULL);
	bool good = all;

	for (; good && *keys; keys++) {
		const json_t *value = walk(all, *keys);

		good = value;
		if (json_is_string(value))
			puts(json_string_value(value));
		else
			printf("%.15g\n", json_number_value(value));
	}
	json_decref(all);
	return !good;
}

int main(int argc, char **argv)
{
	struct head head = {UINT64_C(0x314e4d4d504d4c53),
			    3,
			    (uint32_t)getpid(),
			    2,
			    16064,
			    8000,
			    8000,
			    2000,
			    2000,
			    {0}};
	int fd = memfd_create("slmpm-monitor", MFD_ALLOW_SEALING);
	unsigned char *page;
	char byte;

	if (argc > 1 && !strcmp(argv[1], "json"))
		return look_up(argv + 2);
	if (argc != 2 || fd < 0 || ftruncate(fd, PAGE) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		return 1;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 1;
	srand(7);
	for (size_t i = 0; i < PAGE; i++)
		page[i] = (unsigned char)(strcmp(argv[1], "random") ? atoi(argv[1]) : rand());
	if (!strcmp(argv[1], "dead")) /* of a process that left it behind */
		head.pid = (uint32_t)getppid();
	memcpy(page, &head, sizeof(head));
	puts("ready");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return 0;
}
