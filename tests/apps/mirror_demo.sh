#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 30
#
# mirror_demo: a line for each fabric and way, reads that ask nothing of the accelerators where there is a mirror, and a
# simulation that has moved; drawn; and wrong arguments.
set -u
. "$(dirname "$0")/../lib/terminal.sh"
demo=$SLMPM_BUILD/bin/mirror_demo
fail() { echo "$*" >&2; exit 1; }

table=$(timeout 20 "$demo" -s 0.1) || fail "ended with $?"
echo "$table"
for fabric in shm tcp; do
	echo "$table" | awk -v f=$fabric '$1 == f && $2 == "mirror" && $3 > 0 && $5 == 0 && $6 > 0 { n++ } END { exit n != 1 }' ||
		fail "no line for a mirror over $fabric"
	echo "$table" | awk -v f=$fabric '$1 == f && $2 == "get" && $3 > 0 && $5 > 0 && $6 > 0 { n++ } END { exit n != 1 }' ||
		fail "no line for gets over $fabric"
done
echo "$table" | grep -q '^tcp: .* reads of mirrored memory in the time of a get$' || fail "nothing is compared"
table=$(timeout 20 "$demo" -s 0.1 --fabric shm --plain) || fail "over shm alone: $?"
[ "$(echo "$table" | grep -c '^shm  ')" = 2 ] && ! echo "$table" | grep -q '^tcp' || fail "not shm alone: $table"
timeout 20 "$demo" -n 3 -s 0.2 --draw >"${TMPDIR:-/tmp}/mirror_demo.$$" || fail "three, drawn: $?"
grep -q '[.o*]' "${TMPDIR:-/tmp}/mirror_demo.$$" || fail "nothing was drawn"
# In a small terminal what is drawn fits it, and so does the line below it.
if [ -n "$has_terminal" ]; then
	SHELL=/bin/bash timeout 20 script -qec "stty rows 10 cols 40; exec '$demo' -s 0.2 --fabric shm" /dev/null \
		</dev/null >"${TMPDIR:-/tmp}/mirror_demo.$$" || fail "in a small terminal: $?"
	tr -d '\r' <"${TMPDIR:-/tmp}/mirror_demo.$$" | awk -v esc='\033' '
		index($0, esc "[H" esc "[J") { if (lines > most) most = lines; lines = 0; n++; sub(/.*\[J/, "") }
		/^fabric/ { last = 1 }
		!last { lines++; if (length($0) > 40) wide++ }
		END { exit !(n > 2 && most == 9 && !wide) }' || fail "it does not fit 10 lines of 40"
fi
rm -f "${TMPDIR:-/tmp}/mirror_demo.$$"
timeout 20 "$demo" -s 0.1 --fabric shm >/dev/full && fail "it does not tell that nothing was written"
for bad in "-n 0" "-n 17" "-s 0" "-s x" "--fabric x" "more" "--nonsense"; do
	# shellcheck disable=SC2086
	timeout 5 "$demo" $bad >/dev/null 2>&1 && fail "$bad was accepted"
done
end_of_terminal
