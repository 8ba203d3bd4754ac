#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# On a machine that lacks something each goal of the Makefile either installs it before anything is compiled, or stops
# and says which goal would; and what users give in CPPFLAGS, CFLAGS, LDFLAGS, LDLIBS is added to what is needed.
# has-time
# native-only
# timeout: 600
set -u
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL CPPFLAGS CFLAGS LDFLAGS LDLIBS CC CROSS
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
log=$work/log out=$work/out
fail() { echo "$*" >&2; tail -n 20 "$out" >&2; exit 1; }

# A machine on which nothing is installed, and where nothing can be: what is asked for is noted.
bare=$work/bare
mkdir "$bare" "$work/b"
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$bare/$1"; chmod +x "$bare/$1"; }
stub dpkg-query 'exit 1'
stub apt-get "case \"\$*\" in *' install '*) echo apt \"\$@\" >>'$log'; [ -e '$work/works' ] ;; esac"
stub sudo 'exec "$@"'
stub no-cc "echo cc >>'$log'; exit 1"
on_bare() { : >"$log"; PATH=$bare:$PATH make BUILD="$work/b" "$@" >"$out" 2>&1; }

goals=$(sed -n '/^\.PHONY:/,/[^\\]$/p' Makefile | sed 's/^\.PHONY://; s/\$(addprefix lint-,\([a-z ]*\))/\1/; s/\\$//' | xargs)
for word in arrows format columns names headers gcc clang hot floors; do goals=${goals/ $word / lint-$word }; done
[ "$(wc -w <<<"$goals")" -gt 25 ] || fail "the Makefile's goals are not understood: $goals"
for goal in $goals; do
	case $goal in help | clean | FORCE | uninstall) continue ;; esac
	on_bare CC=not-there $goal && fail "make $goal: all is well on a bare machine"
	if [ -s "$log" ]; then
		grep -q '^  APT  ' "$out" || fail "make $goal installs and does not say so"
		[ ! -d "$work/b/obj" ] || fail "make $goal compiles before it installs"
		case $goal in deps-man | man) continue ;; esac
		[[ $goal == deps-cross ]] || grep -q ' gcc' "$log" || fail "make $goal does not install a compiler"
	elif [[ $goal == *cross* ]]; then
		grep -q 'CROSS is ' "$out" || fail "make $goal: does not ask for CROSS"
	else
		grep -q '"make deps-[a-z]*" installs' "$out" || fail "make $goal: neither installs nor says what would"
	fi
	rm -rf "$work/b"
done
on_bare CROSS=s390x-linux-gnu lib && fail "make CROSS=s390x-linux-gnu: all is well on a bare machine"
grep -q ' gcc-s390x-linux-gnu' "$log" || fail "make CROSS=s390x-linux-gnu does not install its compiler"
on_bare help || fail "make help: $?"
on_bare clean || fail "make clean: $?"

# In one call, with as many jobs as one likes, nothing is compiled before all is installed.
touch "$work/works"
on_bare -j8 CC=no-cc deps-test all && fail "a compiler that fails"
[ "$(head -c 3 "$log")" = apt ] && grep -q '^cc' "$log" || fail "make deps-test all: $(uniq -c "$log")"
! sed -n '/^cc/,$p' "$log" | grep -q '^apt' || fail "make deps-test all installs beside compiling"

# A header that is not there is told by its package.
on_bare CPPFLAGS=-nostdinc lib && fail "without any header"
grep -q 'not here:.* libc6-dev liburing-dev; "make deps-build"' "$out" || fail "without any header: why not?"

# Who is not root, and has no sudo or may not use it, is told what to install.
mkdir "$work/path" "$work/user"
for folder in ${PATH//:/ }; do ln -s "$folder"/* "$work/path" 2>/dev/null; done
rm -f "$work/path/sudo" "$work/works" "$bare/sudo"
stub id 'echo 1000'
for sudo in none refuses; do
	[ $sudo = none ] || stub sudo 'echo "sudo: not you" >&2; exit 1'
	for goal in demo test man lint bench abi deps "CROSS=s390x-linux-gnu lib"; do
		case $goal in man) package=scdoc ;; CROSS*) package=gcc-s390x-linux-gnu ;; *) package=libc6-dev ;; esac
		: >"$log"
		PATH=$bare:$work/path make BUILD="$work/b" CC=not-there $goal >"$out" 2>&1 && fail "make $goal, sudo $sudo: all is well"
		grep -q "as root: apt-get install.* $package" "$out" || fail "make $goal, sudo $sudo: does not say what to install"
		[[ $goal == CROSS* ]] || tail -n 1 "$out" | grep -q "as root: apt-get install.* $package" ||
			fail "make $goal, sudo $sudo: does not end with what to install"
		[ $sudo = refuses ] || ! grep -q sudo "$out" || fail "make $goal: asks for sudo where there is none"
		[ ! -s "$log" ] || fail "make $goal, sudo $sudo: goes on"
	done
done

# No man pages, no installation.
rm -f "$work/path/scdoc"
PATH=$work/path make BUILD="$work/b" "$work/b/man/dacs.7" >"$out" 2>&1 && fail "a man page without scdoc"
grep -q '"make deps-man" installs it' "$out" || fail "a man page without scdoc: why not?"
make -n BUILD="$work/b" DESTDIR="$work/root" install >"$out" 2>&1 || fail "make -n install: $?"
grep -q 'scdoc <doc/man/slmpm.7.scd' "$out" || fail "make install leaves the man pages out"

# Ours and the user's, in each line they belong to; and it does compile.
fail() { echo "$*" >&2; exit 1; }
users=(CPPFLAGS=-DUSERS_CPP CFLAGS=-DUSERS_C LDFLAGS=-Wl,--as-needed LDLIBS=-lm)
make -n BUILD="$work/n" V=1 "${users[@]}" lib test-programs "$work/n/bin/slmpm_info" >"$out" 2>&1 || fail "make -n with the user's flags: $?"
sed -n '/^[a-z0-9-]*gcc .* -o /p' "$out" | grep -v ' -r ' >"$work/lines"
added() { # added compiling|linking WORD...: they are in each such line
	local word kind=()
	[ $1 = compiling ] || kind=(-v)
	grep "${kind[@]}" -e ' -c ' "$work/lines" >"$out"
	[ "$(wc -l <"$out")" -gt 3 ] || fail "no lines of $1"
	for word in "${@:2}"; do
		grep -v -e " $word " "$out" | head -n 1 | grep . >&2 && fail "$1 without $word"
	done
}
added compiling -D_GNU_SOURCE= -Iinclude -DUSERS_CPP -fvisibility=hidden -DUSERS_C
added linking -pthread -DUSERS_C -Wl,--as-needed -lm
make BUILD="$work/b" "${users[@]}" "$work/b/obj/slmpm/base/error.o" >"$out" 2>&1 || fail "with the user's flags it does not compile: $(cat "$out")"
