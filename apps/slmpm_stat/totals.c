/* SPDX-License-Identifier: BSD-3-Clause */
/* By peer what all connections with it have carried, closed ones included (slmpm_totals_read). */
#include "apps/slmpm_stat/stat.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST (SLMPM_TOTALS_MAX + 1)

#define FIGURE(name, help)                                                                         \
	{                                                                                          \
#name, help, offsetof(struct slmpm_totals, name)                                   \
	}
const struct total_figure total_figures[] = {
	FIGURE(connections, "Connections that have stood"),
	FIGURE(refused, "Of the others: connections that never came to stand"),
	FIGURE(ids, "Of the others: ids that were kept once"),
	FIGURE(sent_messages, "Messages sent over all connections"),
	FIGURE(sent_packets, "Packets of them"),
	FIGURE(sent_bytes, "Bytes of them"),
	FIGURE(sent_segments, "Segments written"),
	FIGURE(received_messages, "Messages received over all connections"),
	FIGURE(received_packets, "Packets of them"),
	FIGURE(received_bytes, "Bytes of them"),
	FIGURE(received_segments, "Segments read"),
	FIGURE(puts, "Puts begun here"),
	FIGURE(put_bytes, "Bytes of them"),
	FIGURE(gets, "Gets begun here"),
	FIGURE(get_bytes, "Bytes of them"),
	FIGURE(atomics, "Atomic operations begun here"),
	FIGURE(served, "Operations of the peer done for it"),
	FIGURE(remote_reads, "Operations and pieces that read its memory"),
	FIGURE(violations, "Rules that it has broken"),
	FIGURE(checksum_errors, "Packets that were damaged"),
	FIGURE(misaddressed, "Packets for another accelerator, process or place"),
};
const size_t total_figure_count = sizeof(total_figures) / sizeof(*total_figures);

uint64_t total_value(const struct slmpm_totals *t, size_t figure)
{
	uint64_t value;

	memcpy(&value, (const unsigned char *)t + total_figures[figure].at, sizeof(value));
	return value;
}

void gather_totals(struct gathered *g, int pid, const char *program)
{
	static struct slmpm_totals all[MOST];
	int n = slmpm_totals_read(pid, all, sizeof(*all), MOST);
	struct total *more;

	if (n <= 0)
		return;
	more = realloc(g->totals, (g->total_count + (size_t)n) * sizeof(*more));
	if (!more)
		return;
	g->totals = more;
	for (int i = 0; i < n && i < MOST; i++) {
		struct total *total = &more[g->total_count++];

		*total = (struct total){.pid = pid, .place = (int)all[i].place, .t = all[i]};
		snprintf(total->program, sizeof(total->program), "%s", program);
		word_tame(total->t.id);
	}
}

void totals_text(const struct gathered *g)
{
	char sent[16], received[16], bytes_out[16], bytes_in[16], puts[16], gets[16];

	printf("%7s %-15s %-31s %5s %9s %7s %7s %7s %7s %7s %7s %7s %7s\n", "PID", "PROGRAM", "ID",
	       "LIVE", "CONNECTED", "OUT", "IN", "OUTB", "INB", "PUTS", "GETS", "REFUSED",
	       "BROKEN");
	for (size_t i = 0; i < g->total_count; i++) {
		const struct total *total = &g->totals[i];
		const struct slmpm_totals *t = &total->t;

		printf("%7d %-15.15s %-31.31s %5" PRIu32 " %9" PRIu64
		       " %7s %7s %7s %7s %7s %7s %7" PRIu64 " %7" PRIu64 "\n",
		       total->pid, total->program, t->id, t->live, t->connections,
		       word_amount(sent, (double)t->sent_messages),
		       word_amount(received, (double)t->received_messages),
		       word_amount(bytes_out, (double)t->sent_bytes),
		       word_amount(bytes_in, (double)t->received_bytes),
		       word_amount(puts, (double)t->puts), word_amount(gets, (double)t->gets),
		       t->refused, t->violations);
	}
}
