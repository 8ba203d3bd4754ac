/* SPDX-License-Identifier: BSD-3-Clause */
/* Hellos: what each side says of itself, and the terms that come of both. */
#include "slmpm/connect/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/domain.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/link/addressee.h"
#include "slmpm/mode/mode.h"

#define LIMIT_LEAST 65536 /* as of our settings: packets are cut to parts of these two */

static uint64_t hello_lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Several of them are to fit the credit, unless somebody has asked for longer ones. */
static uint64_t own_packet_max(const struct endpoint *ep)
{
	const struct config *config = config_get();
	const struct fabric *fabric = ep->link.port->domain->fabric;
	uint64_t best = hello_lower(domain_caps(fabric)->packet_best, domain_credit(fabric) / 4);

	if (config->packet_max)
		return (uint64_t)config->packet_max;
	return config->routes.count > 1 ? hello_lower(best, MODE_SPREAD_PACKET) : best;
}

int hello_send(struct control *c)
{
	const struct config *config = config_get();
	struct endpoint *ep = c->ep;
	struct wire_hello hello = {
		.magic = LITTLE_64(WIRE_MAGIC),
		.major = LITTLE_16(WIRE_MAJOR),
		.minor = LITTLE_16(WIRE_MINOR),
		.byte_order = LITTLE_32(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2),
		.features = LITTLE_64(secondary_features(ep) | addressee_features(ep->ctx)),
		.required = LITTLE_64(addressee_features(ep->ctx)),
		.nonce = LITTLE_64(c->nonce),
		.pid = (int32_t)LITTLE_32((uint32_t)getpid()),
		.element = LITTLE_32(ep->life->element),
		.packet_max = LITTLE_64(own_packet_max(ep)),
		.eager_max = LITTLE_64(config->eager_max),
		.eager_credit = LITTLE_64(domain_credit(ep->link.port->domain->fabric)),
		.loan_max = LITTLE_64(config->loan_max),
	};
	int rc;

	snprintf(hello.version, sizeof(hello.version), "%s", slmpm_version());
	snprintf(hello.fabric, sizeof(hello.fabric), "%s", ep->link.fabric->name);
	rc = control_send(c, &hello, sizeof(hello), WIRE_HELLO, -1);
	if (c->stream)
		c->stream->ours = hello;
	return rc;
}

/* What both sides keep to: the smaller of each pair. */
static int agree(struct endpoint *ep, const struct wire_hello *hello)
{
	const struct config *config = config_get();
	uint64_t packet = hello_lower(own_packet_max(ep), LITTLE_64(hello->packet_max));
	uint64_t eager = hello_lower((uint64_t)config->eager_max, LITTLE_64(hello->eager_max));
	uint64_t credit = hello_lower(domain_credit(ep->link.port->domain->fabric),
				      LITTLE_64(hello->eager_credit));

	if (packet < HELLO_PACKET_LEAST || credit < LIMIT_LEAST ||
	    LITTLE_64(hello->loan_max) < LIMIT_LEAST)
		return handshake_refuse(ep, SLMPM_EPROTO, "impossible limits in its hello");
	ep->life->loan_max = hello_lower((uint64_t)config->loan_max, LITTLE_64(hello->loan_max));
	packet = hello_lower(packet,
			     ep->life->loan_max / 2); /* longer loans than packets are to be had */
	ep->packet_max =
		(uint32_t)hello_lower(packet, credit / 2); /* one with its envelope must fit */
	ep->life->eager_max = hello_lower(eager, credit / 2);
	ep->credit = credit;
	return 0;
}

static int refuse_version(struct endpoint *ep, const struct wire_hello *hello)
{
	char why[112], version[sizeof(hello->version)];

	control_text(version, sizeof(version), hello->version, sizeof(hello->version));
	if (LITTLE_16(hello->major) == WIRE_MAJOR)
		snprintf(why, sizeof(why),
			 "it (library %.15s) requires features 0x%llx that this one (%s) lacks",
			 version, (unsigned long long)LITTLE_64(hello->required) & ~WIRE_REQUIRABLE,
			 slmpm_version());
	else
		snprintf(why, sizeof(why),
			 "it speaks wire version %d.%d (library %.15s), this is %d.%d (%s)",
			 LITTLE_16(hello->major), LITTLE_16(hello->minor), version, WIRE_MAJOR,
			 WIRE_MINOR, slmpm_version());
	return handshake_refuse(ep, SLMPM_EVERSION, why);
}

int hello_inspect(struct endpoint *ep, const struct wire_hello *hello)
{
	if (LITTLE_64(hello->magic) != WIRE_MAGIC)
		return handshake_refuse(ep, SLMPM_EPROTO, "it does not speak SLMPM");
	if (LITTLE_16(hello->major) != WIRE_MAJOR || LITTLE_64(hello->required) & ~WIRE_REQUIRABLE)
		return refuse_version(ep, hello);
	return 0;
}

/* The other side shows the same text: it names both processes. */
static int refuse_fabric(struct endpoint *ep, const struct wire_hello *hello)
{
	char why[112], theirs[sizeof(hello->fabric)];

	control_text(theirs, sizeof(theirs), hello->fabric, sizeof(hello->fabric));
	snprintf(why, sizeof(why),
		 "another fabric is wanted (SLMPM_FABRIC): %s in pid %d, %s in pid %d",
		 ep->link.fabric->name, (int)getpid(), theirs,
		 (int)LITTLE_32((uint32_t)hello->pid));
	return handshake_refuse(ep, SLMPM_ENOTSUP, why);
}

/* A copy by attaching ends when the peer's memory answers, which may be never: no peer chooses it.
 * Both sides come to the same, but for one that is set to n. */
static bool hello_may_attach(const struct control *c)
{
	const struct endpoint *ep = c->ep;
	const uint64_t ops = domain_caps(ep->link.fabric)->ops;

	if (c->stream || config_get()->attach == ATTACH_NONE ||
	    !(ops & (1u << FABRIC_READ | 1u << FABRIC_WRITE)))
		return false;
	return ep->life->related || c->features & WIRE_FEATURE_ATTACH;
}

int hello_agree(struct control *c, const struct wire_hello *hello)
{
	struct endpoint *ep = c->ep;

	if (strncmp(hello->fabric, ep->link.fabric->name, sizeof(hello->fabric)) != 0)
		return refuse_fabric(ep, hello);
	c->features = LITTLE_64(hello->features) & secondary_features(ep);
	ep->life->attach = ep->link.port->attach = hello_may_attach(c);
	c->engine = LITTLE_64(hello->features) & WIRE_FEATURE_ENGINE;
	addressee_agree(ep, hello, LITTLE_64(hello->features) | addressee_features(ep->ctx));
	ep->life->big_endian = LITTLE_32(hello->byte_order) == 2;
	if (agree(ep, hello) < 0)
		return -EPROTO;
	if (!ep->life->pid && !c->stream)
		ep->life->pid = (int32_t)LITTLE_32((uint32_t)hello->pid);
	endpoint_name(ep);
	return 0;
}
