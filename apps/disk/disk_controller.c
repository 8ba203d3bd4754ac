/* SPDX-License-Identifier: BSD-3-Clause */
/* program */
/* libs: -luring */
/* disk_controller: a mass-storage controller as an accelerator process. Its command line. */
#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apps/disk/controller.h"
#include "apps/lib/options.h"

enum { OPT_LIST = 256, OPT_PLAIN, DEPTH = 16, DEPTH_MAX = 256 };

static const struct argp_option options[] = {
	{"drive", 'd', "FILE", 0, "The next drive, from number 0: a file or a block device", 1},
	{"geometry", 'g', "C:S:T:B", 0,
	 "Of that drive: cylinders, surfaces, sectors of a track, bytes of a sector "
	 "[as many cylinders of 16:63:512 as hold the file]",
	 1},
	{"read-only", 'r', NULL, 0, "That drive is not written to", 1},
	{"bytes", 'n', "BYTES", 0, "Make that drive's file so long, create it when it is missing",
	 1},
	{"depth", 'q', "N", 0, "Requests served at once, 1 to 256 [16]", 2},
	{"plain", OPT_PLAIN, NULL, 0, "Read and write without io_uring", 2},
	{"list", OPT_LIST, NULL, 0, "Check the drives, print them, and end", 2},
	{0},
};

struct command {
	struct controller_options controller;
	bool list;
};

#define REFUSE(...) argp_failure(state, 2, 0, __VA_ARGS__)

static struct drive *last_drive(struct argp_state *state, struct command *c, int key)
{
	if (!c->controller.drives)
		REFUSE("-%c belongs to a drive: name one with -d before it", key);
	return &c->controller.drive[c->controller.drives - 1];
}

static void add_drive(struct argp_state *state, struct command *c, const char *path)
{
	if (c->controller.drives == DISK_DRIVES_MAX)
		REFUSE("-d %s: at most %d drives", path, DISK_DRIVES_MAX);
	c->controller.drive[c->controller.drives++] =
		(struct drive){.path = path, .fd = -1, .wants = -1};
}

static uint64_t number(struct argp_state *state, int key, const char *text, uint64_t least,
		       uint64_t most)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || *end || errno || *text == '-' || value < least || value > most)
		REFUSE("-%c %s: a number from %llu to %llu is wanted", key, text,
		       (unsigned long long)least, (unsigned long long)most);
	return value;
}

static void set_geometry(struct argp_state *state, struct drive *d, const char *text)
{
	struct disk_geometry *g = &d->geometry;
	const char *wrong = "four numbers are wanted, as in 1024:16:63:512";
	unsigned long long part[4];
	char end;

	if (!strchr(text, '-') && sscanf(text, "%llu:%llu:%llu:%llu%c", &part[0], &part[1],
					 &part[2], &part[3], &end) == 4) {
		for (int i = 0; i < 4; i++)
			part[i] = part[i] > UINT32_MAX ? 0 : part[i]; /* refused below */
		*g = (struct disk_geometry){(uint32_t)part[0], (uint32_t)part[1], (uint32_t)part[2],
					    (uint32_t)part[3]};
		wrong = disk_geometry_check(g);
	}
	if (wrong)
		REFUSE("-g %s: %s", text, wrong);
	d->given = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'd': add_drive(state, c, arg); break;
	case 'g': set_geometry(state, last_drive(state, c, key), arg); break;
	case 'r': last_drive(state, c, key)->read_only = true; break;
	case 'n':
		last_drive(state, c, key)->wants = (int64_t)number(state, key, arg, 0, INT64_MAX);
		break;
	case 'q': c->controller.depth = (unsigned)number(state, key, arg, 1, DEPTH_MAX); break;
	case OPT_PLAIN: c->controller.plain = true; break;
	case OPT_LIST: c->list = true; break;
	case ARGP_KEY_ARG: REFUSE("what is \"%s\"? Drives are named with -d", arg); break;
	case ARGP_KEY_END:
		if (!c->controller.drives)
			REFUSE("no drive: name one with -d");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void list(const struct controller_options *c)
{
	printf("drive  cylinders  surfaces  sectors  of bytes  bytes in all  file\n");
	for (unsigned i = 0; i < c->drives; i++) {
		const struct drive *d = &c->drive[i];

		printf("%5u  %9u  %8u  %7u  %8u  %12llu  %s%s\n", i, d->geometry.cylinders,
		       d->geometry.surfaces, d->geometry.track, d->geometry.sector,
		       (unsigned long long)d->bytes, d->path, d->read_only ? " (read-only)" : "");
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		NULL,
		"A mass-storage controller: serves drives to the host that starts it.\v"
		"disk_copy and disk_ask are such hosts. "
		"Exit status: 0 the host is through, 1 something failed, 2 usage.",
		NULL,
		NULL,
		NULL};
	static struct command c = {.controller = {.depth = DEPTH}};

	options_begin("disk_controller");
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	signal(SIGXFSZ, SIG_IGN); /* over a limit is an error like others, of one request */
	for (unsigned i = 0; i < c.controller.drives; i++)
		if (drive_open(&c.controller.drive[i]))
			return 1;
	if (!c.list)
		return controller_run(&c.controller);
	list(&c.controller);
	return fflush(stdout) ? 1 : 0;
}
