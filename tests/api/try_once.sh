#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each call of the headers that has a timeout, its own or that of a struct slmpm_how, stands in the list of
# tests/api/try_once.c.
set -u
cd "$(dirname "$0")/../.." || exit 1

calls=$(cat include/slmpm*.h | tr '\n\t' '  ' | grep -oE 'SLMPM_API [^;]*;' |
	grep -E 'int timeout_ms|struct slmpm_how \*how' | grep -oE 'slmpm_[a-z_]+\(' | tr -d '(' | sort -u)
diff <(echo "$calls") <(sed -nE 's/^\t\{"(slmpm_[a-z_]+)", .*/\1/p' tests/api/try_once.c | sort -u) ||
	{ echo "< slmpm*.h, > try_once.c"; exit 1; }
echo "$(wc -l <<<"$calls") calls"
