/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX's UCP layer: tag matching, active messages, and tag matching that sleeps on events. */
#include <string.h>
#include <ucp/api/ucp.h>

#include "tests/bench/peers/pair.h"

#define TAG   7
#define AM_ID 1

static ucp_worker_h worker;
static ucp_ep_h ep;
static int sleeping;
static char *am_to; /* where active messages go */
static uint64_t am_got, am_want;
static const ucp_request_param_t PLAIN;

static void need(ucs_status_t s, const char *what)
{
	if (s != UCS_OK)
		pair_die(what, ucs_status_string(s));
}

static void progress(void)
{
	if (ucp_worker_progress(worker) == 0 && sleeping)
		ucp_worker_wait(worker);
}

static void finish(ucs_status_ptr_t r, const char *what)
{
	ucs_status_t s;

	if (r == NULL)
		return;
	if (UCS_PTR_IS_ERR(r))
		need(UCS_PTR_STATUS(r), what);
	while ((s = ucp_request_check_status(r)) == UCS_INPROGRESS)
		progress();
	need(s, what);
	ucp_request_free(r);
}

static void am_done(void *request, ucs_status_t s, size_t len, void *arg)
{
	(void)len;
	(void)arg;
	need(s, "am data");
	am_got++;
	ucp_request_free(request);
}

static ucs_status_t am_arrived(void *arg, const void *header, size_t header_len, void *data,
			       size_t len, const ucp_am_recv_param_t *param)
{
	ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
				     .cb.recv_am = am_done};
	ucs_status_ptr_t r;

	(void)arg;
	(void)header;
	(void)header_len;
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		memcpy(am_to, data, len);
		am_got++;
		return UCS_OK;
	}
	r = ucp_am_recv_data_nbx(worker, data, am_to, len, &fetch);
	if (r == NULL)
		am_got++;
	else if (UCS_PTR_IS_ERR(r))
		need(UCS_PTR_STATUS(r), "am data");
	return UCS_INPROGRESS;
}

static void make_worker(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
			       .features = UCP_FEATURE_TAG | UCP_FEATURE_AM |
					   (sleeping ? UCP_FEATURE_WAKEUP : 0u)};
	ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
							UCP_AM_HANDLER_PARAM_FIELD_CB,
					  .id = AM_ID,
					  .cb = am_arrived};
	ucp_config_t *config;
	ucp_context_h context;

	need(ucp_config_read(NULL, NULL, &config), "config");
	need(ucp_init(&params, config, &context), "init");
	ucp_config_release(config);
	need(ucp_worker_create(context, &single, &worker), "worker");
	need(ucp_worker_set_am_recv_handler(worker, &handler), "am handler");
}

static void open_side(int side)
{
	char mine[PAIR_BLOB] = "", theirs[PAIR_BLOB];
	ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
			      .address = (ucp_address_t *)(void *)theirs};
	ucp_request_param_t plain = {0};
	ucp_address_t *address;
	size_t len;

	make_worker();
	need(ucp_worker_get_address(worker, &address, &len), "address");
	if (len > sizeof mine)
		pair_die("address", "too long");
	memcpy(mine, address, len);
	ucp_worker_release_address(worker, address);
	pair_exchange(side, mine, theirs, sizeof mine);
	need(ucp_ep_create(worker, &to, &ep), "endpoint");
	finish(ucp_ep_flush_nbx(ep, &plain), "flush");
}

static void events_open(int side)
{
	sleeping = 1;
	open_side(side);
}

static ucs_status_ptr_t tag_post(const void *buf, size_t len)
{
	return ucp_tag_send_nbx(ep, buf, len, TAG, &PLAIN);
}

static ucs_status_ptr_t tag_expect(const void *buf, size_t len)
{
	return ucp_tag_recv_nbx(worker, (void *)(uintptr_t)buf, len, TAG, ~0ull, &PLAIN);
}

static ucs_status_ptr_t am_post(const void *buf, size_t len)
{
	return ucp_am_send_nbx(ep, AM_ID, NULL, 0, buf, len, &PLAIN);
}

/* n requests, at most a window of them under way. */
static void window(ucs_status_ptr_t (*post)(const void *, size_t), const void *buf, size_t len,
		   uint64_t n)
{
	ucs_status_ptr_t r[PAIR_WINDOW] = {0};

	for (uint64_t i = 0; i < n; i++) {
		finish(r[i % PAIR_WINDOW], "stream");
		r[i % PAIR_WINDOW] = post(buf, len);
	}
	for (uint64_t i = n < PAIR_WINDOW ? 0 : n - PAIR_WINDOW; i < n; i++)
		finish(r[i % PAIR_WINDOW], "stream");
}

static void tag_send(const void *buf, size_t len)
{
	finish(tag_post(buf, len), "send");
}

static void tag_recv(void *buf, size_t len)
{
	finish(tag_expect(buf, len), "recv");
}

static void tag_stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(tag_post, buf, len, n);
}

static void tag_stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(tag_expect, buf, len, n);
}

static void am_send(const void *buf, size_t len)
{
	finish(am_post(buf, len), "am send");
}

static void am_stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(am_post, buf, len, n);
}

static void am_stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)len;
	(void)touch;
	am_to = buf;
	am_want += n;
	while (am_got < am_want)
		progress();
}

static void am_recv(void *buf, size_t len)
{
	am_stream_recv(buf, len, 1, 0);
}

int main(int argc, char **argv)
{
	static const struct peer PEERS[] = {
		{.name = "tag",
		 .open = open_side,
		 .send = tag_send,
		 .recv = tag_recv,
		 .stream_send = tag_stream_send,
		 .stream_recv = tag_stream_recv},
		{.name = "am",
		 .open = open_side,
		 .send = am_send,
		 .recv = am_recv,
		 .stream_send = am_stream_send,
		 .stream_recv = am_stream_recv},
		{.name = "events", .open = events_open, .send = tag_send, .recv = tag_recv},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
