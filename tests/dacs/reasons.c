/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dacs_put and dacs_send decide apart: one goes through the ring by its reason while the other goes
 * past it by another, either way round, in one process with one partner; both are counted, by
 * protocol.
 */
#include "tests/dacs/pair.h"

#include <slmpm.h>

#define SIZE  300000u
#define NONE  DACS_ORDER_ATTR_NONE
#define TIMES 3

enum { END, RECEIVE, SHOW }; /* words to the partner */

static unsigned char bytes[SIZE];
static bool gets; /* what was put */

/* Memory that the host may put into, and receives. */
static int role_partner(int argc, char **argv)
{
	static unsigned char memory[SIZE], got[SIZE];
	dacs_remote_mem_t mem;
	uint32_t word;

	(void)argc, (void)argv;
	if (getenv("PARTNER_ENGINE"))
		setenv("SLMPM_ENGINE", getenv("PARTNER_ENGINE"), 1);
	OK(dacs_init(0));
	OK(dacs_remote_mem_create(memory, SIZE, DACS_READ_WRITE, &mem));
	OK(dacs_remote_mem_share(UP, mem));
	for (;;) {
		LATE(dacs_mailbox_read(&word, UP), DACS_SUCCESS);
		if (word == END)
			break;
		if (word == RECEIVE)
			OK(pair_recv(pair_parent(), 1, got, SIZE, DACS_BYTE_SWAP_DISABLE));
		CHECK(pair_filled(word == RECEIVE ? got : memory, SIZE, 3), "other bytes");
		pair_tell(pair_parent(), word);
	}
	OK(dacs_remote_mem_destroy(&mem));
	OK(dacs_exit());
	return 0;
}

/* ---- what this process shows of itself ------------------------------------------------------- */

static struct slmpm_monitor seen(void)
{
	struct slmpm_monitor m = {.size = 0};
	struct slmpm_monitors *monitors;

	CHECK(slmpm_monitors_open(getpid(), &monitors) == 0, "%s", slmpm_error_detail());
	for (int i = 0, rc = 0; rc != 1; i++) {
		rc = slmpm_monitors_read(monitors, i, &m, sizeof(m));
		CHECK(rc != -SLMPM_ENOENT, "no link is shown");
		i -= rc == -SLMPM_EAGAIN;
	}
	slmpm_monitors_close(monitors);
	return m;
}

/* Of those about which something was to be decided. */
static uint64_t all(const struct slmpm_monitor *m, int protocol)
{
	uint64_t n = 0;

	for (int r = SLMPM_REASON_SHORT + 1; r < SLMPM_REASONS; r++)
		n += m->reasons[protocol][r];
	return n;
}

/* As it is shown after now: who talks shows what he has done. */
static struct slmpm_monitor await(struct child c)
{
	int64_t until = pair_now_ms() + PAIR_PATIENCE;
	struct slmpm_monitor m;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	do {
		CHECK(pair_now_ms() < until, "it shows nothing");
		pair_tell(c, SHOW);
		pair_await(c, SHOW);
		m = seen();
	} while (m.taken_ns <= (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	return m;
}

/* All by that protocol for this reason, and so many. */
static void only(const struct slmpm_monitor *m, int protocol, enum slmpm_reason reason)
{
	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		for (int r = 0; r < SLMPM_REASONS; r++)
			if (m->reasons[p][r])
				printf(" %s %s %" PRIu64 ";", slmpm_protocol_name(p),
				       slmpm_reason_name(r), m->reasons[p][r]);
	CHECK(m->reasons[protocol][reason] == TIMES && all(m, protocol) == TIMES,
	      "%" PRIu64 " of %" PRIu64 " by %s", m->reasons[protocol][reason], all(m, protocol),
	      slmpm_protocol_name(protocol));
}

static struct slmpm_monitor put_and_send(void)
{
	struct slmpm_monitor m;
	dacs_remote_mem_t mem;
	struct child c;
	dacs_wid_t wid;

	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	c = pair_start("partner", NULL);
	LATE(dacs_remote_mem_accept(AT(c), &mem), DACS_SUCCESS);
	pair_fill(bytes, SIZE, 3);
	for (int i = 0; i < TIMES; i++) {
		OK(dacs_put(mem, 0, bytes, SIZE, wid, NONE, DACS_BYTE_SWAP_DISABLE));
		CHECK(pair_wait(wid) == DACS_WID_READY, "a put");
		pair_tell(c, SHOW);
		pair_await(c, SHOW);
		if (gets) {
			memset(bytes, 0, SIZE);
			OK(dacs_get(bytes, mem, 0, SIZE, wid, NONE, DACS_BYTE_SWAP_DISABLE));
			CHECK(pair_wait(wid) == DACS_WID_READY && pair_filled(bytes, SIZE, 3),
			      "a get");
		}
		pair_tell(c, RECEIVE);
		CHECK(pair_send(c, 1, bytes, SIZE, DACS_BYTE_SWAP_DISABLE) == DACS_WID_READY,
		      "a send");
		pair_await(c, RECEIVE);
	}
	m = await(c);
	OK(dacs_remote_mem_release(&mem));
	pair_tell(c, END);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_wid_release(&wid));
	OK(dacs_exit());
	return m;
}

/* ---- the ways round -------------------------------------------------------------------------- */

/* Puts by requests through the ring, for a setting says so; sends past it, where they can be
 * fetched and the partner comes for them. */
static int role_put_in_ring(int argc, char **argv)
{
	struct slmpm_monitor m = put_and_send();
	uint64_t call = m.reasons[SLMPM_BY_SMT][SLMPM_REASON_CALL];
	uint64_t absent = m.reasons[SLMPM_BY_SMT][SLMPM_REASON_ABSENT];
	uint64_t fetched = m.reasons[SLMPM_BY_RGET][SLMPM_REASON_SETTING];

	(void)argc, (void)argv;
	only(&m, SLMPM_BY_REQUEST, SLMPM_REASON_SETTING);
	CHECK(all(&m, SLMPM_BY_RGET) == fetched && all(&m, SLMPM_BY_SMT) == call + absent,
	      "sends for other reasons");
	CHECK(fetched + absent == TIMES || (!(fetched + absent) && call >= TIMES),
	      "%" PRIu64 " fetched, %" PRIu64 " not come for", fetched, absent);
	return 0;
}

/* Puts past the ring, by the engine, where memory is in reach; sends through it, as the call
 * asks. */
static int role_send_in_ring(int argc, char **argv)
{
	struct slmpm_monitor m = put_and_send();

	(void)argc, (void)argv;
	if (all(&m, SLMPM_BY_PUT))
		only(&m, SLMPM_BY_PUT, SLMPM_REASON_SIZE);
	else
		only(&m, SLMPM_BY_REQUEST, SLMPM_REASON_ONLY);
	CHECK(!all(&m, SLMPM_BY_RGET) && all(&m, SLMPM_BY_SMT) >= TIMES &&
		      all(&m, SLMPM_BY_SMT) == m.reasons[SLMPM_BY_SMT][SLMPM_REASON_CALL],
	      "sends go in packets because they ask for it");
	return 0;
}

/* By the partner's engine, where this side has none and DMA is hinted: it attaches to this
 * process's memory, or they are by request. */
static int role_put_asked(int argc, char **argv)
{
	struct slmpm_monitor m;
	uint64_t late;

	(void)argc, (void)argv;
	gets = true;
	m = put_and_send();
	CHECK(!all(&m, SLMPM_BY_REQUEST) ||
		      all(&m, SLMPM_BY_REQUEST) == m.reasons[SLMPM_BY_REQUEST][SLMPM_REASON_ONLY],
	      "requests for other reasons");
	late = m.reasons[SLMPM_BY_PUT][SLMPM_REASON_ABSENT] +
	       m.reasons[SLMPM_BY_GET][SLMPM_REASON_ABSENT];
	CHECK(all(&m, SLMPM_BY_REQUEST) || (m.asked && m.asked + late == 2 * TIMES),
	      "%" PRIu64 " asked for, %" PRIu64 " late", m.asked, late);
	return 0;
}

/* The same of which the partner's engine reaches nothing: for that reason the calls copy. */
static int role_put_unreachable(int argc, char **argv)
{
	struct slmpm_monitor m;

	(void)argc, (void)argv;
	gets = true;
	m = put_and_send();
	for (int p = SLMPM_BY_PUT; p <= SLMPM_BY_GET && !all(&m, SLMPM_BY_REQUEST); p++)
		CHECK(m.reasons[p][SLMPM_REASON_UNREACHABLE] == TIMES && all(&m, p) == TIMES,
		      "%s: %" PRIu64 " unreachable of %" PRIu64, slmpm_protocol_name(p),
		      m.reasons[p][SLMPM_REASON_UNREACHABLE], all(&m, p));
	return 0;
}

#define HERE "SLMPM_FABRIC=shm SLMPM_LINKS=1 SLMPM_MONITOR_MS=1 SLMPM_HANDSHAKE_MS=20000 "

static int puts_in_the_ring(int argc, char **argv)
{
	(void)argc, (void)argv;
	return pair_host(HERE
			 "SLMPM_ENGINE=none SLMPM_RMA=ring SLMPM_FETCH=always SLMPM_FETCH_MIN=64k",
			 "put_in_ring");
}

static int sends_in_the_ring(int argc, char **argv)
{
	(void)argc, (void)argv;
	return pair_host(
		HERE "SLMPM_RMA=auto SLMPM_ENGINE=inline SLMPM_ENGINE_MIN=64k SLMPM_FETCH=never",
		"send_in_ring");
}

static int puts_by_the_partners_engine(int argc, char **argv)
{
	(void)argc, (void)argv;
	return pair_host(HERE "SLMPM_RMA=auto SLMPM_ENGINE=none SLMPM_ATTACH=y SLMPM_ASK_MIN=64k "
			      "SLMPM_ENGINE_MIN=64k SLMPM_MODE=dma PARTNER_ENGINE=thread",
			 "put_asked");
}

static int out_of_the_partners_reach(int argc, char **argv)
{
	(void)argc, (void)argv;
	return pair_host(HERE "SLMPM_RMA=auto SLMPM_ENGINE=none SLMPM_ATTACH=n SLMPM_ASK_MIN=64k "
			      "PARTNER_ENGINE=thread",
			 "put_unreachable");
}

static const struct pair_entry roles[] = {
	{"partner", role_partner},
	{"put_in_ring", role_put_in_ring},
	{"send_in_ring", role_send_in_ring},
	{"put_asked", role_put_asked},
	{"put_unreachable", role_put_unreachable},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"puts in the ring, sends past it", puts_in_the_ring},
	{"sends in the ring, puts past it", sends_in_the_ring},
	{"puts and gets by the partner's engine", puts_by_the_partners_engine},
	{"out of its reach", out_of_the_partners_reach},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
