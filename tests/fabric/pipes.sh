#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The fabric of tests/fabrics/pipe, which was written from doc/adding_a_fabric.md alone: the programs of other tests,
# linked with it in the list of fabrics. Its operations on memory complete later, carried out by the peer's poll.
# timeout: 240
# native-only
here=$SLMPM_BUILD/pipes
fabric=tests/fabrics/pipe
fail() { echo "$*"; exit 1; }
unset SLMPM_LINKS SLMPM_TEST_WAY

lines=$(cat $fabric/*.[ch] | wc -l)
grep -q "$lines lines" doc/adding_a_fabric.md || fail "$fabric has $lines lines: doc/adding_a_fabric.md says otherwise"

rm -rf "$here"
mkdir -p "$here/gen" "$here/tests/fabric" "$here/tests/fault" "$here/tests/stress" || exit 1
{ cat "$SLMPM_BUILD/gen/fabric_list.h"; echo "FABRIC(pipe)"; } >"$here/gen/fabric_list.h"
linker= # the quickest that is here
! command -v ld.lld >/dev/null || linker=-fuse-ld=lld
compile() {
	"${CC:-gcc}" -std=gnu11 -O2 -g -pthread "$@"
}
for source in fabrics/registry.c $fabric/*.c; do
	compile -Wall -Wextra -Werror -D_GNU_SOURCE= -I. -Iinclude -I"$here/gen" -c "$source" -o "$here/$(basename "$source" .c).o" ||
		fail "$source"
done

over() { # TEST [WAY]
	program=$here/tests/$1
	[ -x "$program" ] || compile "$SLMPM_BUILD/obj/tests/$1.o" "$here"/*.o \
		"$SLMPM_BUILD"/obj/tests/lib/*.o "$SLMPM_BUILD/obj/inner.a" -lcmocka -luring -lm -ldl $linker -Wl,-S -o "$program" || fail "linking $1"
	if env SLMPM_TEST_FABRIC=pipe SLMPM_FABRIC=pipe ${2:+"SLMPM_TEST_WAY=$2"} "$program" >"$here/out" 2>&1; then
		echo "ok $1 $2"
	else
		cat "$here/out"
		fail "tests/$1 over pipes failed${2:+, $2}"
	fi
}

for test in link_connect link_lies link_packets link_totals link_train link_processes link_hostile link_stream \
	message_sizes message_matching message_ends am_storm; do
	over fabric/$test
done
for way in "over pipes" "over pipes, asleep"; do
	for test in fabric/onesided_random fabric/work_random fault/kill_one_sided stress/atomics; do
		over $test "$way"
	done
done
over fault/hostile_one_sided
