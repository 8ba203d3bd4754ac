/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: accelerators (this same program, started again) count words in lines that they
 * are sent and answer with what they found; the host's handler adds it up. Nobody receives
 * anything: handlers run in the calls that wait. am_counter [ACCELERATORS] <FILE
 */
#include <slmpm.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_LEN 65536
#define MOST     16

enum { COUNT = 1, COUNTED = 2 }; /* handlers: the accelerator's, the host's */

/* At the accelerator: DATA is a line, the answer's head the number of its words. */
static void count(const struct slmpm_am *am, void *arg)
{
	const unsigned char *line = am->data;
	unsigned long *lines = arg;
	uint64_t words = 0;

	for (size_t i = 0; i < am->data_len; i++)
		words += !isspace(line[i]) && (i == 0 || isspace(line[i - 1]));
	++*lines;
	if (slmpm_am_reply(am, COUNTED, &words, sizeof(words), NULL, 0) < 0)
		slmpm_perror("reply");
}

static int accelerator(void)
{
	unsigned long lines = 0;
	slmpm_ctx ctx = {0};
	slmpm_peer host;
	int64_t rc;

	/* The handler first: its host may send as soon as there is a connection. */
	rc = slmpm_am_handler(ctx, COUNT, count, &lines);
	if (rc == 0)
		rc = slmpm_parent(&host);
	if (rc == 0)
		rc = slmpm_recv(host, 0, NULL, 0, NULL, -1); /* until the host closes */
	fprintf(stderr, "%lu lines were mine\n", lines);
	return rc == -SLMPM_ECLOSED ? 0 : slmpm_perror("accelerator");
}

struct total {
	uint64_t lines, words;
};

static void counted(const struct slmpm_am *am, void *arg)
{
	struct total *t = arg;
	uint64_t words = 0;

	if (am->head_len == sizeof(words))
		memcpy(&words, am->head, sizeof(words));
	t->words += words;
	t->lines++;
}

static int dismiss(slmpm_peer accel)
{
	int rc = slmpm_close(accel, 5000);

	if (rc == 0)
		rc = slmpm_join(accel, NULL, 5000);
	if (rc < 0)
		slmpm_perror("accelerator");
	else if (rc > 0)
		fprintf(stderr, "an accelerator failed: exit code %d\n", rc);
	return rc != 0;
}

static int hand_out(const slmpm_peer *accels, int n, struct total *t)
{
	static char line[LINE_LEN];
	uint64_t sent = 0;

	for (; fgets(line, sizeof(line), stdin); sent++)
		if (slmpm_am(accels[sent % (uint64_t)n], COUNT, NULL, 0, line, strlen(line), NULL,
			     NULL) < 0)
			return slmpm_perror("slmpm_am");
	while (t->lines < sent) {
		struct slmpm_event e = {.size = sizeof(e)};

		/* Waits for news of the peers, of which there should be none, and handles answers. */
		if (slmpm_next_event((slmpm_ctx){0}, &e, 1) == 1 && e.error) {
			fprintf(stderr, "%s\n", e.detail);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	slmpm_peer accels[MOST];
	struct total t = {0, 0};
	int n = argc > 1 ? atoi(argv[1]) : 2, rc;
	char *words[] = {"accelerator", NULL};
	int help = argc > 1 && !strcmp(argv[1], "-h");

	if (argc > 1 && !strcmp(argv[1], words[0]))
		return accelerator();
	if (help || n < 1 || n > MOST ||
	    slmpm_am_handler((slmpm_ctx){0}, COUNTED, counted, &t) < 0) {
		fprintf(help ? stdout : stderr, "usage: am_counter [1 to %d accelerators] <file\n",
			MOST);
		return help ? 0 : 2;
	}
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], argv[0], words, NULL) < 0)
			return slmpm_perror("spawn");
	rc = hand_out(accels, n, &t);
	for (int i = 0; i < n; i++)
		rc |= dismiss(accels[i]);
	printf("%llu lines, %llu words\n", (unsigned long long)t.lines,
	       (unsigned long long)t.words);
	return rc;
}
