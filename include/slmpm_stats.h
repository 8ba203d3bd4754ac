/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be looked at: statistics, settings, what the machine offers, fabrics, the log. A part of
 * <slmpm.h>.
 */
#ifndef SLMPM_API_STATS_H
#define SLMPM_API_STATS_H

#include <slmpm.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a call share a name */
extern "C" {
#endif

/* ---- Statistics ----------------------------------------------------------------------------- */

#define SLMPM_CAUSE_COUNT 4 /* in this release; */
#define SLMPM_CAUSE_ROOM  8 /* places for them */
struct slmpm_stats {        /* one peer; plain counters with one writer, lifetime totals */
	uint32_t size;
	int32_t pid;
	uint64_t sent_messages, sent_packets, sent_bytes;
	uint64_t received_messages, received_packets, received_bytes;
	/* Outbound ring, in segments, of several links all of theirs: written (J), read by the peer as
	 * far as known (K), size. */
	uint64_t out_produced, out_consumed, out_segments;
	/* Inbound ring: what the peer has written as far as known, what has been read, size. */
	uint64_t in_produced, in_consumed, in_segments;
	uint64_t out_room, in_unread;
	uint64_t remote_writes; /* stores into the peer's memory: packets, totals, announcements */
	/* Operations and pieces by which this side read it: gets, atomic operations, also by
	 * request; pieces of fetched messages and of shared puts; messages in loan areas. None by
	 * messages in packets, puts, mirrors. */
	uint64_t remote_reads;
	/* K's publications by cause: threshold, before sleep, flush, every read */
	uint64_t publications[SLMPM_CAUSE_ROOM];
	uint64_t produced_publications;
	uint64_t sleeps, wakeups, bells; /* times this side slept, was woken; bells it rang */
	uint64_t queue_depth;            /* requests that the link has not accepted yet */
	uint64_t unexpected;             /* messages that arrived before their receive */
	uint64_t violations;             /* the peer's; slmpm_violation_at names them */
	uint64_t checksum_errors;
	/* One-sided operations begun here, their bytes; and those of the peer that this process did
	 * for it, for want of a mapping. */
	uint64_t puts, put_bytes, gets, get_bytes, atomics, served, notifications;
	uint64_t refused; /* of the peer's: key, range or right was wrong */
	/* Active messages handled here, and dropped: no handler, damaged, or too long. */
	uint64_t ams, am_unhandled;
	/* One-sided operations by active messages (SLMPM_RMA): requests made here, by messages that
	 * bring the bytes along and by tag; and the peer's handled here. */
	uint64_t am_writes, am_reads, am_atomics, tag_writes, tag_reads;
	uint64_t am_served, tag_served;
	/* Of what was sent: large messages that the peer fetched (SLMPM_FETCH), bytes that it read;
	 * those of them of which this side wrote a share, its bytes. The rest went in packets. */
	uint64_t rget_messages, rget_bytes, push_messages, push_bytes;
	/* Of the puts: those of which the target copied a part (SLMPM_SHARE), its bytes. */
	uint64_t shared_puts, shared_bytes;
	/* Puts into the peer's FIFO, their bytes; its entries that came to ours. */
	uint64_t fifo_puts, fifo_bytes, fifo_entries;
	/* Puts and gets of this side that the peer's engine did, their bytes; those of the peer that
	 * this side's engine did. */
	uint64_t asked, asked_bytes, asked_here, asked_here_bytes;
	/* Puts and gets of this side whose calls copied the bytes themselves, at once, their bytes. */
	uint64_t copied_puts, copied_put_bytes, copied_gets, copied_get_bytes;
	/* Transfers of this side's engine that have ended, and the bytes that its thread moved: into the
	 * peer's memory, and into this process's. */
	uint64_t engine_out, engine_out_bytes, engine_in, engine_in_bytes;
	/* Bytes of such transfers that calls moved which waited meanwhile, or run the engine. */
	uint64_t helped_out_bytes, helped_in_bytes;
	/* The peer's requests that wait here for their bytes by tag, or for room to answer a read
	 * (SLMPM_RMA): now, and most at one time. */
	uint64_t rma_queue, rma_queue_peak;
	/* Active messages with SLMPM_REMOTE for which the peer had no handler, or that it found too
	 * long. */
	uint64_t am_refused;
	char link[16];
	/* Of the violations: the peer's packets that were for another process or place (SLMPM_HEADER). */
	uint64_t misaddressed;
};

/* Fills as much of STATS as SIZE allows. Cheap; never blocks. */
SLMPM_API int slmpm_peer_stats(slmpm_peer peer, struct slmpm_stats *stats, size_t size);

#define SLMPM_STATS_PEERS_MAX 256
struct slmpm_stats_page { /* what a process shows to others, read-only */
	uint64_t magic;   /* "SLMPMST1" little-endian */
	uint32_t version;
	uint32_t pid;
	uint32_t peer_size; /* sizeof(struct slmpm_stats) as the owner knows it */
	/* Entries in use when it was attached, those of ended peers included; these give way when
	 * there are more than SLMPM_STATS_PEERS_MAX. slmpm_stats_of knows of later ones, too. */
	uint32_t peers;
	/* Places for work queues, and bytes of each: slmpm_stats_queue; 0: it shows none. */
	uint32_t queues, queue_size;
	uint32_t absent; /* of these: a bit for each that has no memory yet, and was never used */
	uint32_t zero;
	uint64_t reserved[3]; /* the peers' struct slmpm_stats follow: slmpm_stats_of */
};
/* Entry I of a mapped page, NULL behind the last; fields behind page->peer_size are not there. */
SLMPM_API const struct slmpm_stats *slmpm_stats_of(const struct slmpm_stats_page *page, uint32_t i);
/* Maps the statistics of a context in another process of this user (INDEX from 0: a process may
 * have several contexts); SLMPM_ENOENT when there is none. Figures lag by at most one
 * publication. */
SLMPM_API int slmpm_stats_attach(int pid, int index, const struct slmpm_stats_page **page);

#define SLMPM_STATS_QUEUES_MAX   32  /* work queues of a context that are shown */
#define SLMPM_STATS_WAITS_MAX    8   /* of each, channels that wait; */
#define SLMPM_STATS_CHANNELS_MAX 256 /* among its first ones */

enum slmpm_subject { /* what an entry waits for */
		     SLMPM_SUBJECT_COUNTER = 1,
		     SLMPM_SUBJECT_CQ = 2,
		     SLMPM_SUBJECT_WQ = 3,      /* one of its indices */
		     SLMPM_SUBJECT_RECEIVE = 4, /* a send: that the peer enables a receive entry */
		     SLMPM_SUBJECT_PEER = 5     /* that an address is connected, once more */
};

struct slmpm_stats_wait { /* a channel that stands at an entry that waits */
	uint64_t entry;   /* its number */
	uint32_t channel;
	uint32_t kind;         /* enum slmpm_subject */
	uint64_t subject;      /* its handle in that process; of RECEIVE, PEER the peer's */
	uint32_t index;        /* of WQ: enum slmpm_wq_index; of RECEIVE: the stream */
	uint32_t reserved;     /* zero */
	uint64_t value, total; /* that it waits for; that it is now */
	uint64_t since_ns;     /* CLOCK_MONOTONIC: when it was seen there first, some ms late */
};

struct slmpm_stats_queue { /* a work queue; fields beyond .size count as zero */
	uint32_t size;
	uint32_t flags;    /* SLMPM_WQ_* */
	uint64_t queue;    /* its handle in that process */
	uint64_t taken_ns; /* CLOCK_MONOTONIC: when the figures were taken */
	uint64_t posted, enabled, begun, done, failed, by_engine; /* as in struct slmpm_wq_info */
	uint64_t first_failed;
	int32_t status;
	uint32_t channel;
	uint32_t waiting;    /* channels that stand at an entry that waits; */
	uint32_t wait_count; /* of them those that follow */
	struct slmpm_stats_wait waits[SLMPM_STATS_WAITS_MAX];
	uint64_t by_link[SLMPM_LINK_ROOM]; /* as in struct slmpm_wq_info */
};
/* Place I of a mapped page, as of when its process slept last, or a few ms ago: 1 and *QUEUE; 0: no
 * queue is there. SLMPM_ENOENT behind the last; SLMPM_EAGAIN: it changed all the time. */
SLMPM_API int slmpm_stats_queue(const struct slmpm_stats_page *page, uint32_t i,
				struct slmpm_stats_queue *queue, size_t size);
/* Unmaps the page: nothing of it is to be read any more. NULL is nothing. */
SLMPM_API void slmpm_stats_detach(const struct slmpm_stats_page *page);
/* Violations by name: I from 0 to the first SLMPM_ENOENT; *COUNT over all peers of the process. */
SLMPM_API int slmpm_violation_at(int i, const char **name, uint64_t *count);

/* ---- Lifetime totals by peer ----------------------------------------------------------------- */

#define SLMPM_ID_SIZE       32   /* bytes of an id, its 0 included */
#define SLMPM_TOTALS_MAX    1024 /* ids that are kept */
#define SLMPM_TOTALS_OTHERS "others"

/* All connections that this process has had with one peer, closed ones included, in whatever
 * context. */
struct slmpm_totals { /* fields beyond .size count as zero */
	uint32_t size;
	uint32_t live;          /* connections that stand now */
	char id[SLMPM_ID_SIZE]; /* printable */
	uint32_t place;         /* 0, the others', to SLMPM_TOTALS_MAX: its while it is kept */
	uint32_t reserved;
	uint64_t connections; /* that have stood */
	uint64_t seen_ns;     /* CLOCK_MONOTONIC: when one of them began or ended last */
	/* Of the others alone: connections that never came to stand, as unauthenticated ones; ids
	 * that were kept once. */
	uint64_t refused, ids;
	/* As in struct slmpm_stats; segments written (J) and read (K). */
	uint64_t sent_messages, sent_packets, sent_bytes, sent_segments;
	uint64_t received_messages, received_packets, received_bytes, received_segments;
	uint64_t puts, put_bytes, gets, get_bytes, atomics, served, remote_reads;
	uint64_t violations, checksum_errors, misaddressed;
};

/*
 * What PEER counts as from its connection's beginning on: printable, 1 to 31 bytes, copied. Without
 * that it is "element N" of an accelerator started with that number, else what it calls itself
 * (SLMPM_NAME), which it gives once the handshake has shown that it is this user's, or knows the
 * secret. "others" is none. Any time between connect and close; does not block. SLMPM_EINVAL,
 * SLMPM_EHANDLE.
 */
SLMPM_API int slmpm_peer_id(slmpm_peer peer, const char *id);
/*
 * Totals of this process: up to N of SIZE bytes each into ALL, the others first; returns how many
 * there are, at most SLMPM_TOTALS_MAX + 1. Peers of CTX as of now, those of other contexts as those
 * have shown them last. With more ids than are kept those that have been gone longest are summed as
 * the others, where connections without an id are, too. Does not block. SLMPM_EINVAL.
 */
SLMPM_API int slmpm_totals(slmpm_ctx ctx, struct slmpm_totals *all, size_t size, int n);
/* The same of process PID of this user, as of one moment, when it last slept, or some ms ago while
 * it calls. SLMPM_ENOENT: it shows none; SLMPM_EVERSION: its library shows them otherwise;
 * SLMPM_EAGAIN: it changed them all the time. */
SLMPM_API int slmpm_totals_read(int pid, struct slmpm_totals *all, size_t size, int n);

/* ---- Settings, the machine, fabrics ---------------------------------------------------------- */

struct slmpm_setting { /* a SLMPM_* environment variable */
	uint32_t size;
	uint32_t reserved;
	char name[32];
	char value[4096];
	char initial[64];
	char origin[32]; /* "default", "environment" */
	char text[256];
};
/* Setting I from 0; SLMPM_ENOENT behind the last. */
SLMPM_API int slmpm_setting_at(int i, struct slmpm_setting *setting);

struct slmpm_check { /* what the machine offers, found by a real try */
	uint32_t size;
	int32_t state; /* 1 works, 0 missing and replaced silently, -1 missing and needed */
	char name[32];
	char detail[200]; /* what was tried; what to do */
};
/* Check I from 0; SLMPM_ENOENT behind the last. One of them forks a child for a moment. */
SLMPM_API int slmpm_check_at(int i, struct slmpm_check *check);

struct slmpm_fabric_info {
	uint32_t size;
	uint32_t available; /* 1, or 0 and detail says why not */
	char name[16];
	char capabilities[128];
	char commit[24];     /* how the reader learns of a packet */
	char detail[128];    /* why not; of one that is available, how it goes about it, or "" */
	uint64_t packet_max; /* bytes of payload in one packet, on the largest ring */
};
/* Fabric I from 0; SLMPM_ENOENT behind the last. */
SLMPM_API int slmpm_fabric_at(int i, struct slmpm_fabric_info *info);

/* Bytes of memory that a peer comes to take in each of the two processes, with the present
 * settings. */
SLMPM_API uint64_t slmpm_memory_per_peer(void);

/* ---- The log -------------------------------------------------------------------------------- */

enum slmpm_log_level {
	SLMPM_LOG_ERROR = 1,
	SLMPM_LOG_WARN = 2,
	SLMPM_LOG_INFO = 3,
	SLMPM_LOG_DEBUG = 4
};
typedef void slmpm_log_fn(int level, const char *text, void *arg);
/* Sends log lines up to LEVEL (0: none) to FN instead of standard error (NULL: back to it).
 * Process-wide. FN runs in any thread that is in the library, and must not call it. */
SLMPM_API void slmpm_log(int level, slmpm_log_fn *fn, void *arg);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
