#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo --reduce: the accelerators' own counts add up to the host's and to what find says, with any number of them, over
# each fabric, and when some or all of them are killed.
# timeout: 120
set -u
. "$(dirname "$0")/../lib/demo.sh"

# counted WHAT FILES SIZES: what the table says was reduced.
counted() {
	grep -Eq "^  reduced  +$2 files, .*, equal to the host's own count$" "$dir/err" || fail "$1: not $2 files"
	grep -Fq " $3" <(grep -E '^    sizes ' "$dir/err") || fail "$1: not $3"
}

mkdir "$dir/tree" && cd "$dir/tree" || exit 1
: >empty
for i in $(seq 40); do echo "$i" >"small-$i"; done
for size in 1023 1024 4095 4096 65535 65536 262144; do head -c $size /dev/zero >"size-$size"; done
truncate -s 3M large
truncate -s 20M larger
all='1 empty, 41 below 1 KiB, 2 below 4 KiB, 1 below 16 KiB, 1 below 64 KiB, 1 below 256 KiB, 1 below 1 MiB, 1 below 4 MiB, 1 larger'
for options in '-n 1' '-n 2' '-n 5 -w 9' '-n 2 --fabric shm' '-n 2 -p put' '-n 2 --fabric tcp'; do
	# shellcheck disable=SC2086
	"$demo" --reduce $options . 2>"$dir/err" | sha256sum --quiet --strict -c || fail "$options: digests"
	# shellcheck disable=SC2086
	"$demo" -q --reduce $options . 2>"$dir/err" || fail "$options: exit status $?"
	counted "$options" 50 "$all"
	adds_up "--reduce $options"
done
cd / || exit 1
"$demo" -q "$dir/tree" 2>"$dir/err" || fail "without"
! grep -q reduced "$dir/err" || fail "reduced without --reduce"

# Some are killed, and all: what they had counted, the host has.
make_long
for case in "1 of 3" "2 of 2"; do
	killed=${case%% *} all=${case##* }
	begin --reduce -n "$all"
	stop_all
	read -r -a pids < <(children "$host")
	for pid in "${pids[@]:0:$killed}"; do kill -KILL "$pid" || fail "no pid $pid"; done
	for pid in "${pids[@]:$killed}"; do kill -CONT "$pid"; done
	cat <&3 >/dev/null
	exec 3<&-
	wait "$host" || fail "killed $case: exit status $?"
	grep -q ", $killed lost," "$dir/err" || fail "killed $case: the table does not say so"
	counted "killed $case" 7 '1 below 256 KiB, 6 larger'
done
exit 0
