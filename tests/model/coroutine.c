/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch between stacks: the registers a call must preserve, and the stack pointer. */
#include "tests/model/coroutine.h"

#include <stdint.h>
#include <string.h>

/* Keeps the present stack in *FROM and goes on with TO. */
void coroutine_switch(void **from, void *to);

static void *resumer; /* the stack of coroutine_resume's caller */

#if defined(__x86_64__)
__asm__(".text\n"
	".globl coroutine_switch\n"
	".hidden coroutine_switch\n"
	".type coroutine_switch,@function\n"
	"coroutine_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size coroutine_switch,.-coroutine_switch\n");
enum { SAVED = 8, RETURN = 6 }; /* six registers, the return address, one for alignment */
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl coroutine_switch\n"
	".hidden coroutine_switch\n"
	".type coroutine_switch,%function\n"
	"coroutine_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size coroutine_switch,.-coroutine_switch\n");
enum { SAVED = 20, RETURN = 11 };
#else
void coroutine_switch(void **from, void *to)
{
	(void)from;
	(void)to;
	__builtin_trap();
}
enum { SAVED = 2, RETURN = 0 };
#endif

void coroutine_init(struct coroutine *c, unsigned char *stack, void (*entry)(void))
{
	uintptr_t frame[SAVED] = {0};

	memset(stack, 0, COROUTINE_STACK);
	frame[RETURN] = (uintptr_t)entry;
	c->stack = stack;
	c->sp = memcpy(stack + COROUTINE_STACK - sizeof(frame), frame, sizeof(frame));
}

void coroutine_resume(struct coroutine *c)
{
	coroutine_switch(&resumer, c->sp);
}

void coroutine_yield(struct coroutine *c)
{
	coroutine_switch(&c->sp, resumer);
}
