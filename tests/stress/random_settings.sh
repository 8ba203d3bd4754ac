#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 120
#
# The random calls of random_ops.c under settings that lead along other ways: checksums, nothing or all sent unasked,
# packets of any size, totals told at once or late, little credit, little room for loans, no membarrier. Data races show
# where there are threads: under a thread sanitizer a third of these will do, another each time.
set -u
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

number=$RANDOM

try() {
	number=$((number + 1))
	case ${SLMPM_SAN:-} in *thread*) [ $((number % 3)) = 0 ] || return 0 ;; esac
	env SLMPM_TEST_SECONDS=0 "$@" "$SLMPM_BUILD/tests/stress/random_ops" >"$log" 2>&1 && echo "$*: $(tail -n 1 "$log")" && return
	echo "failed with $*"
	tail -c 2000 "$log"
	exit 1
}

try SLMPM_CHECK=1 SLMPM_TEST_SEED=1000
try SLMPM_EAGER_MAX=0 SLMPM_TEST_SEED=2000
try SLMPM_PACKET_MAX=256 SLMPM_EAGER_CREDIT=64k SLMPM_TEST_SEED=3000
try SLMPM_PACKET_MAX=64k SLMPM_EAGER_MAX=1m SLMPM_TEST_SEED=4000
try SLMPM_PUBLISH=every SLMPM_LOAN_MAX=300k SLMPM_TEST_SEED=5000
try SLMPM_PUBLISH=3/4 SLMPM_PUBLISH_BATCH=4096 SLMPM_MEMBARRIER=n SLMPM_TEST_SEED=6000
try SLMPM_CHECK=1 SLMPM_SEGMENT_SIZE=1k SLMPM_WAIT=block SLMPM_TEST_SEED=7000
exit 0
