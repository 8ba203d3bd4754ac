/* SPDX-License-Identifier: BSD-3-Clause */
/* The screen: the table again and again, sorted by a key, until q. */
#include "apps/slmpm_stat/stat.h"

#include <curses.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR 10

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* A line is put together, and then shown as far as the terminal is wide: curses would go on in the
 * next one. */
static struct {
	char text[512];
	size_t n;
} line;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line.text + line.n, sizeof(line.text) - line.n, format, args);
	va_end(args);
	line.n += n > 0 ? (size_t)n : 0;
	if (line.n > sizeof(line.text) - 1)
		line.n = sizeof(line.text) - 1;
}

static void show(int y)
{
	mvaddnstr(y, 0, line.text, COLS);
	line.n = 0;
	line.text[0] = 0;
}

/* A share of a ring as a bar. */
static void put_bar(unsigned permille)
{
	int full = (int)(permille * BAR / 1000);

	say(" [");
	for (int i = 0; i < BAR; i++)
		say("%c", i < full || (i == full && permille * BAR % 1000 >= 500) ? '#' : ' ');
	say("]%3u%%", permille / 10);
}

static void put_link(int y, const struct link *l)
{
	char echo[16], sent[16], received[16], out[16], in[16], age[16];
	const struct slmpm_monitor *m = &l->m;

	say("%7d %-12.12s %-24.24s %-4.4s %-6.6s %6" PRIu64, l->pid, l->program, m->name, m->link,
	    word_state(m->state), m->queue_depth);
	put_bar(word_permille(m->out_unread, m->out_segments));
	put_bar(word_permille(m->in_unread, m->in_segments));
	say(" %8s %7s %7s %7s %7s %8s", word_time(echo, m->echo_ns),
	    word_amount(sent, (double)m->sent_rate),
	    word_amount(received, (double)m->received_rate),
	    word_amount(out, (double)m->sent_byte_rate),
	    word_amount(in, (double)m->received_byte_rate), word_time(age, l->age * 1e9));
	show(y);
}

/* Each of several links, below the peer's line, as far as there is room. */
static int put_paths(int y, int end_y, const struct slmpm_monitor *m)
{
	char echo[16];

	for (uint32_t i = 0; i < m->path_count && y < end_y; i++) {
		const struct slmpm_monitor_path *p = &m->paths[i];

		say("%7s %-12s link %-2" PRIu32 "%-17s %-4.4s %-6.6s %6" PRIu64, "", "", i,
		    p->used ? "in use" : "", p->link, word_path(p->state), p->queue_depth);
		put_bar(word_permille(p->out_unread, p->out_segments));
		put_bar(word_permille(p->in_unread, p->in_segments));
		say(" %8s", word_time(echo, p->echo_ns));
		show(y++);
	}
	return y;
}

/* The job's aggregate in a line: by protocol the smallest class that has been measured; by
 * fabric. */
static void put_job(int y, const struct job *job)
{
	const struct slmpm_aggregate *m = &job->m;
	char text[16];

	say("job %012" PRIx64 ": %" PRIu32 " instances of %" PRIu32 " job%s, %" PRIu64
	    " links, %" PRIu64 " queued, rings %.1f %% %.1f %%",
	    m->job, m->instances, m->jobs, m->jobs == 1 ? "" : "s", m->links, m->queue_depth,
	    job_permille(m->out_permille) / 10.0, job_permille(m->in_permille) / 10.0);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int s = 0; s < SLMPM_SIZE_CLASSES; s++)
			if (m->latency_ns[p][s]) {
				say("  %s %s: %s", slmpm_protocol_name(p), word_class(s),
				    word_time(text, m->latency_ns[p][s]));
				break;
			}
	for (int f = 0; f < SLMPM_AGGREGATE_FABRICS; f++)
		if (m->fabrics[f].name[0])
			say("  %s %s requests", m->fabrics[f].name,
			    word_amount(text, (double)m->fabrics[f].requests));
	show(y);
}

/* Work queues and groups as in the plain form, as far as there is room. */
static void put_others(int y, const struct gathered *g)
{
	char *text = NULL, *rest, *row;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return;
	queues_text(g, to);
	groups_text(g, to);
	if (fclose(to) == 0)
		for (rest = text; y < LINES && (row = strsep(&rest, "\n")); y++)
			mvaddnstr(y, 0, row, COLS);
	free(text);
}

static void put_head(const struct gathered *g, enum sort by, double interval)
{
	static const char *const names[] = {"pid", "queue", "ring", "latency", "rate", "bytes"};
	char echo[16], latency[16];
	struct aggregate m;

	means_of(g, &m);
	say("slmpm_stat: %d process%s, %d link%s, %" PRIu64 " queued, rings %.1f %% %.1f %%, "
	    "echo %s   every %g s, by %s",
	    m.processes, m.processes == 1 ? "" : "es", m.links, m.links == 1 ? "" : "s",
	    m.queue_depth, m.out_permille / 10, m.in_permille / 10, word_time(echo, m.echo_ns),
	    interval, names[by]);
	show(0);
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		if (m.protocol[p].samples)
			say("%s %s   ", slmpm_protocol_name(p),
			    word_time(latency, m.protocol[p].latency_ns));
	show(1);
	attron(A_REVERSE);
	say("%7s %-12s %-24s %-4s %-6s %6s  %-16s %-16s %8s %7s %7s %7s %7s %8s", "PID", "PROGRAM",
	    "PEER", "LINK", "STATE", "QUEUE", "RING OUT", "RING IN", "ECHO", "OUT/s", "IN/s",
	    "OUTB/s", "INB/s", "AGE");
	show(2);
	attroff(A_REVERSE);
}

static void draw(const struct gathered *g, enum sort by, double interval)
{
	int y = 3;

	erase();
	put_head(g, by, interval);
	for (size_t i = 0; i < g->count && y < LINES; i++) {
		put_link(y++, &g->links[i]);
		y = put_paths(y, LINES, &g->links[i].m);
	}
	for (size_t i = 0; i < g->job_count && y < LINES; i++)
		put_job(y++, &g->jobs[i]);
	put_others(y, g);
	refresh();
}

/* What KEY wants: a sort, or the end. */
static void take_key(int key, enum sort *by)
{
	switch (key) {
	case 'q':
	case 'Q': ended = 1; break;
	case 'p': *by = SORT_PID; break;
	case 'u': *by = SORT_QUEUE; break;
	case 'r': *by = SORT_RING; break;
	case 'l': *by = SORT_LATENCY; break;
	case 'm': *by = SORT_RATE; break;
	case 'b': *by = SORT_BYTES; break;
	default: break;
	}
}

/* 0; 1: the one process that was asked for shows nothing any more. */
static int round_of(int pid, bool all, enum sort *by, double interval)
{
	struct gathered g = {.all = all};
	int rc = 0;

	if (pid)
		rc = gather_process(&g, pid);
	else
		gather_all(&g);
	gather_sort(&g, *by);
	if (rc == 0)
		draw(&g, *by, interval);
	gather_drop(&g);
	if (rc == 0)
		take_key(getch(), by);
	return rc < 0;
}

static bool open_screen(double interval)
{
	struct sigaction act = {.sa_handler = end};
	SCREEN *screen = newterm(NULL, stdout, stdin);

	if (!screen)
		return false;
	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGHUP, &act, NULL);
	cbreak();
	noecho();
	curs_set(0);
	timeout((int)(interval * 1000));
	return true;
}

int screen_run(int pid, bool all, enum sort by, double interval, unsigned rounds)
{
	int rc = 0;

	if (!isatty(STDOUT_FILENO)) {
		fprintf(stderr, "slmpm_stat: --watch wants a terminal, to draw on; without it "
				"each call prints lines once\n");
		return 1;
	}
	if (!open_screen(interval)) {
		fprintf(stderr, "slmpm_stat: the terminal is not known (TERM=%s)\n",
			getenv("TERM") ? getenv("TERM") : "");
		return 1;
	}
	for (unsigned i = 0; !ended && rc == 0 && (!rounds || i < rounds); i++)
		rc = round_of(pid, all, &by, interval);
	endwin();
	return rc ? slmpm_perror("slmpm_stat") : 0;
}
