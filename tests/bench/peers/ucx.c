/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX's UCP layer: tag matching, active messages, puts, and tag matching that sleeps on events. */
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
static char *landing; /* where puts arrive: messages, and behind them the mark that ends a stream */
static uint64_t landing_at, put_to; /* ours, and the other side's */
static uint64_t marks_out, marks_in;
static ucp_rkey_h put_key;
static ucp_context_h context;
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
			       .features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA |
					   (sleeping ? UCP_FEATURE_WAKEUP : 0u)};
	ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
							UCP_AM_HANDLER_PARAM_FIELD_CB,
					  .id = AM_ID,
					  .cb = am_arrived};
	ucp_config_t *config;

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

/* ---- puts, into memory that UCX itself allocates: what it can map on both sides ---- */

#define MARK_AT   (PAIR_MAX + 128)
#define MARK_BASE (UINT64_C(0x6d61726b) << 32) /* like no payload */

static void put_open(int side)
{
	ucp_mem_map_params_t want = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						   UCP_MEM_MAP_PARAM_FIELD_LENGTH |
						   UCP_MEM_MAP_PARAM_FIELD_FLAGS,
				     .address = NULL,
				     .length = PAIR_MAX + 4096,
				     .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t got = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	char mine[PAIR_BLOB] = "", theirs[PAIR_BLOB];
	size_t len;
	ucp_mem_h memory;
	void *key;

	open_side(side);
	need(ucp_mem_map(context, &want, &memory), "memory");
	need(ucp_mem_query(memory, &got), "memory");
	landing = got.address;
	memset(landing, 1, want.length);
	pair_receive_at(landing);
	need(ucp_rkey_pack(context, memory, &key, &len), "key");
	if (len + sizeof landing_at > sizeof mine)
		pair_die("key", "too long");
	landing_at = (uintptr_t)landing;
	memcpy(mine, &landing_at, sizeof landing_at);
	memcpy(mine + sizeof landing_at, key, len);
	ucp_rkey_buffer_release(key);
	pair_exchange(side, mine, theirs, sizeof mine);
	memcpy(&put_to, theirs, sizeof put_to);
	need(ucp_ep_rkey_unpack(ep, theirs + sizeof put_to, &put_key), "key");
	marks_out = marks_in = MARK_BASE;
}

static ucs_status_ptr_t put_post(const void *buf, size_t len)
{
	return ucp_put_nbx(ep, buf, len, put_to, put_key, &PLAIN);
}

/* The last word of each message is a mark that the target polls for. */
static void put_send(const void *buf, size_t len)
{
	marks_out++;
	memcpy((char *)(uintptr_t)buf + len - sizeof marks_out, &marks_out, sizeof marks_out);
	finish(put_post(buf, len), "put");
}

static void await_mark(const char *at)
{
	const uint64_t *word = (const uint64_t *)(const void *)at;

	marks_in++;
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != marks_in)
		progress();
}

static void put_recv(void *buf, size_t len)
{
	(void)buf;
	await_mark(landing + len - sizeof marks_in);
}

static void put_stream_send(void *buf, size_t len, uint64_t n, int touch)
{
	(void)touch;
	window(put_post, buf, len, n);
	finish(ucp_ep_flush_nbx(ep, &PLAIN), "flush");
	marks_out++;
	finish(ucp_put_nbx(ep, &marks_out, sizeof marks_out, put_to + MARK_AT, put_key, &PLAIN),
	       "mark");
}

static void put_stream_recv(void *buf, size_t len, uint64_t n, int touch)
{
	(void)buf;
	(void)len;
	(void)n;
	(void)touch;
	await_mark(landing + MARK_AT);
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
		{.name = "put",
		 .open = put_open,
		 .send = put_send,
		 .recv = put_recv,
		 .stream_send = put_stream_send,
		 .stream_recv = put_stream_recv,
		 .flags = PAIR_PUT},
		{.name = "events", .open = events_open, .send = tag_send, .recv = tag_recv},
		{0},
	};

	return pair_main(argc, argv, PEERS);
}
