#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What `make install` leaves: programs of others build against it by pkg-config, as C and as C++, and
# run, DaCS programs by the names that they know; the examples build there; the tools run from there; every call has its
# page; `make uninstall` takes all of it away.
# native-only
# timeout: 240
set -u
cd "$(dirname "$0")/../.." || exit 1
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
root=$SLMPM_BUILD/root prefix=/usr/local libdir=/usr/local/lib64	# `make test` installs there

[ -d "$root" ] || { echo "nothing is installed in $root"; exit 77; }
! grep -rl "$SLMPM_BUILD" "$root$libdir/pkgconfig" "$root$prefix/include" || fail "these name the build's folder"
export PKG_CONFIG_PATH=$root$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export LD_LIBRARY_PATH=$root$libdir
header=$(sed -n 's/^#define SLMPM_VERSION_[A-Z]* //p' include/slmpm.h | paste -sd.)
[ "$(pkg-config --modversion slmpm)" = "$header" ] || fail "version of slmpm.pc"

# build COMPILER FLAGS...: the hello pair and the DaCS pair, whose halves find one another in one folder.
strict="-Wall -Wextra -Wpedantic -Werror"
out=$work/bin
mkdir "$work/examples"
build() {
	local p pc
	rm -rf "$out"; mkdir "$out"
	for p in hello/hello_host hello/hello_accel examples/dacs_dot_host examples/dacs_dot_accel; do
		case $p in *dacs*) pc=dacs ;; *) pc=slmpm ;; esac
		"$@" $strict -o "$out/${p#*/}" "apps/$p.c" $(pkg-config $static --cflags --libs $pc) -lm || fail "$*: $p"
	done
	[ "$("$out/hello_host")" = "hello from the accelerator" ] || fail "$*: hello"
	[ "$("$out/dacs_dot_host")" = "$("$SLMPM_BUILD/bin/dacs_dot_host")" ] || fail "$*: dacs_dot"
}
static=
for cc in gcc clang; do
	command -v $cc >/dev/null && build $cc -std=gnu99
done
ldd "$out/hello_host" | grep -q "$root$libdir/libslmpm.so" || fail "hello is not linked with what was installed"
static=--static
build gcc -static
! ldd "$out/hello_host" >/dev/null 2>&1 || fail "hello is not linked statically"

# DaCS programs' own makefiles know these names.
for name in dacs dacs_hybrid; do
	for static in "" -static; do
		for p in dacs_dot_host dacs_dot_accel; do
			gcc $static -I"$root$prefix/include" "apps/examples/$p.c" -L"$root$libdir" -l$name -lm -o "$out/$p" 2>"$work/log" ||
				fail "$p with $static -l$name: $(cat "$work/log")"
		done
		[ "$("$out/dacs_dot_host")" = "$("$SLMPM_BUILD/bin/dacs_dot_host")" ] || fail "dacs_dot with $static -l$name"
	done
done

# The examples, by their own Makefile, from a folder that one cannot write to.
env -u MAKEFLAGS -u MAKELEVEL make -s -C "$work/examples" -f "$root$prefix/share/doc/slmpm/examples/Makefile" -j2 >"$work/log" 2>&1 ||
	fail "the examples: $(cat "$work/log")"
[ "$("$work/examples/put_get" 3)" = "42445 primes below 512000" ] || fail "the installed put_get"
[ "$("$work/examples/hello_host")" = "hello from the accelerator" ] || fail "the installed hello_host"
[ -z "$(readelf -d "$root$prefix"/bin/* "$root$libdir/libslmpm.so" | grep -E 'R(UN)?PATH')" ] || fail "what is installed looks for libraries elsewhere"

# Every header alone, from where it was installed, twice over; dacs.h serves older compilers. A program of C++ says hello.
strict="$strict -Wshadow -Wconversion"
cat >"$work/hello.cc" <<'END'
#include <slmpm.h>
#include <cstdio>
#include <cstring>

int main(int argc, char **argv)
{
	char accelerator[] = "accelerator", text[8] = "";
	char *words[] = {accelerator, nullptr};
	slmpm_peer peer{};

	if (argc > 1)
		return slmpm_parent(&peer) || slmpm_recv(peer, 1, text, sizeof(text), nullptr, 5000) != 6 ||
		       slmpm_send(peer, 2, text, sizeof(text), 5000);
	if (slmpm_spawn(&peer, argv[0], words, nullptr) || slmpm_send(peer, 1, "hello", 6, 5000) ||
	    slmpm_recv(peer, 2, text, sizeof(text), nullptr, 5000) != 8 || slmpm_join(peer, nullptr, 5000))
		return slmpm_perror("hello");
	std::puts(text);
	return std::strcmp(text, "hello");
}
END
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	for h in "$root$prefix"/include/*.h; do
		h=${h##*/} standards="11 20"
		[ $h != dacs.h ] || standards="98 $standards"
		printf '#include <%s>\n#include <%s>\n' $h $h >"$work/a.cc"
		for std in $standards; do
			$cxx -std=c++$std $strict -fsyntax-only $(pkg-config --cflags slmpm) "$work/a.cc" || fail "$cxx -std=c++$std: $h"
		done
	done
	for static in "" "--static -static"; do
		$cxx -std=c++11 $strict -o "$work/hello" "$work/hello.cc" ${static#--static} $(pkg-config ${static%% *} --cflags --libs slmpm) ||
			fail "$cxx $static: hello.cc"
		[ "$("$work/hello")" = hello ] || fail "$cxx $static: hello"
	done
done

# The tools, and a page for each call and each tool.
[ "$("$root$prefix/bin/slmpm_info" -v)" = "$("$SLMPM_BUILD/bin/slmpm_info" -v)" ] || fail "slmpm_info"
if command -v scdoc >/dev/null; then
	for call in $(nm -D --defined-only "$root$libdir/libslmpm.so" | sed -n 's/.* \(\(slmpm\|dacs\)_[a-z_]*\)@.*/\1/p'); do
		[ -e "$root$prefix/share/man/man3/$call.3" ] || fail "no page of $call"
	done
	for tool in "$root$prefix"/bin/*; do
		[ -e "$root$prefix/share/man/man1/${tool##*/}.1" ] || fail "no page of ${tool##*/}"
	done
fi

# Nothing of it is left behind, and nothing else goes.
cp -a "$root" "$work/root" && touch "$work/root$libdir/libother.so" || fail "no copy of $root"
env -u MAKEFLAGS -u MAKELEVEL make BUILD="$work/none" DESTDIR="$work/root" PREFIX=$prefix LIBDIR=$libdir uninstall >"$work/log" 2>&1 ||
	fail "make uninstall: $(cat "$work/log")"
[ "$(cd "$work/root" && find . ! -type d)" = ".$libdir/libother.so" ] || fail "make uninstall leaves or takes: $(find "$work/root" ! -type d)"
left=$(cd "$work/root" && find . -mindepth 1 -type d | sort | xargs)
[ "$left" = "./usr ./usr/local .$libdir" ] || fail "make uninstall leaves folders or takes some: $left"
