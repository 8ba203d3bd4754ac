#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_run over two hosts that share no program, no temporary folder and no network but one cable: unchanged programs,
# their files, output, exit codes, signals, ends of either side.
# native-only
# timeout: 120
set -u
. "$(dirname "$0")/../lib/netns.sh"
netns_enter "$0" "$@"
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* >&2; exit 1; }

# beta and gamma have slmpm_run where it was installed, and nothing else of ours.
netns_host alpha
netns_host beta
netns_host gamma
netns_link alpha beta
netns_link alpha gamma
mkdir -p "$dir/install/bin" "$dir/install/lib"
cp "$bin/slmpm_run" "$dir/install/bin" && cp -P "$SLMPM_BUILD"/lib/libslmpm.so* "$dir/install/lib" || exit 1
for host in beta gamma; do
	netns_on $host sh -c "mount -t tmpfs none /mnt && cp -r '$dir/install' /mnt/slmpm" || fail "no installation on $host"
	netns_hide $host "$SLMPM_BUILD"
	netns_hide $host /tmp
done
netns_on beta test -e "$bin/hello_accel" && fail "beta sees the programs"
[ -z "$(netns_on beta ls -A /tmp)" ] || fail "beta sees this folder"

export SLMPM_INSECURE=y SLMPM_RUN_DIR=$dir
run() { # run OPTIONS... PROGRAM...: the host program on alpha, elements on beta
	netns_on alpha timeout 60 "$bin/slmpm_run" -H "${hosts:-beta}" --remote "$netns_remote" --runner /mnt/slmpm/bin/slmpm_run "$@" \
		>"$dir/out" 2>"$dir/err"
}
on_beta() { netns_on beta "$@"; }
# What a run leaves on beta: no process but who holds its mounts, no file.
gone() {
	local tries=0
	while [ -n "$(on_beta ls -A /tmp)" ] || pgrep -f '/slmpm-agent-|slmpm_run --agent' >/dev/null; do
		[ $((tries += 1)) -lt 100 ] || fail "$1: left on beta: $(on_beta ls -A /tmp; pgrep -af '/slmpm-agent-|slmpm_run --agent')"
		read -r -t 0.05 _ <><(:)
	done
}

# ---- what the README shows, by one flag ----
run "$bin/hello_host" || fail "hello: exit status $?"
[ "$(cat "$dir/out")" = "hello from the accelerator" ] || fail "hello said: $(cat "$dir/out")"
gone hello
run "$bin/am_counter" 3 <"$0" || fail "am_counter: exit status $?"
grep -q "^$(wc -l <"$0") lines, " "$dir/out" || fail "am_counter: $(cat "$dir/out")"

# Several hosts, this one among them: who is asked in turn, and where each came from.
seq 6000 >"$dir/lines"
for hosts in beta,gamma beta:2,gamma:1 local,beta,gamma; do
	run -l "$bin/am_counter" 3 <"$dir/lines" || fail "$hosts: exit status $?"
	grep -qx '\[host\] 6000 lines, 6000 words' "$dir/out" || fail "$hosts: $(cat "$dir/out")"
	sed -n 's/^\[\(.*\)\] .* lines were mine$/\1/p' "$dir/err" | sort >"$dir/who.$hosts"
done
diff - "$dir/who.beta,gamma" <<<$'1 beta\n1 beta\n2 gamma' || fail "in turn"
diff - "$dir/who.beta:2,gamma:1" <<<$'1 beta\n2 beta\n3 gamma' || fail "numbers"
diff - "$dir/who.local,beta,gamma" <<<$'1\n2 beta\n3 gamma' || fail "this host among them"
hosts=beta

mkdir "$dir/tree"
for size in 0 1 4095 65537 1000003 5000000; do head -c $size /dev/urandom >"$dir/tree/$size"; done
run "$bin/slmpm_demo" -n 2 "$dir/tree" || fail "demo: exit status $?"
sha256sum --quiet --strict -c "$dir/out" || fail "demo: wrong digests"
grep -q ' 0 lost\|2 accelerators, [0-9.]* s' "$dir/err" || fail "demo: lost an accelerator"
gone demo

# DaCS: a program by file, by list with what it needs, and from memory.
SLMPM_TEST_ELSEWHERE=apart run -q "$SLMPM_BUILD/tests/dacs/launch" || fail "dacs_de_start: $?: $(cat "$dir/out")"
gone DaCS

# By IPv6, as one writes such an address.
if [ "$netns_six" ]; then
	for address in fd77:1::1 '[fd77:1::1]'; do
		run --listen "$address" "$bin/hello_host" || fail "hello, called at $address: exit status $?"
	done
fi

# ---- perftest: every kind that it names, once ----
tests=$("$bin/slmpm_perftest" --help | sed -n '/^Tests:/,$s/^  \([a-z_]\{1,\}\) .*/\1/p' | paste -sd,)
[[ $tests == send_lat,*,copy_bw ]] || fail "no list of tests: $tests"
run "$bin/slmpm_perftest" -t $tests -s 64 -n 100 --samples 1 --json || fail "perftest: exit status $?"
[ "$(wc -l <"$dir/out")" = "$(tr , '\n' <<<$tests | wc -l)" ] || fail "perftest: $(cat "$dir/out")"
run "$bin/slmpm_perftest" -t send_bw -s 1m -n 20 --samples 1 || fail "perftest: large messages: $?"
gone perftest
exit 0
