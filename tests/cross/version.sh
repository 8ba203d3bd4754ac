#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# This version of the library and an earlier one: they understand each other, or one refuses the other by version, with
# a text. And one of the future, whose wire version is another: refused. SLMPM_TEST_PREVIOUS names the earlier commits
# (the one before this).
# native-only
# timeout: 200
set -u
here=$SLMPM_BUILD/version
fail() { echo "$*" >&2; exit 1; }
skip() { echo "$*"; exit 77; }
unset MAKEFLAGS MAKELEVEL SLMPM_SAN WERROR

command -v git >/dev/null || skip "no git"
git rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "not in a repository: no earlier version to meet"
mkdir -p "$here" || exit 1

# keep_same COMMIT: objects of what has not changed since are taken over, unless the Makefile has; sets $kept, for make
keep_same() {
	kept=()
	cmp -s Makefile "$folder/Makefile" || return
	kept=(-o build/gen/flags)
	mkdir -p "$folder/build/obj" && cp -pr "$SLMPM_BUILD/gen" "$folder/build" &&
		cp -pr "$SLMPM_BUILD"/obj/{fabrics,shm,slmpm} "$folder/build/obj" || fail "no copies of objects"
	rm -f "$folder/build/gen/git_id.c"
	find "$folder" -name build -prune -o -type f -exec touch -d 2000-01-01 {} +
	git diff --name-only "$1" -- fabrics include shm slmpm | (cd "$folder" && xargs -r touch -c)
}

# build_at COMMIT: the library of then, once; sets $folder
build_at() {
	local sha
	sha=$(git rev-parse -q --verify "$1^{commit}") || skip "no commit $1 here: the history is cut off"
	folder=$here/$sha
	[ -e "$folder/done" ] && return
	rm -rf "$folder" && mkdir -p "$folder" && git archive "$sha" | tar -x -C "$folder" || fail "$1: cannot be unpacked"
	keep_same "$sha"
	make -C "$folder" BUILD=build OPT=-O0 "${kept[@]}" build/lib/libslmpm.a >"$folder/log" 2>&1 ||
		{ cat "$folder/log"; fail "$1: cannot be built"; }
	build_peer "$folder/include" "$folder/old" "$folder/build/lib/libslmpm.a"
	touch "$folder/done"
}

# build_future: this library, but for its wire version; sets $folder
build_future() {
	local said
	folder=$here/future
	rm -rf "$folder" && mkdir -p "$folder/slmpm/base" || exit 1
	sed 's/^#define WIRE_MAJOR .*/#define WIRE_MAJOR 77/' slmpm/base/wire.h >"$folder/slmpm/base/wire.h"
	grep -q 'WIRE_MAJOR 77' "$folder/slmpm/base/wire.h" || fail "wire.h: no WIRE_MAJOR"
	for said in $(grep -lw WIRE_MAJOR slmpm/*.c slmpm/*/*.c); do
		${CC:-gcc} -std=gnu11 -D_GNU_SOURCE= -I"$folder" -I. -Iinclude -I"$SLMPM_BUILD/gen" \
			-c "$said" -o "$folder/$(basename "$said").o" || fail "$said: cannot be built"
	done
	build_peer include "$folder/old" "$folder"/*.o "$SLMPM_BUILD/obj/inner.a"
}

# build_peer INCLUDE PROGRAM LIBRARY...
build_peer() {
	${CC:-gcc} -std=gnu11 -I"$1" tests/cross/version_peer.c "${@:3}" -pthread -luring -o "$2" || fail "$2: cannot be built"
}

# verdict WHAT STATUS LOG: it worked, or it was the version
verdict() {
	case $2 in
	0) [ -z "$other" ] || fail "$1: understood, and should not have been"
	   echo "$1: understood" ;;
	3) grep -qi version "$3" || { cat "$3"; fail "$1: refused, but not for its version"; }
	   echo "$1: refused: $(cat "$3")" ;;
	*) cat "$3"; fail "$1: exit status $2" ;;
	esac
}

# meet NAME LISTENER CONNECTOR: two processes that are no relatives
meet() {
	local url=shm:version-$$-$1 rc pid line=
	coproc far { exec "$2" listen "$url" 2>&1; }
	pid=$far_PID
	until [ "$line" = listening ]; do # an earlier one may first complain of settings that it does not know
		read -r -t 20 line <&"${far[0]}" || fail "$1: nobody listens"
	done
	"$3" connect "$url" >"$here/log-$1" 2>&1
	rc=$?
	verdict "$1, unrelated" $rc "$here/log-$1"
	if [ $rc = 0 ]; then
		wait "$pid" || fail "$1: the listener ended with $?"
	else
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	fi
}

# start NAME HOST ACCELERATOR
start() {
	"$2" spawn "$3" >"$here/log-$1" 2>&1
	verdict "$1, started" $? "$here/log-$1"
}

# both_ways NAME OTHER: as listener and connector, as host and accelerator
both_ways() {
	meet "$1-new" "$2" "$here/new"
	meet "new-$1" "$here/new" "$2"
	start "$1-new" "$2" "$here/new"
	start "new-$1" "$here/new" "$2"
}

build_peer include "$here/new" "$SLMPM_BUILD/lib/libslmpm.a"
other=
for earlier in ${SLMPM_TEST_PREVIOUS:-HEAD~1}; do
	build_at "$earlier"
	both_ways old "$folder/old"
done
other=yes
build_future
both_ways future "$folder/old"
