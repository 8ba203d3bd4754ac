/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of slmpm.h with arguments that it cannot use: NULL, sizes over the limits, unknown
 * flags. Each ends in a definite error whose text names the cause. tests/api/bad_input.sh looks
 * that no call of the header is missing from this table and that of bad_handles.c.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <slmpm_plan.h>

#include "tests/lib/bad_call.h"
#include "tests/lib/settings.h"

static char byte;
static const struct slmpm_iov piece = {&byte, 1};

/* ---- each call's own arguments -------------------------------------------------------------- */

static void of_open(void)
{
	struct slmpm_options o = {.size = sizeof(o)};
	const struct {
		struct slmpm_options o;
		const char *word;
	} bad[] = {
		{{.size = 0}, ".size"},
		{{.size = sizeof(o) - 1}, ".size"},
		{{.size = sizeof(o), .flags = 8}, "flags 0x8"},
		{{.size = sizeof(o), .wait = 3}, "wait 3"},
		{{.size = sizeof(o), .ring_segments = 1}, "1 segments"},
		{{.size = sizeof(o), .ring_segments = 3}, "3 segments"},
		{{.size = sizeof(o), .ring_segments = 1U << 31}, "segments"},
		{{.size = sizeof(o), .ring_segment_size = 32}, "32 bytes"},
		{{.size = sizeof(o), .ring_segment_size = 65}, "65 bytes"},
		{{.size = sizeof(o), .ring_segment_size = 1U << 31}, "bytes"},
		{{.size = sizeof(o), .ring_segments = 4, .ring_segment_size = 64}, "8 KiB"},
		{{.size = sizeof(o), .ring_segment_size = 1U << 20}, "4 GiB"},
	};
	slmpm_ctx ctx = {7};

	SAYS(slmpm_open(NULL, NULL), SLMPM_EINVAL, "no context");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		SAYS(slmpm_open(&ctx, &bad[i].o), SLMPM_EINVAL, bad[i].word);
	CHECK(ctx.id == 7, "a handle of nothing");
	SAYS(slmpm_default(NULL), SLMPM_EINVAL, "no context");
}

static void of_events(void)
{
	struct slmpm_event small = {.size = sizeof(small) - 1};
	struct slmpm_peer_info info = {.size = 1};
	struct slmpm_link_info link = {.size = sizeof(link) - 1};
	struct slmpm_stats stats;

	SAYS(slmpm_next_event(with.mine, NULL, 0), SLMPM_EINVAL, ".size");
	SAYS(slmpm_next_event(with.mine, &small, 0), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_query(with.live, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_query(with.live, &info), SLMPM_EINVAL, ".size");
	SAYS(slmpm_link_query(with.live, 0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_link_query(with.live, 0, &link), SLMPM_EINVAL, ".size");
	link.size++;
	SAYS(slmpm_link_query(with.live, 1, &link), SLMPM_ENOENT, "it has 1");
	SAYS(slmpm_link_use(with.live, 1), SLMPM_ENOENT, "it has 1");
	SAYS(slmpm_peer_stats(with.live, NULL, sizeof(stats)), SLMPM_EINVAL, ".size");
	SAYS(slmpm_peer_stats(with.live, &stats, 3), SLMPM_EINVAL, ".size");
}

static void of_elements(void)
{
	struct slmpm_element_info info = {.size = sizeof(info)};
	uint32_t id = 0;

	SAYS(slmpm_element_count(with.mine, 77), SLMPM_EINVAL, "type 77");
	SAYS(slmpm_element_reserve(with.mine, 0, 1, &id), SLMPM_EINVAL, "type 0");
	SAYS(slmpm_element_reserve(with.mine, SLMPM_ELEMENT_ACCELERATOR, -1, &id), SLMPM_EINVAL,
	     "-1");
	SAYS(slmpm_element_reserve(with.mine, SLMPM_ELEMENT_ACCELERATOR, 1, NULL), SLMPM_EINVAL,
	     "1");
	SAYS(slmpm_element_release(with.mine, 1, NULL), SLMPM_EINVAL, "1 elements");
	SAYS(slmpm_element_release(with.mine, 1, &id), SLMPM_EINVAL, "element 0");
	SAYS(slmpm_element_query(1, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_element_query(0, &info), SLMPM_EINVAL, "element 0");
	SAYS(slmpm_element_query(1000000, &info), SLMPM_EINVAL, "element 1000000");
	info.size--;
	SAYS(slmpm_element_query(1, &info), SLMPM_EINVAL, ".size");
}

static void of_spawn(void)
{
	struct slmpm_spawn_options o = {.size = sizeof(o), .flags = 16};
	slmpm_peer peer;

	SAYS(slmpm_spawn(NULL, "true", NULL, NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_spawn(&peer, NULL, NULL, NULL), SLMPM_EINVAL, "no program");
	SAYS(slmpm_spawn(&peer, "", NULL, NULL), SLMPM_EINVAL, "no program");
	SAYS(slmpm_spawn(&peer, "true", NULL, &o), SLMPM_EINVAL, "flags 0x10");
	o.size = 4;
	SAYS(slmpm_spawn(&peer, "true", NULL, &o), SLMPM_EINVAL, ".size");
	SAYS(slmpm_spawn(&peer, "/no/such", NULL, NULL), SLMPM_ENOENT, "/no/such");
	SAYS(slmpm_parent(NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_parent(&peer), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_parent_in(with.mine, NULL), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_parent_in(with.mine, &peer), SLMPM_ESTATE, "not started by slmpm_spawn");
	SAYS(slmpm_kill(with.live, -1), SLMPM_EINVAL, "-1 ms");
}

static void of_listen(void)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};
	slmpm_listener listener, bad = {UINT64_C(9) << 32};
	slmpm_peer peer;

	SAYS(slmpm_listen(NULL, with.mine, "shm:x"), SLMPM_EINVAL, "no listener");
	SAYS(slmpm_listen(&listener, with.mine, NULL), SLMPM_EADDRESS, "shm:NAME");
	SAYS(slmpm_listen(&listener, with.mine, "carrier:pigeon"), SLMPM_EADDRESS,
	     "carrier:pigeon");
	SAYS(slmpm_listen(&listener, with.mine, "shm:/no/such/x"), SLMPM_ENOENT, "/no/such/x");
	SAYS(slmpm_listen(&listener, with.mine, "tcp://nowhere"), SLMPM_EADDRESS, "host:port");
	SAYS(slmpm_listen(&listener, with.mine, "tcp://[::1]:0#1234"), SLMPM_EADDRESS, "hex");
	SAYS(slmpm_connect(&peer, with.mine, "tcp://::1:9", 0), SLMPM_EADDRESS, "[::1]");
	SAYS(slmpm_connect(&peer, with.mine, "tcp://127.0.0.1:9", 0), SLMPM_EACCES, "no secret");
	SAYS(slmpm_connect(NULL, with.mine, "shm:x", 0), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_connect(&peer, with.mine, NULL, 0), SLMPM_EADDRESS, "shm:NAME");
	SAYS(slmpm_connect(&peer, with.mine, "carrier:pigeon", 0), SLMPM_EADDRESS,
	     "carrier:pigeon");
	SAYS(slmpm_connect(&peer, with.mine, "shm:bad-input-nobody", 0), SLMPM_ENOENT,
	     "nobody listens");
	SAYS(slmpm_accept(bad, &peer, 0), SLMPM_EHANDLE, "no such listener");
	SAYS(slmpm_accept((slmpm_listener){0}, &peer, 0), SLMPM_EHANDLE, "zero listener");
	SAYS(slmpm_unlisten(bad), SLMPM_EHANDLE, "no such listener");
	SAYS(slmpm_unlisten((slmpm_listener){0}), SLMPM_EHANDLE, "zero listener");
	SAYS(slmpm_listener_query(bad, &info), SLMPM_EHANDLE, "no such listener");
	SAYS(slmpm_listener_query((slmpm_listener){0}, &info), SLMPM_EHANDLE, "zero listener");
	OK(slmpm_listen(&listener, with.mine, "shm:bad-input"));
	SAYS(slmpm_listener_query(listener, NULL), SLMPM_EINVAL, ".size");
	info.size = sizeof(info) - 1;
	SAYS(slmpm_listener_query(listener, &info), SLMPM_EINVAL, ".size");
	info.size = sizeof(info);
	OK(slmpm_listener_query(listener, &info));
	CHECK(!strcmp(info.url, "shm:bad-input") && !info.port && !*info.secret, "%s", info.url);
	SAYS(slmpm_accept(listener, NULL, 0), SLMPM_EINVAL, "no peer");
	SAYS(slmpm_accept(listener, &peer, 0), SLMPM_EAGAIN, "shm:bad-input");
	OK(slmpm_unlisten(listener));
}

static void of_messages(void)
{
	const struct slmpm_iov null = {NULL, 1}, huge[2] = {{&byte, SLMPM_MESSAGE_MAX}, {&byte, 1}};
	struct slmpm_how small = {.size = 15}, part = {.size = sizeof(part)};
	slmpm_req req;

	SAYS(slmpm_send(with.live, 0, NULL, 1, 0), SLMPM_EINVAL, "NULL");
	SAYS(slmpm_send(with.live, SLMPM_ANY_STREAM, &byte, 1, 0), SLMPM_EINVAL, "stream");
	SAYS(slmpm_send(with.live, 0, &byte, SLMPM_MESSAGE_MAX + 1, 0), SLMPM_ELIMIT, "8589934593");
	SAYS(slmpm_send(with.live, 0, &byte, SIZE_MAX, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_recv(with.live, 0, NULL, 1, NULL, 0), SLMPM_EINVAL, "NULL");
	SAYS(slmpm_recv(with.live, 0, &byte, 1, NULL, 0), SLMPM_EAGAIN, "accelerator");
	SAYS(slmpm_recv(slmpm_any(with.mine), 0, &byte, 1, NULL, 0), SLMPM_EAGAIN, "any peer");
	for (int i = 0; i < 2; i++) {
		slmpm_req *r = i ? &req : NULL;

		SAYS(slmpm_sendv(with.live, 0, NULL, 1, NULL, r), SLMPM_EINVAL, "1 pieces");
		SAYS(slmpm_sendv(with.live, 0, &piece, -1, NULL, r), SLMPM_EINVAL, "-1 pieces");
		SAYS(slmpm_sendv(with.live, 0, &null, 1, NULL, r), SLMPM_EINVAL, "piece 0 is NULL");
		SAYS(slmpm_sendv(with.live, 0, huge, 2, NULL, r), SLMPM_ELIMIT, "8589934592");
		SAYS(slmpm_sendv(with.live, SLMPM_ANY_STREAM, &piece, 1, NULL, r), SLMPM_EINVAL,
		     "stream");
		SAYS(slmpm_sendv(with.live, 0, &piece, 1, &small, r), SLMPM_EINVAL, "size");
		SAYS(slmpm_recvv(with.live, 0, NULL, 1, NULL, r), SLMPM_EINVAL, "1 pieces");
		SAYS(slmpm_recvv(with.live, 0, &piece, -1, NULL, r), SLMPM_EINVAL, "-1 pieces");
		SAYS(slmpm_recvv(with.live, 0, &null, 1, NULL, r), SLMPM_EINVAL, "piece 0 is NULL");
		SAYS(slmpm_recvv(with.live, 0, &piece, 1, &small, r), SLMPM_EINVAL, "size");
		part.flags = SLMPM_PART;
		SAYS(slmpm_sendv(with.live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x2");
		SAYS(slmpm_recvv(with.live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x2");
		part.flags = 0x80;
		SAYS(slmpm_sendv(with.live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x80");
		SAYS(slmpm_recvv(with.live, 0, &piece, 1, &part, r), SLMPM_EINVAL, "flags 0x80");
	}
	CHECK(slmpm_probe(with.live, 0, NULL, 0) == 0, "something there");
}

static void of_requests(void)
{
	slmpm_req zero[3] = {{0}, {0}, {0}}, bad = {UINT64_C(3) << 33}, two[2];
	const struct slmpm_iov iov = {&byte, 1};
	slmpm_ctx other;
	slmpm_listener listener;

	SAYS(slmpm_test(NULL, NULL), SLMPM_EINVAL, "no request");
	SAYS(slmpm_test(&zero[0], NULL), SLMPM_EHANDLE, "zero request");
	SAYS(slmpm_test(&bad, NULL), SLMPM_EHANDLE, "no such request");
	SAYS(slmpm_wait(NULL, 1, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, 0, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, -1, NULL, 0), SLMPM_EINVAL, "no requests");
	SAYS(slmpm_wait(zero, 3, NULL, 0), SLMPM_EINVAL, "every request is zero");
	SAYS(slmpm_wait(&bad, 1, NULL, 0), SLMPM_EHANDLE, "no such request");
	SAYS(slmpm_cancel(zero[0]), SLMPM_EHANDLE, "zero request");
	SAYS(slmpm_cancel(bad), SLMPM_EHANDLE, "no such request");
	/* Requests of two contexts cannot be waited for together. */
	OK(slmpm_open(&other, NULL));
	OK(slmpm_listen(&listener, other, "shm:bad-input-wait"));
	OK(slmpm_recvv(with.live, 98, &iov, 1, NULL, &two[0]));
	OK(slmpm_recvv(slmpm_any(other), 98, &iov, 1, NULL, &two[1]));
	SAYS(slmpm_wait(two, 2, NULL, 0), SLMPM_EINVAL, "two contexts");
	SAYS(slmpm_wait(two, 1, NULL, 0), SLMPM_EAGAIN, "accelerator");
	bad = two[0];
	OK(slmpm_cancel(two[0]));
	SAYS(slmpm_cancel(two[0]), SLMPM_EBUSY, "too far");
	CHECK(slmpm_test(&two[0], NULL) == 1 && !two[0].id, "canceled");
	SAYS(slmpm_test(&bad, NULL), SLMPM_EHANDLE, "no such request");
	OK(slmpm_cancel(two[1]));
	CHECK(slmpm_wait(two, 2, NULL, 0) == 1, "canceled");
	OK(slmpm_shut(other, 0));
}

static void of_loans(void)
{
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_PART}, small = {.size = 4},
			 odd = {.size = sizeof(odd), .flags = 0x10};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	void *buf, *another = &byte;

	OK(slmpm_peer_query(with.live, &info));
	SAYS(slmpm_loan(with.live, 0, 8, NULL, 0), SLMPM_EINVAL, "no place");
	SAYS(slmpm_loan(with.live, SLMPM_ANY_STREAM, 8, &buf, 0), SLMPM_EINVAL, "stream");
	SAYS(slmpm_loan(with.live, 0, info.loan_max + 1, &buf, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_loan(with.live, 0, SLMPM_MESSAGE_MAX + 1, &buf, 0), SLMPM_ELIMIT, "at most");
	SAYS(slmpm_loan(with.live, 0, SIZE_MAX, &buf, 0), SLMPM_ELIMIT, "at most");
	for (int large = 0; large < 2; large++) {
		OK(slmpm_loan(with.live, 0, large ? 100000 : 8, &buf, MS));
		SAYS(slmpm_loan(with.live, 0, 8, &another, 0), SLMPM_EBUSY, "accelerator");
		if (!large)
			SAYS(slmpm_send(with.live, 0, &byte, 1, 0), SLMPM_EBUSY, "commit or abort");
		else
			OK(slmpm_send(with.live, 0, &byte, 1, 0));
		SAYS(slmpm_commit(with.live, NULL, 1, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_commit(with.live, &byte, 1, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_abort(with.live, NULL), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_abort(with.live, &byte), SLMPM_ESTATE, "no such loan");
		SAYS(slmpm_commit(with.live, buf, 100001, NULL), SLMPM_EINVAL, "100001 bytes");
		SAYS(slmpm_commit(with.live, buf, 1, &small), SLMPM_EINVAL, ".size");
		SAYS(slmpm_commit(with.live, buf, 1, &odd), SLMPM_EINVAL, "flags 0x10");
		if (large) {
			OK(slmpm_commit(with.live, buf, 50000, &how));
			SAYS(slmpm_commit(with.live, buf, 49999, NULL), SLMPM_EINVAL,
			     "49999 bytes");
			SAYS(slmpm_abort(with.live, buf), SLMPM_ESTATE, "already");
			OK(slmpm_commit(with.live, buf, 100000, NULL));
		} else {
			SAYS(slmpm_commit(with.live, buf, 1, &how), SLMPM_ENOTSUP,
			     "inside a packet");
			OK(slmpm_abort(with.live, buf));
		}
		SAYS(slmpm_commit(with.live, buf, 8, NULL), SLMPM_ESTATE, "no such loan");
	}
	SAYS(slmpm_hold(with.live, 0, NULL, NULL, 0), SLMPM_EINVAL, "no place");
	SAYS(slmpm_hold(with.live, 0, &(const void *){NULL}, NULL, 0), SLMPM_EAGAIN, "accelerator");
	SAYS(slmpm_more(with.live, NULL, 0, NULL, 0), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_more(with.live, &byte, 0, NULL, 0), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_release(with.live, NULL), SLMPM_ESTATE, "no such message");
	SAYS(slmpm_release(with.live, &byte), SLMPM_ESTATE, "no such message");
}

static void of_looking(void)
{
	const struct slmpm_stats_page *page = NULL;
	struct slmpm_setting setting = {.size = 1};
	struct slmpm_check check = {.size = 1};
	struct slmpm_fabric_info fabric = {.size = 1};
	struct slmpm_stats_queue queue;
	uint64_t count;

	SAYS(slmpm_stats_attach(getpid(), 0, NULL), SLMPM_EINVAL, "page");
	SAYS(slmpm_stats_attach(getpid(), -1, &page), SLMPM_EINVAL, "index -1");
	SAYS(slmpm_stats_attach(getpid(), 999, &page), SLMPM_ENOENT, "999");
	SAYS(slmpm_stats_attach(INT_MAX, 0, &page), SLMPM_ENOENT, "2147483647");
	SAYS(slmpm_stats_attach(-1, 0, &page), SLMPM_ENOENT, "process -1");
	CHECK(!page && !slmpm_stats_of(NULL, 0), "a page of nothing");
	OK(slmpm_stats_attach(getpid(), 0, &page));
	SAYS(slmpm_stats_queue(NULL, 0, &queue, sizeof(queue)), SLMPM_EINVAL, "no page");
	SAYS(slmpm_stats_queue(page, 0, NULL, sizeof(queue)), SLMPM_EINVAL, "slmpm_stats_queue");
	SAYS(slmpm_stats_queue(page, 0, &queue, 0), SLMPM_EINVAL, "slmpm_stats_queue");
	SAYS(slmpm_stats_queue(page, 32, &queue, sizeof(queue)), SLMPM_ENOENT, "work queue 32");
	CHECK(!slmpm_stats_of(page, page->peers) && !slmpm_stats_of(page, UINT32_MAX), "behind it");
	slmpm_stats_detach(page);
	slmpm_stats_detach(NULL);
	slmpm_monitors_close(NULL);
	slmpm_plan_close(NULL);
	SAYS(slmpm_violation_at(-1, NULL, NULL), SLMPM_ENOENT, "-1");
	SAYS(slmpm_violation_at(INT_MAX, NULL, &count), SLMPM_ENOENT, "2147483647");
	for (int i = -1; i < INT_MAX / 2 + 1; i += INT_MAX / 2 + 1) {
		SAYS(slmpm_setting_at(i, &setting), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
		SAYS(slmpm_check_at(i, &check), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
		SAYS(slmpm_fabric_at(i, &fabric), i ? SLMPM_ENOENT : SLMPM_EINVAL, "");
	}
	SAYS(slmpm_setting_at(0, &setting), SLMPM_EINVAL, ".size");
	SAYS(slmpm_setting_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_check_at(0, &check), SLMPM_EINVAL, ".size");
	SAYS(slmpm_check_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_fabric_at(0, &fabric), SLMPM_EINVAL, ".size");
	SAYS(slmpm_fabric_at(0, NULL), SLMPM_EINVAL, ".size");
	SAYS(slmpm_setting_at(1000, &setting), SLMPM_ENOENT, "1000");
	SAYS(slmpm_check_at(1000, &check), SLMPM_ENOENT, "1000");
	SAYS(slmpm_fabric_at(1000, &fabric), SLMPM_ENOENT, "1000");
}

static void log_nothing(int level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
}

static void of_texts(void)
{
	static const int numbers[] = {INT_MIN, -SLMPM_ERROR_BASE, SLMPM_ERROR_BASE, 1, -133,
				      INT_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK(!strcmp(slmpm_strerror(numbers[i]), "unknown error") &&
			      !slmpm_error_name(numbers[i]),
		      "%d", numbers[i]);
	CHECK(!slmpm_plan_kind(0) && !slmpm_plan_kind(UINT32_MAX), "kinds");
	CHECK(!slmpm_plan_algorithm(0) && !slmpm_plan_algorithm(UINT32_MAX), "algorithms");
	CHECK(!slmpm_reason_name(INT_MIN) && !slmpm_reason_name(INT_MAX), "reasons");
	CHECK(!strcmp(slmpm_error_name(SLMPM_OK), "SLMPM_OK"), "%s", slmpm_error_name(SLMPM_OK));
#define OF_ERROR(name, number, text)                                                               \
	CHECK(SLMPM_##name > 4095, "%d is one of errno's", SLMPM_##name);                          \
	CHECK(!strcmp(slmpm_strerror(SLMPM_##name), text), "%d", SLMPM_##name);                    \
	CHECK(!strcmp(slmpm_strerror(-SLMPM_##name), text), "%d", SLMPM_##name);                   \
	CHECK(!strcmp(slmpm_error_name(SLMPM_##name), "SLMPM_" #name), "%d", SLMPM_##name);        \
	CHECK(!strcmp(slmpm_error_name(-SLMPM_##name), "SLMPM_" #name), "%d", SLMPM_##name);
	SLMPM_ERRORS(OF_ERROR)
#undef OF_ERROR
	CHECK(slmpm_perror(NULL) == 1 && slmpm_perror("") == 1, "perror");
	CHECK(slmpm_error_detail(), "NULL");
	slmpm_log(INT_MAX, log_nothing, NULL);
	slmpm_log(INT_MIN, NULL, NULL);
	slmpm_log(SLMPM_LOG_WARN, NULL, NULL);
	CHECK(!slmpm_protocol_name(-1) && !slmpm_protocol_name(INT_MAX), "protocols");
	CHECK(slmpm_memory_per_peer() > 0, "constants");
	CHECK(strstr(slmpm_build(), "flags: ") && slmpm_build() == slmpm_build(), "build");
}

/* As a binding calls what a C program has inline: by a pointer, which only an exported one has. */
static void of_inlines(void)
{
	slmpm_peer (*volatile any)(slmpm_ctx) = slmpm_any;
	int (*volatile size_class)(uint64_t) = slmpm_size_class;
	slmpm_ctx ctx = {77};

	CHECK(any(ctx).id == slmpm_any(ctx).id && any(ctx).id != ctx.id, "any peer");
	CHECK(size_class(65) == 1, "%d", size_class(65));
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		CHECK(slmpm_via(p) == SLMPM_VIA(p), "protocol %d", p);
	CHECK(!slmpm_via(-1) && !slmpm_via(SLMPM_PROTOCOLS), "no protocols");
	for (int n = 0; n < 7; n++)
		CHECK(slmpm_on_link(n) == SLMPM_ON_LINK(n), "link %d", n);
	CHECK(!slmpm_on_link(-1) && !slmpm_on_link(7), "no links");
}

#if SLMPM_VERSION != SLMPM_VERSION_OF(SLMPM_VERSION_MAJOR, SLMPM_VERSION_MINOR, SLMPM_VERSION_PATCH)
#error "a version is no number"
#endif

static void of_version(void)
{
	char text[32];
	int n = slmpm_version_number();

	CHECK(n == SLMPM_VERSION, "%d", n);
	snprintf(text, sizeof(text), "%d.%d.%d", n / 10000, n / 100 % 100, n % 100);
	CHECK(!strcmp(slmpm_version(), text), "%s, and %s", slmpm_version(), text);
}

static const struct bad_case cases[] = {
	CASE(slmpm_strerror, of_texts),
	CASE(slmpm_error_name, of_texts),
	CASE(slmpm_reason_name, of_texts),
	CASE(slmpm_plan_kind, of_texts),
	CASE(slmpm_plan_algorithm, of_texts),
	CASE(slmpm_error_detail, of_texts),
	CASE(slmpm_perror, of_texts),
	CASE(slmpm_log, of_texts),
	CASE(slmpm_build, of_texts),
	CASE(slmpm_version, of_version),
	CASE(slmpm_version_number, of_version),
	CASE(slmpm_any, of_inlines),
	CASE(slmpm_size_class, of_inlines),
	CASE(slmpm_via, of_inlines),
	CASE(slmpm_on_link, of_inlines),
	CASE(slmpm_memory_per_peer, of_texts),
	CASE(slmpm_protocol_name, of_texts),
	CASE(slmpm_monitors_close, of_looking),
	CASE(slmpm_plan_close, of_looking),
	CASE(slmpm_open, of_open),
	CASE(slmpm_default, of_open),
	CASE(slmpm_next_event, of_events),
	CASE(slmpm_peer_query, of_events),
	CASE(slmpm_peer_stats, of_events),
	CASE(slmpm_link_query, of_events),
	CASE(slmpm_link_use, of_events),
	CASE(slmpm_element_count, of_elements),
	CASE(slmpm_element_reserve, of_elements),
	CASE(slmpm_element_release, of_elements),
	CASE(slmpm_element_query, of_elements),
	CASE(slmpm_spawn, of_spawn),
	CASE(slmpm_parent, of_spawn),
	CASE(slmpm_parent_in, of_spawn),
	CASE(slmpm_kill, of_spawn),
	CASE(slmpm_listen, of_listen),
	CASE(slmpm_accept, of_listen),
	CASE(slmpm_unlisten, of_listen),
	CASE(slmpm_listener_query, of_listen),
	CASE(slmpm_connect, of_listen),
	CASE(slmpm_send, of_messages),
	CASE(slmpm_recv, of_messages),
	CASE(slmpm_sendv, of_messages),
	CASE(slmpm_recvv, of_messages),
	CASE(slmpm_probe, of_messages),
	CASE(slmpm_test, of_requests),
	CASE(slmpm_wait, of_requests),
	CASE(slmpm_cancel, of_requests),
	CASE(slmpm_loan, of_loans),
	CASE(slmpm_commit, of_loans),
	CASE(slmpm_abort, of_loans),
	CASE(slmpm_hold, of_loans),
	CASE(slmpm_more, of_loans),
	CASE(slmpm_release, of_loans),
	CASE(slmpm_stats_of, of_looking),
	CASE(slmpm_stats_queue, of_looking),
	CASE(slmpm_stats_attach, of_looking),
	CASE(slmpm_stats_detach, of_looking),
	CASE(slmpm_violation_at, of_looking),
	CASE(slmpm_setting_at, of_looking),
	CASE(slmpm_check_at, of_looking),
	CASE(slmpm_fabric_at, of_looking),
};

int main(void)
{
	settings_one_link("shm"); /* what a loan may be, and a link, is the fabric's */
	bad_begin();
	bad_try(cases, sizeof(cases) / sizeof(*cases));
	bad_end();
	printf("%zu calls\n", sizeof(cases) / sizeof(*cases));
	return 0;
}
