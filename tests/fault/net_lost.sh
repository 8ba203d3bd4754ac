#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
# timeout: 60
# native-only
#
# Two hosts whose cable loses packets, or all of them. Loss costs time and nothing else; a short interruption
# likewise; a partition ends as EDEAD on both sides, whoever of them sends, waits or idles, in bounded time. Where one of
# two links is cut alone, what it carried goes by the other.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/net_talk.sh
net_talk_enter "$0" 1
SLOW=${SLMPM_SAN:+3}
DEAD=$((1000 * ${SLOW:-1})) # ms of silence
export SLMPM_DEAD_MS=$DEAD

# both RULE: the packets that RULE is for are lost on their way in, on both hosts
both() {
	local host
	for host in alpha beta; do
		netns_on $host nft -f - <<-END || fail "nft refuses: $1"
			add table inet lost
			add chain inet lost in { type filter hook input priority 0; }
			add rule inet lost in $1 drop
		END
	done
}

heal() {
	netns_on alpha nft delete table inet lost && netns_on beta nft delete table inet lost || fail "nft delete"
}

# ended NAME HOST ERROR MS: it ended so, in time; says how long it took
ended() {
	local word error ms count
	read -r word error ms count _ < <(await "$DIR/$1.$2" ^end)
	[ "$error" = "$3" ] && [ "$ms" -le "$4" ] || fail "$1 on $2: $word $error after $ms ms, wanted $3 within $4"
	echo "$1 on $2: $error after $ms ms, $count messages"
}

echo "two of a hundred packets are lost"
both 'numgen random mod 100 < 2'
pair loss ask 300
ended loss alpha none $DEAD
heal

echo "for a third of the time allowed nothing passes"
pair moment ask 8000
both 'meta l4proto tcp'
sleep "$(printf '0.%03d' $((DEAD / 3 % 1000)))"
heal
ended moment alpha none $DEAD

# busiest HOST: the other end's port of the connection that has sent most
busiest() {
	netns_on "$1" ss -tniH state established | awk '
		!/^[ \t]/ { port = $4; sub(/.*:/, "", port) }
		match($0, /bytes_acked:[0-9]+/) && substr($0, RSTART + 12, RLENGTH - 12) + 0 > most + 0 {
			most = substr($0, RSTART + 12, RLENGTH - 12)
			best = port
		}
		END { print best }'
}

echo "one of two links is cut"
SLMPM_LINKS=2 SLMPM_LINKS_AFTER=0 pair quiet idle
quiet=$(busiest alpha)
SLMPM_LINKS=2 SLMPM_LINKS_AFTER=0 pair link ask 20000
port=$(busiest alpha)
[ "$port" != "$quiet" ] || fail "port $port twice"
both "tcp dport { $port, $quiet } counter"
both "tcp sport { $port, $quiet } counter"
ended link alpha none $DEAD
for host in alpha beta; do
	netns_on $host nft list table inet lost | grep -q 'packets [1-9]' || fail "no packet to or from port $port on $host"
done
# By the one that has nothing to say, and cannot, the kernel finds it out.
for host in alpha beta; do
	tries=800
	while netns_on $host ss -tnH state established "( dport = :$quiet or sport = :$quiet )" | grep -q .; do
		[ $((tries -= 1)) -gt 0 ] || fail "the idle link is still there on $host"
		sleep 0.01
	done
done
heal

echo "nothing passes any more"
for mode in ask stream idle; do
	pair $mode $mode
done
both 'meta l4proto tcp'
for mode in ask stream idle; do
	for host in alpha beta; do
		ended $mode $host EDEAD $((5 * DEAD))
	done
done
