/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine's own address, by the version of IP that SLMPM_TEST_IP names: 4, or 6. */
#ifndef TESTS_LIB_LOOPBACK_H
#define TESTS_LIB_LOOPBACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union loopback {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

bool loopback_is_v6(void);
union loopback loopback_at(uint16_t port);
/* A socket, and what may be done with it. */
int loopback_socket(void);
int loopback_listen(uint16_t *port);
int loopback_connect(int socket, uint16_t port);
/* Bit I: descriptor I is connected by IPv4. */
uint64_t loopback_connected(void);

#endif
