/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a work request says that its operation does not have is refused, and named: each member with
 * each operation, each flag; so are options of queues that mean nothing together.
 */
#include "tests/api/workqueue_entry.h"

#include <stddef.h>

struct member {
	const char *name, *ops; /* letters: of `requests` */
	size_t at, size;
};

#define MEMBER(name, ops)                                                                          \
	{                                                                                          \
#name, ops, offsetof(struct slmpm_wr, name),                                       \
			sizeof(((struct slmpm_wr *)NULL)->name)                                    \
	}

/* Send, Recv, Put, Get, Atomic, aM, Wait, Enable, Count, caLc, pIpe. */
static const char letters[] = "SRPGAMWECLI";
static const uint32_t operations[] = {
	SLMPM_OP_SEND, SLMPM_OP_RECV,   SLMPM_OP_PUT,   SLMPM_OP_GET,  SLMPM_OP_ATOMIC, SLMPM_OP_AM,
	SLMPM_OP_WAIT, SLMPM_OP_ENABLE, SLMPM_OP_COUNT, SLMPM_OP_CALC, SLMPM_OP_PIPE,
};
static const char *const titles[] = {
	"a SEND", "a RECV",    "a PUT",   "a GET",  "an ATOMIC", "an AM",
	"a WAIT", "an ENABLE", "a COUNT", "a CALC", "a PIPE",
};

static const struct member members[] = {
	MEMBER(peer, "SRPGAMI"),  MEMBER(stream, "SRMI"),
	MEMBER(imm, "SP"),        MEMBER(iov_count, "SRPGMI"),
	MEMBER(head_len, "M"),    MEMBER(rmem, "PGA"),
	MEMBER(offset, "PGA"),    MEMBER(atomic, "A"),
	MEMBER(bits, "A"),        MEMBER(operand, "A"),
	MEMBER(compare, "A"),     MEMBER(old, "A"),
	MEMBER(cq, "W"),          MEMBER(wq, "WEI"),
	MEMBER(index, "W"),       MEMBER(timeout_ms, "SW"),
	MEMBER(value, "WECI"),    MEMBER(from, "I"),
	MEMBER(from_stream, "I"), MEMBER(calc, "L"),
	MEMBER(rctr, "SPGAMC"),
};

/* A CALC of ARG, which stays the caller's. */
static struct slmpm_wr summing(const struct slmpm_operand *arg)
{
	static const struct slmpm_operand target = {.at = here};
	static struct slmpm_calc calc;

	calc = (struct slmpm_calc){.size = sizeof(calc),
				   .op = SLMPM_CALC_SUM,
				   .type = SLMPM_UINT64,
				   .args = arg,
				   .targets = &target,
				   .arg_count = 1,
				   .target_count = 1};
	return (struct slmpm_wr){
		.size = sizeof(struct slmpm_wr), .op = SLMPM_OP_CALC, .calc = &calc};
}

/* A good one of each. */
static struct slmpm_wr good(char letter, slmpm_ctr ctr, slmpm_wq managed)
{
	static struct slmpm_iov word = {here, 8};
	static const struct slmpm_operand arg = {.at = here + 1};
	struct slmpm_wr wr = {.size = sizeof(wr)};

	wr.op = operations[strchr(letters, letter) - letters];
	switch (letter) {
	case 'A': return add(1, 1, NULL, 0);
	case 'W':
	case 'C': return on_counter(wr.op, ctr, 0, 1, 0);
	case 'E': wr.wq = managed; break;
	case 'L': return summing(&arg);
	case 'P':
	case 'G': return one_sided(wr.op, 1, &word, 0);
	default:
		wr.peer = a;
		wr.iov = &word;
		wr.iov_count = 1;
	}
	if (letter == 'I') {
		wr.from = b;
		wr.value = 1;
	}
	return wr;
}

static void refuse_member(struct slmpm_wr wr, const struct member *m, const char *title)
{
	char text[64];
	const int said = snprintf(text, sizeof(text), "slmpm_post: .%s of %s is ", m->name, title);

	CHECK(said > 0, "a text");
	memset((char *)&wr + m->at, 0, m->size);
	*((unsigned char *)&wr + m->at +
	  (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? m->size - 1 : 0)) = 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, text);
	CHECK(strstr(slmpm_error_detail(), ": it is for "), "%s", slmpm_error_detail());
	/* Whatever comes before it in its queue, and however it is posted. */
	REFUSED(slmpm_program_post(&wq, &wr, 1), SLMPM_EINVAL, text + strlen("slmpm_post: "));
}

static void each_member(void)
{
	slmpm_wq managed;
	slmpm_ctr ctr;

	begin(0, SLMPM_WQ_MANAGED); /* none begins */
	ctr = counter();
	managed = another(SLMPM_WQ_MANAGED);
	for (size_t k = 0; letters[k]; k++) {
		struct slmpm_wr wr = good(letters[k], ctr, managed);

		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
			if (!strchr(members[i].ops, letters[k]))
				refuse_member(wr, &members[i], titles[k]);
		post(wr);
	}
	EXPECT(look(wq).posted, sizeof(letters) - 1);
	end();
}

/* One that would be done as it is posted. */
static void at_once(void)
{
	struct slmpm_wr wr;

	begin(0, 0);
	wr = good('L', (slmpm_ctr){0}, (slmpm_wq){0});
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!strchr(members[i].ops, 'L'))
			refuse_member(wr, &members[i], "a CALC");
	wr.reserved = 1;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".reserved is 1");
	EXPECT(look(wq).posted, 0);
	end();
}

static void values(void)
{
	struct slmpm_wr wr;

	begin(0, 0);
	wr = good('S', (slmpm_ctr){0}, (slmpm_wq){0});
	wr.value = 3;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		".value of a SEND is 3: it is for WAIT, ENABLE, COUNT and PIPE");
	wr.value = UINT64_MAX;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "is 18446744073709551615:");
	wr = good('R', (slmpm_ctr){0}, (slmpm_wq){0});
	wr.timeout_ms = -5;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		".timeout_ms of a RECV is -5: it is for SEND and WAIT");
	wr = good('S', (slmpm_ctr){0}, (slmpm_wq){0});
	wr.peer = slmpm_any(ctx);
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".peer of a SEND is slmpm_any");
	wr.op = SLMPM_OP_AM;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".peer of an AM is slmpm_any");
	wr = good('W', counter(), (slmpm_wq){0});
	wr.index = 2;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, ".index is 2, but the WAIT is on no work");
	wr = good('E', (slmpm_ctr){0}, (slmpm_wq){0});
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		"an ENABLE names one work queue (.wq), not none");
	wr = good('S', (slmpm_ctr){0}, (slmpm_wq){0});
	wr.op = SLMPM_OP_STORE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		"operation 8 (STORE) is none of a work queue's");
	wr.op = 99;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "operation 99 is none of a work queue's");
	wr = good('S', (slmpm_ctr){0}, (slmpm_wq){0});
	wr.flags = SLMPM_NOTIFY | SLMPM_RELATIVE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a SEND has no NOTIFY and RELATIVE, only ");
	wr.flags = 1u << 30;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL, "a SEND has no 0x40000000, only MORE, FENCE");
	wr = good('C', counter(), (slmpm_wq){0});
	wr.flags = SLMPM_FENCE;
	REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
		"a COUNT has no FENCE, only SILENT and RELATIVE");
	end();
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void options(void)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = SLMPM_WQ_RECEIVE};
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_RECV};
	slmpm_wq no, receives;

	begin(0, 0);
	o.cq = cq;
	o.peer = b;
	o.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_SPREAD;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, "SLMPM_WQ_SPREAD is for what is sent");
	o.flags = SLMPM_WQ_RECEIVE | SLMPM_WQ_UNACKNOWLEDGED;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL,
		"SLMPM_WQ_UNACKNOWLEDGED is for what is sent");
	o.flags = 0;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, ".peer is set");
	o.peer.id = 0;
	o.stream = 1;
	REFUSED(slmpm_wq_create(ctx, &o, &no), SLMPM_EINVAL, ".stream is set");
	receives = receive_queue_of(b, 3, 0);
	wr.stream = 3;
	REFUSED(slmpm_post(receives, &wr, 1), SLMPM_EINVAL, "without peer and stream: .stream");
	wr.stream = 0;
	wr.peer = b;
	REFUSED(slmpm_post(receives, &wr, 1), SLMPM_EINVAL, "without peer and stream: .peer");
	wr.op = 99;
	REFUSED(slmpm_post(receives, &wr, 1), SLMPM_EINVAL, "operation 99 is none");
	end();
}

/* What a CALC or PIPE takes is not cancelled with its queue, which says why. */
static void taken(void)
{
	struct slmpm_operand arg = {0};
	struct slmpm_wr wr = summing(&arg);
	static const char why[] = "a CALC or PIPE of another queue takes 1 of its entries";
	slmpm_wq receives;

	for (int enabled = 0; enabled < 2; enabled++) {
		begin(0, 0);
		receives = receive_queue_of(b, 3, SLMPM_WQ_MANAGED);
		OK(slmpm_wq_enable(receives, (uint64_t)enabled));
		arg = (struct slmpm_operand){.wq = receives};
		post(wr);
		settle();
		REFUSED(slmpm_wq_cancel(receives, 1), SLMPM_EBUSY, why);
		REFUSED(slmpm_wq_cancel(receives, 0), SLMPM_EBUSY, why);
		REFUSED(slmpm_wq_reset(receives), SLMPM_EBUSY, why);
		REFUSED(slmpm_wq_destroy(receives), SLMPM_EBUSY, why);
		REFUSED(slmpm_wq_cancel(receives, 2), SLMPM_EINVAL, "no entry 2");
		OK(slmpm_wq_cancel(wq, 0));
		expect(0, -SLMPM_ECANCELED, 0);
		OK(slmpm_wq_destroy(receives));
		end();
	}
}

/* One that has gone too far says which, and what it is. */
static void too_far(void)
{
	struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_COUNT, .value = 1};
	struct slmpm_key key;
	slmpm_mem region;

	begin(0, 0);
	OK(slmpm_ctr_mem(counter(), &region));
	OK(slmpm_mem_key(region, b, SLMPM_COUNT, &key));
	OK(slmpm_mem_open(a, &key, &wr.rctr));
	settle();
	post(wr);
	REFUSED(slmpm_wq_cancel(wq, 1), SLMPM_EBUSY, "entry 1, a COUNT, has gone too far");
	REFUSED(slmpm_wq_reset(wq), SLMPM_EBUSY, "entry 1, a COUNT, has gone too far");
	OK(slmpm_wq_drain(wq, PATIENCE));
	end();
}

/* A managed queue's messages are its own, from any sender. */
static void streams(void)
{
	struct slmpm_operand arg = {0};
	static struct slmpm_iov room = {here, 8};
	struct slmpm_wr wr = summing(&arg);
	struct slmpm_wr pipe = {.size = sizeof(pipe),
				.op = SLMPM_OP_PIPE,
				.iov = &room,
				.iov_count = 1,
				.value = 1};

	for (int of_any = 0; of_any < 2; of_any++) {
		slmpm_wq receives;

		begin(0, 0);
		pipe.peer = a;
		receives = receive_queue_of(of_any ? slmpm_any(ctx) : b, 3, SLMPM_WQ_MANAGED);
		for (int any = 0; any < 2; any++)
			for (int every = 0; every < 2; every++) {
				arg = (struct slmpm_operand){.peer = any ? slmpm_any(ctx) : b};
				arg.stream = every ? SLMPM_ANY_STREAM : 3;
				REFUSED(slmpm_post(wq, &wr, 1), SLMPM_EINVAL,
					"argument 0 would take messages of stream 3");
				pipe.from = arg.peer;
				pipe.from_stream = arg.stream;
				REFUSED(slmpm_post(wq, &pipe, 1), SLMPM_EINVAL,
					"a PIPE would take messages of stream 3");
			}
		arg.stream = 4;
		post(wr);
		if (!of_any) { /* what another peer sends there is its own */
			arg.peer = a;
			arg.stream = 3;
			post(wr);
		}
		OK(slmpm_wq_destroy(receives));
		arg.peer = slmpm_any(ctx);
		post(wr);
		end();
	}
}

int main(void)
{
	each_member();
	at_once();
	values();
	options();
	taken();
	too_far();
	streams();
	return 0;
}
