/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A traced link has another table of functions, of which post and poll note what passes; others pay
 * nothing for it. Each record is written at once: it is in the file, however the process ends.
 */
#include "slmpm/link/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fabrics/fabric.h"
#include "shm/compiler.h"
#include "slmpm/base/config.h"
#include "slmpm/link/addressee.h"
#include "slmpm/link/landing.h"
#include "slmpm/base/log.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/wire.h"

#define SECRET_AT 24 /* in a struct wire_target */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd; /* -1: not, or no longer */
	uint64_t start;
	const struct fabric_link **links; /* by number - 1 */
	uint32_t count;
} trace = {.fd = -1};

/* ---- records -------------------------------------------------------------------------------- */

static void write_out(const void *data, size_t size)
{
	if (trace.fd < 0 || write(trace.fd, data, size) == (ssize_t)size)
		return;
	log_line(SLMPM_LOG_ERROR, "the trace ends here: it cannot be written");
	close(trace.fd);
	trace.fd = -1;
}

static uint32_t number_of(const struct fabric_link *link)
{
	const struct fabric_link **more;

	for (uint32_t i = 0; i < trace.count; i++)
		if (trace.links[i] == link)
			return i + 1;
	more = realloc(trace.links, (trace.count + 1) * sizeof(*more));
	if (!more)
		return 0;
	trace.links = more;
	trace.links[trace.count++] = link;
	return trace.count;
}

/* Bytes of a packet's payload that are the library's, and neither a secret nor an address. */
static const uint8_t leads[UINT8_MAX + 1] = {
	[WIRE_WRITE_FIRST] = sizeof(struct wire_target),
	[WIRE_WRITE_ONLY] = sizeof(struct wire_target),
	[WIRE_READ_REQUEST] = sizeof(struct wire_target),
	[WIRE_NOTIFY] = sizeof(struct wire_target),
	[WIRE_FETCH_ADD] = sizeof(struct wire_target) + sizeof(struct wire_atomic),
	[WIRE_COMPARE_SWAP] = sizeof(struct wire_target) + sizeof(struct wire_atomic),
	[WIRE_SWAP] = sizeof(struct wire_target) + sizeof(struct wire_atomic),
	[WIRE_ATOMIC_ACKNOWLEDGE] = 8,
	[WIRE_LOAN] = sizeof(struct wire_loan),
	[WIRE_LOAN_MORE] = sizeof(struct wire_loan),
	[WIRE_REGION_OFFER] = 24, /* of the key: magic, access, grant, size */
	[WIRE_MIRROR_ASK] = sizeof(struct wire_mirror),
	[WIRE_SHARE] = sizeof(struct wire_share),
	[WIRE_FETCH] = 8,
	[WIRE_FETCH_TAKE] = sizeof(struct wire_take),
	[WIRE_FETCH_GIVE] = sizeof(struct wire_give),
};

static void take_lead(struct trace_record *r, const void *data, uint32_t length)
{
	uint32_t lead = leads[r->opcode];

	lead = data && lead < length ? lead : data ? length : 0;
	if (lead)
		memcpy(r->payload, data, lead);
	if (leads[r->opcode] >= sizeof(struct wire_target))
		memset(r->payload + SECRET_AT, 0, sizeof(struct wire_target) - SECRET_AT);
	if (r->opcode == WIRE_FETCH_TAKE)
		memset(r->payload, 0, sizeof(uint64_t)); /* where the receive lies */
	r->lead = LITTLE_32(lead);
}

static void note(const struct fabric_link *link, bool received, uint8_t opcode,
		 const uint64_t *head, const void *data, uint32_t length,
		 const struct wire_addressee *to)
{
	struct trace_record r = {
		.received = received, .opcode = opcode, .length = LITTLE_32(length)};

	if (to)
		r.addressee = *to;
	take_lead(&r, data, to ? length - (uint32_t)sizeof(*to) : length);
	for (int i = 0; i < 3; i++)
		r.head[i] = LITTLE_64(head[i]);
	pthread_mutex_lock(&lock);
	r.link = LITTLE_32(number_of(link));
	r.ns = LITTLE_64(clock_now() - trace.start);
	write_out(&r, sizeof(r));
	pthread_mutex_unlock(&lock);
}

/* ---- between the link and the fabric -------------------------------------------------------- */

static int traced_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	int rc = link->domain->fabric->post(link, wr);
	bool addressed;

	if (wr->op != FABRIC_SEND || rc < 0)
		return rc;
	/* What was built in place lies in the peer's memory: it is not read back. */
	addressed = wr->head[2] >> 48 & WIRE_FLAG_ADDRESSED;
	note(link, false, wr->kind, wr->head,
	     wr->flags & FABRIC_BUILT && !addressed ? NULL : wr->data, wr->length,
	     addressed ? addressee_sent(link) : NULL);
	return rc;
}

static int traced_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	int got = landing_poll(link, arrivals, n);

	for (int i = 0; i < got; i++) {
		const struct fabric_arrival *a = &arrivals[i];
		struct wire_addressee to;

		note(link, true, a->kind, a->head, a->data, a->length,
		     addressee_read(&to, a->head[2] >> 48, a->data, a->length) ? &to : NULL);
	}
	return got;
}

static void traced_disconnect(struct fabric_link *link)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < trace.count; i++)
		if (trace.links[i] == link)
			trace.links[i] = NULL; /* another may come to lie there */
	pthread_mutex_unlock(&lock);
	link->domain->fabric->disconnect(link);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* FILE, with %p for the process's number. Where a program that was started by its host has the
 * same setting, it takes FILE.NUMBER. */
static void name_file(char *to, size_t size, const char *setting)
{
	const char *number = strstr(setting, "%p");

	if (number)
		snprintf(to, size, "%.*s%d%s", (int)(number - setting), setting, (int)getpid(),
			 number + 2);
	else if (secure_getenv("SLMPM_PARENT"))
		snprintf(to, size, "%s.%d", setting, (int)getpid());
	else
		snprintf(to, size, "%s", setting);
}

static void trace_open_file(void)
{
	struct trace_head head = {
		.magic = "SLMPMTR",
		.version = LITTLE_32(TRACE_VERSION),
		.record = LITTLE_32(sizeof(struct trace_record)),
		.pid = LITTLE_32(getpid()),
	};
	struct timespec now;
	char name[4096];

	clock_gettime(CLOCK_REALTIME, &now);
	head.start = LITTLE_64((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	trace.start = clock_now();
	name_file(name, sizeof(name), config_get()->trace);
	trace.fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (trace.fd < 0)
		log_line(SLMPM_LOG_ERROR, "SLMPM_TRACE: %s cannot be made", name);
	write_out(&head, sizeof(head));
}

bool trace_before(struct fabric *table)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!*config_get()->trace)
		return false;
	pthread_once(&once, trace_open_file);
	table->post = traced_post;
	table->poll = traced_poll;
	table->disconnect = traced_disconnect;
	return true;
}

void trace_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	if (trace.fd >= 0)
		close(trace.fd);
	trace.fd = -1;
}
