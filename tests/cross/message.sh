#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Messages, active messages, mirrors and one-sided operations between a host and an accelerator of different machines, over TCP:
# the foreign one is the accelerator, the host, or, under the first settings, both; and every message test where both ends
# are foreign.
# timeout: 120
set -u
out=$(mktemp) && trap 'rm -f "$out"' EXIT
foreign="$SLMPM_EMULATOR $SLMPM_BUILD"
export SLMPM_FABRIC=tcp SLMPM_TEST_MS=100

# check WHAT COMMAND...
check() {
	"${@:2}" >"$out" 2>&1 || { cat "$out"; echo "$1: exit status $?"; exit 1; }
	echo "$1"
}

for setting in "over TCP" "over TCP, small"; do
	export SLMPM_TEST_SETTING=$setting
	for test in am_storm message_crossing message_ends message_sizes mirror_words onesided_random; do
		test=tests/fabric/$test
		[ $test != tests/fabric/onesided_random ] || [ "$setting" = "over TCP" ] || continue # has ways, not settings
		check "$test, $setting: foreign accelerator" env SLMPM_TEST_PEER="$foreign" "$SLMPM_NATIVE/$test"
		check "$test, $setting: foreign host" env SLMPM_TEST_PEER="$SLMPM_NATIVE" $SLMPM_EMULATOR "$SLMPM_BUILD/$test"
		[ "$setting" = "over TCP" ] || continue # either part was foreign once
		check "$test, $setting: both foreign" env SLMPM_TEST_PEER="$foreign" $SLMPM_EMULATOR "$SLMPM_BUILD/$test"
	done
	for test in message_matching message_limits message_loans message_random; do
		check "tests/fabric/$test, $setting: all foreign" $SLMPM_EMULATOR "$SLMPM_BUILD/tests/fabric/$test"
	done
done
