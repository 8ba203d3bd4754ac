/* SPDX-License-Identifier: BSD-3-Clause */
/* From files to messages: a file's bytes on a slot's stream, or put into the slot's places. */
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

static bool slot_open(struct ledger *l, struct slot *s)
{
	size_t file;

	while (s->next - s->first < GIVEN_MAX && ledger_next(l, &file)) {
		s->fd = open(l->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (s->fd < 0 && (errno == EMFILE || errno == ENFILE) && l->open) {
			ledger_again(l, file); /* once another one is read */
			return false;
		}
		if (s->fd < 0 || slot_room(l->options, s, l->files->at[file].size)) {
			ledger_failed(l, file, errno);
			if (s->fd >= 0)
				close(s->fd);
			continue;
		}
		posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
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

bool slot_feed(struct accelerator *acc, unsigned k, struct ledger *l, slmpm_req *req)
{
	struct slot *s = &acc->slot[k];
	struct given *g;
	uint32_t imm = 0;
	ssize_t n;

	if ((!s->open && !slot_open(l, s)) || (s->placed && s->put - s->taken == PLACES))
		return false;
	n = read_full(s->fd, s->chunk, s->step);
	g = &s->given[(s->next - 1) % GIVEN_MAX];
	if (n < (ssize_t)s->step) {
		imm = n < 0 ? IMM_FORGET : IMM_LAST;
		if (n < 0)
			ledger_failed(l, g->file, errno);
		slot_close(s, l);
		g->sent_ns = now_ns();
		if (n < 0)
			s->next--;
	}
	if (s->placed && n > 0)
		put_piece(acc, k, (size_t)n, imm, req);
	else
		send_piece(acc, k,
			   (struct slmpm_iov){.base = s->chunk, .len = n > 0 ? (size_t)n : 0}, imm,
			   req);
	return true;
}
