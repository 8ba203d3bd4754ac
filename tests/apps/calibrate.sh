#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 120
# native-only
#
# slmpm_info --calibrate: thresholds that can be set as they are, with what they were measured by.
set -u
info=$SLMPM_BUILD/bin/slmpm_info
out=$(mktemp) || exit 1
trap 'rm -f "$out" "$out".*' EXIT
fail() { echo "$*" >&2; cat "$out" "$out".* >&2; exit 1; }
names="FETCH_MIN SHARE_MIN ENGINE_MIN MODE_BULK MODE_SMALL MODE_QUEUE MODE_DMA MODE_RING MODE_LIGHT TCP_ENGINE ASK_MIN COLL_SHORT COLL_SHORT_RANK"

# What would decide beforehand decides nothing.
SLMPM_FETCH=never SLMPM_MODE=smt SLMPM_MODE_RING=50 "$info" --calibrate=1 >"$out" 2>"$out.err" || fail "exit status $?"
for name in $names; do
	[ "$(grep -Ec "^(# )?SLMPM_$name=([0-9]+[km]?|plain|uring|uring-recv|uring-send|([a-z_]+:[0-9]+k?,?)+)$" "$out")" = 1 ] || fail "no line for $name"
done
[ "$(grep -c '^# present .*, initially ' "$out")" = 13 ] || fail "present values"
grep -B1 '^\(# \)\?SLMPM_MODE_RING=' "$out" | grep -q 'present 50, initially 75' || fail "the present value is not told"
grep -q 'us\|percent' "$out" || fail "nothing of what was measured"
"$info" --check | grep -q '^works  *io_uring' && ! grep -q 'receiving by io_uring, messages take [0-9.]* of the time' "$out" &&
	fail "io_uring was not measured"
grep -q '^slmpm_info: 1 of ' "$out.err" || fail "no progress"
! grep -qv '^slmpm_info: [0-9]* of ' "$out.err" || fail "more than progress"

# It is what the library reads.
settings=$(grep '^SLMPM_' "$out")
[ -n "$settings" ] || fail "nothing has been found"
env $settings "$info" -c >"$out.set" 2>&1 || fail "the library does not take them: $settings"
for s in $settings; do
	grep -A1 'from environment' "$out.set" | grep -qx "$s" || fail "$s is not what it reads"
done

"$info" --calibrate=1 --json >"$out" 2>"$out.err" || fail "--json: exit status $?"
for key in calibration trials packets asked not_asked copied requested engine requested_am requested_tag plain_stream ring_seen_most settings measured; do
	grep -q "\"$key\"" "$out" || fail "--json: no $key"
done
for bad in 0 x 1s 100000; do
	"$info" --calibrate=$bad >"$out" 2>&1
	[ $? = 2 ] || fail "--calibrate=$bad: exit status is not 2"
done
exit 0
