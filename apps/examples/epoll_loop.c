/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application with an event loop of its own: standard input, a timer and the library's one
 * descriptor in one epoll. Lines typed here come back in capitals from an accelerator (this same
 * program, started again); every second without input the loop says so.
 */
#include <slmpm.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LINE_MAX_LEN 4096

struct loop {
	slmpm_ctx ctx;
	slmpm_peer accel;
	int epoll, timer;
	int input_open;
	unsigned long sent, received;
};

/* The accelerator: blocking calls suffice here. */
static int capitals(void)
{
	char line[LINE_MAX_LEN];
	slmpm_peer host;
	int64_t len;

	if (slmpm_parent(&host) < 0)
		return slmpm_perror("parent");
	while ((len = slmpm_recv(host, 0, line, sizeof(line), NULL, -1)) >= 0) {
		for (int64_t i = 0; i < len; i++)
			line[i] = (char)toupper((unsigned char)line[i]);
		if (slmpm_send(host, 0, line, (size_t)len, -1) < 0)
			return slmpm_perror("send");
	}
	return len == -SLMPM_ECLOSED ? 0 : slmpm_perror("receive");
}

/* Takes everything that has arrived: readiness says "look", not how much there is. */
static int on_messages(struct loop *l)
{
	char line[LINE_MAX_LEN];
	int64_t len;

	while ((len = slmpm_recv(l->accel, 0, line, sizeof(line), NULL, 0)) >= 0) {
		printf("%.*s\n", (int)len, line);
		l->received++;
	}
	fflush(stdout);
	return len == -SLMPM_EAGAIN ? 0 : slmpm_perror("receive");
}

static int on_input(struct loop *l)
{
	static char held[LINE_MAX_LEN];
	static size_t have;
	ssize_t n = read(STDIN_FILENO, held + have, sizeof(held) - have);
	size_t len;

	if (n <= 0) {
		l->input_open = 0;
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		n = 0;
	}
	have += (size_t)n;
	while (have > 0) {
		char *end = memchr(held, '\n', have);

		if (!end && l->input_open && have < sizeof(held))
			break;
		len = end ? (size_t)(end - held) : have;
		if (slmpm_send(l->accel, 0, held, len, 1000) < 0)
			return slmpm_perror("send");
		l->sent++;
		have -= len + (end ? 1 : 0);
		memmove(held, held + len + (end ? 1 : 0), have);
	}
	return 0;
}

static int on_timer(struct loop *l)
{
	uint64_t ticks;

	if (read(l->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
		fprintf(stderr, "idle; %lu lines out, %lu back\n", l->sent, l->received);
	return 0;
}

static int watch(int epoll, int fd)
{
	struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want);
}

static int run(struct loop *l)
{
	const struct itimerspec second = {{1, 0}, {1, 0}};
	int fd = slmpm_fd(l->ctx), failed = 0;
	struct epoll_event ready;

	while (!failed && (l->input_open || l->received < l->sent)) {
		/* 1: something has arrived meanwhile, the descriptor may stay silent about it. */
		if (slmpm_arm(l->ctx) != 0) {
			failed = on_messages(l);
			continue;
		}
		timerfd_settime(l->timer, 0, &second, NULL);
		if (epoll_wait(l->epoll, &ready, 1, -1) != 1)
			continue;
		if (ready.data.fd == fd)
			failed = on_messages(l);
		else if (ready.data.fd == l->timer)
			failed = on_timer(l);
		else
			failed = on_input(l);
	}
	return failed;
}

int main(int argc, char **argv)
{
	static char *const again[] = {"capitals", NULL};
	struct slmpm_spawn_options how = {.size = sizeof(how)};
	struct loop l = {.input_open = 1};

	if (argc > 1 && strcmp(argv[1], "capitals") == 0)
		return capitals();
	if (argc > 1) {
		int help = strcmp(argv[1], "-h") == 0;

		fprintf(help ? stdout : stderr, "usage: epoll_loop\n");
		return help ? 0 : 2;
	}
	if (slmpm_open(&l.ctx, NULL) < 0)
		return slmpm_perror("open");
	how.ctx = l.ctx;
	if (slmpm_spawn(&l.accel, "/proc/self/exe", again, &how) < 0)
		return slmpm_perror("start");
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	l.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (watch(l.epoll, slmpm_fd(l.ctx)) || watch(l.epoll, l.timer) ||
	    watch(l.epoll, STDIN_FILENO)) {
		perror("epoll (standard input must be a terminal or a pipe)");
		return 1;
	}
	return run(&l) || slmpm_join(l.accel, NULL, 5000) != 0 || slmpm_shut(l.ctx, 1000) < 0;
}
