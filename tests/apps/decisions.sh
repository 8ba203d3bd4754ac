#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The command of slmpm_perftest(1), --decisions: a setting changes a decision, and its reason is shown; without it, not.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1
grep -q 'SLMPM_DEFAULT_SMT=tcp slmpm_perftest -t send_lat -s 100k --decisions' doc/man/slmpm_perftest.1.scd ||
	{ echo "the page has another command"; exit 1; }
unset SLMPM_FABRIC SLMPM_LINK SLMPM_MODE
export SLMPM_LINKS=shm,tcp

# decided WANT [SETTING]: of the messages most went by SMT for this reason.
decided() {
	local want=$1 said n
	shift
	said=$(env "$@" timeout 30 "$SLMPM_BUILD/bin/slmpm_perftest" -t send_lat -s 100k -n 200 --samples 1 --decisions) || exit 1
	n=$(sed -nE "s/^decided: smt, because: $want, ([0-9]+) times$/\1/p" <<<"$said")
	[ "${n:-0}" -ge 200 ] || { printf '%s: not because: %s\n%s\n' "${*:-no setting}" "$want" "$said"; exit 1; }
}
decided call
decided setting SLMPM_DEFAULT_SMT=tcp
