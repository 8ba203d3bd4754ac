#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 120
#
# jacobi: the same bits as the serial run's with 1, 2, 4 and 7 accelerators, a tile of one cell too; it ends by the tolerance
# and by the count; its PNG is whole; a killed accelerator is named, and nothing goes on; wrong arguments.
set -u
jacobi=$SLMPM_BUILD/bin/jacobi
[ -e "$jacobi" ] || { echo "jacobi was left out"; exit 77; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

# same WHAT OPTIONS...: equal to the serial run, and its output matches WHAT.
same() {
	local what=$1 out
	shift
	out=$(timeout 60 "$jacobi" --verify "$@") || fail "$*: ended with $?"
	echo "$out"
	grep -q 'result  *equal to the serial run' <<<"$out" || fail "$*: is not compared"
	grep -Eq "$what" <<<"$out" || fail "$*: not $what"
	grep -Eq 'speed  *[0-9.e+]+ cell updates/s' <<<"$out" || fail "$*: no speed"
	grep -Eq 'residual  *[0-9.]+ us under way, [0-9]+ % of it hidden' <<<"$out" || fail "$*: no overlap"
}
for n in 1 2 4 7; do
	same '^  iterations +60,' -n $n -s 203 -i 60
done
same '8 x 8 cells, 4 x 4' -n 16 -s 8 -i 30
same '8 x 8 cells, 2 x 2' -n 4 -s 8 -i 1
same '^  iterations +[0-9]+, residual 0\.0' -n 4 -s 24 -t 0.01
same 'cells, 2 x 1 accel' --accelerators=2 --size=64 --iterations=200 --tolerance=0

# ---- the picture: each chunk of it, by its checksum, and its pixels ----

timeout 60 "$jacobi" -n 3 -s 100 -i 50 --output="$dir/plate.png" || fail "with a picture: $?"
if command -v python3 >/dev/null; then
	python3 - "$dir/plate.png" <<'PY' || fail "not a PNG of 100 x 100 with something on it"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, seen, pixels = 8, [], b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
    at, seen = at + 12 + size, seen + [kind]
    if kind == b"IHDR":
        assert struct.unpack(">IIBB", body[:10]) == (100, 100, 8, 3)
    if kind == b"IDAT":
        pixels += body
rows = zlib.decompress(pixels)
assert seen[0] == b"IHDR" and seen[-1] == b"IEND" and len(rows) == 100 * 101 and len(set(rows)) > 16
PY
else
	head -c 8 "$dir/plate.png" | cmp -s - <(printf '\211PNG\r\n\032\n') || fail "not a PNG"
	tail -c 8 "$dir/plate.png" | cmp -s - <(printf 'IEND\256B`\202') || fail "no end of a PNG"
fi
timeout 60 "$jacobi" -n 1 -s 8 -i 5 -o /dev/full >"$dir/out" 2>"$dir/err" && fail "a full disk is not told"
grep -q '^jacobi: /dev/full: ' "$dir/err" || fail "a full disk: $(cat "$dir/err")"
timeout 60 "$jacobi" -n 1 -s 8 -i 5 >/dev/full 2>"$dir/err" && fail "it does not tell that nothing was written"

# ---- one is killed ----

for at in early first last; do
	timeout 60 "$jacobi" -n 4 -s 128 -i 4000000000 -t 0 >"$dir/out" 2>"$dir/err" &
	timer=$!
	for ((i = 0; i < 200; i++)); do
		host=$(pgrep -P $timer) && read -ra accels < <(pgrep -P "$host" | xargs) &&
			{ [ ${#accels[@]} = 4 ] || [ $at = early ]; } && [ ${#accels[@]} -gt 0 ] && break
		sleep 0.01
	done
	[ ${#accels[@]} -gt 0 ] || fail "there are no accelerators"
	[ $at = early ] || sleep 0.5
	[ $at = last ] && victim=${accels[3]} number=4 || victim=${accels[0]} number=1
	begin=$SECONDS
	kill -KILL "$victim"
	wait $timer
	rc=$?
	[ $rc = 1 ] || fail "one killed: exit status $rc: $(cat "$dir/err")"
	[ $((SECONDS - begin)) -le 10 ] || fail "one killed: it took $((SECONDS - begin)) s"
	grep -q "^jacobi: accelerator $number (pid $victim) was killed by signal 9" "$dir/err" && [ "$(wc -l <"$dir/err")" = 1 ] ||
		fail "not named, or not alone: $(cat "$dir/err")"
	for pid in "${accels[@]}"; do
		! kill -0 "$pid" 2>/dev/null || fail "accelerator $pid goes on"
	done
done

# ---- wrong arguments ----

for bad in "-n 0" "-n 65" "-n x" "-s 7" "-s 16385" "-i 0" "-t -1" "-t x" "-t nan" "-n 61 -s 60" "more" "--nonsense"; do
	# shellcheck disable=SC2086
	timeout 5 "$jacobi" $bad >/dev/null 2>"$dir/err"
	[ $? = 2 ] && [ -s "$dir/err" ] || fail "$bad was accepted"
done
timeout 5 "$jacobi" -o /nosuch/plate.png 2>/dev/null && fail "a file that cannot be"
exit 0
