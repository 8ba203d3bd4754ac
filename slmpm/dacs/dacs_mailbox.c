/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mailboxes: a word is an empty message whose immediate it is, which converts its byte order, on a
 * stream of its own. A writer has four credits; the reader returns one for each word it takes.
 */
#include "slmpm/dacs/dacs_message.h"
#include "slmpm/dacsbase/dacs_process.h"
#include "slmpm/dacsbase/dacs_wait.h"

/* Takes the next message of a reserved stream: 1 and its immediate, 0 none, or the end. */
static int take_immediate(struct dacsi_process *process, uint32_t stream, uint32_t *imm)
{
	struct slmpm_done done = {0};
	int64_t rc = slmpm_probe(process->peer, stream, &done, 0);

	if (rc > 0)
		rc = slmpm_recv(process->peer, stream, NULL, 0, &done, 0);
	else if (rc == 0)
		return 0;
	/* Payload is none of ours; it is gone, and the word counts. */
	if (rc < 0 && rc != -SLMPM_ETRUNC)
		return rc == -SLMPM_EAGAIN ? 0 : (int)rc;
	*imm = done.imm;
	return 1;
}

/* Posts an empty message; never blocks. A request only where the ring has no room at once. */
static int post_immediate(struct dacsi_process *process, uint32_t stream, uint32_t imm,
			  slmpm_req *req)
{
	struct slmpm_how how = {.size = sizeof(how), .imm = imm};
	struct slmpm_iov empty = {.base = NULL};
	int rc = slmpm_sendv(process->peer, stream, &empty, 1, &how, NULL);

	if (rc != -SLMPM_EAGAIN)
		return rc;
	rc = slmpm_sendv(process->peer, stream, &empty, 1, &how, req);
	if (rc >= 0)
		(void)slmpm_test(req, NULL);
	return rc;
}

static bool is_word_sent(slmpm_req *req)
{
	if (req->id && slmpm_test(req, NULL) != 0)
		req->id = 0;
	return !req->id;
}

void dacsi_mailbox_settle(struct dacsi_process *process)
{
	uint32_t credits = process->unreturned;

	if (!credits || !is_word_sent(&process->credit_req))
		return;
	process->unreturned = 0; /* for a partner that has ended it does not matter */
	(void)post_immediate(process, DACSI_STREAM_CREDIT, credits, &process->credit_req);
}

static void add_credits(struct dacsi_process *process, uint32_t n)
{
	/* More than there are slots is a partner's lie. */
	uint32_t room = DACSI_MAILBOX_SLOTS - process->credits;

	process->credits += n < room ? n : room;
}

static void collect_credits(struct dacsi_process *process)
{
	uint32_t n = 0;

	while (take_immediate(process, DACSI_STREAM_CREDIT, &n) > 0)
		add_credits(process, n);
}

bool dacsi_mailbox_stow(struct dacsi_process *process, uint32_t stream)
{
	uint32_t imm = 0, at;

	if (take_immediate(process, stream, &imm) <= 0)
		return false;
	if (stream == DACSI_STREAM_CREDIT) {
		add_credits(process, imm);
	} else if (stream == DACSI_STREAM_WORD && process->word_count < DACSI_MAILBOX_SLOTS) {
		/* A fifth unread word is against the rules, and lost. */
		at = (process->word_head + process->word_count++) % DACSI_MAILBOX_SLOTS;
		process->words[at] = imm;
	}
	return true;
}

/* DACS_WID_BUSY: not now. */
static DACS_ERR_T read_word(struct dacsi_process *process, uint32_t *word)
{
	int rc = 1;

	if (process->word_count) {
		*word = process->words[process->word_head];
		process->word_head = (process->word_head + 1) % DACSI_MAILBOX_SLOTS;
		process->word_count--;
	} else {
		rc = take_immediate(process, DACSI_STREAM_WORD, word);
	}
	if (rc <= 0)
		return rc ? dacsi_code(rc) : DACS_WID_BUSY;
	process->unreturned++;
	dacsi_mailbox_settle(process);
	return DACS_SUCCESS;
}

static slmpm_req *free_request(struct dacsi_process *process)
{
	for (int i = 0; i < DACSI_MAILBOX_SLOTS; i++)
		if (is_word_sent(&process->word_req[i]))
			return &process->word_req[i];
	return NULL;
}

/* Credits run out before requests do, but for a partner that lies. */
static bool can_write(struct dacsi_process *process)
{
	if (!process->credits)
		collect_credits(process);
	return process->credits && free_request(process);
}

static DACS_ERR_T write_word(struct dacsi_process *process, uint32_t *word)
{
	DACS_ERR_T rc = DACS_WID_BUSY;

	if (!can_write(process)) {
		rc = dacsi_process_channel(process);
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	}
	rc = dacsi_code(post_immediate(process, DACSI_STREAM_WORD, *word, free_request(process)));
	if (rc == DACS_SUCCESS)
		process->credits--;
	return rc;
}

/* Reads or writes a word, waiting as long as that is not possible. */
static DACS_ERR_T transfer(uint32_t *word, de_id_t de, dacs_process_id_t pid,
			   DACS_ERR_T (*once)(struct dacsi_process *, uint32_t *))
{
	DACS_ERR_T rc = dacsi_enter();
	struct dacsi_process *process;
	struct dacsi_pause pause;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!word)
		return dacsi_leave(DACS_ERR_INVALID_ADDR);
	dacsi_pause_begin(&pause);
	for (;;) {
		rc = dacsi_partner(de, pid, &process); /* may be reaped meanwhile */
		if (rc == DACS_SUCCESS)
			rc = once(process, word);
		if (rc != DACS_WID_BUSY)
			return dacsi_leave_fast(rc);
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return dacsi_leave_fast(rc);
	}
}

DACS_ERR_T dacs_mailbox_write(uint32_t *msg, de_id_t dst_de, dacs_process_id_t dst_pid)
{
	return transfer(msg, dst_de, dst_pid, write_word);
}

DACS_ERR_T dacs_mailbox_read(uint32_t *msg, de_id_t src_de, dacs_process_id_t src_pid)
{
	return transfer(msg, src_de, src_pid, read_word);
}

/* Whether a word is there; the partner's end only when none can come. */
static DACS_ERR_T can_read(struct dacsi_process *process, int32_t *status)
{
	struct slmpm_done done;
	int rc;

	*status = process->word_count > 0;
	if (*status)
		return DACS_SUCCESS;
	rc = slmpm_probe(process->peer, DACSI_STREAM_WORD, &done, 0);
	*status = rc > 0;
	return rc >= 0 || rc == -SLMPM_EAGAIN ? DACS_SUCCESS : dacsi_code(rc);
}

DACS_ERR_T dacs_mailbox_test(DACS_TEST_MAILBOX_T rw_flag, de_id_t de, dacs_process_id_t pid,
			     int32_t *mbox_status)
{
	DACS_ERR_T rc = dacsi_enter();
	struct dacsi_process *process;
	int32_t status = 0;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!mbox_status)
		return dacsi_leave(DACS_ERR_INVALID_ADDR);
	if (rw_flag != DACS_TEST_MAILBOX_READ && rw_flag != DACS_TEST_MAILBOX_WRITE)
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	(void)dacsi_progress(); /* who calls nothing else still serves its mutexes and groups */
	rc = dacsi_partner(de, pid, &process);
	if (rc != DACS_SUCCESS)
		return dacsi_leave(rc);
	if (rw_flag == DACS_TEST_MAILBOX_READ) {
		rc = can_read(process, &status);
	} else {
		rc = dacsi_process_channel(process);
		status = rc == DACS_SUCCESS && can_write(process);
	}
	if (rc == DACS_SUCCESS)
		*mbox_status = status;
	return dacsi_leave_fast(rc);
}
