#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The examples of one-sided operations, work queues and the FIFO give right results, whichever way
# the operations go.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=$SLMPM_BUILD/bin
fail() { echo "$*" >&2; exit 1; }

lines=$(seq 100000)
for way in auto ring am tag; do
	export SLMPM_RMA=$way
	[ "$(timeout 20 "$bin/put_get" 3)" = "42445 primes below 512000" ] || fail "put_get by $way"
	[ "$(timeout 20 "$bin/work_queue" <<<"$lines")" = "100000 lines" ] || fail "work_queue by $way"
	[ "$(timeout 20 "$bin/fifo" 3)" = "2700 stored, 300 dropped, 1350 of 20 degrees or more" ] || fail "fifo by $way"
done
[ "$(timeout 20 "$bin/work_queue" </dev/null)" = "0 lines" ] || fail "work_queue of nothing"
for fabric in shm tcp; do
	[ "$(SLMPM_FABRIC=$fabric timeout 20 "$bin/work_chain" 5)" = "5 accelerators have had it" ] || fail "work_chain by $fabric"
	[ "$(SLMPM_FABRIC=$fabric timeout 20 "$bin/work_pipe" 5)" = "5 MiB came through 4 buffers of 8192 bytes" ] || fail "work_pipe by $fabric"
	[ "$(SLMPM_FABRIC=$fabric timeout 20 "$bin/work_count" 5)" = "5 accelerators have met 100 times" ] || fail "work_count by $fabric"
done
[ "$(SLMPM_CONNECTIONS=5 timeout 20 "$bin/work_address" 80)" = "80 addresses have had their word" ] || fail work_address
for way in auto ring am; do
	[ "$(SLMPM_RMA=$way timeout 20 "$bin/work_calc" 4)" = "the last of 10000 sums of 4 parts is 99990" ] || fail "work_calc by $way"
done
[ "$(SLMPM_FABRIC=shm timeout 20 "$bin/group_pi" 4)" = "pi is 3.141593, by 4" ] || fail group_pi
[[ $(SLMPM_FABRIC=shm timeout 20 "$bin/group_memory" 3) = *" of 3 million draws are "*", by 1 operation in memory" ]] || fail group_memory
for source in apps/examples/*.c; do
	program=$(basename "$source" .c)
	case $program in *_accel) continue ;; esac
	"$bin/$program" 99 >/dev/null 2>&1 </dev/null
	[ $? = 2 ] || [ $program = tcp_hello ] || fail "$program 99: exit status is not 2"
	said=$(timeout 5 "$bin/$program" -h 2>/dev/null </dev/null) && [[ $said == usage:* ]] || fail "$program -h: $said"
done
