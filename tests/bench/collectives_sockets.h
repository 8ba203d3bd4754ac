/* SPDX-License-Identifier: BSD-3-Clause */
/* A sum over ranks that each are on a host of namespaces, by sockets without a library. */
#ifndef TESTS_BENCH_COLLECTIVES_SOCKETS_H
#define TESTS_BENCH_COLLECTIVES_SOCKETS_H

#include <stdint.h>

/* NETWORKS: a directory with a name, host0 and so on, for the network of each rank, whose address
 * is 10.78.0.1 and so on. How many ways there are; 0: not there. */
int sockets_open(const char *networks, int rank, int ranks);
/* Of doubles; 0 BYTES: a barrier. */
void sockets_all(int way, const double *from, double *to, uint64_t bytes);

#endif
