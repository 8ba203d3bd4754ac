/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of a line of members on several hosts: those of one stand together, the origin's own
 * first, each once; and as it has come from another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/deposit/deposit.h"
#include "tests/lib/test.h"

#define MOST 70

static struct group group;
static struct deposits deposits;
static struct member members[MOST];
static struct distant distant[MOST];
static uint32_t seats[MOST];

/* Rank r is on the host HOSTS[r], a letter; SELF is this process. */
static void found(const char *hosts, uint32_t self)
{
	const uint32_t size = (uint32_t)strlen(hosts);

	free(deposits.hosts);
	memset(&deposits, 0, sizeof(deposits));
	deposits.group = &group;
	memset(&group, 0, sizeof(group));
	group.apart = true;
	group.boards.size = size;
	group.boards.rank = self;
	group.boards.seats = seats;
	group.members = members;
	for (uint32_t r = 0; r < size; r++) {
		seats[r] = r;
		/* Of each a port of its own. */
		snprintf(distant[r].url, sizeof(distant[r].url), "tcp://%s10.0.0.%d%s:%u",
			 hosts[r] < 'a' ? "[::" : "", hosts[r], hosts[r] < 'a' ? "]" : "",
			 1000 + r);
		members[r].distant = r == self ? NULL : &distant[r];
	}
	snprintf(group.host, sizeof(group.host), "%s10.0.0.%d", hosts[self] < 'a' ? "::" : "",
		 hosts[self]);
}

static struct line line_of(void)
{
	struct line l = {.of = &deposits, .origin = group.boards.rank};

	for (uint32_t r = 0; r < group.boards.size; r++)
		if (r != l.origin)
			ranks_add(&l.ranks, r);
	return l;
}

/* By letters from 'A' on: the ranks in their order. */
static void walk(const struct line *l, char *to)
{
	for (uint32_t r = line_after(l, &l->ranks, l->origin); r != BOARD_NONE;
	     r = line_after(l, &l->ranks, r))
		*to++ = (char)('A' + r);
	*to = '\0';
}

static void expect(const char *hosts, uint32_t self, const char *want, bool ordered)
{
	char got[MOST + 1];
	struct line l;

	found(hosts, self);
	l = line_of();
	line_order(&l);
	CHECK((l.order != NULL) == ordered, "%s from %u: an order: %d", hosts, self, !ordered);
	walk(&l, got);
	CHECK(!strcmp(got, want), "%s from %u: %s, not %s", hosts, self, got, want);
	free(l.order);
}

/* What the origin has made is another's, too, once some have gone. */
static void travels(void)
{
	unsigned char packet[MOST * sizeof(uint16_t)];
	struct wire_order order = {packet, 0};
	struct line l, other;
	char got[MOST + 1];

	found("abab", 0);
	l = line_of();
	line_order(&l);
	order_fill(&l, packet);
	order.count = l.ordered;
	CHECK(order_is_sound(&order, &l.ranks, 4), "it is not taken");
	found("abab", 3);
	other = line_of();
	other.origin = 0;
	other.ranks = l.ranks;
	CHECK(order_take(&other, &order), "no memory");
	walk(&other, got);
	CHECK(!strcmp(got, "CBD"), "%s", got);
	ranks_drop(&other.ranks, 1);
	walk(&other, got);
	CHECK(!strcmp(got, "CD"), "%s", got);
	CHECK(line_after(&other, &other.ranks, 1) == 3, "behind one that has gone");
	free(l.order);
	free(other.order);
}

/* More than a word of ranks: the second and the last are elsewhere. */
static void many(void)
{
	char hosts[MOST + 1] = {0}, want[MOST + 1] = {0};

	memset(hosts, 'a', MOST);
	hosts[1] = hosts[MOST - 1] = 'b';
	for (int i = 0; i < MOST - 3; i++)
		want[i] = (char)('A' + 2 + i);
	want[MOST - 3] = 'B';
	want[MOST - 2] = (char)('A' + MOST - 1);
	expect(hosts, 0, want, true);
}

int main(void)
{
	expect("aabb", 0, "BCD", false);
	expect("abab", 0, "CBD", true);
	expect("abab", 1, "DCA", true);
	expect("abcabc", 4, "BFCAD", true);
	expect("ABAb", 2, "ADB", true);
	expect("aaaa", 2, "DAB", false);
	expect("abcd", 1, "CDA", false);
	many();
	travels();
	free(deposits.hosts);
	return 0;
}
