/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay's start, from the request to "it runs". No context is held meanwhile. */

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "slmpm/launch/arrive.h"
#include "slmpm/base/error.h"
#include "slmpm/launch/launch.h"
#include "slmpm/link/wait.h"
#include "slmpm/base/wire.h"

#define ANSWER_MAX 1024

/* Between this library and its relay, which are of one installation: this, then the payload. */
struct __attribute__((packed)) head {
	uint32_t length;
	unsigned char type;
};

enum { TYPE_START = 2, TYPE_RUNS = 7, TYPE_FAILED = 8 };

struct start {
	struct remote_request request;
	const struct fabric *fabric;
	uint32_t element;
	struct arrive *arrive;
	struct process process;
	int fd; /* to the relay, until it has answered */
	uint64_t deadline;
};

/* ---- the relay ---------------------------------------------------------------------------- */

/* By its name; else beside the program that runs, as in a folder that nobody has in PATH. */
static const char *find_runner(char path[PATH_MAX])
{
	const char *name = config_get()->runner;
	ssize_t n;
	char *slash;

	if (strchr(name, '/') || launch_find(name, path) == 0)
		return name;
	n = readlink("/proc/self/exe", path, PATH_MAX - strlen(name) - 1);
	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (slash)
		strcpy(slash + 1, name);
	return slash && eaccess(path, X_OK) == 0 ? path : name;
}

static int remote_launch(struct start *s, int fd)
{
	const struct slmpm_spawn_options o = {.flags = s->request.options->flags &
						       SLMPM_SPAWN_DIE_WITH_HOST};
	static char word[] = "--relay";
	char *const argv[] = {word, NULL};
	char path[PATH_MAX];
	const char *runner = find_runner(path);
	struct launch l = {
		.fd = fd,
		.element = s->element,
		.host = s->request.place->host,
		.name = s->request.prog,
	};
	int rc = launch_run(&l, &s->process, runner, argv, &o);

	return rc < 0 ? error_set(SLMPM_ENOENT, "%s: SLMPM_RUNNER=%.80s cannot be started: %s",
				  s->request.place->host, runner, strerror(-rc)) :
			0;
}

/* By POLLOUT sends what DATA holds, by POLLIN receives it. */
static int remote_move(struct start *s, short by, void *data, size_t left)
{
	struct pollfd p = {.fd = s->fd, .events = by};
	unsigned char *at = data;

	while (left) {
		ssize_t n = by == POLLOUT ? send(s->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT) :
					    recv(s->fd, at, left, MSG_DONTWAIT);

		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
		if (n < 0)
			n = poll(&p, 1, clock_ms(clock_now(), s->deadline, -1));
		if (n == 0)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* The answer: that the program runs, or in *REFUSED why not, the detail set. Negative errno. */
static int remote_take_answer(struct start *s, int *refused)
{
	unsigned char text[ANSWER_MAX + 1];
	struct head head;
	uint32_t length, error;
	int rc = remote_move(s, POLLIN, &head, sizeof(head));

	if (rc < 0)
		return rc;
	length = le32toh(head.length);
	if (length > ANSWER_MAX || (rc = remote_move(s, POLLIN, text, length)) < 0)
		return rc < 0 ? rc : -EPROTO;
	text[length] = 0;
	if (head.type == TYPE_RUNS)
		return 0;
	if (head.type != TYPE_FAILED || length < sizeof(error))
		return -EPROTO;
	memcpy(&error, text, sizeof(error));
	error = le32toh(error);
	*refused =
		error_set(error && error <= WIRE_ERROR_LAST ? -wire_status(error) : SLMPM_ESYSTEM,
			  "%s", text + sizeof(error));
	return 0;
}

static int converse(struct start *s, char *text, size_t length)
{
	struct head head = {htole32((uint32_t)length), TYPE_START};
	int refused = 0, rc = remote_move(s, POLLOUT, &head, sizeof(head));

	rc = rc < 0 ? rc : remote_move(s, POLLOUT, text, length);
	rc = rc < 0 ? rc : remote_take_answer(s, &refused);
	if (rc == -ETIMEDOUT)
		return error_set(SLMPM_ETIMEOUT, "%s: not started within %lld ms (SLMPM_START_MS)",
				 s->request.place->host, (long long)config_get()->start_ms);
	return rc < 0 ? error_set(SLMPM_ESYSTEM, "%s: the relay does not answer: %s",
				  s->request.place->host, strerror(-rc)) :
			refused;
}

static void remote_give_up(struct start *s)
{
	if (s->process.pid > 0) {
		(void)kill(s->process.pid, SIGKILL);
		(void)waitpid(s->process.pid, NULL, 0);
		job_ended(s->process.pid, -1); /* what is to be said of it is the call's to say */
	}
	if (s->process.pidfd >= 0)
		close(s->process.pidfd);
	if (s->process.death_pipe >= 0)
		close(s->process.death_pipe);
	arrive_free(s->arrive);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int make_request(struct start *s, char **text, size_t *length)
{
	struct remote_request *r = &s->request;
	const char *address = r->place->set[PLACE_LISTEN];
	const char *name =
		mode_fabric(MODE_THERE, r->place->set[PLACE_FABRIC], config_get()->fabric);
	char secret[SECRET_TEXT], *url;
	int rc;

	s->fabric = fabric_find(name);
	if (!s->fabric)
		return error_set(SLMPM_ENOTSUP, "%s: there is no fabric \"%s\"", r->place->host,
				 name);
	if (!address && !config_get()->insecure)
		return error_set(SLMPM_EACCES,
				 "%s: the way back leads over a network, where nothing protects "
				 "what travels; SLMPM_INSECURE=y allows it (slmpm_run --insecure)",
				 r->place->host);
	rc = arrive_listen(s->arrive, address);
	if (rc < 0)
		return rc;
	url = arrive_url(s->arrive, address);
	if (!url)
		return error_set(
			SLMPM_EADDRESS,
			"%s: this machine has no address to be reached at (topology: listen)",
			r->place->host);
	secret_text(&s->arrive->secret, secret);
	r->url = url;
	r->secret = secret;
	rc = remote_request_make(r, text, length);
	free(url);
	return rc;
}

static int remote_start(struct start *s)
{
	char *text = NULL;
	size_t length = 0;
	int fds[2], rc = make_request(s, &text, &length);

	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		free(text);
		return error_system(-errno, "a socket to the relay cannot be made");
	}
	rc = remote_launch(s, fds[1]);
	close(fds[1]);
	s->fd = fds[0];
	rc = rc < 0 ? rc : converse(s, text, length);
	close(fds[0]);
	explicit_bzero(text, length); /* there is a secret in it */
	free(text);
	return rc;
}

/* The program runs: an endpoint that waits for it. */
static int await_it(struct start *s, struct context *ctx, slmpm_peer *peer)
{
	struct endpoint *ep = endpoint_new(ctx, s->fabric);
	int rc;

	if (!ep)
		return -SLMPM_ENOMEM;
	ep->rooms->process = malloc(sizeof(*ep->rooms->process));
	if (!ep->rooms->process) {
		endpoint_free(ep);
		return error_set(SLMPM_ENOMEM, "for a process");
	}
	*ep->rooms->process = s->process;
	ep->rooms->process->arrive = s->arrive;
	ep->life->element = s->element;
	ep->life->pid = s->process.pid;
	snprintf(ep->life->remote, sizeof(ep->life->remote), "%s", s->request.place->host);
	endpoint_name(ep);
	rc = arrive_begin(s->arrive, ep);
	if (rc == 0) {
		peer->id = handle_id(ep);
		return 0;
	}
	ep->rooms->process->arrive = NULL; /* who gives up closes all of it */
	ep->rooms->process->death_pipe = -1;
	endpoint_free(ep);
	s->arrive->ep = NULL;
	return error_system(rc, "the way back cannot be watched");
}

int remote_spawn(slmpm_peer *peer, struct context *ctx, const char *prog, char *const argv[],
		 const struct slmpm_spawn_options *o, uint32_t element, const struct place *place)
{
	struct start s = {
		.request = {.place = place, .prog = prog, .argv = argv, .options = o},
		.element = element,
		.arrive = calloc(1, sizeof(*s.arrive)),
		.process = {.pidfd = -1, .death_pipe = -1},
		.deadline = clock_deadline((int)config_get()->start_ms),
	};
	int rc = context_forbids(ctx, "slmpm_spawn on another host");

	if (s.arrive)
		s.arrive->listening.fd = -1;
	else if (rc == 0)
		rc = error_set(SLMPM_ENOMEM, "for a start elsewhere");
	rc = rc < 0 ? rc : remote_start(&s);
	if (rc == 0) {
		context_lock(ctx);
		rc = await_it(&s, ctx, peer);
		context_unlock(ctx);
	}
	if (rc < 0 && s.arrive)
		remote_give_up(&s);
	return rc;
}
