/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host: keeps a window of files on their way to every accelerator, takes digests as they come,
 * and gives a lost accelerator's unfinished files to the others. Nothing here blocks but one
 * slmpm_wait over all requests: an accelerator's receive and the send of each of its slots.
 */
#include "apps/slmpm_demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIVEN_MAX 16 /* files of one slot whose digest is awaited */

struct given {
	size_t file;
	uint64_t sent_ns; /* when its last byte was handed over; 0: not yet */
};

struct slot { /* one stream to an accelerator: a file being read, earlier ones awaited */
	int fd;
	bool open;
	uint64_t first, next; /* of given, modulo GIVEN_MAX */
	struct given given[GIVEN_MAX];
	char *chunk;
};

struct accelerator {
	slmpm_peer peer;
	char name[64];
	struct slot slot[WINDOW_MAX];
	unsigned char answer[ANSWER_SIZE + 64];
	bool broken, gone; /* takes no more; is not, or no longer, there */
};

struct host {
	const struct options *options;
	struct files *files;
	struct tally *tally;
	slmpm_ctx ctx;
	struct accelerator *accel;
	slmpm_req *req;        /* accelerator by accelerator: its receive, then its slots' sends */
	unsigned living, open; /* accelerators; files being read */
	size_t next;           /* file that nobody has had */
	size_t *again, again_count; /* files that a lost accelerator had */
	size_t finished, printed;   /* files done or failed; printed in their order */
};

static slmpm_req *req_of(struct host *h, unsigned a, unsigned k)
{
	return &h->req[a * (h->options->window + 1) + k];
}

/* ---- files in and out ---- */

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

static void file_done(struct host *h, size_t file, uint64_t bytes)
{
	struct file *f = &h->files->at[file];

	f->size = bytes;
	f->state = FILE_DONE;
	h->finished++;
	h->tally->files++;
	h->tally->bytes += bytes;
	print_ready(h);
}

static bool file_next(struct host *h, size_t *file)
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

static void slot_close(struct host *h, struct slot *s)
{
	if (!s->open)
		return;
	close(s->fd);
	s->open = false;
	h->open--;
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
		if (s->fd < 0) {
			file_failed(h, file, errno);
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

/* Sends the next piece of slot K's file: true when there was one. */
static bool slot_feed(struct host *h, unsigned a, unsigned k)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[k];
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1};
	struct slmpm_iov piece = {.base = s->chunk};
	struct given *g;
	ssize_t n;

	if (!s->open && !slot_open(h, s))
		return false;
	n = read_full(s->fd, s->chunk, CHUNK);
	g = &s->given[(s->next - 1) % GIVEN_MAX];
	if (n < CHUNK) {
		how.imm = n < 0 ? IMM_FORGET : IMM_LAST;
		if (n < 0)
			file_failed(h, g->file, errno);
		slot_close(h, s);
		g->sent_ns = now_ns();
		if (n < 0)
			s->next--;
	}
	piece.len = n > 0 ? (size_t)n : 0;
	if (slmpm_sendv(acc->peer, k, &piece, 1, &how, req_of(h, a, k + 1)) < 0)
		acc->broken = true;
	return true;
}

/* ---- an accelerator ---- */

static void receive_next(struct host *h, unsigned a)
{
	struct accelerator *acc = &h->accel[a];
	const struct slmpm_iov piece = {.base = acc->answer, .len = sizeof(acc->answer) - 1};

	if (slmpm_recvv(acc->peer, ANSWER_STREAM, &piece, 1, NULL, req_of(h, a, 0)) < 0)
		acc->broken = true;
}

static void sample_ring(struct host *h)
{
	struct slmpm_stats s = {.size = sizeof(s)};
	double share;

	for (unsigned a = 0; a < h->options->accelerators; a++) {
		if (h->accel[a].gone || slmpm_peer_stats(h->accel[a].peer, &s, sizeof(s)) < 0 ||
		    !s.out_segments)
			continue;
		share = (double)(s.out_produced - s.out_consumed) / (double)s.out_segments;
		h->tally->ring_sum += share;
		h->tally->ring_samples++;
		if (share > h->tally->ring_most)
			h->tally->ring_most = share;
	}
}

static void count(struct host *h, const struct accelerator *acc)
{
	struct slmpm_stats s = {.size = sizeof(s)};

	if (slmpm_peer_stats(acc->peer, &s, sizeof(s)) < 0)
		return;
	h->tally->messages += s.sent_messages + s.received_messages;
	h->tally->remote_writes += s.remote_writes;
	h->tally->remote_reads += s.remote_reads;
}

static void drop(slmpm_req *req)
{
	struct slmpm_done done;

	if (req->id && slmpm_test(req, &done) == 0) {
		slmpm_cancel(*req);
		slmpm_test(req, &done);
	}
	*req = (slmpm_req){0};
}

/* Its unfinished files go back; what it had finished before has been received. */
static void bury(struct host *h, unsigned a, const char *why)
{
	struct accelerator *acc = &h->accel[a];
	size_t left = 0;

	for (unsigned k = 0; k < h->options->window; k++) {
		struct slot *s = &acc->slot[k];

		slot_close(h, s);
		for (; s->first < s->next; s->first++, left++)
			h->again[h->again_count++] = s->given[s->first % GIVEN_MAX].file;
		drop(req_of(h, a, k + 1));
	}
	acc->gone = acc->broken = true;
	drop(req_of(h, a, 0));
	h->living--;
	h->tally->lost++;
	h->tally->redone += left;
	count(h, acc);
	screen_clear();
	fprintf(stderr, "slmpm_demo: lost %s: %s; %zu unfinished files are done again by %s\n",
		acc->name, why, left, h->living ? "the others" : "the host itself");
	slmpm_kill(acc->peer, 0); /* should it still run, as after breaking the protocol */
	slmpm_join(acc->peer, NULL, 1000);
}

static void take_answer(struct host *h, unsigned a, const struct slmpm_done *done)
{
	struct accelerator *acc = &h->accel[a];
	struct slot *s = &acc->slot[done->imm % WINDOW_MAX];
	uint64_t bytes = 0;
	struct given g;

	if (done->len != ANSWER_SIZE || done->imm >= h->options->window || s->first == s->next) {
		bury(h, a, "a wrong answer");
		return;
	}
	g = s->given[s->first++ % GIVEN_MAX];
	for (int i = 0; i < 8; i++)
		bytes |= (uint64_t)acc->answer[DIGEST_SIZE + i] << 8 * i;
	memcpy(h->files->at[g.file].digest, acc->answer, DIGEST_SIZE);
	hist_add(&h->tally->latency, now_ns() - g.sent_ns);
	file_done(h, g.file, bytes);
	receive_next(h, a);
}

static void complete(struct host *h, unsigned a, unsigned k, const struct slmpm_done *done)
{
	/* A failed send only stops the feeding: answers that came before are still to be read. */
	if (k && done->status < 0)
		h->accel[a].broken = true;
	else if (!k && done->status < 0)
		bury(h, a, slmpm_strerror(done->status));
	else if (!k)
		take_answer(h, a, done);
}

static int accelerator_start(struct host *h, unsigned a)
{
	static char *const argv[] = {"--accelerator", NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how), .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct accelerator *acc = &h->accel[a];

	how.ctx = h->ctx;
	if (slmpm_spawn(&acc->peer, "/proc/self/exe", argv, &how) < 0)
		return slmpm_perror("slmpm_demo: start of an accelerator");
	slmpm_peer_query(acc->peer, &info);
	snprintf(acc->name, sizeof(acc->name), "accelerator %u (pid %d)", a + 1, info.pid);
	for (unsigned k = 0; k < h->options->window; k++)
		if (!(acc->slot[k].chunk = malloc(CHUNK)))
			return 1;
	acc->gone = false;
	h->living++;
	receive_next(h, a);
	return 0;
}

/* ---- the loop ---- */

static bool step(struct host *h, unsigned a, unsigned k)
{
	slmpm_req *req = req_of(h, a, k);
	struct slmpm_done done;

	if (h->accel[a].gone)
		return false;
	if (req->id) {
		if (slmpm_test(req, &done) != 1)
			return false;
		complete(h, a, k, &done);
		return true;
	}
	return k && !h->accel[a].broken && slot_feed(h, a, k - 1);
}

static bool step_all(struct host *h)
{
	bool moved = false;

	for (unsigned k = 0; k <= h->options->window; k++)
		for (unsigned a = 0; a < h->options->accelerators; a++)
			moved |= step(h, a, k);
	return moved;
}

static void wait_any(struct host *h)
{
	unsigned each = h->options->window + 1;
	struct slmpm_done done;
	int i;

	fflush(stdout); /* whoever reads the digests waits as well */
	i = slmpm_wait(h->req, (int)(h->options->accelerators * each), &done, 100);

	if (i >= 0)
		complete(h, (unsigned)i / each, (unsigned)i % each, &done);
}

/* No accelerator is left: the host is slower alone, but right. */
static void hash_here(struct host *h)
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

/* The accelerators' own counters, then their end. */
static void part(struct host *h)
{
	const struct slmpm_how how = {.size = sizeof(how), .imm = IMM_BYE, .timeout_ms = 5000};
	unsigned long long writes, reads;
	struct accelerator *acc;
	struct slmpm_done done;
	slmpm_req *req;

	for (unsigned a = 0; a < h->options->accelerators; a++)
		if (!h->accel[a].gone)
			slmpm_sendv(h->accel[a].peer, 0, NULL, 0, &how, NULL);
	for (unsigned a = 0; a < h->options->accelerators; a++) {
		acc = &h->accel[a];
		req = req_of(h, a, 0);
		if (acc->gone)
			continue;
		if (slmpm_wait(req, 1, &done, 5000) == 0 && done.status == 0 &&
		    done.imm == IMM_COUNTERS && done.len < sizeof(acc->answer)) {
			acc->answer[done.len] = '\0';
			if (sscanf((char *)acc->answer, "%llu %llu", &writes, &reads) == 2) {
				h->tally->remote_writes += writes;
				h->tally->remote_reads += reads;
			}
		}
		count(h, acc);
		if (slmpm_join(acc->peer, NULL, 5000) < 0)
			slmpm_kill(acc->peer, 0);
	}
}

static int work(struct host *h)
{
	uint64_t begin = now_ns(), passes = 0;

	while (h->finished < h->files->count && h->living) {
		if (!step_all(h))
			wait_any(h);
		if (passes++ % 64 == 0) {
			sample_ring(h);
			fflush(stdout);
		}
		screen_progress(h->files, h->tally);
	}
	if (h->finished < h->files->count)
		hash_here(h);
	h->tally->seconds = (double)(now_ns() - begin) / 1e9;
	return h->finished < h->files->count;
}

int host_run(const struct options *options, struct files *files, struct tally *tally)
{
	unsigned n = options->accelerators;
	struct host h = {.options = options, .files = files, .tally = tally};
	int failed = 0;

	h.accel = calloc(n, sizeof(*h.accel));
	h.req = calloc((size_t)n * (options->window + 1), sizeof(*h.req));
	h.again = calloc(files->count + 1, sizeof(*h.again));
	if (!h.accel || !h.req || !h.again || slmpm_open(&h.ctx, NULL) < 0)
		return slmpm_perror("slmpm_demo: open");
	hist_clear(&tally->latency);
	for (unsigned a = 0; a < n; a++)
		h.accel[a].gone = true;
	for (unsigned a = 0; a < n && !failed; a++)
		failed = accelerator_start(&h, a);
	tally->accelerators = n;
	if (!failed)
		failed = work(&h);
	part(&h);
	slmpm_shut(h.ctx, 1000);
	for (unsigned a = 0; a < n; a++)
		for (unsigned k = 0; k < options->window; k++)
			free(h.accel[a].slot[k].chunk);
	free(h.accel);
	free(h.req);
	free(h.again);
	return failed;
}
