#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_perftest --trace and --dump: both sides of a run noted, what one sent the other received; files that are none.
set -u
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

slmpm_perftest --trace here -t send_lat,am_lat -s 8:1k -n 20 --samples 1 --wait block >out 2>&1 || fail "$(cat out)"
there=$(echo here.*)
[ -f "$there" ] || fail "the other side has left no trace"
slmpm_perftest --dump here >near || fail "dump of this side"
slmpm_perftest --dump "$there" >far || fail "dump of the other side"
# words DIRECTION FILE: the packets of a direction, without times and process.
words() { awk -v d="$1" '$3 == d { $1 = $2 = $3 = ""; print }' "$2"; }
# At the end one side no longer looks: what was received is how what was sent begins.
begins() {
	words '>' "$1" >sent
	words '<' "$2" >received
	n=$(wc -l <received)
	[ "$n" -gt 200 ] || fail "$n packets received"
	head -n "$n" sent | cmp -s - received || fail "$1 sent other packets than $2 received"
}
begins near far
begins far near
grep -q 'handler .* ACTIVE' near || fail "no active message"
SLMPM_TRACE=$dir/own.%p slmpm_perftest -t send_lat -s 8 -n 5 --samples 1 --wait block >out 2>&1 || fail "$(cat out)"
[ "$(ls own.* | wc -l)" = 2 ] || fail "%p: $(ls)"

# refused FILE WORD: no such trace.
refused() {
	slmpm_perftest --dump "$1" >out 2>said && fail "--dump $1 was taken"
	grep -q "$2" said || fail "--dump $1: $(cat said)"
}
refused missing "No such file"
: >empty && refused empty "no trace"
head -c 1000 /dev/zero >zeros && refused zeros "no trace"
head -c 200 here >torn && refused torn "inside a record"
[ "$(wc -l <out)" = 2 ] || fail "the record in front of the tear: $(cat out)"
# A trace that cannot be written is told, and all goes on.
SLMPM_TRACE=missing/here slmpm_perftest -t send_lat -s 8 -n 5 --samples 1 --wait block >out 2>said || fail "$(cat said)"
grep -q "missing/here cannot be made" said || fail "said: $(cat said)"
