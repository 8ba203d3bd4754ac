#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_sim beside what it simulates, as Markdown: collectives of four members, each on a host made of namespaces, over
# links of a given latency and rate (wire.c), and what slmpm_sim says of as many nodes with the figures of those links as
# they are measured: one way of 8 bytes, a stream of 1 MiB, messages a second. Exit status 1: some are more than 15 %
# apart. Where namespaces are not permitted it says so. Half a minute.
#	tests/bench/simulate_links.sh [LATENCY-US [MBITS [SAMPLES]]]
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$ROOT" || exit 1
. tests/lib/netns.sh
BUILD=${SLMPM_BUILD:-$ROOT/build} LATENCY=${1:-10000} MBITS=${2:-100} SAMPLES=${3:-11}
BIN=$BUILD/bench/bin
if [ -z "${NETNS_INSIDE:-}" ]; then
	[ -x "$BUILD/bin/slmpm_sim" ] || { echo "$BUILD/bin/slmpm_sim is not there: make"; exit 1; }
	[ -e /dev/net/tun ] || netns_skip "links: no /dev/net/tun"
	mkdir -p "$BIN"
	gcc -O2 tests/bench/wire.c -o "$BIN/wire" &&
		gcc -O2 -Iinclude tests/bench/apart.c -L"$BUILD/lib" -lslmpm -Wl,-rpath,"$BUILD/lib" -o "$BIN/apart" || exit 1
fi
netns_enter "$ROOT/tests/bench/simulate_links.sh" "$@"

hosts=(head alpha beta gamma delta) networks=()
for host in "${hosts[@]}"; do
	netns_host "$host"
	networks+=("/run/networks/$host")
done
mkfifo /run/end /run/said
"$BIN/wire" "$LATENCY" "$MBITS" "${networks[@]}" </run/end >/run/said 2>/run/wire &
exec {end}>/run/end
read -r said </run/said || netns_skip "links: $(cat /run/wire)"
export SLMPM_FABRIC=tcp SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff SLMPM_RUN_DIR=/run/lock

# figure TEST SIZE COUNT NAME: of the link from alpha to beta
figure() {
	local far port said
	rm -f /run/far
	mkfifo /run/far
	netns_on beta timeout 30 "$BUILD/bin/slmpm_perftest" --listen tcp://10.79.0.3:0 2>/run/far >/dev/null &
	far=$!
	exec {from}</run/far
	while read -r port <&"$from" && [[ $port != *--connect* ]]; do :; done
	port=${port##*tcp://10.79.0.3:}
	said=$(netns_on alpha timeout 30 "$BUILD/bin/slmpm_perftest" --connect "tcp://10.79.0.3:${port%% *}" -t "$1" -s "$2" -n "$3" \
		--samples 3 --wait block --json)
	exec {from}<&-
	wait $far
	sed -n 's/.*"'"$4"'":\([0-9.]*\).*/\1/p' <<<"$said"
}
latency=$(figure send_lat 8 30 lat_us) bandwidth=$(figure send_bw 1m 16 bytes_per_s) rate=$(figure send_rate 8 1000 messages_per_s)
[ "$latency" ] && [ "$bandwidth" ] && [ "$rate" ] || { echo "links: not measured"; exit 1; }
echo
echo "Links of $LATENCY us and $MBITS Mbit/s each way: $latency us one way, $bandwidth bytes/s, $rate messages/s."
echo
echo '| four members | by | measured, ms | 80 % of them | simulated, ms | ratio | within 15 % |'
echo '| --- | --- | --: | --: | --: | --: | --- |'

# A socket takes what is sent; a packet is as long as wire.c's.
row() { # COLLECTIVE BYTES MEDIAN LOW HIGH
	"$BUILD/bin/slmpm_sim" -c "$1" -n 4 -s "$2" -l "${latency}us" -b "$bandwidth" -r "$rate" --eager 1g -p 9000 --json |
		sed -E 's/.*"algorithm":"([a-z_]*)".*"time_ns":([0-9.e+]*),.*/\1 \2/' |
		awk -v what="$1" -v bytes="$2" -v median="$3" -v low="$4" -v high="$5" '{
			ratio = median / ($2 / 1000)
			printf "| %s, %s bytes | %s | %.2f | %.2f-%.2f | %.2f | %.3f | %s |\n", what, bytes, $1, median / 1000,
				low / 1000, high / 1000, $2 / 1e6, ratio, (ratio > 0.85 && ratio < 1.15) ? "pass" : "FAIL"
		}'
}
netns_on head timeout 120 "$BUILD/bin/slmpm_run" -q -H alpha,beta,gamma,delta --remote "$netns_remote env -i PATH=$PATH" \
	--runner "$BUILD/bin/slmpm_run" "$BIN/apart" 4 "$SAMPLES" barrier:0 allreduce:8 allreduce:8192 allreduce:1048576 \
	broadcast:8 broadcast:65536 broadcast:1048576 reduce:8 allgather:65536 alltoall:65536 >/run/times || { cat /run/times; exit 1; }
while read -r collective bytes median low high; do
	row "$collective" "$bytes" "$median" "$low" "$high"
done </run/times | tee /run/rows
exec {end}>&-
grep -q pass /run/rows && ! grep -q FAIL /run/rows
