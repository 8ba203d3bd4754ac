/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is text: a barrier. Each accelerator sends its round; when all have come, a second
 * queue is enabled, which tells all of them of all rounds. The engine or the host's calls run it.
 *	work_program [-t | -g] [ACCELERATORS [FILE]]
 * -t prints the text, -g its graph (dot -Tsvg); FILE has another text for the same names.
 */
#include <slmpm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW    3
#define MOST   16
#define ROUNDS 100
#define NAMES  (MOST + 4)
#define HERE   1    /* a stream */
#define TIME   5000 /* ms, to begin and to end */

static char text[65536], names_of_accels[MOST][16];
static uint64_t words[MOST];

/* All have sent the round that this one is in; there are as many as the host wants. */
static int accelerator(int n)
{
	slmpm_peer host;

	if (slmpm_parent(&host) < 0 || slmpm_send(host, HERE, NULL, 0, -1) < 0)
		return slmpm_perror("slmpm_parent");
	for (uint64_t round = 1;; round++) {
		if (slmpm_send(host, 0, &round, sizeof(round), -1) < 0 ||
		    slmpm_recv(host, 0, words, sizeof(words), NULL, -1) < 0)
			return slmpm_close(host, TIME) < 0;
		for (int i = 0; i < n; i++)
			if (words[i] != round)
				return 1;
	}
}

static void add_line(const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
}

static void write_barrier(int n)
{
	for (int i = 0; i < n; i++)
		add_line("recv channel=1 peer=a%d to=words+%d:8 ctr=arrived silent\n", i, 8 * i);
	add_line("wait ctr=arrived value=%d relative silent\n", n);
	add_line("enable wq=go value=%d relative silent\nqueue go\n", n);
	for (int i = 0; i < n; i++)
		add_line("send peer=a%d from=words silent\n", i);
}

static int read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (!file || !n)
		return fprintf(stderr, "work_program: %s: nothing to read\n", path) > 0;
	text[n] = '\0';
	return fclose(file);
}

static int bind_names(struct slmpm_name *names, const slmpm_peer *accels, int n,
		      const slmpm_wq *queues)
{
	slmpm_ctr arrived;

	if (slmpm_ctr_create((slmpm_ctx){0}, &arrived) < 0)
		return -1;
	names[0] = (struct slmpm_name){.name = "arrived", .kind = SLMPM_NAME_CTR};
	names[0].id = arrived.id;
	names[1] = (struct slmpm_name){.name = "main", .kind = SLMPM_NAME_WQ};
	names[1].id = queues[0].id;
	names[2] = (struct slmpm_name){.name = "go", .kind = SLMPM_NAME_WQ};
	names[2].id = queues[1].id;
	names[3] = (struct slmpm_name){.name = "words", .kind = SLMPM_NAME_MEMORY};
	names[3].base = words;
	names[3].len = sizeof(words);
	for (int i = 0; i < n; i++) {
		snprintf(names_of_accels[i], sizeof(names_of_accels[i]), "a%d", i);
		names[4 + i] = (struct slmpm_name){.name = names_of_accels[i]};
		names[4 + i].kind = SLMPM_NAME_PEER;
		names[4 + i].id = accels[i].id;
	}
	return 4 + n;
}

/* Nothing of the first queue runs: it is managed, too. */
static int show(const slmpm_wq *queues, const struct slmpm_name *names, int count)
{
	static char graph[4 * sizeof(text)];

	if (slmpm_wq_load(queues[0], text, names, count, 0) < 0 ||
	    slmpm_wq_dump(queues, 2, names, count, SLMPM_PROGRAM_GRAPH, graph, sizeof(graph)) < 0)
		return slmpm_perror("slmpm_wq_dump");
	return fputs(graph, stdout) < 0;
}

static int run(const slmpm_wq *queues, const struct slmpm_name *names, int count)
{
	for (int i = 0; i < ROUNDS; i++)
		if (slmpm_wq_load(queues[0], text, names, count, SLMPM_PROGRAM_CLOSED) < 0 ||
		    slmpm_wq_drain(queues[0], -1) < 0 || slmpm_wq_drain(queues[1], -1) < 0)
			return slmpm_perror("slmpm_wq_load");
	return 0;
}

static int barrier(const slmpm_peer *accels, int n, int shows)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	struct slmpm_name names[NAMES];
	slmpm_wq queues[2];
	int count;

	options.flags = shows ? SLMPM_WQ_MANAGED : 0;
	if (slmpm_cq_create((slmpm_ctx){0}, &options.cq) < 0 ||
	    slmpm_wq_create((slmpm_ctx){0}, &options, &queues[0]) < 0)
		return slmpm_perror("slmpm_wq_create");
	options.flags = SLMPM_WQ_MANAGED;
	if (slmpm_wq_create((slmpm_ctx){0}, &options, &queues[1]) < 0)
		return slmpm_perror("slmpm_wq_create");
	count = bind_names(names, accels, n, queues);
	if (count < 0)
		return slmpm_perror("slmpm_ctr_create");
	return shows ? show(queues, names, count) : run(queues, names, count);
}

static int host(char *self, int n, int shows)
{
	char *args[] = {"accelerator", NULL, NULL}, number[16];
	slmpm_peer accels[MOST];
	int failed;

	snprintf(number, sizeof(number), "%d", n);
	args[1] = number;
	for (int i = 0; i < n; i++)
		if (slmpm_spawn(&accels[i], self, args, NULL) < 0 ||
		    slmpm_recv(accels[i], HERE, NULL, 0, NULL, TIME) < 0)
			return slmpm_perror("slmpm_spawn");
	failed = barrier(accels, n, shows);
	for (int i = 0; i < n; i++)
		failed |= slmpm_close(accels[i], TIME) < 0 || slmpm_join(accels[i], NULL, TIME);
	if (!failed && !shows)
		printf("%d accelerators have met %d times\n", n, ROUNDS);
	return failed;
}

int main(int argc, char **argv)
{
	int shows = argc > 1 && !strcmp(argv[1], "-g"), tells = argc > 1 && !strcmp(argv[1], "-t");
	int at = 1 + shows + tells, n = argc > at ? atoi(argv[at]) : FEW;
	int help = argc > 1 && !strcmp(argv[1], "-h");

	if (argc > 2 && !strcmp(argv[1], "accelerator"))
		return accelerator(atoi(argv[2]));
	if (help || n < 1 || n > MOST) {
		fprintf(help ? stdout : stderr,
			"usage: work_program [-t | -g] [ACCELERATORS [FILE]]  (1 to %d)\n", MOST);
		return help ? 0 : 2;
	}
	if (argc <= at + 1)
		write_barrier(n);
	else if (read_text(argv[at + 1]) != 0)
		return 1;
	return tells ? fputs(text, stdout) < 0 : host(argv[0], n, shows);
}
