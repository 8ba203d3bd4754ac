/* SPDX-License-Identifier: BSD-3-Clause */
/* A context's fabrics: opened on first need, armed and closed together. */
#include "slmpm/domain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fabrics/registry.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/error.h"
#include "slmpm/part.h"

#define FABRICS_MAX    16
#define USUAL_SEGMENTS 16384 /* of a ring */
#define RING_MOST      (UINT64_C(1) << 32)
#define USUAL_SIZE     64 /* of each: longer ones have room as they are */
#define USUAL_CREDIT   (1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A probe makes something real each time: once is enough. */
const struct fabric_caps *domain_caps(const struct fabric *fabric)
{
	static struct {
		const char *name;
		struct fabric_caps caps;
	} known[FABRICS_MAX];
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < FABRICS_MAX - 1 && known[i].name && strcmp(known[i].name, fabric->name) != 0)
		i++;
	/* What cannot run now, for want of descriptors perhaps, may do so later. */
	if (!known[i].name && fabric->probe(NULL, &known[i].caps) == 0)
		known[i].name = fabric->name;
	pthread_mutex_unlock(&lock);
	return &known[i].caps;
}

void domain_caps_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

bool domain_is_native(const struct fabric *fabric)
{
	const uint64_t both = 1u << FABRIC_WRITE | 1u << FABRIC_READ;
	const struct fabric_caps *caps = domain_caps(fabric);

	return (caps->ops & both) == both || caps->land_min;
}

/* What one of several links has been given waits for that link, however slow it is. */
static uint32_t room_factor(const struct fabric *fabric)
{
	return fabric->room_factor && config_get()->routes.count == 1 ? fabric->room_factor : 1;
}

uint32_t domain_segments(const struct fabric *fabric, uint32_t segment_size)
{
	const struct config *config = config_get();
	uint32_t times = room_factor(fabric);
	uint64_t enough = (uint64_t)times * USUAL_SIZE;

	while (times > 1 && (uint64_t)times * segment_size > enough)
		times /= 2;
	return config->ring_segments ? (uint32_t)config->ring_segments : USUAL_SEGMENTS * times;
}

uint64_t domain_credit(const struct fabric *fabric)
{
	const struct config *config = config_get();

	return config->eager_credit ? (uint64_t)config->eager_credit :
				      (uint64_t)USUAL_CREDIT * room_factor(fabric);
}

int domain_shape(struct context *ctx, const struct slmpm_options *o)
{
	const struct config *config = config_get();
	struct fabric_config *shape = &ctx->shape;
	uint64_t bytes;

	*shape = (struct fabric_config){
		.segments =
			o && o->ring_segments ? o->ring_segments : (uint32_t)config->ring_segments,
		.segment_size = o && o->ring_segment_size ? o->ring_segment_size :
							    (uint32_t)config->segment_size,
		.threshold_permille = (uint32_t)config->publish_permille,
		.batch = (uint32_t)config->publish_batch,
		.membarrier = config->membarrier,
		.dead_ms = (uint32_t)config->dead_ms,
		.engine = (uint8_t)config->tcp_engine,
		.start = (uint64_t)config->start,
	};
	if (shape->segments & (shape->segments - 1))
		return error_set(SLMPM_EINVAL, "SLMPM_RING_SEGMENTS=%u: a power of two",
				 shape->segments);
	if (shape->segment_size & (shape->segment_size - 1))
		return error_set(SLMPM_EINVAL, "SLMPM_SEGMENT_SIZE=%u: a power of two",
				 shape->segment_size);
	bytes = (uint64_t)(shape->segments ? shape->segments : USUAL_SEGMENTS) *
		shape->segment_size;
	if (bytes > RING_MOST)
		return error_set(SLMPM_EINVAL,
				 "SLMPM_RING_SEGMENTS=%u, SLMPM_SEGMENT_SIZE=%u: a ring has at "
				 "most 4 GiB",
				 shape->segments, shape->segment_size);
	/* A First packet and its checksum must fit, whatever else is set. */
	if (shape->segments && bytes < 8192)
		return error_set(SLMPM_EINVAL,
				 "SLMPM_RING_SEGMENTS=%u, SLMPM_SEGMENT_SIZE=%u: a ring has at "
				 "least 8 KiB",
				 shape->segments, shape->segment_size);
	return 0;
}

/* Pairs that are being connected may go on. */
static void domain_ready(struct context *ctx, struct watch *w)
{
	(void)w;
	parts.ask_again(ctx);
}

static int open_port(struct domain *d, const struct fabric *fabric)
{
	struct context *ctx = d->ctx;
	int rc;

	d->port = calloc(1, fabric->domain_size);
	if (!d->port)
		return error_set(SLMPM_ENOMEM, "for a domain");
	d->port->fabric = fabric;
	d->port->config = ctx->shape;
	if (!d->port->config.segments)
		d->port->config.segments = domain_segments(fabric, ctx->shape.segment_size);
	d->port->fd = -1;
	rc = fabric->open(d->port);
	if (rc < 0)
		return error_system(rc, fabric->name);
	d->watch = (struct watch){.ready = domain_ready, .fd = d->port->fd, .owner = d};
	rc = d->port->fd >= 0 ? watch_add(ctx, &d->watch) : 0;
	if (rc < 0) {
		fabric->close(d->port);
		return error_system(rc, fabric->name);
	}
	return 0;
}

struct fabric_domain *domain_get(struct context *ctx, const struct fabric *fabric, int *rc)
{
	const char *setting = config_get()->fabric;
	struct domain *d;

	*rc = 0;
	if (!fabric && !(fabric = fabric_find(setting))) {
		*rc = error_set(SLMPM_EINVAL, "SLMPM_FABRIC=%s: slmpm_info -d lists the fabrics",
				setting);
		return NULL;
	}
	for (d = ctx->domains; d; d = d->next)
		if (d->port->fabric == fabric)
			return d->port;
	d = calloc(1, sizeof(*d));
	if (!d) {
		*rc = error_set(SLMPM_ENOMEM, "for a domain");
		return NULL;
	}
	d->ctx = ctx;
	*rc = open_port(d, fabric);
	if (*rc < 0) {
		free(d->port);
		free(d);
		return NULL;
	}
	d->next = ctx->domains;
	ctx->domains = d;
	return d->port;
}

struct fabric_domain *domain_with_memory(struct context *ctx)
{
	const struct fabric *fabric;
	int rc;

	for (struct domain *d = ctx->domains; d; d = d->next)
		if (d->port->fabric->alloc)
			return d->port;
	for (int i = 0; (fabric = fabric_at(i)); i++) {
		struct fabric_domain *port = fabric->alloc ? domain_get(ctx, fabric, &rc) : NULL;

		if (port)
			return port;
	}
	return NULL;
}

bool domain_arm(struct context *ctx, bool on)
{
	bool fenced = false;

	for (struct domain *d = ctx->domains; d; d = d->next) {
		d->port->fenced = false;
		d->port->fabric->arm(d->port, on);
		fenced |= d->port->fenced;
	}
	return fenced;
}

bool domain_has_roused(struct context *ctx)
{
	bool roused = false;

	for (struct domain *d = ctx->domains; d; d = d->next) {
		roused |= d->port->roused;
		d->port->roused = false;
	}
	return roused;
}

void domain_rescan(struct context *ctx)
{
	for (struct domain *d = ctx->domains; d; d = d->next)
		d->port->rescan = true;
}

uint64_t domain_bells(const struct context *ctx)
{
	uint64_t sum = 0;
	bool any = false;

	for (const struct domain *d = ctx->domains; d; d = d->next) {
		sum += d->port->bells;
		any |= d->port->fd < 0;
	}
	return any ? sum : SPIN_NO_BELLS;
}

void domain_close_all(struct context *ctx)
{
	while (ctx->domains) {
		struct domain *d = ctx->domains;

		ctx->domains = d->next;
		watch_remove(ctx, &d->watch);
		d->port->fabric->close(d->port);
		free(d->port);
		free(d);
	}
}

void domain_mark_forked(struct context *ctx)
{
	for (struct domain *d = ctx->domains; d; d = d->next)
		d->port->forked = true;
}

void domain_forked(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		ctx->endpoints[i]->link.fabric->disconnect(ctx->endpoints[i]->link.port);
	for (struct domain *d = ctx->domains; d; d = d->next)
		if (d->port->fd >= 0)
			d->port->fabric->close(d->port);
}
