/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a group: each member makes an object that it alone can write, and gives it to the
 * others by their bells. All say by an operation of the group what they bring, and by another one
 * that they have all of it: all have the memory then, or none. Which object is whose the members
 * say on their boards: a bell is rung by any of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slmpm/base/clock.h"
#include "slmpm/board/layout.h"
#include "slmpm/group/alloc.h"
#include "slmpm/group/operation.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define CALL      "slmpm_group_alloc"
#define MARK      UINT32_C(0x636f6c61) /* no allgather of the application's, as a rule */
#define AGAIN_MAX 50                   /* ms between looks at bells and others; at first one */
#define GRACE_MS  1000                 /* behind the deadline, to agree that it has passed */

/* ---- who brings what ------------------------------------------------------------------------- */

static int alloc_time_left(const struct allocation *a)
{
	int left = clock_ms(clock_now(), a->deadline, -1);

	return left ? left : 1;
}

static bool alloc_is_over(const struct group *g)
{
	return g->status || g->error;
}

static bool maps(const struct allocation *a, uint32_t r)
{
	return !(a->all[r].flags & SLMPM_ALLOC_NOT_HERE);
}

static uint64_t whole_pages(uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

static int alloc_gather(struct allocation *a, const void *from, void *to, uint64_t bytes,
			int timeout_ms)
{
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = SLMPM_COLL_ALLGATHER,
				     .type = SLMPM_UINT8,
				     .from = from,
				     .to = to,
				     .count = bytes};

	return step_await(a->group, &c, BOARD_CALL_ALLOC, timeout_ms);
}

/* The own object, without pages, and what it is known by: 0, or a negative errno. */
static int make_own(struct allocation *a, struct offer *own)
{
	struct group *g = a->group;
	struct stat st;
	int rc = mapping_reserve(&a->own, "slmpm-group-memory", whole_pages(own->len));

	if (rc == 0)
		rc = mapping_close_seals(&a->own);
	if (rc == 0 && fstat(a->own.fd, &st) != 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	own->address = (uint64_t)(uintptr_t)a->own.base;
	/* Pairs with the acquire in alloc_came. */
	atomic_store_explicit(&g->boards.own->object, (uint64_t)st.st_ino, memory_order_release);
	return 0;
}

/* RC, of LEN bytes for a part: an error, which says of what there is too little. */
static COLD int part_error(int rc, uint64_t len)
{
	struct spare spare = mapping_spare("");

	if (rc == -ETIMEDOUT)
		return error_set(SLMPM_ETIMEOUT, "its pages take longer");
	if (rc != -ENOMEM) {
		char what[64];

		(void)snprintf(what, sizeof(what), "a part of %" PRIu64 " bytes", len);
		return error_system(rc, what);
	}
	return error_set(SLMPM_ENOMEM,
			 "a part of %" PRIu64 " bytes: %" PRIu64 " are left by %s, of "
			 "which a 16th is kept; or RLIMIT_AS is in the way",
			 len, spare.bytes, spare.by);
}

/* What a member asks for, this one or another: 0, or why it cannot be. */
static COLD int alloc_refuses(int place, uint64_t len, uint32_t flags)
{
	if (place < SLMPM_ALLOC_BESIDE)
		return error_set(SLMPM_EINVAL, "place %d is no rank", place);
	if (flags & ~SLMPM_ALLOC_NOT_HERE)
		return error_set(SLMPM_EINVAL, "unknown flags 0x%x", flags);
	if (len && flags)
		return error_set(SLMPM_EINVAL, "%" PRIu64 " bytes, and SLMPM_ALLOC_NOT_HERE", len);
	if (len > SIZE_MAX / 2)
		return error_set(SLMPM_EINVAL, "%" PRIu64 " bytes are in no memory", len);
	return 0;
}

/* What another member has said, as an error: a positive number. */
static int code_of(int32_t said)
{
	return said > 0 ? said : SLMPM_EPROTO;
}

/* Its reason, as what it has said shows, for others than itself. */
static COLD int refused_by(const struct allocation *a, uint32_t r)
{
	const struct boards *b = &a->group->boards;
	const struct offer *o = &a->all[r];
	const int code = code_of(o->error);
	char why[ERROR_DETAIL], text[96] = "";

	if (alloc_refuses(o->place, o->len, o->flags) < 0)
		(void)snprintf(why, sizeof(why), "%s", group_detail());
	else if (o->address && o->address <= INT_MAX)
		(void)snprintf(why, sizeof(why), "a part of %" PRIu64 " bytes: %s", o->len,
			       strerror_r((int)o->address, text, sizeof(text)));
	else if (code == SLMPM_EINVAL) /* all else that is shows in its offer */
		(void)snprintf(why, sizeof(why), "no place for the handle");
	else
		(void)snprintf(why, sizeof(why), "%s", slmpm_strerror(-code));
	return error_set(code, BOARD_MEMBER " refuses: %s", BOARD_MEMBER_OF(b, r), why);
}

static const char *disagrees(const struct allocation *a, uint32_t r)
{
	const struct offer *o = &a->all[r], *own = &a->all[a->group->boards.rank];

	if (o->place != own->place)
		return "has another place";
	if (o->place >= 0 &&
	    ((uint32_t)o->place >= a->group->boards.size || !maps(a, (uint32_t)o->place)))
		return "has a place that is no member which maps it";
	if (o->len > INT64_MAX - UINT16_MAX || (o->len && !maps(a, r)))
		return "has a length that cannot be";
	return NULL;
}

/* An error comes before what only some see as one, for it to be the same at all. TEXT: the detail
 * of this member's. */
static int read_offers(struct allocation *a, const char *text)
{
	const struct boards *b = &a->group->boards;

	for (uint32_t r = 0; r < b->size; r++) {
		int code = a->all[r].error ? code_of(a->all[r].error) : 0;

		if (code && r == b->rank)
			return error_set(code, "%s", text);
		if (code)
			return refused_by(a, r);
	}
	for (uint32_t r = 0; r < b->size; r++) {
		const char *why = disagrees(a, r);

		if (why)
			return error_set(SLMPM_EINVAL, BOARD_MEMBER " %s", BOARD_MEMBER_OF(b, r),
					 why);
	}
	return 0;
}

/* The largest number that any has free. */
static uint32_t choose_id(const struct allocation *a)
{
	uint32_t id = 1;

	for (uint32_t r = 0; r < a->group->boards.size; r++)
		id = a->all[r].id > id ? a->all[r].id : id;
	return id;
}

/* All give up at the same time: so each is there to agree on it. */
static void meet_deadline(struct allocation *a)
{
	uint64_t now = clock_now();

	for (uint32_t r = 0; r < a->group->boards.size; r++)
		if (a->all[r].left_ms)
			a->deadline =
				least_of(a->deadline, now + a->all[r].left_ms * UINT64_C(1000000));
}

static int exchange_offers(struct allocation *a, struct offer *own)
{
	struct group *g = a->group;
	char text[ERROR_DETAIL];
	int rc = own->len && !own->error ? make_own(a, own) : 0;

	if (rc < 0) {
		own->error = -part_error(rc, own->len);
		own->address = (uint64_t)-rc;
	}
	(void)snprintf(text, sizeof(text), "%s", group_detail());
	rc = alloc_gather(a, own, a->all, sizeof(*own), alloc_time_left(a));
	if (rc < 0)
		return rc;
	meet_deadline(a);
	for (uint32_t r = 0; r < g->boards.size; r++)
		if (a->all[r].mark != MARK) {
			rc = error_set(SLMPM_EINVAL, BOARD_MEMBER " does an allgather, not " CALL,
				       BOARD_MEMBER_OF(&g->boards, r));
			operations_break(g, rc);
			return rc;
		}
	return read_offers(a, text);
}

/* ---- passed on ------------------------------------------------------------------------------- */

static bool awaits(const struct allocation *a, uint32_t r)
{
	uint32_t rank = a->group->boards.rank;

	return r != rank && maps(a, rank) && a->all[r].len && a->fds[r] < 0;
}

/* The own part has gone to all, and theirs have come. */
static bool has_all(const struct allocation *a)
{
	for (uint32_t r = 0; r < a->group->boards.size; r++)
		if (awaits(a, r))
			return false;
	return a->unsent == a->group->boards.size;
}

static bool alloc_is_settled(void *arg)
{
	const struct allocation *a = arg;

	return has_all(a) || a->lost || alloc_is_over(a->group);
}

/* One that has not passed its part is through with passing: its part has come to the bell by now,
 * or never does. Where that could not be received it is asked again. */
static bool one_gives_up(const struct allocation *a)
{
	const struct boards *b = &a->group->boards;

	for (uint32_t r = 0; r < b->size; r++)
		if (awaits(a, r) && a->fds[r] != ALLOC_MISSED && boards_has(b, r, b->posted + 1))
			return true;
	return false;
}

/* The question may be lost, too: until what it asks for has come. */
static void ask_again(struct allocation *a)
{
	const struct boards *b = &a->group->boards;

	for (uint32_t r = 0; r < b->size; r++)
		if (awaits(a, r) && a->fds[r] == ALLOC_MISSED)
			(void)bell_pass(b->bells[r], b->seats[b->rank], -1);
}

/* As long as no bell is full: 0, or negative with the detail set. */
static int pass_own(struct allocation *a)
{
	const struct boards *b = &a->group->boards;

	for (; a->unsent < b->size; a->unsent++) {
		uint32_t r = a->unsent;
		int rc = 0;

		if (r != b->rank && maps(a, r) && a->own.base)
			rc = bell_pass(b->bells[r], b->seats[b->rank], a->own.fd);
		if (bell_is_busy(rc))
			break;
		if (rc < 0)
			return error_system(rc, "its own part, to another member");
	}
	return 0;
}

static int pass_all(struct allocation *a)
{
	struct group *g = a->group;
	int given_up = 0, again = 1, rc;

	do {
		rc = pass_own(a);
		if (rc < 0)
			return rc;
		/* What it has passed before may still be on its way to here: it is asked twice. */
		given_up = one_gives_up(a) ? given_up + 1 : 0;
		ask_again(a);
		again = given_up ? AGAIN_MAX : again;
		rc = wait_until(g->ctx, alloc_is_settled, a,
				clock_ms(clock_now(), a->deadline, again));
		again = again < AGAIN_MAX ? 2 * again : again;
	} while (rc < 0 && given_up < 2 && clock_now() < a->deadline);
	if (has_all(a))
		return 0;
	if (given_up)
		return error_set(SLMPM_ECANCELED, "another member gives up");
	if (a->lost)
		return error_set(SLMPM_ENOFILE, "another member's part cannot be received");
	return error_set(SLMPM_ETIMEOUT, "not all parts have come");
}

/* ---- mapped ---------------------------------------------------------------------------------- */

static struct shared_part *alloc_part(const struct allocation *a, uint32_t r)
{
	return &a->shared->part[a->group->boards.seats[r]];
}

/* This member makes the pages of rank R's. */
static bool makes_pages(const struct allocation *a, uint32_t r)
{
	int32_t place = a->all[r].place;

	return (place < 0 ? r : (uint32_t)place) == a->group->boards.rank;
}

/* Rank R's: 0, or a negative errno. */
static int map_part(struct allocation *a, uint32_t r)
{
	const struct boards *b = &a->group->boards;
	const struct offer *o = &a->all[r];
	struct shared_part *p = alloc_part(a, r);
	struct mapping m = a->own;
	int fd = r == b->rank ? a->own.fd : a->fds[r], rc = 0;

	if (r == b->rank) /* it is the part's from now on */
		a->own.base = NULL;
	else
		rc = mapping_attach(&m, fd, whole_pages(o->len), MAPPING_READ);
	if (rc < 0)
		return rc;
	*p = (struct shared_part){m.base, o->len, m.size, o->address};
	return makes_pages(a, r) ? mapping_allocate(fd, m.size, a->deadline) : 0;
}

static int map_all(struct allocation *a)
{
	const struct boards *b = &a->group->boards;

	a->shared = shared_new(b);
	if (!a->shared)
		return error_set(SLMPM_ENOMEM, "for its parts");
	a->shared->id = choose_id(a);
	for (uint32_t r = 0; r < b->size; r++) {
		int rc = clock_now() < a->deadline ? 0 : -ETIMEDOUT;

		if (rc == 0 && a->all[r].len)
			rc = map_part(a, r);
		if (rc < 0)
			return part_error(rc, a->all[r].len);
	}
	return 0;
}

/* All pages are there, or whose part it is has lied: then the own ones are made here, and another's
 * is not read. */
static void map_pages(const struct allocation *a)
{
	const struct boards *b = &a->group->boards;

	for (uint32_t r = 0; a->shared && r < b->size; r++) {
		struct shared_part *p = alloc_part(a, r);
		/* Cast: to map its pages, or to give it back, is no store. */
		struct mapping m = {
			.base = (void *)(uintptr_t)p->base, .size = p->mapped, .fd = -1};

		if (!p->base || mapping_populate(&m, r == b->rank ? a->own.fd : a->fds[r]))
			continue;
		if (r == b->rank) {
			(void)mapping_allocate(a->own.fd, p->mapped, 0);
			continue;
		}
		mapping_destroy(&m);
		p->base = NULL;
	}
}

/* Whose error is that of all; the number of ranks: all have it. Who has given up for another's does
 * not hide that. */
static uint32_t first_that_failed(const struct allocation *a)
{
	uint32_t size = a->group->boards.size, who = size;

	for (uint32_t r = 0; r < size; r++)
		if (a->errors[r] && (who == size || a->errors[who] == SLMPM_ECANCELED))
			who = r;
	return who;
}

/* Each says how that was, RC: all have it, or none. */
static int conclude_alloc(struct allocation *a, int rc)
{
	const struct boards *b = &a->group->boards;
	const int32_t own = -rc;
	int left = clock_ms(clock_now(), a->deadline, -1);
	char text[ERROR_DETAIL];
	uint32_t who;

	(void)snprintf(text, sizeof(text), "%s", group_detail());
	rc = alloc_gather(a, &own, a->errors, sizeof(own),
			  left < 0 || left > INT_MAX - GRACE_MS ? left : left + GRACE_MS);
	if (rc < 0)
		return rc;
	who = first_that_failed(a);
	if (who == b->size)
		return 0;
	if (who == b->rank)
		return error_set(own, "%s", text);
	return error_set(code_of(a->errors[who]), BOARD_MEMBER " cannot map it: %s",
			 BOARD_MEMBER_OF(b, who), slmpm_strerror(-code_of(a->errors[who])));
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int alloc_steps(struct allocation *a, struct offer *own)
{
	struct boards *b = &a->group->boards;
	int rc = exchange_offers(a, own);

	if (rc < 0)
		return rc;
	rc = pass_all(a);
	if (rc == 0 && maps(a, b->rank))
		rc = map_all(a);
	rc = conclude_alloc(a, rc);
	if (rc < 0)
		return rc;
	b->shared_ids = choose_id(a);
	map_pages(a);
	return 0;
}

static void alloc_end(struct allocation *a)
{
	struct group *g = a->group;

	for (uint32_t r = 0; a->fds && r < g->boards.size; r++)
		if (a->fds[r] >= 0)
			close(a->fds[r]); /* sealed memory */
	atomic_store_explicit(&g->boards.own->object, 0, memory_order_relaxed);
	mapping_destroy(&a->own);
	free(a->errors);
	free(a->fds);
	free(a->all);
}

static int give_out(struct allocation *a, slmpm_group_memory *out)
{
	out->id = 0;
	if (!a->shared)
		return 0;
	out->id = memory_new(a->group, a->shared);
	if (!out->id)
		return error_set(SLMPM_ENOMEM, "for its parts");
	a->shared = NULL;
	return 0;
}

/* What all are to learn: 0, or the error. */
static int may_ask(const slmpm_group_memory *out, int place, uint64_t len, uint32_t flags)
{
	if (!out)
		return error_set(SLMPM_EINVAL, "no place for the handle");
	return alloc_refuses(place, len, flags);
}

static int may_alloc(struct group *g, int timeout_ms)
{
	int rc = context_forbids(g->ctx, CALL);

	if (rc == 0)
		rc = step_may_begin(g, SLMPM_COLL_ALLGATHER, BOARD_CALL_ALLOC);
	if (rc == 0)
		rc = group_has_boards(g, CALL);
	if (rc == 0 && (g->allocation || g->shrinking))
		rc = error_set(SLMPM_EBUSY, CALL ": another thread calls %s",
			       g->allocation ? CALL : "slmpm_group_shrink");
	if (rc == 0 && !timeout_ms)
		rc = error_set(SLMPM_EAGAIN,
			       CALL ": a timeout of 0 is not enough for the others to answer");
	return rc;
}

static int alloc_in(struct group *g, slmpm_group_memory *out, struct offer *own, int timeout_ms)
{
	struct allocation a = {
		.group = g, .own = {.fd = -1}, .deadline = clock_deadline(timeout_ms)};
	uint32_t n = g->boards.size;
	int rc;

	a.all = calloc(n, sizeof(*a.all));
	a.fds = calloc(n, sizeof(*a.fds));
	a.errors = calloc(n, sizeof(*a.errors));
	for (uint32_t r = 0; a.fds && r < n; r++)
		a.fds[r] = ALLOC_ABSENT;
	if (!a.all || !a.fds || !a.errors) {
		alloc_end(&a);
		return error_set(SLMPM_ENOMEM, "for its parts");
	}
	g->allocation = &a;
	g->waits++;
	rc = alloc_steps(&a, own);
	g->waits--;
	g->allocation = NULL;
	if (rc == 0)
		rc = give_out(&a, out);
	if (a.shared)
		shared_free(a.shared);
	alloc_end(&a);
	return rc;
}

int slmpm_group_alloc(slmpm_group_memory *out, slmpm_group group, uint64_t len, int place,
		      uint32_t flags, int timeout_ms)
{
	struct context *ctx;
	int rc = 0;
	struct group *g = group_lock(group, CALL, &ctx, &rc);

	if (!g)
		return rc;
	rc = may_alloc(g, timeout_ms);
	if (rc == 0) {
		struct offer own = {.mark = MARK,
				    .id = g->boards.shared_ids + 1,
				    .place = place,
				    .error = -may_ask(out, place, len, flags),
				    .len = len,
				    .flags = flags,
				    .left_ms = timeout_ms < 0 ? 0 : (uint32_t)timeout_ms};

		rc = alloc_in(g, out, &own, timeout_ms);
		if (rc < 0)
			rc = error_name_call(CALL, rc);
	}
	context_unlock(ctx);
	return rc;
}
