#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two processes of different machines, perhaps of different byte orders, meet over TCP, either way round: they stay on
# the network, or find out that they share a machine. slmpm_perftest looks at the bytes that arrive. Asleep: who spins beside
# all that a test run has going waits for a processor at each message.
set -u
native=$SLMPM_NATIVE/bin foreign=$SLMPM_BUILD/bin
fail() { echo "$*" >&2; exit 1; }
out=$(mktemp) && trap 'rm -f "$out"' EXIT

# meet LISTENER CONNECTOR OPTIONS...
meet() {
	local listener=$1 connector=$2 pid said secret url
	shift 2
	coproc far { exec $listener/slmpm_perftest --listen tcp://127.0.0.1:0 2>&1; }
	pid=$far_PID
	read -r -t 20 said <&"${far[0]}" || fail "$listener does not listen"
	secret=$(grep -o 'SLMPM_SECRET=[0-9a-f]*' <<<"$said") && url=$(grep -o 'tcp://[^ ]*' <<<"$said") ||
		fail "$listener says: $said"
	env "$secret" timeout 40 $connector/slmpm_perftest --connect "$url" --samples 1 "$@" >"$out" 2>&1 ||
		{ cat "$out"; kill "$pid"; fail "$connector to $listener over $SLMPM_FABRIC: $*"; }
	wait "$pid" || fail "$listener ended with $?"
}

unset SLMPM_SECRET
for fabric in tcp shm; do
	export SLMPM_FABRIC=$fabric
	for test in send_lat,send_bw loan_lat put_lat,get_lat,fadd am_lat; do
		meet "$native" "$SLMPM_EMULATOR $foreign" -t $test -s 1:256k:8 -n 8 --wait block
		meet "$SLMPM_EMULATOR $foreign" "$native" -t $test -s 1:256k:8 -n 8 --wait block
	done
done
