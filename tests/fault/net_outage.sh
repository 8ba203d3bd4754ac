#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
# timeout: 90
# native-only
#
# Two hosts, and SLMPM_DEAD_MS as it is by itself: an outage shorter than that ends nobody and loses nothing, whether
# nothing passes either way or one way, and a longer one is found within a second more, on both sides, whoever of them
# sends, waits, polls, or is in no call for a while. The same with several links, and sockets driven by io_uring.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/net_talk.sh
net_talk_enter "$0" 1
DEAD=5000

now() { awk '{ print int($1 * 1000) }' /proc/uptime; }

# The kernel mends the cable, however busy this machine is.
netns_on alpha nft -f - <<-END || fail "nft refuses"
	add table inet lost
	add set inet lost to { type inet_proto; flags timeout; }
	add set inet lost from { type inet_proto; flags timeout; }
	add chain inet lost in { type filter hook input priority 0; }
	add chain inet lost out { type filter hook output priority 0; }
	add rule inet lost in meta l4proto @to drop
	add rule inet lost out meta l4proto @from drop
END

# cut "WAY..." [timeout N]: what goes to alpha, or from it, is lost, so long or for ever
cut() {
	local way rules=
	for way in $1; do rules+="add element inet lost $way { tcp ${2-} ${3-} }; "; done
	netns_on alpha nft "$rules" || fail "nft refuses"
}

# outage "WAY...": of 4.5 s; nobody ends
outage() {
	local name
	cut "$1" timeout 4500ms
	sleep 7.5
	for name in "${pairs[@]}"; do
		! grep -H '^end' "$DIR/$name".* || fail "$name: an outage of 4.5 s is its end"
	done
}

for mode in ask stream idle; do pair $mode $mode; done
# In no call for 0.7 s at a time: its margin is a timer that fires within a tenth of a second (silence.c).
AHEAD=-10 pair doze doze
SLMPM_WAIT=spin pair polling idle
SLMPM_TCP_ENGINE=uring pair engine stream
SLMPM_LINKS=2 SLMPM_LINKS_AFTER=0 pair links idle
SLMPM_LINKS=2 SLMPM_LINKS_AFTER=0 pair linked ask

echo "nothing passes for 4.5 s, then nothing one way"
outage "to from"
outage to
outage from
for mode in ask linked; do
	at=$(grep -c '^at' "$DIR/$mode.alpha")
	sleep 0.5
	[ "$(grep -c '^at' "$DIR/$mode.alpha")" -gt "$at" ] || fail "$mode does not go on"
done

echo "nothing passes any more"
began=$(now)
cut "to from"
sleep 5.5
for name in "${pairs[@]}"; do
	for host in alpha beta; do
		read -r _ error _ count at _ < <(await "$DIR/$name.$host" ^end)
		took=$((at - began))
		echo "$name on $host: $error after $took ms, $count messages"
		most=$((DEAD + 1000))
		[ "$name" != doze ] || most=$((most + 700)) # in no call for so long
		[ "$error" = EDEAD ] && [ $took -ge $DEAD ] && [ $took -le $most ] ||
			fail "$name on $host: $error after $took ms, which is not within $DEAD to $most"
	done
done
