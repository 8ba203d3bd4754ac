#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_run on one machine: output, exit codes, signals, limits, --status and --kill, topologies that cannot be
# understood; and starts "elsewhere" by a remote command that stays here.
# waits
set -u
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* >&2; exit 1; }
export SLMPM_RUN_DIR=$dir/jobs TMPDIR=$dir/agents
mkdir "$dir/jobs" "$dir/agents"
run() { timeout 40 "$bin/slmpm_run" "$@" >"$dir/out" 2>"$dir/err"; }
far() { run --listen 127.0.0.1 --remote env --runner "$bin/slmpm_run" "$@"; }
# Nothing is left: no job, no agent's folder.
gone() {
	local tries=0
	while [ -n "$(ls -A "$dir/agents")" ]; do
		[ $((tries += 1)) -lt 200 ] || fail "$1: left: $(ls "$dir/agents")"
		read -r -t 0.05 _ <><(:)
	done
	[ -z "$(ls -A "$dir/jobs/slmpm-run-$(id -u)")" ] || fail "$1: left: $(ls "$dir/jobs"/*)"
}

# Exit codes.
for code in 0 1 77 255; do
	run sh -c "exit $code"
	[ $? = $code ] || fail "exit code $code became another"
done
run sh -c 'kill -TERM $$'
[ $? = 143 ] || fail "a signal is not 128 and its number"
run "$dir"
[ $? = 126 ] || fail "a folder as a program"
gone "exit codes"

# Here, and as if elsewhere; output as it is, labelled, in files.
for how in run far; do
	[ $how = run ] && h=() || h=(-H beta:3)
	$how "${h[@]}" "$bin/hello_host" || fail "$how: hello: $?"
	[ "$(cat "$dir/out")" = "hello from the accelerator" ] || fail "$how: hello said $(cat "$dir/out")"
	seq 3000 | $how -l "${h[@]}" "$bin/am_counter" 3 || fail "$how: am_counter: $?"
	grep -qx '\[host\] 3000 lines, 3000 words' "$dir/out" || fail "$how: no label: $(cat "$dir/out")"
done
[ "$(grep -c '^\[[123] beta\] [0-9]* lines were mine$' "$dir/err")" = 3 ] || fail "far: labels: $(cat "$dir/err")"
mkdir "$dir/output"
seq 3000 | far -o "$dir/output" -H beta:3 "$bin/am_counter" 3 || fail "-o: $?"
[ "$(cat "$dir/output/host.out")" = "3000 lines, 3000 words" ] || fail "-o: host.out"
[ "$(cat "$dir"/output/[123].err | wc -l)" = 3 ] && [ ! -s "$dir/output/1.out" ] || fail "-o: $(ls -l "$dir/output")"
gone output

# The DaCS ways to name a program, its directory and environment; messages of all kinds.
SLMPM_TEST_ELSEWHERE=1 far -q -H beta:4 "$SLMPM_BUILD/tests/dacs/launch" || fail "dacs_de_start elsewhere: $?"
far -q -H beta:4 "$SLMPM_BUILD/tests/dacs/message" || fail "dacs_send elsewhere: $?"
gone DaCS

# A host without standard descriptors.
far -H beta sh -c '"$0" <&- >&- 2>&-' "$bin/hello_host" || fail "standard descriptors closed: $?"
far -H beta sh -c '"$0" <&-' "$bin/hello_host" && [ "$(cat "$dir/out")" = "hello from the accelerator" ] ||
	fail "standard input closed: $?: $(cat "$dir/out")"
gone "closed descriptors"

# Many of them, one after the other, by few descriptors.
(ulimit -n 36; far -l -H beta sh -c 'for i in $(seq 25); do "$0" || exit; done' "$bin/hello_host") || fail "many starts: $?"
[ "$(grep -cx '\[host\] hello from the accelerator' "$dir/out")" = 25 ] || fail "many starts: $(cat "$dir/out")"
gone "many starts"

# A long line, no line end, binary zeroes: whole and once.
run -l sh -c 'head -c 40000 /dev/zero | tr "\0" x; echo; printf "no end"' || fail "long lines: $?"
[ "$(sed 's/^\[host\] //' "$dir/out" | tr -d '\n' | wc -c)" = 40006 ] || fail "a long line lost something"

# Variables: for everybody, and the settings go along.
cat >"$dir/topology" <<END
listen 127.0.0.1
env     PLACE=common
host    first	# here
  elements 1
host    second
  remote env VIA=%h%%
  agent  $bin/slmpm_run
  env    PLACE=own
END
run -t "$dir/topology" -e GIVEN=now "$bin/slmpm_info" --check || fail "-t: $?"
mkdir "$dir/elsewhere"
far -H beta --chdir "$dir/elsewhere" "$bin/hello_host" || fail "--chdir"
far -H beta --chdir "$dir/nowhere" "$bin/hello_host" && fail "--chdir nowhere"
grep -q "not found: beta: $dir/nowhere: No such file" "$dir/err" || fail "--chdir nowhere: $(cat "$dir/err")"

# Without slmpm_run around it: it is found beside the program.
sed -i 's/^host    first.*/host first\n  remote env/' "$dir/topology"
SLMPM_TOPOLOGY=$dir/topology "$bin/hello_host" >"$dir/out" 2>"$dir/err" || fail "SLMPM_TOPOLOGY: $?"
[ "$(cat "$dir/out")" = "hello from the accelerator" ] || fail "SLMPM_TOPOLOGY: $(cat "$dir/out")"

# Strangers at the port of a start, silent or with another ticket, before the accelerator: it gets in.
mkdir "$dir/pair"
cp "$bin/hello_host" "$dir/pair"
cat >"$dir/pair/hello_accel" <<END
#!/bin/bash
address=\${SLMPM_PARENT#tcp://} address=\${address%%/*}
at=/dev/tcp/\${address%:*}/\${address##*:}
knock() { exec {fd}<>\$at; }
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do knock; done
printf SLMPMWAY0123456789abcdef >\$at
head -c 1000 /dev/urandom >\$at
for i in 1 2 3 4 5 6; do knock; done
exec "$bin/hello_accel"
END
chmod +x "$dir/pair/hello_accel"
LD_LIBRARY_PATH=$SLMPM_BUILD/lib far -H beta "$dir/pair/hello_host" || fail "strangers: $?"
[ "$(cat "$dir/out")" = "hello from the accelerator" ] || fail "strangers: $(cat "$dir/out")"
grep -q 'a stranger knocked and was sent away' "$dir/err" || fail "strangers: $(cat "$dir/err")"

# The same file there is used where it lies, unless somebody else could change it.
printf '#!/bin/sh\necho ran $0 >&2\nexec "%s"\n' "$bin/hello_accel" >"$dir/pair/hello_accel"
for mode in 755 757; do
	chmod $mode "$dir/pair/hello_accel"
	LD_LIBRARY_PATH=$SLMPM_BUILD/lib far -H beta "$dir/pair/hello_host" || fail "mode $mode: $?"
	[ $mode = 755 ] && where=$dir/pair || where="$TMPDIR/.*/program"
	grep -qx "ran $where/hello_accel" "$dir/err" || fail "mode $mode: $(cat "$dir/err")"
done

# Limits, leftovers, signals.
run --timeout 1 sleep 60
[ $? = 124 ] || fail "--timeout: $?"
run --grace 0 sh -c 'sleep 1000 & echo $!; exit 3'
[ $? = 3 ] || fail "leftovers: $?"
kill -0 "$(cat "$dir/out")" 2>/dev/null && fail "what was left runs on"
gone limits

# --status shows it, --kill ends it; so does a signal.
begin() { # begin PROGRAM...: $pid, when it runs
	mkfifo "$dir/up"
	"$bin/slmpm_run" sh -c "echo >$dir/up; exec sleep 1000" &
	pid=$!
	read -r _ <"$dir/up"
	rm "$dir/up"
}
begin
"$bin/slmpm_run" --status >"$dir/out" || fail "--status: $?"
grep -q "^job-[^ ]*  pid $pid  since .*  running  sh -c" "$dir/out" || fail "--status: $(cat "$dir/out")"
grep -Eq '^  host +local +[0-9]+ +running +sh' "$dir/out" || fail "--status: $(cat "$dir/out")"
job=$(sed -n 's/^\(job-[^ ]*\) .*/\1/p' "$dir/out")
"$bin/slmpm_run" --kill=job-other 2>"$dir/err" && fail "--kill of none"
"$bin/slmpm_run" --kill="$job" || fail "--kill: $?"
wait $pid
[ $? = 143 ] || fail "killed: exit status $?"
begin
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "a signal is not passed on"
# Killed without warning, it takes its host program along, and the next one removes its folder.
begin
child=$(pgrep -P $pid)
kill -KILL $pid
wait $pid 2>/dev/null
tries=0
while kill -0 "$child" 2>/dev/null && [ "$(ps -o stat= -p "$child" | cut -c1)" != Z ]; do
	[ $((tries += 1)) -lt 200 ] || fail "the host program outlives slmpm_run"
	read -r -t 0.05 _ <><(:)
done
[ "$("$bin/slmpm_run" --status)" = "no job runs" ] || fail "a dead job is shown"
run true
gone "a crash"

# What cannot be understood, by its line.
refused() { # refused LINE TEXT
	run -t "$dir/bad" true
	[ $? = 1 ] || fail "$2: understood"
	grep -q "/bad:$1: .*$2" "$dir/err" || fail "not line $1, $2: $(cat "$dir/err")"
}
bad() { printf "$@" >"$dir/bad"; }
bad 'host a\nhots b\n'; refused 2 '"hots"'
bad 'host a\n\nhost a\n'; refused 3 'host a again, after line 1'
bad 'host -o\n'; refused 1 'no name of a host'
bad 'host a b\n'; refused 1 'no name of a host'
bad 'host a\n elements x\n'; refused 2 'elements x'
bad 'host a\n elements 70000\n'; refused 2 'elements 70000'
bad 'host a\n elements 0\n'; refused 2 'no element'
bad '# nothing\n'; refused 1 'no host'
bad 'host\n'; refused 1 'nothing behind it'
bad 'host a\n chdir b\n'; refused 2 'an absolute path'
bad 'host a\n ship sometimes\n'; refused 2 'auto, always or never'
bad 'host a\n pci 03:00\n'; refused 2 '"03:00" is no address'
bad 'host a\n pci 03:00.0,x,04:00.0\n'; refused 2 'pci: "x" is no address like 0000:03:00.0'
bad 'host a\n env b\n'; refused 2 'NAME=VALUE'
bad 'host a\n env SLMPM_SECRET=b\n'; refused 2 'set for each start'
bad 'host a\n remote b\n remote c\n'; refused 3 'remote again'

# Starts that fail say why, and who.
says() { # says TEXT OPTIONS...
	local text=$1
	shift
	run --listen 127.0.0.1 -H beta "$@" "$bin/hello_host" && fail "$text: it started"
	grep -q "beta: $text" "$dir/err" || fail "not \"$text\": $(cat "$dir/err")"
}
says 'the remote command "no-such-command" cannot be started: No such file' --remote no-such-command
says 'the remote command "false" ended with status 1 before an agent answered' --remote false
says 'exit status 127 before an agent answered: no "/no/slmpm_run" there' --remote env --runner /no/slmpm_run
says 'it says "Welcome to beta /' --remote 'echo Welcome to %h' --runner /
says "the remote command was ended by signal 15" --remote 'sh -c kill${IFS}$$'
SLMPM_START_MS=300 says 'not started within 300 ms' --remote 'sh -c exec${IFS}sleep${IFS}12345'
tries=0
while pgrep -x -f 'sleep 12345' >/dev/null; do
	[ $((tries += 1)) -lt 200 ] || fail "a remote command outlives its start"
	read -r -t 0.05 _ <><(:)
done
run -H beta --remote env "$bin/hello_host" && fail "a network was used unasked"
grep -q 'beta: .*SLMPM_INSECURE=y allows it' "$dir/err" || fail "no word of SLMPM_INSECURE"
gone "starts that fail"
exit 0
