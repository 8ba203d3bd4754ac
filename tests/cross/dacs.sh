#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DaCS between machines, perhaps of different byte orders: every swap width, mailbox words, the worked example; the
# foreign end runs under $SLMPM_EMULATOR, either way round.
set -u
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

DACS_TEST_ACCEL=$SLMPM_BUILD/tests/dacs/swap DACS_START_PARENT="$SLMPM_EMULATOR %e %a" \
	"$SLMPM_NATIVE/tests/dacs/swap" || fail "native host, foreign accelerator"
DACS_TEST_ACCEL=$SLMPM_NATIVE/tests/dacs/swap \
	$SLMPM_EMULATOR "$SLMPM_BUILD/tests/dacs/swap" || fail "foreign host, native accelerator"

ln -s "$SLMPM_NATIVE/bin/dacs_dot_host" "$dir" || exit 1
printf '#!/bin/sh\nexec %s/bin/dacs_dot_accel\n' "$SLMPM_EMULATOR $SLMPM_BUILD" >"$dir/dacs_dot_accel"
chmod +x "$dir/dacs_dot_accel"
"$dir/dacs_dot_host" 3 || fail "the product is wrong"
