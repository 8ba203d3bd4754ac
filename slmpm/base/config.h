/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings: SLMPM_* environment variables, read once a process. */
#ifndef SLMPM_BASE_CONFIG_H
#define SLMPM_BASE_CONFIG_H

#include <stdint.h>

#include "slmpm/base/routes.h"

enum config_when { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER }; /* of `fetch` and `share` */
/* of `header` */
enum config_header { HEADER_NONE, HEADER_IDS, HEADER_ADDRESS, HEADER_MISADDRESSED };
enum config_attach { ATTACH_RELATED, ATTACH_NONE, ATTACH_ALL };   /* of `attach` */
enum config_engine { ENGINE_NONE, ENGINE_INLINE, ENGINE_THREAD }; /* of `engine` */

struct config {
	int64_t ring_segments, segment_size;
	int64_t publish_permille, publish_batch;
	int64_t packet_max; /* 0: as the fabric says */
	int64_t eager_max, eager_credit, loan_max, fetch_min, fetch;
	int64_t share, share_min;
	int64_t am_max, am_answers;
	int64_t wait, spin_us;
	int64_t membarrier, check, header;
	int64_t engine, engine_min, ask_min;
	int64_t mode, mode_ring, mode_light, mode_queue, mode_dma, mode_bulk, mode_small, mode_link,
		mode_spread, aggregate;
	/* Thresholds of the ring and of a queue, of transfers in the engine, as set. */
	int64_t own_ring, own_queue, own_dma;
	int64_t rma; /* enum mode_rma */
	int64_t attach, keys, map_max;
	int64_t log_level;
	int64_t start; /* of all running totals and numbers: 0 but in tests */
	int64_t elements;
	int64_t links_log, links_after;
	int64_t link; /* the number of the default link, from 1; 0: any */
	struct routes routes;
	const char *default_smt, *default_put, *default_rget; /* fabrics; "auto" */
	int64_t backlog, connections;
	int64_t handshake_ms, dead_ms, start_ms;
	int64_t insecure;
	int64_t coll_order;         /* 1: any */
	const char *coll_algorithm; /* as written; so are ... */
	const char *coll_short, *coll_short_rank;
	int64_t monitor_ms;
	int64_t track;      /* 0 auto; enum slmpm_mirror_track less SLMPM_TRACK_AUTO */
	int64_t tcp_engine; /* enum fabric_engine */
	const char *fabric;
	const char *name;   /* "": the program's */
	const char *secret; /* as written */
	const char *run_dir;
	const char *topology, *runner, *export;
	const char *cpus; /* as written */
	const char *pci;
	const char *trace;
};

/* The settings as read, or NULL when one cannot be understood: the error detail names it. */
const struct config *config_get(void);

#endif
