#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What no tool can do: each ends with an error status and one line that names the cause and what to do.
set -u
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir/err" >&2; exit 1; }

refused() { # refused STATUS WHAT PROGRAM ARGUMENTS...
	local status=$1 what=$2 rc
	shift 2
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	rc=$?
	[ $rc = "$status" ] || fail "$*: exit status $rc, not $status"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "$*: not one line"
	grep -q -- "$what" "$dir/err" || fail "$*: does not say \"$what\""
	[ ! -s "$dir/out" ] || fail "$*: something on standard output"
}

# Options that do not exist or lack what belongs to them, alone, in groups, before and after others.
for tool in slmpm_info slmpm_demo slmpm_perftest slmpm_run slmpm_stat slmpm_sim mirror_demo jacobi disk_controller disk_copy disk_ask; do
	for bad in --nonsense -Z -ZZ; do
		refused 2 "^$tool: $bad: .*--help" "$bin/$tool" "$bad"
	done
	refused 2 "^$tool: --nonsense=3: .*--help" "$bin/$tool" --nonsense=3
done
# Help and version that cannot be written.
for tool in slmpm_info slmpm_demo slmpm_perftest slmpm_run slmpm_stat slmpm_sim mirror_demo jacobi disk_controller disk_copy disk_ask; do
	for ask in --help --version -h; do
		"$bin/$tool" $ask >/dev/full 2>"$dir/err" && fail "$tool $ask: all is well"
		grep -q "^$tool: standard output could not be written" "$dir/err" || fail "$tool $ask: why not?"
	done
done
refused 2 '^slmpm_info: -vZ: no such option' "$bin/slmpm_info" -d -vZ
refused 2 '^slmpm_info: -Zv: ' "$bin/slmpm_info" -d -Zv
refused 2 '^slmpm_info: --nonsense: ' "$bin/slmpm_info" --nonsense -vd
refused 2 '^slmpm_info: -m: ' "$bin/slmpm_info" -m
refused 2 '^slmpm_info: -s: without its PID; see --help' "$bin/slmpm_info" -v -s
refused 2 '^slmpm_demo: -n: ' "$bin/slmpm_demo" -q -n
refused 2 '^slmpm_demo: --quiet=yes: ' "$bin/slmpm_demo" --quiet=yes
refused 2 '^slmpm_demo: --accelerators: without its ' "$bin/slmpm_demo" . --accelerators
refused 2 '^slmpm_perftest: -t: ' "$bin/slmpm_perftest" -t
refused 2 '^slmpm_perftest: --wait: ' "$bin/slmpm_perftest" -t send_lat --wait
refused 2 '^slmpm_perftest: "65536" is no test; sizes go with -s: ' "$bin/slmpm_perftest" -t send_lat -s 8 65536
refused 2 '^slmpm_perftest: "65536" is no test; sizes go with -s: ' "$bin/slmpm_perftest" -s 8 65536

refused 1 '^slmpm_run: /nosuch/pre-host.out: No such file' "$bin/slmpm_run" -o /nosuch/pre true
refused 2 '^slmpm_run: -H: ' "$bin/slmpm_run" -H
refused 2 '^slmpm_run: --statuss: ' "$bin/slmpm_run" --statuss true

# Values out of range, or no values at all.
refused 2 'say what to run' "$bin/slmpm_run" -l
refused 2 'from 1 to 65536' "$bin/slmpm_run" -n 0 true
refused 2 'from 1 to 65536' "$bin/slmpm_run" -n x true
refused 2 'not both' "$bin/slmpm_run" -n 2 -H a:1 true
refused 2 'not both' "$bin/slmpm_run" -t /dev/null -H a true
refused 2 'are of -H' "$bin/slmpm_run" --chdir / true
refused 2 'stand alone' "$bin/slmpm_run" --status true
refused 2 'NAME or NAME=VALUE' "$bin/slmpm_run" -e =x true
refused 127 'no-such-program: No such file' "$bin/slmpm_run" no-such-program
refused 1 'No such file' "$bin/slmpm_run" -t "$dir/nowhere" true
refused 1 '^slmpm_run: -H a/b: "a/b" is no name of a host' "$bin/slmpm_run" -H a/b true
refused 1 '^slmpm_run: -H a:x: elements x: a number from 0' "$bin/slmpm_run" -H a:x true
refused 1 '^slmpm_run: -H a,a: host a again' "$bin/slmpm_run" -H a,a true
refused 2 'how slmpm_spawn starts it' "$bin/slmpm_run" --relay
refused 2 '"what"' "$bin/slmpm_info" what
refused 2 '"what"' "$bin/slmpm_stat" what
refused 2 '"what".*--help' "$bin/mirror_demo" what
refused 2 '1 to 16' "$bin/mirror_demo" -n 17
refused 2 '"what".*--help' "$bin/jacobi" what
refused 2 'from 1 to 64' "$bin/jacobi" -n 65
refused 2 'from 8 to 16384' "$bin/jacobi" -s 7
refused 2 'from 1 to' "$bin/jacobi" -i 0
refused 2 'from 0 on' "$bin/jacobi" -t -1
refused 2 'fewer cells than the 61 accelerators' "$bin/jacobi" -n 61 -s 60
refused 1 '/nosuch/plate.png: No such file' "$bin/jacobi" -o /nosuch/plate.png
refused 2 '0' "$bin/slmpm_info" -m 0
refused 2 'x' "$bin/slmpm_info" -s x
refused 1 '2147483647' "$bin/slmpm_info" -s 2147483647
refused 2 'from 1 to 64' "$bin/slmpm_demo" -n 65
refused 2 'from 1 to 64' "$bin/slmpm_demo" -n ''
refused 2 'from 1 to 64' "$bin/slmpm_demo" -w 1x
refused 2 'from 1 to 65536' "$bin/slmpm_sim" -n 65537
refused 2 'full, torus, mesh or tree' "$bin/slmpm_sim" -w star
refused 2 'three numbers' "$bin/slmpm_sim" -w torus -x 4x4
refused 2 'do not make 16 nodes' "$bin/slmpm_sim" -n 16 -w torus -x 3x0x0
refused 2 'is for a torus or a mesh' "$bin/slmpm_sim" -x 4x4x4
refused 2 'there are: barrier broadcast ' "$bin/slmpm_sim" -c nothing
refused 2 'but by: dissemination tree' "$bin/slmpm_sim" -c barrier -a ring
refused 2 'from 0 to 63, of 64 nodes' "$bin/slmpm_sim" -c reduce --root 64
refused 2 'a number of bytes' "$bin/slmpm_sim" -s 2g
refused 2 'a time' "$bin/slmpm_sim" -l 1h
refused 2 '"what"' "$bin/slmpm_sim" what
refused 2 'auto smt map attach ring am tag' "$bin/slmpm_perftest" -t put_lat --mode ''
refused 2 'adaptive spin block' "$bin/slmpm_perftest" -t send_lat --wait ''

# Settings that cannot be read: every tool that uses them names the first.
export SLMPM_WAIT=sometimes
refused 1 'SLMPM_WAIT=sometimes: one of: adaptive spin block' "$bin/slmpm_demo" -n 1 "$0"
refused 1 'SLMPM_WAIT=sometimes: one of: adaptive spin block' "$bin/slmpm_perftest" -t send_lat -n 10 --samples 1
refused 1 'SLMPM_WAIT=sometimes: one of: adaptive spin block' "$bin/hello_host"
refused 1 'SLMPM_WAIT=sometimes: one of: adaptive spin block' "$bin/disk_ask" -d "$0" identify 0
unset SLMPM_WAIT
refused 1 'SLMPM_RING_SEGMENTS=1000: a power of two' env SLMPM_RING_SEGMENTS=1000 "$bin/hello_host"
refused 1 'SLMPM_SEGMENT_SIZE=65: a power of two' env SLMPM_SEGMENT_SIZE=65 "$bin/hello_host"
refused 1 'SLMPM_RING_SEGMENTS=16, .*at least 8 KiB' env SLMPM_RING_SEGMENTS=16 "$bin/hello_host"
refused 1 'SLMPM_SEGMENT_SIZE=1048576: .*at most 4 GiB' env SLMPM_SEGMENT_SIZE=1m "$bin/hello_host"
refused 1 'SLMPM_EAGER_MAX=3x: .*k, m, g may follow' env SLMPM_EAGER_MAX=3x "$bin/hello_host"

# Programs that are missing, or started by hand though they are to be started by another.
cp "$bin/hello_host" "$dir/hello_host"
refused 1 'hello_accel cannot be started' env LD_LIBRARY_PATH="$SLMPM_BUILD/lib" "$dir/hello_host"
cp "$bin/disk_ask" "$dir/disk_ask"
refused 1 'disk_controller cannot be started' env LD_LIBRARY_PATH="$SLMPM_BUILD/lib" PATH= "$dir/disk_ask" -d "$0" identify 0
refused 1 'not started by slmpm_spawn' "$bin/hello_accel"
refused 1 'not started by slmpm_spawn' "$bin/disk_controller" -d "$0"
refused 1 'not started by slmpm_spawn' "$bin/slmpm_demo" --accelerator
exit 0
