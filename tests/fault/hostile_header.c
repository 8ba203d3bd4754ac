/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Packets that say they are for another accelerator, another process or another place
 * (SLMPM_HEADER), over both fabrics: the channel ends by the name of what differs, counted as
 * misaddressed; what came before it, also in the same look, is received.
 */
#include <string.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/raw_key.h"
#include "tests/lib/raw_net_trial.h"

#define REGION  16384
#define ELEMENT "accelerator id of a message"
#define PROCESS "process id of a message"
#define PLACE   "destination address of a message"
#define NONE    "message without its addressee"

static bool over_tcp;
static slmpm_mem mem;
static uint64_t sent; /* envelopes, of the offender */

/* ---- what is said --------------------------------------------------------------------------- */

static struct wire_addressee right_one(struct raw_peer *p, uint64_t place)
{
	const struct wire_hello *heard = over_tcp ? &net.control.heard : &p->heard;

	return (struct wire_addressee){.process = (uint32_t)heard->pid, .place = LITTLE_64(place)};
}

static void post(struct raw_peer *p, uint8_t kind, const uint64_t head[3], const void *data,
		 uint32_t length)
{
	if (over_tcp)
		raw_net_post(&net, kind, head, data, length);
	else
		raw_post(p, kind, head[0], head[1], head[2], data, length);
}

/* LENGTH bytes, those at LEAD in front, for TO. */
static void say(struct raw_peer *p, uint8_t kind, uint64_t seq, uint64_t route, uint64_t extent,
		const void *lead, uint32_t length, const struct wire_addressee *to)
{
	const uint64_t head[3] = {seq, route, extent | wire_extent(0, WIRE_FLAG_ADDRESSED)};
	unsigned char packet[RAW_PACKET + 64] = {0};

	if (lead)
		memcpy(packet, lead, length < RAW_LEAD ? length : RAW_LEAD);
	memcpy(packet + length, to, sizeof(*to));
	post(p, kind, head, packet, length + (uint32_t)sizeof(*to));
}

static void say_message(struct raw_peer *p, const char *text, const struct wire_addressee *to)
{
	uint32_t n = (uint32_t)strlen(text);

	say(p, WIRE_SEND_ONLY, ++sent, wire_route(1, 0), n, text, n, to);
}

/* ---- offences ------------------------------------------------------------------------------- */

static void other_element(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 1);

	to.element = LITTLE_32(7);
	say_message(p, "forged", &to);
}

static void other_process(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 1);

	to.process = LITTLE_32(LITTLE_32(to.process) + 1);
	say_message(p, "forged", &to);
}

static void other_stream(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 2);

	say_message(p, "forged", &to);
}

static void right_then_other(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 1);

	say_message(p, "second", &to);
	to.process = 0;
	say_message(p, "forged", &to);
}

static void without(struct raw_peer *p)
{
	const uint64_t head[3] = {++sent, wire_route(1, 0), 6};

	post(p, WIRE_SEND_ONLY, head, "forged", 6);
}

static void cut_short(struct raw_peer *p)
{
	const uint64_t head[3] = {++sent, wire_route(1, 0), wire_extent(0, WIRE_FLAG_ADDRESSED)};

	post(p, WIRE_SEND_ONLY, head, "less than this", 14);
}

static void part_of_one(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 1);

	say(p, WIRE_SEND_FIRST, ++sent, wire_route(1, 0), 20000, NULL, RAW_PACKET, &to);
	to.element = LITTLE_32(1);
	say(p, WIRE_SEND_MIDDLE, sent, wire_route(1, 0), RAW_PACKET, NULL, RAW_PACKET, &to);
}

static void bundle(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 1);

	to.process = LITTLE_32(1);
	say(p, WIRE_BUNDLE, ++sent, wire_route(1, 0), 8, NULL, 64, &to);
}

static void active(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 6); /* of another handler */

	say(p, WIRE_SEND_ONLY, ++sent, wire_route(5, 0), wire_extent(8, WIRE_FLAG_ACTIVE), NULL, 8,
	    &to);
}

static void no_message(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 0);

	to.element = LITTLE_32(UINT32_MAX);
	say(p, WIRE_CREDIT, 0, 0, 0, NULL, 0, &to);
}

static void loan(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 0);

	to.process = LITTLE_32(UINT32_MAX);
	say(p, WIRE_LOAN_BYTES, 0, 0, 0, NULL, 100, &to);
}

static void fetched(struct raw_peer *p)
{
	struct wire_addressee to = right_one(p, 3);

	say(p, WIRE_FETCH, ++sent, wire_route(1, 0), 100000, NULL, 24, &to);
}

/* One further than the target says, and a region that it does not know. */
static void read_beside(struct raw_peer *p)
{
	struct raw_request r = raw_ask_with(&raw_keys->read_write, 64, 8);
	uint64_t address;
	struct wire_addressee to;

	memcpy(&address, raw_keys->read_write.bytes + 24, sizeof(address));
	to = right_one(p, LITTLE_64(address) + 64);
	say(p, WIRE_READ_REQUEST, 1, 0, 8, &r, RAW_LEAD, &to);
	to = right_one(p, LITTLE_64(address) + 72);
	say(p, WIRE_READ_REQUEST, 2, 0, 8, &r, RAW_LEAD, &to);
}

/* clang-format off */
static const struct offence offences[] = {
	{"R14", "for another accelerator", other_element, ELEMENT, 0},
	{"R14", "for another process", other_process, PROCESS, 0},
	{"R14", "for another stream", other_stream, PLACE, 0},
	{"R14", "one right, one forged", right_then_other, PROCESS, 1},
	{"R14", "for nobody", without, NONE, 0},
	{"R14", "shorter than an addressee", cut_short, NONE, 0},
	{"R14", "a Middle for another", part_of_one, ELEMENT, 0},
	{"R14", "a bundle for another", bundle, PROCESS, 0},
	{"R14", "an active message elsewhere", active, PLACE, 0},
	{"R14", "credit for another", no_message, ELEMENT, 0},
	{"R14", "bytes of a loan for another", loan, PROCESS, 0},
	{"R14", "a fetched one elsewhere", fetched, PLACE, 0},
	{"R14", "a read beside its target", read_beside, PLACE, 0},
};
/* clang-format on */

/* ---- how they meet -------------------------------------------------------------------------- */

static void come(struct raw_peer *p, const char *at)
{
	uint64_t features = WIRE_FEATURES, wanted = WIRE_FEATURE_IDS | WIRE_FEATURE_PLACES;
	struct wire_addressee to;
	uint64_t required;

	if (over_tcp) {
		net_trial_connect(p, at, 1);
		net.control.hello.features = LITTLE_64(features);
		net.control.hello.packet_max = LITTLE_64(RAW_PACKET);
		net_trial_greet();
		required = LITTLE_64(net.control.heard.required);
	} else {
		raw_begin(p, raw_connect(at));
		p->hello.features = LITTLE_64(features);
		raw_steps(p, RAW_HELLO, RAW_UP);
		required = LITTLE_64(p->heard.required);
	}
	CHECK((required & wanted) == wanted, "it requires 0x%llx", (unsigned long long)required);
	to = right_one(p, 1);
	say_message(p, "legal", &to);
	if (!over_tcp)
		raw_ring_bell(p);
	for (int64_t until = actor_now_ms() + PATIENCE; !raw_keys->ready; usleep(200))
		CHECK(actor_now_ms() < until, "no key comes");
}

static int received;

static int64_t inspect(slmpm_peer peer, const struct offence *o)
{
	char got[64] = "";
	int64_t n = slmpm_recv(peer, 1, got, sizeof(got), NULL, 5);

	if (n < 0)
		return n;
	CHECK((n == 5 && !memcmp(got, "legal", 5)) || (n == 6 && !memcmp(got, "second", 6)),
	      "%s: \"%s\" was received", o->name, got);
	received++;
	return n;
}

static void see(slmpm_peer peer, const struct offence *o)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	CHECK(stats.misaddressed == 1, "%s: %llu misaddressed", o->name,
	      (unsigned long long)stats.misaddressed);
	CHECK(received == o->note, "%s: %d messages after the first", o->name, received);
	received = 0;
}

static slmpm_peer meet(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	slmpm_peer peer = raw_keys_meet(v->listener, mem, body, arg, pid);

	(void)o;
	raw_keys->ready = 1;
	return peer;
}

static void suffer(const char *address)
{
	static const struct trial shm = {come, NULL, NULL, meet, inspect, see};
	static const struct trial tcp = {come, net_trial_hear_end, net_trial_leave, meet, inspect,
					 see};
	struct victim v;
	void *base;

	raw_keys_make();
	victim_open(&v, address);
	OK(slmpm_mem_alloc(v.ctx, REGION, SLMPM_READ_WRITE, &mem, &base));
	SURVIVE(&v, over_tcp ? &tcp : &shm, offences);
	victim_end(&v);
}

static int over_network(void *unused)
{
	(void)unused;
	over_tcp = true;
	suffer("tcp:");
	return 0;
}

static int here(void *unused)
{
	(void)unused;
	suffer("hostile-header");
	return 0;
}

int main(void)
{
	settings_one_link("shm");
	settings_set("SLMPM_HEADER", "address");
	settings_run("over shared memory", here, NULL);
	if (!fabric_find("tcp"))
		return 0;
	net_trial_one_link();
	settings_run("over TCP", over_network, NULL);
	return 0;
}
