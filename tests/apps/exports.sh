#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The archive and the shared object export what the headers declare and nothing else; a program may use any other name
# of the library's inside for something of its own, and static programs pay little for that.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1
lib=$SLMPM_BUILD/lib inner=$SLMPM_BUILD/obj/inner.a
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
same() { diff "$work/declared" "$2" >&2 || fail "$1 exports something else than the headers declare (<)"; }

for h in include/*.h; do echo "#include <${h##*/}>"; done | gcc -E -P -Iinclude - | tr '\n' ' ' | tr ';' '\n' |
	sed -n 's/.*visibility("default")))[^(]*[ *]\([a-z0-9_]*\) *(.*/\1/p' | sort >"$work/declared"
[ "$(wc -l <"$work/declared")" = "$(cat include/*.h | grep -cE '^(SLMPM|DACS)_API ')" ] || fail "the headers' declarations are not understood"
nm -g --defined-only "$lib/libslmpm.a" | sed -n 's/.* [A-Z] //p' | sort >"$work/archive"
same "the archive" "$work/archive"
nm -D --defined-only "$lib/libslmpm.so" | sed -n 's/.* [^A] \([^@]*\).*/\1/p' | sort >"$work/shared"
same "the shared object" "$work/shared"
nm -D --defined-only "$lib/libslmpm.so" | grep -v ' A ' | grep -v '@@SLMPM_[0-9.]*$' && fail "a name without a version"

# A program with a function of its own for every name of the inside: none of them is called, or collides.
nm -g --defined-only "$inner" 2>/dev/null | sed -n 's/.* [A-Z] //p' | sort -u | comm -23 - "$work/declared" >"$work/inside"
grep -qx siphash "$work/inside" && [ "$(wc -l <"$work/inside")" -gt 900 ] || fail "the inside is not understood"
sed 's/.*/void &(void) { __builtin_trap(); }/' "$work/inside" >"$work/own.c"
gcc -w -fno-builtin -c "$work/own.c" -o "$work/own.o" || fail "own.c"
libs=$(sed -n 's/^Libs.private: //p' "$SLMPM_BUILD/root/usr/local/lib64/pkgconfig/slmpm.pc" 2>/dev/null)
libs=${libs:--pthread -luring}
for p in hello_host hello_accel; do
	gcc -Iinclude "apps/hello/$p.c" "$work/own.o" -static "$lib/libslmpm.a" $libs -o "$work/$p" 2>"$work/log" || fail "$p: $(cat "$work/log")"
done
for fabric in shm tcp; do
	[ "$(SLMPM_FABRIC=$fabric "$work/hello_host")" = "hello from the accelerator" ] || fail "with its own functions, static, over $fabric"
done
for p in hello_host hello_accel; do
	gcc -Iinclude "apps/hello/$p.c" "$work/own.o" -rdynamic -L"$lib" -lslmpm -Wl,-rpath,"$lib" -o "$work/$p" || fail "$p, shared"
done
for fabric in shm tcp; do
	[ "$(SLMPM_FABRIC=$fabric "$work/hello_host")" = "hello from the accelerator" ] || fail "with its own functions, shared, over $fabric"
done

# What that costs a static program.
total() { size "$1" | awk 'NR == 2 { print $1 + $2 }'; }
for how in libslmpm inner; do
	archive=$lib/libslmpm.a
	[ $how = libslmpm ] || archive=$inner
	gcc -Iinclude apps/hello/hello_host.c -static "$archive" $libs -o "$work/$how" 2>/dev/null || fail "hello with $how"
done
echo "a static hello: $(total "$work/libslmpm") bytes, with the parts it needs alone $(total "$work/inner")"
[ $(($(total "$work/libslmpm") * 100)) -le $(($(total "$work/inner") * 110)) ] || fail "more than a tenth beyond what it needs"
