#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One sample of a PIPE over two cables of 1 Gbit/s, from host to host to host, and of a bare socket's stream over the
# first of them: a JSON line with bytes a second of both. Hosts are namespaces; where those are not permitted it says so.
#	tests/bench/work_links.sh LINKS [bare-first]
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$ROOT" || exit 1
. tests/lib/netns.sh
command -v tc >/dev/null || netns_skip "links of 1 Gbit/s: tc is missing"
netns_enter "$ROOT/tests/bench/work_links.sh" "$@"
LINKS=$1 ORDER=${2:-}
for host in alpha beta gamma; do
	netns_host $host
done
netns_link alpha beta
netns_link beta gamma
export SLMPM_FABRIC=tcp SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff

# The bucket holds a packet as the kernel makes them: else it is cut up, and that is work.
limit() { # limit HOST DEVICE
	netns_on "$1" tc qdisc replace dev "$2" root tbf rate 1gbit burst 128k limit 1m ||
		netns_skip "links of 1 Gbit/s: tc refuses a limit"
}
limit alpha v1-1
limit beta v1-2
limit beta v2-1
limit gamma v2-2

pipe() {
	netns_on gamma "$LINKS" sink tcp://10.77.2.2:7470 &
	netns_on beta "$LINKS" relay tcp://10.77.1.2:7470 tcp://10.77.2.2:7470 &
	pipe=$(netns_on alpha "$LINKS" source tcp://10.77.1.2:7470)
	wait %1 %2
}

bare() {
	netns_on beta "$LINKS" bare-sink 10.77.1.2 &
	bare=$(netns_on alpha "$LINKS" bare-source 10.77.1.2)
	wait $!
}

[ "$ORDER" = bare-first ] && bare
pipe
[ "$ORDER" = bare-first ] || bare
echo "{\"pipe\":${pipe:-null},\"bare\":${bare:-null}}"
