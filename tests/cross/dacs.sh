#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DaCS between machines, perhaps of different byte orders: every swap width in messages, puts and gets, mailbox words,
# the worked examples; the foreign end runs under $SLMPM_EMULATOR, either way round.
set -u
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

for rma in auto ring; do
	export SLMPM_RMA=$rma
	DACS_TEST_ACCEL=$SLMPM_BUILD/tests/dacs/swap DACS_START_PARENT="$SLMPM_EMULATOR %e %a" \
		"$SLMPM_NATIVE/tests/dacs/swap" || fail "native host, foreign accelerator, $rma"
	DACS_TEST_ACCEL=$SLMPM_NATIVE/tests/dacs/swap \
		$SLMPM_EMULATOR "$SLMPM_BUILD/tests/dacs/swap" || fail "foreign host, native accelerator, $rma"
done
unset SLMPM_RMA

for example in dot put; do
	ln -s "$SLMPM_NATIVE/bin/dacs_${example}_host" "$dir" || exit 1
	printf '#!/bin/sh\nexec %s/bin/dacs_%s_accel "$@"\n' "$SLMPM_EMULATOR $SLMPM_BUILD" $example >"$dir/dacs_${example}_accel"
	chmod +x "$dir/dacs_${example}_accel"
	"$dir/dacs_${example}_host" 3 || fail "dacs_$example went wrong"
done
