/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host: reads where the accelerators' particles are, as fast as it can. With a mirror that is a
 * load; without, a get for each.
 */
#include "apps/mirror_demo/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MOST   16
#define WORDS  (2 * PARTICLES) /* that tell where they are */
#define RUN    32              /* times that each is read between calls that let what has come in */
#define WIDTH  200             /* of a drawing, at most ... */
#define HEIGHT 60
#define WIDE   72 /* ... and where there is no terminal to fill */
#define HIGH   20
#define DRAW_S 0.05

struct source { /* one accelerator */
	slmpm_peer peer;
	slmpm_mirror mirror;
	slmpm_rmem region;
	struct state *state; /* a mirror's; or the last one that was got as a whole */
};

static const slmpm_ctx ctx;
static struct source sources[MOST];
static volatile double sink;

static int begin(const struct run *run, struct source *s)
{
	char *const argv[] = {run->get ? "--simulate=get" : "--simulate=mirror", NULL};
	struct slmpm_key key;
	int rc = slmpm_spawn(&s->peer, "/proc/self/exe", argv, NULL);

	s->state = calloc(1, sizeof(*s->state));
	if (rc < 0 || !s->state)
		return rc < 0 ? rc : -SLMPM_ENOMEM;
	if (run->get) {
		int64_t n = slmpm_recv(s->peer, STREAM_KEY, &key, sizeof(key), NULL, ASK_MS);

		return n < 0 ? (int)n : slmpm_mem_open(s->peer, &key, &s->region);
	}
	rc = slmpm_mirror_create(ctx, s->state, sizeof(*s->state), NULL, &s->mirror);
	return rc < 0 ? rc :
			slmpm_mirror_attach(s->mirror, s->peer, TAG, SLMPM_MIRROR_FOLLOW, ASK_MS);
}

/* ---- reading --------------------------------------------------------------------------------- */

static inline double load(const double *at)
{
	double value;

	__atomic_load(at, &value, __ATOMIC_RELAXED);
	return value;
}

/* Sums side by side, each in a register, so that no load waits for what is done with the one
 * before. */
static double sum(const struct particle *p)
{
	double a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;

	for (const struct particle *end = p + PARTICLES; p < end; p += 4) {
		a += load(&p[0].x);
		b += load(&p[0].y);
		c += load(&p[1].x);
		d += load(&p[1].y);
		e += load(&p[2].x);
		f += load(&p[2].y);
		g += load(&p[3].x);
		h += load(&p[3].y);
	}
	return a + b + c + d + e + f + g + h;
}

static int read_mirrors(const struct run *run, double *reads)
{
	double all = 0;

	for (unsigned i = 0; i < run->accelerators; i++)
		for (unsigned k = 0; k < RUN; k++)
			all += sum(sources[i].state->particle);
	sink = all;
	*reads += (double)WORDS * RUN * run->accelerators;
	return slmpm_progress(ctx);
}

static int read_remotely(const struct run *run, double *reads)
{
	unsigned which = (unsigned)*reads % PARTICLES;
	const struct source *s = &sources[(unsigned)*reads % run->accelerators];
	double value;
	int rc = slmpm_get(s->region,
			   offsetof(struct state, particle) + which * sizeof(struct particle),
			   &value, sizeof(value), NULL, NULL);

	sink = value;
	*reads += 1;
	return rc;
}

/* One state as a whole: what can be drawn. */
static int see(const struct run *run, struct source *s, struct state *whole)
{
	const struct slmpm_span all = {0, sizeof(*whole)};

	if (run->get)
		return slmpm_get(s->region, 0, whole, sizeof(*whole), NULL, NULL);
	return slmpm_mirror_snapshot(s->mirror, s->peer, &all, 1, whole, NULL, ASK_MS);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Of the drawing, as the terminal is now; below it there are a line of text and the cursor. */
static void inspect(int *width, int *height)
{
	struct winsize w;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 2;

	*width = !known ? WIDE : w.ws_col < WIDTH ? w.ws_col : WIDTH;
	*height = !known ? HIGH : w.ws_row - 2 < HEIGHT ? w.ws_row - 2 : HEIGHT;
}

static int draw(const struct run *run, const struct figures *f)
{
	static const char mark[] = ".o*+x#@%&=~^abcd";
	char screen[HEIGHT][WIDTH], text[WIDTH + 1];
	struct state whole;
	int width, height;

	inspect(&width, &height);
	memset(screen, ' ', sizeof(screen));
	for (unsigned i = 0; i < run->accelerators; i++) {
		int rc = see(run, &sources[i], &whole);

		if (rc < 0)
			return rc;
		for (int k = 0; k < PARTICLES; k++)
			screen[(int)(whole.particle[k].y * height) % height]
			      [(int)(whole.particle[k].x * width) % width] = mark[i];
	}
	printf("\033[H\033[J");
	for (int y = 0; y < height; y++)
		printf("%.*s\n", width, screen[y]);
	snprintf(text, sizeof(text), "%s, by %s: %.3g reads a second", run->fabric,
		 run->get ? "get" : "mirror", f->reads / f->seconds);
	printf("%.*s\n", width - 1, text);
	fflush(stdout);
	return 0;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int read_on(const struct run *run, struct figures *f)
{
	double began = seconds_now(), drawn = began, now = began;
	int rc = 0;

	while (rc >= 0 && now - began < run->seconds) {
		for (int i = 0; i < 16 && rc >= 0; i++)
			rc = run->get ? read_remotely(run, &f->reads) :
					read_mirrors(run, &f->reads);
		now = seconds_now();
		f->seconds = now - began;
		if (rc >= 0 && run->draw && now - drawn >= DRAW_S) {
			rc = draw(run, f);
			drawn = now;
		}
	}
	return rc;
}

static int conclude(const struct run *run, struct figures *f)
{
	int rc = 0;

	for (unsigned i = 0; i < run->accelerators && rc >= 0; i++) {
		struct source *s = &sources[i];
		struct slmpm_stats stats;
		struct state whole;

		rc = see(run, s, &whole);
		if (rc < 0)
			break;
		f->steps += (double)whole.step;
		slmpm_peer_stats(s->peer, &stats, sizeof(stats));
		f->remote += stats.gets;
		rc = slmpm_send(s->peer, STREAM_END, "", 0, ASK_MS);
		if (rc >= 0)
			rc = slmpm_join(s->peer, NULL, ASK_MS);
	}
	return rc;
}

int watch(const struct run *run, struct figures *f)
{
	int rc = 0;

	*f = (struct figures){0};
	for (unsigned i = 0; i < run->accelerators && rc >= 0; i++)
		rc = begin(run, &sources[i]);
	if (rc >= 0)
		rc = read_on(run, f);
	if (rc >= 0)
		rc = conclude(run, f);
	return rc < 0 ? slmpm_perror("mirror_demo") : 0;
}
