/* SPDX-License-Identifier: BSD-3-Clause */
/* program */
/* disk_copy: copies a file or a block device through a controller process. Its command line. */
#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/disk/client.h"
#include "apps/disk/copy.h"
#include "apps/lib/options.h"

enum { OPT_SYNC = 256, OPT_FOREIGN, OPT_PLAIN, OPT_CONTROLLER, OPT_DD };

static const struct argp_option options[] = {
	{"block", 'b', "BYTES", 0, "Of one request, with k or m; up to 1m [256k]", 1},
	{"window", 'w', "N", 0, "Blocks under way at once, 1 to 64 [8]", 1},
	{"geometry", 'g', "C:S:T:B", 0, "Of both drives: cylinders, surfaces, sectors, bytes", 1},
	{"sync", OPT_SYNC, NULL, 0, "Wait until it is on the medium", 1},
	{"beside-dd", OPT_DD, NULL, 0, "Copy it by dd as well, and print both throughputs", 2},
	{"foreign", OPT_FOREIGN, NULL, 0, "Read into memory that is not mapped by both sides", 2},
	{"plain", OPT_PLAIN, NULL, 0, "The controller goes without io_uring", 2},
	{"controller", OPT_CONTROLLER, "PROGRAM", 0, "Start this one [disk_controller]", 2},
	{"quiet", 'q', NULL, 0, "Print nothing but errors", 2},
	{0},
};

#define REFUSE(...) argp_failure(state, 2, 0, __VA_ARGS__)

static uint32_t parse_block(struct argp_state *state, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (end != text && value <= DISK_MOST && (*end | 0x20) == 'k')
		value <<= 10, end++;
	else if (end != text && value <= DISK_MOST && (*end | 0x20) == 'm')
		value <<= 20, end++;
	if (end == text || *end || *text == '-' || value < 512 || value > DISK_MOST || value % 512)
		REFUSE("-b %s: whole sectors of 512 bytes are wanted, up to 1m", text);
	return (uint32_t)value;
}

static unsigned parse_window(struct argp_state *state, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > DISK_WINDOW)
		REFUSE("-w %s: a number from 1 to %d is wanted", text, DISK_WINDOW);
	return (unsigned)value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct copy_options *o = state->input;

	switch (key) {
	case 'b': o->block = parse_block(state, arg); break;
	case 'w': o->window = parse_window(state, arg); break;
	case 'g': o->geometry = arg; break;
	case 'q': o->quiet = true; break;
	case OPT_SYNC: o->sync = true; break;
	case OPT_DD: o->beside = true; break;
	case OPT_FOREIGN: o->foreign = true; break;
	case OPT_PLAIN: o->plain = true; break;
	case OPT_CONTROLLER: o->controller = arg; break;
	case ARGP_KEY_ARG:
		if (o->to)
			REFUSE("\"%s\" is one too many: FROM and TO are wanted", arg);
		*(o->from ? &o->to : &o->from) = arg;
		break;
	case ARGP_KEY_END:
		if (!o->to)
			REFUSE("FROM and TO are wanted; see --help");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int refuse(const char *path, const char *why)
{
	fprintf(stderr, "disk_copy: %s: %s\n", path, why);
	return 1;
}

/* The source's size, and that the target is another file. */
static int inspect(struct copy_options *o)
{
	struct stat from, to;
	int fd = open(o->from, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	off_t end;

	if (fd < 0 || fstat(fd, &from))
		return refuse(o->from, strerror(errno));
	if (!S_ISREG(from.st_mode) && !S_ISBLK(from.st_mode))
		return refuse(o->from, "neither a file nor a block device");
	end = lseek(fd, 0, SEEK_END);
	close(fd);
	if (end < 0)
		return refuse(o->from, strerror(errno));
	o->bytes = (uint64_t)end;
	if (stat(o->to, &to))
		return 0; /* the controller makes it */
	if (to.st_dev == from.st_dev && to.st_ino == from.st_ino)
		return refuse(o->to, "the same file as what is copied");
	if (o->beside && !S_ISREG(to.st_mode))
		return refuse(o->to, "--beside-dd is for files");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"FROM TO",
		"Copies a file or a block device through a mass-storage controller: reads one "
		"drive, writes another.\v"
		"Exit status: 0 copied, 1 something failed and TO is not complete, 2 usage.",
		NULL,
		NULL,
		NULL};
	struct copy_options o = {.block = 256 << 10, .window = 8};
	char rate[32];
	double seconds;

	options_begin("disk_copy");
	if (options_parse(&argp, argc, argv, &o))
		return 2;
	signal(SIGXFSZ, SIG_IGN);
	if (inspect(&o))
		return 1;
	if (o.beside)
		beside_warm(&o);
	if (copy_run(&o, &seconds))
		return 1;
	if (!o.quiet || o.beside)
		fprintf(stderr, "disk_copy: %llu bytes in %.3f s, %s\n",
			(unsigned long long)o.bytes, seconds,
			progress_rate(rate, o.bytes, seconds));
	if (o.beside)
		beside_run(&o, seconds);
	return 0;
}
