/* SPDX-License-Identifier: BSD-3-Clause */
/* By which protocol each size goes, and why: asked of a real pair with the present settings. */
#include <string.h>

#include "apps/slmpm_info/info.h"
#include "apps/slmpm_info/lead.h"
#include "apps/slmpm_info/pair.h"

#define LEARNED                                                                                    \
	48 /* rounds before those that are counted: the library learns what each way takes */

enum call { CALL_SEND, CALL_PUT, CALL_GET, CALLS };

static const char *const calls[CALLS] = {"send", "put", "get"};

static uint32_t counted(uint64_t size)
{
	return size < PAIR_BYTES ? LEARNED : LEARNED / 6; /* these take long */
}

static int make_call(struct lead *pair, enum call call, uint64_t size)
{
	int rc;

	switch (call) {
	case CALL_SEND:
		rc = slmpm_send(pair->peer, PAIR_DATA, pair->from, size, PAIR_PATIENCE);
		return rc < 0 ? rc : lead_answer(pair);
	case CALL_PUT: return slmpm_put(pair->there, 0, pair->from, size, NULL, NULL);
	default: return slmpm_get(pair->there, 0, pair->from, size, NULL, NULL);
	}
}

static int repeat(struct lead *pair, enum call call, uint64_t size, uint32_t times)
{
	int rc = 0;

	for (uint32_t i = 0; i < times && rc >= 0; i++)
		rc = make_call(pair, call, size);
	return rc;
}

/* {"protocol":..., "reason":..., "share":...}: the most frequent choice between the two looks. */
static json_t *describe(const struct slmpm_monitor *before, const struct slmpm_monitor *after)
{
	int protocol = 0, reason = 0;
	uint64_t most = 0, all = 0;

	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int r = 0; r < SLMPM_REASONS; r++) {
			uint64_t n = after->reasons[p][r] - before->reasons[p][r];

			all += n;
			if (n <= most)
				continue;
			most = n;
			protocol = p;
			reason = r;
		}
	return json_pack("{s:s, s:s, s:f}", "protocol", slmpm_protocol_name(protocol), "reason",
			 slmpm_reason_name(reason), "share",
			 all ? (double)most / (double)all : 0.0);
}

/* NULL: explained on standard error. */
static json_t *try_call(struct lead *pair, enum call call, uint64_t size)
{
	struct slmpm_monitor before = {.size = 0}, after = {.size = 0};
	uint32_t times = counted(size);
	int rc = call == CALL_SEND ? lead_order(pair, size, LEARNED + times, PAIR_EACH) : 0;

	if (rc >= 0)
		rc = repeat(pair, call, size, LEARNED);
	if (rc >= 0)
		rc = slmpm_monitor(pair->peer, &before, sizeof(before));
	if (rc >= 0)
		rc = repeat(pair, call, size, times);
	if (rc >= 0)
		rc = slmpm_monitor(pair->peer, &after, sizeof(after));
	if (rc >= 0)
		return describe(&before, &after);
	slmpm_perror("slmpm_info: protocols");
	return NULL;
}

/* Each call at one size, or NULL. */
static json_t *try_size(struct lead *pair, uint64_t size)
{
	json_t *row = json_pack("{s:I, s:s}", "bytes", (json_int_t)size, "path", pair->path);

	for (int call = 0; call < CALLS; call++) {
		json_t *how = try_call(pair, (enum call)call, size);

		if (!how) {
			json_decref(row);
			return NULL;
		}
		json_object_set_new(row, calls[call], how);
	}
	return row;
}

json_t *info_protocols(void)
{
	static const uint64_t sizes[] = {8,      64,     512,    4096,    16384,   32768,     65536,
					 131072, 262144, 524288, 1048576, 2097152, PAIR_BYTES};
	struct lead pair = {.mapped = false};
	json_t *all = json_array(), *row;

	if (lead_begin(&pair, -1, NULL) < 0) {
		slmpm_perror("slmpm_info: protocols: second process");
		json_decref(all);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		row = try_size(&pair, sizes[i]);
		if (!row) {
			json_decref(all);
			return NULL;
		}
		json_array_append_new(all, row);
	}
	lead_end(&pair);
	return all;
}

static void print_cell(const json_t *row, const char *call, int width)
{
	const json_t *how = json_object_get(row, call);
	double share = json_real_value(json_object_get(how, "share"));
	char text[64], of[16] = "";

	if (share < 0.995)
		snprintf(of, sizeof(of), ", %.0f %%", 100 * share);
	snprintf(text, sizeof(text), "%s, %s%s", info_string(how, "protocol"),
		 info_string(how, "reason"), of);
	printf("  %-*s", width, text);
}

void info_print_protocols(const json_t *all)
{
	const json_t *row;
	size_t i;

	printf("%9s  %-21s  %-21s  %s\n", "bytes", "message", "put", "get");
	json_array_foreach(all, i, row)
	{
		printf("%9" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(row, "bytes")));
		for (int call = 0; call < CALLS; call++)
			print_cell(row, calls[call], call < CALLS - 1 ? 21 : 0);
		putchar('\n');
	}
	row = json_array_get(all, 0);
	if (row)
		printf("the other's memory: %s\n", info_string(row, "path"));
}
