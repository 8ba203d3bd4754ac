/* SPDX-License-Identifier: BSD-3-Clause */
/* Another build of these tests, perhaps for another machine, whose programs are the peers of
 * ours. */
#ifndef TESTS_LIB_OTHER_BUILD_H
#define TESTS_LIB_OTHER_BUILD_H

#define OTHER_WORDS 12

/*
 * The words that start PROGRAM ("tests/FOLDER/NAME") of that build, ending with it, and then NULL:
 * how many. 0 where there is no other build. SLMPM_TEST_PEER has its folder, behind what its
 * programs run under: "qemu-s390x -L /usr/s390x-linux-gnu /where/it/is".
 */
int other_build(char *words[OTHER_WORDS], const char *program);

#endif
