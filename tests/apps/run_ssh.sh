#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_run's own remote command, ssh, to a host with an ssh server: programs, output, an end from either side.
# native-only
set -u
. "$(dirname "$0")/../lib/netns.sh"
for tool in ssh ssh-keygen dropbear dropbearkey; do
	command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
netns_enter "$0" "$@"
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* "$dir/server" >&2; exit 1; }

netns_host alpha
netns_host beta
netns_link alpha beta
netns_hide beta /mnt
netns_on beta sh -c "mkdir /mnt/bin /mnt/lib; cp '$bin/slmpm_run' /mnt/bin; cp -P '$SLMPM_BUILD'/lib/libslmpm.so* /mnt/lib"
mkdir "$dir/home"
ssh-keygen -q -t ed25519 -N '' -f "$dir/home/key" && dropbearkey -t ed25519 -f "$dir/home/server" >/dev/null 2>&1 || exit 1
netns_hide beta /root
netns_on beta sh -c "umask 77; mkdir /root/.ssh; cp '$dir/home/key.pub' /root/.ssh/authorized_keys; cp '$dir/home/server' /root; chmod 700 /root"
netns_hide beta "$SLMPM_BUILD"
cat >"$dir/home/config" <<END
Host beta
  HostName $(netns_address beta alpha)
  User root
  IdentityFile $dir/home/key
  UserKnownHostsFile $dir/home/known
  StrictHostKeyChecking no
  LogLevel ERROR
END
netns_on beta dropbear -F -E -r /root/server -p 22 -P /root/pid 2>"$dir/server" &
# "ssh" is what stands in PATH: with these keys instead of the user's.
mkdir "$dir/bin"
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$dir/home/config" >"$dir/bin/ssh"
chmod +x "$dir/bin/ssh"
export PATH=$dir/bin:$PATH SLMPM_INSECURE=y SLMPM_RUN_DIR=$dir
tries=0
until netns_on alpha timeout 5 ssh -oBatchMode=yes beta true 2>"$dir/err"; do
	[ $((tries += 1)) -lt 20 ] || netns_skip "no way in by ssh: $(tail -n 1 "$dir/server")"
	read -r -t 0.1 _ <><(:)
done
run() { netns_on alpha timeout 40 "$bin/slmpm_run" -q -H beta --runner /mnt/bin/slmpm_run "$@" >"$dir/out" 2>"$dir/err"; }

run "$bin/hello_host" || fail "hello: $?"
[ "$(cat "$dir/out")" = "hello from the accelerator" ] || fail "hello said: $(cat "$dir/out")"
run -l "$SLMPM_BUILD/tests/apps/run_host" join sh -c 'echo out; echo err >&2; exit 7' || fail "join: $?"
grep -qx '\[1 beta\] out' "$dir/out" && grep -qx '\[host\] exited 7' "$dir/out" && grep -qx '\[1 beta\] err' "$dir/err" ||
	fail "output: $(cat "$dir/out")"
run "$bin/slmpm_perftest" -t send_lat,put_lat -n 100 --samples 1 --json || fail "perftest: $?"
# The host is killed: what ran over there ends with the connection.
netns_on alpha "$bin/slmpm_run" -q -H beta --runner /mnt/bin/slmpm_run "$SLMPM_BUILD/tests/apps/run_host" join sleep 12346 >"$dir/out" 2>"$dir/err" &
await() { # await TEXT STATUS: until pgrep ends with it
	local tries=0
	until pgrep -x -f 'sleep 12346' >/dev/null; [ $? = "$2" ]; do
		[ $((tries += 1)) -lt 200 ] || fail "$1"
		read -r -t 0.05 _ <><(:)
	done
}
await "it does not run" 0
kill -KILL "$(pgrep -f "^$bin/slmpm_run -q")"
await "it outlives its host" 1
# Nobody there, and no slmpm_run there.
run --runner /mnt/nothing "$bin/hello_host" && fail "no slmpm_run there"
grep -q 'beta: exit status 127 .*no "/mnt/nothing" there' "$dir/err" || fail "no slmpm_run there: $(cat "$dir/err")"
netns_on beta sh -c 'kill $(cat /root/pid)'
run "$bin/hello_host" && fail "nobody there"
grep -q 'beta: the remote command "ssh .*" ended with status 255' "$dir/err" || fail "nobody there: $(cat "$dir/err")"
exit 0
