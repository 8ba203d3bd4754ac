#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
# timeout: 90
# native-only
#
# Two hosts with a cable in each of two networks, both slower than who writes: a stream goes by both, whole and in
# order. By one that is asked for it goes alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/netns.sh
command -v tc >/dev/null || { echo "no tc here: apt-get install iproute2"; exit 77; }
netns_enter "$0" "$@"
netns_host alpha
netns_host beta
netns_link alpha beta
netns_link alpha beta

PERFTEST=$SLMPM_BUILD/bin/slmpm_perftest
DIR=$(mktemp -d /run/net_spread.XXXXXX)
MESSAGES=100 SIZE=65536
export SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff
export SLMPM_LINKS=10.77.1.0/24,10.77.2.0/24 SLMPM_LINKS_AFTER=0

fail() {
	echo "$*"
	[ ! -e "$DIR/near" ] || tail -20 "$DIR/near"
	[ ! -e "$DIR/far" ] || timeout 1 cat "$DIR/far" # a pipe
	exit 1
}

for cable in 1 2; do
	netns_on alpha tc qdisc add dev v$cable-1 root tbf rate 200mbit burst 128k limit 1m 2>"$DIR/tc" ||
		netns_skip "no limits for a cable here: $(cat "$DIR/tc")"
done

sent() { netns_on alpha tc -s qdisc show dev "v$1-1" | sed -n 's/.*Sent \([0-9]*\) bytes.*/\1/p'; }

# stream SETTINGS: KiB that it sends by each cable, in `first` and `second`
stream() {
	local far port line='' one two
	rm -f "$DIR"/*
	mkfifo "$DIR/far" && exec 3<>"$DIR/far"
	# shellcheck disable=SC2086
	netns_on beta env $1 "$PERFTEST" --listen tcp://10.77.1.2:0 >"$DIR/far" 2>&1 &
	far=$!
	until port=$(sed -n 's|.*--connect tcp://10\.77\.1\.2:\([0-9]*\) .*|\1|p' <<<"$line") && [ "$port" ]; do
		IFS= read -r -t 20 line <&3 || fail "nobody listens"
	done
	one=$(sent 1) two=$(sent 2)
	# shellcheck disable=SC2086
	netns_on alpha env $1 "$PERFTEST" --connect "tcp://10.77.1.2:$port" -t send_bw -s $SIZE -n $MESSAGES -w $MESSAGES \
		--burst 16 --samples 1 --touch >"$DIR/near" 2>&1 || fail "$1: the stream fails"
	wait $far || fail "$1: the other side fails"
	first=$((($(sent 1) - one) / 1024)) second=$((($(sent 2) - two) / 1024))
}

all=$((2 * MESSAGES * SIZE / 1024))
stream SLMPM_MODE_LINK=auto
echo "$first and $second of $all KiB"
[ $first -gt $((all / 40)) ] && [ $second -gt $((all / 40)) ] || fail "not by both"
stream 'SLMPM_LINK=1 SLMPM_MODE_LINK=never'
echo "asked for the second: $first and $second of $all KiB"
[ $first -lt $((all / 3)) ] || fail "not by the second alone"
# Beside load a reader falls behind, and a link is left for its ring and queue: not what is asked here.
stream 'SLMPM_MODE_SPREAD=60000000 SLMPM_MODE_RING=101 SLMPM_MODE_QUEUE=1000000'
echo "with patience: $first and $second of $all KiB"
[ $second -lt $((all / 100)) ] || fail "not by the first alone"
rm -rf "$DIR"
