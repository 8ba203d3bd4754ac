/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric's table whose calls on far domains and links are made by another program. */
#include "tests/lib/far.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/far_call.h"
#include "tests/lib/other_build.h"
#include "tests/lib/test.h"

#define PROGRAM "tests/fabric/far_end"

/* ---- the other program ---------------------------------------------------------------------- */

static struct {
	pid_t owner; /* who started it: a child that is forked has one of its own */
	pid_t child;
	int socket;
	struct parcel parcel;
} program;

static void run(int socket)
{
	char *words[OTHER_WORDS + 2], number[16];
	int n = other_build(words, PROGRAM);

	CHECK(n, "SLMPM_TEST_FAR without SLMPM_TEST_PEER");
	snprintf(number, sizeof(number), "%d", socket);
	words[n] = number;
	words[n + 1] = NULL;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)fcntl(socket, F_SETFD, 0);
	execvp(words[0], words);
	CHECK(false, "%s cannot be run", words[0]);
}

static void start(void)
{
	int fds[2];

	if (program.owner == getpid())
		return;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "no socket pair");
	program.owner = getpid();
	program.socket = fds[0];
	fflush(stdout);
	program.child = fork();
	CHECK(program.child >= 0, "fork failed");
	if (program.child == 0)
		run(fds[1]);
	close(fds[1]);
}

static struct parcel *begin(enum far_call call, const void *object)
{
	start();
	parcel_clear(&program.parcel);
	parcel_put(&program.parcel, call);
	parcel_put(&program.parcel, (uintptr_t)object);
	return &program.parcel;
}

static void ask(void)
{
	int status = 0;

	parcel_send(program.socket, &program.parcel);
	if (parcel_receive(program.socket, &program.parcel))
		return;
	CHECK(waitpid(program.child, &status, 0) == program.child, "the other program is lost");
	CHECK(!WIFSIGNALED(status), "the other program ended by signal %d", WTERMSIG(status));
	CHECK(false, "the other program ended with %d", WEXITSTATUS(status));
}

void far_held(int *descriptors, int *mappings)
{
	struct parcel *p = begin(FAR_HELD, NULL);

	ask();
	*descriptors = (int)parcel_get(p);
	*mappings = (int)parcel_get(p);
}

/* ---- what is far ---------------------------------------------------------------------------- */

struct copy { /* of an arrival that has not been released */
	struct copy *next;
	uint64_t token;
	uint32_t span;
	unsigned char data[];
};

struct link {
	struct link *next;
	struct fabric_link *link;
	char texts[2][FAR_TEXT];
	struct copy *copies;
	void *built, *into; /* what reserve gave; where a payload lands */
	int lent;           /* descriptor of what address said last */
};

struct domain {
	struct domain *next;
	struct fabric_domain *domain;
	struct link *links;
};

static struct domain *domains;

int far_side(void)
{
	const char *side = getenv("SLMPM_TEST_FAR");

	if (!side || !*side)
		return -1;
	CHECK(!strcmp(side, "left") || !strcmp(side, "right"), "SLMPM_TEST_FAR is left or right");
	return !strcmp(side, "right");
}

static struct domain **place_of(const struct fabric_domain *domain)
{
	struct domain **at = &domains;

	while (*at && (*at)->domain != domain)
		at = &(*at)->next;
	return at;
}

static bool is_far(const struct fabric_link *l)
{
	return *place_of(l->domain);
}

void far_take(struct fabric_domain *domain)
{
	struct domain *d = calloc(1, sizeof(*d));

	CHECK(d, "out of memory");
	*d = (struct domain){.next = domains, .domain = domain};
	domains = d;
}

static struct link *find(const struct fabric_link *l)
{
	struct link *link = (*place_of(l->domain))->links;

	while (link && link->link != l)
		link = link->next;
	return link;
}

/* The other program's link is made when it is first needed: its bell is the right one by then. */
static struct link *link_of(struct fabric_link *l)
{
	struct domain *d = *place_of(l->domain);
	struct link *link = find(l);
	struct parcel *p;

	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	CHECK(link, "out of memory");
	*link = (struct link){.next = d->links, .link = l, .lent = -1};
	d->links = link;
	p = begin(FAR_LINK, l);
	parcel_put(p, (uintptr_t)l->domain);
	parcel_put(p, l->active);
	parcel_put_fd(p, l->bell);
	ask();
	return link;
}

static struct parcel *begin_link(enum far_call call, struct fabric_link *l)
{
	(void)link_of(l);
	return begin(call, l);
}

static void ask_link(struct fabric_link *l)
{
	ask();
	far_get_state(&program.parcel, l, link_of(l)->texts);
}

static void take_back(struct link *link)
{
	if (link->lent >= 0)
		close(link->lent);
	link->lent = -1;
}

static void forget(struct link *link)
{
	for (struct copy *c; (c = link->copies);) {
		link->copies = c->next;
		free(c);
	}
	take_back(link);
	free(link->built);
	free(link);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct fabric *real;

static int probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	int rc = real->probe(config, caps);

	caps->ops &= ~((1ull << FABRIC_WRITE) | (1ull << FABRIC_READ) | (1ull << FABRIC_ATOMIC));
	return rc;
}

static int far_open(struct fabric_domain *domain)
{
	struct parcel *p;
	int rc;

	if (!*place_of(domain))
		return real->open(domain);
	p = begin(FAR_OPEN, domain);
	parcel_put_text(p, real->name);
	far_put_config(p, &domain->config);
	ask();
	rc = (int)parcel_get(p);
	if (rc == 0)
		domain->fd = parcel_get(p) ? parcel_get_fd(p) : -1;
	return rc;
}

static void far_close(struct fabric_domain *domain)
{
	struct domain **at = place_of(domain), *d = *at;

	if (!d) {
		real->close(domain);
		return;
	}
	if (!domain->forked) { /* the other program is the parent's */
		(void)begin(FAR_CLOSE, domain);
		ask();
	}
	if (domain->fd >= 0)
		close(domain->fd);
	for (struct link *link; (link = d->links);) {
		d->links = link->next;
		forget(link);
	}
	*at = d->next;
	free(d);
}

static int address(struct fabric_link *l, int round, struct fabric_blob *out)
{
	struct link *link;
	struct parcel *p;
	int rc;

	if (!is_far(l))
		return real->address(l, round, out);
	p = begin_link(FAR_ADDRESS, l);
	link = link_of(l);
	take_back(link);
	parcel_put(p, (uint64_t)round);
	ask_link(l);
	rc = (int)parcel_get(p);
	if (rc == 0) {
		far_get_blob(p, out);
		link->lent = out->fd;
	}
	return rc;
}

static int connect_far(struct fabric_link *l, int round, struct fabric_blob *in)
{
	struct parcel *p;

	if (!is_far(l))
		return real->connect(l, round, in);
	p = begin_link(FAR_CONNECT, l);
	parcel_put(p, (uint64_t)round);
	parcel_put(p, in != NULL);
	if (in)
		far_put_blob(p, in);
	ask_link(l);
	return (int)parcel_get(p);
}

static void disconnect(struct fabric_link *l)
{
	if (!is_far(l)) {
		real->disconnect(l);
	} else if (!l->domain->forked) {
		(void)begin_link(FAR_DISCONNECT, l);
		ask_link(l);
	}
}

static void *reserve(struct fabric_link *l, uint32_t length)
{
	struct link *link;
	struct parcel *p;

	if (!is_far(l))
		return real->reserve(l, length);
	p = begin_link(FAR_RESERVE, l);
	link = link_of(l);
	parcel_put(p, length);
	ask_link(l);
	if (!parcel_get(p))
		return NULL;
	free(link->built);
	link->built = malloc(length ? length : 1);
	CHECK(link->built, "out of memory");
	return link->built;
}

static int post(struct fabric_link *l, const struct fabric_wr *wr)
{
	struct link *link;
	struct parcel *p;
	int rc;

	if (!is_far(l))
		return real->post(l, wr);
	p = begin_link(FAR_POST, l);
	link = link_of(l);
	parcel_put(p, wr->op);
	parcel_put(p, wr->kind);
	parcel_put(p, wr->flags);
	parcel_put(p, wr->length);
	for (int i = 0; i < FABRIC_HEAD_WORDS; i++)
		parcel_put(p, wr->head[i]);
	/* Of what is too long nobody reads a byte. */
	if (wr->op == FABRIC_SEND && wr->length <= l->payload_max)
		parcel_put_bytes(p, wr->flags & FABRIC_BUILT ? link->built : wr->data, wr->length);
	else
		parcel_put_bytes(p, NULL, 0);
	parcel_put(p, wr->op == FABRIC_LAND && wr->into);
	ask_link(l);
	rc = (int)parcel_get(p);
	if (rc == 1 && wr->op == FABRIC_LAND)
		link->into = wr->into;
	return rc;
}

/* What came with A, as it will lie here until it is released. */
static void keep(struct link *link, struct fabric_arrival *a, struct parcel *p)
{
	struct copy **last = &link->copies, *c;
	const void *bytes;
	bool landed;
	size_t n;

	far_get_arrival(p, a);
	if (!parcel_get(p))
		return;
	landed = parcel_get(p);
	bytes = parcel_get_bytes(p, &n);
	c = malloc(sizeof(*c) + n + 1);
	CHECK(c, "out of memory");
	*c = (struct copy){.token = a->token, .span = a->span};
	a->data = memcpy(landed && link->into ? link->into : c->data, bytes, n);
	while (*last)
		last = &(*last)->next;
	*last = c;
}

static int poll_far(struct fabric_link *l, struct fabric_arrival *arrivals, int n)
{
	struct parcel *p;
	int rc;

	if (!is_far(l))
		return real->poll(l, arrivals, n);
	p = begin_link(FAR_POLL, l);
	parcel_put(p, (uint64_t)n);
	ask_link(l);
	rc = (int)parcel_get(p);
	for (int i = 0; i < rc; i++)
		keep(link_of(l), &arrivals[i], p);
	return rc;
}

static void release(struct fabric_link *l, const struct fabric_arrival *a)
{
	struct copy **at, *c;
	struct parcel *p;
	uint32_t left = a->span;

	if (!is_far(l)) {
		real->release(l, a);
		return;
	}
	at = &link_of(l)->copies;
	while (*at && (*at)->token != a->token)
		at = &(*at)->next;
	for (; left && (c = *at); free(c)) { /* a run of them */
		left -= c->span;
		*at = c->next;
	}
	p = begin_link(FAR_RELEASE, l);
	far_put_arrival(p, a);
	ask_link(l);
}

static void arm(struct fabric_domain *domain, bool on)
{
	if (!*place_of(domain)) {
		real->arm(domain, on);
		return;
	}
	parcel_put(begin(FAR_ARM, domain), on);
	ask();
}

const struct fabric *far_fabric(const struct fabric *f)
{
	static struct fabric both = {
		.probe = probe,
		.open = far_open,
		.close = far_close,
		.address = address,
		.connect = connect_far,
		.disconnect = disconnect,
		.reserve = reserve,
		.post = post,
		.poll = poll_far,
		.release = release,
		.arm = arm,
	};

	if (far_side() < 0 || f == &both)
		return f;
	real = f;
	both.name = f->name;
	both.domain_size = f->domain_size;
	both.link_size = f->link_size;
	return &both;
}
