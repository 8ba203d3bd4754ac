/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * A process is killed after instructions all over its part in fetched messages, as their sender and
 * as their receiver: with announcements alone, and where they may be sent instead. Each message
 * that it had been told was sent is there, each that it had received was told to have been; none is
 * torn; the end of the others is definite and known soon. Faults planted in the victim must be
 * noticed. SLMPM_TEST_SWEEP=all takes every instruction.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"
#include "tests/lib/sweep.h"

#define LENGTH   (96u << 10) /* most */
#define MESSAGES 2
#define KILLS    30 /* of a scene, where not all */

static struct common { /* by a way that SLMPM knows nothing of */
	_Atomic uint64_t acknowledged;
	_Atomic bool torn;
} * common;

static slmpm_ctx ctx;
static slmpm_listener listener;
static char url[64];
static slmpm_peer victim, host;
static unsigned char messages[MESSAGES + 1][LENGTH], there[LENGTH], here[MESSAGES][LENGTH];
static slmpm_req reqs[MESSAGES];
static int status[MESSAGES];   /* 1: under way */
static size_t length = LENGTH; /* both sides have a share */

/* ---- the victim ------------------------------------------------------------------------------ */

static void come(void *arg)
{
	slmpm_ctx none = {0};

	(void)arg;
	OK(slmpm_connect(&host, none, url, PATIENCE));
	OK(slmpm_send(host, 2, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 2, NULL, 0, NULL, PATIENCE), 0);
}

static void send_all(void *arg)
{
	const bool *early = arg; /* the planted fault */

	for (uint64_t n = 1; n <= MESSAGES; n++) {
		if (*early)
			atomic_store(&common->acknowledged, n);
		OK(slmpm_send(host, 1, messages[n], length, PATIENCE));
		atomic_store(&common->acknowledged, n);
	}
}

static bool is_message(const unsigned char *at, uint64_t n)
{
	return !memcmp(at, messages[n], length);
}

static void receive_all(void *arg)
{
	const bool *early = arg;

	for (uint64_t n = 1; n <= MESSAGES; n++) {
		if (*early)
			atomic_store(&common->acknowledged, n);
		EXPECT(slmpm_recv(host, 1, there, length, NULL, PATIENCE), length);
		if (!is_message(there, n))
			atomic_store(&common->torn, true);
		atomic_store(&common->acknowledged, n);
	}
}

/* ---- the survivor ---------------------------------------------------------------------------- */

static void meet(void)
{
	OK(slmpm_accept(listener, &victim, PATIENCE));
	EXPECT(slmpm_recv(victim, 2, NULL, 0, NULL, PATIENCE), 0);
	for (int i = 0; i < MESSAGES; i++)
		status[i] = 1;
}

static void meet_sender(void *arg)
{
	(void)arg;
	meet();
	memset(here, 0, sizeof(here));
	for (int i = 0; i < MESSAGES; i++) {
		struct slmpm_iov iov = {here[i], length};

		EXPECT(slmpm_recvv(victim, 1, &iov, 1, NULL, &reqs[i]), 0);
	}
	OK(slmpm_send(victim, 2, NULL, 0, PATIENCE));
}

static void meet_receiver(void *arg)
{
	(void)arg;
	meet();
	for (int i = 0; i < MESSAGES; i++) {
		struct slmpm_iov iov = {here[i], length};

		memcpy(here[i], messages[i + 1], length);
		OK(slmpm_sendv(victim, 1, &iov, 1, NULL, &reqs[i]));
	}
	OK(slmpm_send(victim, 2, NULL, 0, PATIENCE));
}

/* Those that have ended are told; true when all have. */
static bool gather(int timeout)
{
	struct slmpm_done done;
	bool all = true;

	for (int i = 0; i < MESSAGES; i++) {
		if (status[i] != 1)
			continue;
		if (slmpm_wait(&reqs[i], 1, &done, timeout) == 0)
			status[i] = done.status;
		else
			all = false;
	}
	return all;
}

static void inspect(void *arg)
{
	(void)arg;
	(void)gather(0);
}

static void look_and_reuse(void *arg)
{
	inspect(arg);
	for (int i = 0; i < MESSAGES; i++)
		if (status[i] == 0)
			memset(here[i], 0xdd, length);
}

static void reset(void)
{
	atomic_store(&common->acknowledged, 0);
	atomic_store(&common->torn, false);
}

static bool is_end(int64_t rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

static const char *check(long *progress)
{
	int64_t begin = actor_now_ms();
	uint64_t n = atomic_load(&common->acknowledged);

	*progress = (long)n;
	if (!gather(PATIENCE) || actor_now_ms() - begin > 500 * actor_slow())
		return "a message has no end, or a late one";
	for (uint64_t i = 0; i < MESSAGES; i++) {
		if (status[i] && !is_end(status[i]))
			return "the end is not definite";
		if (i < n && status[i])
			return "what was acknowledged is not there";
	}
	if (!is_end(slmpm_recv(victim, 2, NULL, 0, NULL, PATIENCE)) ||
	    !is_end(slmpm_send(victim, 2, NULL, 0, PATIENCE)))
		return "its end is not told";
	OK(slmpm_close(victim, PATIENCE));
	return atomic_load(&common->torn) ? "it received something else" : NULL;
}

static const char *check_received(long *progress)
{
	const char *fault = check(progress);

	for (uint64_t i = 0; i < MESSAGES && !fault; i++)
		if (!status[i] && !is_message(here[i], i + 1))
			fault = "a message is torn";
	return fault;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static long sweep(const char *name, struct step_body body, const char *(*checked)(long *),
		  bool planted)
{
	struct sweep s = {
		.name = name,
		.unit = STEP_INSTRUCTION,
		.body = body,
		.reset = reset,
		.check = checked,
		.planted = planted,
		.loose = true,
		.most = KILLS,
	};

	return sweep_run(&s);
}

static int scenes(void *eager_max)
{
	static bool wrong = true, right = false;
	struct step_body sending = {send_all, &wrong, come, meet_sender, inspect, NULL};
	struct step_body receiving = {receive_all,   &wrong,         come,
				      meet_receiver, look_and_reuse, NULL};
	long faults;

	setenv("SLMPM_EAGER_MAX", eager_max, 1);
	if (strcmp(eager_max, "16k") != 0)
		length = 40 << 10; /* each byte that goes in packets is a step */
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	if (!strcmp(eager_max, "16k")) { /* else a send is through before it is received */
		(void)sweep("acknowledged early", sending, check_received, true);
		(void)sweep("received early", receiving, check, true);
	}
	sending.arg = receiving.arg = &right;
	faults = sweep("sending", sending, check_received, false);
	faults += sweep("receiving", receiving, check, false);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(faults == 0, "%ld kills left a wronged survivor", faults);
	return 0;
}

int main(void)
{
	static const char *const eager[] = {"16k", "256k"};
	const unsigned seconds = sweep_seconds(25);
	int failed = 0;

	sweep_begin(STEP_INSTRUCTION);
	common = child_common(sizeof(*common));
	snprintf(url, sizeof(url), "shm:kill-sweep-fetch-%d", (int)getpid());
	for (uint64_t n = 1; n <= MESSAGES; n++)
		actor_fill(messages[n], n, LENGTH);
	settings_one_link("shm"); /* nothing is fetched elsewhere */
	setenv("SLMPM_FETCH", "always", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	setenv("SLMPM_FETCH_MIN", "32k", 1);
	for (int i = 0; i < 2; i++) {
		int rc = child_run(scenes, (void *)(uintptr_t)eager[i], seconds);

		printf("eager up to %s: %s\n", eager[i], rc ? "FAILED" : "ok");
		failed |= rc;
	}
	return failed ? 1 : 0;
}
