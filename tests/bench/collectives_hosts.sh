#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Collective operations over TCP beside Open MPI's and MPICH's, as Markdown: four ranks, each on a host made of
# namespaces, in one network whose rate nothing limits, and eight, two on each host; those of four ours also with each
# algorithm that can be forced. Where namespaces are not permitted it says so. In $BIN are the programs that tests/bench/run builds.
#	tests/bench/collectives_hosts.sh BUILD CPUS PAIRS [ROWS]
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$ROOT" || exit 1
. tests/lib/netns.sh
[ "$(id -u)" = 0 ] || netns_skip "collectives over TCP: not measured: that takes root"
netns_enter "$ROOT/tests/bench/collectives_hosts.sh" "$@"
BUILD=$1 CPUS=$2 PAIRS=$3 ROWS=${4:-}
netns_bridge host0 host1 host2 host3 || netns_skip "collectives over TCP: not measured: no bridge"

# Both launchers start by this on the others what they start by ssh elsewhere: AGENT [-OPTION...] HOST COMMAND...
# A host has its name, and knows its own devices.
cat >/run/agent <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
exec nsenter --net="/run/networks/$1" --mount="/run/mounts/$1" unshare -u -m sh -c '
	hostname "$0" && mount -t sysfs sysfs /sys && exec sh -c "$*"' "$@"
END
cat /etc/hosts - >/run/hosts <<'END'
10.78.0.1 host0
10.78.0.2 host1
10.78.0.3 host2
10.78.0.4 host3
END
cat >/run/ours <<END
#!/bin/sh
exec "$BUILD/bin/slmpm_run" -q -H "\${1:-host1,host2,host3}" --remote "$netns_remote env -i PATH=$PATH" \
	--runner "$BUILD/bin/slmpm_run" "$BUILD/bin/slmpm_perftest" --serve -c "$CPUS"
END
chmod +x /run/agent /run/ours
for host in host0 host1 host2 host3; do netns_on $host mount --bind /run/hosts /etc/hosts || exit 1; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export SLMPM_FABRIC=tcp SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff SLMPM_RUN_DIR=/run/lock
export UCX_LOG_LEVEL=error UCX_WARN_UNUSED_ENV_VARS=n

n=0 ranks='4 hosts'
system() { printf '%s\t%s\texec /run/agent host0 "%s"\n' "$ranks" "$1" "$2" >>/run/systems; }
openmpi() {
	local on=-n\ 4\ --host\ host0,host1,host2,host3 btl=self,tcp
	[ -x "$BIN/coll_openmpi" ] || return
	[ "$ranks" = '4 hosts' ] || on=-n\ 8\ --host\ host0:2,host1:2,host2:2,host3:2 btl=self,vader,tcp
	system "Open MPI $1" "mpirun.openmpi --bind-to none --oversubscribe $on --mca plm_rsh_agent /run/agent \
--mca oob_tcp_if_include near --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl $btl --mca btl_tcp_if_include near $2 \
$BIN/coll_openmpi $CPUS /run/order$((++n))"
}
mpich() {
	[ -x "$BIN/coll_mpich" ] || return
	system MPICH "UCX_TLS=tcp,self UCX_NET_DEVICES=near mpirun.mpich -n 4 -ppn 1 -hosts host0,host1,host2,host3 -launcher ssh \
-launcher-exec /run/agent -iface near $BIN/coll_mpich $CPUS /run/order$((++n))"
}
forced() { system "ours, $1" "SLMPM_COLL_ALGORITHM=$1 /run/ours"; }

system ours /run/ours
printf '4 hosts\tmachine\texec %s\n' "$BIN/collectives_bare 4 $CPUS /run/networks" >>/run/systems
openmpi tuned ''
openmpi adapt '--mca coll_adapt_priority 100'
openmpi han '--mca coll_han_priority 100'
mpich
for algorithm in dissemination tree binomial chain flat recursive_doubling ring reduce_broadcast pairwise binary star; do
	forced $algorithm
done
ranks='8 on 4 hosts'
system ours "env -u SLMPM_FABRIC /run/ours host0,host1:2,host2:2,host3:2"
openmpi tuned ''
openmpi han '--mca coll_han_priority 100'
# A yield lets those of the own session run alone, where sessions share processors: of hosts there is no such thing.
sessions=/proc/sys/kernel/sched_autogroup_enabled
was=$(cat $sessions 2>/dev/null) && echo 0 >$sessions && trap 'echo "$was" >$sessions' EXIT
"$BIN/collectives" /run/systems "$PAIRS" "$ROWS"
