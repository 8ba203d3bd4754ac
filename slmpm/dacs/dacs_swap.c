/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte swapping between partners of different byte order, in place. */
#include "slmpm/dacs/dacs_message.h"

#include <string.h>

/* Elements need not be aligned, hence memcpy; compilers make vector code of each loop. */
#define SWAP_LOOP(type, reverse)                                                                   \
	for (size_t at = 0; at + sizeof(type) <= len; at += sizeof(type)) {                        \
		type element;                                                                      \
		memcpy(&element, bytes + at, sizeof(element));                                     \
		element = reverse(element);                                                        \
		memcpy(bytes + at, &element, sizeof(element));                                     \
	}

void dacsi_swap(void *data, size_t len, DACS_BYTE_SWAP_T swap)
{
	unsigned char *bytes = data;

	switch (swap) {
	case DACS_BYTE_SWAP_DISABLE: break;
	case DACS_BYTE_SWAP_HALF_WORD: SWAP_LOOP(uint16_t, __builtin_bswap16) break;
	case DACS_BYTE_SWAP_WORD: SWAP_LOOP(uint32_t, __builtin_bswap32) break;
	case DACS_BYTE_SWAP_DOUBLE_WORD: SWAP_LOOP(uint64_t, __builtin_bswap64) break;
	}
}
