#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Errors of ours are written out, SLMPM_EAGAIN, wherever a user reads: EAGAIN alone is another number, errno's. The page of
# errors has each with its number, and so does the wire's.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0

numbers=$(sed -nE 's/^\tX\((E[A-Z]+), ([0-9]+), .*/SLMPM_\1 \2/p' include/slmpm.h)
[ "$(wc -l <<<"$numbers")" -ge 24 ] || { echo "slmpm.h was not read" >&2; exit 1; }

names=$(sed -E 's/SLMPM_(.*) .*/\1/' <<<"$numbers" | paste -sd'|')
if grep -nE "(^|[^A-Za-z_])($names)([^A-Za-z_]|$)" include/slmpm*.h doc/man/slmpm*.scd doc/man/*.1.scd README.md |
	grep -vE ':	X\(E|: ?/\* errno' >&2; then
	echo "these are errno's" >&2
	bad=1
fi
only=$(diff <(sort <<<"$numbers") <(sed -nE 's/^\|\[? +\*(SLMPM_E[A-Z]+)\* ([0-9]+)$/\1 \2/p' doc/man/slmpm_error.3.scd | sort))
[ -z "$only" ] || { printf 'slmpm.h, and slmpm_error(3):\n%s\n' "$only" >&2; bad=1; }
while read -r name number; do
	grep -qE "\| $((number - 10000)) \| ${name#SLMPM_} \|" doc/wire.md || { echo "doc/wire.md: no $name" >&2; bad=1; }
done <<<"$numbers"
exit $bad
