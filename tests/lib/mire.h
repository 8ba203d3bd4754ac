/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and files that never answer: whoever touches them waits in the kernel, for as long as the
 * process that made them lives. Made by root, who may become anybody afterwards.
 */
#ifndef TESTS_LIB_MIRE_H
#define TESTS_LIB_MIRE_H

#include <stdbool.h>
#include <stddef.h>

#define MIRE_SIZE (1 << 20) /* bytes of the file */

enum mire_silence { MIRE_READ = 1, MIRE_FLUSH = 2, MIRE_RELEASE = 4 }; /* what is not answered */

/* A file of this process's own file system (FUSE), which is SILENT about that; -1 where none can be
 * mounted. Once a process, before it has threads: it gets mounts of its own. */
int mire_file(int silent);
/* SIZE bytes, whole pages, of that file, or of anonymous memory that userfaultfd watches; NULL: not to be had. */
void *mire_of_file(size_t size);
void *mire_of_memory(size_t size);

#endif
