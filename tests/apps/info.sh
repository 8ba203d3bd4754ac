#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_info: each part is there, the settings answer to the environment, exit codes tell.
set -u
info=$SLMPM_BUILD/bin/slmpm_info
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
fail() { echo "$*" >&2; cat "$out" >&2; exit 1; }

"$info" -V >"$out" 2>&1 || fail "-V: exit status $?"
grep -Eq '^slmpm [0-9]+\.[0-9]+\.[0-9]+$' "$out" || fail "-V"
[ "$("$info" --version)" = "$(cat "$out")" ] || fail "--version is another"
"$info" -v >"$out" 2>&1 || fail "-v: exit status $?"
wire=$(sed -n 's/^#define WIRE_M[AI][JN]OR \([0-9]*\).*/\1/p' slmpm/base/wire.h | paste -sd.)
grep -qx "wire: $wire" "$out" && grep -q '^compiler: [a-z]' "$out" && grep -q '^flags: .*-std=gnu11' "$out" || fail "-v"
[ ! -e .git ] || ! command -v git >/dev/null || ! grep -q '^commit: unknown$' "$out" || fail "-v: of which commit?"
"$info" -d >"$out" 2>&1 || fail "-d: exit status $?"
grep -q '^fabric shm: available' "$out" || fail "-d names no shm"
"$info" >"$out" 2>&1 || fail "without options: exit status $?"
grep -q '^fabric shm' "$out" && grep -q '^slmpm ' "$out" || fail "without options"

"$info" -c >"$out" 2>&1 || fail "-c: exit status $?"
grep -q '^SLMPM_RING_SEGMENTS=' "$out" || fail "-c names no SLMPM_RING_SEGMENTS"
count=$(grep -c '^SLMPM_' "$out")
[ "$count" -gt 5 ] && [ "$count" -lt 100 ] || fail "-c: $count settings"
[ "$(grep -c '^# from' "$out")" = "$count" ] || fail "-c: origin is missing somewhere"
SLMPM_RING_SEGMENTS=4096 "$info" -c >"$out" 2>&1 || fail "-c with a setting: exit status $?"
grep -B1 '^SLMPM_RING_SEGMENTS=4096$' "$out" | grep -q 'from environment' || fail "-c does not show the environment"
SLMPM_RING_SEGMENT=4096 "$info" -c >"$out" 2>&1
grep 'SLMPM_RING_SEGMENT[^S_]' "$out" | grep -q 'SLMPM_RING_SEGMENTS' || fail "an unknown setting is not answered with the nearest"
SLMPM_RING_SEGMENTS=5 "$info" -c >"$out" 2>&1 && fail "a ring of 5 segments is accepted"
grep -q 'RING_SEGMENTS' "$out" || fail "a ring of 5 segments: why not?"

"$info" --check >"$out" 2>&1
rc=$?
[ $rc -le 1 ] || fail "--check: exit status $rc"
grep -Eq '^(works|replaced|needed) ' "$out" || fail "--check says nothing"
grep -q '^needed' "$out"
[ $? != $rc ] || fail "--check: exit status $rc does not fit"
for what in memfd membarrier 'cross-memory|cma' uring 'tracking: pagemap' 'tracking: fault' 'tracking: signal' huge 'locked memory' cgroup; do
	grep -Eqi "$what" "$out" || fail "--check says nothing of $what"
done

# What goes by which protocol follows the settings; a thread sanitizer takes its time for 64 MiB.
case $SLMPM_SAN in *thread*) ;; *)
env -u SLMPM_LINKS SLMPM_FABRIC=shm SLMPM_FETCH=always "$info" --protocols >"$out" 2>&1 || fail "--protocols: exit status $?"
grep -Eq '^ +8  smt, short  +put, short  +get, short$' "$out" && grep -Eq '^ +1048576  rget, setting ' "$out" || fail "--protocols: fetched always"
env -u SLMPM_LINKS SLMPM_FABRIC=shm SLMPM_FETCH=never SLMPM_RMA=ring "$info" --protocols --json >"$out" 2>&1 || fail "--protocols --json: exit status $?"
[ "$("$SLMPM_BUILD/tests/apps/stat_page" json protocols.12.{bytes,send.protocol,put.protocol,get.protocol} <"$out" | paste -sd' ')" = \
	"67108864 smt request request" ] || fail "--protocols: never fetched, by request"
;;
esac

"$info" -m 1 >"$out" 2>&1 || fail "-m 1: exit status $?"
one=$(sed 's/.*: \([0-9]*\) bytes$/\1/' "$out")
"$info" -m 64 >"$out" 2>&1 || fail "-m 64"
grep -q ": $((64 * one)) bytes\$" "$out" || fail "-m 64 is not 64 times -m 1"
if "$info" -d | grep -q '^fabric tcp: available'; then # longer segments have room as they are
	for size in 64 128 256; do
		SLMPM_LINKS=1 SLMPM_FABRIC=tcp SLMPM_SEGMENT_SIZE=$size "$info" -m 1 >"$out" 2>&1 || fail "-m 1 of $size"
		[ "$(sed 's/.*: \([0-9]*\) bytes$/\1/' "$out")" -lt 6800000 ] || fail "over TCP, segments of $size: $(cat "$out")"
	done
fi

# Another process's counters: of one that has a peer and waits for more to do.
mkfifo "$out.in" || exit 1
"$SLMPM_BUILD/bin/epoll_loop" <"$out.in" >"$out.echo" 2>/dev/null &
loop=$!
trap 'rm -f "$out" "$out".*; kill $loop 2>/dev/null' EXIT
exec 3>"$out.in"
echo hello >&3
tries=0
until grep -q HELLO "$out.echo"; do
	[ $((tries += 1)) -lt 200 ] || fail "the loop does not answer"
	read -r -t 0.05 _ <><(:)
done
"$info" -s $loop >"$out" 2>&1 || fail "-s: exit status $?"
grep -Eq 'sent_messages *1$' "$out" || fail "-s does not count the message"
grep -Eq 'received_messages *1$' "$out" || fail "-s does not count the answer"
grep -Eq 'remote_reads *0$' "$out" || fail "-s: remote reads"
for figure in puts gets atomics ams rget_messages shared_puts fifo_puts fifo_entries asked asked_here copied_puts engine_out engine_in; do
	grep -Eq "^ *$figure *0$" "$out" || fail "-s: no $figure"
done
"$info" -s $loop --json >"$out" 2>&1 || fail "-s --json: exit status $?"
grep -Eq '"sent_bytes": 5,' "$out" || fail "-s --json"
exec 3>&-
wait $loop || fail "the loop ended with $?"
"$info" -s 1 >"$out" 2>&1 && fail "-s of a stranger succeeded"
[ "$(wc -l <"$out")" = 1 ] || fail "-s of a stranger: not one line"

for bad in "-m 0" "-m x" "-s x" "what" "--nonsense"; do
	"$info" $bad >"$out" 2>&1
	[ $? = 2 ] || fail "$bad: exit status is not 2"
done
exit 0
