# SPDX-License-Identifier: BSD-3-Clause
#
# Two hosts, alpha and beta, and pairs of tests/fault/net_talk between them, for a test script to source.
#
#	. tests/lib/net_talk.sh
#	net_talk_enter "$0" CABLES	# restarts the script on hosts joined by so many cables (netns.sh); skips without nft
#	$DIR/NAME.alpha, $DIR/NAME.beta	# what both ends of a pair have said

. tests/lib/netns.sh

net_talk_enter() {
	local cable
	command -v nft >/dev/null || netns_skip "no nft here: apt-get install nftables"
	netns_enter "$1"
	netns_host alpha
	netns_host beta
	for ((cable = 0; cable < $2; cable++)); do netns_link alpha beta; done
	TALK=$SLMPM_BUILD/tests/fault/net_talk THERE=10.77.1.2 # beta's address, by the first cable
	pairs=()
	DIR=$(mktemp -d "/run/$(basename "$1" .sh).XXXXXX")
	export SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff
}

fail() {
	echo "$*"
	tail -n 50 "$DIR"/* 2>/dev/null
	exit 1
}

# await FILE PATTERN [TIMES]: the first of so many lines of the kind, from a program that runs beside; for 20 s
await() {
	local tries=2000 n
	until n=$(grep -c "$2" "$1" 2>/dev/null); [ "${n:-0}" -ge "${3:-1}" ]; do
		[ $((tries -= 1)) -gt 0 ] || fail "$1: not ${3:-1} times \"$2\" in twenty seconds"
		sleep 0.01
	done
	grep -m 1 "$2" "$1"
}

# pair NAME MODE [COUNT]: beta listens, alpha connects and does so; one more of ${pairs[@]}. With $AHEAD they go before
# what else this machine computes, where that is permitted: silence is told to a tenth of a second.
pair() {
	local name=$DIR/$1 port
	netns_on beta nice -n "${AHEAD:-0}" "$TALK" echo "tcp://$THERE:0" >"$name.beta" 2>&1 &
	port=$(await "$name.beta" ^port) || fail "$port"
	netns_on alpha nice -n "${AHEAD:-0}" "$TALK" "$2" "tcp://$THERE:${port#port }" ${3+"$3"} >"$name.alpha" 2>&1 &
	await "$name.alpha" ^joined >/dev/null || fail "$1: not joined"
	pairs+=("$1")
}
