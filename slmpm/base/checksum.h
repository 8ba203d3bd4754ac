/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C of a packet's header and payload. */
#ifndef SLMPM_BASE_CHECKSUM_H
#define SLMPM_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_SIZE 4

uint32_t checksum(uint32_t sum, const void *data, size_t n);
/* The same where the processor has no instruction for it. */
uint32_t checksum_by_table(uint32_t sum, const void *data, size_t n);
uint32_t checksum_head(uint64_t seq, uint64_t route, uint64_t extent);
/* Little-endian, wherever it comes to lie. */
void checksum_put(void *at, uint32_t sum);
uint32_t checksum_take(const void *at);

#endif
