/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that is late may be stopped, traced or busy: what can be known of it (late.h). */
#include "slmpm/completion/late.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "slmpm/endpoint.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/base/clock.h"

#define INSPECT_TICKS (UINT64_C(20) << 20) /* 4 to 20 ms: between two of calls that only try */
#define SILENT_MS     1000                 /* without a read, though there is something to read */

/* The letter of /proc/PID/stat, or '?'. */
static char late_state_of(int pid)
{
	char path[64], line[256], *after = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return '?';
	if (fgets(line, sizeof(line), f))
		after = strrchr(line, ')');
	fclose(f);
	return after && after[1] == ' ' ? after[2] : '?';
}

/* A stopped or traced process cannot answer, and is not dead for it. */
const char *late_process(int pid)
{
	switch (late_state_of(pid)) {
	case 'T': return "its process is stopped";
	case 't': return "it is being traced";
	default: return NULL;
	}
}

static void inspect_process(struct endpoint *ep, int pid)
{
	struct reaction *r = ep->rooms->reaction;
	const char *why = late_process(pid);

	if (!why) {
		r->reported = false; /* it goes on: the next stop is reported again */
		return;
	}
	if (!r->reported)
		context_event(ep->ctx, ep, SLMPM_EVENT_SUSPECT, "its process is stopped");
	r->reported = true;
	snprintf(r->reason, sizeof(r->reason), "%s", why);
}

/* On another machine, or in another namespace of processes. */
static void inspect_totals(struct endpoint *ep)
{
	struct reaction *r = ep->rooms->reaction;
	const struct fabric_counts *c = &ep->link.port->counts;
	uint64_t now = clock_now(), ms;

	link_count(ep);
	if (c->consumed_seen == c->produced) {
		r->since = 0;
		return;
	}
	if (!r->since || r->read != c->consumed_seen) {
		r->since = now;
		r->read = c->consumed_seen;
	}
	ms = (now - r->since) / 1000000;
	if (ms >= SILENT_MS)
		snprintf(r->reason, sizeof(r->reason), "it has read nothing for %llu s",
			 (unsigned long long)ms / 1000);
}

/* WAIT: so many ticks are to lie between two inspections. */
static void late_inspect(struct endpoint *ep, uint64_t wait)
{
	uint64_t now = clock_ticks();

	if (ep->rooms->reaction->inspected && now - ep->rooms->reaction->inspected < wait)
		return;
	ep->rooms->reaction->inspected = now | 1;
	ep->rooms->reaction->reason[0] = 0;
	if (ep->life->pid && !ep->life->remote[0]) {
		inspect_process(ep, ep->life->pid);
		return;
	}
	if (ep->life->beside)
		inspect_process(ep, (int)ep->life->header.process);
	if (!ep->rooms->reaction->reason[0] && ep->state == SLMPM_PEER_UP)
		inspect_totals(ep);
}

static bool is_suspect(struct endpoint *ep, uint64_t wait)
{
	bool runs = ep->state == SLMPM_PEER_UP || ep->state == SLMPM_PEER_CONNECTING;

	/* The number of a process that was started here stays its own until slmpm_join. */
	if (!runs && !ep->rooms->process)
		return false;
	late_inspect(ep, wait);
	return ep->rooms->reaction->reason[0];
}

const char *late_suspicion(struct endpoint *ep)
{
	return is_suspect(ep, 0) ? ep->rooms->reaction->reason : NULL;
}

/* As many inspections a second, however many peers there are. */
static struct endpoint *suspect_of(struct context *ctx, bool tries)
{
	uint64_t wait = tries ? ctx->count * INSPECT_TICKS : 0;

	for (uint32_t i = 0; i < ctx->count; i++)
		if (is_suspect(ctx->endpoints[i], wait))
			return ctx->endpoints[i];
	return NULL;
}

int late_error(struct context *ctx, struct endpoint *ep, int timeout_ms, const char *format, ...)
{
	struct endpoint *suspect = NULL;
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!ep)
		suspect = suspect_of(ctx, !timeout_ms);
	else if (is_suspect(ep, timeout_ms ? 0 : INSPECT_TICKS))
		suspect = ep;
	if (!suspect)
		return error_set(late_code(timeout_ms), "%s", text);
	return error_set(late_code(timeout_ms), "%s, suspect%s%s: %s", text, ep ? "" : " is ",
			 ep ? "" : suspect->life->name, suspect->rooms->reaction->reason);
}

int late_from(struct context *ctx, struct endpoint *ep, int timeout_ms, const char *what)
{
	return late_error(ctx, ep, timeout_ms, "%s %s", what, ep ? ep->life->name : "any peer");
}
