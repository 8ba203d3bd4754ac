#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
# timeout: 90
# native-only
#
# Two hosts with a cable in each of two networks, and a link over each: whichever cable is cut, what is sent goes by
# the other, nothing lost, doubled or reordered; once it is mended, its link comes back, even where the control connection went
# with it. With both cut the peers are DEAD. What SLMPM_LINKS cannot have is said.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/net_talk.sh
net_talk_enter "$0" 2
SLOW=${SLMPM_SAN:+3}
DEAD=$((1000 * ${SLOW:-1}))
export SLMPM_DEAD_MS=$DEAD
export SLMPM_LINKS=10.77.1.0/24,10.77.2.0/24 SLMPM_LOG_LEVEL=debug

# The link over cable N on both hosts: its PATTERN TIMES
both_say() { for host in alpha beta; do await "$DIR/$1.$host" "(tcp ${NET//N/$2}[^)]*) $3" "$4"; done; }
NET='10\.77\.N\.'

# Messages pass
goes_on() {
	local n
	n=$(grep -c '^at' "$DIR/$1.alpha")
	await "$DIR/$1.alpha" '^at' $((n + 3))
}

cut() {
	local host
	for host in alpha beta; do
		netns_on $host nft -f - <<-END || fail "nft refuses"
			add table inet cable$1
			add chain inet cable$1 in { type filter hook input priority 0; }
			add rule inet cable$1 in ip saddr 10.77.$1.0/24 drop
			add rule inet cable$1 in ip6 saddr fd77:$1::/64 drop
		END
	done
}
mend() { netns_on alpha nft delete table inet "cable$1" && netns_on beta nft delete table inet "cable$1" || fail "nft delete"; }

# ended NAME HOST: with EDEAD
ended() {
	await "$DIR/$1.$2" '^end'
	grep -q '^end EDEAD' "$DIR/$1.$2" || fail "$1 on $2: $(grep ^end "$DIR/$1.$2")"
}

echo "a link over each cable, once it is worth it"
pair one ask
both_say one 2 'stands$' 1
goes_on one

echo "the first cable is cut, and with it the control connection"
cut 1
both_say one 1 'is lost' 1
goes_on one
sleep "$((DEAD * 3 / 2000)).$((DEAD * 3 / 2 % 1000))"
goes_on one
echo "it is mended"
mend 1
both_say one 1 'stands again' 1
goes_on one

echo "the second cable is cut"
cut 2
both_say one 2 'is lost' 1
goes_on one
echo "it is mended"
mend 2
both_say one 2 'stands again' 1
goes_on one

echo "both are cut, of a pair whose control connection went before, and of one that has it"
pair both ask
both_say both 2 'stands$' 1
cut 1
cut 2
for name in one both; do
	ended $name alpha
	ended $name beta
done
mend 1
mend 2

echo "what cannot be had is said"
said() { # said WORDS LINKS: that is what slmpm_connect says
	SLMPM_LINKS=$2 netns_on alpha "$TALK" idle tcp://10.77.1.2:1 >"$DIR/said" 2>&1 && fail "$2: no error"
	grep -q "$1" "$DIR/said" || fail "$2: not \"$1\""
}
said 'SLMPM_LINKS=v1-1,v9-9: there is no interface or address v9-9' v1-1,v9-9
said 'SLMPM_LINKS=tcp,ib: there is no interface or address ib' tcp,ib
SLMPM_LINKS=10.77.1.0/24,10.99.0.0/16 SLMPM_LINKS_AFTER=0
pair two ask
await "$DIR/two.alpha" 'link 1 of 2 is not to be had'
goes_on two
[ "$(grep -c 'link 1.*not to be had' "$DIR/two.alpha")" -lt 20 ] || fail "it is tried too often"

echo "by IPv6"
if [ "$netns_six" ]; then
	NET=fd77:N:: THERE=[fd77:1::2] SLMPM_LINKS=fd77:1::/64,fd77:2::/64
	pair six ask
	both_say six 2 'stands$' 1
	cut 1
	both_say six 1 'is lost' 1
	goes_on six
	mend 1
	both_say six 1 'stands again' 1
	goes_on six
	echo "both are cut, of a pair whose control connection went before, and of one that has it"
	pair fresh ask
	both_say fresh 2 'stands$' 1
	cut 1
	cut 2
	for name in six fresh; do
		ended $name alpha
		ended $name beta
	done
	mend 1
	mend 2
	echo "one link by IPv4, one by IPv6"
	THERE=10.77.1.2 SLMPM_LINKS=10.77.1.0/24,fd77:2::/64
	pair both_families ask
	for host in alpha beta; do await "$DIR/both_families.$host" 'link 1 (tcp fd77:2::[^)]*) stands$'; done
	cut 1
	for host in alpha beta; do await "$DIR/both_families.$host" 'link 0 ([^)]*) is lost'; done
	goes_on both_families
fi
