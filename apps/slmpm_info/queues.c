/* SPDX-License-Identifier: BSD-3-Clause */
/* The work queues of another process, as JSON and for people. */
#include "apps/slmpm_info/info.h"

#include "apps/lib/queues.h"

static json_t *wait_object(const struct slmpm_stats_wait *w)
{
	return json_pack("{si sI ss sI sI sI sf}", "channel", (int)w->channel, "entry",
			 (json_int_t)w->entry, "for", queue_subject(w), "subject",
			 (json_int_t)w->subject, "value", (json_int_t)w->value, "total",
			 (json_int_t)w->total, "seconds", queue_seconds(w));
}

static json_t *queue_object(const struct slmpm_stats_queue *q, int context)
{
	json_t *waits = json_array(), *links = json_array(), *o;

	for (int i = 0; i < queue_links(q); i++)
		json_array_append_new(links, json_integer((json_int_t)q->by_link[i]));
	for (uint32_t i = 0; i < q->wait_count; i++)
		json_array_append_new(waits, wait_object(&q->waits[i]));
	o = json_pack("{si sI}", "context", context, "queue", (json_int_t)q->queue);
	for (size_t i = 0; i < QUEUE_FIGURES; i++)
		json_object_set_new(o, queue_figures[i].name,
				    json_integer((json_int_t)queue_figure(q, i)));
	json_object_set_new(o, "first_failed", json_integer((json_int_t)q->first_failed));
	json_object_set_new(o, "status", json_integer(q->status));
	json_object_set_new(o, "waiting", json_integer(q->waiting));
	json_object_set_new(o, "by_link", links);
	json_object_set_new(o, "waits", waits);
	return o;
}

json_t *info_queues(long pid)
{
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue q = {.size = 0};
	json_t *all = json_array();

	for (int index = 0; slmpm_stats_attach((int)pid, index, &page) >= 0; index++) {
		for (uint32_t i = 0; i < page->queues; i++)
			if (slmpm_stats_queue(page, i, &q, sizeof(q)) == 1)
				json_array_append_new(all, queue_object(&q, index));
		slmpm_stats_detach(page);
	}
	return all;
}

static void print_wait(const json_t *w)
{
	printf("  waits: channel %" JSON_INTEGER_FORMAT ", entry %" JSON_INTEGER_FORMAT
	       ": %s %" JSON_INTEGER_FORMAT " at %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
	       ", for %.3f s\n",
	       json_integer_value(json_object_get(w, "channel")),
	       json_integer_value(json_object_get(w, "entry")), info_string(w, "for"),
	       json_integer_value(json_object_get(w, "subject")),
	       json_integer_value(json_object_get(w, "total")),
	       json_integer_value(json_object_get(w, "value")),
	       json_real_value(json_object_get(w, "seconds")));
}

void info_print_queues(const json_t *all)
{
	const json_t *queue, *value, *w;
	const char *key;
	size_t i, k;

	json_array_foreach(all, i, queue)
	{
		printf("queue %zu\n", i);
		json_object_foreach((json_t *)(uintptr_t)queue, key, value)
		{
			if (json_is_integer(value))
				printf("  %-22s %" JSON_INTEGER_FORMAT "\n", key,
				       json_integer_value(value));
		}
		json_array_foreach(json_object_get(queue, "by_link"), k, value)
			printf("  by link %-14zu %" JSON_INTEGER_FORMAT "\n", k,
			       json_integer_value(value));
		json_array_foreach(json_object_get(queue, "waits"), k, w) print_wait(w);
	}
}
