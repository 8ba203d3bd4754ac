#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each tool's man page and its --help tell of the same options.
set -u
bad=0 pages=0

# How they are told of: "  -n, --number=N   Text", and "*-n*, *--number* _N_" at the line's beginning.
in_help() { "$1" --help </dev/null | grep -E '^  (-|    --)' | sed -E 's/^ +//; s/  .*//' | grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u; }
in_man() { grep -E '^\*-' "$1" | grep -oE -- '\*--?[A-Za-z][a-z-]*' | tr -d '*' | sort -u; }

# What argp adds to each by itself need not be told.
ours() { grep -vxE -- '--usage|--help|--version|-V'; }

for page in doc/man/*.1.scd; do
	tool=$(basename "$page" .1.scd)
	[ -x "$SLMPM_BUILD/bin/$tool" ] || { echo "$page: there is no such tool" >&2; bad=1; continue; }
	pages=$((pages + 1))
	only=$(comm -3 <(in_help "$SLMPM_BUILD/bin/$tool" | ours) <(in_man "$page" | ours))
	[ -z "$only" ] || { printf '%s: in --help alone, and in the man page alone:\n%s\n' "$tool" "$only" >&2; bad=1; }
	for word in -h --help; do "$SLMPM_BUILD/bin/$tool" $word </dev/null 2>&1; echo "status $?"; done | awk -v tool="$tool" '
		/^status/ { ended++; if ($2) bad = 1; next } { n[ended + 0]++ } END { exit bad || ended != 2 || n[0] < 5 || n[0] != n[1] }' ||
		{ echo "$tool: -h is not --help" >&2; bad=1; }
	[ "$(in_help "$SLMPM_BUILD/bin/$tool" | wc -l)" -gt 2 ] || { echo "$tool: --help has no options" >&2; bad=1; }
done
[ "$pages" -ge 8 ] || { echo "only $pages pages" >&2; bad=1; }
exit $bad
