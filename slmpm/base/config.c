/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table of settings: name, kind, default, text. slmpm_info prints it, slmpm(7) and dacs(7) tell
 * of each, and a SLMPM_* variable that is not in it is answered with the nearest name. A set-uid
 * program takes none of its caller's.
 */
#include "slmpm/base/config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "shm/compiler.h"
#include "slmpm/base/error.h"
#include "slmpm/base/cpus.h"
#include "slmpm/base/log.h"
#include "slmpm/base/setting.h"
#include "slmpm/base/sized.h"

static struct config config;

/* clang-format off */
static const struct setting settings[] = {
	{ "FABRIC", TEXT, "shm", &config.fabric, 0, 0, NULL,
	  "fabric for peers on this machine (slmpm_info -d lists them)" },
	{ "RING_SEGMENTS", SIZE, "auto", &config.ring_segments, 2, 1 << 24, NULL,
	  "segments of inbound rings, a power of two; auto: 16384, over tcp alone 65536" },
	{ "SEGMENT_SIZE", SIZE, "64", &config.segment_size, 64, 1 << 20, NULL,
	  "bytes of a segment; a power of two" },
	{ "PUBLISH", SHARE, "1/2", &config.publish_permille, 0, 750, NULL,
	  "publish the read total at this share of the ring unread: up to 3/4, or `every` read" },
	{ "PUBLISH_BATCH", NUMBER, "0", &config.publish_batch, 0, 1 << 24, NULL,
	  "and at least so many segments are unpublished; 0: a sixteenth of the ring" },
	{ "PACKET_MAX", SIZE, "auto", &config.packet_max, 256, 64 << 10, NULL,
	  "bytes of a packet of a longer message; auto: the fabric's; the smaller end counts" },
	{ "EAGER_MAX", SIZE, "256k", &config.eager_max, 0, 1 << 30, NULL,
	  "longest message that may arrive before its receive is posted" },
	{ "EAGER_CREDIT", SIZE, "auto", &config.eager_credit, 64 << 10, 1 << 30, NULL,
	  "bytes a peer that may wait unreceived; auto: 1m, tcp 4m; the smaller end counts" },
	{ "LOAN_MAX", SIZE, "256m", &config.loan_max, 64 << 10, INT64_C(8) << 30, NULL,
	  "longest loan, and bytes of all loan areas to one peer" },
	{ "AM_MAX", SIZE, "8g", &config.am_max, 0, INT64_C(8) << 30, NULL,
	  "longest active message that is taken; longer ones are counted and dropped" },
	{ "AM_ANSWERS", SIZE, "64m", &config.am_answers, 64 << 10, INT64_C(8) << 30, NULL,
	  "bytes of answers to active messages that may wait for a peer to take them" },
	{ "FETCH", CHOICE, "auto", &config.fetch, 0, 2, "auto always never",
	  "messages from SLMPM_FETCH_MIN on, groups' blocks: the faster way of late; or forced" },
	{ "FETCH_MIN", SIZE, "32k", &config.fetch_min, 0, INT64_C(8) << 30, NULL,
	  "shortest message that the receiver may fetch from the sender's memory as faster" },
	{ "SHARE", CHOICE, "auto", &config.share, 0, 2, "auto always never",
	  "puts from SLMPM_SHARE_MIN on: copied by both sides if faster of late; always; never" },
	{ "SHARE_MIN", SIZE, "64k", &config.share_min, 32 << 10, INT64_C(8) << 30, NULL,
	  "shortest put that the target may copy a part of" },
	{ "WAIT", CHOICE, "adaptive", &config.wait, 0, 2, "adaptive spin block",
	  "how a call waits: spin briefly, yield, then sleep; never sleep; sleep at once" },
	{ "SPIN_US", NUMBER, "auto", &config.spin_us, 0, 1000000, NULL,
	  "adaptive: microseconds of polling before sleep; auto: by what that brought of late" },
	{ "MEMBARRIER", CHOICE, "y", &config.membarrier, 0, 1, "n y",
	  "let the sleeper pay for the barrier of both sides, where the kernel can" },
	{ "ATTACH", CHOICE, "auto", &config.attach, 0, 2, "auto n y",
	  "cross-memory attach: with accelerators started here; nobody; others that set y, too" },
	{ "KEYS", NUMBER, "1024", &config.keys, 1, 4096, NULL,
	  "keys to memory regions that one peer may hold, each way" },
	{ "MAP_MAX", SIZE, "256g", &config.map_max, 0, INT64_C(1) << 46, NULL,
	  "bytes of one peer's regions that are mapped at most; beyond, by requests" },
	{ "RMA", CHOICE, "auto", &config.rma, 0, 3, "auto ring am tag",
	  "one-sided operations: direct if possible; by requests; active messages; tagged ones" },
	{ "ENGINE", CHOICE, "none", &config.engine, 0, 2, "none inline thread",
	  "what moves bytes of puts and gets nobody waits for: the call; progress; a thread" },
	{ "ENGINE_MIN", SIZE, "64k", &config.engine_min, 1, INT64_C(8) << 30, NULL,
	  "shortest put or get that is left to the engine" },
	{ "ASK_MIN", SIZE, "64m", &config.ask_min, 32 << 10, INT64_C(8) << 30, NULL,
	  "shortest put or get that a side without an engine leaves to the peer's engine thread" },
	{ "MODE", CHOICE, "auto", &config.mode, 0, 2, "auto smt dma",
	  "protocols: as calls ask and measurement says; through the ring if possible; past it" },
	{ "MODE_RING", NUMBER, "75", &config.mode_ring, 1, 101, NULL,
	  "percent of the peer's ring unread from which what is long goes past it; 101: never" },
	{ "MODE_LIGHT", NUMBER, "25", &config.mode_light, 0, 100, NULL,
	  "percent of the peer's ring unread up to which it takes what the engine cannot" },
	{ "MODE_QUEUE", NUMBER, "16", &config.mode_queue, 0, INT32_MAX, NULL,
	  "requests in a transmit queue beyond which what is long goes past the ring" },
	{ "MODE_DMA", NUMBER, "64", &config.mode_dma, 0, INT32_MAX, NULL,
	  "transfers in the engine beyond which others go through the ring, where it is light" },
	{ "MODE_BULK", SIZE, "64k", &config.mode_bulk, 1, INT64_C(8) << 30, NULL,
	  "shortest message that goes past a full ring or a long queue" },
	{ "MODE_SMALL", SIZE, "256k", &config.mode_small, 0, INT64_C(8) << 30, NULL,
	  "longest put or get that goes through the ring for a busy engine" },
	{ "MODE_LINK", CHOICE, "auto", &config.mode_link, 0, 2, "auto any never",
	  "which of several links messages leave while overloaded: a network's; any; none" },
	{ "MODE_SPREAD", NUMBER, "200", &config.mode_spread, 1, 60000000, NULL,
	  "with several network links: microseconds of work beyond which other links take over" },
	{ "AGGREGATE", CHOICE, "n", &config.aggregate, 0, 1, "n y",
	  "link and protocol are chosen by what all instances of the application see, too" },
	{ "CHECK", CHOICE, "0", &config.check, 0, 1, "0 1",
	  "checksum each packet sent; damage ends the receive as ECHECKSUM" },
	{ "HEADER", CHOICE, "none", &config.header, 0, 3, "none ids address misaddressed",
	  "what packets say of the addressee: nothing; ids; address, too; for tests, another's" },
	{ "NAME", TEXT, "", &config.name, 0, 31, NULL,
	  "name of this process at its peers, who sum its traffic by it; empty: the program's" },
	{ "TRACE", TEXT, "", &config.trace, 0, 0, NULL,
	  "file for the heads of all packets (slmpm_perftest --dump); %p is the process's number" },
	{ "LOG_LEVEL", CHOICE, "warn", &config.log_level, 0, 4, "none error warn info debug",
	  "what is logged on standard error" },
	{ "START", MODULO, "0", &config.start, 0, 0, NULL,
	  "for tests of the wrap-around: what this side's running totals and numbers begin with" },
	{ "ELEMENTS", NUMBER, "64", &config.elements, 1, 65536, NULL,
	  "accelerator elements of this node that can be reserved" },
	{ "RUN_DIR", TEXT, "", &config.run_dir, 0, 0, NULL,
	  "folder of the reservation file; empty: a system lock folder" },
	{ "HANDSHAKE_MS", NUMBER, "5000", &config.handshake_ms, 10, 600000, NULL,
	  "deadline of a connection's handshake" },
	{ "BACKLOG", NUMBER, "256", &config.backlog, 1, 65536, NULL,
	  "peers that have connected to a listener and wait to be accepted; more are refused" },
	{ "CONNECTIONS", NUMBER, "64", &config.connections, 1, 65536, NULL,
	  "connections to peers by address (slmpm_peer_at(3)) at once; beyond, idle ones close" },
	{ "LINKS", ROUTES, "1", &config.routes, 0, 0, NULL,
	  "links to a peer that wants them: up to 4, or fabrics with places: tcp@10.0.1.0/24" },
	{ "LINK", CHOICE, "auto", &config.link, 0, 4, "auto 0 1 2 3",
	  "number of the link to send by; auto: the first, until it is lost or overloaded" },
	{ "DEFAULT_SMT", FABRIC, "auto", &config.default_smt, 0, 0, NULL,
	  "fabric of messages that ask for none, while a link over it stands; auto: SLMPM_LINK" },
	{ "DEFAULT_PUT", FABRIC, "auto", &config.default_put, 0, 0, NULL,
	  "the same of puts; auto: the fabric by which memory is mapped" },
	{ "DEFAULT_RGET", FABRIC, "auto", &config.default_rget, 0, 0, NULL,
	  "the same of what is fetched: gets; auto: the fabric by which memory is mapped" },
	{ "LINKS_AFTER", SIZE, "64k", &config.links_after, 0, INT64_C(1) << 40, NULL,
	  "bytes between two peers after which secondary links are opened; 0: at once" },
	{ "LINKS_LOG", SIZE, "4m", &config.links_log, 4 << 10, 1 << 30, NULL,
	  "bytes sent that are kept, with several links, until the peer has acknowledged them" },
	{ "COLL_ALGORITHM", TEXT, "", &config.coll_algorithm, 0, 0, NULL,
	  "collectives by messages: an algorithm, or KIND:ALGORITHM, ..., as who founds sets it" },
	{ "COLL_SHORT", TEXT, "", &config.coll_short, 0, 0, NULL,
	  "collectives by messages: bytes of short vectors, KIND:BYTES, ...; slmpm_info --calibrate" },
	{ "COLL_SHORT_RANK", TEXT, "", &config.coll_short_rank, 0, 0, NULL,
	  "the same of reductions in the order of the ranks" },
	{ "COLL_ORDER", CHOICE, "rank", &config.coll_order, 0, 1, "rank any",
	  "floating-point reductions: by rank, so the same bits however done; any the same for all" },
	{ "DEAD_MS", NUMBER, "5000", &config.dead_ms, 100, 600000, NULL,
	  "silence after which a peer's machine on the network is given up" },
	{ "MONITOR_MS", NUMBER, "1000", &config.monitor_ms, 0, 3600000, NULL,
	  "milliseconds between two echoes on a link in use; 0: none, and no figures for others" },
	{ "TRACK", CHOICE, "auto", &config.track, 0, 4, "auto pagemap fault signal twin",
	  "how tracked mirrors find stores: the first that works; kernel; thread; signal; twin" },
	{ "TCP_ENGINE", CHOICE, "auto", &config.tcp_engine, 0, 4,
	  "auto plain uring uring-recv uring-send",
	  "system calls of tcp: auto, plain: read and write; io_uring both ways, or one" },
	{ "SECRET", HIDDEN, "", &config.secret, 0, 0, NULL,
	  "what both ends of a tcp:// connection know: 32 hex digits, or @FILE, of mode 0600" },
	{ "INSECURE", CHOICE, "n", &config.insecure, 0, 1, "n y",
	  "allow tcp:// addresses beyond this machine, where nothing protects what travels" },
	{ "TOPOLOGY", TEXT, "", &config.topology, 0, 0, NULL,
	  "file that says on which hosts elements lie (slmpm_topology(5)); slmpm_run sets it" },
	{ "CPUS", CPUS, "auto", &config.cpus, 0, 0, NULL,
	  "processors of accelerators started here: auto, inherit, cpuset or a list like 0-3,8" },
	{ "PCI", PCI, "", &config.pci, 0, 0, NULL,
	  "PCI addresses of this machine's elements, in order, with commas (slmpm_address(3))" },
	{ "EXPORT", TEXT, "", &config.export, 0, 0, NULL,
	  "variables, separated by commas, for accelerators on other hosts beside the settings" },
	{ "RUNNER", TEXT, "slmpm_run", &config.runner, 0, 0, NULL,
	  "slmpm_run, which starts accelerators on other hosts" },
	{ "START_MS", NUMBER, "30000", &config.start_ms, 100, 3600000, NULL,
	  "deadline of a start on another host, its files included" },
	{ "TIMEOUT", NUMBER, "-1", NULL, -1, INT32_MAX, NULL,
	  "milliseconds after which a blocking DaCS call gives up; -1 never" },
	{ "DACS_ABORT", CHOICE, "n", NULL, 0, 1, "n y",
	  "DaCS: abort this process when a child dies abnormally" },
	{ "DACS_KILL_MS", NUMBER, "1000", NULL, 0, 600000, NULL,
	  "DaCS: from SIGTERM to SIGKILL in dacs_de_kill" },
	{ "DACS_CWD_PREFIX", TEXT, "", NULL, 0, 0, NULL,
	  "DaCS: where accelerators' working directories are made; empty: the temporary folder" },
	{ "DACS_KEEP_CWD", CHOICE, "n", NULL, 0, 1, "n y",
	  "DaCS: keep those directories" },
	{ "DACS_STRICT", CHOICE, "n", NULL, 0, 1, "n y",
	  "DaCS: refuse puts and gets that are not aligned as a Cell processor wants them" },
};
/* clang-format on */
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char bad[160]; /* why the settings are unusable, or empty */

static const char *variable(const struct setting *s, char name[48])
{
	snprintf(name, 48, "SLMPM_%s", s->name);
	return secure_getenv(name);
}

/* Edits from one word to another; words are short. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b);

	if (n >= 63)
		return 99;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t change = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			row[j] = least_of(change, least_of(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

static bool known(const char *name, size_t length)
{
	static const char *const internal[] = {"PARENT", "DEATH_PIPE", "JOB",   "BUILD",
					       "SAN",    "EMULATOR",   "NATIVE"};
	const size_t more = sizeof(internal) / sizeof(internal[0]);

	for (size_t i = 0; i < SETTINGS + more; i++) {
		const char *one = i < SETTINGS ? settings[i].name : internal[i - SETTINGS];

		if (strlen(one) == length && !strncmp(one, name, length))
			return true;
	}
	return false;
}

static void warn_unknown(const char *name, size_t length)
{
	char word[64];
	const char *nearest = settings[0].name;
	size_t best = 99;

	snprintf(word, sizeof(word), "%.*s", (int)length, name);
	for (size_t i = 0; i < SETTINGS; i++) {
		size_t d = distance(word, settings[i].name);

		if (d < best) {
			best = d;
			nearest = settings[i].name;
		}
	}
	log_line(SLMPM_LOG_WARN, "there is no setting SLMPM_%s; did you mean SLMPM_%s?", word,
		 nearest);
}

static void read_all(void)
{
	extern char **environ;
	char full[48];

	for (size_t i = 0; i < SETTINGS; i++)
		setting_read(&settings[i], variable(&settings[i], full), bad, sizeof(bad));
	config.own_ring = secure_getenv("SLMPM_MODE_RING") != NULL;
	config.own_queue = secure_getenv("SLMPM_MODE_QUEUE") != NULL;
	config.own_dma = secure_getenv("SLMPM_MODE_DMA") != NULL;
	if (secure_getenv("SLMPM_LOG_LEVEL"))
		log_set_level((int)config.log_level);
	if (getauxval(AT_SECURE)) /* a set-uid program takes nothing of its caller's */
		return;
	for (char **at = environ; at && *at; at++) {
		const char *name;

		if (strncmp(*at, "SLMPM_", 6) != 0 || !strncmp(*at, "SLMPM_TEST_", 11))
			continue;
		name = *at + 6;
		if (!known(name, strcspn(name, "=")))
			warn_unknown(name, strcspn(name, "="));
	}
}

const struct config *config_get(void)
{
	pthread_once(&once, read_all);
	if (bad[0]) {
		error_set(SLMPM_EINVAL, "%s", bad);
		return NULL;
	}
	return &config;
}

/* Which processors the next accelerator would have, and why. */
static void add_cpus(const char *hint, char *text, size_t size)
{
	char now[192], why[80];
	size_t n = strlen(text);
	struct cpus cpus;

	if (!cpus_readable(hint, why) || cpus_choose(&cpus, "SLMPM_CPUS", hint) < 0)
		snprintf(now, sizeof(now), "none, for it cannot be had");
	else
		cpus_describe(&cpus, now, sizeof(now));
	snprintf(text + n, size - n, "; now %s", now);
}

int slmpm_setting_at(int i, struct slmpm_setting *out)
{
	struct slmpm_setting now = {.size = sizeof(now)};
	const struct setting *s;
	const char *text;
	char name[48];

	if (i < 0 || (size_t)i >= SETTINGS)
		return error_set(SLMPM_ENOENT, "setting %d", i);
	if (sized_check_own("slmpm_setting_at", out, sizeof(now)) < 0)
		return -SLMPM_EINVAL;
	s = &settings[i];
	text = variable(s, name);
	snprintf(now.name, sizeof(now.name), "%s", s->name);
	snprintf(now.initial, sizeof(now.initial), "%s", s->initial);
	setting_show(s, text && *text ? text : s->initial, now.value, sizeof(now.value));
	snprintf(now.origin, sizeof(now.origin), "%s", text && *text ? "environment" : "default");
	snprintf(now.text, sizeof(now.text), "%s%s%s%s", s->text, s->choices ? " (" : "",
		 s->choices ? s->choices : "", s->choices ? ")" : "");
	if (s->kind == CPUS)
		add_cpus(now.value, now.text, sizeof(now.text));
	sized_give_own(out, &now, sizeof(now));
	return 0;
}
