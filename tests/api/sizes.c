/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structures of callers with another header, all there are: shorter ones are taken and filled as
 * far as they go, longer ones too, with zeros behind; what is no size, and what sets more than the
 * library knows, is refused and says so. sizes.sh holds the lists against the headers.
 */
#include <stddef.h>
#include <string.h>

#include <slmpm_deposit.h>
#include <slmpm_group.h>
#include <slmpm_network.h>
#include <slmpm_overlay.h>
#include <slmpm_plan.h>

#include "tests/lib/actor.h"

#define BEYOND 4096
#define ROOM   65536
#define FILL   0xa5

static slmpm_ctx ctx;
static slmpm_wq queue;
static slmpm_peer named;
static slmpm_peer near, far;
static slmpm_listener listener;
static slmpm_mem mem;
static slmpm_rmem rmem;
static slmpm_mirror mirror;
static slmpm_ctr ctr;
static slmpm_group group;
static slmpm_overlay overlay;
static slmpm_cq cq;
static struct slmpm_monitors *monitors;
static struct slmpm_plan *plan;
static const struct slmpm_stats_page *page;
static unsigned char base[4096], own[64], *at;

/* ---- what the library fills ------------------------------------------------------------------ */

#define ASK(name, call)                                                                            \
	static int name(void *s, size_t size)                                                      \
	{                                                                                          \
		(void)size;                                                                        \
		return call;                                                                       \
	}

static int next_event(void *s, size_t size)
{
	slmpm_listener l;
	slmpm_peer a, b;
	int rc;

	(void)size;
	rc = slmpm_next_event(ctx, s, 0);
	if (rc)
		return rc;
	/* There was none: a connection makes some. */
	OK(slmpm_listen(&l, ctx, "shm:sizes-event"));
	OK(slmpm_connect(&a, ctx, "shm:sizes-event", PATIENCE));
	OK(slmpm_accept(l, &b, PATIENCE));
	OK(slmpm_unlisten(l));
	rc = slmpm_next_event(ctx, s, PATIENCE);
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	return rc;
}

ASK(peer_info, slmpm_peer_query(near, s))
ASK(link_info, slmpm_link_query(near, 0, s))
ASK(element_info, slmpm_element_query(1, s))
ASK(listener_info, slmpm_listener_query(listener, s))
ASK(address, slmpm_peer_address(near, 0, s))
ASK(mem_info, slmpm_mem_query(mem, s))
ASK(rmem_info, slmpm_rmem_query(rmem, s))
ASK(mirror_info, slmpm_mirror_query(mirror, near, s))
ASK(ctr_info, slmpm_ctr_query(ctr, s))
ASK(cq_info, slmpm_cq_query(cq, s))
ASK(wq_info, slmpm_wq_query(queue, s))
ASK(group_info, slmpm_group_query(group, s))
ASK(overlay_info, slmpm_overlay_query(overlay, s))
ASK(peer_at_info, slmpm_peer_at_query(named, s))
ASK(mode, slmpm_peer_mode(near, s))
ASK(setting, slmpm_setting_at(0, s))
ASK(check, slmpm_check_at(0, s))
ASK(fabric_info, slmpm_fabric_at(0, s))
ASK(plan_info, slmpm_plan_query(plan, s))
ASK(network, slmpm_network_make(s, SLMPM_NETWORK_TREE, 31, NULL, 0))
/* These have their size as an argument. */
ASK(stats, slmpm_peer_stats(near, s, size))
ASK(monitor, slmpm_monitor(near, s, size))
ASK(aggregate, slmpm_aggregate(s, size))
ASK(monitors_read, slmpm_monitors_read(monitors, 0, s, size))
ASK(group_shown, slmpm_groups_read(getpid(), 0, s, size))
ASK(stats_queue, slmpm_stats_queue(page, 0, s, size))
ASK(monitors_means, slmpm_monitors_aggregate(monitors, s, size))

/* The first of them. */
static int totals(void *s, size_t size)
{
	int n = slmpm_totals(ctx, s, size, 1);

	return n > 0 ? 0 : n;
}

/* Of a request, for as long as there is one. */
static int req_mode(void *s, size_t size)
{
	struct slmpm_iov piece = {own, sizeof(own)};
	slmpm_req req;
	int rc;

	(void)size;
	CHECK(slmpm_recvv(near, 77, &piece, 1, NULL, &req) == 0, "%s", slmpm_error_detail());
	rc = slmpm_req_mode(req, s);
	OK(slmpm_cancel(req));
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	return rc < 0 ? slmpm_req_mode(req, s) : rc; /* for the detail */
}

/* The first of a barrier's. */
static int plan_step(void *s, size_t size)
{
	const struct slmpm_plan_spec spec = {.size = sizeof(spec), .kind = 1, .members = 2};
	struct slmpm_plan *another;
	int rc;

	(void)size;
	OK(slmpm_plan_open(&another, &spec));
	rc = slmpm_plan_next(another, s);
	slmpm_plan_close(another);
	return rc == 1 ? 0 : rc;
}

static int overlay_message(void *s, size_t size)
{
	(void)size;
	if (!s) /* it need not be there */
		return -SLMPM_EINVAL;
	OK(slmpm_overlay_send(overlay, 0, 1, "x", 1, NULL, NULL));
	return slmpm_overlay_recv(overlay, 0, 1, own, 1, s, 0) == 1 ? 0 : -SLMPM_EINVAL;
}

static const struct asked {
	const char *name;
	size_t size;
	int (*ask)(void *s, size_t size);
	bool moves; /* its content, from one call to the next */
} asked[] = {
	{"slmpm_event", sizeof(struct slmpm_event), next_event, true},
	{"slmpm_peer_info", sizeof(struct slmpm_peer_info), peer_info, false},
	{"slmpm_link_info", sizeof(struct slmpm_link_info), link_info, true},
	{"slmpm_element_info", sizeof(struct slmpm_element_info), element_info, false},
	{"slmpm_listener_info", sizeof(struct slmpm_listener_info), listener_info, false},
	{"slmpm_address", sizeof(struct slmpm_address), address, false},
	{"slmpm_mem_info", sizeof(struct slmpm_mem_info), mem_info, false},
	{"slmpm_mem_info", sizeof(struct slmpm_mem_info), rmem_info, false},
	{"slmpm_mirror_info", sizeof(struct slmpm_mirror_info), mirror_info, true},
	{"slmpm_ctr_info", sizeof(struct slmpm_ctr_info), ctr_info, false},
	{"slmpm_cq_info", sizeof(struct slmpm_cq_info), cq_info, false},
	{"slmpm_group_info", sizeof(struct slmpm_group_info), group_info, false},
	{"slmpm_overlay_info", sizeof(struct slmpm_overlay_info), overlay_info, false},
	{"slmpm_overlay_message", sizeof(struct slmpm_overlay_message), overlay_message, false},
	{"slmpm_wq_info", sizeof(struct slmpm_wq_info), wq_info, false},
	{"slmpm_peer_at_info", sizeof(struct slmpm_peer_at_info), peer_at_info, false},
	{"slmpm_mode", sizeof(struct slmpm_mode), mode, false},
	{"slmpm_mode", sizeof(struct slmpm_mode), req_mode, false},
	{"slmpm_setting", sizeof(struct slmpm_setting), setting, false},
	{"slmpm_check", sizeof(struct slmpm_check), check, true},
	{"slmpm_fabric_info", sizeof(struct slmpm_fabric_info), fabric_info, false},
	{"slmpm_network", sizeof(struct slmpm_network), network, false},
	{"slmpm_plan_info", sizeof(struct slmpm_plan_info), plan_info, false},
	{"slmpm_plan_step", sizeof(struct slmpm_plan_step), plan_step, false},
	{"slmpm_stats", sizeof(struct slmpm_stats), stats, true},
	{"slmpm_monitor", sizeof(struct slmpm_monitor), monitor, true},
	{"slmpm_aggregate", sizeof(struct slmpm_aggregate), aggregate, true},
	{"slmpm_monitor", sizeof(struct slmpm_monitor), monitors_read, true},
	{"slmpm_aggregate", sizeof(struct slmpm_aggregate), monitors_means, true},
	{"slmpm_totals", sizeof(struct slmpm_totals), totals, true},
	{"slmpm_group_shown", sizeof(struct slmpm_group_shown), group_shown, true},
	{"slmpm_stats_queue", sizeof(struct slmpm_stats_queue), stats_queue, true},
};

static bool all_are(const unsigned char *from, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++)
		if (from[i] != value)
			return false;
	return true;
}

static uint32_t own_size(const unsigned char *s)
{
	uint32_t size;

	memcpy(&size, s, sizeof(size));
	return size;
}

/* Into S, which is SIZE bytes long, and nothing behind it. */
static void fill(const struct asked *a, unsigned char *s, size_t size, int least)
{
	const uint32_t own_word = (uint32_t)size;
	int rc;

	memset(s, FILL, ROOM);
	memcpy(s, &own_word, sizeof(own_word));
	rc = a->ask(s, size);
	CHECK(rc == least, "%s of %zu: %d (%s)", a->name, size, rc, slmpm_error_detail());
	CHECK(own_size(s) == size, "%s of %zu: .size is now %u", a->name, size, own_size(s));
	CHECK(all_are(s + size, ROOM - size, FILL), "%s of %zu: written behind it", a->name, size);
	if (size > a->size)
		CHECK(all_are(s + a->size, size - a->size, 0), "%s of %zu: no zeros", a->name,
		      size);
}

static void refuse_size(const struct asked *a, uint32_t size)
{
	static unsigned char s[ROOM];
	int rc;

	memset(s, FILL, sizeof(s));
	memcpy(s, &size, sizeof(size));
	rc = a->ask(s, size);
	CHECK(rc == -SLMPM_EINVAL && strstr(slmpm_error_detail(), ".size") &&
		      strstr(slmpm_error_detail(), "slmpm_"),
	      "%s of %u: %d (%s)", a->name, size, rc, slmpm_error_detail());
	CHECK(all_are(s + 4, ROOM - 4, FILL), "%s of %u: written, though refused", a->name, size);
}

static void one_asked(const struct asked *a)
{
	static unsigned char whole[ROOM], s[ROOM];
	const uint32_t none[] = {
		0,          4,         7, (uint32_t)a->size - 1, (uint32_t)a->size + BEYOND + 4,
		0xdeadbeef, UINT32_MAX};
	size_t step = a->size > 400 ? 132 : a->size > 100 ? 20 : 4;
	int least = a->ask == next_event || a->ask == monitors_read || a->ask == monitors_means ||
		    a->ask == stats_queue;

	fill(a, whole, a->size, least);
	for (size_t size = 8; size < a->size; size += step) {
		fill(a, s, size, least);
		CHECK(a->moves || !memcmp(s + 4, whole + 4, size - 4), "%s of %zu: other bytes",
		      a->name, size);
	}
	fill(a, s, a->size + 4, least);
	CHECK(a->moves || !memcmp(s + 4, whole + 4, a->size - 4), "%s: other bytes", a->name);
	fill(a, s, a->size + BEYOND, least);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		refuse_size(a, none[i]);
	REFUSED(a->ask(NULL, 64), SLMPM_EINVAL, ".size");
}

/* ---- what it takes --------------------------------------------------------------------------- */

static int with_options(const void *s)
{
	slmpm_ctx another;
	int rc = slmpm_open(&another, s);

	if (rc == 0)
		OK(slmpm_shut(another, PATIENCE));
	return rc;
}

static int with_spawn_options(const void *s)
{
	slmpm_peer peer;
	int rc = slmpm_spawn(&peer, "/bin/true", NULL, s);

	if (rc == 0)
		(void)slmpm_join(peer, NULL, PATIENCE);
	return rc;
}

static int with_mirror_options(const void *s)
{
	slmpm_mirror another;
	int rc = slmpm_mirror_create(ctx, base + 2048, 1024, s, &another);

	if (rc == 0)
		OK(slmpm_mirror_destroy(another));
	return rc;
}

static int with_wq_options(const void *s)
{
	slmpm_wq wq;
	int rc = slmpm_wq_create(ctx, s, &wq);

	if (rc == 0)
		OK(slmpm_wq_destroy(wq));
	return rc;
}

static struct slmpm_iov piece = {own, 8};

static int with_wr(const void *s)
{
	int rc = slmpm_post(queue, s, 1);
	struct slmpm_done done;

	if (rc < 0)
		return rc;
	EXPECT(rc, 1);
	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	EXPECT(done.status, 0);
	return slmpm_recv(near, 0, NULL, 0, NULL, PATIENCE) < 0;
}

/* What was sent is taken in again; a receive finds nothing. */
static int took(int rc)
{
	if (rc == 0)
		(void)slmpm_recv(near, 5, own, sizeof(own), NULL, PATIENCE);
	return rc;
}

static int how_sendv(const void *s)
{
	return took(slmpm_sendv(far, 5, &piece, 1, s, NULL));
}

static int how_recvv(const void *s)
{
	int64_t rc;

	OK(slmpm_send(far, 5, own, 8, PATIENCE));
	while (slmpm_probe(near, 5, NULL, PATIENCE) != 1)
		;
	rc = slmpm_recvv(near, 5, &piece, 1, s, NULL);
	if (rc < 0)
		(void)slmpm_recv(near, 5, own, sizeof(own), NULL, PATIENCE);
	return rc == 8 ? 0 : (int)rc;
}

static int how_commit(const void *s)
{
	void *buf;
	int rc;

	OK(slmpm_loan(far, 5, 8, &buf, PATIENCE));
	rc = slmpm_commit(far, buf, 8, s);
	if (rc < 0)
		OK(slmpm_abort(far, buf));
	return took(rc);
}

static const struct slmpm_span span = {0, 8};

#define HOW(name, call)                                                                            \
	static int name(const void *s)                                                             \
	{                                                                                          \
		return call;                                                                       \
	}

static struct slmpm_put_spec put_all = {.size = sizeof(put_all), .space = 1};
static struct slmpm_deposits deposits = {.size = sizeof(deposits)};
static struct slmpm_coll coll = {.size = sizeof(coll), .kind = SLMPM_COLL_BARRIER};

static struct slmpm_drive barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};

static int with_drive(const void *s)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	int rc;

	OK(slmpm_group_serve(group, &how));
	rc = slmpm_group_drive(group, s, &how, NULL);
	OK(slmpm_group_serve(group, NULL));
	return rc;
}

HOW(with_coll, slmpm_collective(group, s, PATIENCE))
HOW(with_start, slmpm_collective_start(group, s, NULL, NULL))
HOW(how_start, slmpm_collective_start(group, &coll, s, NULL))
static int combined; /* of one member: never */

static void combine_none(void *to, const void *left, const void *right, uint64_t count, void *arg)
{
	(void)to, (void)left, (void)right, (void)count, (void)arg;
	combined++;
}

static const struct slmpm_combine combine = {.width = 3, .function = combine_none};

static int with_combine(const void *s)
{
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_ALLREDUCE, .count = 2};
	char from[6] = "abcde", to[6] = "";
	int rc;

	c.from = from;
	c.to = to;
	c.combine = s;
	rc = slmpm_collective(group, &c, PATIENCE);
	CHECK(rc < 0 || !memcmp(from, to, sizeof(to)), "other bytes");
	return rc;
}

HOW(with_put_all, slmpm_put_all(group, s, NULL, NULL))
HOW(how_put_all, slmpm_put_all(group, &put_all, s, NULL))
HOW(with_deposits, slmpm_group_deposits(group, s))
HOW(how_put, slmpm_put(rmem, 0, own, 8, s, NULL))
HOW(how_get, slmpm_get(rmem, 0, own, 8, s, NULL))
HOW(how_putv, slmpm_putv(rmem, &span, 1, &piece, 1, s, NULL))
HOW(how_getv, slmpm_getv(rmem, &span, 1, &piece, 1, s, NULL))
HOW(how_atomic, slmpm_atomic(rmem, 0, SLMPM_FETCH_ADD, 64, 1, 0, NULL, s, NULL))
HOW(how_am, slmpm_am(far, 3, NULL, 0, own, 8, s, NULL))

static int how_fifo(const void *s)
{
	struct slmpm_how fifo = {.size = sizeof(fifo), .flags = SLMPM_FIFO, .timeout_ms = PATIENCE};
	struct slmpm_fifo entry;
	int rc;

	OK(slmpm_put(rmem, 0, own, 8, &fifo, NULL));
	OK(slmpm_fifo_take(near, &entry, PATIENCE));
	rc = slmpm_fifo_store(&entry, mem, 0, s, NULL);
	if (rc < 0)
		OK(slmpm_fifo_drop(&entry));
	return rc;
}

static int with_plan_spec(const void *s)
{
	struct slmpm_plan *another;
	int rc = slmpm_plan_open(&another, s);

	if (rc == 0)
		slmpm_plan_close(another);
	return rc;
}

static int with_network(const void *s)
{
	int rc = slmpm_network_hops(s, 0, 30);

	return rc == 4 ? 0 : rc;
}

static int with_overlay_options(const void *s)
{
	static const struct slmpm_network alone = {
		.size = sizeof(alone), .kind = SLMPM_NETWORK_TREE, .nodes = 1};
	slmpm_overlay another;
	int rc = slmpm_overlay_open(&another, group, &alone, s, 0);

	if (rc == 0)
		OK(slmpm_overlay_close(another, 0));
	return rc;
}

static const struct slmpm_options options = {.wait = SLMPM_WAIT_SPIN, .ring_segments = 1024};
static const struct slmpm_spawn_options spawn_options = {.flags = SLMPM_SPAWN_CLEAN_ENV};
static const struct slmpm_mirror_options mirror_options = {.track = SLMPM_TRACK_TWIN};
static struct slmpm_wq_options wq_options = {.depth = 4};
static struct slmpm_wr wr = {.op = SLMPM_OP_SEND};
static const struct slmpm_plan_spec plan_spec = {.kind = 1, .members = 5, .count = 9};
static const struct slmpm_network tree = {.kind = SLMPM_NETWORK_TREE, .nodes = 31};
static const struct slmpm_overlay_options overlay_options = {.buffers = 3, .packet = 64};
static const struct slmpm_how how = {.imm = 7, .timeout_ms = PATIENCE};

static const struct given {
	const char *name;
	const void *s;
	size_t size, least; /* all but what is needed */
	int (*give)(const void *s);
	size_t reserved; /* where it is, or 0: there is none */
} given[] = {
	{"slmpm_options", &options, sizeof(options), 8, with_options,
	 offsetof(struct slmpm_options, reserved)},
	{"slmpm_spawn_options", &spawn_options, sizeof(spawn_options), 8, with_spawn_options,
	 offsetof(struct slmpm_spawn_options, reserved)},
	{"slmpm_mirror_options", &mirror_options, sizeof(mirror_options), 8, with_mirror_options,
	 offsetof(struct slmpm_mirror_options, reserved)},
	{"slmpm_wq_options", &wq_options, sizeof(wq_options),
	 offsetof(struct slmpm_wq_options, ctr), with_wq_options,
	 offsetof(struct slmpm_wq_options, reserved)},
	{"slmpm_wr", &wr, sizeof(wr), offsetof(struct slmpm_wr, stream), with_wr,
	 offsetof(struct slmpm_wr, reserved)},
	{"slmpm_plan_spec", &plan_spec, sizeof(plan_spec), offsetof(struct slmpm_plan_spec, count),
	 with_plan_spec, 0},
	{"slmpm_network", &tree, sizeof(tree), offsetof(struct slmpm_network, links), with_network,
	 0},
	{"slmpm_overlay_options", &overlay_options, sizeof(overlay_options),
	 offsetof(struct slmpm_overlay_options, flags), with_overlay_options, 0},
	{"slmpm_coll", &coll, sizeof(coll), 8, with_coll, 0},
	{"slmpm_coll", &coll, sizeof(coll), 8, with_start, 0},
	{"slmpm_drive", &barrier, sizeof(barrier), 8, with_drive, 0},
	{"slmpm_combine", &combine, sizeof(combine), offsetof(struct slmpm_combine, arg),
	 with_combine, 0},
	{"slmpm_put_spec", &put_all, sizeof(put_all), offsetof(struct slmpm_put_spec, imm),
	 with_put_all, offsetof(struct slmpm_put_spec, reserved)},
	{"slmpm_deposits", &deposits, sizeof(deposits), 8, with_deposits,
	 offsetof(struct slmpm_deposits, reserved)},
	{"slmpm_how", &how, sizeof(how), 16, how_start, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_put_all, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_sendv, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_recvv, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_commit, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_put, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_get, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_putv, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_getv, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_atomic, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_am, 0},
	{"slmpm_how", &how, sizeof(how), 16, how_fifo, 0},
};

/* As a caller has it that knows so much of it, SIZE in its first word and garbage behind. */
static int give(const struct given *g, uint32_t size, size_t behind, unsigned char last)
{
	static unsigned char s[ROOM];

	memset(s, FILL, sizeof(s));
	memcpy(s, g->s, g->size);
	if (size < g->size) /* what it does not know is not looked at */
		memset(s + size, FILL, g->size - size);
	memset(s + g->size, 0, behind);
	if (behind)
		s[g->size + behind - 1] = last;
	memcpy(s, &size, sizeof(size));
	return g->give(s);
}

static void refuse_reserved(const struct given *g)
{
	unsigned char s[256];
	uint32_t size = (uint32_t)g->size;

	memcpy(s, g->s, g->size);
	memcpy(s, &size, sizeof(size));
	s[g->reserved + 3] = 1;
	REFUSED(g->give(s), SLMPM_EINVAL, ".reserved");
}

static void one_given(const struct given *g)
{
	const uint32_t known = (uint32_t)g->size;
	const uint32_t none[] = {0, 4, 7, known - 1, known + BEYOND + 4, 0xdeadbeef, UINT32_MAX};
	int rc;

	for (uint32_t size = (uint32_t)g->least; size <= known; size += 4)
		if (known % 8 == 0 && size % 8) /* half a pointer might be there */
			REFUSED(give(g, size, 0, 0), SLMPM_EINVAL, "ends within a member");
		else
			CHECK((rc = give(g, size, 0, 0)) == 0, "%s of %u: %d (%s)", g->name, size,
			      rc, slmpm_error_detail());
	CHECK((rc = give(g, known + 8, 8, 0)) == 0, "%s, longer: %d (%s)", g->name, rc,
	      slmpm_error_detail());
	CHECK((rc = give(g, known + BEYOND, BEYOND, 0)) == 0, "%s, longer: %d (%s)", g->name, rc,
	      slmpm_error_detail());
	REFUSED(give(g, known + 8, 8, 1), SLMPM_EINVAL, "does not know");
	REFUSED(give(g, known + BEYOND, BEYOND, 1), SLMPM_EINVAL, "does not know");
	REFUSED(give(g, known + 4, 4, 1), SLMPM_EINVAL, "does not know");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		REFUSED(give(g, none[i], 0, 0), SLMPM_EINVAL, ".size");
	if (g->reserved)
		refuse_reserved(g);
}

/* ---- those whose arrays keep their stride ---------------------------------------------------- */

/* What a completion and an entry of a FIFO have in reserve. */
static void reserves(void)
{
	struct slmpm_how queued = {.size = sizeof(queued), .cq = cq, .timeout_ms = PATIENCE};
	struct slmpm_done done[2];

	_Static_assert(sizeof(struct slmpm_done) == 64, "stride");
	memset(done, FILL, sizeof(done));
	OK(slmpm_put(rmem, 0, own, 8, &queued, NULL));
	EXPECT(slmpm_cq_wait(cq, done, 2, PATIENCE), 1);
	CHECK(all_are((void *)done[0].reserved, sizeof(done[0].reserved), FILL), "of a queue");
	OK(slmpm_send(far, 5, own, 8, PATIENCE));
	EXPECT(slmpm_recv(near, 5, own, 8, done, PATIENCE), 8);
	CHECK(all_are((void *)done[0].reserved, sizeof(done[0].reserved), FILL), "of a receive");
}

static void handler(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
}

/* Once its context has waited. */
static void show_group(void)
{
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_group_shown shown;

	while (slmpm_groups_read(getpid(), 0, &shown, sizeof(shown)) < 0)
		(void)slmpm_next_event(ctx, &event, 20);
}

static void set_up(void)
{
	struct slmpm_key key;
	slmpm_mirror other;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &far, &near);
	OK(slmpm_listen(&listener, ctx, "shm:sizes"));
	OK(slmpm_mem_alloc(ctx, 4096, SLMPM_READ_WRITE, &mem, (void **)&at));
	OK(slmpm_mem_key(mem, near, SLMPM_READ_WRITE, &key));
	actor_settle(near, far);
	OK(slmpm_mem_open(far, &key, &rmem));
	OK(slmpm_mirror_create(ctx, base, 1024, NULL, &mirror));
	OK(slmpm_mirror_create(ctx, base + 1024, 1024, NULL, &other));
	(void)slmpm_mirror_attach(mirror, near, 1, SLMPM_MIRROR_LEAD, 0);
	OK(slmpm_mirror_attach(other, far, 1, SLMPM_MIRROR_FOLLOW, PATIENCE));
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_group_create(&group, ctx, &(slmpm_peer){0}, 1, 1, 0));
	show_group();
	OK(slmpm_overlay_open(&overlay, group,
			      &(struct slmpm_network){.size = sizeof(struct slmpm_network),
						      .kind = SLMPM_NETWORK_TREE,
						      .nodes = 1},
			      NULL, 0));
	OK(slmpm_cq_create(ctx, &cq));
	wq_options.cq = cq;
	wq_options.size = sizeof(wq_options);
	OK(slmpm_wq_create(ctx, &wq_options, &queue));
	OK(slmpm_peer_at(&named, ctx, "shm:nobody-is-here"));
	wr.peer = far;
	OK(slmpm_am_handler(ctx, 3, handler, NULL));
	actor_nap(ctx);
	OK(slmpm_plan_open(&plan, &(struct slmpm_plan_spec){.size = sizeof(struct slmpm_plan_spec),
							    .kind = 1,
							    .members = 2}));
	OK(slmpm_monitors_open(getpid(), &monitors));
	OK(slmpm_stats_attach(getpid(), 0, &page));
}

int main(void)
{
	alarm(50);
	set_up();
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		one_asked(&asked[i]);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		one_given(&given[i]);
	reserves();
	slmpm_monitors_close(monitors);
	slmpm_plan_close(plan);
	return 0;
}
