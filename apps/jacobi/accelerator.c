/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An accelerator: iterates over its tile of the plate. While it computes the inner cells, the edges
 * of its neighbours come, and the residual of the iteration before is reduced.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "apps/jacobi/jacobi.h"

#define BAND_CELLS 32768 /* computed between calls that let in what has come */
#define SHOW_S     0.05

struct worker {
	slmpm_peer host;
	slmpm_group group;
	struct slmpm_network net;
	int rank;
	struct task task;
	slmpm_rmem plate; /* the host's, for the result */
	struct tile tile;
	struct halo halo;
	slmpm_req reducing;
	double own, greatest; /* residuals: what is reduced, and to what */
	struct result result;
	double shown;
};

/* ---- the beginning -------------------------------------------------------------------------- */

static int take_task(struct worker *w)
{
	int64_t n;
	int rc = slmpm_parent(&w->host);

	if (rc < 0)
		return rc;
	n = slmpm_recv(w->host, STREAM_TASK, &w->task, sizeof(w->task), NULL, START_MS);
	if (n >= 0 && n != sizeof(w->task))
		return -SLMPM_EPROTO;
	return n < 0 ? (int)n : slmpm_mem_accept(w->host, &w->plate, START_MS);
}

/* The group, the mesh that is laid over it, and the tile that lies there. */
static int find_place(struct worker *w)
{
	const uint32_t flat[3] = {0, 0, 1};
	struct slmpm_group_info own = {.size = sizeof(own)};
	int rc = slmpm_group_join(&w->group, w->host, GROUP_TAG, START_MS);

	if (rc == 0)
		rc = slmpm_group_query(w->group, &own);
	w->rank = own.rank;
	w->net.size = sizeof(w->net);
	if (rc >= 0)
		rc = slmpm_network_make(&w->net, SLMPM_NETWORK_TORUS, own.members, flat, 0);
	if (rc >= 0)
		rc = tile_make_part(&w->tile, w->task.side, &w->net, (uint32_t)w->rank);
	if (rc >= 0)
		rc = halo_make(&w->halo, &w->tile, w->group, &w->net, w->rank);
	return rc;
}

/* ---- the residual --------------------------------------------------------------------------- */

static int reduce_start(struct worker *w, double residual)
{
	const struct slmpm_coll coll = {
		.size = sizeof(coll),
		.kind = SLMPM_COLL_ALLREDUCE,
		.type = SLMPM_DOUBLE,
		.op = SLMPM_CALC_MAX,
		.from = &w->own,
		.to = &w->greatest,
		.count = 1,
	};

	w->own = residual;
	overlap_begin(&w->result.residual);
	return slmpm_collective_start(w->group, &coll, NULL, &w->reducing);
}

/* One that has ended is noted when that is seen. */
static int reduce_test(struct worker *w)
{
	struct slmpm_done done;
	int rc = w->reducing.id ? slmpm_test(&w->reducing, &done) : 0;

	if (rc <= 0)
		return rc;
	overlap_end(&w->result.residual);
	return done.status;
}

static int reduce_wait(struct worker *w)
{
	struct slmpm_done done;
	int rc = reduce_test(w);

	if (rc < 0 || !w->reducing.id)
		return rc;
	rc = slmpm_wait(&w->reducing, 1, &done, -1);
	overlap_end(&w->result.residual);
	return rc < 0 ? rc : done.status;
}

/* ---- an iteration --------------------------------------------------------------------------- */

/* The cells that need no other tile's. */
static int compute_inner(struct worker *w, uint64_t iteration, double *residual)
{
	const int64_t width = w->tile.width, height = w->tile.height;
	const int64_t band = BAND_CELLS / width + 1;
	int rc = 0;

	for (int64_t y = 1; y < height - 1 && rc >= 0; y += band) {
		int64_t end = y + band < height - 1 ? y + band : height - 1;
		double since = seconds_now();
		double change = tile_sweep(&w->tile, iteration, y, end, 1, width - 1);

		overlap_computed(since);
		*residual = change > *residual ? change : *residual;
		rc = slmpm_progress((slmpm_ctx){0});
		if (rc >= 0)
			rc = reduce_test(w);
		halo_has_come(&w->halo, iteration - 1);
	}
	return rc;
}

/* The others; it does no harm that a corner is computed twice. */
static void compute_edges(struct tile *t, uint64_t iteration, double *residual)
{
	const int64_t width = t->width, height = t->height;
	const double since = seconds_now();
	const double changes[SIDES] = {
		tile_sweep(t, iteration, 0, height, width - 1, width),
		tile_sweep(t, iteration, 0, height, 0, 1),
		tile_sweep(t, iteration, height - 1, height, 0, width),
		tile_sweep(t, iteration, 0, 1, 0, width),
	};

	overlap_computed(since);
	for (int side = 0; side < SIDES; side++)
		*residual = changes[side] > *residual ? changes[side] : *residual;
}

static int compute(struct worker *w, uint64_t iteration, double *residual)
{
	int rc = compute_inner(w, iteration, residual);

	if (rc >= 0 && iteration > 1) /* before, the rim is that of the beginning */
		rc = halo_receive(&w->halo, iteration - 1);
	if (rc < 0)
		return rc;
	compute_edges(&w->tile, iteration, residual);
	return iteration < w->task.iterations ? halo_send(&w->halo, iteration) : 0;
}

static int show(struct worker *w)
{
	double now = seconds_now();

	if (w->rank || !w->task.shows_progress || now - w->shown < SHOW_S)
		return 0;
	w->shown = now;
	return slmpm_send(w->host, STREAM_PROGRESS, &w->result.end, sizeof(w->result.end), -1);
}

/* Learns what came of the reduction that ITERATION began; 1: it was the last one. */
static int conclude(struct worker *w, uint64_t iteration)
{
	int rc = reduce_wait(w);

	if (rc < 0)
		return rc;
	w->result.end = (struct progress){iteration, w->greatest};
	if (w->greatest <= w->task.tolerance || iteration == w->task.iterations)
		return 1;
	return show(w);
}

/* The residual of an iteration is known when the next one has been computed: that one is forgotten
 * if it need not have been, for the cells of the one before are still there. */
static int iterate(struct worker *w)
{
	int rc = slmpm_barrier(w->group, START_MS);
	double began = seconds_now();

	for (uint64_t k = 1; rc == 0; k++) {
		double residual = 0;

		rc = compute(w, k, &residual);
		if (rc >= 0 && k > 1)
			rc = conclude(w, k - 1);
		if (rc == 0)
			rc = reduce_start(w, residual);
		if (rc == 0 && k == w->task.iterations)
			rc = conclude(w, k);
	}
	w->result.seconds = seconds_now() - began;
	return rc < 0 ? rc : 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Puts the tile where it belongs in the host's plate, a piece a row; the message arrives behind. */
static int deliver(struct worker *w)
{
	const struct tile *t = &w->tile;
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = START_MS};
	const size_t row = t->width * sizeof(double);
	int rc = 0;

	for (uint32_t y = 0; y < t->height && rc >= 0; y++) {
		uint64_t first = (uint64_t)(t->y + y) * t->side + t->x;

		rc = slmpm_put(w->plate, first * sizeof(double),
			       tile_cell(t, w->result.end.iteration, 0, y), row, &how, NULL);
	}
	if (rc >= 0)
		rc = slmpm_flush(w->host, START_MS);
	w->result.halo = w->halo.time;
	if (rc >= 0)
		rc = slmpm_send(w->host, STREAM_RESULT, &w->result, sizeof(w->result), START_MS);
	return rc;
}

/* Ends when all are through, so that no neighbour puts into what is gone. */
static int part(struct worker *w)
{
	int rc = halo_end(&w->halo);

	if (rc >= 0)
		rc = slmpm_barrier(w->group, START_MS);
	if (rc >= 0)
		rc = slmpm_group_destroy(w->group);
	return rc < 0 ? rc : slmpm_close(w->host, START_MS);
}

int accelerator(void)
{
	static struct worker w;
	int rc;

	signal(SIGINT, SIG_IGN); /* the host ends its accelerators */
	rc = take_task(&w);
	if (rc >= 0)
		rc = find_place(&w);
	if (rc >= 0)
		rc = iterate(&w);
	if (rc >= 0)
		rc = deliver(&w);
	if (rc >= 0)
		rc = part(&w);
	tile_free(&w.tile);
	if (rc >= 0)
		return 0;
	if (rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED)
		return STATUS_OTHERS;
	fprintf(stderr, "jacobi: accelerator %u (pid %d): %s\n", w.task.number, getpid(),
		slmpm_error_detail());
	return STATUS_SAID;
}
