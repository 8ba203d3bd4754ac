/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of jacobi share: the tiles of a plate, and what its host and its accelerators say
 * to each other.
 */
#ifndef JACOBI_H
#define JACOBI_H

#include <slmpm.h>
#include <slmpm_group.h>
#include <slmpm_network.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GROUP_TAG 1u
#define START_MS  30000 /* for what comes before the first iteration, and behind the last */
#define SIDES     4     /* of a tile: the links SLMPM_NETWORK_X_UP to SLMPM_NETWORK_Y_DOWN */

/* How an accelerator ends that fails: once it has said why, or because another one has ended. */
enum { STATUS_SAID = 1, STATUS_OTHERS = 3 };

/* Streams of messages: to each accelerator its task; from rank 0 how far it is; from each its part
 * of the result; among neighbours the keys to each other's halos. */
enum { STREAM_TASK, STREAM_PROGRESS, STREAM_RESULT, STREAM_KEY };

struct task {
	uint32_t number; /* the accelerator's, from 1 */
	uint32_t side;   /* of the plate, in cells */
	uint64_t shows_progress;
	uint64_t iterations; /* at most */
	double tolerance;    /* no cell changes by more: the end */
};

/* How long something was under way, and for how long of that its accelerator computed. */
struct overlap {
	double under_way, hidden;
	double began, before; /* when, 0 when it is over; what had been computed then */
};

struct progress {
	uint64_t iteration;
	double residual; /* the greatest change of a cell in it */
};

struct result {
	struct progress end;
	double seconds;
	struct overlap halo, residual;
};

/* ---- time (overlap.c) ---- */

double seconds_now(void);
/* This process has computed since then, and done nothing else. */
void overlap_computed(double since);
void overlap_begin(struct overlap *o);
void overlap_end(struct overlap *o);

/* ---- tiles (tile.c) ---- */

struct tile {
	uint32_t side;                /* of the plate */
	uint32_t x, y, width, height; /* its cells of the plate */
	double *cells
		[2]; /* the temperatures after even and odd iterations, with a rim around them */
};

/* All of a plate, as it is before the first iteration; or what NODE of a mesh NET has of it. */
int tile_make(struct tile *t, uint32_t side);
int tile_make_part(struct tile *t, uint32_t side, const struct slmpm_network *net, uint32_t node);
void tile_free(struct tile *t);

/* The cell at X, Y of the tile, where -1 and width, or height, are the rim. */
static inline double *tile_cell(const struct tile *t, uint64_t iteration, int64_t x, int64_t y)
{
	return t->cells[iteration % 2] + (y + 1) * ((int64_t)t->width + 2) + x + 1;
}

/* Does ITERATION for the rows FROM to below TO, of them columns LEFT to below RIGHT; the greatest
 * change. */
double tile_sweep(struct tile *t, uint64_t iteration, int64_t from, int64_t to, int64_t left,
		  int64_t right);
/* Copies the cells of the tile along SIDE, or to the rim there. */
uint32_t tile_length(const struct tile *t, int side);
void tile_edge(const struct tile *t, uint64_t iteration, int side, double *to);
void tile_rim(struct tile *t, uint64_t iteration, int side, const double *from);

/* ---- halos (halo.c) ---- */

struct halo_side {
	slmpm_peer peer; /* the neighbour; 0: the plate ends here */
	slmpm_mem mem;   /* what it puts here, ... */
	double *in;      /* ... after even and odd iterations */
	slmpm_ctr arrived;
	slmpm_rmem there; /* what this accelerator puts there, ... */
	double *out;      /* ... and from where */
};

struct halo {
	struct tile *tile;
	struct halo_side side[SIDES];
	slmpm_ctr sent;
	struct overlap time;
};

/* Connects with the neighbours, which all do it at once. */
int halo_make(struct halo *h, struct tile *t, slmpm_group group, const struct slmpm_network *net,
	      int rank);
/* Puts what the tile's edges are after ITERATION into the neighbours' memory. */
int halo_send(struct halo *h, uint64_t iteration);
/* Has all that come? Notes when. */
bool halo_has_come(struct halo *h, uint64_t iteration);
/* Waits for it, and copies it to the rim. */
int halo_receive(struct halo *h, uint64_t iteration);
/* Waits until the own puts have arrived. */
int halo_end(struct halo *h);

/* ---- the rest (accelerator.c, host.c, serial.c, picture.c) ---- */

struct run {
	unsigned accelerators;
	struct task task;
	struct slmpm_network net;
	double *plate; /* the result */
	struct result result;
};

/* The accelerator's part: its exit status. */
int accelerator(void);
/* The host's: 0, or 1 once it has said why. */
int host(struct run *run);
/* The same by this process alone: 0 and the bits are equal, or 1 once it has said why. */
int verify(const struct run *run);
/* Draws the plate into FILE. */
int picture(const struct run *run, FILE *file, const char *name);

#endif
