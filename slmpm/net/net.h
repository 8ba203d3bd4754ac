/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP sockets: which addresses are allowed, who is at the other end, how long silence may last. */
#ifndef SLMPM_NET_NET_H
#define SLMPM_NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define NET_NAME 56 /* "[IPv6]:port" */

/* Is it of this machine alone, or has the user allowed others (SLMPM_INSECURE)? */
bool net_allowed(const struct sockaddr *sa);
/* "192.0.2.1:4711", "[::1]:4711"; an IPv4 address that IPv6 carries is shown as such. */
void net_name(const struct sockaddr *sa, char name[NET_NAME]);
/* Without the port. */
void net_host(const struct sockaddr *sa, char name[NET_NAME]);
/* The address of this end, or the OTHER's, with port 0; false where it has none. */
bool net_end(int fd, bool other, struct sockaddr_storage *address);
/* Is the other end at an address of this machine? One that forwards connections is, too. */
bool net_is_here(int fd);
/* The other end's, "?" where it has gone. */
void net_peer(int fd, char name[NET_NAME]);
/* The port at this end, 0: none. */
uint16_t net_port(int fd);
/* Small packets go at once; a peer whose machine is silent for SLMPM_DEAD_MS and three seconds is
 * lost, also where nobody polls (connect/silence.c finds it sooner). Negative errno. */
int net_prepare(int fd);

/* A number of this machine's network: the same for all processes that could meet by its memory, and
 * hardly another's. 0: not known. */
uint32_t net_machine(void);
/* Of those of one kernel the same, and not 0; its processors, up to 15. */
static inline uint32_t net_kernel(uint32_t machine)
{
	return machine >> 16;
}

#define NET_PROCESSORS 15 /* or more */
static inline uint32_t net_processors(uint32_t machine)
{
	return machine >> 16 & NET_PROCESSORS;
}

#define NET_FDS 15
/* A packet through a socket of this machine, with COUNT descriptors, up to NET_FDS. Never blocks.
 * Negative errno. */
int net_send(int socket, const void *packet, size_t length, const int *fds, size_t count);

#endif
