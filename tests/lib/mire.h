/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and files that never answer: whoever touches them waits in the kernel, for as long as
 * their server lives. Made by root, who may become anybody afterwards.
 */
#ifndef TESTS_LIB_MIRE_H
#define TESTS_LIB_MIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MIRE_SIZE (1 << 20) /* bytes of the file */

enum mire_silence { MIRE_READ = 1, MIRE_FLUSH = 2, MIRE_RELEASE = 4 }; /* what is not answered */

#define MIRE_SECONDS 150 /* that its server lives at most */

/* A file of a file system of this process's own (FUSE), which is SILENT about that; -1 where none
 * can be mounted. Once a process, before it has threads: it gets mounts of its own. */
int mire_file(int silent);
/* Who serves it: once that has ended, nobody waits any more. */
pid_t mire_server(void);
/* SIZE bytes, whole pages, of such a file, or of anonymous memory that userfaultfd watches, by this
 * process; NULL: not to be had. */
void *mire_of_file(size_t size);
void *mire_of_memory(size_t size);

#endif
