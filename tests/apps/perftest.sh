#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 120
# native-only
#
# slmpm_perftest: the limits, two terminals, both sides on one CPU, a lost side, wrong arguments.
set -u
perf=$SLMPM_BUILD/bin/slmpm_perftest
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir"/err* >&2; exit 1; }

# For people: a heading once, a line a size.
"$perf" -t send_lat,send_bw,copy_bw -s 64:128 -n 200 --samples 1 >"$dir/out" 2>"$dir/err" || fail "exit status $?"
[ "$(wc -l <"$dir/out")" = 7 ] || { cat "$dir/out"; fail "not a heading and six lines"; }
head -n 1 "$dir/out" | grep -q '^test .*cpu$' || fail "no heading"
[ "$("$perf" -t copy_bw -s 1:1k:30 -n 8 --samples 1 | awk '{ print $2 }' | xargs)" = "bytes 1 30 900" ] || fail "each 30 times the one before"
"$perf" -t send_lat,send_bw,put_bw,get_lat,am_rate,mirror_rate -s 8:4m -n 20 --samples 1 >"$dir/out" 2>"$dir/err" || fail "exit status $?"
awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "more than 80 columns"; }
"$perf" -t send_lat -s 128m -n 1 --samples 1 >"$dir/out" 2>"$dir/err" || fail "128 MiB: exit status $?"
awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "128 MiB: more than 80 columns"; }
# The heading stands there while the first figure is still taken.
mkfifo "$dir/fifo"
timeout 20 "$perf" -t send_bw -s 64m -n 4000 --samples 1 >"$dir/fifo" 2>"$dir/err" &
begun=$!
read -r -t 10 line <"$dir/fifo" || fail "no heading at once"
kill $begun && wait $begun
[[ $line == test* ]] || fail "no heading at once but: $line"
"$perf" -t send_lat -n 200 --samples 1 --hist >"$dir/out" 2>"$dir/err" || fail "--hist: exit status $?"
grep -Eq '^ *p99\.9 ' "$dir/out" || fail "--hist shows no percentiles"

first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
"$perf" -t send_lat -s 8 -n 200 --samples 1 -c "$first,$first" --json >"$dir/out" 2>"$dir/err" || fail "one CPU: $?"
grep -q '"hops":null' "$dir/out" || fail "hops on one CPU"
"$perf" -t line_lat -c "$first,$first" >"$dir/out" 2>"$dir/err" && fail "line_lat on one CPU"
if [ "$(nproc)" -gt 1 ]; then
	"$perf" -t line_lat --json >"$dir/out" 2>"$dir/err" || fail "line_lat: exit status $?"
	grep -Eq '"line_ns":[0-9]' "$dir/out" || grep -q '"line_ns":null.*"mixed":[1-5]' "$dir/out" || fail "line_lat gives no time"
fi

# Processor time of both sides, and what a plain copy takes of it.
"$perf" -t put_bw,copy_bw,send_lat -s 1m -n 20 --samples 1 --wait block --cpu >"$dir/out" 2>"$dir/err" || fail "--cpu: exit status $?"
[ "$(grep -cE '^  processor time (here |there) [0-9.]+ us a message, [0-9.e-]+ ns a byte$' "$dir/out")" = 5 ] || { cat "$dir/out"; fail "--cpu: not five lines"; }
awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "--cpu: more than 80 columns"; }
"$perf" -t copy_bw,send_bw -s 1m -n 20 --samples 1 --json >"$dir/out" 2>"$dir/err" || fail "processor time: exit status $?"
grep -Eq '"copy_bw".*"near_cpu_us":[0-9.]+[1-9][0-9.]*,"far_cpu_us":null' "$dir/out" &&
	grep -Eq '"send_bw".*"near_cpu_us":[0-9.]+,"far_cpu_us":[0-9.]+' "$dir/out" || { cat "$dir/out"; fail "processor time: no figures"; }

# Both ways at once, also what waits for its receive.
timeout 60 "$perf" -t duplex -s 64k:1m -n 20 --samples 1 >"$dir/out" 2>"$dir/err" || fail "duplex: exit status $?"

# Memory of one's own, where the system lets the other side reach it; else that is said.
if "$perf" -t put_lat,get_lat,fadd -s 64 -n 200 --samples 1 --mode attach --json >"$dir/out" 2>"$dir/err"; then
	[ "$(grep -c '"path":"attach"' "$dir/out")" = 3 ] || fail "--mode attach goes by another path"
else
	grep -q 'wanted path "attach", but here it is "ring"' "$dir/err" || fail "--mode attach: $?"
fi
SLMPM_ATTACH=n "$perf" -t put_lat -n 200 --mode attach >"$dir/out" 2>"$dir/err" && fail "attached all the same"
grep -q 'wanted path "attach"' "$dir/err" || fail "--mode attach, not allowed: not a word"
# By requests, in each form and over each fabric.
for fabric in shm tcp; do
	for mode in ring am tag; do
		env -u SLMPM_FABRIC -u SLMPM_RMA "$perf" --fabric $fabric --mode $mode -t put_lat,put_bw,get_lat,get_bw,fadd -s 64 -n 100 \
			--samples 1 --json >"$dir/out" 2>"$dir/err" || fail "--fabric $fabric --mode $mode: exit status $?"
		[ "$(grep -c "\"fabric\":\"$fabric\".*\"path\":\"$mode\"" "$dir/out")" = 5 ] ||
			{ cat "$dir/out"; fail "--fabric $fabric --mode $mode goes by another path"; }
	done
done
SLMPM_RMA=ring "$perf" -t put_lat -n 200 --mode map >"$dir/out" 2>"$dir/err" && fail "mapped all the same"
"$perf" -t put_lat -s 0 >"$dir/out" 2>"$dir/err" && fail "a put of nothing was waited for"
SLMPM_FABRIC=shm "$perf" -t fadd -n 200 --samples 1 >"$dir/out" 2>"$dir/err" || fail "fadd: exit status $?"
grep -Eq 'the bare instruction .* us, ratio ' "$dir/out" || fail "fadd: no ratio"
"$perf" -t overlap -s 1m --samples 1 >"$dir/out" 2>"$dir/err" || fail "overlap: exit status $?"
grep -Eq 'hidden [0-9]+ %' "$dir/out" || fail "overlap: nothing said"
"$perf" -t wq_pipe -s 8:64k -n 100 --samples 1 >"$dir/out" 2>"$dir/err" || fail "wq_pipe: exit status $?"
[ "$(grep -Ec 'straight .* us, ratio ' "$dir/out")" = 14 ] || { cat "$dir/out"; fail "wq_pipe: no ratio"; }

# Mixed loads, blocking and with many under way; a line of the trace for each operation of the last sample.
for burst in 1 16; do
	"$perf" -t mixed,slow_reader,tide,duplex -s 24k -n 100 --samples 1 --burst $burst --work-us 2 --modes "$dir/modes" \
		>"$dir/out" 2>"$dir/err" || fail "mixed loads, burst $burst: exit status $?"
	[ "$(wc -l <"$dir/out")" = 5 ] || fail "mixed loads: not a heading and four lines"
	head -n 1 "$dir/modes" | grep -q '^us.queue.ring.one_sided.protocol.reason$' || fail "--modes: no heading"
	[ "$(wc -l <"$dir/modes")" = 101 ] || fail "--modes: not a line for each of 100 messages"
	awk -F'\t' 'NR > 1 && (NF != 6 || $3 > 1 || $1 < last) { exit 1 } { last = NR > 1 ? $1 : 0 }' "$dir/modes" || fail "--modes: strange lines"
done
# After a pause: what the first message takes, and those behind it.
"$perf" -t pause_lat,pause_rate -n 5 --burst 12 --idle-us 1000 --samples 1 --json >"$dir/out" 2>"$dir/err" || fail "pauses: exit status $?"
for test in pause_lat pause_rate; do
	grep -Eq "\"$test\".*\"lat_us\":[0-9.]+,.*\"first_us\":[0-9.]+,\"to10_us\":[0-9.]+,\"to100_us\":null,\"cpu_us\":[0-9]" \
		"$dir/out" || { cat "$dir/out"; fail "$test: no figures"; }
done
# What takes long is counted less often.
"$perf" -t send_lat --idle-us 260000 --samples 1 -w 0 --json >"$dir/out" 2>"$dir/err" || fail "260 ms each: exit status $?"
grep -q '"count":[1-3],' "$dir/out" || { cat "$dir/out"; fail "samples of 260 ms each last longer than a second"; }
"$perf" -t pause_lat -n 3 --idle-us 100 --samples 1 | grep -q '  the first [0-9.]* us, processor time of a burst' || fail "pause_lat: nothing for people"

# Work queues: entries that wait for each other, hops beside those by hand, a chain beside a computation.
for engine in none thread; do
	SLMPM_ENGINE=$engine timeout 120 "$perf" -t wq_chain,wq_hop,offload -n 2000 --samples 1 --json >"$dir/out" 2>"$dir/err" ||
		fail "work queues, engine $engine: exit status $?"
	grep -Eq '"wq_chain".*"lat_us":[0-9.e-]+,.*"arm_us":[0-9.e-]+,"post_us":[0-9.e-]+,"by_engine":[0-9.]+,"kept":null' "$dir/out" &&
		grep -Eq '"wq_hop".*"lat_us":[0-9.e-]+,.*"bare_us":[0-9.e-]+,"bare_ratio":[0-9.e-]+,.*"by_engine":[0-9.]+,"kept":null' "$dir/out" &&
		grep -Eq '"offload".*"lat_us":[0-9.e-]+,.*"bare_us":[0-9.e-]+,.*"arm_us":null,"post_us":null,"by_engine":[0-9.]+,"kept":(1|0\.[0-9]+)' "$dir/out" ||
		{ cat "$dir/out"; fail "work queues, engine $engine: no figures"; }
	# Nothing is the thread's where there is none; else the chain and the hops are, but for what a call has begun.
	awk -v engine=$engine -F'"by_engine":' '{ share = $2 + 0; if (engine == "none" ? share : share < 0.5) exit 1 }' "$dir/out" ||
		{ cat "$dir/out"; fail "work queues, engine $engine: by whom?"; }
done
# A handler of active messages keeps the thread away, which nobody waits for.
SLMPM_ENGINE=thread timeout 20 "$perf" -t am_lat,wq_chain,wq_hop,offload -n 2000 --samples 1 --json >"$dir/out" 2>"$dir/err" ||
	fail "work queues behind active messages: exit status $?"
[ "$(grep -c '"by_engine":0,' "$dir/out")" = 3 ] || { cat "$dir/out"; fail "work queues behind active messages: by whom?"; }
"$perf" -t wq_chain,wq_hop,offload -s 64 -n 500 --samples 1 --wait block >"$dir/out" 2>"$dir/err" || fail "work queues: exit status $?"
grep -Eq '^  entry [0-9.]+ ns, posting [0-9]+ ns, re-arming 1,000 [0-9.]+ us, by the thread [0-9]+ %$' "$dir/out" &&
	grep -Eq '^  by hand [0-9.]+ us, ratio [0-9.]+, ' "$dir/out" &&
	grep -Eq '^  alone [0-9.]+ us, ratio [0-9.]+, kept [0-9]+ %, ' "$dir/out" || { cat "$dir/out"; fail "work queues: nothing for people"; }
# Calculations beside a bare loop, whose result is the same: a scalar, one step, several.
for size in 8 4k 40k; do
	timeout 60 "$perf" -t wq_calc,wq_apart -s $size -n 200 --samples 1 --json >"$dir/calc" 2>"$dir/err" ||
		fail "calculations of $size: exit status $?"
	[ "$(grep -Ec '"wq_(calc|apart)".*"lat_us":[0-9.e-]+,.*"bare_us":[0-9.e-]+,"bare_ratio":[0-9.e-]+,' "$dir/calc")" = 2 ] ||
		{ cat "$dir/calc"; fail "calculations of $size: no figures"; }
done
"$perf" -t wq_calc,wq_apart -n 10 --samples 1 >>"$dir/out" 2>"$dir/err" || fail "calculations: exit status $?"
grep -Eq '^  a bare loop [0-9.]+ us, ratio [0-9.]+$' "$dir/out" || { cat "$dir/out"; fail "calculations: nothing for people"; }
awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "work queues: more than 80 columns"; }

# Collective operations of a group: of both sides, beside a message; of more, bound or not, whose contents are checked.
colls=barrier,bcast,reduce,allreduce,scatter,gather,allgather,alltoall,put_all
timeout 60 "$perf" -t $colls -s 64 -n 200 --samples 1 --touch >"$dir/out" 2>"$dir/err" || fail "collectives: exit status $?"
[ "$(grep -Ec '^  2 members, a message of 8 bytes [0-9.]+ us, ratio [0-9.]+$' "$dir/out")" = 9 ] &&
	[ "$(wc -l <"$dir/out")" = 19 ] || { cat "$dir/out"; fail "collectives: not nine, beside a message"; }
awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "collectives: more than 80 columns"; }
for members in 3 5; do
	timeout 100 "$perf" -t send_lat,$colls --members $members -s 7:56 -n 30 --samples 1 --json >"$dir/out" 2>"$dir/err" ||
		fail "collectives of $members: exit status $?"
	[ "$(grep -c "\"lat_us\":[0-9.e-]*,.*\"bytes_per_s\":[0-9.]*,.*\"bare_us\":null,.*\"cpu_us\":[0-9].*\"members\":$members," "$dir/out")" = 32 ] &&
		[ "$(grep -c '"path":"memory"' "$dir/out")" = 29 ] && grep -q '"put_all".*"path":null' "$dir/out" &&
		grep -q '"barrier".*"size":0,.*"bytes_per_s":null,' "$dir/out" && grep -q '"send_lat".*"members":null' "$dir/out" ||
		{ cat "$dir/out"; fail "collectives of $members: other figures"; }
	sed -n 's/.*"lat_us":\([0-9.e-]*\),.*"lat_us_p50":\([^,]*\),.*"members":[0-9].*/\1 \2/p' "$dir/out" |
		awk '$1 != $2 { exit 1 }' || { cat "$dir/out"; fail "collectives of $members: of other operations than their percentiles"; }
done
timeout 60 "$perf" -t allreduce,alltoall --members 4 -c "$first,$first,$first" -s 1m -n 3 --samples 1 >"$dir/out" 2>"$dir/err" ||
	fail "collectives on one CPU: exit status $?"
[ "$(grep -c '^  4 members$' "$dir/out")" = 2 ] || { cat "$dir/out"; fail "collectives: of how many?"; }
# Tests behind that of -t; the sum beside a computation, of a group, in place of the chain of sends.
for members in 2 3; do
	timeout 60 "$perf" -t barrier --members $members offload -s 64 -n 5 --samples 1 >"$dir/out" 2>"$dir/err" ||
		fail "offload of $members: exit status $?"
	grep -q '^barrier' "$dir/out" && grep -Eq "^  $members members, alone [0-9.]+ us, ratio [0-9.]+, kept [0-9]+ %, hidden [0-9]+ %\$" "$dir/out" ||
		{ cat "$dir/out"; fail "offload of $members: other figures"; }
	awk 'length > 80 { exit 1 }' "$dir/out" || { cat "$dir/out"; fail "offload of $members: more than 80 columns"; }
done
"$perf" -t barrier nothing >"$dir/out" 2>"$dir/err" && fail "a test that is none"
grep -q 'unknown test "nothing"' "$dir/err" || fail "a test that is none: why?"
# Each line of --serve may have another group.
printf '%s\n' 'bcast 8 50 members 3' 'send_lat 8 50' 'bcast 8 50' 'barrier 0 50 members 65' 'gather 8 50 members 3' |
	timeout 60 "$perf" --serve >"$dir/out" 2>"$dir/err" || fail "members N: $?"
said=$(sed 's/.*"members":\([a-z0-9]*\).*/\1/; s/{"error":"\(.*\)".*/\1/; s/;.*//' "$dir/out" | tr '\n' ' ')
[ "$said" = '3 null 2 cannot read '"'members 65'"': a group has 2 to 64 3 ' ] || { cat "$dir/out"; fail "members N: other answers: $said"; }
[ "$(grep -c '"bcast".*"bare_us":[0-9]' "$dir/out")" = 1 ] || { cat "$dir/out"; fail "members N: the group is the one before"; }
"$perf" -t alltoall --members 64 -s 8g -n 1 >"$dir/out" 2>"$dir/err" && fail "64 times 8 GiB for each of 64"
grep -q 'do not fit in memory' "$dir/err" || fail "64 times 8 GiB for each of 64: why?"

"$perf" -t mixed --busy 2 -s 4k -n 4 --samples 1 --wait block >"$dir/out" 2>"$dir/err" || fail "--busy: exit status $?"
"$perf" -t tide -n 10 --modes "$dir/no/such" >"$dir/out" 2>"$dir/err" && fail "--modes into nowhere"
grep -q "cannot write $dir/no/such" "$dir/err" || fail "--modes into nowhere: not a word"

# By an address: its link carries both ways, whatever is measured; of one link it is the peer's.
all=send_lat,send_bw,loan_lat,put_lat,get_lat,fadd,am_lat,fifo_lat,mirror_lat
to() { # to TESTS ADDRESS LINK FABRIC, with an environment
	local tests=$1 address=$2 link=$3 fabric=$4
	shift 4
	env -u SLMPM_LINKS -u SLMPM_FABRIC SLMPM_PCI=03:00.0 "$@" "$perf" --to "$address" -n 100 --samples 1 --json \
		-t "$tests" -s 64 >"$dir/out" 2>"$dir/err" ||
		fail "--to $address: exit status $?"
	[ "$(grep -c "\"fabric\":\"$fabric\".*\"link\":$link," "$dir/out")" = "$(wc -w <<<"${tests//,/ }")" ] || { cat "$dir/out"; fail "--to $address: not by link $link"; }
}
host=$(uname -n)
to $all pci:0000:03:00.0 0 shm x=
to $all ip:127.0.0.1 1 tcp x=
to send_lat,put_lat ip:127.0.0.1/1 0 tcp SLMPM_LINKS=tcp,shm SLMPM_FABRIC=tcp
to send_lat,put_lat pci:03:00.0 1 shm SLMPM_LINKS=tcp,shm SLMPM_FABRIC=tcp
to send_lat ip:127.0.0.1 null tcp SLMPM_FABRIC=tcp
to send_lat "id:$host/1" null '.*' SLMPM_LINKS=1
env -u SLMPM_LINKS -u SLMPM_FABRIC "$perf" --to ip:127.0.0.1 -t send_lat -n 200 --samples 1 >"$dir/out" 2>"$dir/err" || fail "--to: $?"
grep -q '^  link 1, tcp$' "$dir/out" || { cat "$dir/out"; fail "--to: no word of the link"; }
SLMPM_LINKS=1 "$perf" --to usb:1 -t send_lat >"$dir/out" 2>"$dir/err" && fail "--to usb:1"
grep -q 'slmpm_perftest: --to: .*"usb:1": write pci:' "$dir/err" || fail "--to usb:1: not a word"
printf '%s\n' 'send_lat 8 200 link 1' 'put_lat 8 200' 'send_lat 8 200 link 0' 'send_lat 8 200 link 3' 'send_lat 8 200' \
	'mailbox_lat 4 200 link 0' 'send_lat 8 200 link 4' |
	SLMPM_FABRIC=shm SLMPM_LINKS=shm,tcp SLMPM_LINKS_AFTER=0 "$perf" --serve >"$dir/out" 2>"$dir/err" || fail "link N: $?"
[ "$(grep -c '"lat_us":[0-9]' "$dir/out")" = 4 ] && [ "$(grep -c '^{"error"' "$dir/out")" = 3 ] ||
	{ cat "$dir/out"; fail "link N: other answers"; }
sed -n 1p "$dir/out" | grep -q '"fabric":"tcp".*"link":1,' && sed -n 3p "$dir/out" | grep -q '"fabric":"shm".*"link":0,' ||
	{ cat "$dir/out"; fail "link N: by others"; }
# A line without one goes as if there had been none.
printf '%s\n' 'put_lat 8 200 link 1' 'put_lat 8 200' 'send_lat 8 200 link 1' 'send_lat 8 200' |
	SLMPM_FABRIC=shm SLMPM_LINKS=shm,tcp SLMPM_LINKS_AFTER=0 "$perf" --serve >"$dir/out" 2>"$dir/err" || fail "without link: $?"
sed -n 2p "$dir/out" | grep -q '"path":"map","link":null' && sed -n 4p "$dir/out" | grep -q '"fabric":"shm".*"link":null' ||
	{ cat "$dir/out"; fail "without link: by the one before"; }

# Two terminals.
for url in "shm:perftest-$$" "shm:$dir/socket"; do
	: >"$dir/err.listen" # before the shell in the background gets to it
	"$perf" --listen "$url" 2>>"$dir/err.listen" &
	listener=$!
	tries=0
	until grep -q listening "$dir/err.listen"; do
		[ $((tries += 1)) -lt 200 ] || fail "$url: the listener does not listen"
		read -r -t 0.05 _ <><(:)
	done
	"$perf" --connect "$url" -t send_lat,loan_bw,put_lat,fadd,am_lat -s 64 -n 200 --samples 1 --json >"$dir/out" 2>"$dir/err" ||
		fail "$url: connect: exit status $?"
	[ "$(wc -l <"$dir/out")" = 5 ] || fail "$url: not five lines"
	wait $listener || fail "$url: the listener ended with $?"
done
"$perf" --connect "shm:nobody-$$" -t send_lat >"$dir/out" 2>"$dir/err" && fail "connected to nobody"
[ "$(wc -l <"$dir/err")" = 1 ] || fail "connect to nobody: not one line"

# The second side dies in the middle: told in a line, and the next job has another one.
answers() { # answers N: waits until there are so many
	local tries=0
	until [ "$(wc -l <"$dir/out")" -ge "$1" ]; do
		[ $((tries += 1)) -lt 200 ] || fail "no answer number $1"
		read -r -t 0.05 _ <><(:)
	done
}
mkfifo "$dir/in"
: >"$dir/out"
"$perf" --serve <"$dir/in" >"$dir/out" 2>"$dir/err" &
serving=$!
exec 3>"$dir/in"
echo 'send_lat 8 100' >&3
answers 1
far=$(cat "/proc/$serving/task/$serving/children")
kill -KILL "${far%% *}" || fail "no second side"
printf '%s\n' 'send_lat 8 100' 'send_lat 8 100' 'loan_lat 8g 1' 'send_lat 8 100 backwards' 'send_lat 8 100' >&3
answers 6
exec 3>&-
wait $serving
[ $? = 1 ] || fail "a lost side: exit status is not 1"
said=$(sed 's/{"\([a-z]*\)".*/\1/' "$dir/out" | tr '\n' ' ')
[ "$said" = "test error test error error test " ] || { cat "$dir/out"; fail "a lost side: answers $said"; }
grep -q 'slmpm_perftest: run: ' "$dir/err" || fail "a lost side: not a word"

# So with a further member of a group.
mkfifo "$dir/in.members"
: >"$dir/out"
timeout 60 "$perf" --serve <"$dir/in.members" >"$dir/out" 2>"$dir/err" &
serving=$!
exec 3>"$dir/in.members"
echo 'bcast 8 50 members 3' >&3
answers 1
perftest=$(cat "/proc/$serving/task/$serving/children")
further=$(cat "/proc/${perftest% }/task/${perftest% }/children")
[ "$(wc -w <<<"$further")" = 2 ] || fail "the processes of three members: $further"
kill -KILL "$(awk '{ print $2 }' <<<"$further")" || fail "no further member"
printf '%s\n' 'bcast 8 50 members 3' 'barrier 0 50 members 3' >&3
answers 3
exec 3>&-
wait $serving
[ $? = 1 ] || fail "a lost member: exit status is not 1"
said=$(sed 's/{"\([a-z]*\)".*/\1/' "$dir/out" | tr '\n' ' ')
[ "$said" = "test error test " ] || { cat "$dir/out"; fail "a lost member: answers $said"; }

refused() { # refused WHAT ARGUMENTS...: exit status 2, and a line that says WHAT
	local what=$1
	shift
	"$perf" "$@" >"$dir/out" 2>"$dir/err"
	[ $? = 2 ] || fail "$*: exit status is not 2"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "$*: not one line"
	grep -q -- "$what" "$dir/err" || fail "$*: does not say \"$what\""
}
refused "say what to measure; there are: send_lat"
refused "there are: send_lat send_bw" -t nonsense
refused "more than a call" -t "$(printf 'send_lat,%.0s' {1..200})"
refused "as in -s 64" -t send_lat -s big
refused "as in -s 64" -t send_lat -s -1
refused "as in -s 64" -t send_lat -s 9g
refused "from the first" -t send_lat -s 64:8
refused "twice the one before" -t send_lat -s 8:64:1
refused "a number from 1" -t send_lat -n 0
refused "adaptive spin block" -t send_lat --wait forever
refused "there are: .*shm" -t send_lat --fabric carrier-pigeon
refused "there are: auto" -t send_lat --mode none
refused "two CPUs" -t send_lat -c 1
refused "is not allowed here" -t send_lat -c 0,100000
for list in "send_lat," ",send_lat" "send_lat,,put_lat" ","; do
	refused "no test before or behind a comma" -t "$list"
done
for options in "-t send_lat" "send_lat" "-s 64" "--burst 2"; do
	refused "stand in its lines" --serve $options
done
refused "with --burst N alone" -t send_bw --more
refused "not both" --listen shm:a --connect shm:b
refused "second side" --serve --connect shm:a
refused "who connects" --listen shm:a -t send_lat
refused "who connects" --listen shm:a -s 8
"$perf" -n 100 -t send_lat -t send_bw >"$dir/out" 2>"$dir/err" || fail "-t twice: $(cat "$dir/err")"
[ "$(grep -c '^send_' "$dir/out")" = 2 ] || fail "-t twice: not two tests"
refused "0, 1 or 2" -t mixed --busy 3
refused "says link N" --serve --to ip:127.0.0.1
refused "a group has 2 to 64" -t barrier --members 1
refused "a group has 2 to 64" -t barrier --members 65
refused "a group has 2 to 64" -t barrier --members two
refused "two CPUs" -t barrier -c 0,0,
refused "two CPUs" -t barrier -c 0,0,x
refused "is not allowed here" -t barrier -c 0,0,100000
refused "unknown way" -t mirror_lat --track x
refused "at most 64 messages" -t send_bw --burst 65
refused "at most 64 messages" -t am_rate,put_bw --burst 65
for option in "burst 2:send_bw" "more:send_bw" "step 64:loan_lat" "work-us 5:slow_reader" "track auto:mirror_lat" "members 3:barrier" \
	"group-memory:bcast" "modes x:mixed" "idle-us 5:pause_lat" "touch:send_lat"; do
	refused "^slmpm_perftest: --${option%%[ :]*}: line_lat,fadd does not use it; these do:.* ${option#*:}" -t line_lat,fadd --${option%:*}
done
refused "^slmpm_perftest: --mode: send_lat,loan_lat does not use it; these do:.* put_lat" -t send_lat,loan_lat --mode map
for option in "to ip:127.0.0.1" "header ids" "wait spin" "fabric tcp" decisions; do
	refused "^slmpm_perftest: --${option% *}: line_lat,copy_bw does not use it; these do:.* send_lat" -t line_lat,copy_bw --$option
done
refused "^slmpm_perftest: --cpu: line_lat does not use it; these do: send_lat" -t line_lat --cpu
refused "^slmpm_perftest: --mode: barrier,bcast does not use it; these do: put_lat" -t barrier,bcast --mode map
refused "^slmpm_perftest: --to: barrier does not use it; these do: send_lat" -t barrier --to ip:127.0.0.1
refused "^slmpm_perftest: --group-memory: offload does not use it; these do: barrier" -t offload --group-memory
refused "with --burst N alone, N from 2" -t send_bw --burst 1 --more
refused "more than two are for --members" -t send_lat -c 0,0,0
refused "more than two are for --members" -t barrier -c 0,0,0
for option in "-n 5" "-w 5" "--busy 1" --decisions; do
	refused "stand in its lines" --serve $option
done
for option in "-t send_lat" "-s 8" --serve "-n 5"; do
	refused "do not go with it" --dump "$dir/trace" $option
done
for size in 8: 8:64: 8::2; do
	refused "-s $size: a number is wanted before and behind each colon" -t send_lat -s $size
done
"$perf" -t send_lat -n 10 --samples 1 --trace "$dir/none/trace" >"$dir/out" 2>"$dir/err" && fail "a trace that cannot be written"
grep -q "^slmpm_perftest: --trace $dir/none/trace: No such" "$dir/err" || fail "a trace that cannot be written: why?"
# The same in a line.
printf '%s\n' 'fadd 8 10 burst 2' 'send_bw 8 10 burst 1 more' 'send_bw 8 10 burst 65' 'barrier 0 10 link 0' 'offload 8 10 shared' \
	'put_lat 8 10 track fault' 'line_lat 8 10 wait spin' 'send_lat 8 10 link 9' 'send_lat 8 10 step 5' 'loan_lat 8 10 touch step 5' |
	"$perf" --serve >"$dir/out" 2>"$dir/err" || fail "lines that are refused: $?"
said=$(sed 's/{"error":"\([^:;]*\)[:;].*/\1/; s/{"test":"\([a-z_]*\)".*/\1/' "$dir/out" | tr '\n' ',')
[ "$said" = "burst,more,burst 65,link,shared,track,wait,cannot read 'link 9',step,loan_lat," ] || { cat "$dir/out"; fail "lines that are refused: $said"; }
# Where the environment says where the library is, the other side gets that as well.
cp "$perf" "$dir/away" && LD_LIBRARY_PATH=$SLMPM_BUILD/lib "$dir/away" -t mailbox_lat --wait spin -n 50 --samples 1 >"$dir/out" 2>"$dir/err" ||
	fail "mailbox_lat with a wait mode, away from the library: $?"
"$perf" --help | sed -n '/^Tests:/,/^$/p' | grep -q '^[a-z]' && fail "--help: the list goes on in the first column"
"$perf" -t am_rate --burst 65 -n 130 --samples 1 >/dev/null || fail "65 active messages"
refused "a number from 1" -t tide --work-us 0
"$perf" send_lat -s 8 -n 10 --samples 1 put_lat >"$dir/out" || fail "tests without -t"
[ "$(grep -cE '^(send|put)_lat +8 ' "$dir/out")" = 2 ] || { cat "$dir/out"; fail "tests without -t: not two lines"; }
refused 'unknown test "nothing"' nothing
for url in "nonsense" "tcp4:x" "shm:"; do
	"$perf" --connect "$url" -t send_lat >"$dir/out" 2>"$dir/err" && fail "$url: connected"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "$url: not one line"
done
"$perf" -t send_lat -s 8 -n 10 >/dev/full 2>"$dir/err" && fail "results that could not be written"
grep -q 'could not be written' "$dir/err" || fail "/dev/full: why?"
"$perf" -t loan_lat -s 8g -n 1 >"$dir/out" 2>"$dir/err" && fail "a loan of 8 GiB"
grep -q 'a loan holds at most' "$dir/err" || fail "a loan of 8 GiB: why?"
exit 0
