/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links between hosts made of namespaces as slmpm_sim has them: "wire LATENCY-US MBITS NETNS..."
 * gives the Nth of the network namespaces a device "wire" with the address 10.79.0.N, and carries
 * packets among them until its standard input ends. Each host has one link into the network and one
 * out of it, of so many million bits a second both; a packet's first bytes are on while the last
 * ones follow. For kernels that have no netem. Says "ready".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 16, MTU = 9000, NETWORK = 0x0a4f0000 };

struct packet {
	struct packet *next;
	uint64_t when;  /* its first byte is there; once TAKEN: its last one */
	uint64_t lasts; /* from the first byte to the last */
	bool taken;     /* the link into the host */
	int to;
	ssize_t len;
	unsigned char bytes[MTU];
};

static struct host {
	int tun;
	uint64_t out, in; /* from when on the link is free */
} hosts[HOSTS];
static int count;
static uint64_t latency; /* ns */
static double byte;      /* ns */
static struct packet *first, *unused;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void set_up(int number)
{
	struct ifreq r = {.ifr_name = "wire"};
	struct sockaddr_in *a = (struct sockaddr_in *)&r.ifr_addr;
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl((uint32_t)(NETWORK + number));
	if (s < 0 || ioctl(s, SIOCSIFADDR, &r) < 0)
		give_up("an address");
	a->sin_addr.s_addr = htonl(0xffffff00);
	if (ioctl(s, SIOCSIFNETMASK, &r) < 0)
		give_up("a mask");
	r.ifr_mtu = MTU;
	if (ioctl(s, SIOCSIFMTU, &r) < 0)
		give_up("an MTU");
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(s, SIOCSIFFLAGS, &r) < 0)
		give_up("up");
	close(s);
}

static void open_host(const char *netns)
{
	struct ifreq r = {.ifr_name = "wire", .ifr_flags = IFF_TUN | IFF_NO_PI};
	int ns = open(netns, O_RDONLY | O_CLOEXEC), tun;

	if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
		give_up(netns);
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK); /* of this namespace */
	if (tun < 0 || ioctl(tun, TUNSETIFF, &r) < 0)
		give_up("/dev/net/tun");
	close(ns);
	hosts[count++].tun = tun;
	set_up(count);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Behind all that come no later. */
static void add(struct packet *p)
{
	struct packet **link = &first;

	while (*link && (*link)->when <= p->when)
		link = &(*link)->next;
	p->next = *link;
	*link = p;
}

static void drop(struct packet *p)
{
	p->next = unused;
	unused = p;
}

static struct packet *new_packet(void)
{
	struct packet *p = unused;

	if (p)
		unused = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		give_up("a packet");
	return p;
}

/* The host it goes to, from 0; -1: none of these. */
static int goes_to(const struct packet *p)
{
	uint32_t to;

	if (p->len < 20 || p->bytes[0] >> 4 != 4)
		return -1;
	memcpy(&to, p->bytes + 16, sizeof(to));
	to = ntohl(to) - NETWORK - 1;
	return to < (uint32_t)count ? (int)to : -1;
}

/* From the link out of a host. */
static void take(struct host *from)
{
	struct packet *p = new_packet();
	uint64_t begin = now();

	p->len = read(from->tun, p->bytes, sizeof(p->bytes));
	p->to = goes_to(p);
	if (p->len <= 0 || p->to < 0) {
		drop(p);
		return;
	}
	if (begin < from->out)
		begin = from->out;
	p->lasts = (uint64_t)((double)p->len * byte);
	p->taken = false;
	p->when = begin + latency;
	from->out = begin + p->lasts;
	add(p);
}

/* Its first byte, or its last one, is at the host that it goes to. */
static void arrive(struct packet *p)
{
	struct host *to = &hosts[p->to];

	if (p->taken) {
		if (write(to->tun, p->bytes, (size_t)p->len) < 0)
			perror("lost");
		drop(p);
		return;
	}
	if (p->when < to->in)
		p->when = to->in;
	p->when += p->lasts;
	to->in = p->when;
	p->taken = true;
	add(p);
}

static void carry(int timer)
{
	struct pollfd polled[HOSTS + 2] = {{.fd = STDIN_FILENO, .events = POLLIN},
					   {.fd = timer, .events = POLLIN}};
	struct itimerspec at = {0};
	uint64_t times;

	for (int i = 0; i < count; i++)
		polled[2 + i] = (struct pollfd){.fd = hosts[i].tun, .events = POLLIN};
	while (!polled[0].revents) {
		while (first && first->when <= now()) {
			struct packet *p = first;

			first = p->next;
			arrive(p);
		}
		if (first) {
			at.it_value.tv_sec = (time_t)(first->when / 1000000000);
			at.it_value.tv_nsec = (long)(first->when % 1000000000);
			timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
		}
		if (poll(polled, (nfds_t)count + 2, -1) < 0)
			give_up("poll");
		if (read(timer, &times, sizeof(times)) < 0 && errno != EAGAIN)
			give_up("a timer");
		for (int i = 0; i < count; i++)
			if (polled[2 + i].revents)
				take(&hosts[i]);
	}
}

int main(int argc, char **argv)
{
	const struct sched_param high = {.sched_priority = 1};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (argc < 5 || argc > HOSTS + 3 || timer < 0) {
		fprintf(stderr, "usage: wire LATENCY-US MBITS NETNS NETNS...\n");
		return 2;
	}
	latency = strtoull(argv[1], NULL, 10) * 1000;
	byte = 8000 / strtod(argv[2], NULL);
	for (int i = 3; i < argc; i++)
		open_host(argv[i]);
	(void)sched_setscheduler(0, SCHED_FIFO, &high); /* what it delays is measured */
	puts("ready");
	fflush(stdout);
	carry(timer);
	return 0;
}
