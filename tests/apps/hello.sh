#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The first programs a reader tries: the hello pair answers from any folder, the epoll loop echoes,
# accelerators count words.
set -u
bin=$SLMPM_BUILD/bin
fail() { echo "$*" >&2; exit 1; }

want="hello from the accelerator"
[ "$("$bin/hello_host")" = "$want" ] || fail "hello_host by its full path"
[ "$(cd "$bin" && ./hello_host)" = "$want" ] || fail "hello_host by ./"
[ "$(cd / && PATH=$bin:$PATH hello_host)" = "$want" ] || fail "hello_host by PATH"
[ "$("$bin/hello_host" -h)" = "usage: hello_host" ] || fail "hello_host -h"
"$bin/hello_host" more >/dev/null && fail "hello_host took an argument"
"$bin/hello_accel" 2>/dev/null && fail "hello_accel ran without a host"

got=$(printf 'one\ntwo\nthree without end' | timeout 20 "$bin/epoll_loop") || fail "epoll_loop ended with $?"
[ "$got" = "$(printf 'ONE\nTWO\nTHREE WITHOUT END')" ] || fail "epoll_loop said: $got"

# Lines that come later than the loop falls asleep: the second is written once the first is back.
coproc loop { timeout 20 "$bin/epoll_loop"; }
pid=${loop_PID:-}
exec 8>&"${loop[1]}" 9<&"${loop[0]}"
eval "exec ${loop[1]}>&-"
for word in alpha beta gamma; do
	echo $word >&8
	read -r -t 10 answer <&9 || fail "no answer to $word"
	[ "$answer" = "${word^^}" ] || fail "$word came back as $answer"
done
exec 8>&-
wait "$pid" || fail "epoll_loop ended with $?"

# Words counted by active messages.
text=$(seq -f 'line %g has five words' 3000)
got=$(printf '%s\n' "$text" | timeout 20 "$bin/am_counter" 3 2>/dev/null) || fail "am_counter ended with $?"
[ "$got" = "3000 lines, 15000 words" ] || fail "am_counter said: $got"

# Over TCP: who listens says what the other needs.
coproc host { timeout 20 "$bin/tcp_hello" -l tcp://127.0.0.1:0; }
pid=${host_PID:-}
exec 9<&"${host[0]}"
read -r -t 10 setting program url <&9 || fail "tcp_hello does not say where it listens"
[ "$program" = tcp_hello ] || fail "tcp_hello said: $setting $program $url"
timeout 20 "$bin/tcp_hello" "$url" 2>/dev/null && fail "tcp_hello connected without the secret"
[ "$(env "$setting" timeout 20 "$bin/tcp_hello" "$url")" = "hello yourself" ] || fail "tcp_hello $url"
read -r -t 10 answer <&9
[ "$answer" = "hello over TCP" ] || fail "tcp_hello heard: $answer"
wait "$pid" || fail "tcp_hello -l ended with $?"
"$bin/tcp_hello" 2>/dev/null
[ $? = 2 ] || fail "tcp_hello without an address: exit status is not 2"

# What the README shows is what these programs are, but for their first comments.
shown() { awk -v want="$1" '/^```c$/ { if (++n == want) on = 1; next } /^```$/ { on = 0 } on' "$src/README.md"; }
src=$(dirname "$0")/../..
n=0
for half in host accel; do
	n=$((n + 1))
	diff <(shown $n) <(sed '1,2d' "$src/apps/hello/hello_$half.c") || fail "README.md shows another hello_$half.c"
done
