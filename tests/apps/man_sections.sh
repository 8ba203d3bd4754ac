#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Pages of section 3 have the same sections in the same order: who reads one knows where errors and threads stand. A
# structure that a page shows has the members that the header gives it. SMT is spelled out where a page first uses it.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
complain() { echo "$*" >&2; bad=1; }

want='NAME SYNOPSIS DESCRIPTION RETURN_VALUE ERRORS THREADS EXAMPLE SEE_ALSO'
pages=0
for page in doc/man/*.3.scd; do
	pages=$((pages + 1))
	got=$(sed -nE 's/^# (.*)/\1/p' "$page" | tr ' ' '_' | sed 's/EXAMPLES/EXAMPLE/' | grep -vE 'CAVEATS|NOTES' | tr '\n' ' ')
	[ "${got% }" = "$want" ] || complain "$page: ${got:-no section}"
	for section in ERRORS THREADS; do
		awk -v s="# $section" '/^# / { on = $0 == s; next } on && NF { n++ } END { exit !n }' "$page" ||
			complain "$page: nothing in $section"
	done
done
[ $pages -ge 30 ] || complain "only $pages pages"

# members FILE NAME: of struct NAME, as FILE first shows it; without reserved ones.
members() {
	perl -0777 -ne '
		exit 1 unless /^struct '"$2"' \{(.*?)^\}/ms;
		my $body = $1;
		$body =~ s{/\*.*?\*/}{}gs;
		for (split /[;,]/, $body) {
			s/\[.*?\]//g;
			print "$1\n" if /(\w+)\s*$/ && $1 !~ /^(reserved|zero)$/;
		}' "$1" | sort
}
shown=0
for page in doc/man/slmpm*.3.scd; do
	for name in $(sed -nE 's/^struct (slmpm_[a-z_]+) \{.*/\1/p' "$page" | sort -u); do
		header=$(grep -lE "^struct $name \{" include/slmpm*.h) || { complain "$page: no struct $name"; continue; }
		shown=$((shown + 1))
		only=$(diff <(members "$header" "$name") <(members "$page" "$name")) ||
			complain "$header, and $page, of struct $name:"$'\n'"$only"
	done
done
[ $shown -ge 19 ] || complain "only $shown structures"

for page in README.md doc/man/*.scd; do
	first=$(grep -nE -m1 '(^|[^A-Za-z_])_?SMT_?([^A-Za-z_]|$)' "$page") || continue
	grep -qi 'shared-memory transfer' <<<"$first" || complain "$page: SMT is not spelled out: $first"
done
exit $bad
