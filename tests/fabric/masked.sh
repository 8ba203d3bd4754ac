#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tools over a fabric without one-sided operations, in a library that has it built in: slmpm_info names
# the path and the reason, and slmpm_perftest measures, having verified what it moves.
# native-only
# timeout: 240
here=$SLMPM_BUILD/masked
fail() { echo "$*"; exit 1; }
[ -z "${SLMPM_SAN:-}" ] || { echo "the tools are not built with sanitizers alone"; exit 77; }
unset SLMPM_LINKS

mkdir -p "$here" || exit 1
objects=$(find "$SLMPM_BUILD/obj/shm" "$SLMPM_BUILD/obj/slmpm" "$SLMPM_BUILD/obj/fabrics" -name '*.o' ! -name registry.o)
echo '#include "tests/fabric/masked.h"' >"$here/masked.c"
"${CC:-gcc}" -std=gnu11 -fPIC -I. -Iinclude -c "$here/masked.c" -o "$here/masked.o" || fail "masked.h"
"${CC:-gcc}" -shared -Wl,-soname,libslmpm.so.0 -Wl,--version-script,"$SLMPM_BUILD/gen/libslmpm.map" \
	"$here/masked.o" $objects "$SLMPM_BUILD/obj/git_id.o" -luring -pthread -ldl -o "$here/libslmpm.so.0" || fail "the library"
export LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SLMPM_FABRIC=sendonly

"$SLMPM_BUILD/bin/slmpm_info" -d | grep '^fabric sendonly: available' || fail "no such fabric"
out=$here/out
"$SLMPM_BUILD/bin/slmpm_info" --protocols >"$out" 2>&1 || { cat "$out"; fail "--protocols"; }
grep -Eq '^ +8  smt, [a-z]+ +request, only +request, only$' "$out" && grep -q "^the other's memory: am$" "$out" ||
	{ cat "$out"; fail "--protocols does not say am"; }
for test in put_lat get_lat put_bw get_bw; do
	"$SLMPM_BUILD/bin/slmpm_perftest" --fabric sendonly -t $test -s 8:64k:8 -n 20 --samples 1 --wait block >"$out" 2>&1 ||
		{ cat "$out"; fail "slmpm_perftest -t $test"; }
done
SLMPM_FABRIC=noread "$SLMPM_BUILD/bin/slmpm_info" --protocols >"$out" 2>&1 || { cat "$out"; fail "--protocols of noread"; }
grep -Eq '^ +8  smt, [a-z]+ +put, [a-z]+ +request, only$' "$out" || { cat "$out"; fail "noread: gets"; }
