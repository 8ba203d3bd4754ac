/* SPDX-License-Identifier: BSD-3-Clause */
/* Mailboxes: a word is an active message, which its handler keeps until it is read. A writer has
 * four credits; the reader returns one for each word that it takes. */
#include "slmpm/dacs/dacs_message.h"
#include "slmpm/dacs/dacs_object.h"

#include <endian.h>
#include <string.h>

/* Handlers of these active messages, of 4 bytes, little-endian. */
enum { WORD = 2, CREDIT = 3 };

static void receive_mail(const struct slmpm_am *am, void *arg)
{
	struct dacsi_process *process = dacsi_word_sender(am);
	uint32_t value, at, room;

	(void)arg;
	if (!process || am->head_len != sizeof(value) || am->data_len)
		return;
	memcpy(&value, am->head, sizeof(value));
	value = le32toh(value);
	room = DACSI_MAILBOX_SLOTS - process->credits;
	if (am->id == CREDIT) {
		process->credits += value < room ? value : room; /* more is a partner's lie */
	} else if (process->word_count < DACSI_MAILBOX_SLOTS) {
		/* A fifth unread word is against the rules, and lost. */
		at = (process->word_head + process->word_count++) % DACSI_MAILBOX_SLOTS;
		process->words[at] = value;
	}
}

int dacsi_mailbox_begin(void)
{
	int rc = slmpm_am_handler(dacsi.ctx, WORD, receive_mail, NULL);

	return rc < 0 ? rc : slmpm_am_handler(dacsi.ctx, CREDIT, receive_mail, NULL);
}

/* Never blocks. A request only where the ring has no room at once. */
static int send_mail(struct dacsi_process *process, uint16_t what, uint32_t value, slmpm_req *req)
{
	struct slmpm_how how = {.size = sizeof(how)};
	int rc;

	value = htole32(value);
	rc = slmpm_am(process->peer, what, &value, sizeof(value), NULL, 0, &how, NULL);
	return rc == -SLMPM_EAGAIN ?
		       slmpm_am(process->peer, what, &value, sizeof(value), NULL, 0, &how, req) :
		       rc;
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
	(void)send_mail(process, CREDIT, credits, &process->credit_req);
}

/* The partner's end where nothing can come of waiting for it. */
static DACS_ERR_T not_now(const struct dacsi_process *process)
{
	DACS_ERR_T rc = dacsi_process_channel(process);

	return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
}

static bool has_word(const struct dacsi_process *process)
{
	if (!process->word_count)
		(void)slmpm_progress(dacsi.ctx);
	return process->word_count;
}

/* DACS_WID_BUSY: not now. */
static DACS_ERR_T read_word(struct dacsi_process *process, uint32_t *word)
{
	if (!has_word(process))
		return not_now(process);
	*word = process->words[process->word_head];
	process->word_head = (process->word_head + 1) % DACSI_MAILBOX_SLOTS;
	process->word_count--;
	process->unreturned++;
	dacsi_mailbox_settle(process);
	return DACS_SUCCESS;
}

/* For a word that can be written, or NULL. Only with a lying partner requests run out first. */
static slmpm_req *request_for_word(struct dacsi_process *process)
{
	if (!process->credits)
		(void)slmpm_progress(dacsi.ctx);
	for (int i = 0; process->credits && i < DACSI_MAILBOX_SLOTS; i++)
		if (is_word_sent(&process->word_req[i]))
			return &process->word_req[i];
	return NULL;
}

static DACS_ERR_T write_word(struct dacsi_process *process, uint32_t *word)
{
	slmpm_req *req = request_for_word(process);
	DACS_ERR_T rc;

	if (!req)
		return not_now(process);
	process->credits--;
	rc = dacsi_code(send_mail(process, WORD, *word, req));
	process->credits += rc != DACS_SUCCESS;
	return rc;
}

/* Reads or writes a word, waiting as long as that is not possible. */
static DACS_ERR_T transfer(uint32_t *word, de_id_t de, dacs_process_id_t pid,
			   DACS_ERR_T (*once)(struct dacsi_process *, uint32_t *))
{
	DACS_ERR_T rc = dacsi_enter_with(word);
	struct dacsi_process *process;
	struct dacsi_pause pause;

	if (rc != DACS_SUCCESS)
		return rc;
	dacsi_pause_begin(&pause);
	do {
		rc = dacsi_partner(de, pid, &process); /* may be reaped meanwhile */
		if (rc == DACS_SUCCESS)
			rc = once(process, word);
	} while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	return dacsi_leave_fast(rc);
}

DACS_ERR_T dacs_mailbox_write(uint32_t *msg, de_id_t dst_de, dacs_process_id_t dst_pid)
{
	return transfer(msg, dst_de, dst_pid, write_word);
}

DACS_ERR_T dacs_mailbox_read(uint32_t *msg, de_id_t src_de, dacs_process_id_t src_pid)
{
	return transfer(msg, src_de, src_pid, read_word);
}

DACS_ERR_T dacs_mailbox_test(DACS_TEST_MAILBOX_T rw_flag, de_id_t de, dacs_process_id_t pid,
			     int32_t *mbox_status)
{
	DACS_ERR_T rc = dacsi_enter_with(mbox_status);
	struct dacsi_process *process;
	int32_t status = 0;

	if (rc != DACS_SUCCESS)
		return rc;
	if (rw_flag != DACS_TEST_MAILBOX_READ && rw_flag != DACS_TEST_MAILBOX_WRITE)
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	(void)dacsi_progress(); /* who calls nothing else still serves its mutexes and groups */
	rc = dacsi_partner(de, pid, &process);
	if (rc != DACS_SUCCESS)
		return dacsi_leave(rc);
	status = rw_flag == DACS_TEST_MAILBOX_READ && has_word(process);
	rc = status ? DACS_SUCCESS : dacsi_process_channel(process);
	if (rc == DACS_SUCCESS && rw_flag == DACS_TEST_MAILBOX_WRITE)
		status = request_for_word(process) != NULL;
	if (rc == DACS_SUCCESS)
		*mbox_status = status;
	return dacsi_leave_fast(rc);
}
