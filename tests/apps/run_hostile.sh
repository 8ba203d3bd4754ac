#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
#
# An agent that is told nonsense, cut off in its middle, or given files that are not what was offered; a relay
# whose agent does the same to it. Both end, say why, and leave nothing. A program that sends descriptors.
# timeout: 120
set -u
shopt -s lastpipe	# what is refused at the end of a pipe fails the test
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* >&2; exit 1; }
export TMPDIR=$dir/agents SLMPM_RUN_DIR=$dir
mkdir "$TMPDIR"

bytes() { local v=$1 n=$2; while [ $((n--)) -gt 0 ]; do printf "\\x$(printf %02x $((v & 255)))"; v=$((v >> 8)); done; }
frame() { # frame TYPE [PAYLOAD as for printf %b]: a NUL is \0
	local length
	length=$(printf %b "${2-}" | wc -c)
	bytes "$length" 4; bytes "$1" 1; printf %b "${2-}"
}
start() { frame 2 "$1"; }	# records, each with its \0
offer() { # offer NAME CONTENT [DIGEST OF]: of mode 755, always wanted
	printf %b "$2" >"$dir/content"
	{ bytes 1 4; bytes $((8#755)) 4; bytes "$(wc -c <"$dir/content")" 8
	printf %b "$(printf %b "${3-$2}" | sha256sum | cut -c1-64 | sed 's/../\\x&/g')"; printf '/nowhere\0%s\0' "$1"; } >"$dir/offer"
	bytes "$(wc -c <"$dir/offer")" 4; bytes 3 1; cat "$dir/offer"
}
data() { frame 5 "$1"; }
go() { frame 6; }
# talk TEXT: feeds standard input to an agent; what it says in the end
talk() {
	timeout 20 "$bin/slmpm_run" --agent >"$dir/said" 2>"$dir/err"
	[ $? != 124 ] || fail "$1: the agent does not end"
	[ -z "$(ls -A "$TMPDIR")" ] || fail "$1: left: $(ls -R "$TMPDIR")"
	grep -aq '^.....slmpm-agent 1' "$dir/said" || fail "$1: no hello"
}
refused() { # refused TEXT NAME: standard input is refused with it
	talk "$2"
	grep -aq "$1" "$dir/said" || fail "$2: not \"$1\": $(tr -d '\0' <"$dir/said" | tail -c 300)"
}
script='#!/bin/sh\necho ran $0 $*\ncat\nexit 7\n'

# The good case first, or nothing below would say anything. (0x0c END, exited, 7.)
{ start 'image=program/p\0arg=a\0arg=b\0'; offer program/p "$script"; data "$script"; go; cat "$dir/never" 2>/dev/null; sleep 0.3; } >"$dir/good"
{ cat "$dir/good"; sleep 1; } | talk good
grep -aq 'ran /.*/program/p a b' "$dir/said" || fail "good: $(cat "$dir/said")"
tail -c 13 "$dir/said" | cmp - <(frame 12 '\0\0\0\0\x07\0\0\0') || fail "good: no end"

# Cut off at many lengths; what was begun ends.
size=$(wc -c <"$dir/good")
for n in $(seq 0 "$(((size + 24) / 25))" $((size - 1))) $((size - 5)) $((size - 1)); do
	head -c "$n" "$dir/good" | talk "cut at $n"
	grep -aq 'ran' "$dir/said" && fail "cut at $n: it ran"
done

# Nonsense.
head -c 100000 /dev/urandom | talk "random bytes"
{ bytes 4294967295 4; bytes 2 1; } | refused 'Protocol error' "a frame of 4 GiB"
{ bytes 8388609 4; bytes 2 1; } | refused 'Protocol error' "a frame over the limit"
frame 0 | refused 'Protocol error' "type 0"
frame 13 | refused 'Protocol error' "type 13"
go | refused 'Protocol error' "go before start"
start 'image' | refused 'Protocol error' "a record without its end"
start '=x\0' | refused 'Protocol error' "a record without a key"
{ start ''; go; } | refused 'Protocol error' "nothing to run"
{ start 'image=program/p\0'; go; } | refused 'Protocol error' "a program that was not sent"
{ start 'image=program/p\0'; start 'image=program/p\0'; } | refused 'Protocol error' "two starts"
{ start 'image=program/p\0'; data x; } | refused 'Protocol error' "data without an offer"
{ start 'image=program/p\0'; frame 3 'short'; } | refused 'offered wrongly' "a short offer"
for name in ../p program/../p program/.. program/. program/ /etc/p program/a/b other/p program; do
	{ start "image=$name\0"; offer "$name" x; data x; } | refused 'offered wrongly' "the name $name"
done
[ ! -e "$dir/p" ] && [ ! -e "$dir/agents/p" ] || fail "a file outside of the folder"
{ start 'image=program/p\0'; offer program/p x; data xy; } | refused 'Protocol error' "more than was offered"
{ start 'image=program/p\0'; offer program/p xy; data x; go; } | refused 'Protocol error' "less than was offered"
{ start 'image=program/p\0'; offer program/p x y; data x; go; } | refused 'arrived damaged' "another file than was offered"
{ start 'image=program/p\0'; offer program/p x; data x; offer program/p x; data x; } | refused 'File exists' "one name twice"
{ start 'image=program/p\0'; offer program/p x; data x; go; } | refused 'Exec format error' "no program"
{ start 'command=/nowhere/p\0'; go; } | refused '/nowhere/p: No such file' "a program that is not there"
# While it runs: anything but a signal ends it.
{ start 'command=sleep\0arg=12347\0'; go; sleep 0.5; frame 10 'ab'; } | talk "a short signal"
{ start 'command=sleep\0arg=12347\0'; go; sleep 0.5; head -c 1000 /dev/urandom; } | talk "random bytes while it runs"
pgrep -f 'sleep 12347' >/dev/null && fail "a program outlives its agent"

# ---- a program of the job's that does so to slmpm_run ----
timeout 20 "$bin/slmpm_run" "$SLMPM_BUILD/tests/apps/run_guest" 2>"$dir/err" || fail "descriptors that nobody asked for stay open"

# ---- agents that break the rules: the host is told, and goes on ----
relay() { # relay TEXT SCRIPT...: an agent made of shell
	local text=$1
	shift
	printf '#!/bin/bash\n. %q\n%s\n' "$dir/parts" "$*" >"$dir/agent"
	chmod +x "$dir/agent"
	timeout 20 "$bin/slmpm_run" -q -H beta --listen 127.0.0.1 --remote "$dir/agent" "$bin/hello_host" >"$dir/out" 2>"$dir/err"
	[ $? = 1 ] || fail "$text: exit status is not 1"
	grep -q "$text" "$dir/err" || fail "not \"$text\": $(cat "$dir/err")"
}
{ declare -f bytes frame; echo "hello() { frame 1 'slmpm-agent 1'; }"; echo 'take() { head -c 100 >/dev/null; }'
echo 'take_all() { local h; while h=($(head -c 5 | od -An -tu1)) && [ ${h[4]-6} != 6 ]; do head -c $((h[0] + h[1] * 256 + h[2] * 65536)) >/dev/null; done; }'
} >"$dir/parts"
relay 'beta: it says "' 'head -c 300 /dev/urandom | tr -d "\0"; sleep 1'
relay 'ended with status 0 before an agent answered' ':'
relay 'speaks version 2, this one 1' "frame 1 'slmpm-agent 2'; sleep 1"
relay 'ended with status 3' 'hello; take; exit 3'
relay 'ended with status 3 before it was told what to run\|ended with status 3 while files were sent' 'hello; exec <&-; exit 3'
relay 'beta: no folder can be made in /nowhere: No such file' "TMPDIR=/nowhere exec $bin/slmpm_run --agent"
relay 'beta: a bell ?, a clear screen ?\[2J' "frame 8 '\\x0f\\0\\0\\0a bell \\a, a clear screen \\e[2J'; cat >/dev/null"
relay 'could not be sent: ' 'hello; take; frame 9 x; cat >/dev/null'
relay 'no such luck' "hello; take; frame 8 '\\x0f\\0\\0\\0no such luck'; cat >/dev/null"
relay 'does not keep to the rules' "hello; take; frame 4 '\\0'; frame 4 '\\0'; frame 4 '\\0'; cat >/dev/null"
# It says that the program runs, and then that, or nothing at all.
relay 'killed by signal 9\|ended\|died' "hello; for i in 1 2; do frame 4 '\\0'; done; frame 7 '\\x01\\0\\0\\0'; frame 3 x; cat >/dev/null"
grep -q 'does not keep to the rules; what ran there is ended' "$dir/err" || fail "no word of the wrong frame: $(cat "$dir/err")"
relay 'killed by signal 9\|ended\|died' "hello; for i in 1 2; do frame 4 '\\0'; done; take_all; frame 7 '\\x01\\0\\0\\0'"
grep -q 'the connection to its agent is lost' "$dir/err" || fail "no word of the loss: $(cat "$dir/err")"
exit 0
