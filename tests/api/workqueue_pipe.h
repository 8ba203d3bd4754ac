/* SPDX-License-Identifier: BSD-3-Clause */
/* Two peers of one context, a PIPE from the one to the other, and messages that go through it. */
#ifndef TESTS_API_WORKQUEUE_PIPE_H
#define TESTS_API_WORKQUEUE_PIPE_H

#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/message.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define IN     3 /* the streams */
#define OUT    4
#define PIECE  8192
#define PIECES 128 /* 1 MiB */
#define MOST   16  /* buffers */

static slmpm_ctx ctx;
static slmpm_peer source, up, down, target; /* source to up: the pipe: down to target */
static slmpm_cq cq;
static slmpm_wq wq;
static unsigned char *memory; /* of the buffers */
static struct slmpm_iov buffers[MOST];

static inline void settle(void)
{
	while (slmpm_progress(ctx) > 0)
		;
}

static inline void create(uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = flags, .cq = cq};

	OK(slmpm_wq_create(ctx, &o, &wq));
}

static inline void begin(uint32_t flags)
{
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &source, &up);
	actor_pair(ctx, &down, &target);
	OK(slmpm_cq_create(ctx, &cq));
	create(flags);
}

static inline void end(void)
{
	OK(slmpm_wq_reset(wq));
	OK(slmpm_wq_destroy(wq));
	OK(slmpm_shut(ctx, PATIENCE));
	free(memory);
	memory = NULL;
}

static inline struct slmpm_wr piping(int count, size_t room, uint64_t messages)
{
	free(memory);
	memory = malloc((size_t)count * room);
	CHECK(memory && count <= MOST, "buffers");
	for (int i = 0; i < count; i++)
		buffers[i] = (struct slmpm_iov){memory + (size_t)i * room, room};
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = SLMPM_OP_PIPE,
				 .peer = down,
				 .stream = OUT,
				 .cookie = 9,
				 .iov = buffers,
				 .iov_count = count,
				 .value = messages,
				 .from = up,
				 .from_stream = IN};
}

static inline void post(struct slmpm_wr wr)
{
	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static inline struct slmpm_done ended(uint64_t cookie, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == cookie && done.status == status, "cookie %llu, %d instead of %d",
	      (unsigned long long)done.cookie, done.status, status);
	return done;
}

static inline void piped(int status, uint64_t messages, slmpm_peer who)
{
	struct slmpm_done done = ended(9, status);

	CHECK(done.op == SLMPM_OP_PIPE && done.len == messages && done.peer.id == who.id &&
		      done.stream == OUT,
	      "op %u, %llu messages, stream %u, peer %llx", done.op, (unsigned long long)done.len,
	      done.stream, (unsigned long long)done.peer.id);
}

static inline void nothing_ended(void)
{
	struct slmpm_done done;

	settle();
	EXPECT(slmpm_cq_poll(cq, &done, 1), 0);
}

static inline struct slmpm_wq_info look(void)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(wq, &info));
	return info;
}

/* Messages from the source, to be taken at the target. */
struct flow {
	struct message *all;
	size_t *sizes;
	int n;
};

static inline struct flow flow_start(int n, size_t (*size)(int i, void *arg), void *arg)
{
	struct flow f = {calloc((size_t)n, sizeof(*f.all)), calloc((size_t)n, sizeof(*f.sizes)), n};

	CHECK(f.all && f.sizes, "out of memory");
	for (int i = 0; i < n; i++) {
		f.sizes[i] = size(i, arg);
		message_start(&f.all[i], source, IN, (uint64_t)i * 1000, f.sizes[i]);
	}
	return f;
}

static inline void flow_end(struct flow *f)
{
	for (int i = 0; i < f->n; i++)
		(void)message_take(target, OUT, (uint64_t)i * 1000, f->sizes[i]);
	for (int i = 0; i < f->n; i++)
		message_end(&f->all[i], 0);
	free(f->all);
	free(f->sizes);
}

static inline size_t same(int i, void *arg)
{
	(void)i;
	return *(size_t *)arg;
}

/* BODY in a child of its own over each fabric, whose name it is given. */
static inline void over_both(int (*body)(void *fabric))
{
	static char *const fabrics[] = {"shm", "tcp"};

	for (int i = 0; i < 2; i++)
		CHECK(child_run(body, fabrics[i], 100) == 0, "%s: see above", fabrics[i]);
}

#endif
