#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The worked example of puts and gets gives the right picture with any number of accelerators, on direct memory and by
# requests, and says what is wrong.
# one-thread
set -eu
for n in 1 2 7; do
	for rma in auto ring; do
		out=$(SLMPM_RMA=$rma dacs_put_host "$n")
		[ "$out" = "$n accelerators: 5 rounds on 64200 pixels, 0 of them wrong" ] ||
			{ echo "asked for $n by $rma: $out"; exit 1; }
	done
done
if SLMPM_DACS_STRICT=y dacs_put_host 3 2>/dev/null; then
	echo "columns that no Cell processor could transfer were accepted"
	exit 1
fi
if dacs_put_host 99 2>/dev/null; then
	echo "99 accelerators were accepted"
	exit 1
fi
