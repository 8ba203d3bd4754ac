#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A group whose members are on two other hosts, which know each other by the addresses alone that who founds has
# passed on: it forms, and computes; within each host first. One put to many goes by each cable once, for those of a host stand together.
# waits
# native-only
# timeout: 60
set -u
. "$(dirname "$0")/../lib/netns.sh"
netns_enter "$0" "$@"
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/out "$dir"/err >&2; exit 1; }

for host in alpha beta gamma; do netns_host $host; done
netns_link alpha beta
netns_link alpha gamma
export SLMPM_INSECURE=y SLMPM_RUN_DIR=$dir
# Members of DaCS's that cannot reach each other learn why their barrier does not end.
SLMPM_TIMEOUT=100 netns_on alpha timeout 40 "$bin/slmpm_run" -q -H beta,gamma --remote "$netns_remote env -i PATH=$PATH" \
	--runner "$bin/slmpm_run" "$SLMPM_BUILD/tests/apps/net_dacs" >"$dir/out" 2>"$dir/err" || fail "net_dacs: $?"
[ "$(grep -c "^DACS_ERR_DACSD_FAILURE: .*: rank [01] .* is not reached: .*: tcp://10.77.*: Network is unreachable" "$dir/out")" = 2 ] ||
	fail "net_dacs: $(cat "$dir/out")"
# beta and gamma reach each other by way of alpha.
netns_on alpha sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' 2>/dev/null || netns_skip "no forwarding here"
netns_on beta ip route add 10.77.2.0/24 via 10.77.1.1
netns_on gamma ip route add 10.77.1.0/24 via 10.77.2.1

# group HOSTS COUNT
group() {
	netns_on alpha timeout 40 "$bin/slmpm_run" -q -H "$1" --remote "$netns_remote env -i PATH=$PATH" --runner "$bin/slmpm_run" \
		"$bin/group_pi" "$2" >"$dir/out" 2>"$dir/err" || fail "$1: $?"
	grep -qx "pi is 3.141593, by $2" "$dir/out" || fail "$1: $(cat "$dir/out")"
}
group beta,gamma 4
group beta 3

# Three on each: what is short goes within each host first.
netns_on alpha timeout 40 "$bin/slmpm_run" -q -H beta,gamma --remote "$netns_remote env -i PATH=$PATH" --runner "$bin/slmpm_run" \
	"$SLMPM_BUILD/tests/apps/net_hosts" >"$dir/out" 2>"$dir/err" || fail "net_hosts: $?"
for kind in barrier broadcast reduce allreduce; do
	grep -qx "$kind by hosts" "$dir/out" || fail "$kind does not go within each host first"
done

grep -qx "allreduce in the order of the ranks by hosts" "$dir/out" || fail "in the order of the ranks it does not"

# There they have memory: with any function, and asleep; who differs, is late, dies or is stopped is named; without one that has died the others go on.
for ends in die stop write leave; do
	netns_on alpha timeout 40 "$bin/slmpm_run" -q -H beta,gamma --remote "$netns_remote env -i PATH=$PATH" --runner "$bin/slmpm_run" \
		"$SLMPM_BUILD/tests/apps/net_machine" 1 $ends >"$dir/out" 2>"$dir/err" || fail "net_machine $ends: $?"
done

# bytes that beta has sent
sent() { netns_on beta awk '$1 == "v1-2:" { print $10 }' /proc/self/net/dev; }
# put_all FLAGS LEAST MOST: the bytes of one that leave beta, where its caller is, in MiB
put_all() {
	local before after
	before=$(sent)
	netns_on alpha timeout 40 "$bin/slmpm_run" -q -H beta,gamma --remote "$netns_remote env -i PATH=$PATH" --runner "$bin/slmpm_run" \
		"$SLMPM_BUILD/tests/apps/net_put_all" "$1" >"$dir/out" 2>"$dir/err" || fail "put_all $1: $?"
	after=$((($(sent) - before) >> 20))
	[ "$(sort "$dir/out")" = "$(printf '%d has it\n' 0 1 2 3)" ] || fail "put_all $1: not all have it"
	echo "put_all $1: $after MiB leave beta"
	[ $after -ge "$2" ] && [ $after -le "$3" ] || fail "put_all $1: $after MiB"
}
put_all 8 4 6   # the line
put_all 16 8 10 # to each
