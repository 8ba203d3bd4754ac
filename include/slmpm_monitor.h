/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The monitor: how full a link's queue and rings are, how long things take on it and by which
 * protocol, for the program itself and, read-only, for others of the same user. A part of
 * <slmpm.h>.
 *
 * What is counted is always current; what is measured is sampled, so that no call of the fast paths
 * reads a clock. Other processes see figures that are brought up to date each 10 ms or so while the
 * process calls into the library, and before it sleeps.
 */
#ifndef SLMPM_API_MONITOR_H
#define SLMPM_API_MONITOR_H

#include <slmpm_mode.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a call share a name */
extern "C" {
#endif

/* ---- What a link carries -------------------------------------------------------------------- */

/* Classes of sizes: up to 64 bytes, 256, 1 Ki, 4 Ki, 16 Ki, 64 Ki, 256 Ki, 1 Mi, 4 Mi, all
 * beyond. */
#define SLMPM_SIZE_CLASSES 10

SLMPM_API inline int slmpm_size_class(uint64_t bytes)
{
	int size_class = 0;

	while (size_class < SLMPM_SIZE_CLASSES - 1 && bytes > UINT64_C(64) << 2 * size_class)
		size_class++;
	return size_class;
}

/* Was the memory here the same as in the sample of that class before, and so in the caches? */
#define SLMPM_FRESH  0
#define SLMPM_WARM   1
#define SLMPM_WARMTH 2

struct slmpm_timing { /* of the samples of one protocol, size class and warmth */
	uint64_t samples;
	uint64_t bytes;   /* of all samples */
	uint64_t busy_ns; /* that they took the caller: bytes / busy_ns is the throughput in GB/s */
	uint32_t latency_ns; /* until the peer had it: recent mean, an eighth of it the last; 0: not
			      * measured */
	uint32_t latency_least_ns;
};

#define SLMPM_MONITOR_PATHS 4 /* links of a peer in this release */

/* Places in arrays, so that what later releases fill leaves the others where they are. Those from
 * SLMPM_PROTOCOLS, SLMPM_REASONS, ... on are zero in this one. */
#define SLMPM_PROTOCOL_ROOM 8
#define SLMPM_REASON_ROOM   32
#define SLMPM_PATH_ROOM     8
#define SLMPM_FABRIC_ROOM   8

struct slmpm_monitor_path {   /* one of several links (SLMPM_LINKS) of a peer */
	char link[16];        /* the fabric */
	uint32_t state;       /* enum slmpm_link_state */
	uint32_t used;        /* 1: what is sent now goes by this one */
	uint64_t queue_depth; /* of requests, those that wait for this one */
	uint64_t out_unread, out_segments, in_unread, in_segments;
	uint32_t out_permille, in_permille;
	uint32_t echo_ns, echo_least_ns; /* while it was the one in use */
	uint64_t reserved[4];
};

struct slmpm_monitor { /* one link, or several as one; fields beyond .size count as zero */
	uint32_t size;
	uint32_t state; /* enum slmpm_peer_state */
	int32_t pid;    /* the peer's; 0 over the network */
	uint32_t element;
	uint32_t context;   /* number of the context in its process */
	uint32_t instances; /* of the job, as far as known; 1: this process alone */
	uint64_t taken_ns;  /* CLOCK_MONOTONIC: when the figures were taken, and the link came up */
	uint64_t since_ns;
	char link[16]; /* the fabric */
	char name[64]; /* of the peer, as errors and the log have it */

	/* Queues, in requests: not yet accepted by the link; begun, and waiting for the peer's receive;
	 * one-sided ones under way, the engine's among them. */
	uint64_t queue_depth, awaiting, one_sided;
	/* Rings, in segments, of several links all of theirs: written and, as far as known, not read
	 * yet; their size. */
	uint64_t out_unread, out_segments, in_unread, in_segments;
	/* The same in thousandths: the recent mean over some looks. */
	uint32_t out_permille, in_permille;
	/* Half of what a packet to the peer and back takes, the peer's attention included. */
	uint64_t echoes;
	uint32_t echo_ns, echo_least_ns; /* recent mean, least */

	/* Totals since the link came up; and per second, of late. */
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
	uint64_t sent_rate, sent_byte_rate, received_rate, received_byte_rate;
	uint64_t requests[SLMPM_PROTOCOL_ROOM], request_bytes[SLMPM_PROTOCOL_ROOM];
	/* And why they took that protocol: of all that have ended. SLMPM_REASON_SHORT is the rest. */
	uint64_t reasons[SLMPM_PROTOCOL_ROOM][SLMPM_REASON_ROOM];

	struct slmpm_timing timing[SLMPM_PROTOCOL_ROOM][SLMPM_SIZE_CLASSES][SLMPM_WARMTH];

	/* Of several links each one; 0: there is but one. */
	uint32_t path_count, reserved;
	struct slmpm_monitor_path paths[SLMPM_PATH_ROOM];
	/* Per second, of late. */
	uint64_t request_rate[SLMPM_PROTOCOL_ROOM], request_byte_rate[SLMPM_PROTOCOL_ROOM];
	/* Rules that the peer has broken; of these, packets that were for another accelerator, process or
	 * place. And what packets say of that: SLMPM_HEADER_*. */
	uint64_t violations, misaddressed;
	uint32_t header, reserved2;
	/* Who moved the bytes of puts and gets, as in struct slmpm_stats: the calls, this side's
	 * engine, and the peer's. */
	uint64_t copied_puts, copied_put_bytes, copied_gets, copied_get_bytes;
	uint64_t engine_out, engine_out_bytes, engine_in, engine_in_bytes;
	uint64_t helped_out_bytes, helped_in_bytes;
	uint64_t asked, asked_bytes, asked_here, asked_here_bytes;
};

/* PEER's link now: as much of *MONITOR as SIZE allows. Publishes nothing, does not block. */
SLMPM_API int slmpm_monitor(slmpm_peer peer, struct slmpm_monitor *monitor, size_t size);
/* "smt", "rget", "put", "get", "request"; NULL for another number. */
SLMPM_API const char *slmpm_protocol_name(int protocol);

/* ---- Over all instances of a job ------------------------------------------------------------ */

#define SLMPM_AGGREGATE_FABRICS 4

struct slmpm_aggregate_fabric {
	char name[16]; /* "": a free place */
	uint64_t requests, links;
	uint64_t queue_depth, busy_links;   /* requests queued; those links that have much to do */
	uint32_t out_permille, in_permille; /* of the rings, mean over the links */
	uint32_t echo_ns;                   /* mean over the instances, as all that follows */
	uint32_t latency_ns[SLMPM_PROTOCOL_ROOM]; /* over all sizes */
	uint32_t reserved[9];
};

struct slmpm_aggregate { /* fields beyond .size count as zero */
	uint32_t size;
	uint32_t instances;          /* processes of the job that are known, this one among them */
	uint64_t links, queue_depth; /* of all; their queues together */
	uint32_t out_permille, in_permille; /* of the rings, mean over the links */
	struct slmpm_aggregate_fabric fabrics[SLMPM_FABRIC_ROOM]; /* each type of fabric */
	/* Mean over the instances that have measured it; 0: none has. */
	uint32_t latency_ns[SLMPM_PROTOCOL_ROOM][SLMPM_SIZE_CLASSES];
	uint64_t job;            /* its number: the same in all its processes; 0: not known yet */
	uint32_t jobs, reserved; /* that are in this aggregate: this one, and those around it */
};

/*
 * The aggregate of a job: this process, those that it has started by slmpm_spawn, the one that
 * started it, and so on, on whatever host; and over the jobs that are joined with it by
 * slmpm_connect, directly or by way of others. They send each other theirs once in
 * SLMPM_MONITOR_MS, where a link is in use.
 */
SLMPM_API int slmpm_aggregate(struct slmpm_aggregate *aggregate, size_t size);

/* ---- From outside --------------------------------------------------------------------------- */

struct slmpm_monitors; /* another process's links, as it shows them */

/* Those of process PID, of any context. SLMPM_ENOENT: there is no such process, or it shows
 * none; SLMPM_EACCES: it is another user's; SLMPM_EVERSION: its library shows them otherwise. To
 * be opened again for contexts that came later. Nothing that PID does to them harms the reader. */
SLMPM_API int slmpm_monitors_open(int pid, struct slmpm_monitors **monitors);
/* Link I from 0, ended ones included: 1 and *MONITOR; 0: that place is free; SLMPM_ENOENT behind
 * the last; SLMPM_EAGAIN: it changed all the time. */
SLMPM_API int slmpm_monitors_read(struct slmpm_monitors *monitors, int i,
				  struct slmpm_monitor *monitor, size_t size);
/* The aggregate of its job, as slmpm_aggregate gives them there: 1; 0: it shows none (yet).
 * SLMPM_EAGAIN. */
SLMPM_API int slmpm_monitors_aggregate(struct slmpm_monitors *monitors,
				       struct slmpm_aggregate *aggregate, size_t size);
/* What was read stays readable; the process may have ended. NULL is nothing. */
SLMPM_API void slmpm_monitors_close(struct slmpm_monitors *monitors);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
