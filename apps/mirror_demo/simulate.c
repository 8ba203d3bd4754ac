/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator: moves particles, and publishes where they are after each step. */
#include "apps/mirror_demo/demo.h"

#include <stdlib.h>
#include <time.h>

#define STEP_S 0.005

double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void scatter(struct state *s)
{
	srand((unsigned)(seconds_now() * 1e6));
	for (int i = 0; i < PARTICLES; i++)
		s->particle[i] = (struct particle){
			.x = rand() / (RAND_MAX + 1.0),
			.y = rand() / (RAND_MAX + 1.0),
			.dx = (rand() / (RAND_MAX + 1.0) - 0.5) / 50,
			.dy = (rand() / (RAND_MAX + 1.0) - 0.5) / 50,
		};
}

static void bounce(double *at, double *speed)
{
	*at += *speed;
	if (*at >= 0 && *at < 1)
		return;
	*speed = -*speed;
	*at += *speed;
}

static void move(struct state *s)
{
	s->step++;
	for (int i = 0; i < PARTICLES; i++) {
		bounce(&s->particle[i].x, &s->particle[i].dx);
		bounce(&s->particle[i].y, &s->particle[i].dy);
	}
}

/* Where the host can ask for it: in a region, or in a mirror that nobody asks for. */
static int offer(slmpm_peer host, bool get, struct state **s, slmpm_mirror *mirror)
{
	const slmpm_ctx ctx = {0};
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	int rc;

	if (get) {
		rc = slmpm_mem_alloc(ctx, sizeof(**s), SLMPM_READ, &mem, &base);
		if (rc == 0)
			rc = slmpm_mem_key(mem, host, SLMPM_READ, &key);
		if (rc == 0)
			rc = slmpm_send(host, STREAM_KEY, &key, sizeof(key), ASK_MS);
		*s = base;
		return rc;
	}
	*s = calloc(1, sizeof(**s));
	if (!*s)
		return -SLMPM_ENOMEM;
	rc = slmpm_mirror_create(ctx, *s, sizeof(**s), NULL, mirror);
	return rc < 0 ? rc : slmpm_mirror_attach(*mirror, host, TAG, SLMPM_MIRROR_LEAD, ASK_MS);
}

static int step(bool get, struct state *s, slmpm_mirror mirror)
{
	int rc;

	if (get) {
		move(s);
		return 0;
	}
	rc = slmpm_mirror_begin(mirror, -1);
	if (rc < 0)
		return rc;
	move(s);
	rc = slmpm_mirror_changed(mirror, s, sizeof(*s));
	return rc < 0 ? rc : slmpm_mirror_end(mirror);
}

/* Serves the host, and leaves the processor to others, until the next step is due; true: the
 * end. */
static bool rest(slmpm_peer host, double until)
{
	double left;

	while ((left = until - seconds_now()) > 0)
		if (slmpm_recv(host, STREAM_END, NULL, 0, NULL, (int)(left * 1000) + 1) !=
		    -SLMPM_ETIMEOUT)
			return true;
	return false;
}

int simulate(bool get)
{
	slmpm_mirror mirror = {0};
	struct state *s = NULL;
	double next;
	slmpm_peer host;
	int rc = slmpm_parent(&host);

	if (rc == 0)
		rc = offer(host, get, &s, &mirror);
	if (rc < 0)
		return slmpm_perror("mirror_demo: accelerator");
	scatter(s);
	for (next = seconds_now(); rc >= 0; next += STEP_S) {
		rc = step(get, s, mirror);
		if (rc >= 0 && rest(host, next))
			return 0;
	}
	return rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD ? 0 : slmpm_perror("mirror_demo: step");
}
