#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo's early ends: Ctrl-C and its like, an output that takes no more, accelerators killed under
# stress; and a terminal.
# timeout: 120
set -u
. "$(dirname "$0")/../lib/demo.sh"
. "$(dirname "$0")/../lib/terminal.sh"

make_long

# Ctrl-C: everybody at the terminal gets it.
for signal in INT TERM HUP; do
	begin -n 2
	stop_all
	read -r -a pids < <(children "$host")
	[ "$signal" != INT ] || kill -INT "${pids[@]}"
	kill -"$signal" "$host"
	wait "$host" 2>/dev/null
	[ $? = $((128 + $(kill -l $signal))) ] || fail "$signal: it did not end by that"
	exec 3<&-
	gone "$signal" "${pids[@]}"
	grep -q '^slmpm_demo: 2 accelerators, 0 lost, .*, interrupted$' "$dir/err" || fail "$signal: no table"
done

# A process group under slmpm_run gets one, and slmpm_run passes on its own: that is once.
demo=$SLMPM_BUILD/bin/slmpm_run
set -m # a group of its own
begin "$SLMPM_BUILD/bin/slmpm_demo" -n 2
set +m
run=$host
read -r host _ < <(children "$run")
stop_all
read -r -a pids < <(children "$host")
kill -INT -- -"$run"
wait "$run" 2>/dev/null
[ $? = 130 ] || fail "a group under slmpm_run: it did not end by SIGINT"
exec 3<&-
gone "a group under slmpm_run" "${pids[@]}"
grep -q '^slmpm_demo: 2 accelerators, 0 lost, .*, interrupted$' "$dir/err" || fail "a group under slmpm_run: no table"
demo=$SLMPM_BUILD/bin/slmpm_demo

# Ctrl-C, and what goes to standard output fills a pipe that nobody reads, or reads only then: no more is written.
many=() long=$dir/$(printf '%0200d' 0)
echo many >"$long"
for i in {1..800}; do many+=("$long"); done
blocked() { [[ $(cat "/proc/$host/wchan") == *pipe* ]]; }
for reads in none late; do
	begin -n 2 "${many[@]}"
	for i in {1..40}; do blocked || read -r -t 0.05 _ <><(:); done
	kill -INT "$host"
	# What the pipe has, and the write that waited for room.
	[ $reads = none ] || bytes=$(wc -c <&3)
	[ $reads = none ] || [ "$bytes" -le $((65536 + 8192)) ] || fail "interrupted, it goes on writing: $bytes bytes"
	wait "$host" 2>/dev/null
	[ $? = 130 ] || fail "a full pipe, $reads: it did not end by SIGINT"
	exec 3<&-
	! grep 'standard output' "$dir/err" || fail "a full pipe, $reads: the interrupted write is named as an error"
done

# An output that nobody reads, or that is full.
begin -n 2
stop_all
exec 3<&-
for pid in $(children "$host"); do kill -CONT "$pid"; done
wait "$host"
[ $? = 1 ] || fail "a broken pipe goes unnoticed"
grep -q '^slmpm_demo: standard output: Broken pipe$' "$dir/err" || fail "no word of the broken pipe"
"$demo" "$dir/first" >/dev/full 2>"$dir/err"
[ $? = 1 ] || fail "a full disk goes unnoticed"
grep -q '^slmpm_demo: standard output: No space left on device$' "$dir/err" || fail "no word of the full disk"

# An accelerator is killed while others are under stress.
sha256sum "$dir"/file-* >"$dir/want"
for stress in ring link; do
	begin -n 3 --stress $stress
	read -r -a pids < <(children "$host")
	kill -KILL "${pids[0]}"
	cat <&3 >"$dir/sums"
	exec 3<&-
	wait "$host" || fail "killed under --stress $stress: exit status $?"
	cmp "$dir/want" "$dir/sums" || fail "killed under --stress $stress: wrong digests"
	grep -q ', 1 lost,' "$dir/err" || fail "killed under --stress $stress: nobody lost"
done

[ -n "$has_terminal" ] || end_of_terminal
# At a terminal Ctrl-C goes to slmpm_run and all below it: nobody is named as killed. Its screen tells when. There are more
# than are hashed before the key is pressed.
mkfifo "$dir/keys" "$dir/screen"
files=$(echo "$dir"/file-*)
timeout 50 script -qefc "$SLMPM_BUILD/bin/slmpm_run $demo -q $dir/first $files $files $files $files $files $files" /dev/null <"$dir/keys" >"$dir/screen" &
terminal=$!
exec 4>"$dir/keys"
: >"$dir/err"
stop=
while IFS= read -r -d $'\r' line <&5; do
	printf '%s\r' "$line" >>"$dir/err"
	[[ $stop || $line != *'%'*of* ]] || { printf '\003' >&4; stop=pressed; }
done 5<"$dir/screen"
exec 4>&-
wait $terminal
[ $? = 130 ] || fail "Ctrl-C under slmpm_run: exit status"
grep -q 'interrupted' "$dir/err" || fail "Ctrl-C under slmpm_run: no table"
grep -q 'killed by signal' "$dir/err" && fail "Ctrl-C under slmpm_run: somebody is named as killed"

# A terminal has a bar, and the same table.
script -qec "$demo -q $dir/first" /dev/null </dev/null >"$dir/err" || fail "at a terminal: exit status $?"
grep -q "$(printf '\r\033\\[K\\[')" "$dir/err" || fail "no bar"
grep -q ' found in /' "$dir/err" || fail "no word while folders are walked"
grep -q '^  files  *1' "$dir/err" || fail "no table"
exit 0
