/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric: tagged messages over its shm provider and those over TCP, and connected endpoints over
 * TCP. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <string.h>

#include "tests/bench/peers/pair.h"

#define TAG 7

static struct fid_ep *ep;
static struct fid_cq *sent, *received;
static fi_addr_t other;
static int connected; /* an endpoint of messages without tags */
static size_t inject_max;
static struct fi_context contexts[2][PAIR_WINDOW];

static int need(ssize_t rv, const char *what)
{
	if (rv < 0)
		pair_die(what, fi_strerror((int)-rv));
	return (int)rv;
}

static unsigned reap(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[PAIR_WINDOW];
	struct fi_cq_err_entry error = {0};
	ssize_t k = fi_cq_read(cq, e, PAIR_WINDOW);

	if (k == -FI_EAGAIN)
		return 0;
	if (k == -FI_EAVAIL) {
		fi_cq_readerr(cq, &error, 0);
		need(-error.err, "completion");
	}
	return (unsigned)need(k, "completion queue");
}

static struct fi_info *pick(const char *provider, enum fi_ep_type type, const char *node)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = type;
	hints->caps = type == FI_EP_MSG ? FI_MSG : FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider);
	need(fi_getinfo(FI_VERSION(1, 17), node, NULL, node ? FI_SOURCE : 0, hints, &info),
	     "getinfo");
	fi_freeinfo(hints);
	inject_max = info->tx_attr->inject_size;
	return info;
}

static void make_endpoint(struct fid_domain *domain, struct fi_info *info)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};

	need(fi_cq_open(domain, &cq, &sent, NULL), "completion queue");
	need(fi_cq_open(domain, &cq, &received, NULL), "completion queue");
	need(fi_endpoint(domain, info, &ep, NULL), "endpoint");
	need(fi_ep_bind(ep, &sent->fid, FI_TRANSMIT), "bind");
	need(fi_ep_bind(ep, &received->fid, FI_RECV), "bind");
}

/* Datagrams, reliable: each knows the other's name. */
static void named_open(int side, struct fi_info *info)
{
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	char mine[512] = "", theirs[512];
	size_t len = sizeof mine;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;

	need(fi_fabric(info->fabric_attr, &fabric, NULL), "fabric");
	need(fi_domain(fabric, info, &domain, NULL), "domain");
	need(fi_av_open(domain, &table, &av, NULL), "addresses");
	make_endpoint(domain, info);
	need(fi_ep_bind(ep, &av->fid, 0), "bind");
	need(fi_enable(ep), "enable");
	need(fi_getname(&ep->fid, mine, &len), "name");
	pair_exchange(side, mine, theirs, sizeof mine);
	if (fi_av_insert(av, theirs, 1, &other, 0, NULL) != 1)
		pair_die("address", "refused");
	pair_exchange(side, mine, theirs, sizeof mine); /* both know the other */
}

static void shm_open_side(int side)
{
	named_open(side, pick("shm", FI_EP_RDM, NULL));
}

static void rxm_open(int side)
{
	named_open(side, pick("tcp;ofi_rxm", FI_EP_RDM, "127.0.0.1"));
}

static void net_open(int side)
{
	named_open(side, pick("net", FI_EP_RDM, "127.0.0.1"));
}

static struct fi_info *await(struct fid_eq *eq, uint32_t want)
{
	struct fi_eq_cm_entry entry = {0};
	uint32_t event;

	need(fi_eq_sread(eq, &event, &entry, sizeof entry, 10000, 0), "event");
	if (event != want)
		pair_die("event", "not the one awaited");
	return entry.info;
}

/* A connection: side 0 listens. */
static void msg_open(int side)
{
	struct fi_eq_attr wait = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *info = pick("tcp", FI_EP_MSG, "127.0.0.1");
	char mine[512] = "", theirs[512];
	size_t len = sizeof mine;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *listener;
	struct fid_eq *eq;

	connected = 1;
	need(fi_fabric(info->fabric_attr, &fabric, NULL), "fabric");
	need(fi_eq_open(fabric, &wait, &eq, NULL), "event queue");
	if (side == 0) {
		need(fi_passive_ep(fabric, info, &listener, NULL), "listener");
		need(fi_pep_bind(listener, &eq->fid, 0), "bind");
		need(fi_listen(listener), "listen");
		need(fi_getname(&listener->fid, mine, &len), "name");
	}
	pair_exchange(side, mine, theirs, sizeof mine);
	if (side == 0)
		info = await(eq, FI_CONNREQ);
	need(fi_domain(fabric, info, &domain, NULL), "domain");
	make_endpoint(domain, info);
	need(fi_ep_bind(ep, &eq->fid, 0), "bind");
	need(fi_enable(ep), "enable");
	need(side ? fi_connect(ep, theirs, NULL, 0) : fi_accept(ep, NULL, 0), "connect");
	await(eq, FI_CONNECTED);
}

static ssize_t send_one(const void *buf, size_t len, void *context)
{
	if (connected)
		return len <= inject_max ? fi_inject(ep, buf, len, 0) :
					   fi_send(ep, buf, len, NULL, 0, context);
	return len <= inject_max ? fi_tinject(ep, buf, len, other, TAG) :
				   fi_tsend(ep, buf, len, NULL, other, TAG, context);
}

/* Posts the i-th send; 0 when the provider asks to come again. What is injected is done at once. */
static int post(const void *buf, size_t len, uint64_t i)
{
	ssize_t rv = send_one(buf, len, &contexts[0][i % PAIR_WINDOW]);

	return rv != -FI_EAGAIN && need(rv, "send") == 0;
}

static int expect(void *buf, size_t len, uint64_t i)
{
	void *context = &contexts[1][i % PAIR_WINDOW];
	ssize_t rv = connected ? fi_recv(ep, buf, len, NULL, 0, context) :
				 fi_trecv(ep, buf, len, NULL, other, TAG, 0, context);

	return rv != -FI_EAGAIN && need(rv, "recv") == 0;
}

static void stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	for (uint64_t posted = 0, done = 0; done < n;) {
		if (posted < n && posted - done < PAIR_WINDOW && post(buf, len, posted)) {
			posted++;
			done += len <= inject_max;
		} else {
			done += reap(sent);
		}
	}
}

static void stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	for (uint64_t posted = 0, done = 0; done < n; done += reap(received))
		while (posted < n && posted - done < PAIR_WINDOW && expect(buf, len, posted))
			posted++;
}

static void f_send(const void *buf, size_t len)
{
	stream_send((void *)(uintptr_t)buf, len, 1, 0);
}

static void f_recv(void *buf, size_t len)
{
	stream_recv(buf, len, 1, 0);
}

#define PEER(NAME, OPEN)                                                                           \
	{                                                                                          \
		.name = NAME, .open = OPEN, .send = f_send, .recv = f_recv,                        \
		.stream_send = stream_send, .stream_recv = stream_recv                             \
	}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		PEER("shm", shm_open_side),
		PEER("rxm", rxm_open),
		PEER("net", net_open),
		PEER("msg", msg_open),
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
