#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Work queues between two machines, perhaps of different byte orders, either way round: managed receive queues, numbers of
# the other's order in a CALC, remote counters, PIPE, several links. And each test whose ends are one process, all of it
# foreign.
# timeout: 120
set -u
out=$(mktemp) && trap 'rm -f "$out"' EXIT
foreign="$SLMPM_EMULATOR $SLMPM_BUILD"

# check WHAT COMMAND...
check() {
	"${@:2}" >"$out" 2>&1 || { cat "$out"; echo "$1: exit status $?"; exit 1; }
	echo "$1"
}

for test in apart counter pipe spread; do
	test=tests/api/workqueue_$test
	check "$test: foreign accelerator" env SLMPM_TEST_PEER="$foreign" "$SLMPM_NATIVE/$test"
	check "$test: foreign host" env SLMPM_TEST_PEER="$SLMPM_NATIVE" $SLMPM_EMULATOR "$SLMPM_BUILD/$test"
done
for test in wait receive calc program text end random; do
	test=tests/api/workqueue_$test
	check "$test: all foreign" env SLMPM_TEST_PROGRAMS=20 $SLMPM_EMULATOR "$SLMPM_BUILD/$test"
done
