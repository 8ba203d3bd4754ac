#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Killing slmpm_demo's accelerators mid-run: a clear message, right digests all the same.
# timeout: 120
set -u
demo=$SLMPM_BUILD/bin/slmpm_demo
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir/err" >&2; exit 1; }

# Sparse files take no disk, and long enough to be in the middle of.
big=${SLMPM_SAN:+24}
for i in 1 2 3 4 5 6; do
	echo "file $i" >"$dir/file-$i"
	truncate -s "${big:-96}M" "$dir/file-$i"
done
sha256sum "$dir"/file-* >"$dir/want" || exit 1
head -c 100000 /dev/zero >"$dir/first"

children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

# The first digest on its way out shows that the run is in its middle.
begin() {
	mkfifo "$dir/pipe"
	"$demo" -n "$1" "$dir/first" "$dir"/file-* >"$dir/pipe" 2>"$dir/err" &
	host=$!
	exec 3<"$dir/pipe"
	rm "$dir/pipe"
	read -r _ <&3 || fail "no digest at all"
}

finish() {
	cat <&3 >"$dir/sums"
	exec 3<&-
	wait "$host" || fail "$1: exit status $?"
	cmp "$dir/want" "$dir/sums" || fail "$1: wrong digests"
}

stop_all() { for pid in $(children "$host"); do kill -STOP "$pid"; done; }

kill_some() { # kill_some COUNT: stopped first, so that none can finish meanwhile
	local pids
	read -r -a pids < <(children "$host")
	[ ${#pids[@]} -gt 0 ] || fail "there are no accelerators to kill"
	for pid in "${pids[@]:0:$1}"; do kill -KILL "$pid" || fail "no pid $pid"; done
	for pid in "${pids[@]:$1}"; do kill -CONT "$pid"; done
}

for case in "1 of 2" "2 of 3" "2 of 2"; do
	killed=${case%% *} all=${case##* }
	begin "$all"
	stop_all
	kill_some "$killed"
	finish "killed $case"
	[ "$(grep -c 'lost accelerator [0-9]* (pid [0-9]*)' "$dir/err")" = "$killed" ] || fail "killed $case: no clear message"
	grep -q ", $killed lost," "$dir/err" || fail "killed $case: the table does not tell"
	grep -Eq 'done again *[1-9]' "$dir/err" || fail "killed $case: nothing was done again"
	if [ "$killed" = "$all" ]; then
		grep -Eq 'hashed by the host *[1-9]' "$dir/err" || fail "killed $case: who hashed?"
	fi
done

# The host killed: its accelerators do not outlive it.
begin 2
stop_all
read -r -a pids < <(children "$host")
kill -KILL "$host"
wait "$host" 2>/dev/null
exec 3<&-
for pid in "${pids[@]}"; do
	tries=0
	while kill -0 "$pid" 2>/dev/null; do
		[ $((tries += 1)) -lt 200 ] || fail "accelerator $pid outlives its host"
		read -r -t 0.05 _ <><(:)
	done
done
exit 0
