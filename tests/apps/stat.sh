#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# waits
#
# slmpm_stat: a running pair in every form, its job, a pair with two links; a group; work queues; a process that dies under it; pages full of nonsense; the screen.
set -u
. "$(dirname "$0")/../lib/terminal.sh"
stat=$SLMPM_BUILD/bin/slmpm_stat json=$SLMPM_BUILD/tests/apps/stat_page
[ -e "$stat" ] || { echo "slmpm_stat was left out"; exit 77; }
dir=$(mktemp -d) || exit 1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
out=$dir/out
fail() { echo "$*" >&2; cat "$out" >&2; exit 1; }
pause() { read -r -t "$1" _ <><(:); }
# until_there PATTERN COMMAND...: its output comes to show that.
until_there() {
	local tries=0
	until "${@:2}" >"$out" 2>&1 && grep -q "$1" "$out"; do
		[ $((tries += 1)) -lt 200 ] || fail "${*:2}: no $1"
		pause 0.05
	done
}

# Lines for a program to say, and what it comes to.
say_and_look() { echo hello >&3; "$stat" $loop; }
more_and_look() { echo hello >&5; "$stat" $pair; }

# Where the first link goes, and what a peer's links are called together.
fabric=${SLMPM_FABRIC:-shm} link=${SLMPM_FABRIC:-shm}
[ "${SLMPM_LINKS:-1}" = 1 ] || link=bond

# One that has a peer, has said and heard 5 bytes, and waits for more to do.
mkfifo "$dir/in" || exit 1
SLMPM_MONITOR_MS=50 "$SLMPM_BUILD/bin/epoll_loop" <"$dir/in" >"$dir/echo" 2>/dev/null &
loop=$!
pids+=("$loop")
exec 3>"$dir/in"
echo hello >&3
until_there HELLO cat "$dir/echo"
for i in 1 2 3; do
	pause 0.02
	echo hello >&3
done
until_there 'sent [1-9].* bytes; received [1-9]' "$stat" -d $loop
grep -Eq "^ *$loop epoll_loop +accelerator .* $link +up +0 .* [0-9.]+ [mun]?s\$" "$out" || fail "no line of the link, with its age"
grep -Eq '^ +by smt +[1-9]' "$out" || fail "no requests by protocol"
grep -q '^1 process, 1 link: 0 requests queued' "$out" || fail "no means"

"$stat" --json $loop >"$out" 2>&1 || fail "--json: exit status $?"
values=$("$json" json links.0.{pid,link,state,sent_messages,requests.smt,queue_depth} mean.links <"$out" | paste -sd' ')
movers='copied_puts copied_put_bytes copied_gets copied_get_bytes engine_out engine_out_bytes engine_in engine_in_bytes
	helped_out_bytes helped_in_bytes asked asked_bytes asked_here asked_here_bytes'
for mover in $movers; do
	grep -Eq "^ *\"$mover\": 0,?\$" "$out" || fail "--json: no $mover"
done
[[ $values =~ ^$loop\ $link\ up\ ([1-9][0-9]*)\ ([0-9]+)\ 0\ 1$ ]] || fail "--json: $values"
[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || fail "--json: not all messages were by SMT"
"$stat" --prometheus $loop >"$out" 2>&1 || fail "--prometheus: exit status $?"
grep -Eq "^slmpm_link_up\{pid=\"$loop\",.*\} 1\$" "$out" && grep -Eq '^slmpm_age_seconds\{.*\} [0-9]' "$out" || fail "--prometheus: state and age"
grep -Eq "^slmpm_sent_messages_total\{pid=\"$loop\",place=\"[0-9]+\"\} [1-9]" "$out" || fail "--prometheus"
[ "$(grep -Ec '^slmpm_(copied_(put|get)|engine_(out|in)|asked(_here)?)_(operations|bytes)_total\{.*\} 0$|^slmpm_helped_(out|in)_bytes_total\{.*\} 0$' "$out")" = 14 ] ||
	fail "--prometheus: who moves bytes"
grep -Eq "^slmpm_link_info\{pid=\"$loop\",place=\"[0-9]+\",context=\"[0-9]+\",program=\"epoll_loop\",peer=\"[^\"]*\",link=\"$link\"\} 1\$" "$out" || fail "--prometheus: names"
grep -v '^#' "$out" | grep -Ev '^slmpm_(link|peer_total)_info' | grep -E '(program|peer|context)=' && fail "--prometheus: a label that a peer chooses"
# Each name ends with its unit, or counts things by their name.
grep -v '^#' "$out" | sed 's/{.*//' | sort -u | grep -Ev '_(requests|messages|operations|segments|bytes)(_total)?$|_(packets|connections|ids|puts|gets|atomics|reads|violations|errors|refused|served|misaddressed)_total$|_(seconds|ratio|bytes_per_second|up|info|used|instances|jobs|links)$' && fail "--prometheus: a figure without a unit"
# Each sample behind its HELP and TYPE, and nothing else.
awk '/^# HELP/ { help = $3 } /^# TYPE/ { if ($3 != help || $4 !~ /^(gauge|counter)$/) exit 1; type = $3 }
	!/^#/ { name = $0; sub(/\{.*/, "", name); if (name != type || $NF !~ /^[0-9.e+-]+$/) exit 1 }' "$out" || fail "--prometheus: form"
# What they come to as a job, once each has told the other.
until_there '^job [0-9a-f]\{12\}: 2 instances of 1 job, 2 links: ' say_and_look
grep -Eq "^  over $fabric +2 links, [1-9]" "$out" || fail "no means by fabric"
grep -Eq '^  by smt +64: [0-9.]+ (ns|us|ms)' "$out" || until_there '^  by smt *64: [0-9.]* [num]*s' say_and_look
"$stat" --json $loop >"$out" 2>&1 || fail "--json: exit status $?"
values=$("$json" json jobs.0.{instances,jobs,links,processes,fabrics.$fabric.links} <"$out" | paste -sd' ')
[ "$values" = "2 1 2 1 2" ] || fail "--json: a job: $values"
ns=$("$json" json jobs.0.latency_ns.smt.64 <"$out")
[ "$ns" -gt 0 ] || fail "--json: a job's latency: $ns"
"$stat" --prometheus $loop >"$out" 2>&1 || fail "--prometheus: exit status $?"
grep -Eq '^slmpm_job_instances\{job="[0-9a-f]{12}"\} 2$' "$out" || fail "--prometheus: a job"
grep -Eq "^slmpm_job_fabric_links\\{job=\"[0-9a-f]{12}\",fabric=\"$fabric\"\\} 2\$" "$out" || fail "--prometheus: its fabric"
grep -Eq '^slmpm_job_latency_seconds\{job="[0-9a-f]{12}",protocol="smt",size="64"\} [0-9]' "$out" || fail "--prometheus: its latency"
# The peer shows it, too, and a look at all finds both, as one job.
peer=$(pgrep -P $loop)
until_there '^job [0-9a-f]\{12\}: 2 instances' "$stat" $peer
number=$(sed -n 's/^job \([0-9a-f]*\):.*/\1/p' "$out")
until_there "^ *$peer " "$stat"
grep -q "^ *$loop " "$out" || fail "not both ends"
grep -q "^ *$peer epoll_loop " "$out" || fail "what was started by /proc/self/exe has another name"
[ "$(grep -c "^job $number" "$out")" = 1 ] || fail "the job is not one"
for by in pid queue ring latency rate bytes; do
	"$stat" -s $by >"$out" 2>&1 || fail "-s $by"
done

# The screen, in a terminal of its own.
if [ -n "$has_terminal" ]; then
	TERM=xterm timeout 40 script -qec "stty rows 24 cols 160; '$stat' --watch=0.1 -n 3 $loop" "$dir/screen" >/dev/null 2>"$out" </dev/null
	rc=$?
	[ $rc = 0 ] || fail "--watch: exit status $rc"
	grep -q "epoll_loop" "$dir/screen" || { cp "$dir/screen" "$out"; fail "--watch shows no link"; }
	grep -q "job $number: 2 instances" "$dir/screen" || { cp "$dir/screen" "$out"; fail "--watch shows no job"; }
	grep -q 'INB/s *AGE' "$dir/screen" && grep -q ' requests' "$dir/screen" || { cp "$dir/screen" "$out"; fail "--watch leaves out the last column"; }
	for size in "24 80" "2 10" "1 1"; do # what is too wide is cut, and not in the next line
		TERM=xterm timeout 40 script -qec "stty rows ${size% *} cols ${size#* }; '$stat' --watch=0.1 -n 2 $loop" "$dir/screen" >/dev/null 2>"$out" </dev/null || fail "--watch, $size: exit status $?"
		! grep -q ' requests' "$dir/screen" || { cp "$dir/screen" "$out"; fail "--watch, $size: lines go on in the next ones"; }
	done
	TERM=xterm timeout 40 script -qec "'$stat' --watch=30 -s queue" "$dir/screen" >/dev/null 2>"$out" <<<q || fail "--watch does not end by q"
	TERM=nothing timeout 40 script -qec "'$stat' --watch" "$dir/screen" >/dev/null 2>&1 </dev/null && fail "a terminal that is not known"
	grep -q 'not known (TERM=nothing)' "$dir/screen" || { cp "$dir/screen" "$out"; fail "TERM=nothing: why?"; }
fi
# Several links of a peer, each by itself.
mkfifo "$dir/in2" || exit 1
SLMPM_FABRIC=shm SLMPM_LINKS=shm,tcp SLMPM_LINK=1 SLMPM_MONITOR_MS=50 "$SLMPM_BUILD/bin/epoll_loop" <"$dir/in2" >"$dir/echo2" 2>/dev/null &
pair=$!
pids+=("$pair")
exec 5>"$dir/in2"
echo hello >&5
until_there ' link 1 in use  *tcp  *up .* [mun]*s$' more_and_look
grep -Eq '^ +link 0 +shm +up +0 +[0-9.]+ +[0-9.]+ ' "$out" || fail "no line of the other link"
grep -Eq '^  over tcp +[0-9.k]+ requests' "$out" && ! grep -q 'over bond' "$out" || fail "its requests are not those of a fabric"
"$stat" --json $pair >"$out" 2>&1 || fail "--json: exit status $?"
values=$("$json" json links.0.paths.{0.link,0.state,1.link,1.state,1.queue_depth} <"$out" | paste -sd' ')
[ "$values" = "shm up tcp up 0" ] || fail "--json: paths: $values"
"$stat" --prometheus $pair >"$out" 2>&1 || fail "--prometheus: exit status $?"
grep -Eq "^slmpm_path_ring_out_segments\{pid=\"$pair\",.*,path=\"1\",fabric=\"tcp\"\} [1-9]" "$out" || fail "--prometheus: paths"
# It ends while a screen follows it.
if [ -n "$has_terminal" ]; then
	TERM=xterm timeout 40 script -qefc "stty rows 24 cols 160; '$stat' --watch=0.05 $pair" "$dir/screen2" >/dev/null 2>&1 </dev/null 3>&- 5>&- &
	watcher=$!
	until_there 'link 1' cat "$dir/screen2"
	exec 5>&-
	wait $watcher
	rc=$?
	[ $rc = 1 ] || fail "--watch of a program that ends: exit status $rc"
	grep -Eq "there is no process $pair|process $pair shows no links" "$dir/screen2" || { cp "$dir/screen2" "$out"; fail "--watch: why did it end?"; }
fi
exec 5>&-
"$stat" --watch >"$out" 2>&1 && fail "--watch into a file"
grep -q 'wants a terminal' "$out" || fail "--watch into a file: why not?"

# It dies while it is looked at, over and over.
(for i in $(seq 40); do "$stat" $loop || echo "status $?"; done) >"$out" 2>&1 &
looks=$!
pause 0.05
kill -KILL $loop
wait $looks
grep -Ev '^ *(PID|[0-9]+|link [01]) |^[0-9]+ process(es)?,|^job |^  (over|by) |^status 1$|there is no process|shows no links' "$out" >"$dir/rest"
[ ! -s "$dir/rest" ] || fail "a process that died: $(head -n 1 "$dir/rest")"
wait $loop 2>/dev/null
"$stat" $loop >"$out" 2>&1
[ $? = 1 ] || fail "of a process that is gone: status is not 1"
grep -q "there is no process $loop" "$out" || fail "of a process that is gone: why not?"
"$stat" $$ >"$out" 2>&1
[ $? = 1 ] || fail "of a process without links: status is not 1"
grep -q "process $$ shows no links" "$out" || fail "of a process without links: why not?"

# A page that a process shows, and that is not its own.
mkfifo "$dir/hold.dead"
"$json" dead <"$dir/hold.dead" >"$dir/page" &
page=$!
pids+=("$page")
exec 4>"$dir/hold.dead"
until_there ready cat "$dir/page"
"$stat" $page >"$out" 2>&1
[ $? = 1 ] || fail "another's page: status is not 1"
grep -q "process $page shows no links" "$out" || fail "another's page: why not?"
exec 4>&-
wait $page || fail "the page's process: $?"

# A group, one member of which is stopped, wherever it is: the others say who, where it is, and since when. The bench has others than allreduce, too.
SLMPM_FABRIC=shm SLMPM_LINKS=1 "$SLMPM_BUILD/bin/slmpm_perftest" -t allreduce --members=3 -s 8 --samples=1000 >/dev/null 2>&1 &
group=$!
pids+=("$group")
until_there "^ *$group slmpm_perftest  *1  *0  *3  *[1-9][0-9]*  *[1-9]" "$stat" $group
member=$(pgrep -P $group | sed -n 2p)
kill -STOP "$member"
until_there "^ *waits for rank 2, process $member (stopped), for \\(0\\.[2-9]\\|[1-9]\\)[0-9.]* s: at operation [1-9][0-9]*, [a-z][a-z]*\$" "$stat" $group
kind=$(sed -En 's/^ +under way: ([a-z]+) [0-9]+, for [0-9]+\.[0-9]{3} s$/\1/p' "$out")
[ -n "$kind" ] || fail "a group: what is under way?"
others=$(sed -En 's/^ +ranks? (0 to 1|[01]): at operation [0-9]+, [a-z]+$/\1/p' "$out" | paste -sd' ')
[[ $others =~ ^0\ (to\ )?1$ ]] || fail "a group: where are the others? $others" # behind a reduce 1 may be ahead
"$stat" --json $group >"$out" 2>&1 || fail "--json of a group: exit status $?"
values=$("$json" json groups.0.{pid,group,rank,size,waiting,operations.0.kind,members.0.{rank,pid,state}} <"$out" | paste -sd' ')
[ "$values" = "$group 1 0 3 1 $kind 2 $member stopped" ] || fail "--json of a group: $values"
"$stat" --prometheus $group >"$out" 2>&1 || fail "--prometheus of a group: exit status $?"
grep -q "^slmpm_group_waiting_members{pid=\"$group\",group=\"0\"} 1\$" "$out" &&
	grep -Eq "^slmpm_group_wait_seconds\{pid=\"$group\",group=\"0\"\} [0-9]*\.[0-9]" "$out" || fail "--prometheus of a group"
if [ -n "$has_terminal" ]; then
	TERM=xterm timeout 40 script -qec "stty rows 24 cols 160; '$stat' --watch=0.1 -n 1 $group" "$dir/screen" >/dev/null 2>"$out" </dev/null
	grep -q "waits for rank 2, process $member (stopped), for " "$dir/screen" || { cp "$dir/screen" "$out"; fail "--watch shows no group"; }
fi
kill -KILL "$member" $group
wait $group 2>/dev/null

# Work queues: their totals, what one waits for and since when, and where one has stopped.
for engine in none thread; do
	mkfifo "$dir/hold.$engine"
	SLMPM_ENGINE=$engine "$SLMPM_BUILD/tests/apps/stat_queue" <"$dir/hold.$engine" >"$dir/page" &
	page=$!
	pids+=("$page")
	exec 4>"$dir/hold.$engine"
	until_there ready cat "$dir/page"
	until_there "^ *$page stat_queue .* 2  *2  *2  *1  *0  *[0-9]  *1\$" "$stat" $page
	grep -Eq '^ +waits: channel 3, entry 2: counter [0-9]+ at 1 of 5, for [0-9]+\.[0-9]{3} s$' "$out" || fail "a queue: what does it wait for?"
	grep -Eq "^ *$page stat_queue .* 1 +1 +1 +0 +1 +[0-9] +0\$" "$out" && grep -q '^ *stopped at entry 1 of channel 1: ' "$out" || fail "a queue that has stopped"
	"$stat" --json $page >"$out" 2>&1 || fail "--json of queues: exit status $?"
	values=$("$json" json queues.0.{pid,posted,done,waiting,waits.0.{for,channel,entry,value,total}} queues.1.{failed,first_failed} <"$out" | paste -sd' ')
	[ "$values" = "$page 2 1 1 counter 3 2 5 1 1 1" ] || fail "--json of queues: $values"
	then=$("$json" json queues.0.waits.0.seconds <"$out")
	pause 0.1
	"$stat" --json $page >"$out" 2>&1 || fail "--json of queues: exit status $?"
	now=$("$json" json queues.0.waits.0.seconds <"$out")
	awk -v then="$then" -v now="$now" 'BEGIN { exit !(now > then + 0.05 && now < 60) }' || fail "a queue waits since $then, then $now seconds"
	"$stat" --prometheus $page >"$out" 2>&1 || fail "--prometheus of queues: exit status $?"
	grep -q "^slmpm_work_queue_done_requests_total{pid=\"$page\",context=\"0\",queue=\"0\"} 1\$" "$out" &&
		grep -Eq "^slmpm_work_queue_wait_seconds\{pid=\"$page\",context=\"0\",queue=\"0\"\} [0-9]*\.[0-9]" "$out" || fail "--prometheus of queues"
	"$SLMPM_BUILD/bin/slmpm_info" -s $page >"$out" 2>&1 || fail "slmpm_info -s of queues: exit status $?"
	grep -Eq '^  waits: channel 3, entry 2: counter [0-9]+ at 1 of 5, for [0-9.]+ s$' "$out" && grep -Eq '^  first_failed +1$' "$out" &&
		[ "$(grep -c '^queue [01]$' "$out")" = 2 ] || fail "slmpm_info -s of queues"
	"$SLMPM_BUILD/bin/slmpm_info" -s $page --json >"$out" 2>&1 || fail "slmpm_info -s --json of queues: exit status $?"
	[ "$("$json" json queues.0.{begun,waits.0.for} <"$out" | paste -sd' ')" = "2 counter" ] || fail "slmpm_info -s --json of queues"
	exec 4>&-
	wait $page || fail "the queues' process: $?"
done

# Pages full of anything: every form, and no more than visible characters.
for what in random 255 27; do
	mkfifo "$dir/hold.$what"
	"$json" $what <"$dir/hold.$what" >"$dir/page" &
	page=$!
	pids+=("$page")
	exec 4>"$dir/hold.$what"
	until_there ready cat "$dir/page"
	for form in "" "-a -d" "-a --json" "-a --prometheus" "--json" "-s bytes"; do
		timeout 10 "$stat" $form $page >"$out" 2>&1 || fail "nonsense ($what) as \"$form\": status $?"
		LC_ALL=C grep -q '[^[:print:][:space:]]' "$out" && fail "nonsense ($what) as \"$form\": not printable"
		[ -z "$(grep -v '^#' "$out" | sed 's/ [^ ]*$//' | grep '^slmpm' | sort | uniq -d)" ] || fail "nonsense ($what) as \"$form\": a sample twice"
		case $form in *json*) "$json" json <"$out" || fail "nonsense ($what): no JSON" ;; esac
	done
	timeout 10 "$stat" -a >"$out" 2>&1 || fail "nonsense ($what) among all: status $?"
	exec 4>&-
	wait $page || fail "the page's process: $?"
done

# Puts of a side without an engine go by the other's from SLMPM_ASK_MIN on: how many, and why, both sides show.
ask() { # ask MINIMUM PATTERN
	local url=shm:slmpm-stat-$$-$1 perf=$SLMPM_BUILD/bin/slmpm_perftest
	local settings="SLMPM_FABRIC=shm SLMPM_LINKS=1 SLMPM_SHARE=never SLMPM_ASK_MIN=$1"
	env $settings SLMPM_ENGINE=thread "$perf" --listen $url >"$dir/asked" 2>&1 &
	asked=$!
	until_there listening cat "$dir/asked"
	env $settings SLMPM_ENGINE=none "$perf" --connect $url -t put_bw -s 4m -n 100000000 >"$dir/asker" 2>&1 &
	asker=$!
	pids+=("$asked" "$asker")
	until_there "$2" "$stat" -d $asker
}
ask 1m "^ *by the peer's engine: [1-9][0-9]*, [1-9][0-9]* bytes; for the peer: 0, 0" # counted at their ends
grep -q 'by put  *[1-9][0-9]* chosen: engine' "$out" || fail "by the peer's engine: why?"
until_there '; for the peer: [1-9]' "$stat" -d $asked
grep -q 'by the engine: 0 out, 0 bytes; [1-9]' "$out" || fail "for the peer: by the engine?"
kill $asker $asked
ask 8g 'moved by calls: [1-9][0-9]* puts, [1-9]'
grep -Eq "chosen: engine|by the peer's engine" "$out" && fail "asked for although the length is not reached"
kill $asker $asked

for bad in "0" "x" "1 2" "-s what" "--json --prometheus" "--watch=0" "--watch=x" "-n 0" "-n 2" "-d --json" "-d --prometheus" "-d --watch" "--nonsense"; do
	"$stat" $bad >"$out" 2>&1
	[ $? = 2 ] || fail "$bad: exit status is not 2"
done
"$stat" --help >"$out" 2>&1 || fail "--help"
end_of_terminal
