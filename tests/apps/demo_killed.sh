#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Killing slmpm_demo's accelerators mid-run: a clear message, right digests all the same.
# timeout: 120
set -u
. "$(dirname "$0")/../lib/demo.sh"

make_long
sha256sum "$dir"/file-* >"$dir/want" || exit 1

finish() {
	cat <&3 >"$dir/sums"
	exec 3<&-
	wait "$host" || fail "$1: exit status $?"
	cmp "$dir/want" "$dir/sums" || fail "$1: wrong digests"
}

kill_some() { # kill_some COUNT: stopped first, so that none can finish meanwhile
	local pids
	read -r -a pids < <(children "$host")
	[ ${#pids[@]} -gt 0 ] || fail "there are no accelerators to kill"
	for pid in "${pids[@]:0:$1}"; do kill -KILL "$pid" || fail "no pid $pid"; done
	for pid in "${pids[@]:$1}"; do kill -CONT "$pid"; done
}

for case in "1 of 2" "2 of 3" "2 of 2"; do
	killed=${case%% *} all=${case##* }
	begin -n "$all"
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
begin -n 2
stop_all
read -r -a pids < <(children "$host")
kill -KILL "$host"
wait "$host" 2>/dev/null
exec 3<&-
gone "the host killed" "${pids[@]}"
exit 0
