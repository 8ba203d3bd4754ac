/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program that is text, with the processes that it names: those send it messages, and take
 * what it sends.
 *	work_program [-g] [-n ROUNDS] FILE
 * -g prints its graph (dot -Tsvg). Beside it lie barrier, maximum, reduce, pipe and
 * pipe_enables.program. What they name is in their lines that begin with "#:":
 *	memory NAME BYTES		counter NAME		completions NAME
 *	peer NAME [sends N BYTES] [takes N]
 *	queue NAME [managed] [receives PEER] [counter NAME] [completions NAME]
 * Message M of peer P is words of M * 10^(P - 1), and in their upper half their number.
 */
#include <slmpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST    32 /* names */
#define LONGEST 65536
#define SHOWN   8
#define TIME    5000 /* ms, to begin and to end */

enum { DATA, TURN, REPORT }; /* streams */

struct report {
	uint64_t messages, bytes, sum;
	uint32_t first[SHOWN]; /* of each message */
};

/* ---- what a peer does ------------------------------------------------------------------------ */

struct part {
	uint64_t place, sends, bytes, takes, rounds;
};

static void fill(uint64_t *words, const struct part *p, uint64_t round)
{
	uint64_t unit = 1;

	for (uint64_t i = 1; i < p->place; i++)
		unit *= 10;
	for (uint64_t m = 0; m < p->sends; m++)
		for (uint64_t i = 0; i < p->bytes / 8; i++)
			*words++ = (round * p->sends + m + 1) * unit + (i << 32);
}

/* A message whose entry is disabled waits for that, at the head of the queue. */
static int post_all(slmpm_wq wq, slmpm_peer host, uint64_t *words, const struct part *p)
{
	struct slmpm_wr send = {.size = sizeof(send), .op = SLMPM_OP_SEND, .peer = host};
	struct slmpm_iov piece = {words, p->bytes};

	send.flags = SLMPM_SILENT;
	send.timeout_ms = -1;
	send.iov = &piece;
	send.iov_count = 1;
	for (uint64_t m = 0; m < p->sends; m++) {
		piece.base = words + m * p->bytes / 8;
		if (slmpm_post(wq, &send, 1) != 1)
			return -1;
	}
	return 0;
}

/* In its turn, which ends when all is posted: what could be sent was sent before that. */
static int send_all(slmpm_wq wq, slmpm_peer host, uint64_t *words, const struct part *p)
{
	if (slmpm_recv(host, TURN, NULL, 0, NULL, -1) < 0 || post_all(wq, host, words, p) < 0 ||
	    slmpm_send(host, TURN, NULL, 0, -1) < 0)
		return -1;
	return slmpm_wq_drain(wq, -1);
}

static int take_all(slmpm_peer host, const struct part *p, struct report *r)
{
	static uint64_t words[LONGEST / 8];

	for (uint64_t m = 0; m < p->takes; m++) {
		int64_t n = slmpm_recv(host, DATA, words, sizeof(words), NULL, -1);

		if (n < 0)
			return -1;
		if (r->messages < SHOWN)
			r->first[r->messages] = (uint32_t)words[0];
		r->messages++;
		r->bytes += (uint64_t)n;
		for (int64_t i = 0; i < n / 8; i++)
			r->sum = r->sum * 31 + words[i];
	}
	return 0;
}

static int play(const struct part *p)
{
	struct slmpm_wq_options options = {.size = sizeof(options)};
	uint64_t *words = calloc(p->sends * p->bytes + 1, 1);
	struct report report = {0};
	slmpm_peer host;
	slmpm_wq wq;

	if (slmpm_parent(&host) < 0)
		return 1;
	if (!words || slmpm_cq_create((slmpm_ctx){0}, &options.cq) < 0 ||
	    slmpm_wq_create((slmpm_ctx){0}, &options, &wq) < 0)
		return slmpm_perror("work_program");
	for (uint64_t round = 0; round < p->rounds; round++) {
		fill(words, p, round);
		if ((p->sends && send_all(wq, host, words, p) < 0) ||
		    take_all(host, p, &report) < 0)
			return 1; /* the host has ended, and says why */
	}
	free(words);
	return p->takes && slmpm_send(host, REPORT, &report, sizeof(report), -1) < 0;
}

/* ---- what the text names --------------------------------------------------------------------- */

static char text[LONGEST];
static struct slmpm_name names[MOST];
static struct part parts[MOST]; /* of those names that are peers' */
static slmpm_wq queues[MOST];
static int name_count, peer_count, queue_count;
static char *self;
static uint64_t rounds = 1;
static int draws;

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "work_program: %s: %s\n", what, why);
	return -1;
}

static uint64_t next_number(char **rest)
{
	const char *word = strtok_r(NULL, " ", rest);

	return word ? strtoull(word, NULL, 10) : 0;
}

/* 0: there is none. */
static uint64_t find(uint32_t kind, const char *name)
{
	for (int i = 0; name && i < name_count; i++)
		if (names[i].kind == kind && !strcmp(names[i].name, name))
			return names[i].id;
	return 0;
}

static int new_peer(struct slmpm_name *n, char *rest)
{
	struct part *p = &parts[n - names];
	char words[5][24],
		*args[] = {"part", words[0], words[1], words[2], words[3], words[4], NULL};
	slmpm_peer peer;

	p->place = (uint64_t)++peer_count;
	for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
		if (!strcmp(word, "takes")) {
			p->takes = next_number(&rest);
		} else if (!strcmp(word, "sends")) {
			p->sends = next_number(&rest);
			p->bytes = next_number(&rest);
		} else {
			return refuse(word, "what should a peer do?");
		}
	}
	if (p->bytes > LONGEST || p->bytes % 8)
		return refuse(n->name, "it sends so many words?");
	snprintf(words[0], sizeof(words[0]), "%llu", (unsigned long long)p->place);
	snprintf(words[1], sizeof(words[1]), "%llu", (unsigned long long)p->sends);
	snprintf(words[2], sizeof(words[2]), "%llu", (unsigned long long)p->bytes);
	snprintf(words[3], sizeof(words[3]), "%llu", (unsigned long long)p->takes);
	snprintf(words[4], sizeof(words[4]), "%llu", (unsigned long long)rounds);
	if (slmpm_spawn(&peer, self, args, NULL) < 0)
		return -slmpm_perror("slmpm_spawn");
	n->id = peer.id;
	return 0;
}

static int new_queue(struct slmpm_name *n, char *rest)
{
	struct slmpm_wq_options o = {.size = sizeof(o), .flags = draws ? SLMPM_WQ_KEPT : 0};
	slmpm_wq wq;

	for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
		if (!strcmp(word, "managed")) {
			o.flags |= SLMPM_WQ_MANAGED;
		} else if (!strcmp(word, "receives")) {
			o.flags |= SLMPM_WQ_RECEIVE;
			o.peer.id = find(SLMPM_NAME_PEER, strtok_r(NULL, " ", &rest));
		} else if (!strcmp(word, "counter")) {
			o.ctr.id = find(SLMPM_NAME_CTR, strtok_r(NULL, " ", &rest));
		} else if (!strcmp(word, "completions")) {
			o.cq.id = find(SLMPM_NAME_CQ, strtok_r(NULL, " ", &rest));
		} else {
			return refuse(word, "what should a queue be?");
		}
	}
	if ((!o.cq.id && slmpm_cq_create((slmpm_ctx){0}, &o.cq) < 0) ||
	    slmpm_wq_create((slmpm_ctx){0}, &o, &wq) < 0)
		return -slmpm_perror("slmpm_wq_create");
	n->id = wq.id;
	queues[queue_count++] = wq;
	return 0;
}

static int new_total(struct slmpm_name *n)
{
	slmpm_ctr ctr;
	slmpm_cq cq;
	int rc;

	if (n->kind == SLMPM_NAME_CTR) {
		rc = slmpm_ctr_create((slmpm_ctx){0}, &ctr);
		n->id = ctr.id;
	} else {
		rc = slmpm_cq_create((slmpm_ctx){0}, &cq);
		n->id = cq.id;
	}
	return rc < 0 ? -slmpm_perror("a total") : 0;
}

static int new_memory(struct slmpm_name *n, char *rest)
{
	n->len = next_number(&rest);
	n->base = calloc(n->len + 1, 1);
	return n->base ? 0 : refuse(n->name, "no memory");
}

/* KIND NAME ...: those that a name needs are in front of it. */
static int declare(char *line)
{
	static const char *const kinds[] = {
		[SLMPM_NAME_PEER] = "peer",      [SLMPM_NAME_CTR] = "counter",
		[SLMPM_NAME_CQ] = "completions", [SLMPM_NAME_WQ] = "queue",
		[SLMPM_NAME_MEMORY] = "memory",
	};
	char *rest, *kind = strtok_r(line, " ", &rest), *name = strtok_r(NULL, " ", &rest);
	struct slmpm_name *n = &names[name_count];

	if (!name || name_count == MOST)
		return refuse("a line", name ? "too many names" : "a name is missing");
	n->name = strdup(name);
	while (n->kind <= SLMPM_NAME_MEMORY && (!kinds[n->kind] || strcmp(kinds[n->kind], kind)))
		n->kind++;
	name_count++;
	switch (n->kind) {
	case SLMPM_NAME_PEER: return new_peer(n, rest);
	case SLMPM_NAME_WQ: return new_queue(n, rest);
	case SLMPM_NAME_MEMORY: return new_memory(n, rest);
	case SLMPM_NAME_CTR:
	case SLMPM_NAME_CQ: return new_total(n);
	default: return refuse(kind, "there is no such thing");
	}
}

static int declare_all(void)
{
	int rc = 0;

	for (const char *at = text; rc == 0 && (at = strstr(at, "#: ")) != NULL; at++) {
		char line[256];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
		rc = declare(line);
	}
	return rc;
}

/* ---- running it ------------------------------------------------------------------------------ */

static int load(void)
{
	slmpm_wq main_queue = {find(SLMPM_NAME_WQ, "main")};

	return slmpm_wq_load(main_queue, text, names, name_count, SLMPM_PROGRAM_CLOSED);
}

/* One peer after the other: what can be sent has come when the next begins. */
static int give_turns(void)
{
	for (int i = 0; i < name_count; i++)
		if (parts[i].sends &&
		    (slmpm_send((slmpm_peer){names[i].id}, TURN, NULL, 0, -1) < 0 ||
		     slmpm_recv((slmpm_peer){names[i].id}, TURN, NULL, 0, NULL, -1) < 0))
			return -1;
	return 0;
}

static int run(void)
{
	for (uint64_t round = 0; round < rounds; round++) {
		if (load() < 0)
			return slmpm_perror("a program");
		if (give_turns() < 0)
			return slmpm_perror("a peer");
		for (int i = 0; i < queue_count; i++)
			if (slmpm_wq_drain(queues[i], -1) < 0)
				return slmpm_perror("slmpm_wq_drain");
	}
	return 0;
}

static int print_report(const struct slmpm_name *n)
{
	struct report r;

	if (slmpm_recv((slmpm_peer){n->id}, REPORT, &r, sizeof(r), NULL, TIME) < 0)
		return slmpm_perror(n->name);
	printf("%s took %llu messages, %llu bytes, %016llx:", n->name,
	       (unsigned long long)r.messages, (unsigned long long)r.bytes,
	       (unsigned long long)r.sum);
	for (uint64_t i = 0; i < r.messages && i < SHOWN; i++)
		printf(" %u", r.first[i]);
	return printf("%s\n", r.messages > SHOWN ? " ..." : "") < 0;
}

/* Those that have not had their turn end when the link does. */
static int finish(void)
{
	int failed = 0;

	for (int i = 0; i < name_count && !draws; i++)
		if (parts[i].takes)
			failed |= print_report(&names[i]);
	for (int i = 0; i < name_count; i++) {
		slmpm_peer peer = {names[i].id};

		if (names[i].kind != SLMPM_NAME_PEER)
			continue;
		failed |= draws && slmpm_close(peer, TIME) < 0;
		failed |= slmpm_join(peer, NULL, TIME) != 0 && !draws;
	}
	return failed;
}

/* Entries of kept queues are there whether they have run or not. */
static int draw(void)
{
	static char graph[4 * LONGEST];

	if (load() < 0 || slmpm_wq_dump(queues, queue_count, names, name_count, SLMPM_PROGRAM_GRAPH,
					graph, sizeof(graph)) < 0)
		return slmpm_perror("a program");
	return fputs(graph, stdout) < 0;
}

static int read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (!n)
		return refuse(path, "nothing to read");
	return fclose(file);
}

static int usage(FILE *to)
{
	fprintf(to, "usage: work_program [-g] [-n ROUNDS] FILE\n");
	return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	int at = 1;

	if (argc == 7 && !strcmp(argv[1], "part")) {
		const struct part p = {strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
				       strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
				       strtoull(argv[6], NULL, 10)};
		return play(&p);
	}
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strcmp(argv[at], "-h"))
			return usage(stdout);
		if (!strcmp(argv[at], "-n") && at + 1 < argc)
			rounds = strtoull(argv[++at], NULL, 10);
		else if (!strcmp(argv[at], "-g"))
			draws = 1;
		else
			return usage(stderr);
	}
	self = argv[0];
	if (at + 1 != argc || !rounds)
		return usage(stderr);
	if (read_text(argv[at]) != 0 || declare_all() < 0)
		return 2;
	return (draws ? draw() : run()) || finish();
}
