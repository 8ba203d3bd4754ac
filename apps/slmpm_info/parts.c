/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of what slmpm_info tells, as JSON. */
#include "apps/slmpm_info/info.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Text of unknown encoding: what is not UTF-8 becomes question marks. */
json_t *info_text(const char *s)
{
	json_t *value = json_string(s);
	char copy[4096];

	if (value)
		return value;
	snprintf(copy, sizeof(copy), "%s", s);
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

json_t *info_fabrics(void)
{
	struct slmpm_fabric_info f = {.size = sizeof(f)};
	json_t *all = json_array();

	for (int i = 0; slmpm_fabric_at(i, &f) >= 0; i++)
		json_array_append_new(
			all, json_pack("{ss sb so so so sI}", "name", f.name, "available",
				       (int)f.available, "capabilities", info_text(f.capabilities),
				       "commit", info_text(f.commit), "detail", info_text(f.detail),
				       "packet_max", (json_int_t)f.packet_max));
	return all;
}

json_t *info_settings(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	json_t *all = json_array();

	for (int i = 0; slmpm_setting_at(i, &s) >= 0; i++)
		json_array_append_new(all,
				      json_pack("{ss so so ss so}", "name", s.name, "value",
						info_text(s.value), "initial", info_text(s.initial),
						"origin", s.origin, "text", info_text(s.text)));
	return all;
}

json_t *info_checks(bool *good)
{
	static const char *const states[] = {"needed", "replaced", "works"};
	struct slmpm_check c = {.size = sizeof(c)};
	json_t *all = json_array();

	for (int i = 0; slmpm_check_at(i, &c) >= 0; i++) {
		int state = c.state < 0 ? 0 : c.state > 0 ? 2 : 1;

		*good = *good && state;
		json_array_append_new(all, json_pack("{ss ss so}", "name", c.name, "state",
						     states[state], "detail", info_text(c.detail)));
	}
	return all;
}

json_t *info_memory(long peers)
{
	uint64_t each = slmpm_memory_per_peer();

	return json_pack("{sI sI sI}", "peers", (json_int_t)peers, "bytes_per_peer",
			 (json_int_t)each, "bytes", (json_int_t)(each * (uint64_t)peers));
}

#define FIGURE(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct slmpm_stats, name)                                          \
	}
static const struct {
	const char *name;
	size_t at;
} figures[] = {
	FIGURE(sent_messages),
	FIGURE(sent_packets),
	FIGURE(sent_bytes),
	FIGURE(received_messages),
	FIGURE(received_packets),
	FIGURE(received_bytes),
	FIGURE(out_produced),
	FIGURE(out_consumed),
	FIGURE(out_segments),
	FIGURE(in_produced),
	FIGURE(in_consumed),
	FIGURE(in_segments),
	FIGURE(out_room),
	FIGURE(in_unread),
	FIGURE(remote_writes),
	FIGURE(remote_reads),
	FIGURE(produced_publications),
	FIGURE(sleeps),
	FIGURE(wakeups),
	FIGURE(bells),
	FIGURE(queue_depth),
	FIGURE(unexpected),
	FIGURE(violations),
	FIGURE(checksum_errors),
	FIGURE(puts),
	FIGURE(put_bytes),
	FIGURE(gets),
	FIGURE(get_bytes),
	FIGURE(atomics),
	FIGURE(served),
	FIGURE(notifications),
	FIGURE(refused),
	FIGURE(ams),
	FIGURE(am_unhandled),
	FIGURE(am_writes),
	FIGURE(am_reads),
	FIGURE(am_atomics),
	FIGURE(tag_writes),
	FIGURE(tag_reads),
	FIGURE(am_served),
	FIGURE(tag_served),
	FIGURE(rget_messages),
	FIGURE(rget_bytes),
	FIGURE(push_messages),
	FIGURE(push_bytes),
	FIGURE(shared_puts),
	FIGURE(shared_bytes),
	FIGURE(fifo_puts),
	FIGURE(fifo_bytes),
	FIGURE(fifo_entries),
	FIGURE(asked),
	FIGURE(asked_bytes),
	FIGURE(asked_here),
	FIGURE(asked_here_bytes),
	FIGURE(copied_puts),
	FIGURE(copied_put_bytes),
	FIGURE(copied_gets),
	FIGURE(copied_get_bytes),
	FIGURE(engine_out),
	FIGURE(engine_out_bytes),
	FIGURE(engine_in),
	FIGURE(engine_in_bytes),
	FIGURE(helped_out_bytes),
	FIGURE(helped_in_bytes),
	FIGURE(rma_queue),
	FIGURE(rma_queue_peak),
	FIGURE(am_refused),
	FIGURE(misaddressed),
};

static json_t *counters(const struct slmpm_stats *s)
{
	static const char *const causes[SLMPM_CAUSE_COUNT] = {"threshold", "sleep", "flush",
							      "every"};
	json_t *all = json_pack("{si so}", "pid", s->pid, "link", info_text(s->link));
	json_t *published = json_object();

	for (int i = 0; i < SLMPM_CAUSE_COUNT; i++)
		json_object_set_new(published, causes[i],
				    json_integer((json_int_t)s->publications[i]));
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		uint64_t value;

		memcpy(&value, (const char *)s + figures[i].at, sizeof(value));
		json_object_set_new(all, figures[i].name, json_integer((json_int_t)value));
		if (figures[i].at == offsetof(struct slmpm_stats, remote_reads))
			json_object_set_new(all, "publications", published);
	}
	return all;
}

/* Every context of the process, every peer of a context; NULL: explained on standard error. */
json_t *info_stats(long pid)
{
	const struct slmpm_stats_page *page;
	json_t *all = json_array();
	int rc, index = 0;

	for (; (rc = slmpm_stats_attach((int)pid, index, &page)) >= 0; index++) {
		for (uint32_t i = 0; i < page->peers; i++) {
			struct slmpm_stats s = {0};
			size_t known = page->peer_size < sizeof(s) ? page->peer_size : sizeof(s);
			json_t *peer;

			memcpy(&s, slmpm_stats_of(page, i), known);
			peer = counters(&s);
			json_object_set_new(peer, "context", json_integer(index));
			json_array_append_new(all, peer);
		}
		slmpm_stats_detach(page);
	}
	if (index)
		return all;
	json_decref(all);
	slmpm_perror("slmpm_info");
	return NULL;
}
