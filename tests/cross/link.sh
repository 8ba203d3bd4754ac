#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The conformance suite of a fabric over TCP with one end on this machine and the other on a foreign one, perhaps of the
# other byte order: its left end, its right end, and of packets and streams both.
# timeout: 240
set -u
out=$(mktemp) && trap 'rm -f "$out"' EXIT
export SLMPM_TEST_FABRIC=tcp

# check WHAT COMMAND...
check() {
	local begin=${EPOCHREALTIME/./}
	"${@:2}" >"$out" 2>&1 || { cat "$out"; echo "$1: exit status $?"; exit 1; }
	echo "$1: $(grep -c '  OK \]' "$out") tests, $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
}

for source in tests/fabric/link_*.c; do
	test=${source%.c}
	case $test in
	*/link_memory | */link_attach | */link_descriptors) continue ;; # of memory that is shared, or of one end alone
	esac
	for side in left right both; do
		case $side in
		both) [[ $test == */link_packets || $test == */link_stream ]] || continue # a wrong order shows between two
			check "$test, all foreign" $SLMPM_EMULATOR "$SLMPM_BUILD/$test" ;;
		*) check "$test, foreign $side end" env SLMPM_TEST_FAR=$side \
			SLMPM_TEST_PEER="$SLMPM_EMULATOR $SLMPM_BUILD" "$SLMPM_NATIVE/$test" ;;
		esac
	done
done
