#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the man pages list is what there is: the settings and what they are without being set, the tests of
# slmpm_perftest, the statistics, which slmpm_info -s shows, too, and the pages, by family.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=$SLMPM_BUILD/bin bad=0

# same WHAT HAVE SHOULD: the same lines, in whatever order, and some of them.
same() {
	local only
	only=$(comm -3 <(sort <<<"$2") <(sort <<<"$3"))
	[ -z "$only" ] || { printf '%s: there alone, and in the page alone:\n%s\n' "$1" "$only" >&2; bad=1; }
	[ "$(wc -l <<<"$2")" -gt 20 ] || { echo "$1: only $2" >&2; bad=1; }
}

# "# from default; initially "shm"" stands before "SLMPM_FABRIC=...".
settings=$("$bin/slmpm_info" -c | awk '/^# from .*; initially / { initial = $0; sub(/.*; initially "/, "", initial); sub(/"$/, "", initial) }
	/^SLMPM_/ { sub(/=.*/, ""); print $0 "=" initial }') || exit 1
same settings "$settings" "$(sed -nE 's/^\*(SLMPM_[A-Z_]+)\*=_?([^_ ]*(_[a-z]+)?)_?( .*)?$/\1=\2/p' doc/man/{slmpm,dacs}.7.scd)"

tests=$("$bin/slmpm_perftest" -t nonsense 2>&1 | sed 's/.*there are: //' | tr ' ' '\n')
same "tests of slmpm_perftest" "$tests" \
	"$(awk '/^# / { on = /^# TESTS/ } on && /^(\[\[|\|)/' doc/man/slmpm_perftest.1.scd | grep -oE '\*[a-z_]+\*' | tr -d '*')"

# All members of the structure but its size, its process and the link's name.
statistics=$(awk '/^struct slmpm_stats \{/ { on = 1 } /^};/ { on = 0 } on' include/slmpm_stats.h | sed 's,/\*.*,,' |
	sed -nE 's/^\tuint64_t (.*);.*/\1/p' | sed 's/\[[A-Z_]*\]//g' | tr -d ' ' | tr ',' '\n')
same statistics "$statistics" \
	"$(awk '/^# / { on = /^# DESCRIPTION/ } on && /^(\||:)/' doc/man/slmpm_stats.3.scd | sed -E '/^:/s/_[A-Z].*//' |
		grep -oE '(^|[ ,[])_[a-z_]+[a-z]_(\[\])?' | sed -E 's/^[^_]*_//; s/_(\[\])?$//' | grep -vxE 'am|tag')"
same "statistics of slmpm_info" "$statistics" "$(sed -nE 's/^\tFIGURE\(([a-z_]+)\),/\1/p' apps/slmpm_info/parts.c; echo publications)"

# Some are named by a call of theirs.
for page in doc/man/*.3.scd; do
	name=$(basename "$page" .3.scd)
	calls=$(awk '/^# /{ on = /^# NAME/ } on' "$page" | grep -oE '(slmpm|dacs)_[a-z_]+' | paste -sd'|')
	awk '/^#/ { on = /^## Families/ } on' "doc/man/${name%%_*}.7.scd" | grep -qE "\*($name|$calls)\*\(3\)" ||
		{ echo "$name(3) is no family of ${name%%_*}(7)" >&2; bad=1; }
done
exit $bad
