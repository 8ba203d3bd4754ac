#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 60
# The TCP fabric's conformance once more, by io_uring both ways.
export SLMPM_TEST_FABRIC=tcp SLMPM_TEST_ENGINE=uring
for test in stream landing totals hostile connect; do
	"$SLMPM_BUILD/tests/fabric/link_$test" >"${TMPDIR:-/tmp}/slmpm-uring-$$" 2>&1
	status=$?
	[ $status = 0 ] || cat "${TMPDIR:-/tmp}/slmpm-uring-$$"
	rm -f "${TMPDIR:-/tmp}/slmpm-uring-$$"
	[ $status = 0 ] || { echo "link_$test: status $status"; exit 1; }
done
