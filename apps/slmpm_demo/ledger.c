/* SPDX-License-Identifier: BSD-3-Clause */
/* The files' states, their digests' lines, and what the host hashes itself. */
#include "apps/slmpm_demo/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_ready(struct ledger *l)
{
	for (; l->printed < l->files->count; l->printed++) {
		const struct file *f = &l->files->at[l->printed];

		if (f->state < FILE_DONE)
			return;
		if (f->state == FILE_FAILED || l->options->quiet)
			continue;
		screen_clear();
		output_digest(f->digest, f->path);
	}
}

void ledger_failed(struct ledger *l, size_t file, int error)
{
	files_warn(l->files, l->files->at[file].path, strerror(error));
	l->files->at[file].state = FILE_FAILED;
	l->finished++;
	print_ready(l);
}

void ledger_done(struct ledger *l, size_t file, uint64_t bytes)
{
	struct file *f = &l->files->at[file];

	f->size = bytes;
	f->state = FILE_DONE;
	l->finished++;
	l->tally->files++;
	l->tally->bytes += bytes;
	counts_add(&l->tally->counts, bytes);
	print_ready(l);
}

bool ledger_is_over(const struct ledger *l)
{
	return l->files->all && l->finished == l->files->count;
}

bool ledger_next(struct ledger *l, size_t *file)
{
	if (l->again != NO_FILE) {
		*file = l->again;
		l->again = l->files->at[*file].again;
	} else if (l->next < l->files->count || files_more(l->files)) {
		*file = l->next++;
	} else {
		return false;
	}
	l->files->at[*file].state = FILE_GIVEN;
	return true;
}

void ledger_again(struct ledger *l, size_t file)
{
	l->files->at[file].state = FILE_WAITING;
	l->files->at[file].again = l->again;
	l->again = file;
}

ssize_t read_full(int fd, char *to, size_t len, uint64_t expected)
{
	size_t have = 0;
	ssize_t n;

	while (have < len) {
		n = read(fd, to + have, len - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		have += (size_t)n;
		if (n == 0 || have == expected)
			break;
	}
	return (ssize_t)have;
}

/* No accelerator is left: the host is slower alone, but right. */
void ledger_hash_here(struct ledger *l)
{
	struct digest *d = digest_new();
	char *chunk = malloc(CHUNK);
	size_t file;
	ssize_t n;
	int fd;

	while (d && chunk && !ending() && !output_error() && ledger_next(l, &file)) {
		fd = open(l->files->at[file].path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		n = fd < 0 ? -1 : 0;
		while (fd >= 0 && (n = read_full(fd, chunk, CHUNK, 0)) > 0) {
			digest_add(d, chunk, (size_t)n);
			screen_progress(l->files, l->tally);
		}
		if (n < 0) {
			ledger_failed(l, file, errno);
			digest_drop(d);
		} else {
			l->tally->here++;
			ledger_done(l, file, digest_end(d, l->files->at[file].digest));
		}
		if (fd >= 0)
			close(fd);
	}
	free(chunk);
	digest_free(d);
}
