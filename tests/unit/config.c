/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: defaults, origins, what each kind understands and refuses, unknown names. */
#include <slmpm.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#define SECONDS 20

/* The settings are read once a process: each case has its own. */
struct trial {
	const char *name, *text; /* without SLMPM_ */
	size_t field;            /* in struct config */
	int64_t value;
	const char *complaint; /* expected in the detail; NULL: it is understood */
};

#define GOOD(name, text, field, value)                                                             \
	{                                                                                          \
		name, text, offsetof(struct config, field), value, NULL                            \
	}
#define BAD(name, text, complaint)                                                                 \
	{                                                                                          \
		name, text, 0, 0, complaint                                                        \
	}

static const struct trial trials[] = {
	/* defaults, also for an empty variable */
	GOOD("RING_SEGMENTS", "", ring_segments, 0),
	GOOD("EAGER_CREDIT", "", eager_credit, 0),
	GOOD("PUBLISH", "", publish_permille, 500),
	GOOD("WAIT", "", wait, 0),
	GOOD("LOG_LEVEL", "", log_level, 2),
	/* sizes: bases, units of either case, both ends of the range */
	GOOD("RING_SEGMENTS", "2", ring_segments, 2),
	GOOD("RING_SEGMENTS", "16m", ring_segments, 1 << 24),
	GOOD("RING_SEGMENTS", "0x400", ring_segments, 1024),
	GOOD("PACKET_MAX", "4K", packet_max, 4096),
	GOOD("PACKET_MAX", "", packet_max, 0),
	GOOD("PACKET_MAX", "AUTO", packet_max, 0),
	BAD("PACKET_MAX", "0", "a number from 256"),
	BAD("EAGER_MAX", "auto", "a number from 0"),
	GOOD("LOAN_MAX", "8g", loan_max, INT64_C(8) << 30),
	BAD("RING_SEGMENTS", "1", "a number from 2 to 16777216; k, m, g may follow"),
	BAD("RING_SEGMENTS", "16777217", "SLMPM_RING_SEGMENTS=16777217"),
	BAD("RING_SEGMENTS", "many", "SLMPM_RING_SEGMENTS=many"),
	BAD("RING_SEGMENTS", "4kk", "a number"),
	BAD("RING_SEGMENTS", "4 k", "a number"),
	BAD("RING_SEGMENTS", "k", "a number"),
	BAD("RING_SEGMENTS", "-8k", "a number"),
	BAD("LOAN_MAX", "9223372036854775807g", "a number"),
	BAD("LOAN_MAX", "-9223372036854775808g", "a number"),
	BAD("LOAN_MAX", "99999999999999999999", "a number"),
	/* numbers know no units */
	GOOD("SPIN_US", "auto", spin_us, -1),
	GOOD("SPIN_US", "0", spin_us, 0),
	GOOD("SPIN_US", "1000000", spin_us, 1000000),
	GOOD("HANDSHAKE_MS", "10", handshake_ms, 10),
	BAD("SPIN_US", "1k", "SLMPM_SPIN_US=1k"),
	BAD("SPIN_US", "-1", "a number from 0"),
	BAD("HANDSHAKE_MS", "9", "a number from 10"),
	GOOD("BACKLOG", "1", backlog, 1),
	BAD("BACKLOG", "0", "a number from 1 to 65536"),
	BAD("NAME", "abcdefghijklmnopqrstuvwxyz012345", "at most 31 bytes"),
	BAD("ELEMENTS", "65537", "a number from 1 to 65536"),
	/* of 64 bits, either way */
	GOOD("START", "-2", start, -2),
	GOOD("START", "18446744073709551614", start, -2),
	GOOD("START", "0xfffffffffffffffe", start, -2),
	GOOD("START", "4294967294", start, INT64_C(4294967294)),
	BAD("START", "18446744073709551616",
	    "SLMPM_START=18446744073709551616: a number of 64 bits"),
	BAD("START", "2^64", "a number of 64 bits"),
	/* routes of links; more in routes.c */
	BAD("LINKS", "5", "SLMPM_LINKS=5: a number from 1 to 4, or as many routes"),
	BAD("LINKS", "tcp,", "SLMPM_LINKS=tcp,: there is no interface or address of no name"),
	BAD("LINKS", "tcp@no_such_dev", "there is no interface or address no_such_dev"),
	BAD("LINK", "4", "one of: auto 0 1 2 3"),
	/* addresses; more in address.c */
	BAD("PCI", "03:00", "SLMPM_PCI=03:00: \"03:00\" is no PCI address like 0000:03:00.0"),
	BAD("PCI", "03:00.0,0000:04:20.0,x", ": \"0000:04:20.0\" is no PCI address"),
	BAD("PCI", "03:00.0,", ": \"\" is no PCI address"),
	BAD("PCI", "11111111111111111111111111111", "\"111111111111111111111111\" is no"),
	GOOD("LINK", "", link, 0),
	GOOD("LINK", "2", link, 3),
	GOOD("LINKS_AFTER", "", links_after, 65536),
	GOOD("LINKS_AFTER", "0", links_after, 0),
	GOOD("MODE_SPREAD", "", mode_spread, 200),
	GOOD("MODE_SPREAD", "60000000", mode_spread, 60000000),
	BAD("MODE_SPREAD", "0", "a number from 1 to 60000000"),
	BAD("MODE_SPREAD", "1ms", "a number from 1"),
	/* shares */
	GOOD("PUBLISH", "every", publish_permille, 0),
	GOOD("PUBLISH", "3/4", publish_permille, 750),
	GOOD("PUBLISH", "0.25", publish_permille, 250),
	GOOD("PUBLISH", "1/8", publish_permille, 125),
	BAD("PUBLISH", "4/5", "a fraction up to 3/4"),
	BAD("PUBLISH", "0", "a fraction"),
	BAD("PUBLISH", "1/0", "a fraction"),
	BAD("PUBLISH", "-1/2", "a fraction"),
	BAD("PUBLISH", "1/-2", "a fraction"),
	BAD("PUBLISH", "1/10000", "a fraction"),
	BAD("PUBLISH", "1e300", "a fraction"),
	BAD("PUBLISH", "inf", "a fraction"),
	BAD("PUBLISH", "nan", "a fraction"),
	BAD("PUBLISH", "1/2/2", "a fraction"),
	/* choices, of either case, no part of one */
	GOOD("WAIT", "block", wait, 2),
	GOOD("WAIT", "SPIN", wait, 1),
	GOOD("MEMBARRIER", "n", membarrier, 0),
	GOOD("CHECK", "1", check, 1),
	BAD("WAIT", "spi", "one of: adaptive spin block"),
	BAD("WAIT", "spin block", "one of: adaptive spin block"),
	BAD("CHECK", "2", "one of: 0 1"),
	/* off and on in any of the usual words */
	GOOD("CHECK", "yes", check, 1),
	GOOD("CHECK", "n", check, 0),
	GOOD("INSECURE", "1", insecure, 1),
	GOOD("INSECURE", "TRUE", insecure, 1),
	GOOD("INSECURE", "on", insecure, 1),
	GOOD("MEMBARRIER", "0", membarrier, 0),
	GOOD("MEMBARRIER", "off", membarrier, 0),
	GOOD("MEMBARRIER", "False", membarrier, 0),
	BAD("MEMBARRIER", "yep", "one of: n y"),
	BAD("LOG_LEVEL", "y", "one of: none"),
	BAD("LOG_LEVEL", "loud", "one of: none error warn info debug"),
	/* what DaCS reads where it uses it is looked at here, too */
	BAD("TIMEOUT", "soon", "SLMPM_TIMEOUT=soon"),
	BAD("DACS_ABORT", "maybe", "SLMPM_DACS_ABORT=maybe"),
};
#define TRIALS (sizeof(trials) / sizeof(trials[0]))

static void clear_settings(void)
{
	struct slmpm_setting s = {.size = sizeof(s)};
	char name[64];

	for (int i = 0; slmpm_setting_at(i, &s) == 0; i++) {
		snprintf(name, sizeof(name), "SLMPM_%s", s.name);
		unsetenv(name);
	}
}

static void set(const char *name, const char *text)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "SLMPM_%s", name);
	setenv(variable, text, 1);
}

static int try_one(void *arg)
{
	const struct trial *t = arg;
	const struct config *config;
	slmpm_ctx ctx;

	set(t->name, t->text);
	config = config_get();
	if (!t->complaint) {
		CHECK(config, "%s=%s: %s", t->name, t->text, slmpm_error_detail());
		int64_t value;
		memcpy(&value, (const char *)config + t->field, sizeof(value));
		CHECK(value == t->value, "%s=%s is %lld", t->name, t->text, (long long)value);
		return 0;
	}
	CHECK(!config, "%s=%s is taken", t->name, t->text);
	/* Each call of the library that needs them says so, the tenth like the first. */
	for (int i = 0; i < 10; i++) {
		CHECK(slmpm_open(&ctx, NULL) == -SLMPM_EINVAL, "%s=%s: opened", t->name, t->text);
		CHECK(strstr(slmpm_error_detail(), t->complaint), "%s=%s: \"%s\"", t->name, t->text,
		      slmpm_error_detail());
		CHECK(strstr(slmpm_error_detail(), t->name), "not named: %s", slmpm_error_detail());
	}
	CHECK(slmpm_memory_per_peer() == 0, "memory by settings that cannot be read");
	return 0;
}

static int origins(void *arg)
{
	struct slmpm_setting s = {.size = sizeof(s)}, small = {.size = sizeof(s) - 1};
	int count = 0, from_environment = 0;

	(void)arg;
	set("ELEMENTS", "7");
	set("RUN_DIR", "/nowhere");
	set("SPIN_US", "");
	set("INSECURE", "TRUE");
	for (; slmpm_setting_at(count, &s) == 0; count++) {
		bool ours = !strcmp(s.name, "ELEMENTS") || !strcmp(s.name, "RUN_DIR") ||
			    !strcmp(s.name, "INSECURE");

		CHECK(!strcmp(s.origin, ours ? "environment" : "default"), "%s: from %s", s.name,
		      s.origin);
		CHECK(strlen(s.text) > 10, "%s: no text", s.name);
		CHECK(strlen(s.text) < sizeof(s.text) - 1, "%s: its text is cut off", s.name);
		CHECK(ours || !strcmp(s.value, s.initial), "%s: %s", s.name, s.value);
		from_environment += ours;
		if (!strcmp(s.name, "ELEMENTS"))
			CHECK(!strcmp(s.value, "7") && !strcmp(s.initial, "64"), "%s", s.value);
		if (!strcmp(s.name, "INSECURE")) /* DaCS reads its own by these words */
			CHECK(!strcmp(s.value, "y"), "%s", s.value);
		if (!strcmp(s.name, "WAIT"))
			CHECK(strstr(s.text, "adaptive spin block"), "choices: %s", s.text);
	}
	CHECK(count > 5 && count < 100 && from_environment == 3, "%d settings", count);
	CHECK(slmpm_setting_at(count, &s) == -SLMPM_ENOENT, "behind the last");
	CHECK(slmpm_setting_at(-1, &s) == -SLMPM_ENOENT, "before the first");
	CHECK(slmpm_setting_at(0, NULL) == -SLMPM_EINVAL, "NULL");
	CHECK(slmpm_setting_at(0, &small) == -SLMPM_EINVAL, "too small");
	CHECK(!strcmp(config_get()->run_dir, "/nowhere"), "%s", config_get()->run_dir);
	CHECK(config_get()->elements == 7, "elements");
	return 0;
}

struct lines {
	int count;
	char text[8][256];
};

static void collect(int level, const char *text, void *arg)
{
	struct lines *l = arg;

	CHECK(level == SLMPM_LOG_WARN, "level %d", level);
	if (l->count < 8)
		snprintf(l->text[l->count++], sizeof(l->text[0]), "%s", text);
}

static int nearest_names(void *arg)
{
	static struct lines lines;
	const struct {
		const char *name, *nearest;
	} wrong[] = {{"RING_SEGMENT", "RING_SEGMENTS"},
		     {"WIAT", "WAIT"},
		     {"DACS_KEEP_CWDS", "DACS_KEEP_CWD"}};
	char text[96];

	(void)arg;
	slmpm_log(SLMPM_LOG_WARN, collect, &lines);
	for (int i = 0; i < 3; i++)
		set(wrong[i].name, "1");
	CHECK(config_get() && config_get(), "%s", slmpm_error_detail());
	CHECK(lines.count == 3, "%d warnings", lines.count);
	for (int i = 0; i < 3; i++) {
		bool said = false;

		snprintf(text, sizeof(text), "SLMPM_%s; did you mean SLMPM_%s?", wrong[i].name,
			 wrong[i].nearest);
		for (int at = 0; at < lines.count; at++)
			said |= strstr(lines.text[at], text) != NULL;
		CHECK(said, "no warning of %s: %s", wrong[i].name, lines.text[0]);
	}
	return 0;
}

/* A name of any length is a wrong name, nothing worse. */
static int long_names(void *arg)
{
	static struct lines lines;
	static char name[5000];

	(void)arg;
	slmpm_log(SLMPM_LOG_WARN, collect, &lines);
	memset(name, 'X', sizeof(name) - 1);
	memcpy(name, "SLMPM_", 6);
	setenv(name, "1", 1);
	setenv("SLMPM_", "1", 1);
	CHECK(config_get(), "%s", slmpm_error_detail());
	CHECK(lines.count == 2, "%d warnings", lines.count);
	return 0;
}

int main(void)
{
	/* The runner's own variables are not settings. */
	clear_settings();
	for (size_t i = 0; i < TRIALS; i++)
		CHECK(child_run(try_one, (void *)(uintptr_t)&trials[i], SECONDS) == 0, "%s=%s",
		      trials[i].name, trials[i].text);
	CHECK(child_run(origins, NULL, SECONDS) == 0, "origins");
	CHECK(child_run(nearest_names, NULL, SECONDS) == 0, "nearest names");
	CHECK(child_run(long_names, NULL, SECONDS) == 0, "long names");
	printf("%zu texts\n", TRIALS);
	return 0;
}
