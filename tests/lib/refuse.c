/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter's program. */
#include "tests/lib/refuse.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define LENGTH(a) (sizeof(a) / sizeof(*(a)))

/* The low half of an argument. */
static uint32_t offset_of(int arg)
{
	size_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;

	return (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)arg * 8 + low);
}

bool refuse(const struct refusal *r)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of(r->arg)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, r->mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)r->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = LENGTH(program), .filter = program};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
