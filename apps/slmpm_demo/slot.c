/* SPDX-License-Identifier: BSD-3-Clause */
/* From files to messages: a file's bytes on a slot's stream, in loans or from memory of the host's
 * own, or put into the slot's places. */
#include "apps/slmpm_demo/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void slot_close(struct slot *s, struct ledger *l)
{
	if (!s->open)
		return;
	close(s->fd);
	s->open = false;
	l->open--;
}

/* A large file goes in larger messages; memory for them only where there is one. */
static int slot_room(const struct options *o, struct slot *s, uint64_t size)
{
	bool large = size >= LARGE && o->accelerators * o->window <= LARGE_MAX;
	size_t room = large ? CHUNK_LARGE : CHUNK;
	char *more;

	s->large = size >= CHUNK;
	s->placed = large && o->way == WAY_PUT;
	if (s->placed)
		room = PLACE;

	if (s->room < room) {
		more = realloc(s->chunk, room);
		if (!more)
			return -1;
		s->chunk = more;
		s->room = room;
	}
	s->step = room;
	return 0;
}

bool slot_is_long(const struct slot *s)
{
	return s->open && (s->placed ? s->put - s->taken < PLACES : s->large);
}

/* Of the file under way all has been read, or it cannot be: what its last message says. */
static uint32_t slot_ends(struct ledger *l, struct slot *s, bool failed)
{
	struct given *g = &s->given[(s->next - 1) % LENT_MAX];

	if (failed)
		ledger_failed(l, g->file, errno);
	slot_close(s, l);
	g->sent_ns = now_ns();
	if (failed)
		s->next--;
	return failed ? IMM_FORGET : IMM_LAST;
}

/* The next file, where less than MOST are awaited. */
static bool slot_open(struct ledger *l, struct slot *s, uint64_t most)
{
	size_t file;

	while (s->next - s->first < most && ledger_next(l, &file)) {
		s->fd = open(l->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (s->fd < 0 && (errno == EMFILE || errno == ENFILE) && l->open) {
			ledger_again(l, file); /* once another one is read */
			return false;
		}
		if (s->fd < 0 && files_may_retry(errno)) {
			ledger_again(l, file);
			continue;
		}
		s->left = l->files->at[file].size;
		if (s->fd < 0 || (most == GIVEN_MAX && slot_room(l->options, s, s->left))) {
			ledger_failed(l, file, errno);
			if (s->fd >= 0)
				close(s->fd);
			continue;
		}
		s->given[s->next++ % LENT_MAX] = (struct given){.file = file};
		s->open = true;
		l->open++;
		return true;
	}
	return false;
}

static void send_piece(struct accelerator *acc, unsigned k, struct slmpm_iov piece, uint32_t imm,
		       slmpm_req *req)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = imm, .timeout_ms = -1};

	if (acc->broken || slmpm_sendv(acc->peer, k, &piece, 1, &how, req) < 0)
		acc->broken = true;
}

void slot_say(struct accelerator *acc, unsigned k, slmpm_req *req)
{
	struct slot *s = &acc->slot[k];

	send_piece(acc, k, (struct slmpm_iov){.base = s->said, .len = sizeof(s->said)},
		   s->imm | IMM_PLACED, req);
}

/* Puts LEN bytes where they belong; what is to be said then says how many. */
static void put_piece(struct accelerator *acc, unsigned k, size_t len, uint32_t imm, slmpm_req *req)
{
	struct slot *s = &acc->slot[k];

	count_write(s->said, len);
	s->imm = imm;
	if (slmpm_put(acc->places, place_of(k, s->put++), s->chunk, len, NULL, req) < 0)
		acc->broken = true;
}

/* ---- in loans ------------------------------------------------------------------------------- */

static bool loan_goes(struct accelerator *acc)
{
	const struct slmpm_how how = {
		.size = sizeof(how), .imm = IMM_PIECES, .cq = acc->sent, .cookie = acc->index};
	int rc = slmpm_commit(acc->peer, acc->loan.data, acc->loan.len, &how);

	if (rc == -SLMPM_EAGAIN)
		return false;
	acc->broken |= rc < 0;
	acc->loan.data = NULL;
	return true;
}

/* The next piece of the file to AT, where there is ROOM for it and more than that: its length. */
static size_t fill_piece(struct slot *s, struct ledger *l, unsigned char *at, size_t room)
{
	ssize_t n = read_full(s->fd, (char *)at + LINE, room - LINE, s->left);
	size_t len = n > 0 ? (size_t)n : 0;
	uint32_t imm = 0;

	s->left -= len < s->left ? len : s->left;
	if (n < (ssize_t)(room - LINE))
		imm = slot_ends(l, s, n < 0);
	count_write(at, len | (uint64_t)imm << 32);
	return len;
}

/* With pieces of the file that is open and those behind it. */
static void loan_fill(struct accelerator *acc, struct slot *s, struct ledger *l)
{
	unsigned char *data = acc->loan.data;
	size_t at = 0;

	for (int i = 0; i < PIECES && at + LINE < LENT; i++) {
		if (!s->open && !slot_open(l, s, LENT_MAX))
			break;
		acc->loan.len = at + LINE + fill_piece(s, l, data + at, LENT - at);
		at = (acc->loan.len + LINE - 1) / LINE * LINE;
	}
	s->put++;
}

/* There are none for it, or none so long: messages, then. */
static void stop_lending(struct accelerator *acc, const struct ledger *l)
{
	struct slot *s = &acc->slot[0];
	size_t file = s->given[(s->next - 1) % LENT_MAX].file;

	acc->lends = false;
	acc->broken |= s->open && slot_room(l->options, s, l->files->at[file].size) < 0;
}

/* All in the first slot. */
static bool slot_lend(struct accelerator *acc, struct ledger *l)
{
	struct slot *s = &acc->slot[0];
	int rc;

	if (acc->loan.data)
		return loan_goes(acc);
	if (s->put - s->taken == (uint64_t)LOANS * l->options->window ||
	    (!s->open && !slot_open(l, s, LENT_MAX)))
		return false;
	rc = slmpm_loan(acc->peer, 0, LENT, &acc->loan.data, 0);
	if (rc < 0 && rc != -SLMPM_EAGAIN)
		stop_lending(acc, l);
	if (rc < 0)
		return rc != -SLMPM_EAGAIN;
	loan_fill(acc, s, l);
	(void)loan_goes(acc);
	return true;
}

/* ---- in whichever way ------------------------------------------------------------------------ */

bool slot_feed(struct accelerator *acc, unsigned k, struct ledger *l, slmpm_req *req)
{
	struct slot *s = &acc->slot[k];
	uint32_t imm = 0;
	ssize_t n;

	if (acc->lends)
		return k == 0 && slot_lend(acc, l);
	if ((!s->open && !slot_open(l, s, GIVEN_MAX)) || (s->placed && s->put - s->taken == PLACES))
		return false;
	n = read_full(s->fd, s->chunk, s->step, 0);
	if (n < (ssize_t)s->step)
		imm = slot_ends(l, s, n < 0);
	if (s->placed && n > 0)
		put_piece(acc, k, (size_t)n, imm, req);
	else
		send_piece(acc, k,
			   (struct slmpm_iov){.base = s->chunk, .len = n > 0 ? (size_t)n : 0}, imm,
			   req);
	return true;
}
