/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox_lat: the ping-pong of one word through dacs.h, between this process and one of its own
 * started by dacs_de_start. Side 1 is told the count in a word, 0 at the end.
 */
#include "apps/slmpm_perftest/perftest.h"

#include <dacs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_PROBE UINT32_MAX /* side 1's CPU, where it cannot probe */

static struct mailbox { /* side 0's; started at first use */
	bool up;
	de_id_t de;
	dacs_process_id_t pid;
	struct board *board;
	bool probes;
} box;

static int failed(const char *what, DACS_ERR_T err)
{
	fprintf(stderr, "slmpm_perftest: %s: %s\n", what, dacs_strerror(err));
	return -SLMPM_ESYSTEM;
}

static int alive(void *arg)
{
	const struct mailbox *m = arg;
	int32_t status;

	return !m || dacs_de_test(m->de, m->pid, &status) == DACS_STS_PROC_RUNNING;
}

/* Both sides' own counters, of every context of this process. */
static void count_remote(uint64_t *reads, uint64_t *writes)
{
	const struct slmpm_stats_page *page;

	*reads = *writes = 0;
	for (int index = 0; slmpm_stats_attach(getpid(), index, &page) >= 0; index++) {
		for (uint32_t i = 0; i < page->peers; i++) {
			*reads += slmpm_stats_of(page, i)->remote_reads;
			*writes += slmpm_stats_of(page, i)->remote_writes;
		}
		slmpm_stats_detach(page);
	}
}

static int write_word(const struct mailbox *m, uint32_t word)
{
	return dacs_mailbox_write(&word, m ? m->de : DACS_DE_PARENT,
				  m ? m->pid : DACS_PID_PARENT) == DACS_SUCCESS ?
		       0 :
		       -1;
}

static int64_t read_word(const struct mailbox *m)
{
	uint32_t word;

	return dacs_mailbox_read(&word, m ? m->de : DACS_DE_PARENT, m ? m->pid : DACS_PID_PARENT) ==
			       DACS_SUCCESS ?
		       (int64_t)word :
		       -1;
}

static int mailbox_start(const int cpu[2])
{
	char board[64], theirs[16];
	char const *argv[] = {"--mailbox", board, "--on-cpu", theirs, NULL};
	uint32_t n = 1;
	int64_t far;
	DACS_ERR_T rc;
	int mine;

	snprintf(theirs, sizeof(theirs), "%d", cpu[1]);
	mine = pin(cpu[0]);
	box.board = board_create(board, sizeof(board));
	rc = dacs_init(DACS_INIT_FLAGS_NONE);
	if (rc != DACS_SUCCESS)
		return failed("dacs_init", rc);
	rc = dacs_reserve_children(DACS_DE_CBE, &n, &box.de);
	if (rc != DACS_SUCCESS || n != 1)
		return failed("no accelerator element is free", rc);
	rc = dacs_de_start(box.de, "/proc/self/exe", argv, NULL, DACS_PROC_REMOTE_FILE, &box.pid);
	if (rc != DACS_SUCCESS)
		return failed("dacs_de_start", rc);
	far = read_word(&box);
	if (far < 0)
		return failed("dacs_mailbox_read", DACS_ERR_INTERNAL);
	box.probes = box.board && mine >= 0 && far != mine && far != NO_PROBE;
	box.up = true;
	return 0;
}

static int ping(const struct mailbox *m, int side, uint32_t count, struct hist *stamps)
{
	uint64_t before = stamps ? now_ns() : 0, now;

	for (uint32_t i = 0; i < count; i++) {
		if (side == 0 && write_word(m, i))
			return -1;
		if (read_word(m) != i)
			return -1;
		if (side == 1 && write_word(m, i))
			return -1;
		if (stamps) {
			now = now_ns();
			hist_add(stamps, (now - before) / 2);
			before = now;
		}
	}
	return 0;
}

static int probe(struct mailbox *m, struct board *board, int side, double *ns)
{
	*ns = board_probe(board, side, alive, m, NULL);
	return *ns < 0 ? -1 : board_meet(board, side, alive, m);
}

static int run(const struct job *j, struct figures *f, struct hist *stamps)
{
	uint64_t reads, writes, begin;

	if (write_word(&box, (uint32_t)j->count) || write_word(&box, box.probes))
		return -1;
	if (box.probes && probe(&box, box.board, 0, &f->before))
		return -1;
	count_remote(&reads, &writes);
	begin = now_ns();
	if (ping(&box, 0, (uint32_t)j->count, j->each ? stamps : NULL))
		return -1;
	f->ns = (double)(now_ns() - begin);
	count_remote(&f->reads, &f->writes);
	f->reads -= reads;
	f->writes -= writes;
	if (read_word(&box) < 0) /* side 1 has left its counts */
		return -1;
	if (box.board)
		board_fetch(box.board, &f->reads, &f->writes);
	return box.probes ? probe(&box, box.board, 0, &f->after) : 0;
}

int mailbox_run(const struct job *j, const int cpu[2], struct figures *f, struct hist *stamps)
{
	*f = (struct figures){0};
	if (!box.up && mailbox_start(cpu))
		return -SLMPM_ESYSTEM;
	if (j->count > UINT32_MAX) {
		fprintf(stderr, "slmpm_perftest: mailbox_lat counts to 4294967295: choose -n\n");
		return -SLMPM_ELIMIT;
	}
	if (run(j, f, stamps)) {
		fprintf(stderr, "slmpm_perftest: mailbox: the other side is gone or wrong\n");
		return -SLMPM_EDEAD;
	}
	return 0;
}

void mailbox_end(void)
{
	int32_t status;

	if (!box.up)
		return;
	write_word(&box, 0);
	dacs_de_wait(box.de, box.pid, &status);
	dacs_release_de_list(1, &box.de);
	dacs_exit();
	box.up = false;
}

static int follow_once(struct board *board, uint32_t count)
{
	uint64_t reads, writes, end_reads, end_writes;
	int64_t probes = read_word(NULL);
	double ns;

	if (probes < 0 || (probes && (!board || probe(NULL, board, 1, &ns))))
		return -1;
	count_remote(&reads, &writes);
	if (ping(NULL, 1, count, NULL))
		return -1;
	count_remote(&end_reads, &end_writes);
	if (board)
		board_leave(board, end_reads - reads, end_writes - writes);
	if (write_word(NULL, 0))
		return -1;
	return probes ? probe(NULL, board, 1, &ns) : 0;
}

int mailbox_follow(const char *name, int cpu)
{
	struct board *board = board_open(name);
	int64_t count;
	DACS_ERR_T rc = dacs_init(DACS_INIT_FLAGS_NONE);
	int mine = pin(cpu);

	if (rc != DACS_SUCCESS) {
		failed("dacs_init", rc);
		return 1;
	}
	if (write_word(NULL, board && mine >= 0 ? (uint32_t)mine : NO_PROBE))
		return 1;
	while ((count = read_word(NULL)) > 0)
		if (follow_once(board, (uint32_t)count))
			return 1;
	dacs_exit();
	return count < 0;
}
