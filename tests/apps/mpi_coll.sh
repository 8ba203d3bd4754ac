#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A program of MPI, unchanged, with mpi_coll preloaded: each collective operation gives what it should, those that can be
# carried are, the others come out right as well; what is left to MPI goes on beside them. HPCC, where it is installed, verifies.
# native-only
# timeout: 120
set -u
cd "$(dirname "$0")/../.." || exit 1
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=fatal
[ -z "${SLMPM_SAN:-}" ] || { echo "it is preloaded without sanitizers"; exit 77; }

# run MPI RANKS LIBRARY PROGRAM...: LIBRARY is preloaded into all ranks, but not into what starts them.
run() {
	local mpi=$1 ranks=$2 library=$3 starter=mpirun.$1
	shift 3
	[ $mpi != mpi ] || starter=mpirun
	case $mpi in
	openmpi) timeout 50 mpirun.openmpi --oversubscribe --bind-to none --mca btl self,vader -n "$ranks" -x LD_PRELOAD="$library" \
		-x MPI_COLL="${MPI_COLL:-}" -x MPI_COLL_SUMMARY=y "$@" ;;
	*) timeout 50 "$starter" -n "$ranks" env LD_PRELOAD="$library" MPI_COLL_SUMMARY=y "$@" ;;
	esac
}
# count CALL COLUMN: of the summary; 3 carried, 4 no group, 5 no type, 6 too long.
count() { awk -v call="MPI_$1" -v column="$2" '$2 == call { print $column }' "$work/out"; }

tried=0
for mpi in openmpi mpich mpi; do
	compiler=mpicc.$mpi
	[ $mpi != mpi ] || compiler=mpicc
	[ $mpi != mpi ] || [ $tried = 0 ] || continue
	command -v $compiler >/dev/null || continue
	library=$SLMPM_BUILD/lib/mpi_coll-$mpi.so
	[ -e "$library" ] || fail "$library was left out, and there is $compiler"
	$compiler -std=gnu11 -O1 -Wall -Wextra tests/apps/mpi/check.c -o "$work/check" || fail "check.c by $compiler"
	for ranks in 3 4; do
		run $mpi $ranks "$library" "$work/check" >"$work/out" 2>&1 || fail "$compiler, $ranks ranks: $? $(tail -n 20 "$work/out")"
		grep -q "all is well with $ranks" "$work/out" || fail "$compiler, $ranks ranks: $(cat "$work/out")"
	done
	for call in Barrier Bcast Reduce Allreduce Allgather Alltoall; do
		[ "$(count $call 3)" -gt 500 ] || fail "$compiler, $call: $(cat "$work/out")"
		case $call in Barrier | Bcast) between=4 ;; *) between=0 ;; esac	# not within one communicator
		[ "$(count $call 4)" = $between ] || fail "$compiler, $call passed on: $(cat "$work/out")"
	done
	for call in Ibarrier Ibcast Ireduce Iallreduce Iallgather Ialltoall; do
		[ "$(count $call 3)" -gt 200 ] && [ "$(count $call 4)" = 0 ] || fail "$compiler, $call: $(cat "$work/out")"
	done
	[ "$(count Allreduce 5)" -gt 0 ] || fail "$compiler: operations of the program's own: $(cat "$work/out")"
	if [ $mpi = openmpi ]; then # MPICH 4.0.2 fails by itself at a reduction in place
		MPI_COLL=n run $mpi 2 "$library" "$work/check" >"$work/out" 2>&1 || fail "$compiler, switched off: $(cat "$work/out")"
		[ "$(count Barrier 3)" = 0 ] || fail "$compiler: carried all the same: $(cat "$work/out")"
	fi
	tried=$((tried + 1))
done
[ $tried -gt 0 ] || { echo "no mpicc here"; exit 77; }

# Debian's is of Open MPI.
command -v hpcc >/dev/null && ldd "$(command -v hpcc)" | grep -q libmpi[.]so && [ -e "$SLMPM_BUILD/lib/mpi_coll-openmpi.so" ] || exit 0
sed 's/^1000 .*Ns/200 Ns/' /usr/share/doc/hpcc/examples/_hpccinf.txt >"$work/hpccinf.txt" || exit 1
(cd "$work" && run openmpi 4 "$SLMPM_BUILD/lib/mpi_coll-openmpi.so" hpcc) >"$work/out" 2>&1 || fail "hpcc: $? $(tail -n 20 "$work/out")"
[ "$(count Allreduce 3)" -gt 500 ] || fail "hpcc: $(cat "$work/out")"
grep -qx 'Success=1' "$work/hpccoutf.txt" || fail "hpcc: no success"
! grep -E 'FAILED|[1-9][0-9]* tests completed and failed|^MPIRandomAccess.*_Errors=[1-9]|with error [1-9]' "$work/hpccoutf.txt" || fail "hpcc"
grep -q '[1-9][0-9]* tests completed and passed' "$work/hpccoutf.txt" || fail "hpcc tested nothing"
