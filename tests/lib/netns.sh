# SPDX-License-Identifier: BSD-3-Clause
#
# Hosts made of namespaces, for a test script to source: each has its own network, mounts and home. All of it lies in
# namespaces of the test's own, so that it is gone with the test, however that ends; processes too.
#
#	. "$(dirname "$0")/../lib/netns.sh"
#	netns_enter "$0" "$@"		# the script begins again in there; says why and skips where that is not allowed
#	netns_host alpha		# a host with its loopback
#	netns_link alpha beta		# a cable: alpha $(netns_address alpha beta), beta $(netns_address beta alpha)
#					# and, of the N-th one if $netns_six, fd77:N::1, fd77:N::2
#	netns_bridge a b c		# those hosts, made and in one network besides: 10.78.0.1, 10.78.0.2, ... at their device "near";
#					# false where the kernel has no bridge. Here the far ends are far1, far2, ...
#	netns_hide beta DIRECTORY	# which is empty there, and its own
#	netns_on beta COMMAND...	# run it there, in its home /home/beta
#	$netns_remote			# the same as a command of one line, with %h for the host

netns_remote='nsenter --net=/run/networks/%h --mount=/run/mounts/%h --wdns=/home/%h'

netns_skip() { echo "$*"; exit 77; }

netns_enter() {
	local user=() script=$1
	shift
	if [ -n "${NETNS_INSIDE:-}" ]; then
		netns_prepare
		return
	fi
	for tool in unshare nsenter ip mount; do
		command -v $tool >/dev/null || netns_skip "no namespaces: $tool is missing"
	done
	[ "$(id -u)" = 0 ] || user=(-U -r)
	unshare "${user[@]}" -m -n -p -f --kill-child --mount-proc sh -c 'mount -t tmpfs none /run && ip link add v1 type veth peer name v2' \
		2>/dev/null || netns_skip "no namespaces with a network: not permitted here"
	exec env NETNS_INSIDE=1 unshare "${user[@]}" -m -n -p -f --kill-child --mount-proc bash "$script" "$@"
}

netns_prepare() {
	mount -t tmpfs none /run && mkdir /run/networks /run/mounts /run/lock &&
		mount --make-rprivate / && ip link set lo up || netns_skip "no namespaces: mounts are refused"
	netns_cables=0
}

# A process holds both: hosts that were made before this one could not see a name that is mounted now.
netns_host() {
	local said hold
	exec {hold}< <(exec unshare -m -n sh -c 'mount -t tmpfs none /home && mkdir "/home/$0" && echo made
		exec sleep infinity >/dev/null' "$1")
	ln -s "/proc/$!/ns/mnt" "/run/mounts/$1" && ln -s "/proc/$!/ns/net" "/run/networks/$1" && read -r said <&"$hold" && [ "$said" ] &&
		ip netns attach "$1" $! && ip -n "$1" link set lo up || netns_skip "host $1: refused"
	exec {hold}<&-
}

netns_link() {
	local n=$((netns_cables += 1))
	ip link add "v$n-1" netns "$1" type veth peer name "v$n-2" netns "$2" &&
		ip -n "$1" addr add "10.77.$n.1/24" dev "v$n-1" && ip -n "$1" link set "v$n-1" up &&
		ip -n "$2" addr add "10.77.$n.2/24" dev "v$n-2" && ip -n "$2" link set "v$n-2" up ||
		netns_skip "a cable from $1 to $2: refused"
	ip -n "$1" addr add "fd77:$n::1/64" dev "v$n-1" nodad 2>/dev/null &&
		ip -n "$2" addr add "fd77:$n::2/64" dev "v$n-2" nodad && netns_six=yes || netns_six=
	eval "netns_from_$1_$2=10.77.$n.1 netns_from_$2_$1=10.77.$n.2"
	eval "netns_device_$1_$2=v$n-1 netns_device_$2_$1=v$n-2"
}

netns_bridge() {
	local host n=0
	ip link add net0 type bridge && ip link set net0 up || return
	for host; do
		netns_host "$host"
		ip link add "far$((++n))" type veth peer name near netns "$host" && ip link set "far$n" master net0 up &&
			ip -n "$host" addr add "10.78.0.$n/24" dev near && ip -n "$host" link set near up || return
	done
}

# Of the first host, on the cable to the second.
netns_address() { eval "echo \$netns_from_$1_$2"; }
netns_device() { eval "echo \$netns_device_$1_$2"; }

netns_on() {
	local host=$1
	shift
	nsenter --net="/run/networks/$host" --mount="/run/mounts/$host" --wdns="/home/$host" "$@"
}

netns_hide() { netns_on "$1" mount -t tmpfs none "$2" || netns_skip "$2 on $1: refused"; }
