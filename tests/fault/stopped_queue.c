/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/*
 * A peer that has been stopped answers no word of a receive queue. It keeps none from the others,
 * however many are made; what is of it alone is refused, and says why. Once it goes on it learns of
 * the queue that there is.
 */
#include <signal.h>
#include <slmpm_queue.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define STREAM 9
#define QUEUES 600

enum { GOES_ON = 1, ANSWERS, KNOWS, IS_REFUSED, IS_ENABLED };

static struct slmpm_wq_options o = {
	.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = STREAM};
static slmpm_peer a, b, stopped;

static int role_sends(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	actor_hear(host, GOES_ON);
	actor_tell(host, ANSWERS); /* behind those of the words before */
	actor_hear(host, KNOWS);
	REFUSED(slmpm_send(host, STREAM, NULL, 0, PATIENCE), SLMPM_EDISABLED, "disabled");
	actor_tell(host, IS_REFUSED);
	actor_hear(host, IS_ENABLED);
	OK(slmpm_send(host, STREAM, NULL, 0, PATIENCE));
	return 0;
}

static int stop(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	OK(slmpm_peer_query(stopped, &info));
	CHECK(kill(info.pid, SIGSTOP) == 0, "it does not stop");
	actor_await_state(info.pid, "T");
	return info.pid;
}

static void settle(void)
{
	while (slmpm_progress((slmpm_ctx){0}) > 0)
		;
}

/* One for all after the other; the last stays. */
static slmpm_wq create_many(void)
{
	slmpm_wq wq;

	o.peer = slmpm_any((slmpm_ctx){0});
	for (int i = 0;; i++) {
		OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
		settle();
		if (i == QUEUES)
			return wq;
		OK(slmpm_wq_destroy(wq));
	}
}

static void of_the_stopped_one(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_wq wq;

	OK(slmpm_peer_query(stopped, &info));
	o.peer = stopped;
	o.stream = STREAM + 1;
	REFUSED(slmpm_wq_create((slmpm_ctx){0}, &o, &wq), SLMPM_EAGAIN, "has not answered");
	CHECK(strstr(slmpm_error_detail(), info.name), "%s: not named", slmpm_error_detail());
	o.peer = b;
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &wq));
	OK(slmpm_wq_destroy(wq));
}

static void post_receive(slmpm_wq wq)
{
	const struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_RECV};

	EXPECT(slmpm_post(wq, &wr, 1), 1);
}

static void expect(slmpm_peer from)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(o.cq, &done, 1, PATIENCE), 1);
	EXPECT(done.status, 0);
	CHECK(done.peer.id == from.id, "it is another's");
}

static int everything(void *unused)
{
	slmpm_wq wq;
	int pid;

	(void)unused;
	stopped = actor_spawn_ready("sends");
	actor_pair((slmpm_ctx){0}, &a, &b);
	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	pid = stop();
	wq = create_many();
	of_the_stopped_one();
	post_receive(wq);
	post_receive(wq);
	REFUSED(slmpm_send(a, STREAM, NULL, 0, PATIENCE), SLMPM_EDISABLED, "disabled");
	OK(slmpm_wq_enable(wq, 1));
	OK(slmpm_send(a, STREAM, NULL, 0, PATIENCE));
	expect(b);

	CHECK(kill(pid, SIGCONT) == 0, "it does not go on");
	actor_tell(stopped, GOES_ON);
	actor_hear(stopped, ANSWERS);
	actor_tell(stopped, KNOWS);
	actor_hear(stopped, IS_REFUSED);
	OK(slmpm_wq_enable(wq, 2));
	actor_tell(stopped, IS_ENABLED);
	expect(stopped);
	actor_join(stopped, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"sends", role_sends}, {NULL, NULL}};

	actor_begin(argc, argv, roles);
	settings_run("everything", everything, NULL);
	return 0;
}
