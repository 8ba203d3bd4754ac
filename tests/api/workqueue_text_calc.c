/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Calculations as text: what is written can be read, says the same again and does the same; none
 * that is read reaches beyond the memory that it names.
 */
#include "tests/api/workqueue_text.h"

#define HALF (WORDS / 2) /* words of "buf", which is read, and of "rest", which is written */
#define DIMS 3

/* ---- words ---------------------------------------------------------------------------------- */

/* As they are written when nothing is left out. */
static const char full[] =
	"calc channel=2 does=sum type=double count=16 from=buf+0,buf+128,buf+0 to=rest+0 "
	"ctr=answers cookie=3 silent\n"
	"calc does=max type=int64 count=4 from=buf+0[buf+512],buf+32@7 to=rest+64[rest+1024],rest+0\n"
	"calc does=min type=int8 from=buf+0@18446744073709551615 to=rest+1\n"
	"calc does=product type=uint32 count=2*3*2 from=buf+0:big/64/24/8,buf+400/-64/-24/-8 "
	"to=rest+0:little/64/24/8\n"
	"calc does=lxor type=float count=4*8 from=buf+0/0/4,buf+512/64/8 to=rest+0/64/4\n"
	"calc does=sum type=int16 count=100 from=buf+0/0/1,buf+1 to=rest+99\n"
	"calc does=land type=uint64 from=buf+8 to=rest+8:big\n"
	"calc does=sum type=uint32 count=8 from=buf+0,buf+32 to=>far+0:little,rest+0/8,>far+64:big\n"
	"calc does=max type=uint32 count=8 from=buf+0 to=rest+0[rest+64],>far+8160:big,>far+0:big\n"
	"calc does=sum type=uint8 from=buf+0,buf+1 to=>far+8191\n"
	"calc does=sum type=int32 count=4 from=<next+3:big,buf+0,<any+4294967295 to=rest+0\n"
	"calc does=max type=int32 count=4 from=<next+0@5 to=rest+0[rest+64],>far+0\n";

static void words(void)
{
	begin_text();
	EXPECT(load(held, full), 12);
	dump(held, text);
	CHECK(!strcmp(text, full), "%s", text);
	OK(slmpm_wq_reset(held));
	/* As it comes from a hand: what lies side by side is one dimension. */
	EXPECT(load(held, "calc to=rest from=buf/1/64/8,buf:little count=1*4*8 type=1 does=0x3\n"
			  "calc to=rest from=buf+8/0 count=1 type=double does=max\n"
			  "calc to=rest/-8 from=buf/8@0 count=1 type=double does=max"),
	       3);
	dump(held, text);
	CHECK(!strcmp(text, "calc does=min type=int8 count=32 from=buf+0/8,buf+0:little "
			    "to=rest+0\n"
			    "calc does=max type=double from=buf+8 to=rest+0\n"
			    "calc does=max type=double from=buf+0 to=rest+0\n"),
	      "%s", text);
	end();
}

/* What was loaded does what it says, again and again where it is kept. */
static void runs(void)
{
	static const char program[] =
		"calc does=sum type=uint64 count=3 from=buf,buf+24:big,buf+48/0/1 to=rest,>far+8\n"
		"calc does=max type=int32 count=2 from=buf+0/8@5,buf+8/8@2 to=rest+512[rest+520]\n";
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_KEPT};
	slmpm_wq queue;

	begin_text();
	o.cq = cq;
	OK(slmpm_wq_create(ctx, &o, &queue));
	for (uint64_t i = 0; i < 3; i++) {
		here[i] = i + 1;
		here[3 + i] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 100 : (uint64_t)100 << 56;
	}
	here[6] = 1000;
	EXPECT(load(queue, program), 2);
	for (int round = 0; round < 3; round++) {
		OK(slmpm_wq_drain(queue, PATIENCE));
		for (uint64_t i = 0; i < 3; i++)
			CHECK(there[1 + i] == 1101 + i && here[HALF + i] == 1101 + i, "%llu",
			      (unsigned long long)there[1 + i]);
		CHECK(here[HALF + 65] == 2 && here[HALF + 66] == 2, "indices");
		memset(there, 0, 64);
		OK(slmpm_wq_arm(queue));
	}
	OK(slmpm_wq_drain(queue, PATIENCE));
	end();
}

/* ---- mistakes ------------------------------------------------------------------------------- */

static const struct mistake {
	const char *text, *where, *why;
} mistakes[] = {
	{"send does=sum", "\"does=sum\"", "it is no word of"},
	{"calc through=buf", "\"through=buf\"", "it is no word of"},
	{"calc does=add", "\"does=add\"", "no such word here"},
	{"calc type=int", "\"type=int\"", "no such word here"},
	{"calc count=", "\"count=\"", "a number is missing"},
	{"calc count=4*", "\"count=4*\"", "a number is missing"},
	{"calc count=0", "\"count=0\"", "no elements"},
	{"calc count=1*2*3*4", "\"count=1*2*3*4\"", "more than three"},
	{"calc from=nowhere", "\"from=nowhere\"", "no memory of that name"},
	{"calc from=buf,", "\"from=buf,\"", "no memory of that name"},
	{"calc from=none", "\"from=none\"", "no memory of that name"},
	{"calc from=buf:8", "\"from=buf:8\"", "big or little"},
	{"calc from=buf/", "\"from=buf/\"", "a number is missing"},
	{"calc from=buf/1/2/3/4", "\"from=buf/1/2/3/4\"", "more than three"},
	{"calc from=buf/9223372036854775808", "\"from=buf/9", "too great"},
	{"calc from=buf@", "\"from=buf@\"", "a number is missing"},
	{"calc from=buf@-1", "\"from=buf@-1\"", "not a number"},
	{"calc from=buf@1/8", "\"from=buf@1/8\"", "not a number"},
	{"calc from=buf[buf", "\"from=buf[buf\"", "a ] is missing"},
	{"calc from=buf[", "\"from=buf[\"", "a ] is missing"},
	{"calc from=buf[]", "\"from=buf[]\"", "no memory of that name"},
	{"calc from=buf[buf]/8", "\"from=buf[buf]/8\"", "a ] is missing"},
	/* Beyond the memory that is named: */
	{"calc does=sum type=int64 from=buf+4089 to=rest", "\"from\"", "beyond the end"},
	{"calc does=sum type=int64 count=513 from=buf to=rest", "\"from\"", "beyond the end"},
	{"calc does=sum type=int64 count=512 from=buf to=rest+1", "\"to\"", "beyond the end"},
	{"calc does=sum type=int64 count=2 from=rest/-8 to=buf", "\"from\"", "beyond the end"},
	{"calc does=sum type=int8 count=2*2 from=buf to=rest/4095/1", "\"to\"", "beyond the end"},
	{"calc does=max type=int8 count=8 from=buf[buf+4040] to=rest", "\"from\"",
	 "beyond the end"},
	{"calc does=max type=int8 count=8 from=buf to=rest[rest+4040]", "\"to\"", "beyond the end"},
	{"calc does=sum type=int64 from=buf to=>buf", "\"to=>buf\"", "no such name"},
	{"calc does=sum type=int64 from=buf to=>far+", "\"to=>far+\"", "a number is missing"},
	{"calc does=sum type=int64 from=<far+1 to=buf", "\"from=<far+1\"", "no such name"},
	{"calc does=sum type=int64 from=<any+x to=buf", "\"from=<any+x\"", ""},
	{"calc does=sum type=int64 from=buf to=>far+8185", "line 1, \"calc\"",
	 "of a region of 8192"},
	{"calc does=sum type=int64 from=>far to=buf", "line 1, \"calc\"", "argument 0"},
	{"calc does=sum type=int64 count=2 from=buf to=>far/16", "line 1, \"calc\"", "target 0"},
	{"calc does=sum type=int8 count=9223372036854775807 from=buf/-9223372036854775807 to=rest",
	 "\"calc\"", "elements"},
	{"calc does=sum type=int8 count=2 from=buf/-9223372036854775807 to=rest", "\"from\"",
	 "beyond the end"},
	/* What the post would refuse: */
	{"calc", "line 1, \"calc\"", "calculation 0"},
	{"\ncalc does=sum from=buf to=rest", "line 2, \"calc\"", "type 0"},
	{"calc does=sum type=11 from=buf to=rest", "line 1, \"calc\"", "type 11"},
	{"calc does=and type=double from=buf to=rest", "line 1, \"calc\"", "bitwise"},
	{"calc does=sum type=int8 from=buf", "line 1, \"calc\"", "0 targets"},
	{"calc does=sum type=int8 count=2 from=buf to=buf+1", "line 1, \"calc\"", "overlaps"},
	{"calc does=sum type=int8 from=buf@1 to=rest", "line 1, \"calc\"", "an index of argument"},
	{"calc does=max type=int8 from=buf to=rest@1", "line 1, \"calc\"", "an index of target"},
	{"calc does=sum type=int8 from=buf to=rest fence", "line 1, \"calc\"", "flags 0x4"},
};

static void refusals(void)
{
	size_t at;

	begin_text();
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct mistake *m = &mistakes[i];

		REFUSED(load(held, m->text), SLMPM_EINVAL, m->where);
		REFUSED(load(held, m->text), SLMPM_EINVAL, m->why);
	}
	at = (size_t)sprintf(text, "calc does=sum type=int8 to=rest from=buf");
	for (int i = 0; i < SLMPM_CALC_ARGS_MAX; i++)
		at += (size_t)sprintf(text + at, ",buf");
	REFUSED(load(held, text), SLMPM_ELIMIT, "65 arguments, at most 64");
	EXPECT(dump(held, text), 0);
	end();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void graph(void)
{
	begin_text();
	EXPECT(load(held, full), 12);
	EXPECT(slmpm_wq_dump(&held, 1, names, named, SLMPM_PROGRAM_GRAPH, text, LONG),
	       strlen(text));
	CHECK(strstr(text, "label=\"calc\\nchannel=2\\ndoes=sum\\ntype=double\\ncount=16\\n"
			   "from=buf+0,buf+128,buf+0\\nto=rest+0\\n") &&
		      strstr(text, "\"held 2\" -> \"held 3\";") &&
		      strstr(text,
			     "\"held 1\" -> \"counter answers\" [style=dashed, label=\"+1\"]"),
	      "%s", text);
	end();
}

/* ---- random ones ---------------------------------------------------------------------------- */

static struct rng rng;

struct shape {
	uint32_t type, width;
	uint64_t count[DIMS];
};

static uint32_t width_of(uint32_t type)
{
	return type == SLMPM_FLOAT ? 4 : type == SLMPM_DOUBLE ? 8 : 1u << (type - SLMPM_INT8) % 4;
}

/* Each dimension steps over what lies within it, up or down: at BASE or beyond. */
static struct slmpm_operand nested(const struct shape *s, unsigned char *base)
{
	struct slmpm_operand o = {.at = base};
	int64_t step = s->width;

	if (rng_one_in(&rng, 3))
		return o;
	for (int d = DIMS - 1; d >= 0; d--) {
		o.stride[d] = step + s->width * (int64_t)rng_below(&rng, 2);
		step = o.stride[d] * (int64_t)s->count[d];
		if (rng_one_in(&rng, 4)) {
			o.at = (char *)o.at + o.stride[d] * (int64_t)(s->count[d] - 1);
			o.stride[d] = -o.stride[d];
		}
	}
	return o;
}

/* What is read may be anywhere, and the same again. */
static struct slmpm_operand any_argument(const struct shape *s)
{
	struct slmpm_operand o = {.at = (char *)here + 1800 + rng_below(&rng, 480)};

	if (rng_one_in(&rng, 2))
		return nested(s, (unsigned char *)here + rng_below(&rng, 400));
	for (int d = 0; d < DIMS; d++)
		o.stride[d] = rng_one_in(&rng, 3) ? 0 : (int64_t)rng_below(&rng, 401) - 200;
	return o;
}

static void post_random(slmpm_wq to)
{
	struct slmpm_operand args[5], targets[2];
	struct shape s = {.type = 1 + rng_below(&rng, 10)};
	struct slmpm_calc c = {.size = sizeof(c), .args = args, .targets = targets};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &c};
	bool picks;

	s.width = width_of(s.type);
	for (int d = 0; d < DIMS; d++)
		c.count[d] = s.count[d] = 1 + rng_below(&rng, 3);
	c.type = s.type;
	do
		c.op = 1 + rng_below(&rng, 10);
	while (s.type >= SLMPM_FLOAT && c.op >= SLMPM_CALC_AND && c.op <= SLMPM_CALC_XOR);
	picks = c.op == SLMPM_CALC_MIN || c.op == SLMPM_CALC_MAX;
	c.arg_count = 1 + (int)rng_below(&rng, 5);
	c.target_count = 1 + (int)rng_below(&rng, 2);
	for (int i = 0; i < c.arg_count; i++) {
		args[i] = any_argument(&s);
		args[i].flags = rng_below(&rng, 3);
		args[i].index = picks && rng_one_in(&rng, 2) ? rng_next(&rng) : 0;
		if (picks && rng_one_in(&rng, 2))
			args[i].indices = here + rng_below(&rng, HALF - 27);
	}
	for (int i = 0; i < c.target_count; i++) {
		targets[i] = nested(&s, (unsigned char *)(here + HALF) + 1792 * i);
		targets[i].flags = rng_below(&rng, 3);
		if (picks && rng_one_in(&rng, 2))
			targets[i].indices = here + WORDS - 27 * (i + 1);
		if (rng_one_in(&rng, 4))
			targets[i] = (struct slmpm_operand){.rmem = far,
							    .offset = 512 * (uint64_t)i +
								      rng_below(&rng, 200),
							    .flags = rng_below(&rng, 3)};
	}
	wr.channel = rng_below(&rng, 8);
	wr.flags = SLMPM_SILENT;
	EXPECT(slmpm_post(to, &wr, 1), 1);
}

static uint64_t posted(slmpm_wq queue)
{
	struct slmpm_wq_info info = {.size = sizeof(info)};

	OK(slmpm_wq_query(queue, &info));
	return info.posted;
}

/* What QUEUE has makes of MEMORY, and of B's region. */
static void run(slmpm_wq queue, const uint64_t memory[WORDS], uint64_t made[2 * WORDS])
{
	memcpy(here, memory, sizeof(here));
	memset(there, 0, sizeof(here));
	OK(slmpm_wq_enable(queue, posted(queue)));
	OK(slmpm_wq_drain(queue, PATIENCE));
	memcpy(made, here, sizeof(here));
	memcpy(made + WORDS, there, sizeof(here));
}

/* Into another queue, which then says the same, and does it. */
static void random_ones(void)
{
	static uint64_t memory[WORDS], one[2 * WORDS], two[2 * WORDS];
	const int rounds = 4000 / actor_slow();

	rng.state = rng_run_seed(19);
	begin_text();
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < WORDS; k++) /* no NaN, whatever the type */
			memory[k] = rng_next(&rng) & UINT64_C(0xefefefefefefefef);
		post_random(held);
		dump(held, text);
		CHECK(!strchr(text, '?'), "%s", text);
		EXPECT(load(other, text), 1);
		dump(other, again);
		CHECK(!strcmp(text, again), "written: %s\nread: %s", text, again);
		run(held, memory, one);
		run(other, memory, two);
		CHECK(!memcmp(one, two, sizeof(one)), "another result: %s", text);
	}
	end();
}

/* A byte that is another, one that is not there: refused by its line, or all that it reads and
 * writes has a name. */
static void garbled(void)
{
	const int rounds = 40000 / actor_slow();
	int read = 0;

	begin_text();
	for (int i = 0; i < rounds; i++) {
		static const char bytes[] = "0123456789*/@[]:,+-=>";
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
		dump(held, again);
		CHECK(!strchr(again, '?'), "read: %s\nwritten: %s", text, again);
		OK(slmpm_wq_reset(held));
	}
	printf("%d of %d were read\n", read, rounds);
	end();
}

int main(void)
{
	alarm(110);
	words();
	runs();
	refusals();
	graph();
	random_ones();
	garbled();
	return 0;
}
