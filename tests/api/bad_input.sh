#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each call that slmpm.h and its parts export stands in a table of tests/api/bad_input.c or bad_handles.c, or is
# REFUSED in the test of its own family in tests/api; and nothing else does.
set -u
tests=$(dirname "$0")
headers=$(echo "$tests"/../../include/slmpm*.h)

# A declaration begins with SLMPM_API; its name is the last word before the first parenthesis.
exported=$(sed -n '/^SLMPM_API/s/^SLMPM_API[^(]*[ *]\(slmpm_[a-z_0-9]*\)(.*/\1/p' $headers | sort)
[ "$(echo "$exported" | wc -l)" = "$(cat $headers | grep -c '^SLMPM_API')" ] || { echo "a declaration is not understood"; exit 1; }
tried=$({ grep -oh 'CASE(slmpm_[a-z_0-9]*' "$tests/bad_input.c" "$tests/bad_handles.c" | cut -c 6-
	sed -n 's/.*REFUSED(\(slmpm_[a-z_0-9]*\)(.*/\1/p' "$tests"/*.c; } | sort -u)

diff <(echo "$exported") <(echo "$tried") || { echo "< exported, > tried"; exit 1; }
# Of a timeout of theirs the sign alone counts: -1, or any below 0, sets no deadline.
! grep -rnE '(timeout_ms|left_ms) *([=!]=|[<>]=?) *-[0-9]' "$tests/../../slmpm" --include=*.[ch] | grep -v 'wr->timeout_ms' ||
	{ echo "a timeout below 0 is no number"; exit 1; }
echo "$(echo "$exported" | wc -l) calls"
