#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# one-thread
# timeout: 60
# The TCP fabric's conformance once more: by io_uring both ways, and over IPv6.
export SLMPM_TEST_FABRIC=tcp
said=${TMPDIR:-/tmp}/slmpm-again-$$

again() { # again SETTING TEST...
	setting=$1
	shift
	for test in "$@"; do
		env "$setting" "$SLMPM_BUILD/tests/fabric/link_$test" >"$said" 2>&1
		status=$?
		[ $status = 0 ] || cat "$said"
		rm -f "$said"
		[ $status = 0 ] || { echo "link_$test, $setting: status $status"; exit 1; }
	done
}

again SLMPM_TEST_ENGINE=uring stream landing totals hostile connect
# ::1, where there is one.
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
	again SLMPM_TEST_IP=6 stream landing totals hostile connect processes train
else
	echo "no IPv6 here"
fi
