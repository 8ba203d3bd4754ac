#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A host and an accelerator of different machines, perhaps of different byte orders, on one memory: the foreign one runs
# under $SLMPM_EMULATOR, either way round. slmpm_perftest looks at the bytes that arrive.
set -u
native=$SLMPM_NATIVE/bin foreign=$SLMPM_BUILD/bin
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

# start_as NAME HOST ACCELERATOR: a folder where HOST's hello_host finds a hello_accel that is another machine's.
start_as() {
	mkdir "$dir/$1" && ln -s "$2/hello_host" "$dir/$1/hello_host" || exit 1
	printf '#!/bin/sh\nexec %s/hello_accel\n' "$3" >"$dir/$1/hello_accel" && chmod +x "$dir/$1/hello_accel"
}

want="hello from the accelerator"
start_as to_foreign "$native" "$SLMPM_EMULATOR $foreign"
[ "$(cd "$dir/to_foreign" && ./hello_host)" = "$want" ] || fail "hello, native host, foreign accelerator"
start_as to_native "$foreign" "$native"
[ "$(cd "$dir/to_native" && $SLMPM_EMULATOR ./hello_host)" = "$want" ] || fail "hello, foreign host, native accelerator"

# meet NAME LISTENER CONNECTOR OPTIONS...: two processes that are no relatives
meet() {
	local name=cross-$$-$1 listener=$2 connector=$3 pid
	shift 3
	coproc far { exec $listener/slmpm_perftest --listen "shm:$name" 2>&1; }
	pid=$far_PID
	read -r -t 20 _ <&"${far[0]}" || fail "$listener does not listen"
	timeout 40 $connector/slmpm_perftest --connect "shm:$name" --samples 1 "$@" >"$dir/out" 2>&1 ||
		{ cat "$dir/out"; kill "$pid"; fail "$connector to $listener: $*"; }
	wait "$pid" || fail "$listener ended with $?"
}

for wait in adaptive block; do
	for test in send_lat,send_bw loan_lat put_lat,put_bw,get_lat,get_bw,fadd,cswap am_lat,am_rate mirror_lat,mirror_rate; do
		meet $wait-$test-1 "$native" "$SLMPM_EMULATOR $foreign" -t $test -s 1:1m:32 -n 8 --wait $wait
		meet $wait-$test-2 "$SLMPM_EMULATOR $foreign" "$native" -t $test -s 1:1m:32 -n 8 --wait $wait
	done
done

# Big requests and small ones, in whichever byte order: a host with the other machine's storage controller.
head -c 1000001 /dev/urandom >"$dir/from"
printf '#!/bin/sh\nexec %s/disk_controller "$@"\n' "$SLMPM_EMULATOR $foreign" >"$dir/foreign_controller"
chmod +x "$dir/foreign_controller"
"$native/disk_copy" --controller "$dir/foreign_controller" "$dir/from" "$dir/to" 2>"$dir/out" && cmp "$dir/from" "$dir/to" ||
	{ cat "$dir/out"; fail "disk_copy, native host, foreign controller"; }
rm "$dir/to"
$SLMPM_EMULATOR "$foreign/disk_copy" --controller "$native/disk_controller" "$dir/from" "$dir/to" 2>"$dir/out" &&
	cmp "$dir/from" "$dir/to" || { cat "$dir/out"; fail "disk_copy, foreign host, native controller"; }
