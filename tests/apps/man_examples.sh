#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The examples of the man pages: every page of section 3 has one, each compiles as the page shows it, and
# those that are whole programs run and print what they should.
# native-only
# timeout: 120
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
bad=0
unset SLMPM_FABRIC SLMPM_LINKS	# whose links the examples name
complain() { echo "$*" >&2; bad=1; }

# Into $work/NAME-1.c and so on, as a reader sees them: scdoc takes a backslash away from whatever follows it.
for page in doc/man/*.[37].scd; do
	name=$(basename "$page" .scd)
	awk '/^# / { on = /^# EXAMPLES?$/ } on' "$page" >"$work/text"
	awk -v out="$work/$name" '/^```/ { open = !open; if (open) n++; next }
		open { gsub(/\\\\/, "\001"); gsub(/\\/, ""); gsub("\001", "\\"); print >(out "-" n ".c") }' "$work/text"
	case $name in
	*.3) [ -e "$work/$name-1.c" ] || complain "$page: no example" ;;
	esac
	! sed 's/\\\\//g' "$work/text" | awk '/^```/ { open = !open } open && /\\/' | grep . ||
		complain "$page: a backslash of code is to be written twice"
done

compiled=0 programs=
for source in "$work"/*.c; do
	program=${source%.c}
	if ! ${CC:-gcc} -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -c "$source" -o "$program.o"; then
		complain "$(basename "$program") does not compile"
		continue
	fi
	compiled=$((compiled + 1))
	grep -q '^int main' "$source" || continue
	# Of a name of its own: the same test may run beside this one.
	[ "$(basename "$program")" != slmpm_listen.3-1 ] || sed -i "s/shm:example/shm:example.$$/" "$source"
	${CC:-gcc} -std=c99 -Iinclude "$source" -o "$program" -L"$SLMPM_BUILD/lib" -lslmpm \
		-Wl,-rpath,"$SLMPM_BUILD/lib" || complain "$(basename "$program") does not link"
	programs+=" $(basename "$program")"
done
[ $compiled -ge 40 ] || complain "only $compiled examples"

# prints PROGRAM EXPECTED ARGUMENTS...: a pattern for all that it says, which may be several lines.
prints() {
	local program=$1 want=$2 got
	shift 2
	programs=${programs/ $program/}
	got=$(cd "$work" && timeout 20 "./$program" "$@" 2>&1) || complain "$program: exit status $?"
	[[ $got =~ ^$want$ ]] || complain "$program printed: $got"
}
line=$'\n'
prints slmpm.7-1 "1 squared is 1${line}2 squared is 4${line}3 squared is 9"
prints slmpm_element.3-1 "(accelerator [0-9]+$line)*[0-9]+ are left"
prints slmpm_error.3-1 'SLMPM_ENOENT: not found; in full: .*nobody listens there'
prints slmpm_loan.3-1 '1048576 bytes, sum 1048576'
prints slmpm_mem.3-1 'hello'
prints slmpm_network.3-1 '0 by link 0, 1 by link 0, 2 by link 2, 6 by link 5, 54'
prints slmpm_plan.3-1 'barrier: 1 2'
prints slmpm_peer_at.3-1 'not found: shm:nobody-is-here: nobody listens there' shm:nobody-is-here
prints slmpm_open.3-1 'descriptor [0-9]+'
prints slmpm_spawn.3-1 'it exited with 7'
prints dacs_init.3-1 '[0-9]+ accelerators are free'
prints dacs_de_start.3-1 'it exited with 3'

# Those that look at another process, or connect to one: it is the listener, whose first guest greets it.
export SLMPM_LINKS=2 SLMPM_LINKS_AFTER=0
timeout 60 stdbuf -oL "$work/slmpm_listen.3-1" >"$work/heard" &
listener=$!
tries=0
until "$work/slmpm_listen.3-1" 'good morning' 2>/dev/null; do
	[ $((tries += 1)) -lt 100 ] || { complain "slmpm_listen: nobody listens"; break; }
	read -r -t 0.1 <> <(:)
done
prints slmpm_link.3-1 ".*link 0 over shm.*: up${line}link 1 over shm.*: up" "shm:example.$$"
prints slmpm_stats.3-1 "(pid .*: 1 messages in, .*, 0 remote reads($line.*)?)" "$(pgrep -P $listener)"
prints slmpm_groups_read.3-1 "" "$(pgrep -P $listener)"
prints slmpm_peer_id.3-1 "others: .*${line}.*: [0-9]+ connections, [0-9]+ messages out, [0-9]+ in.*" "$(pgrep -P $listener)"
prints slmpm_monitor.3-1 '.* over bond: 0 queued, .*echo [0-9]+ ns.*' "$(pgrep -P $listener)"
kill $listener
wait $listener 2>/dev/null
[ "$(cat "$work/heard")" = 'good morning' ] || complain "slmpm_listen.3-1 heard: $(cat "$work/heard")"
programs=${programs/ slmpm_listen.3-1/}

# By address: the accelerator takes two links and waits for the end.
cat >"$work/accelerator.c" <<'C'
#include <slmpm.h>
int main(void)
{
	slmpm_peer host;
	char text[64];

	if (slmpm_parent(&host) < 0)
		return slmpm_perror("accelerator");
	while (slmpm_recv(host, 0, text, sizeof(text), NULL, -1) >= 0)
		;
	return 0;
}
C
${CC:-gcc} -Iinclude "$work/accelerator.c" -o "$work/accelerator" -L"$SLMPM_BUILD/lib" -lslmpm -Wl,-rpath,"$SLMPM_BUILD/lib"
export SLMPM_LINKS=shm,tcp SLMPM_PCI=0000:03:00.0
prints slmpm_address.3-1 ".*pci:0000:03:00.0 over .*${line}.*ip:.* over tcp.*"

[ -z "$programs" ] || complain "nothing runs$programs"
exit $bad
