/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of random calls: receives of any peer, asked in another order than posted. */
#include "tests/lib/mail_model.h"

#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define SENT 3

struct sent {
	uint64_t seed, len;
	uint32_t stream, imm;
	uint64_t taker; /* asked in the order of sending */
};

static struct trial {
	const char *what;
	struct sent sent[SENT];
	int status;
} trials[] = {
	{"two without bytes", {{1, 0, 0, 0, 2}, {2, 0, 0, 0, 1}, {3, 9, 0, 0, 3}}, 0},
	{"two of the same bytes", {{1, 9, 0, 0, 2}, {1, 9, 0, 0, 1}, {2, 9, 0, 0, 3}}, 0},
	{"three", {{1, 0, 0, 0, 3}, {2, 0, 0, 0, 1}, {3, 0, 0, 0, 2}}, 0},
	{"another between", {{1, 0, 0, 0, 3}, {2, 9, 0, 0, 2}, {3, 0, 0, 0, 1}}, 0},
	{"another's turn", {{1, 0, 0, 0, 3}, {2, 9, 0, 0, 1}, {3, 0, 0, 0, 2}}, 1},
	{"other streams", {{1, 0, 0, 0, 3}, {2, 0, 1, 0, 2}, {3, 0, 2, 0, 1}}, 0},
	{"other immediates", {{1, 0, 0, 0, 2}, {2, 0, 0, 1, 1}, {3, 0, 0, 2, 3}}, 1},
	{"other lengths", {{1, 9, 0, 0, 2}, {1, 8, 0, 0, 1}, {3, 0, 0, 0, 3}}, 1},
	{"other bytes", {{1, 9, 0, 0, 2}, {2, 9, 0, 0, 1}, {3, 0, 0, 0, 3}}, 1},
};

/* In a child: what is out of order ends it with 1. */
static int check_order(void *arg)
{
	struct mail_channel c = {.order = MAIL_MONOTONE};
	const struct trial *t = arg;

	for (int i = 0; i < SENT; i++)
		(void)mail_send(&c, t->sent[i].stream, t->sent[i].imm, t->sent[i].seed,
				t->sent[i].len);
	for (int i = 0; i < SENT; i++) {
		const struct sent *s = &t->sent[i];
		unsigned char data[16];
		struct mail_got got = {s->stream, s->imm, s->len, s->len, data, false};

		mail_fill(s->seed, data, s->len);
		(void)mail_take(&c, -1, s->taker, &got);
	}
	mail_check_order(&c);
	mail_reset(&c, MAIL_MONOTONE);
	return 0;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
		int status = child_run(check_order, &trials[i], 10);

		CHECK(status == trials[i].status, "%s: %d", trials[i].what, status);
	}
	return 0;
}
