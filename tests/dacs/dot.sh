#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The worked example gives the right product with any number of accelerators, and says what is wrong.
set -eu
for n in 1 2 7; do
	out=$(dacs_dot_host "$n")
	[ "${out#"$n accelerators: "}" != "$out" ] || { echo "asked for $n: $out"; exit 1; }
done
if dacs_dot_host 99 2>/dev/null; then
	echo "99 accelerators were accepted"
	exit 1
fi
if SLMPM_ELEMENTS=none dacs_dot_host 2>/dev/null; then
	echo "a setting that cannot be read was accepted"
	exit 1
fi
