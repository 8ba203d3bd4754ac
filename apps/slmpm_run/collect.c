/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of several processes do not mix: each is written at once. */
#include "apps/slmpm_run/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_all(int fd, const char *data, size_t length)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	while (length) {
		ssize_t n = write(fd, data, length);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (n < 0 && errno != EINTR)
			return; /* nobody reads it */
		data += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
}

static int open_file(const struct collection *c, bool error, uint32_t element)
{
	char path[PATH_MAX], who[16] = "host";
	struct stat st;
	bool folder = stat(c->output, &st) == 0 && S_ISDIR(st.st_mode);
	int fd;

	if (element)
		snprintf(who, sizeof(who), "%u", element);
	snprintf(path, sizeof(path), "%s%s%s.%s", c->output, folder ? "/" : "-", who,
		 error ? "err" : "out");
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		fprintf(stderr, "slmpm_run: %s: %s\n", path, strerror(errno));
	return fd;
}

bool collect_add(struct collection *c, int fd, bool error, uint32_t element, const char *host)
{
	struct stream *wider = realloc(c->streams, (c->count + 1) * sizeof(*wider)), *s;

	if (!wider) {
		close(fd);
		return false;
	}
	c->streams = wider;
	s = &wider[c->count];
	*s = (struct stream){.fd = fd, .to = error ? 2 : 1, .whole = c->output != NULL};
	if (c->output)
		s->to = open_file(c, error, element);
	else
		s->line = malloc(LINE_MAX_BYTES);
	if (s->to < 0 || (!c->output && !s->line)) {
		close(fd);
		return false;
	}
	if (element && strcmp(host, "-") != 0)
		snprintf(s->label, sizeof(s->label), "[%u %s] ", element, host);
	else if (element)
		snprintf(s->label, sizeof(s->label), "[%u] ", element);
	else
		snprintf(s->label, sizeof(s->label), "[host] ");
	c->count++;
	return true;
}

static void put_line(struct stream *s, const char *line, size_t length)
{
	char text[sizeof(s->label) + LINE_MAX_BYTES + 1];
	size_t label = strlen(s->label);
	bool ended = length && line[length - 1] == '\n';

	memcpy(text, s->label, label);
	memcpy(text + label, line, length);
	text[label + length] = '\n';
	write_all(s->to, text, label + length + !ended);
}

static void put_lines(struct stream *s)
{
	size_t at = 0;
	char *end;

	while ((end = memchr(s->line + at, '\n', s->have - at))) {
		size_t n = (size_t)(end - s->line) + 1 - at;

		put_line(s, s->line + at, n);
		at += n;
	}
	if (!at && s->have == LINE_MAX_BYTES) {
		put_line(s, s->line, s->have);
		at = s->have;
	}
	s->have -= at;
	memmove(s->line, s->line + at, s->have);
}

bool collect_read(struct collection *c, size_t i)
{
	struct stream *s = &c->streams[i];
	char chunk[65536];
	ssize_t n = s->whole ? read(s->fd, chunk, sizeof(chunk)) :
			       read(s->fd, s->line + s->have, LINE_MAX_BYTES - s->have);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n > 0 && s->whole) {
		write_all(s->to, chunk, (size_t)n);
	} else if (n > 0) {
		s->have += (size_t)n;
		put_lines(s);
	}
	if (n > 0)
		return true;
	if (s->have)
		put_line(s, s->line, s->have);
	close(s->fd);
	if (s->whole)
		close(s->to);
	free(s->line);
	*s = (struct stream){.fd = -1, .to = -1};
	return false;
}

size_t collect_open(const struct collection *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->streams[i].fd >= 0;
	return n;
}

void collect_end(struct collection *c)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->streams[i].fd < 0)
			continue;
		close(c->streams[i].fd);
		free(c->streams[i].line);
		if (c->streams[i].whole)
			close(c->streams[i].to);
	}
	free(c->streams);
}
