/* SPDX-License-Identifier: BSD-3-Clause */
/* From files to messages: which file comes next, its bytes on a slot's stream, its digest's line. */
#include "apps/slmpm_demo/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_ready(struct host *h)
{
	for (; h->printed < h->files->count; h->printed++) {
		const struct file *f = &h->files->at[h->printed];

		if (f->state < FILE_DONE)
			return;
		if (f->state == FILE_FAILED || h->options->quiet)
			continue;
		screen_clear();
		digest_print(f->digest, f->path);
	}
}

static void file_failed(struct host *h, size_t file, int error)
{
	files_warn(h->files, h->files->at[file].path, strerror(error));
	h->files->at[file].state = FILE_FAILED;
	h->finished++;
	print_ready(h);
}

void file_done(struct host *h, size_t file, uint64_t bytes)
{
	struct file *f = &h->files->at[file];

	f->size = bytes;
	f->state = FILE_DONE;
	h->finished++;
	h->tally->files++;
	h->tally->bytes += bytes;
	print_ready(h);
}

bool file_next(struct host *h, size_t *file)
{
	if (h->again_count)
		*file = h->again[--h->again_count];
	else if (h->next < h->files->count)
		*file = h->next++;
	else
		return false;
	h->files->at[*file].state = FILE_GIVEN;
	return true;
}

/* Reads until LEN bytes or the file's end. */
static ssize_t read_full(int fd, char *to, size_t len)
{
	size_t have = 0;
	ssize_t n;

	while (have < len) {
		n = read(fd, to + have, len - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* ---- a slot ---- */

void slot_close(struct host *h, struct slot *s)
{
	if (!s->open)
		return;
	close(s->fd);
	s->open = false;
	h->open--;
}

/* A large file goes in larger messages; memory for them only where there is one. */
static int slot_room(const struct options *o, struct slot *s, uint64_t size)
{
	bool large = size >= LARGE && o->accelerators * o->window <= LARGE_MAX;
	size_t room = large ? CHUNK_LARGE : CHUNK;
	char *more;

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

static bool slot_open(struct host *h, struct slot *s)
{
	size_t file;

	while (s->next - s->first < GIVEN_MAX && file_next(h, &file)) {
		s->fd = open(h->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (s->fd < 0 && (errno == EMFILE || errno == ENFILE) && h->open) {
			h->files->at[file].state = FILE_WAITING;
			h->again[h->again_count++] = file; /* once another one is read */
			return false;
		}
		if (s->fd < 0 || slot_room(h->options, s, h->files->at[file].size)) {
			file_failed(h, file, errno);
			if (s->fd >= 0)
				close(s->fd);
			continue;
		}
		posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		s->given[s->next++ % GIVEN_MAX] = (struct given){.file = file};
		s->open = true;
		h->open++;
		return true;
	}
	return false;
}

/* Puts PIECE where it belongs; what is left to send says how much that is. */
static bool slot_put(struct accelerator *acc, unsigned k, struct slmpm_iov *piece)
{
	struct slot *s = &acc->slot[k];

	if (slmpm_put(acc->places, place_of(k, s->put), piece->base, piece->len, NULL, NULL) < 0) {
		acc->broken = true;
		return false;
	}
	s->put++;
	count_write(s->said, piece->len);
	*piece = (struct slmpm_iov){.base = s->said, .len = sizeof(s->said)};
	return true;
}

bool slot_feed(struct host *h, unsigned a, unsigned k)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[k];
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	struct slmpm_iov piece;
	struct given *g;
	ssize_t n;

	if ((!s->open && !slot_open(h, s)) || (s->placed && s->put - s->taken == PLACES))
		return false;
	n = read_full(s->fd, s->chunk, s->step);
	g = &s->given[(s->next - 1) % GIVEN_MAX];
	if (n < (ssize_t)s->step) {
		how.imm = n < 0 ? IMM_FORGET : IMM_LAST;
		if (n < 0)
			file_failed(h, g->file, errno);
		slot_close(h, s);
		g->sent_ns = now_ns();
		if (n < 0)
			s->next--;
	}
	piece = (struct slmpm_iov){.base = s->chunk, .len = n > 0 ? (size_t)n : 0};
	if (s->placed && n > 0 && slot_put(acc, k, &piece))
		how.imm |= IMM_PLACED;
	if (acc->broken || slmpm_sendv(acc->peer, k, &piece, 1, &how, req_of(h, a, k + 1)) < 0)
		acc->broken = true;
	return true;
}

/* ---- without accelerators ---- */

/* No accelerator is left: the host is slower alone, but right. */
void hash_here(struct host *h)
{
	struct digest *d = digest_new();
	char *chunk = malloc(CHUNK);
	size_t file;
	ssize_t n;
	int fd;

	while (d && chunk && file_next(h, &file)) {
		fd = open(h->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		n = fd < 0 ? -1 : 0;
		while (fd >= 0 && (n = read_full(fd, chunk, CHUNK)) > 0) {
			digest_add(d, chunk, (size_t)n);
			screen_progress(h->files, h->tally);
		}
		if (n < 0) {
			file_failed(h, file, errno);
			digest_drop(d);
		} else {
			h->tally->here++;
			file_done(h, file, digest_end(d, h->files->at[file].digest));
		}
		if (fd >= 0)
			close(fd);
	}
	free(chunk);
	digest_free(d);
}
