#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DaCS between machines, perhaps of different byte orders: every swap width in messages, puts and gets, mailbox words;
# remote memory of both families on every path, mutexes, groups and their barrier; the worked examples. The foreign end
# runs under $SLMPM_EMULATOR, either way round.
# timeout: 120
set -u
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

# meet TEST WHAT: the program of tests/dacs on both machines
meet() {
	DACS_TEST_ACCEL=$SLMPM_BUILD/tests/dacs/$1 DACS_START_PARENT="$SLMPM_EMULATOR %e %a" \
		"$SLMPM_NATIVE/tests/dacs/$1" || fail "$1: native host, foreign accelerator$2"
	DACS_TEST_ACCEL=$SLMPM_NATIVE/tests/dacs/$1 DACS_TEST_RUN=$SLMPM_EMULATOR \
		$SLMPM_EMULATOR "$SLMPM_BUILD/tests/dacs/$1" || fail "$1: foreign host, native accelerator$2"
}

for rma in auto ring; do
	SLMPM_RMA=$rma meet swap ", $rma"
done
for test in mem remote_mem mutex mutex_try group; do
	meet $test ""
done

for example in dot put; do
	ln -s "$SLMPM_NATIVE/bin/dacs_${example}_host" "$dir" || exit 1
	printf '#!/bin/sh\nexec %s/bin/dacs_%s_accel "$@"\n' "$SLMPM_EMULATOR $SLMPM_BUILD" $example >"$dir/dacs_${example}_accel"
	chmod +x "$dir/dacs_${example}_accel"
	"$dir/dacs_${example}_host" 3 || fail "dacs_$example went wrong"
done
