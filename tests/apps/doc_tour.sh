#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The tour of doc/architecture.md: so many lines as it says, a tenth more or less, and under 2,000 in all.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1

total=0 rows=0 bad=0
while IFS='|' read -r _ files lines _; do
	[[ $files == *\`*.[ch]\`* ]] || continue
	# shellcheck disable=SC2046,SC2086
	count=$(cat $(grep -o '`[^`]*`' <<<"$files" | tr -d '`') | wc -l) || exit 1
	rows=$((rows + 1)) total=$((total + count))
	if ((lines * 10 > count * 11 || lines * 10 < count * 9)); then
		echo "$files has $count lines, not$lines"
		bad=1
	fi
done < <(sed -n '/^## The tour/,/^## /p' doc/architecture.md)
((rows >= 5)) || { echo "$rows rows: the page was not read"; exit 1; }
((total < 2000)) || { echo "$total lines: it is to be under 2,000"; exit 1; }
echo "$total lines in $rows rows"
exit $bad
