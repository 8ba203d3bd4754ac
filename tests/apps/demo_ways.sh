#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo by one fabric, by both, by modes and under stress: digests are right each time, the table's
# reasons add up, and what is to move the selector has moved it.
set -u
. "$(dirname "$0")/../lib/demo.sh"
unset SLMPM_FABRIC SLMPM_LINKS SLMPM_LINK SLMPM_FETCH SLMPM_MODE

for i in 1 2 3 4 5 6; do head -c 4M /dev/urandom >"$dir/large-$i"; done
for i in $(seq 20); do head -c $((i * 999)) /dev/urandom >"$dir/small-$i"; done
sha256sum "$dir"/large-* "$dir"/small-* >"$dir/want" || exit 1

run() { # run OPTIONS: digests, table
	"$demo" "$@" "$dir"/large-* "$dir"/small-* 2>"$dir/err" | cmp - "$dir/want" || fail "$*: wrong digests"
	adds_up "$*"
}

run
[ "$(way shm loan)" -ge 48 ] && [ "$(way tcp .)" = 0 ] || fail "not all in loans over shared memory"
run -p auto
[ "$(way shm "smt|rget")" -gt 0 ] || fail "nothing over shared memory"
[ "$(way tcp .)" = 0 ] || fail "TCP, and shared memory was there"
run --fabric shm
[ "$(way '^[^s]' .)" = 0 ] || fail "other fabrics than shm"
run --fabric tcp
[ "$(way tcp smt)" -gt 0 ] && [ "$(way '^[^t]' .)" = 0 ] || fail "other fabrics than tcp"
run --fabric tcp -p put
[ "$(way tcp request)" = 48 ] || fail "puts over tcp are requests"
run --fabric both -p put
[ "$(way shm put)" = 48 ] || fail "puts with both fabrics go over shm"
SLMPM_FABRIC=tcp run
[ "$(way '^[^t]' .)" = 0 ] || fail "the environment's fabric is another"
SLMPM_FABRIC=tcp run --fabric shm
[ "$(way '^[^s]' .)" = 0 ] || fail "an option counts less than the environment"

fetches=$("$SLMPM_BUILD/bin/slmpm_info" --check | grep -q '^replaced *cross-memory attach' || echo y)
run --fabric shm --mode smt
[ "$(way . 'rget')" = 0 ] && [ "$(why setting)" -ge 12 ] || fail "messages go past the ring with --mode smt"
run --fabric shm --mode dma
[ -z "$fetches" ] || [ "$(way . rget)" -ge 12 ] || fail "large messages are not fetched with --mode dma"
run --fabric shm --mode ring=101,queue=1000000,auto
[ "$(why ring)" = 0 ] && [ "$(why queue)" = 0 ] || fail "thresholds that nothing reaches, and it moves"

run --stress ring
[ "$(row 'stress +ring:')" -ge 2 ] || fail "no burst for each accelerator"
[ -z "$fetches" ] || [ "$(why ring)" -ge 1 ] || fail "the ring was full and nothing moved"
run --stress queue
[ "$(why queue)" -ge 1 ] && [ "$(way . request)" -ge 1 ] || fail "the queue was long and nothing moved"
run --stress link
[ $(($(why link) + $(why both))) -ge 1 ] && [ "$(way tcp smt)" -ge 1 ] && [ "$(way shm smt)" -ge 1 ] || fail "the first link was full and nothing moved"
[ "$(row 'stress +link: +[0-9]+ bursts,')" -ge 1 ] || fail "files went by the other link, and no burst says so"
run --stress link -n 5 -w 9
exit 0
