/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -lcrypto */
/* slmpm_run: the command line. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slmpm.h>

#include "apps/lib/options.h"
#include "apps/slmpm_run/job.h"
#include "apps/slmpm_run/run.h"

#define ELEMENTS_MAX 65536
#define SECONDS_MAX  1000000

enum {
	OPT_REMOTE = 256,
	OPT_RUNNER,
	OPT_LISTEN,
	OPT_FABRIC,
	OPT_CHDIR,
	OPT_SHIP,
	OPT_TIMEOUT,
	OPT_GRACE,
	OPT_INSECURE,
	OPT_AGENT,
	OPT_RELAY
};

static const struct argp_option options[] = {
	{"hosts", 'H', "HOST[:N][,...]", 0,
	 "Where accelerators run, with how many elements each; local: this machine", 1},
	{"elements", 'n', "N", 0, "Elements in all [one a host]", 1},
	{"topology", 't', "FILE", 0, "The same from a file: slmpm_topology(5)", 1},
	{"env", 'e', "NAME[=VALUE]", 0, "A variable for accelerators everywhere", 1},
	{"remote", OPT_REMOTE, "COMMAND", 0,
	 "Runs a command on a host, %h [ssh, which asks nothing and looks every 5 s whether the other side lives]",
	 2},
	{"runner", OPT_RUNNER, "PATH", 0, "slmpm_run there [in PATH]", 2},
	{"listen", OPT_LISTEN, "ADDRESS", 0, "Of this machine, as reached from there [all]", 2},
	{"fabric", OPT_FABRIC, "F", 0, "For the links; slmpm_info -d lists them", 2},
	{"chdir", OPT_CHDIR, "PATH", 0, "Working folder there [this one, if it is there]", 2},
	{"ship", OPT_SHIP, "WHEN", 0,
	 "Send program and libraries: auto (where there is no same file), always, never [auto]", 2},
	{"insecure", OPT_INSECURE, NULL, 0,
	 "Go over networks that others can reach: nothing hides what travels", 2},
	{"label", 'l', NULL, 0, "Begin lines of output with who says them", 3},
	{"output", 'o', "PREFIX|FOLDER", 0, "Output into files, named host, 1, 2 ...", 3},
	{"quiet", 'q', NULL, 0, "Do not tell how elements ended", 3},
	{"timeout", OPT_TIMEOUT, "SECONDS", 0, "End everything after so long; exit status 124", 4},
	{"grace", OPT_GRACE, "SECONDS", 0, "For what is left when the host program has ended [5]",
	 4},
	{"status", 's', NULL, 0, "Show the jobs that run", 5},
	{"kill", 'k', "JOB", OPTION_ARG_OPTIONAL, "End a job, or all", 5},
	{"agent", OPT_AGENT, NULL, OPTION_HIDDEN, NULL, 6},
	{"relay", OPT_RELAY, NULL, OPTION_HIDDEN, NULL, 6},
	{0},
};

struct command {
	struct options options;
	size_t exports;
	bool status, kill, agent, relay;
	const char *job;
};

#define REFUSE(...) argp_failure(state, 2, 0, __VA_ARGS__)

static unsigned parse_number(struct argp_state *state, const char *option, const char *text,
			     unsigned least, unsigned most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < (long)least || value > (long)most)
		REFUSE("%s %s: a number from %u to %u is wanted", option, text, least, most);
	return (unsigned)value;
}

static void add_export(struct argp_state *state, struct command *c, char *arg)
{
	char **wider = realloc(c->options.exports, (c->exports + 2) * sizeof(*wider));
	size_t n = strcspn(arg, "=");

	if (!n || memchr(arg, ',', n))
		REFUSE("-e %s: NAME or NAME=VALUE", arg);
	if (!wider)
		REFUSE("out of memory");
	c->options.exports = wider;
	wider[c->exports++] = arg;
	wider[c->exports] = NULL;
}

static void check(struct argp_state *state, const struct command *c)
{
	const struct options *o = &c->options;
	bool far = o->remote || o->there || o->listen || o->chdir || o->ship;

	if (c->agent || c->relay)
		return;
	if ((c->status || c->kill) && o->argv)
		REFUSE("--status and --kill stand alone");
	if (c->status || c->kill)
		return;
	if (!o->argv)
		REFUSE("say what to run, as in: slmpm_run -H HOST slmpm_demo; see --help");
	if (o->hosts && o->topology)
		REFUSE("-H here or hosts in the topology, not both");
	if (o->topology && o->elements)
		REFUSE("-n here or elements in the topology, not both");
	if (far && !o->hosts)
		REFUSE("--remote, --runner, --listen, --chdir and --ship are of -H");
	if (o->elements && o->hosts && strchr(o->hosts, ':'))
		REFUSE("-n here or numbers with -H, not both");
}

static int parse_far(int key, char *arg, struct argp_state *state, struct options *o)
{
	switch (key) {
	case OPT_REMOTE: o->remote = arg; break;
	case OPT_RUNNER: o->there = arg; break;
	case OPT_LISTEN: o->listen = arg; break;
	case OPT_FABRIC: o->fabric = arg; break;
	case OPT_CHDIR: o->chdir = arg; break;
	case OPT_SHIP: o->ship = arg; break;
	case OPT_TIMEOUT:
		o->timeout_s = parse_number(state, "--timeout", arg, 1, SECONDS_MAX);
		break;
	case OPT_GRACE:
		o->grace_ms = parse_number(state, "--grace", arg, 0, SECONDS_MAX) * 1000;
		break;
	case OPT_INSECURE: o->insecure = true; break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;
	struct options *o = &c->options;

	switch (key) {
	case 'H': o->hosts = arg; break;
	case 'n': o->elements = parse_number(state, "-n", arg, 1, ELEMENTS_MAX); break;
	case 't': o->topology = arg; break;
	case 'e': add_export(state, c, arg); break;
	case 'l': o->label = true; break;
	case 'o': o->output = arg; break;
	case 'q': o->quiet = true; break;
	case 's': c->status = true; break;
	case 'k':
		c->kill = true;
		c->job = arg;
		break;
	case OPT_AGENT: c->agent = true; break;
	case OPT_RELAY: c->relay = true; break;
	case ARGP_KEY_ARG:
		o->argv = &state->argv[state->next - 1];
		state->next = state->argc;
		break;
	case ARGP_KEY_END: check(state, c); break;
	default: return parse_far(key, arg, state, o);
	}
	return 0;
}

/* Who started this may have closed some: what is opened from now on is not to be taken for them. */
static void open_standard(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"PROGRAM [ARGUMENT...]",
		"Runs a host program whose accelerators lie on this machine or on others.\v"
		"Exit status: the program's, 128 and the signal's number, 124 after --timeout, 126 or "
		"127 when it cannot be started, 2 wrong usage.",
		NULL,
		NULL,
		NULL};
	static struct command c = {.options.grace_ms = 5000};

	open_standard();
	options_begin(NAME);
	if (options_parse_before(&argp, argc, argv, &c))
		return 2;
	if (c.agent)
		return agent_main();
	if (c.relay)
		return relay_main();
	if (c.status)
		return status_show();
	if (c.kill)
		return status_kill(c.job);
	return host_run(&c.options);
}
