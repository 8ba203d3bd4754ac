#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs that slmpm_run starts on another host: what they are given, what they say, and how they end, each end from
# either side; nothing of them is left there, and no secret stands among anybody's arguments.
# waits
# native-only
# timeout: 120
set -u
. "$(dirname "$0")/../lib/netns.sh"
netns_enter "$0" "$@"
bin=$SLMPM_BUILD/bin host=$SLMPM_BUILD/tests/apps/run_host
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* >&2; exit 1; }

netns_host alpha
netns_host beta
netns_link alpha beta
netns_hide beta /mnt
netns_on beta sh -c "mkdir -p /mnt/bin /mnt/lib; cp '$bin/slmpm_run' /mnt/bin; cp -P '$SLMPM_BUILD'/lib/libslmpm.so* /mnt/lib; mkdir /mnt/tmp /mnt/work"
netns_hide beta /tmp
export SLMPM_INSECURE=y SLMPM_RUN_DIR=$dir
remote="$netns_remote env -i PATH=$PATH TMPDIR=/mnt/tmp"
on() { # on WHAT PROGRAM...: on beta, by a host program on alpha
	netns_on alpha timeout 60 "$bin/slmpm_run" -q -H beta --remote "$remote" --runner /mnt/bin/slmpm_run "${flags[@]}" "$host" "$@" \
		>"$dir/out" 2>"$dir/err"
}
flags=()
said() { cat "$dir/out"; }
await() { # await WHY COMMAND...: until it holds
	local why=$1 tries=0
	shift
	until "$@"; do
		[ $((tries += 1)) -lt 400 ] || fail "$why"
		read -r -t 0.05 _ <><(:)
	done
}
empty() { [ -z "$(netns_on beta ls -A /mnt/tmp)" ] && ! pgrep -f 'slmpm_run --agent|sleep 12345' >/dev/null; }
gone() { await "$1: left: $(netns_on beta ls -A /mnt/tmp; pgrep -af 'slmpm_run|sleep 12345')" empty; }

# ---- ends ----
for code in 0 1 127 255; do
	on join sh -c "exit $code" || fail "join: $?"
	[ "$(said)" = "exited $code" ] || fail "exit $code: $(said)"
done
for signal in TERM KILL ABRT SEGV; do
	on join sh -c "kill -$signal \$\$" || fail "join: $?"
	[ "$(said)" = "signal $(kill -l $signal)" ] || fail "$signal: $(said)"
done
# Closed before it has connected: it is told.
on close "$bin/hello_accel" || fail "close: $?"
[ "$(said)" = "exited 1" ] && grep -Eq 'hello_accel: peer (died|closed)' "$dir/err" || fail "close: $(said) $(cat "$dir/err")"
gone ends

# ---- what it says and is given ----
on join sh -c 'cat; echo out; echo err >&2; pwd; echo "$0 $1 $#"' "a b" '' || fail "output: $?"
[ "$(said)" = "$(printf 'out\n/home/beta\na b  1\nexited 0')" ] || fail "output: $(said)"
grep -qx err "$dir/err" || fail "standard error: $(cat "$dir/err")"
on join head -c 3000000 /dev/zero || fail "much output: $?"
[ "$(tr -d '\0' <"$dir/out")" = "exited 0" ] && [ "$(tr -dc '\0' <"$dir/out" | wc -c)" = 3000000 ] ||
	fail "much output: $(wc -c <"$dir/out") bytes"
on handler "$host" call && [ "$(said | head -n 1)" = 'in a handler: ESTATE, standard input open' ] || fail "in a handler: $(said)"
on cwd=/mnt/work pwd && [ "$(said | head -n 1)" = /mnt/work ] || fail "cwd: $(said)"
on cwd=/mnt/nowhere pwd && fail "cwd that is not there"
grep -q 'beta: /mnt/nowhere: No such file' "$dir/err" || fail "cwd: $(cat "$dir/err")"
HIDDEN=1 SHOWN=2 SLMPM_SPIN_US=7 flags=(-e SHOWN -e ALSO=3)
HIDDEN=1 SHOWN=2 SLMPM_SPIN_US=7 on join MINE=4 sh -c 'echo $HIDDEN-$SHOWN-$ALSO-$MINE-$SLMPM_SPIN_US-$SLMPM_TOPOLOGY$SLMPM_JOB$SLMPM_RUN_DIR' ||
	fail "variables: $?"
flags=()
[ "$(said | head -n 1)" = -2-3-4-7- ] || fail "variables: $(said)"
on clean ONLY=1 /usr/bin/env && [ "$(said | grep -v '^SLMPM_')" = "$(printf 'ONLY=1\nexited 0')" ] || fail "clean: $(said)"
on "wrapper=env W=1 %e %a" sh -c 'echo $W' && [ "$(said | head -n 1)" = 1 ] || fail "wrapper: $(said)"
netns_on beta sh -c 'printf "#!/bin/sh\necho there\n" >/mnt/work/there; chmod +x /mnt/work/there'
on there /mnt/work/there && [ "$(said | head -n 1)" = there ] || fail "there: $(said)"
on join /mnt/work/there && fail "a program that is not here was started by its path"

# Files go along by content: a folder, with modes, a script that has no slash.
mkdir "$dir/carry"
printf '#!/bin/sh\ncat data; pwd; echo $WHERE; ls\n' >"$dir/carry/script"
printf '\0\1binary' >"$dir/carry/data"
chmod 700 "$dir/carry/script"
on carry="$dir/carry" WHERE="x:$dir/carry/y" "$dir/carry/script" || fail "carry: $? $(cat "$dir/err")"
said | head -c 8 | cmp - "$dir/carry/data" || fail "carry: data"
said | tail -c +9 | sed 's|/mnt/tmp/slmpm-agent-0-......|F|g' >"$dir/carried"
[ "$(cat "$dir/carried")" = "$(printf 'F/cwd\nx:F/cwd/y\ndata\nscript\nexited 0')" ] || fail "carry: $(cat "$dir/carried")"
gone "what it says"

# ---- ended from here ----
start() { # start WHAT [PROGRAM...]: $run, once the program has said "up"
	local what=$1
	mkfifo "$dir/in" "$dir/pipe"
	netns_on alpha timeout 60 "$bin/slmpm_run" -q --grace 1 -H beta --remote "$remote" --runner /mnt/bin/slmpm_run "$host" "$what" \
		sh -c 'setsid sleep 12345 & sleep 12345 & echo up; wait' <"$dir/in" >"$dir/pipe" 2>"$dir/err" &
	run=$!
	exec 8>"$dir/in" 9<"$dir/pipe"
	rm "$dir/in" "$dir/pipe"
	read -r up <&9 && [ "$up" = up ] || fail "$what: said $up"
	# Whoever looks at processes' arguments sees no secret.
	secret=$(tr '\0' '\n' <"/proc/$(pgrep -f -o '^sh -c setsid')/environ" | sed -n 's/^SLMPM_SECRET=//p')
	[ ${#secret} = 32 ] || fail "$what: no secret: $secret"
	! grep -qs "$secret" /proc/[0-9]*/cmdline || fail "$what: the secret stands among arguments"
}
finish() { # finish WHAT STATUS SAID
	local rc
	wait $run
	rc=$?
	exec 8>&-
	[ $rc = "$2" ] || fail "$1: exit status $rc, not $2"
	[[ $(cat <&9) == $3 ]] || fail "$1: not \"$3\""
	exec 9<&-
	gone "$1"
}
start term; echo >&8; finish "slmpm_kill with grace" 0 "signal 15"
start kill; echo >&8; finish "slmpm_kill at once" 0 "signal 9"
start death_pipe; echo >&8; finish "the host dies with a death_pipe" 137 ""
start join; kill -KILL "$(pgrep -f "^$host")"; finish "the host is killed" 137 ""
start join; kill -KILL "$(pgrep -f 'slmpm_run --relay')"; finish "the relay is killed" 0 "signal 9"
start join; "$bin/slmpm_run" --status >"$dir/status"
grep -Eq '^  1 +beta +[0-9]+ +running +sh$' "$dir/status" || fail "--status: $(cat "$dir/status")"
"$bin/slmpm_run" --kill || fail "--kill"; finish "the job is ended" 143 ""
start join; kill -KILL "$(pgrep -f '^/[^ ]*slmpm_run -q')"; finish "slmpm_run is killed" 137 "?(signal 9)"

# ---- ended there ----
agents() { pgrep -f '^/mnt/bin/slmpm_run --agent'; }
start join; read -r supervisor worker < <(agents | tr '\n' ' '); kill -KILL "$worker"; finish "the worker is killed" 0 "signal 9"
grep -q 'beta: the connection to its agent is lost; what ran there is ended' "$dir/err" || fail "no word of the loss"
start join; read -r supervisor worker < <(agents | tr '\n' ' '); kill -KILL "$supervisor"; finish "the supervisor is killed" 0 "signal 9"
# Both at once: processes may be left, files are removed by the next agent.
start join; both=$(agents); kill -STOP $both; kill -KILL $both; kill $(pgrep -f 'sleep 12345') 2>/dev/null; wait $run; exec 8>&- 9<&-
[ -n "$(netns_on beta ls -A /mnt/tmp)" ] || fail "both killed: nothing was left to clear up"
on join true; gone "both are killed"

# ---- no way back ----
ip -n beta link set "$(netns_device beta alpha)" down
SLMPM_HANDSHAKE_MS=300 on join "$bin/hello_accel" || fail "no way back: $?"
[ "$(said)" = "exited 1" ] || fail "no way back: $(said)"
grep -q 'hello_accel: ' "$dir/err" || fail "no way back: not a word: $(cat "$dir/err")"
gone "no way back"
exit 0
