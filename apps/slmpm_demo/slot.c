/* SPDX-License-Identifier: BSD-3-Clause */
/* From files to messages: a file's bytes on a slot's stream, in loans or from memory of the host's
 * own, or put into the slot's places. */
#include "apps/slmpm_demo/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	struct given *g = &s->given[(s->next - 1) % GIVEN_MAX];

	if (failed)
		ledger_failed(l, g->file, errno);
	slot_close(s, l);
	g->sent_ns = now_ns();
	if (failed)
		s->next--;
	return failed ? IMM_FORGET : IMM_LAST;
}

static bool slot_open(struct ledger *l, struct slot *s, bool lends)
{
	struct stat now;
	size_t file;

	while (s->next - s->first < GIVEN_MAX && ledger_next(l, &file)) {
		s->fd = open(l->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (s->fd < 0 && (errno == EMFILE || errno == ENFILE) && l->open) {
			ledger_again(l, file); /* once another one is read */
			return false;
		}
		if (s->fd < 0 || (!lends && slot_room(l->options, s, l->files->at[file].size))) {
			ledger_failed(l, file, errno);
			if (s->fd >= 0)
				close(s->fd);
			continue;
		}
		s->left = fstat(s->fd, &now) == 0 ? (uint64_t)now.st_size : 0;
		s->given[s->next++ % GIVEN_MAX] = (struct given){.file = file};
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
		.size = sizeof(how), .imm = acc->loan.imm, .cq = acc->sent, .cookie = acc->index};
	int rc = slmpm_commit(acc->peer, acc->loan.data, acc->loan.len, &how);

	if (rc == -SLMPM_EAGAIN)
		return false;
	acc->broken |= rc < 0;
	acc->loan.data = NULL;
	return true;
}

/* The next piece of the file into a loan. */
static void loan_fill(struct accelerator *acc, unsigned k, struct ledger *l, size_t room)
{
	struct slot *s = &acc->slot[k];
	ssize_t n = read_full(s->fd, acc->loan.data, room);

	acc->loan.slot = k;
	acc->loan.len = n > 0 ? (size_t)n : 0;
	acc->loan.imm = IMM_LENT;
	if (n == (ssize_t)room && n != (ssize_t)s->left) {
		s->left -= s->left ? room : 0;
		s->put++;
		return;
	}
	acc->loan.imm = slot_ends(l, s, n < 0);
}

/* There are none for it, or none so long: messages, then. */
static void stop_lending(struct accelerator *acc, const struct ledger *l)
{
	acc->lends = false;
	for (unsigned k = 0; k < l->options->window; k++) {
		struct slot *s = &acc->slot[k];
		size_t file = s->given[(s->next - 1) % GIVEN_MAX].file;

		acc->broken |= s->open && slot_room(l->options, s, l->files->at[file].size) < 0;
	}
}

static bool slot_lend(struct accelerator *acc, unsigned k, struct ledger *l)
{
	struct slot *s = &acc->slot[k];
	size_t room;
	int rc;

	if (acc->loan.data)
		return acc->loan.slot == k && loan_goes(acc);
	if ((!s->open && !slot_open(l, s, true)) || s->put - s->taken == LOANS)
		return false;
	room = s->left && s->left < LENT ? (size_t)s->left : LENT;
	rc = slmpm_loan(acc->peer, k, room < LENT_LEAST ? LENT_LEAST : room, &acc->loan.data, 0);
	if (rc < 0 && rc != -SLMPM_EAGAIN)
		stop_lending(acc, l);
	if (rc < 0)
		return rc != -SLMPM_EAGAIN;
	loan_fill(acc, k, l, room);
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
		return slot_lend(acc, k, l);
	if ((!s->open && !slot_open(l, s, false)) || (s->placed && s->put - s->taken == PLACES))
		return false;
	n = read_full(s->fd, s->chunk, s->step);
	if (n < (ssize_t)s->step) {
		imm = slot_ends(l, s, n < 0);
	}
	if (s->placed && n > 0)
		put_piece(acc, k, (size_t)n, imm, req);
	else
		send_piece(acc, k,
			   (struct slmpm_iov){.base = s->chunk, .len = n > 0 ? (size_t)n : 0}, imm,
			   req);
	return true;
}
