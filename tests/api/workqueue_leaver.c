/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues whose peer is closed here while entries for it wait: each ends as SLMPM_ECLOSED in
 * its turn, whatever it is, names that peer, and the queue still knows what it was called. What is
 * refused says how long it was the same way everywhere; of a stopped owner it says that.
 */
#include <signal.h>

#include "tests/api/workqueue_entry.h"
#include "tests/lib/settings.h"

#define KINDS 13

static slmpm_peer c, d;
static slmpm_rmem counts_there;
static slmpm_wq from_peer;

static slmpm_rmem counter_there(void)
{
	struct slmpm_key key;
	slmpm_mem region;
	slmpm_rmem rctr;

	OK(slmpm_ctr_mem(counter(), &region));
	OK(slmpm_mem_key(region, b, SLMPM_COUNT, &key));
	OK(slmpm_mem_open(a, &key, &rctr));
	settle();
	return rctr;
}

static struct slmpm_wr calculation(const struct slmpm_calc *calc)
{
	struct slmpm_wr wr = entry(SLMPM_OP_CALC, 0, 0, 0);

	wr.calc = calc;
	return wr;
}

/* From a peer's message, or to its region. */
static struct slmpm_wr exchanging(bool arrives)
{
	static struct slmpm_operand arg, target;
	static struct slmpm_calc calc;

	arg = target = (struct slmpm_operand){0};
	arg.at = &here[0];
	target.at = &here[1];
	if (arrives) {
		arg.at = NULL;
		arg.peer = a;
		arg.stream = 4;
	} else {
		target.at = NULL;
		target.rmem = far;
	}
	calc = (struct slmpm_calc){
		.size = sizeof(calc),
		.op = SLMPM_CALC_SUM,
		.type = SLMPM_UINT64,
		.args = &arg,
		.targets = &target,
		.arg_count = 1,
		.target_count = 1,
	};
	return calculation(&calc);
}

static struct slmpm_wr piping(slmpm_peer from, slmpm_wq queue, slmpm_peer to)
{
	static struct slmpm_iov room;
	struct slmpm_wr wr = entry(SLMPM_OP_PIPE, 0, 1, 0);

	room = (struct slmpm_iov){&here[2], 8};
	wr.iov = &room;
	wr.iov_count = 1;
	wr.from = from;
	wr.wq = queue;
	wr.peer = to;
	return wr;
}

/* Those with A; the last ones are also with C, which stays. */
static struct slmpm_wr of_kind(int kind)
{
	static struct slmpm_iov word = {here, 8};
	struct slmpm_wr wr;

	switch (kind) {
	case 0: return message(1, &word, 0);
	case 1: return receive(2, &word, 0);
	case 2: return one_sided(SLMPM_OP_PUT, 1, &word, 0);
	case 3: return one_sided(SLMPM_OP_GET, 1, &word, 0);
	case 4: return add(1, 1, NULL, 0);
	case 5:
		wr = message(9, &word, 0);
		wr.op = SLMPM_OP_AM;
		wr.imm = 0;
		return wr;
	case 6:
		wr = message(1, &word, 0);
		wr.rctr = counts_there;
		return wr;
	case 7:
		wr = entry(SLMPM_OP_COUNT, 0, 1, 0);
		wr.rctr = counts_there;
		return wr;
	case 8: return exchanging(true);
	case 9: return exchanging(false);
	case 10: return piping(c, (slmpm_wq){0}, a);
	case 11: return piping(a, (slmpm_wq){0}, c);
	default: return piping((slmpm_peer){0}, from_peer, c);
	}
}

static void name_of(slmpm_peer peer, struct slmpm_peer_info *info)
{
	*info = (struct slmpm_peer_info){.size = sizeof(*info)};
	OK(slmpm_peer_query(peer, info));
}

/* Channel K's WAIT and what stands behind it. */
static void waits_in(uint32_t k, slmpm_ctr go, struct slmpm_wr wr)
{
	post(known(wait_for(go, k, 1, SLMPM_SILENT), 100));
	wr.channel = k;
	wr.cookie = k;
	post(wr);
}

static struct slmpm_done ended(uint32_t k, int status)
{
	struct slmpm_done done;

	EXPECT(slmpm_cq_wait(cq, &done, 1, PATIENCE), 1);
	CHECK(done.cookie == k && done.status == status, "cookie %llu, status %d",
	      (unsigned long long)done.cookie, done.status);
	return done;
}

static void each_kind(bool late)
{
	struct slmpm_peer_info info;
	slmpm_ctr go;

	for (int kind = 0; kind < KINDS; kind++) {
		struct slmpm_wr again = entry(SLMPM_OP_COUNT, 1, 1, SLMPM_RELATIVE);
		struct slmpm_done done;

		begin(0, 0);
		actor_pair(ctx, &c, &d);
		counts_there = counter_there();
		from_peer = receive_queue_of(a, 5, SLMPM_WQ_MANAGED);
		OK(slmpm_wq_enable(from_peer, 1));
		go = counter();
		name_of(a, &info);
		waits_in(1, go, of_kind(kind));
		OK(slmpm_close(a, PATIENCE));
		if (late) /* something else has its place by now */
			actor_pair(ctx, &a, &b);
		post(count(go, 0, 1, SLMPM_SILENT));
		done = ended(1, -SLMPM_ECLOSED);
		again.ctr = go;
		REFUSED(slmpm_post(wq, &again, 1), SLMPM_ECLOSED, info.name);
		REFUSED(slmpm_wq_drain(wq, PATIENCE), SLMPM_ECLOSED, info.name);
		CHECK(done.peer.id && (done.peer.id != a.id) == late, "kind %d: peer %llx", kind,
		      (unsigned long long)done.peer.id);
		REFUSED(slmpm_post(from_peer, &again, 1), SLMPM_EINVAL, "");
		again = (struct slmpm_wr){.size = sizeof(again), .op = SLMPM_OP_RECV};
		REFUSED(slmpm_post(from_peer, &again, 1), SLMPM_ECLOSED, "was closed");
		/* What is forgotten is not named any more. */
		OK(slmpm_wq_reset(wq));
		OK(slmpm_wq_drain(wq, PATIENCE));
		end();
	}
}

/* A region that was released is no peer that was closed. */
static void released(void)
{
	struct slmpm_iov word = {here, 8};
	slmpm_ctr go;

	begin(0, 0);
	go = counter();
	waits_in(1, go, one_sided(SLMPM_OP_PUT, 1, &word, 0));
	OK(slmpm_mem_release(far));
	post(count(go, 0, 1, SLMPM_SILENT));
	(void)ended(1, -SLMPM_EHANDLE);
	end();
}

/* What was under way when it was closed. */
static void under_way(void)
{
	struct slmpm_iov word = {here, 8};
	struct slmpm_peer_info info;

	begin(0, 0);
	name_of(a, &info);
	post(receive(2, &word, 0));
	OK(slmpm_close(a, PATIENCE));
	(void)ended(0, -SLMPM_ECLOSED);
	REFUSED(slmpm_wq_drain(wq, PATIENCE), SLMPM_ECLOSED, info.name);
	end();
}

/* A kept one that is run again. */
static void again(void)
{
	struct slmpm_iov word = {here, 8};
	struct slmpm_peer_info info;

	begin(0, SLMPM_WQ_KEPT);
	name_of(a, &info);
	post(message(1, &word, 3));
	OK(slmpm_wq_drain(wq, PATIENCE));
	(void)ended(3, 0);
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_wq_arm(wq));
	(void)ended(3, -SLMPM_ECLOSED);
	REFUSED(slmpm_wq_drain(wq, PATIENCE), SLMPM_ECLOSED, info.name);
	end();
}

/* A CALC or PIPE does not wait for its entry to be enabled when none can send what it takes. */
static void disabled(bool pipes)
{
	struct slmpm_operand arg, target = {.at = here};
	const struct slmpm_calc sum = {.size = sizeof(sum),
				       .op = SLMPM_CALC_SUM,
				       .type = SLMPM_UINT64,
				       .args = &arg,
				       .targets = &target,
				       .arg_count = 1,
				       .target_count = 1};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &sum};
	slmpm_wq receives;

	begin(0, 0);
	receives = receive_queue_of(b, 5, SLMPM_WQ_MANAGED);
	arg = (struct slmpm_operand){.wq = receives};
	wr = pipes ? piping((slmpm_peer){0}, receives, a) : wr;
	wr.cookie = 1;
	post(wr);
	settle();
	OK(slmpm_close(b, PATIENCE));
	(void)ended(1, -SLMPM_ECLOSED);
	end();
}

/* ---- refused --------------------------------------------------------------------------------- */

/* Nothing was sent, however it was found out. */
static void refused_len(void)
{
	struct slmpm_iov word = {here, 8};
	struct slmpm_done done;

	for (int any = 0; any < 2; any++)
		for (int timeout = 0; timeout < 20; timeout += 10) {
			struct slmpm_wr wr;
			slmpm_ctr go;

			begin(0, 0);
			(void)receive_queue_of(any ? slmpm_any(ctx) : b, 7, SLMPM_WQ_MANAGED);
			settle();
			go = counter();
			wr = message(7, &word, 1);
			wr.timeout_ms = timeout;
			waits_in(1, go, wr);
			post(count(go, 0, 1, SLMPM_SILENT));
			done = ended(1, -SLMPM_EDISABLED);
			CHECK(!done.len, "%llu bytes of what is refused",
			      (unsigned long long)done.len);
			end();
		}
}

/* By a call as well. */
static void refused_call(void)
{
	struct slmpm_iov word = {here, 8};
	struct slmpm_how how = {.size = sizeof(how), .cookie = 4, .timeout_ms = -1};

	begin(0, 0);
	(void)receive_queue_of(slmpm_any(ctx), 7, SLMPM_WQ_MANAGED);
	settle();
	how.cq = cq;
	OK(slmpm_sendv(a, 7, &word, 1, &how, NULL));
	CHECK(!ended(4, -SLMPM_EDISABLED).len, "bytes of what is refused");
	end();
}

static int owner(slmpm_peer host, char **words)
{
	struct slmpm_wq_options o = {.size = sizeof(o),
				     .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED,
				     .peer = slmpm_any((slmpm_ctx){0}),
				     .stream = 7};
	slmpm_wq mine;

	(void)words;
	OK(slmpm_cq_create((slmpm_ctx){0}, &o.cq));
	OK(slmpm_wq_create((slmpm_ctx){0}, &o, &mine));
	OK(slmpm_send(host, 1, "here", 4, PATIENCE));
	while (slmpm_recv(host, 2, here, 8, NULL, -1) >= 0)
		;
	return 0;
}

static int stopped_owner(void *fabric)
{
	struct slmpm_iov word = {here, 8};
	struct slmpm_wq_options o = {.size = sizeof(o)};
	struct slmpm_peer_info info;
	struct slmpm_wr wr;

	settings_set("SLMPM_FABRIC", fabric);
	a = actor_spawn("owner", NULL, NULL);
	EXPECT(slmpm_recv(a, 1, here, 8, NULL, PATIENCE), 4);
	OK(slmpm_cq_create(ctx, &cq));
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &wq));
	name_of(a, &info);
	wr = message(7, &word, 1);
	wr.timeout_ms = 20;
	post(wr);
	(void)ended(1, -SLMPM_EDISABLED);
	EXPECT(slmpm_wq_drain(wq, 0), -SLMPM_EDISABLED);
	CHECK(!strstr(slmpm_error_detail(), "suspect"), "%s", slmpm_error_detail());
	OK(slmpm_wq_reset(wq));
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	post(wr);
	(void)ended(1, -SLMPM_EDISABLED);
	REFUSED(slmpm_wq_drain(wq, 0), SLMPM_EDISABLED, "suspect: its process is stopped");
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EDISABLED, "suspect: its process is stopped");
	OK(kill(info.pid, SIGCONT));
	OK(slmpm_close(a, PATIENCE));
	return 0;
}

static int everything(void *fabric)
{
	settings_set("SLMPM_FABRIC", fabric);
	each_kind(false);
	each_kind(true);
	released();
	under_way();
	again();
	disabled(false);
	disabled(true);
	refused_len();
	refused_call();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"owner", owner}, {NULL, NULL}};
	static char *const fabrics[] = {"shm", "tcp"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		EXPECT(child_run(everything, fabrics[i], 50), 0);
		EXPECT(child_run(stopped_owner, fabrics[i], 20), 0);
	}
	return 0;
}
