#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each structure of the headers that begins with its size stands in a list of tests/api/sizes.c, or, if no call takes it, in
# tests/unit/calc_check.c; each other one is known here, with what becomes of it when it grows.
set -u
cd "$(dirname "$0")/../.." || exit 1

# NAME sized | plain, by the first member.
all=$(awk '/^struct [a-z_]+ \{/ { name = $2; first = 1; next }
	first && /\t(const )?[a-z_0-9]+ / { print name, ($0 ~ /^\tuint32_t size;/ ? "sized" : "plain"); first = 0 }' include/slmpm*.h)
diff <(awk '$2 == "sized" { print $1 }' <<<"$all" | sort -u) \
	<({ sed -nE 's/^\t\{"(slmpm_[a-z_]+)", .*/\1/p' tests/api/sizes.c; echo slmpm_calc; } | sort -u) || { echo "< slmpm*.h, > sizes.c"; exit 1; }
# Never to grow: iov, span, key, timing, stats_wait, shown_operation, shown_member, name. With room: done, operand, fifo, monitor_path, aggregate_fabric. The library's own: am, deposit, stats_page.
diff <(awk '$2 == "plain" { print $1 }' <<<"$all" | sort -u) \
	<(printf 'slmpm_%s\n' iov span key timing stats_wait shown_operation shown_member name done operand fifo monitor_path aggregate_fabric am deposit stats_page | sort) ||
	{ echo "< slmpm*.h, > known here"; exit 1; }
echo "$(wc -l <<<"$all") structures"
