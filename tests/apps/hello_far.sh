#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 60
# native-only
#
# Hello between two hosts (namespaces): by address and by name, nearer ways are not found, addresses
# of the network are refused until they are allowed, and a secret may lie in a file.
set -u
. "$(dirname "$0")/../lib/netns.sh"
netns_enter "$0" "$@"
bin=$SLMPM_BUILD/bin
fail() { echo "$*" >&2; exit 1; }

netns_host alpha
netns_host beta
netns_link alpha beta
here=$(netns_address alpha beta)

unset SLMPM_SECRET SLMPM_INSECURE SLMPM_FABRIC

said=$(netns_on alpha timeout 20 "$bin/tcp_hello" -l "tcp://$here:0" 2>&1) && fail "it listened on the network unasked"
grep -q SLMPM_INSECURE=y <<<"$said" || fail "refused without saying how to allow it: $said"
said=$(SLMPM_SECRET=00112233445566778899aabbccddeeff netns_on beta timeout 20 "$bin/tcp_hello" "tcp://$here:9" 2>&1) &&
	fail "it connected over the network unasked"
grep -q SLMPM_INSECURE=y <<<"$said" || fail "refused without saying how to allow it: $said"
export SLMPM_INSECURE=y

# meet LISTEN CONNECT: what is printed has the port.
meet() {
	local setting program url pid answer
	coproc host { netns_on alpha timeout 20 "$bin/tcp_hello" -l "$1" 2>&1; }
	pid=$host_PID
	exec 9<&"${host[0]}"
	read -r -t 10 setting program url <&9 || fail "$1: it does not say where it listens"
	[ "$program" = tcp_hello ] || fail "$1: it said: $setting $program $url"
	url=$2:${url##*:}
	(umask 077 && echo "${setting#*=}" >/run/secret)
	answer=$(SLMPM_SECRET=@/run/secret netns_on beta timeout 20 "$bin/tcp_hello" "$url" 2>&1) ||
		fail "$1 as $url: $answer"
	[ "$answer" = "hello yourself" ] || fail "$1 as $url answered: $answer"
	read -r -t 10 answer <&9
	[ "$answer" = "hello over TCP" ] || fail "$1 heard: $answer"
	wait "$pid" || fail "$1 ended with $?"
	echo "$1 as $2"
	exec 9<&-
}

meet "tcp://$here:0" "tcp://$here"
meet "tcp://*:0" "tcp://$here"
cp /etc/hosts /run/hosts 2>/dev/null
echo "$here alpha.example" >>/run/hosts
mount --bind /run/hosts /etc/hosts 2>/dev/null && netns_named=tcp://alpha.example
# Hosts have mounts of their own: there it is mounted again.
if [ -n "${netns_named:-}" ] && netns_on beta mount --bind /run/hosts /etc/hosts 2>/dev/null; then
	meet "tcp://*:0" "$netns_named"
fi

# Nobody is there: the answer comes at once, or not at all.
said=$(SLMPM_SECRET=@/run/secret netns_on beta timeout 20 "$bin/tcp_hello" "tcp://$here:9" 2>&1) && fail "somebody at port 9"
grep -q "nobody listens there" <<<"$said" || fail "port 9: $said"
