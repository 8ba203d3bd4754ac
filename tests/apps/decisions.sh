#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_perftest(1), SETTINGS SEEN: each command there shows what the setting changes, and why; without it, it does not.
# native-only
# timeout: 120
set -u
cd "$(dirname "$0")/../.." || exit 1
PATH=$SLMPM_BUILD/bin:$PATH
dir=$(mktemp -d) || exit 1
there=
trap 'kill $there 2>/dev/null; rm -rf "$dir"' EXIT
unset SLMPM_FABRIC SLMPM_LINK SLMPM_LINKS SLMPM_MODE SLMPM_RMA SLMPM_ENGINE
fail() { printf '%s\n' "$*"; cat "$dir"/*; exit 1; }
documented() { grep -qFx -- "	$*" doc/man/slmpm_perftest.1.scd || fail "the page has not: $*"; }
run() { timeout 40 env bash -c "$*" >"$dir/out" 2>&1; }
show() { run "$*" || fail "$*: exit status $?"; }
# times WHAT: how often it was decided so.
times() { sed -nE "/^decided: $1, [0-9]+ times$/s/.*, ([0-9]+) times/\1/p" "$dir/out" | awk '{ n += $1 } END { print n + 0 }'; }

# decided WHAT SETTING COMMAND: with the setting at least LEAST times, and without it less often.
LEAST=1
decided() {
	documented "$2 $3"
	for try in 1 2 3; do # what is measured, and who comes in time, varies
		show "$2 $3 --samples 1"
		[ "$(times "$1")" -lt $LEAST ] || break
		[ $try != 3 ] || fail "$2 $3: not $1"
	done
	show "$3 --samples 1"
	[ "$(times "$1")" -lt $LEAST ] || fail "$3: $1, without $2"
}
decided 'smt, because: setting' SLMPM_DEFAULT_SMT=tcp 'SLMPM_LINKS=shm,tcp slmpm_perftest -t send_lat -s 100k --decisions'
decided 'request, because: setting' SLMPM_DEFAULT_PUT=tcp 'SLMPM_LINKS=shm,tcp slmpm_perftest -t put_lat --decisions'
decided 'request, because: setting' SLMPM_DEFAULT_RGET=tcp 'SLMPM_LINKS=shm,tcp slmpm_perftest -t get_lat --decisions'
puts='SLMPM_ENGINE=inline SLMPM_LINKS=shm,tcp SLMPM_LINKS_AFTER=0 SLMPM_RING_SEGMENTS=4096 slmpm_perftest -t put_bw -s 128k -n 300 --burst 32 --decisions'
decided 'request, because: queue' SLMPM_MODE_DMA=4 "$puts"
decided 'request, because: both' SLMPM_MODE_RING=40 "SLMPM_MODE_DMA=4 $puts"
decided '(smt|rget), because: aggregate' SLMPM_AGGREGATE=y 'SLMPM_MONITOR_MS=1 slmpm_perftest -t send_lat -s 64k -n 4000 --samples 1 --decisions'
LEAST=100 decided 'smt, because: call' SLMPM_ATTACH=n 'SLMPM_FETCH=always slmpm_perftest -t send_lat -s 1m -n 200 --samples 1 --decisions'
show 'SLMPM_FETCH=always SLMPM_LINKS=shm,tcp slmpm_perftest -t send_lat -s 1m -n 200 --samples 1 --decisions'
[ "$(times 'rget, because: setting')" -ge 100 ] || fail "links of two fabrics: not fetched"
# Done when its handler has run: by a request, where am_lat goes at once.
documented 'slmpm_perftest -t am_lat,am_remote --decisions'
show 'slmpm_perftest -t am_remote -n 200 --samples 1 --decisions'
[ "$(times 'smt, because: call')" -ge 200 ] || fail "am_remote: not by requests"
show 'slmpm_perftest -t am_lat -n 200 --samples 1 --decisions'
[ "$(times 'smt, because: call')" -lt 200 ] || fail "am_lat: by requests"

# Processors of who is started from a single one.
cpus='SLMPM_LOG_LEVEL=debug taskset -c 0 slmpm_demo -q -n 1 /etc/hostname'
documented "SLMPM_CPUS=inherit $cpus"
if taskset -c 0 true 2>/dev/null && [ "$(nproc)" -gt 1 ]; then
	show "SLMPM_CPUS=inherit $cpus"
	grep -q "is started on processors 0: this process's, as set" "$dir/out" || fail "SLMPM_CPUS=inherit"
	show "$cpus"
	grep -q "is started on processors 0.*: the cpuset's, for this process has 1 for 2 busy ones" "$dir/out" || fail "no SLMPM_CPUS"
fi

# One that many connect with, and what slmpm_stat says of it.
serve() { # SETTING NAME
	kill $there 2>/dev/null
	: >"$dir/there"
	env $1 slmpm_perftest --listen shm:$2 --serve 2>"$dir/there" &
	there=$!
	for _ in $(seq 200); do
		grep -q listening "$dir/there" && return
		read -r -t 0.05 _ <><(:)
	done
	fail "nobody listens"
}
met='slmpm_perftest --connect shm:there -t put_lat --mode attach'
documented 'SLMPM_ATTACH=y slmpm_perftest --listen shm:there --serve &'
documented "SLMPM_ATTACH=y $met"
serve SLMPM_ATTACH=y there
if slmpm_info --check | grep -q '^works *cross-memory attach'; then show "SLMPM_ATTACH=y $met"; fi
run "$met" && fail "attached without SLMPM_ATTACH=y"
grep -q 'wanted path "attach", but here it is "ring"' "$dir/out" || fail "$met: why not?"
# Refused by name, and counted; and totals, over all connections of a name.
for name in one two; do
	documented "SLMPM_NAME=$name slmpm_perftest --connect shm:there -t send_lat"
	show "SLMPM_NAME=$name slmpm_perftest --connect shm:there -t send_lat -n 200 --samples 1"
done
show 'SLMPM_NAME=one slmpm_perftest --connect shm:there -t send_lat -n 200 --samples 1'
show "slmpm_stat -t $there"
grep -Eq ' one +0 +2 +[1-9]' "$dir/out" && grep -Eq ' two +0 +1 +[1-9]' "$dir/out" || fail "totals by name"
documented 'SLMPM_HEADER=misaddressed SLMPM_NAME=two slmpm_perftest --connect shm:there -t send_lat'
run 'SLMPM_HEADER=misaddressed SLMPM_NAME=two slmpm_perftest --connect shm:there -t send_lat' && fail "another's messages were taken"
grep -q 'process id of a message' "$dir/out" || fail "refused without a name"
show "slmpm_stat -a -d $there"
[ "$(grep -c 'header ids; refused 1 violations, 1 of them misaddressed' "$dir/out")" = 1 ] || fail "not counted"
show "slmpm_stat -t $there"
grep -Eq ' one .* 0$' "$dir/out" && grep -Eq ' two +0 +2 .* 1$' "$dir/out" || fail "not counted by name"
