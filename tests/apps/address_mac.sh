#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# native-only
#
# A peer is found by the MAC of the interface that its end of a link is on: of another host by two cables, a link over
# each, and of this one.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/netns.sh
netns_enter "$0" "$@"
netns_host alpha
netns_host beta
netns_link alpha beta
netns_link alpha beta

perf=$SLMPM_BUILD/bin/slmpm_perftest
dir=$(mktemp -d /run/address_mac.XXXXXX)
export SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff
fail() { echo "$*"; tail -n 20 "$dir"/*; exit 1; }

mac() { ip -n "$1" -o link show dev "$2" | sed -n 's|.*link/ether \([0-9a-f:]*\) .*|\1|p'; }

# measure HOST ADDRESS LINK MAC: alpha measures with HOST, which listens at ADDRESS, by LINK
measure() {
	local listener tries=0 url
	: >"$dir/listen"
	netns_on "$1" "$perf" --listen "tcp://$2:0" 2>"$dir/listen" &
	listener=$!
	until url=$(sed -n 's/.* --connect \([^ ]*\) .*/\1/p' "$dir/listen") && [ "$url" ]; do
		[ $((tries += 1)) -lt 400 ] || fail "$1 does not listen"
		read -r -t 0.05 _ <><(:)
	done
	netns_on alpha "$perf" --connect "$url" --to "mac:$4" -t send_lat,put_lat -s 64 -n 50 --samples 1 --json >"$dir/out" 2>"$dir/err" ||
		fail "mac:$4: exit status $?"
	[ "$(grep -c "\"fabric\":\"tcp\".*\"link\":$3," "$dir/out")" = 2 ] || fail "mac:$4: not by link $3"
	wait $listener || fail "$1 ended with $?"
}

first=$(mac beta v1-2) second=$(mac beta v2-2) own=$(mac alpha v1-1)
[ "$first" ] && [ "$second" ] && [ "$own" ] && [ "$first" != "$second" ] || fail "no addresses: \"$first\", \"$second\", \"$own\""
export SLMPM_LINKS=10.77.1.0/24,10.77.2.0/24
measure beta 10.77.1.2 0 "$first"
measure beta 10.77.1.2 1 "$second"
second=${second^^}
measure beta 10.77.1.2 1 "${second//:/-}"
export SLMPM_LINKS=1 SLMPM_FABRIC=tcp
measure beta 10.77.1.2 null "$first"
measure alpha 10.77.1.1 null "$own"
