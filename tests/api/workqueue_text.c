/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Programs as text: what is written can be read, and says the same again; each mistake is named by
 * its line and its word; nothing that is read does harm.
 */
#include "tests/api/workqueue_text.h"

/* ---- words ---------------------------------------------------------------------------------- */

/* As they are written when nothing is left out. */
static const char full[] =
	"send channel=2 peer=next stream=1 from=buf+0:4096,none,buf+8:0 imm=7 ctr=answers "
	"timeout=-1 cookie=18446744073709551615 more via=rget strict silent\n"
	"recv peer=any to=rest+0:4096 silent\n"
	"put channel=7 peer=next region=far offset=16 from=buf+1:15 imm=3 fence remote notify\n"
	"get region=far to=buf+0:8 barrier link=2\n"
	"atomic region=far does=compare_swap bits=64 operand=1 compare=2 old=buf+8\n"
	"am peer=next handler=0 from=buf+0:1 head=00ff1a\n"
	"wait ctr=answers value=1 relative\n"
	"wait cq=ends value=0 timeout=100\n"
	"wait channel=1 wq=other index=done value=4 silent\n"
	"enable wq=other value=4\n"
	"count ctr=answers value=2 relative\n";

static const char piped[] =
	"pipe channel=3 peer=next stream=2 source=any source_stream=4 through=buf+0:8,buf+8:8 "
	"ctr=answers value=4294967296 silent\n"
	"pipe peer=next source=next through=buf+0:8 value=1\n";

static void words(void)
{
	begin_text();
	EXPECT(load(held, full), 11);
	EXPECT(dump(held, text), strlen(full));
	CHECK(!strcmp(text, full), "%s", text);
	OK(slmpm_wq_reset(held));
	EXPECT(load(held, piped), 2);
	EXPECT(dump(held, text), strlen(piped));
	CHECK(!strcmp(text, piped), "%s", text);
	OK(slmpm_wq_reset(held));
	/* As it comes from a hand. */
	EXPECT(load(held, "# nothing\n\n  wait\tvalue=0x10 ctr=answers # ten\r\n"
			  "recv to=buf peer=next\nget to=buf+4090 region=far silent"),
	       3);
	dump(held, text);
	CHECK(!strcmp(text, "wait ctr=answers value=16\nrecv peer=next to=buf+0:4096\n"
			    "get region=far to=buf+4090:6 silent\n"),
	      "%s", text);
	OK(slmpm_wq_reset(held));
	EXPECT(load(held, ""), 0);
	EXPECT(dump(held, text), 0);
	end();
}

/* What was loaded does what it says. */
static void runs(void)
{
	uint64_t back = 0;

	begin_text();
	here[0] = 11;
	here[1] = 22;
	EXPECT(load(wq, "send peer=next stream=4 from=buf+8:8,buf+0:8 silent\n"
			"put region=far offset=24 from=buf+8:8 silent\n"
			"count ctr=answers value=5 silent\n"
			"queue held\n"
			"count ctr=answers value=1 relative silent\n"
			"queue other\n"
			"wait ctr=answers value=6 silent\n"
			"enable wq=held value=8 silent"),
	       6);
	OK(slmpm_wq_enable(other, 1));
	EXPECT(slmpm_recv(b, 4, here + 8, 16, NULL, PATIENCE), 16);
	CHECK(here[8] == 22 && here[9] == 11, "what was sent");
	OK(slmpm_wq_drain(wq, PATIENCE));
	CHECK(there[3] == 22, "what was put");
	EXPECT(slmpm_wq_dump((slmpm_wq[]){held, other}, 2, names, named, 0, text, LONG),
	       strlen(text));
	CHECK(!strcmp(text, "queue held\ncount ctr=answers value=1 relative silent\n"
			    "queue other\nwait ctr=answers value=6 silent\n"
			    "enable wq=held value=8 silent\n"),
	      "%s", text);
	OK(slmpm_wq_enable(held, 8));
	OK(slmpm_wq_drain(held, PATIENCE));
	OK(slmpm_wq_enable(other, 8));
	OK(slmpm_wq_drain(other, PATIENCE));
	EXPECT(slmpm_wq_load(wq, "send peer=next stream=4 from=buf+0:8", names, named,
			     SLMPM_PROGRAM_CLOSED),
	       1);
	EXPECT(slmpm_recv(b, 4, &back, 8, NULL, PATIENCE), 8);
	CHECK(back == 11, "what was sent");
	end();
}

/* A kept program is told of when it has run, too; what has no name is not read again. */
static void kept(void)
{
	slmpm_wq again_and_again;
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_KEPT};

	begin_text();
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &again_and_again));
	EXPECT(load(again_and_again, "send peer=next from=buf+0:8 silent\nwait ctr=answers "
				     "value=0 silent\n"),
	       2);
	OK(slmpm_wq_drain(again_and_again, PATIENCE));
	dump(again_and_again, text);
	CHECK(!strcmp(text, "send peer=next from=buf+0:8 silent\nwait ctr=answers value=0 "
			    "silent\n"),
	      "%s", text);
	named = 0;
	dump(again_and_again, text);
	CHECK(strstr(text, "peer=?") && strstr(text, "from=?") && strstr(text, "ctr=?"), "%s",
	      text);
	REFUSED(load(held, text), SLMPM_EINVAL, "no such name");
	end();
}

/* The entries of a receive queue name neither its peer nor its stream, as they are posted. */
static void receiving(void)
{
	struct slmpm_wq_options o = {
		.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED, .stream = 9};
	slmpm_wq queue;

	begin_text();
	o.cq = cq;
	o.peer = a;
	o.ctr = answers;
	OK(slmpm_wq_create(ctx, &o, &queue));
	EXPECT(load(queue, "recv to=buf+0:8\nrecv to=buf+8:8 silent"), 2);
	dump(queue, text);
	CHECK(!strcmp(text, "recv to=buf+0:8 ctr=answers\nrecv to=buf+8:8 ctr=answers silent\n"),
	      "%s", text);
	EXPECT(load(queue, text), 2);
	REFUSED(load(queue, "recv peer=next to=buf"), SLMPM_EINVAL, "line 1, \"recv\"");
	end();
}

/* ---- mistakes ------------------------------------------------------------------------------- */

static const struct mistake {
	const char *text, *where, *why;
} mistakes[] = {
	{"jump peer=next", "line 1, \"jump\"", "no such request"},
	{"\n\nsend peer=next jump=1", "line 3, \"jump=1\"", "no such word"},
	{"send peer=next jump", "line 1, \"jump\"", "no such word"},
	{"send peer", "line 1, \"peer\"", "a value is missing"},
	{"send peer=next silent=1", "line 1, \"silent=1\"", "it has no value"},
	{"send peer=next peer=next", "line 1, \"peer=next\"", "twice"},
	{"send peer=answers", "line 1, \"peer=answers\"", "no such name"},
	{"send wq=held", "line 1, \"wq=held\"", "it is no word of a SEND"},
	{"wait ctr=answers value=", "line 1, \"value=\"", "a number is missing"},
	{"wait ctr=answers value=0x", "line 1, \"value=0x\"", "a number is missing"},
	{"wait ctr=answers value=1a", "line 1, \"value=1a\"", "not a number"},
	{"wait ctr=answers value=-1", "line 1, \"value=-1\"", "not a number"},
	{"wait ctr=answers value=18446744073709551616", "value=184", "too great"},
	{"wait ctr=answers value=0x10000000000000000", "value=0x1", "too great"},
	{"wait ctr=answers timeout=2147483648", "timeout=", "too great"},
	{"wait channel=4294967296", "channel=4294967296", "too great"},
	{"wait wq=held index=ended value=1", "line 1, \"index=ended\"", "no such word here"},
	{"get region=far via=far", "line 1, \"via=far\"", "no such word here"},
	{"get region=far link=7", "line 1, \"link=7\"", "too great"},
	{"send peer=next from=nowhere", "\"from=nowhere\"", "no memory of that name"},
	{"send peer=next from=buf,", "\"from=buf,\"", "no memory of that name"},
	{"send peer=next from=buf+4097", "\"from=buf+4097\"", "beyond the end"},
	{"send peer=next from=buf+4090:7", "\"from=buf+4090:7\"", "beyond the end"},
	{"atomic region=far does=swap old=buf+4089 bits=64", "\"old\"", "no room"},
	{"atomic region=far does=swap bits=32 old=buf+4096", "\"old\"", "no room"},
	{"send peer=next from=buf+x", "\"from=buf+x\"", "not a number"},
	{"send peer=next from=buf:8+1", "\"from=buf:8+1\"", "not a number"},
	{"am peer=next handler=1 head=123", "\"head=123\"", "two digits"},
	{"am peer=next handler=1 head=1x", "\"head=1x\"", "not a number"},
	{"queue", "line 1, \"queue\"", "a name is missing"},
	{"queue next", "line 1, \"next\"", "no such name"},
	{"queue held other", "line 1, \"other\"", "what is that"},
	/* What the post would refuse: */
	{"count ctr=answers value=1\nwait value=1 ctr=answers cq=ends", "line 2, \"wait\"",
	 "names one"},
	{"send peer=next\n\n\nsend peer=next channel=8", "line 4, \"send\"", "channel 8 of 8"},
	{"recv peer=next fence", "line 1, \"recv\"", "flags 0x4"},
	{"enable wq=held value=1\nqueue other\nenable value=1", "line 3, \"enable\"", "names one"},
};

static void refusals(void)
{
	struct slmpm_name bad = {.name = "a b", .kind = SLMPM_NAME_CTR};
	char *many = calloc(1, 2048);

	begin_text();
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct mistake *m = &mistakes[i];

		REFUSED(load(held, m->text), SLMPM_EINVAL, m->where);
		REFUSED(load(held, m->text), SLMPM_EINVAL, m->why);
	}
	REFUSED(slmpm_wq_load(held, "count ctr=answers value=1 relative\nwait ctr=answers value=9",
			      names, named, SLMPM_PROGRAM_CLOSED),
		SLMPM_EINVAL, "line 1, \"count\": it can never run");
	memset(strcpy(many, "am peer=next handler=0 head=") + 28, '0', 514);
	REFUSED(load(held, many), SLMPM_EINVAL, "256 bytes");
	free(many);
	REFUSED(slmpm_wq_load(held, NULL, names, named, 0), SLMPM_EINVAL, "slmpm_wq_load");
	REFUSED(slmpm_wq_load(held, "", names, named, 2), SLMPM_EINVAL, "flags 0x2");
	REFUSED(slmpm_wq_load(held, "", NULL, 1, 0), SLMPM_EINVAL, "their number is 1");
	REFUSED(slmpm_wq_load((slmpm_wq){1}, "", NULL, 0, 0), SLMPM_EHANDLE, "work queue");
	REFUSED(slmpm_wq_load(held, "", &bad, 1, 0), SLMPM_EINVAL, "\"a b\" is no name");
	bad.name = "any";
	REFUSED(slmpm_wq_load(held, "", &bad, 1, 0), SLMPM_EINVAL, "\"any\" is no name");
	bad.name = "b";
	bad.kind = 7;
	REFUSED(slmpm_wq_load(held, "", &bad, 1, 0), SLMPM_EINVAL, "kind 7");
	names[named++] = names[0];
	REFUSED(load(held, ""), SLMPM_EINVAL, "\"next\" is there twice");
	named--;
	REFUSED(slmpm_wq_dump(NULL, 1, names, named, 0, text, LONG), SLMPM_EINVAL,
		"the queues are NULL");
	REFUSED(slmpm_wq_dump(&held, 0, names, named, 0, text, LONG), SLMPM_EINVAL, "0 queues");
	REFUSED(slmpm_wq_dump(&held, 1, names, named, 1, text, LONG), SLMPM_EINVAL, "flags 0x1");
	REFUSED(slmpm_wq_dump(&held, 1, names, named, 0, NULL, 1), SLMPM_EINVAL, "the buffer");
	REFUSED(slmpm_wq_dump(&(slmpm_wq){1}, 1, NULL, 0, 0, NULL, 0), SLMPM_EHANDLE, "queue");
	EXPECT(dump(held, text), 0); /* nothing of all that was posted */
	end();
}

/* As much as there is room for, never more. */
static void room(void)
{
	int64_t n;

	begin_text();
	EXPECT(load(held, full), 11);
	n = slmpm_wq_dump(&held, 1, names, named, 0, NULL, 0);
	EXPECT(n, strlen(full));
	for (size_t size = 1; size < (size_t)n + 3; size++) {
		size_t is = size <= (size_t)n ? size - 1 : (size_t)n;
		char *exact = malloc(size);

		CHECK(exact, "out of memory");
		EXPECT(slmpm_wq_dump(&held, 1, names, named, 0, exact, size), n);
		CHECK(strlen(exact) == is && !memcmp(exact, full, is), "%zu: %s", size, exact);
		free(exact);
	}
	end();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static int occurrences(const char *of)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, of)) != NULL; at++)
		n++;
	return n;
}

static void graph(void)
{
	int64_t n;

	begin_text();
	EXPECT(load(held, full), 11);
	EXPECT(load(other, "count ctr=answers value=1 relative\ncount ctr=answers value=1"), 2);
	n = slmpm_wq_dump((slmpm_wq[]){held, other}, 2, names, named, SLMPM_PROGRAM_GRAPH, text,
			  LONG);
	EXPECT(n, strlen(text));
	CHECK(!strncmp(text, "digraph program {\n", 18) && !strcmp(text + n - 3, "\n}\n"), "%s",
	      text);
	CHECK(occurrences("shape=box") == 13 && occurrences("subgraph") == 2, "%s", text);
	CHECK(occurrences("{") == occurrences("}") && occurrences("\"") % 2 == 0, "%s", text);
	/* Eleven entries in three channels, of which one is by itself; and two in one. */
	CHECK(strstr(text, "\"held 2\" -> \"held 4\";") &&
		      strstr(text, "\"other 1\" -> \"other 2\""),
	      "%s", text);
	CHECK(strstr(text, "\"counter answers\" -> \"held 7\" [style=dashed, label=\"+1\"]") &&
		      strstr(text,
			     "\"queue other\" -> \"held 9\" [style=dashed, label=\"done 4\"]") &&
		      strstr(text, "\"held 10\" -> \"queue other\" [style=dashed, label=\"4\"]") &&
		      strstr(text,
			     "\"held 1\" -> \"counter answers\" [style=dashed, label=\"+1\"]") &&
		      strstr(text,
			     "\"completions ends\" -> \"held 8\" [style=dashed, label=\"0\"]") &&
		      strstr(text,
			     "\"held 3\" -> \"completions ends\" [style=dashed, label=\"+1\"]") &&
		      !strstr(text, "\"held 2\" -> \"completions"),
	      "%s", text);
	end();
}

/* ---- random ones ---------------------------------------------------------------------------- */

static struct rng rng;

static uint32_t some_flags(uint32_t may)
{
	return (uint32_t)rng_next(&rng) & may;
}

static uint64_t some_number(void)
{
	return rng_next(&rng) >> rng_below(&rng, 64);
}

static int some_pieces(struct slmpm_iov *pieces)
{
	int n = (int)rng_below(&rng, 4);

	for (int i = 0; i < n; i++) {
		size_t at = rng_below(&rng, 8192);

		if (rng_one_in(&rng, 8))
			pieces[i] = (struct slmpm_iov){NULL, 0};
		else
			pieces[i] = (struct slmpm_iov){(char *)here + at,
						       rng_below(&rng, 4096 - (uint32_t)at % 4096)};
	}
	return n;
}

static void control(struct slmpm_wr *wr)
{
	wr->flags |= some_flags(SLMPM_RELATIVE);
	wr->value = some_number();
	switch (wr->op == SLMPM_OP_COUNT ? 0 : wr->op == SLMPM_OP_ENABLE ? 2 : rng_below(&rng, 3)) {
	case 0: wr->ctr = answers; break;
	case 1: wr->cq = cq; break;
	default: wr->wq = rng_one_in(&rng, 2) ? held : other;
	}
	if (wr->op == SLMPM_OP_WAIT && wr->wq.id)
		wr->index = 1 + rng_below(&rng, 4);
	if (wr->op == SLMPM_OP_WAIT)
		wr->timeout_ms = (int32_t)rng_below(&rng, 3) - 1;
}

static void remote(struct slmpm_wr *wr)
{
	wr->flags |= some_flags(SLMPM_FENCE | SLMPM_BARRIER);
	wr->rmem = far;
	wr->offset = some_number();
	wr->peer.id = rng_one_in(&rng, 2) ? a.id : 0;
	if (wr->op == SLMPM_OP_PUT)
		wr->flags |= some_flags(SLMPM_REMOTE | SLMPM_NOTIFY);
	if (wr->op != SLMPM_OP_ATOMIC)
		return;
	wr->atomic = rng_below(&rng, 5);
	wr->bits = 32u << rng_below(&rng, 2);
	wr->operand = some_number();
	wr->compare = some_number();
	wr->old = rng_one_in(&rng, 2) ? here + rng_below(&rng, 500) : NULL;
}

static void to_peer(struct slmpm_wr *wr, const unsigned char *head)
{
	wr->peer = a;
	if (wr->op == SLMPM_OP_RECV && rng_one_in(&rng, 2))
		wr->peer = slmpm_any(ctx);
	wr->stream = (uint32_t)some_number() & 0xff;
	if (wr->op == SLMPM_OP_SEND) {
		wr->flags |= some_flags(SLMPM_MORE | SLMPM_FENCE);
		wr->timeout_ms = (int32_t)rng_below(&rng, 3) - 1;
	}
	if (wr->op == SLMPM_OP_AM) {
		wr->flags |= some_flags(SLMPM_REMOTE | SLMPM_BARRIER);
		wr->head = head;
		wr->head_len = rng_below(&rng, SLMPM_AM_HEAD_MAX + 1);
	}
}

static void post_random(slmpm_wq to)
{
	static const uint32_t ops[] = {SLMPM_OP_SEND, SLMPM_OP_RECV,   SLMPM_OP_PUT,
				       SLMPM_OP_GET,  SLMPM_OP_ATOMIC, SLMPM_OP_AM,
				       SLMPM_OP_WAIT, SLMPM_OP_ENABLE, SLMPM_OP_COUNT};
	unsigned char head[SLMPM_AM_HEAD_MAX];
	struct slmpm_iov pieces[4];
	struct slmpm_wr wr = {.size = sizeof(wr), .op = ops[rng_below(&rng, 9)]};

	for (size_t i = 0; i < sizeof(head); i++)
		head[i] = (unsigned char)rng_next(&rng);
	wr.channel = rng_below(&rng, 8);
	wr.cookie = some_number();
	wr.flags = some_flags(SLMPM_SILENT);
	if (wr.op < SLMPM_OP_WAIT) {
		if (wr.op != SLMPM_OP_ATOMIC)
			wr.iov_count = some_pieces(pieces);
		wr.iov = pieces;
		if (wr.op == SLMPM_OP_SEND || wr.op == SLMPM_OP_PUT)
			wr.imm = (uint32_t)some_number();
		wr.ctr.id = rng_one_in(&rng, 2) ? answers.id : 0;
	}
	if (wr.op >= SLMPM_OP_WAIT)
		control(&wr);
	else if (wr.rmem.id || wr.op == SLMPM_OP_PUT || wr.op == SLMPM_OP_GET ||
		 wr.op == SLMPM_OP_ATOMIC)
		remote(&wr);
	else
		to_peer(&wr, head);
	if (wr.op != SLMPM_OP_RECV && wr.op < SLMPM_OP_WAIT && rng_one_in(&rng, 4))
		wr.flags |= SLMPM_ON_LINK(rng_below(&rng, 3)) | some_flags(SLMPM_STRICT);
	EXPECT(slmpm_post(to, &wr, 1), 1);
}

/* Into another queue, which then says the same. */
static void random_ones(void)
{
	const int rounds = 2000 / actor_slow();

	rng.state = rng_run_seed(18);
	begin_text();
	for (int i = 0; i < rounds; i++) {
		int n = (int)rng_below(&rng, 30);

		for (int k = 0; k < n; k++)
			post_random(held);
		dump(held, text);
		EXPECT(load(other, text), n);
		dump(other, again);
		CHECK(!strcmp(text, again), "written: %s\nread: %s", text, again);
		OK(slmpm_wq_reset(held));
		OK(slmpm_wq_reset(other));
	}
	end();
}

/* A byte that is another, one that is not there: read or refused by its line. */
static void garbled(void)
{
	const int rounds = 20000 / actor_slow();
	int read = 0;

	begin_text();
	for (int i = 0; i < rounds; i++) {
		static const char bytes[] = "0123456789abcx=+:,#-. \n\t\rqueuewait";
		int rc;

		snprintf(text, LONG, "%s", full);
		for (uint32_t k = rng_below(&rng, 4); k < 4; k++) {
			size_t at = rng_below(&rng, sizeof(full) - 1);

			if (rng_one_in(&rng, 3))
				memmove(text + at, text + at + 1, strlen(text + at));
			else
				text[at] = bytes[rng_below(&rng, sizeof(bytes) - 1)];
		}
		rc = load(held, text);
		CHECK(rc >= 0 || strstr(slmpm_error_detail(), "slmpm_wq_load: line "), "%d: %s\n%s",
		      rc, slmpm_error_detail(), text);
		read += rc >= 0;
		OK(slmpm_wq_reset(held));
		OK(slmpm_wq_reset(other));
	}
	printf("%d of %d were read\n", read, rounds);
	end();
}

int main(void)
{
	alarm(110);
	words();
	runs();
	kept();
	receiving();
	refusals();
	room();
	graph();
	random_ones();
	garbled();
	return 0;
}
