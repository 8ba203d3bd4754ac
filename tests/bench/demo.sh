#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo over the same warm files as it is by default, over shared memory alone, as messages in
# place of loans, and find | xargs with two openssl, by turns, as Markdown: wall time from start to end.
# Ratios are of the runs of one turn; the interval leaves out one of each end in ten.
#	tests/bench/demo.sh DEMO TURNS [FOLDER]
set -u
DEMO=$1 TURNS=$2 FOLDER=${3:-/usr/lib/$(gcc -print-multiarch 2>/dev/null)}
command -v openssl >/dev/null || { echo "the demo beside xargs: not measured: openssl is missing"; exit 77; }
unset SLMPM_FABRIC SLMPM_LINKS SLMPM_MODE SLMPM_FETCH

ours() { "$DEMO" -q "$@" "$FOLDER"; }
theirs() { find "$FOLDER" -type f -print0 | xargs -0 -P2 -n64 openssl sha256; }
took() { # took COMMAND...: milliseconds
	local begin=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1 || exit 1
	echo -n "$(((${EPOCHREALTIME/./} - begin) / 1000)) "
}
turn() { took ours; took ours --fabric shm; took ours -p auto; took ours -p auto --fabric shm; took theirs; echo; }

turn >/dev/null || { echo "the demo beside xargs: not measured: it fails in $FOLDER"; exit 1; }
read -r files bytes < <(find "$FOLDER" -type f -printf '%s\n' | awk '{ n += $1 } END { print NR, n }')
for ((i = 0; i < TURNS; i++)); do turn; done | awk -v files="$files" -v bytes="$bytes" -v folder="$FOLDER" '
function order(at, n,    i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && at[j] < at[j - 1]; j--) { t = at[j]; at[j] = at[j - 1]; at[j - 1] = t }
}
function middle(n) { return int((n + 1) / 2) }
function cell(a, b,    i, r) {
	for (i = 1; i <= NR; i++) r[i] = took[a, i] / took[b, i]
	order(r, NR)
	i = int(NR / 10)
	return sprintf("%.2f (%.2f to %.2f)", r[middle(NR)], r[1 + i], r[NR - i])
}
function row(name, a, beside,    i, t) {
	for (i = 1; i <= NR; i++) t[i] = took[a, i]
	order(t, NR)
	printf "| %s | %.2f | %.2f | %s | %s |\n", name, t[middle(NR)] / 1e3, bytes / t[middle(NR)] / 1e6, cell(a, 5), beside ? cell(a, beside) : ""
}
{ for (i = 1; i <= 5; i++) took[i, NR] = $i }
END {
	printf "%d files, %.2f GB, of %s; %d turns\n\n", files, bytes / 1e9, folder, NR
	print "| | s | GB/s | time over that of xargs | over that by shared memory alone |\n| --- | --: | --: | --: | --: |"
	row("`slmpm_demo`", 1, 2)
	row("`--fabric shm`", 2, 0)
	row("`-p auto`", 3, 4)
	row("`-p auto --fabric shm`", 4, 0)
	row("`find`, `xargs -P2 -n64 openssl sha256`", 5, 0)
}'
