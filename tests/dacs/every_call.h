/* SPDX-License-Identifier: BSD-3-Clause */
/* Each of the 67 calls, but for those that begin a runtime and dacs_strerror, where there is
 * none. */
#ifndef TESTS_DACS_EVERY_CALL_H
#define TESTS_DACS_EVERY_CALL_H

#include "tests/dacs/pair.h"

#define OUTSIDE(call) EXPECT(call, DACS_ERR_NOT_INITIALIZED)

static void calls_on_processes(void)
{
	char byte;
	de_id_t de = 1;
	dacs_process_id_t pid;
	uint32_t n = 1;
	int32_t status;
	const char *text;

	OUTSIDE(dacs_runtime_exit());
	OUTSIDE(dacs_exit());
	OUTSIDE(dacs_get_num_avail_children(DACS_DE_CBE, &n));
	OUTSIDE(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	OUTSIDE(dacs_release_de_list(1, &de));
	OUTSIDE(dacs_de_start(1, &byte, NULL, NULL, DACS_PROC_REMOTE_FILE, &pid));
	OUTSIDE(dacs_num_processes_supported(1, &n));
	OUTSIDE(dacs_num_processes_running(1, &n));
	OUTSIDE(dacs_de_wait(1, 1, &status));
	OUTSIDE(dacs_de_test(1, 1, &status));
	OUTSIDE(dacs_de_kill(1, 1, DACS_KILL_TYPE_ASYNC));
	OUTSIDE(dacs_errhandler_reg((dacs_error_handler_t)0, 0));
	OUTSIDE(dacs_error_num(&byte));
	OUTSIDE(dacs_error_code(&byte, &n));
	OUTSIDE(dacs_error_str(&byte, &text));
	OUTSIDE(dacs_error_de(&byte, &de));
	OUTSIDE(dacs_error_pid(&byte, &pid));
}

static void calls_on_messages(void)
{
	dacs_wid_t wid = 1;
	char byte;
	uint32_t n = 1;
	int32_t status;

	OUTSIDE(dacs_wid_reserve(&wid));
	OUTSIDE(dacs_wid_release(&wid));
	OUTSIDE(dacs_test(1));
	OUTSIDE(dacs_wait(1));
	OUTSIDE(dacs_send(&byte, 1, UP, 0, 1, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_recv(&byte, 1, UP, 0, 1, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_mailbox_write(&n, UP));
	OUTSIDE(dacs_mailbox_read(&n, UP));
	OUTSIDE(dacs_mailbox_test(DACS_TEST_MAILBOX_READ, UP, &status));
}

static void calls_on_remote_memory(void)
{
	dacs_remote_mem_t remote = 1;
	dacs_dma_list_t list = {0, 1};
	dacs_wid_t wid = 1;
	uint64_t value;
	char byte;

	OUTSIDE(dacs_remote_mem_create(&byte, 1, DACS_READ_WRITE, &remote));
	OUTSIDE(dacs_remote_mem_share(1, 1, remote));
	OUTSIDE(dacs_remote_mem_accept(1, 1, &remote));
	OUTSIDE(dacs_remote_mem_release(&remote));
	OUTSIDE(dacs_remote_mem_destroy(&remote));
	OUTSIDE(dacs_remote_mem_query(remote, DACS_REMOTE_MEM_SIZE, &value));
	OUTSIDE(dacs_put(remote, 0, &byte, 1, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_get(&byte, remote, 0, 1, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_put_list(remote, &list, 1, &byte, &list, 1, wid, DACS_ORDER_ATTR_NONE,
			      DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_get_list(&byte, &list, 1, remote, &list, 1, wid, DACS_ORDER_ATTR_NONE,
			      DACS_BYTE_SWAP_DISABLE));
}

static void calls_on_memory(void)
{
	dacs_mem_t mem = 1;
	dacs_dma_list_t list = {0, 1};
	dacs_wid_t wid = 1;
	uint64_t value;
	char byte;

	OUTSIDE(dacs_mem_create(&byte, 1, DACS_MEM_READ_WRITE, DACS_MEM_READ_WRITE, &mem));
	OUTSIDE(dacs_mem_share(1, 1, mem));
	OUTSIDE(dacs_mem_register(1, 1, mem));
	OUTSIDE(dacs_mem_deregister(1, 1, mem));
	OUTSIDE(dacs_mem_accept(1, 1, &mem));
	OUTSIDE(dacs_mem_release(&mem));
	OUTSIDE(dacs_mem_destroy(&mem));
	OUTSIDE(dacs_mem_query(mem, DACS_MEM_SIZE, &value));
	OUTSIDE(dacs_mem_limits_query(DACS_MEM_REGION_AVAIL, 1, 1, &value));
	OUTSIDE(dacs_mem_put(mem, 0, mem, 0, 1, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_mem_get(mem, 0, mem, 0, 1, wid, DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_mem_put_list(mem, &list, 1, mem, &list, 1, wid, DACS_ORDER_ATTR_NONE,
				  DACS_BYTE_SWAP_DISABLE));
	OUTSIDE(dacs_mem_get_list(mem, &list, 1, mem, &list, 1, wid, DACS_ORDER_ATTR_NONE,
				  DACS_BYTE_SWAP_DISABLE));
}

static void calls_on_groups_and_mutexes(void)
{
	dacs_group_t group = 1;
	dacs_mutex_t mutex = 1;

	OUTSIDE(dacs_group_init(&group, 0));
	OUTSIDE(dacs_group_add_member(1, 1, group));
	OUTSIDE(dacs_group_close(group));
	OUTSIDE(dacs_group_accept(1, 1, &group));
	OUTSIDE(dacs_group_leave(&group));
	OUTSIDE(dacs_group_destroy(&group));
	OUTSIDE(dacs_barrier_wait(group));
	OUTSIDE(dacs_mutex_init(&mutex));
	OUTSIDE(dacs_mutex_share(1, 1, mutex));
	OUTSIDE(dacs_mutex_accept(1, 1, &mutex));
	OUTSIDE(dacs_mutex_lock(mutex));
	OUTSIDE(dacs_mutex_try_lock(mutex));
	OUTSIDE(dacs_mutex_unlock(mutex));
	OUTSIDE(dacs_mutex_release(&mutex));
	OUTSIDE(dacs_mutex_destroy(&mutex));
}

static void every_call(void)
{
	calls_on_processes();
	calls_on_messages();
	calls_on_remote_memory();
	calls_on_memory();
	calls_on_groups_and_mutexes();
}

#endif
