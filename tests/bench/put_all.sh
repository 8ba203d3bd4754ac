#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One put to many, as Markdown: on this machine, and from host to three others, each of which has one interface of
# 1 Gbit/s each way into one network: there against three puts, too. Hosts are namespaces; where those are not
# permitted it says so. PUT_ALL: the program of put_all.c.
#	tests/bench/put_all.sh PUT_ALL PAIRS [here|links]
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$ROOT" || exit 1
. tests/lib/netns.sh
PUT_ALL=$1 PAIRS=$2 WHERE=${3:-}

# run URL TARGETS WHERE ON...: where each of them is run: ON HOST-NUMBER COMMAND
run() {
	local url=$1 targets=$2 where=$3 n pids=()
	shift 3
	for ((n = 1; n <= targets; n++)); do
		"$@" $n timeout 300 "$PUT_ALL" target "$url" &
		pids+=($!)
	done
	"$@" 0 timeout 300 "$PUT_ALL" origin "$url" "$targets" "$PAIRS" "$where" || kill "${pids[@]}"
	wait "${pids[@]}"
}

here() { shift; "$@"; }

run_here() {
	local dir
	dir=$(mktemp -d)
	SLMPM_RUN_DIR=$dir run shm:$dir/s 7 here here
	rm -rf "$dir"
}

on() {
	local host=host$1
	shift
	netns_on "$host" "$@"
}

# The bucket holds a packet as the kernel makes them: else it is cut up, and that is work.
limit() { tc qdisc replace dev "$1" root tbf rate 1gbit burst 128k limit 1m; }

make_network() {
	local n
	netns_bridge host0 host1 host2 host3 || return
	for n in 0 1 2 3; do
		limit "far$((n + 1))" && netns_on host$n tc qdisc replace dev near root tbf rate 1gbit burst 128k limit 1m || return
	done
}

run_links() {
	make_network 2>/dev/null || netns_skip "put_all over links of 1 Gbit/s: not measured: no bridge, or tc refuses a limit"
	export SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff
	run tcp://10.78.0.1:7480 3 links on
}

case $WHERE in
'')
	run_here
	echo
	exec "$0" "$PUT_ALL" "$PAIRS" links
	;;
here) run_here ;;
*)
	command -v tc >/dev/null || netns_skip "put_all over links of 1 Gbit/s: not measured: tc is missing"
	netns_enter "$ROOT/tests/bench/put_all.sh" "$@"
	run_links
	;;
esac
