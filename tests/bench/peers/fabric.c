/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's tagged messages over its shm provider. */
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

static struct fi_info *pick(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("shm");
	need(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_side(int side)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	char mine[512] = "", theirs[512];
	size_t len = sizeof mine;
	struct fi_info *info = pick();
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;

	inject_max = info->tx_attr->inject_size;
	need(fi_fabric(info->fabric_attr, &fabric, NULL), "fabric");
	need(fi_domain(fabric, info, &domain, NULL), "domain");
	need(fi_av_open(domain, &table, &av, NULL), "addresses");
	need(fi_cq_open(domain, &cq, &sent, NULL), "completion queue");
	need(fi_cq_open(domain, &cq, &received, NULL), "completion queue");
	need(fi_endpoint(domain, info, &ep, NULL), "endpoint");
	need(fi_ep_bind(ep, &av->fid, 0), "bind");
	need(fi_ep_bind(ep, &sent->fid, FI_TRANSMIT), "bind");
	need(fi_ep_bind(ep, &received->fid, FI_RECV), "bind");
	need(fi_enable(ep), "enable");
	need(fi_getname(&ep->fid, mine, &len), "name");
	pair_exchange(side, mine, theirs, sizeof mine);
	if (fi_av_insert(av, theirs, 1, &other, 0, NULL) != 1)
		pair_die("address", "refused");
	pair_exchange(side, mine, theirs, sizeof mine); /* both know the other */
}

/* Posts the i-th send; 0 when the provider asks to come again. What is injected is done at once. */
static int post(const void *buf, size_t len, uint64_t i)
{
	ssize_t rv = len <= inject_max ? fi_tinject(ep, buf, len, other, TAG) :
					 fi_tsend(ep, buf, len, NULL, other, TAG,
						  &contexts[0][i % PAIR_WINDOW]);

	return rv != -FI_EAGAIN && need(rv, "send") == 0;
}

static int expect(void *buf, size_t len, uint64_t i)
{
	ssize_t rv = fi_trecv(ep, buf, len, NULL, other, TAG, 0, &contexts[1][i % PAIR_WINDOW]);

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

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "shm",
		 .open = open_side,
		 .send = f_send,
		 .recv = f_recv,
		 .stream_send = stream_send,
		 .stream_recv = stream_recv},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
