#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 30
#
# mirror_demo: a line for each fabric and way, reads that ask nothing of the accelerators where there is a mirror, and a
# simulation that has moved; drawn; and wrong arguments.
set -u
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
rm -f "${TMPDIR:-/tmp}/mirror_demo.$$"
for bad in "-n 0" "-n 17" "-s 0" "-s x" "--fabric x" "more" "--nonsense"; do
	# shellcheck disable=SC2086
	timeout 5 "$demo" $bad >/dev/null 2>&1 && fail "$bad was accepted"
done
exit 0
