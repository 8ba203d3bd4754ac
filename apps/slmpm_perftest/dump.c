/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_perftest --dump: the heads of packets in a file of SLMPM_TRACE, a line each. The layout of
 * the file and of what is in it is doc/wire.md's; nothing here is shared with the library. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/slmpm_perftest/perftest.h"

struct file_head {
	char magic[8];
	uint32_t version, record;
	uint32_t pid, zero;
	uint64_t start;
};

struct record { /* all little-endian */
	uint64_t ns;
	uint32_t link;
	uint8_t received, opcode;
	uint16_t zero;
	uint32_t length, lead;
	uint64_t head[3];
	unsigned char payload[64];
	uint32_t element, process; /* whom it is for, where it has ADDRESSED */
	uint64_t place;
};

enum form {          /* what the words of the head and the payload say */
	    MESSAGE, /* its length */
	    PART,    /* an offset in it */
	    BUNDLED,
	    LOANED,
	    TARGET, /* a range of a region */
	    RESPONSE,
	    ATOMIC,
	    VALUE,
	    STATUS,
	    FETCH,
	    TAKE,
	    GIVE,
	    OFFER,
	    GRANT,
	    NUMBER, /* of a message alone */
	    TOTAL,
	    AREA,
	    ASKED,
	    NOTHING
};

static const struct {
	uint8_t opcode;
	enum form form;
	const char *name;
} opcodes[] = {
	{1, MESSAGE, "SEND_FIRST"},     {2, PART, "SEND_MIDDLE"},
	{3, PART, "SEND_LAST"},         {4, MESSAGE, "SEND_ONLY"},
	{5, TARGET, "WRITE_FIRST"},     {6, RESPONSE, "WRITE_MIDDLE"},
	{7, RESPONSE, "WRITE_LAST"},    {8, TARGET, "WRITE_ONLY"},
	{9, TARGET, "READ_REQUEST"},    {10, RESPONSE, "READ_FIRST"},
	{11, RESPONSE, "READ_MIDDLE"},  {12, RESPONSE, "READ_LAST"},
	{13, RESPONSE, "READ_ONLY"},    {14, ATOMIC, "FETCH_ADD"},
	{15, ATOMIC, "COMPARE_SWAP"},   {16, VALUE, "ATOMIC_ACKNOWLEDGE"},
	{17, ATOMIC, "SWAP"},           {18, STATUS, "ACKNOWLEDGE"},
	{19, TARGET, "NOTIFY"},         {32, NUMBER, "CLEAR"},
	{33, TOTAL, "CREDIT"},          {34, NUMBER, "WITHDRAW"},
	{35, NOTHING, "CLOSE"},         {36, LOANED, "LOAN"},
	{37, LOANED, "LOAN_MORE"},      {38, AREA, "LOAN_DONE"},
	{39, BUNDLED, "BUNDLE"},        {40, OFFER, "REGION_OFFER"},
	{41, GRANT, "REGION_ACCEPTED"}, {42, GRANT, "REGION_WITHDRAWN"},
	{43, GRANT, "REGION_RELEASED"}, {44, GRANT, "REGION_REVOKED"},
	{45, GRANT, "REGION_UNMAPPED"}, {46, FETCH, "FETCH"},
	{47, NUMBER, "FETCH_DONE"},     {48, TAKE, "FETCH_TAKE"},
	{49, GIVE, "FETCH_GIVE"},       {50, NUMBER, "FETCH_SEND"},
	{51, TARGET, "SHARE"},          {52, NUMBER, "SHARE_TAKE"},
	{53, NUMBER, "SHARE_OVER"},     {54, NUMBER, "SHARE_GIVE"},
	{55, GRANT, "REGION_GRANT"},    {56, TOTAL, "LOAN_AREA"},
	{57, RESPONSE, "LOAN_BYTES"},   {58, NOTHING, "ECHO"},
	{59, NOTHING, "ECHO_ANSWER"},   {60, NUMBER, "AGGREGATE"},
	{61, ASKED, "MIRROR_ASK"},      {62, PART, "MIRROR_END"},
	{63, PART, "MIRROR_PART"},      {64, PART, "MIRROR_LAST"},
	{65, PART, "MIRROR_LIST"},      {66, PART, "MIRROR_LIST_LAST"},
	{67, PART, "MIRROR_STORED"},    {68, NUMBER, "BIND"},
	{69, NUMBER, "BOUND"},          {70, NUMBER, "CLAIM"},
};

static const char *const flags[] = {"CHECK",  "ANNOUNCED", "ACTIVE", "TAGGED",   "ANSWER",
				    "NOTIFY", "UNCHARGED", "TIMED",  "ADDRESSED"};

#define ACTIVE    4u
#define ADDRESSED 256u

typedef unsigned long long ull;

static uint64_t word(const struct record *r, size_t at)
{
	uint64_t value;

	memcpy(&value, r->payload + at, sizeof(value));
	return le64toh(value);
}

static uint32_t half(const struct record *r, size_t at)
{
	uint32_t value;

	memcpy(&value, r->payload + at, sizeof(value));
	return le32toh(value);
}

static void print_route(const struct record *r, unsigned set)
{
	uint64_t route = le64toh(r->head[1]);
	uint32_t stream = (uint32_t)route, imm = (uint32_t)(route >> 32);

	if (set & ACTIVE)
		printf(" handler %u head %u", stream & 0xffff, stream >> 16);
	else
		printf(" stream %u", stream);
	if (imm)
		printf(" imm 0x%x", imm);
}

static void print_target(const struct record *r)
{
	if (r->lead >= 40)
		printf(" grant %u offset %llu bytes %llu", half(r, 16), (ull)word(r, 0),
		       (ull)word(r, 8));
}

static void print_message(const struct record *r, enum form form, unsigned set, uint64_t value)
{
	static const char *const what[] = {
		[MESSAGE] = "length", [PART] = "offset", [BUNDLED] = "each"};

	print_route(r, set);
	if (form != LOANED)
		printf(" %s %llu", what[form], (ull)value);
	else if (r->lead >= 24)
		printf(" area %u ready %llu of %llu%s", half(r, 16), (ull)word(r, 0),
		       (ull)word(r, 8), half(r, 20) ? " final" : "");
}

static void print_atomic(const struct record *r)
{
	print_target(r);
	if (r->lead >= 64)
		printf(" bits %u operand %llu compare %llu", half(r, 56), (ull)word(r, 40),
		       (ull)word(r, 48));
}

/* Addresses differ from run to run and are left out. */
static void print_fetch(const struct record *r, enum form form)
{
	if (form == FETCH && r->lead >= 8)
		printf(" ranges %u", half(r, 0));
	else if (form == TAKE && r->lead >= 32)
		printf(" limit %llu upto %llu turn %u", (ull)word(r, 8), (ull)word(r, 16),
		       half(r, 24));
	else if (form == GIVE && r->lead >= 24)
		printf(" claim %llu done %llu turn %u", (ull)word(r, 0), (ull)word(r, 8),
		       half(r, 16));
}

static void print_rest(const struct record *r, enum form form, uint64_t value)
{
	switch (form) {
	case TARGET: print_target(r); break;
	case ATOMIC: print_atomic(r); break;
	case VALUE: printf(" was %llu", r->lead >= 8 ? (ull)word(r, 0) : 0); break;
	case RESPONSE: printf(" at %llu", (ull)value); break;
	case STATUS: printf(" status %llu", (ull)value); break;
	case TOTAL: printf(" total %llu", (ull)value); break;
	case AREA: printf(" area %llu", (ull)value); break;
	case GRANT: printf(" grant %llu", (ull)value); break;
	case OFFER:
		if (r->lead >= 24)
			printf(" access %u grant %llu bytes %llu", half(r, 4), (ull)word(r, 8),
			       (ull)word(r, 16));
		break;
	case ASKED:
		if (r->lead >= 24)
			printf(" tag %u how %u bytes %llu slot %u", half(r, 8), half(r, 12),
			       (ull)word(r, 0), half(r, 16));
		break;
	case NUMBER:
		if (value)
			printf(" word %llu", (ull)value);
		break;
	default: print_fetch(r, form);
	}
}

static void print(const struct record *r)
{
	uint64_t extent = le64toh(r->head[2]), value = extent & ((UINT64_C(1) << 48) - 1);
	unsigned set = (unsigned)(extent >> 48);
	enum form form = NOTHING;
	const char *name = "?";

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (opcodes[i].opcode == r->opcode) {
			form = opcodes[i].form;
			name = opcodes[i].name;
		}
	printf("%12.6f %u %c %2u %-18s %5u  seq %llu", (double)le64toh(r->ns) / 1e9,
	       le32toh(r->link), r->received ? '<' : '>', r->opcode, name, le32toh(r->length),
	       (ull)le64toh(r->head[0]));
	if (form <= LOANED)
		print_message(r, form, set, value);
	else
		print_rest(r, form, value);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (set >> i & 1)
			printf(" %s", flags[i]);
	if (set & ADDRESSED)
		printf(" element %u process %u place 0x%llx", le32toh(r->element),
		       le32toh(r->process), (ull)le64toh(r->place));
	if (set >> (sizeof(flags) / sizeof(flags[0])))
		printf(" flags 0x%x", set);
	putchar('\n');
}

int dump(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct file_head head;
	struct record r;
	size_t n;

	if (!f) {
		fprintf(stderr, "slmpm_perftest: %s: %s\n", path, strerror(errno));
		return 1;
	}
	if (fread(&head, sizeof(head), 1, f) != 1 || memcmp(head.magic, "SLMPMTR", 8) ||
	    le32toh(head.version) != 2 || le32toh(head.record) != sizeof(r)) {
		fprintf(stderr, "slmpm_perftest: %s is no trace of this version\n", path);
		fclose(f);
		return 1;
	}
	printf("# process %u; seconds, link, > sent < received, opcode, payload bytes, head\n",
	       le32toh(head.pid));
	while ((n = fread(&r, 1, sizeof(r), f)) == sizeof(r)) {
		r.lead = le32toh(r.lead);
		print(&r);
	}
	fclose(f);
	if (n)
		fprintf(stderr, "slmpm_perftest: %s ends inside a record\n", path);
	return n != 0;
}
