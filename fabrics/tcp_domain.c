/* SPDX-License-Identifier: BSD-3-Clause */
/* What TCP can do here, and a process's opening of it: the epoll set, and io_uring where that is asked for. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/tcp.h"

/* Of the network's own segments in a packet: so many are best sent by one call. */
#define SEGMENTS_BEST 4

/* What a connection over loopback takes as one piece, once its window has grown. */
static int loopback_segment(void)
{
	uint16_t port;
	uint8_t family;
	int size = 0, call, listener = tcp_listen(NULL, &port, &family);
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (listener < 0)
		return listener;
	call = tcp_call(NULL, port, family);
	if (call >= 0) {
		size = getsockopt(call, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ?
			       -errno :
			       (int)info.tcpi_advmss;
		close(call);
	}
	close(listener);
	return call < 0 ? call : size;
}

static uint64_t tcp_domain_link_memory(const struct fabric_config *config)
{
	struct ring_shape shape = {config->segments, config->segment_size};

	return tcp_inlet_memory(&shape) + tcp_outlet_memory(&shape);
}

static int try_uring(const struct fabric_config *config)
{
	int rc = config->engine >= FABRIC_ENGINE_URING ? tcp_uring_try() : -ECANCELED;

	return rc < 0 ? rc : 1;
}

int tcp_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	int segment = loopback_segment();
	uint32_t best =
		SEGMENTS_BEST * (segment > 4096 && segment < 65536 ? (uint32_t)segment : 65536);
	struct double_mapping m;
	int rc;

	*caps = (struct fabric_caps){
		.ops = 1u << FABRIC_SEND | 1u << FABRIC_FLUSH,
		.memory = FABRIC_MEMORY_HOST,
		.message_max = RING_LENGTH_MAX - TCP_LEAST,
		.packet_best = best / 64 * 64 - TCP_LEAST,
		.land_min = TCP_LAND_MIN,
		.commit = FABRIC_COMMIT_STREAM,
		.uring = config ? try_uring(config) : 0,
		.link_memory = config ? tcp_domain_link_memory(config) : 0,
	};
	if (segment < 0) {
		strcpy(caps->why_not, "no connection over loopback can be made here");
		return segment;
	}
	rc = double_mapping_create(&m, "slmpm-probe", 4096);
	if (rc < 0) {
		strcpy(caps->why_not, "no memory can be mapped twice here");
		return rc;
	}
	double_mapping_destroy(&m);
	return 0;
}

int tcp_open_domain(struct fabric_domain *domain)
{
	struct tcp_domain *d = (struct tcp_domain *)domain;
	uint8_t engine = domain->config.engine;

	domain->fd = epoll_create1(EPOLL_CLOEXEC);
	if (domain->fd < 0)
		return -errno;
	d->uring_sends = engine == FABRIC_ENGINE_URING || engine == FABRIC_ENGINE_URING_SEND;
	d->no_uring = !d->uring_sends && engine != FABRIC_ENGINE_URING_RECV;
	(void)tcp_uring_open(d);
	return 0;
}

void tcp_close_domain(struct fabric_domain *domain)
{
	struct tcp_domain *d = (struct tcp_domain *)domain;

	if (domain->forked)
		while (d->lingerers)
			close(d->lingering[--d->lingerers].socket);
	tcp_linger_inspect(d, true);
	tcp_uring_close(d);
	close(domain->fd);
	domain->fd = -1;
}
