/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of metrics and bars. */
#include "tests/bench/cell.h"

#include <string.h>

const size_t SIZE[SIZES] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
static const char *const NAME[SIZES] = {"8",   "64",  "256",  "1K", "4K",
					"16K", "64K", "256K", "1M", "4M"};

const struct metric_kind KIND[METRICS] = {
	[LAT] = {.name = "lat",
		 .title = "latency one way",
		 .unit = "us",
		 .order = "send_lat",
		 .options = "",
		 .key = "lat_us",
		 .ours = "ours",
		 .rival = "deliver",
		 .shown = "limit",
		 .bar = {0.75, 0.80, 0.80, 0.90, 0.95, 0.95, 0.95, 0.85, 0.85, 0.65}},
	[TLAT] = {.name = "tlat",
		  .title = "touched latency one way",
		  .unit = "us",
		  .order = "send_lat",
		  .options = " touch",
		  .key = "lat_us",
		  .ours = "ours",
		  .rival = "deliver",
		  .shown = "limit",
		  .bar = {0.80, 0.80, 0.85, 0.85, 0.95, 1.0, 1.0, 0.95, 0.95, 0.90}},
	[BW] = {.name = "bw",
		.title = "stream",
		.unit = "MB/s",
		.order = "send_bw",
		.options = "",
		.key = "bytes_per_s",
		.ours = "ours",
		.rival = "deliver",
		.shown = "limit",
		.more = 1,
		.at_once = 256,
		.bar = {1.15, 1.15, 1.5, 1.05, 1.15, 1.15, 1.05, 1.05, 1.05, 1.05}},
	[TBW] = {.name = "tbw",
		 .title = "touched stream",
		 .unit = "MB/s",
		 .order = "send_bw",
		 .options = " touch",
		 .key = "bytes_per_s",
		 .ours = "ours",
		 .rival = "deliver",
		 .shown = "limit-touched",
		 .more = 1,
		 .at_once = 256,
		 .bar = {1.5, 1.5, 1.3, 1.0, 1.05, 1.05, 1.0, 1.0, 1.0}},
	[LOAN] = {.name = "loan",
		  .title = "touched latency in place",
		  .unit = "us",
		  .order = "loan_lat",
		  .options = " touch",
		  .key = "lat_us",
		  .ours = "ours",
		  .rival = "inplace",
		  .bar = {0.25, 0.25, 0.25, 0.40, 0.60, 0.75, 0.85, 0.90, 0.90}},
	[PUT] = {.name = "put",
		 .title = "latency of a put that the target polls for",
		 .unit = "us",
		 .order = "put_lat",
		 .options = "",
		 .key = "lat_us",
		 .ours = "ours",
		 .rival = "put",
		 .bar = {1.1, 0, 0, 0, 1.1, 1.1, 1.1, 1.1, 1.05, 0.70}},
	[PUT_BW] = {.name = "put-bw",
		    .title = "stream of puts",
		    .unit = "MB/s",
		    .order = "put_bw",
		    .options = "",
		    .key = "bytes_per_s",
		    .ours = "ours",
		    .rival = "put",
		    .more = 1,
		    .bar = {0.95, 0, 0, 0, 0.95, 1.05, 1.05, 1.3, 1.3, 1.05}},
	[P99] = {.name = "p99",
		 .title = "latency one way, 99th percentile",
		 .unit = "us",
		 .order = "send_lat",
		 .options = " each",
		 .key = "lat_us_p99",
		 .ours = "ours",
		 .rival = "deliver",
		 .bar = {1, 1, 1, 1, 1, 0, 1, 0, 1}},
	[ASLEEP_SOCKET] = {.name = "asleep-socket",
			   .title = "to a sleeper, against a socket with epoll",
			   .unit = "us",
			   .order = "send_lat",
			   .options = " idle 1000",
			   .key = "lat_us_p50",
			   .ours = "ours",
			   .rival = "asleep-socket",
			   .count = 20,
			   .bar = {1.15}},
	[ASLEEP_UCX] = {.name = "asleep-ucx",
			.title = "to a sleeper, against UCX with events",
			.unit = "us",
			.order = "send_lat",
			.options = " idle 1000",
			.key = "lat_us_p50",
			.ours = "ours",
			.rival = "asleep-ucx",
			.count = 20,
			.bar = {1.0}},
	[ONE_CPU] = {.name = "onecpu",
		     .title = "both on one CPU, against a pipe",
		     .unit = "us",
		     .order = "send_lat",
		     .options = "",
		     .key = "lat_us",
		     .ours = "ours-onecpu",
		     .rival = "onecpu",
		     .bar = {1.2}},
	[CHECKS] = {.name = "checks",
		    .title = "stream, against a build without peer-data checks",
		    .unit = "MB/s",
		    .order = "send_bw",
		    .options = "",
		    .key = "bytes_per_s",
		    .ours = "ours",
		    .rival = "unchecked",
		    .more = 1,
		    .at_once = 256,
		    .bar = {0.9}},
	[AM] = {.name = "am",
		.title = "active message, against send and receive",
		.unit = "us",
		.order = "am_lat",
		.rival_order = "send_lat",
		.options = "",
		.key = "lat_us",
		.ours = "ours-am",
		.rival = "ours-send",
		.bar = {1.1}},
	[FETCH_ADD] = {.name = "fadd",
		       .title = "fetch-and-add on a mapped word, over the bare instruction",
		       .unit = "of the bare one",
		       .order = "fadd",
		       .options = "",
		       .key = "bare_ratio",
		       .ours = "ours",
		       .judgement = ALONE,
		       .count = 8192,
		       .column = {"8"},
		       .bar = {1.1}},
	[MIRROR] = {.name = "mirror",
		    .title = "a change until it is seen in a mirror, against send and receive",
		    .unit = "us",
		    .order = "mirror_lat",
		    .rival_order = "send_lat",
		    .options = "",
		    .key = "lat_us",
		    .ours = "ours-mirror",
		    .rival = "ours-send",
		    .bar = {1.2}},
	[MIRROR_READ] = {.name = "mirror-read",
			 .title = "load of mirrored memory, over one of private memory",
			 .unit = "of the plain one",
			 .order = "mirror_read",
			 .options = "",
			 .key = "bare_ratio",
			 .ours = "ours-mirror",
			 .judgement = ALONE,
			 .count = 1 << 22,
			 .column = {"8"},
			 .bar = {1.1}},
	[MIRROR_READS] = {.name = "mirror-reads",
			  .title = "loads of mirrored memory, against gets",
			  .unit = "MB/s",
			  .order = "mirror_reads",
			  .rival_order = "get_reads",
			  .options = "",
			  .key = "bytes_per_s",
			  .ours = "ours-mirror",
			  .rival = "ours-send",
			  .more = 1,
			  .bar = {20}},
	[SETUP] = {.name = "setup",
		   .title = "starting so many accelerators, less fork and exec",
		   .unit = "ms",
		   .order = "setup",
		   .options = "",
		   .key = "value",
		   .ours = "life",
		   .rival = "bare",
		   .judgement = DIFFERENCE,
		   .count = 1,
		   .column = {"1", "64"},
		   .bar = {2, 150}},
	[DEATH] = {.name = "death",
		   .title = "from SIGKILL of a peer to the survivor's error",
		   .unit = "ms",
		   .order = "death",
		   .options = "",
		   .key = "value",
		   .ours = "life",
		   .judgement = ALONE,
		   .count = 1,
		   .column = {"recv", "epoll", "spin", "try"},
		   .bar = {5, 5, 5, 5},
		   .worst = 100},
	[FAIR] = {.name = "fair",
		  .title = "the slowest of 64 senders, over their mean",
		  .unit = "of the mean",
		  .order = "fair",
		  .options = "",
		  .key = "value",
		  .ours = "life",
		  .judgement = ONCE,
		  .more = 1,
		  .column = {"64"},
		  .bar = {0.5}},
	[IDLE] = {.name = "idle",
		  .title = "wake-ups of a pair asleep",
		  .unit = "wake-ups",
		  .order = "idle",
		  .options = "",
		  .key = "value",
		  .ours = "life",
		  .judgement = ONCE,
		  .column = {"pair"},
		  .bar = {0}},
	[IDLE_CPU] = {.name = "idle-cpu",
		      .title = "processor time of a pair in the second after its last message",
		      .unit = "ms",
		      .order = "idle-cpu",
		      .options = "",
		      .key = "value",
		      .ours = "life",
		      .judgement = ALONE,
		      .count = 1000,
		      .every = 20,
		      .column = {"pair"},
		      .bar = {1}},
#include "tests/bench/pause_kinds.inc"
	[NET_LAT] = {.name = "net-lat",
		     .title = "latency one way over TCP",
		     .unit = "us",
		     .order = "send_lat",
		     .options = "",
		     .key = "lat_us",
		     .ours = "net-ours",
		     .rival = "net",
		     .shown = "net-plain",
		     .net = 1,
		     .bar = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	[NET_BW] = {.name = "net-bw",
		    .title = "stream over TCP",
		    .unit = "MB/s",
		    .order = "send_bw",
		    .options = "",
		    .key = "bytes_per_s",
		    .ours = "net-ours",
		    .rival = "net",
		    .shown = "net-socket",
		    .net = 1,
		    .more = 1,
		    .at_once = 4096,
		    .bar = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	[NET_RAW] = {.name = "net-raw",
		     .title = "latency one way, against a spinning TCP socket",
		     .unit = "us",
		     .order = "send_lat",
		     .options = "",
		     .key = "lat_us",
		     .ours = "net-ours",
		     .rival = "net-spin",
		     .net = 1,
		     .bar = {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15}},
	[NET_STREAM] = {.name = "net-stream",
			.title = "stream, against the best TCP socket and iperf3",
			.unit = "MB/s",
			.order = "send_bw",
			.options = "",
			.key = "bytes_per_s",
			.ours = "net-ours",
			.rival = "net-stream",
			.net = 1,
			.more = 1,
			.bar = {0, 0, 0, 0, 0, 0, 0, 0.95, 0.95, 0.95}},
	[NET_RATE] = {.name = "net-rate",
		      .title = "stream, against a TCP socket with a send a message",
		      .unit = "MB/s",
		      .order = "send_bw",
		      .options = "",
		      .key = "bytes_per_s",
		      .ours = "net-ours",
		      .rival = "net-rate",
		      .net = 1,
		      .more = 1,
		      .at_once = 256,
		      .bar = {0, 5}},
	[NET_ASLEEP] = {.name = "net-asleep",
			.title = "to a sleeper, against a TCP socket with epoll",
			.unit = "us",
			.order = "send_lat",
			.options = " idle 1000",
			.key = "lat_us_p50",
			.ours = "net-ours",
			.rival = "net-asleep",
			.net = 1,
			.count = 20,
			.bar = {1.15}},
	[NET_MIRROR] = {.name = "net-mirror",
			.title = "a change until it is seen in a mirror over TCP, against send",
			.unit = "us",
			.order = "mirror_lat",
			.rival_order = "send_lat",
			.options = "",
			.key = "lat_us",
			.ours = "net-ours-mirror",
			.rival = "net-ours-send",
			.net = 1,
			.bar = {1.2}},
	[NET_MIRROR_READS] = {.name = "net-mirror-reads",
			      .title = "loads of mirrored memory, against gets over TCP",
			      .unit = "MB/s",
			      .order = "mirror_reads",
			      .rival_order = "get_reads",
			      .options = "",
			      .key = "bytes_per_s",
			      .ours = "net-ours-mirror",
			      .rival = "net-ours-send",
			      .net = 1,
			      .more = 1,
			      .bar = {1000}},
};

const double HOPS_BAR[SIZES] = {3.2, 4.3, 5.2};

static int choosing;
static unsigned char chosen[METRICS][SIZES];

const char *cell_name(enum metric m, int size)
{
	return KIND[m].column[0] ? KIND[m].column[size] : NAME[size];
}

const char *cell_word(enum metric m, int size)
{
	static char text[24];

	if (KIND[m].column[0])
		return KIND[m].column[size];
	snprintf(text, sizeof text, "%zu", SIZE[size]);
	return text;
}

const char *cell_key(enum metric m, int size)
{
	return KIND[m].column_key[size] ? KIND[m].column_key[size] : KIND[m].key;
}

const char *cell_rival(enum metric m, int size)
{
	return KIND[m].column_rival[size] ? KIND[m].column_rival[size] : KIND[m].rival;
}

int cell_shares(enum metric m, int size)
{
	return KIND[m].column_order[size] && !KIND[m].turns;
}

int cell_is_silent(enum metric m, int size)
{
	return cell_shares(m, size) && strncmp(KIND[m].column[size], "1s/", 3) == 0;
}

int cell_has_bar(enum metric m, int size)
{
	return KIND[m].column[0] ? KIND[m].column[size] != NULL : KIND[m].bar[size] > 0;
}

int cell_exists(enum metric m, int size)
{
	return cell_has_bar(m, size) || (m <= LOAN && SIZE[size] <= (size_t)1 << 20);
}

int cell_chosen(enum metric m, int size)
{
	return cell_exists(m, size) && (choosing ? chosen[m][size] : !KIND[m].net);
}

static int is_named(enum metric m, const char *name)
{
	int after_pause = m >= PAUSE_FIRST && m <= PAUSE_TURNS;

	return strcmp(KIND[m].name, name) == 0 || (KIND[m].net && strcmp(name, "net") == 0) ||
	       (after_pause && strcmp(name, "pause") == 0);
}

static int choose(const char *word)
{
	char name[32] = "", size[16] = "";
	int found = 0;

	sscanf(word, "%31[^:]:%15s", name, size);
	for (int m = 0; m < METRICS; m++)
		for (int s = 0; s < SIZES && is_named((enum metric)m, name); s++)
			if (cell_exists((enum metric)m, s) &&
			    (!*size || strcmp(cell_name((enum metric)m, s), size) == 0))
				found = chosen[m][s] = 1;
	return found;
}

int cells_choose(const char *list, const char **bad)
{
	static char words[1024];
	char *save;

	snprintf(words, sizeof words, "%s", list);
	choosing = 1;
	for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save))
		if (!choose(w)) {
			*bad = w;
			return -1;
		}
	return 0;
}

void cells_list(FILE *to)
{
	for (int m = 0; m < METRICS; m++) {
		fprintf(to, "%s:", KIND[m].name);
		for (int z = 0; z < SIZES; z++)
			if (cell_exists((enum metric)m, z))
				fprintf(to, " %s", cell_name((enum metric)m, z));
		fputc('\n', to);
	}
	fputs("pause: all of those after a pause\n", to);
	fputs("net: all of those over TCP, which are measured only where asked for\n", to);
}
