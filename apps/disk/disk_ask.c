/* SPDX-License-Identifier: BSD-3-Clause */
/* program */
/* disk_ask: one request to a controller, spelt out: the operation, the drive, and which sectors. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/disk/client.h"
#include "apps/lib/options.h"

enum { WORDS_MAX = 4 * DISK_DRIVES_MAX, OPT_ADDRESS = 256, OPT_FOREIGN, OPT_PLAIN, OPT_SPOIL };

static const struct argp_option options[] = {
	{"drive", 'd', "FILE", 0, "The controller's next drive; see disk_controller", 1},
	{"geometry", 'g', "C:S:T:B", 0, "Of that drive", 1},
	{"read-only", 'r', NULL, 0, "That drive is not written to", 1},
	{"bytes", 'n', "BYTES", 0, "Make that drive's file so long", 1},
	{"plain", OPT_PLAIN, NULL, 0, "The controller goes without io_uring", 1},
	{"address", OPT_ADDRESS, "OFFSET", 0, "Where in this process's region the data go [0]", 2},
	{"foreign", OPT_FOREIGN, NULL, 0, "A region that is not mapped by both sides", 2},
	{"spoil-key", OPT_SPOIL, NULL, 0,
	 "Send a key that opens nothing: the data cannot come then", 2},
	{0},
};

struct command {
	char *words[WORDS_MAX + 1]; /* for the controller */
	int count;
	enum disk_op op;
	unsigned args;
	uint32_t drive, sectors;
	struct disk_place place;
	uint64_t address;
	bool foreign, spoil;
};

#define REFUSE(...) argp_failure(state, 2, 0, __VA_ARGS__)

static const char *const names[] = {NULL, "read", "write", "identify", "sync"};

static void pass_on(struct argp_state *state, struct command *c, const char *option, char *arg)
{
	if (c->count + 2 > WORDS_MAX)
		REFUSE("too many drives");
	c->words[c->count++] = (char *)(uintptr_t)option;
	if (arg)
		c->words[c->count++] = arg;
}

static uint64_t number(struct argp_state *state, const char *what, const char *text, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (end == text || *end || *text == '-' || value > most)
		REFUSE("%s \"%s\": a number is wanted", what, text);
	return value;
}

static enum disk_op parse_op(struct argp_state *state, const char *text)
{
	for (enum disk_op op = DISK_READ; op <= DISK_SYNC; op++)
		if (!strcmp(names[op], text))
			return op;
	REFUSE("what is \"%s\"? There are: read write identify sync", text);
	return DISK_READ;
}

static void parse_arg(struct argp_state *state, struct command *c, const char *arg)
{
	char end;

	switch (c->args++) {
	case 0: c->op = parse_op(state, arg); break;
	case 1: c->drive = (uint32_t)number(state, "drive", arg, UINT32_MAX); break;
	case 2:
		if (strchr(arg, '-') || sscanf(arg, "%u:%u:%u%c", &c->place.cylinder,
					       &c->place.surface, &c->place.sector, &end) != 3)
			REFUSE("\"%s\": cylinder, surface and sector are wanted, as in 0:0:0", arg);
		break;
	case 3: c->sectors = (uint32_t)number(state, "sectors", arg, UINT32_MAX); break;
	default: REFUSE("\"%s\" is one too many", arg);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case 'd': pass_on(state, c, "-d", arg); break;
	case 'g': pass_on(state, c, "-g", arg); break;
	case 'n': pass_on(state, c, "-n", arg); break;
	case 'r': pass_on(state, c, "-r", NULL); break;
	case OPT_PLAIN: pass_on(state, c, "--plain", NULL); break;
	case OPT_ADDRESS: c->address = number(state, "--address", arg, UINT64_MAX); break;
	case OPT_FOREIGN: c->foreign = true; break;
	case OPT_SPOIL: c->spoil = true; break;
	case ARGP_KEY_ARG: parse_arg(state, c, arg); break;
	case ARGP_KEY_END:
		if (c->args != (c->op == DISK_READ || c->op == DISK_WRITE ? 4 : 2))
			REFUSE("read or write DRIVE CYLINDER:SURFACE:SECTOR SECTORS, or "
			       "identify or sync DRIVE");
		if (c->op == DISK_READ && isatty(STDOUT_FILENO))
			REFUSE("sectors are no text for a terminal: say >FILE, or | hexdump -C");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static uint32_t read_input(char *to)
{
	uint32_t have = 0;
	ssize_t n = 1;

	while (have < DISK_MOST && n > 0) {
		n = read(STDIN_FILENO, to + have, DISK_MOST - have);
		have += n > 0 ? (uint32_t)n : 0;
	}
	return have;
}

/* Asks, and takes the end into R. */
static int ask(struct disk_client *client, const struct command *c, struct disk_result *r)
{
	char *memory = disk_memory(client);
	uint32_t bytes;
	int rc = disk_identify(client, c->drive, r);

	if (rc < 0 || c->op == DISK_IDENTIFY)
		return rc;
	if (c->op == DISK_SYNC) {
		rc = disk_sync(client, c->drive, 0);
	} else if (c->op == DISK_WRITE) {
		bytes = read_input(memory);
		rc = disk_write(client, c->drive, c->place, c->sectors, memory, bytes, 0);
	} else {
		bytes = c->sectors * r->info.geometry.sector;
		rc = disk_read(client, c->drive, c->place, c->sectors, c->address, bytes, 0);
	}
	return rc < 0 ? rc : disk_next(client, r);
}

static int tell(const struct command *c, const struct disk_result *r, const char *memory)
{
	const struct disk_geometry *g = &r->info.geometry;

	if (r->status != DISK_OK) {
		fprintf(stderr, "disk_ask: %s, drive %u: %s%s%s\n", names[c->op], c->drive,
			disk_status_text(r->status), *r->detail ? ": " : "", r->detail);
		return 1;
	}
	if (c->op == DISK_IDENTIFY)
		printf("drive %u of %u: %u cylinders, %u surfaces, %u sectors a track, %u bytes a "
		       "sector; %llu bytes%s\n",
		       c->drive, r->info.drives, g->cylinders, g->surfaces, g->track, g->sector,
		       (unsigned long long)r->info.bytes, r->info.read_only ? ", read-only" : "");
	else if (c->op == DISK_READ)
		fwrite(memory + c->address, 1, r->bytes, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"read DRIVE C:S:T SECTORS\nwrite DRIVE C:S:T SECTORS\nidentify DRIVE\nsync DRIVE",
		"One request to a mass-storage controller, which it starts.\v"
		"Data come to standard output, and from standard input. "
		"Exit status: 0 done, 1 refused or failed, 2 usage.",
		NULL,
		NULL,
		NULL};
	static struct command c;
	struct disk_client *client;
	struct disk_result result;
	int failed, ended;

	options_begin("disk_ask");
	if (options_parse(&argp, argc, argv, &c))
		return 2;
	if (disk_start(&client, &(struct disk_client_options){.argv = c.words,
							      .memory = DISK_MOST,
							      .foreign = c.foreign}) < 0)
		return 1;
	if (c.spoil)
		disk_spoil_key(client);
	failed = ask(client, &c, &result) < 0 || tell(&c, &result, disk_memory(client));
	ended = disk_stop(client);
	if (!failed && ended)
		fprintf(stderr, "disk_ask: the controller did not end well\n");
	return failed || ended || fflush(stdout) || ferror(stdout) ? 1 : 0;
}
