#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The storage controller and its hosts: copies of odd sizes, drives, geometries, every refusal by name,
# errors of the medium, the controller or the host killed in the middle.
# waits
# timeout: 120
set -u
. "$(dirname "$0")/../lib/terminal.sh"
bin=$SLMPM_BUILD/bin
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir/err" >&2; exit 1; }
cd "$dir" || exit 1
: >err

children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
await() { # await COMMAND...: until it is true
	local tries=0
	until "$@"; do
		[ $((tries += 1)) -lt 400 ] || return 1
		read -r -t 0.02 _ <><(:)
	done
	return 0
}

# ---- copies ----

copies() { # copies SIZE OPTIONS...
	local size=$1
	shift
	rm -f to
	head -c "$size" /dev/urandom >from
	"$bin/disk_copy" "$@" from to 2>err || fail "$size bytes, $*: exit status $?"
	cmp from to || fail "$size bytes, $*: the copy differs"
}
for size in 0 1 511 512 513 100001 1048577; do
	copies "$size"
	copies "$size" --plain -b 512 -w 3
done
copies 5000001 -b 1m -w 64
grep -q '5000001 bytes in .*/s' err || fail "no throughput"
copies 3000001 -q -b 64k -g 100:10:70:1024
[ -s err ] && fail "-q is not quiet"
copies 3000001 --foreign
copies 700000 --sync
SLMPM_RMA=ring copies 1000001
SLMPM_RMA=am copies 1000001

head -c 9000 /dev/urandom >to # longer than what comes, and already there
head -c 1000 from >short
"$bin/disk_copy" short to 2>err || fail "over a longer file: $?"
cmp short to || fail "over a longer file: the copy differs"

rm -f to
"$bin/disk_copy" --beside-dd from to 2>err || fail "--beside-dd: $?"
grep -Eq '^(dd|a plain loop).* times as fast' err || fail "--beside-dd: no dd"
[ "$(echo to*)" = to ] || fail "--beside-dd leaves a file"
PATH= "$bin/disk_copy" --beside-dd from to 2>err || fail "without dd: $?"
grep -q '^a plain loop (there is no dd)' err || fail "without dd: what then?"

# On a terminal there is a bar, and nothing of it is left at the end.
if [ -n "$has_terminal" ]; then
	truncate -s 96M big
	script -qec "'$bin/disk_copy' -b 4k -w 2 big to" typescript >/dev/null || fail "on a terminal: $?"
	grep -q '\[#.*%' typescript || fail "no bar on a terminal"
	rm -f big
	# Sectors are no text.
	script -qec "'$bin/disk_ask' -d from read 0 0:0:0 1" typescript </dev/null >/dev/null && fail "sectors on a terminal"
	grep -q 'no text for a terminal' typescript || fail "sectors on a terminal: why not?"
fi

# A block device, where this machine lends one.
if truncate -s 1M device.img && loop=$(losetup -f --show device.img 2>/dev/null); then
	head -c 1M /dev/urandom >from
	"$bin/disk_copy" from "$loop" 2>err || { losetup -d "$loop"; fail "to a block device: $?"; }
	"$bin/disk_copy" --sync "$loop" to 2>err || { losetup -d "$loop"; fail "from a block device: $?"; }
	head -c 1048577 /dev/urandom >larger
	"$bin/disk_copy" larger "$loop" 2>err && { losetup -d "$loop"; fail "more than a block device holds"; }
	losetup -d "$loop"
	grep -q 'the device is too small' err || fail "a small block device: why?"
	cmp from to || fail "through a block device: the copy differs"
fi

# ---- one request: operation, drive, cylinder, surface, sector, number of sectors ----

ask() { "$bin/disk_ask" "$@" 2>err; }
head -c 100000 /dev/urandom >zero
head -c 3000000 /dev/urandom >one
ask -d zero -d one -g 6:20:50:512 identify 1 >out || fail "identify: $?"
grep -q '^drive 1 of 2: 6 cylinders, 20 surfaces, 50 sectors a track, 512 bytes a sector; 3000000 bytes$' out ||
	fail "identify: $(cat out)"
at() { tail -c +$((512 * $2 + 1)) "$1" | head -c $((512 * $3)); } # at FILE SECTOR COUNT
ask -d zero -d one -g 6:20:50:512 read 1 2:3:4 77 >out || fail "read: $?"
cmp out <(at one $(((2 * 20 + 3) * 50 + 4)) 77) || fail "read: other sectors"
ask -d zero -d one -g 6:20:50:512 read 0 0:0:62 2 >out || fail "read across tracks: $?"
cmp out <(at zero 62 2) || fail "read across tracks: other sectors"
ask -d zero read 0 0:3:6 1 >out || fail "the last, partial sector: $?"
cmp out <(at zero 195 1; head -c $((196 * 512 - 100000)) /dev/zero) || fail "the last sector is not filled with zeros"

cp one want
head -c 5120 /dev/urandom >data
dd if=data of=want bs=512 seek=$(((5 * 20 + 9) * 50 + 40)) conv=notrunc status=none
ask -d zero -d one -g 6:20:50:512 write 1 5:9:40 10 <data || fail "write: $?"
cmp one want || fail "write: other sectors have changed"
ask -d zero write 0 0:3:6 1 < <(head -c 512 data) || fail "write of the partial sector: $?"
[ "$(stat -c %s zero)" = 100000 ] || fail "a drive has grown"
cmp <(tail -c 160 zero) <(head -c 160 data) || fail "write of the partial sector"
ask -d zero sync 0 || fail "sync: $?"

# ---- refusals, each by its name ----

refused() { # refused WHAT ARGUMENTS...
	local what=$1
	shift
	ask "$@" >out <data
	[ $? = 1 ] || fail "$*: exit status is not 1"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line"
	grep -q -- "$what" err || fail "$*: does not say \"$what\""
	[ -s out ] && fail "$*: data all the same"
}
cp zero kept
truncate -s 40M large
refused "no such drive" -d zero -d one read 2 0:0:0 1
refused "no such drive" -d zero write 1 0:0:0 10
refused "no such drive" -d zero identify 7
refused "no such drive" -d zero sync 4294967295
refused "outside of the drive's geometry" -d zero read 0 1:0:0 1
refused "outside of the drive's geometry" -d zero read 0 0:16:0 1
refused "outside of the drive's geometry" -d zero read 0 0:0:63 1
refused "outside of the drive's geometry" -d zero read 0 0:15:62 2
refused "outside of the drive's geometry" -d zero read 0 0:0:0 4294967295
refused "outside of the drive's geometry" -d zero write 0 0:0:63 10
refused "ends before that sector" -d zero read 0 0:3:7 1
refused "ends before that sector" -d zero read 0 0:3:0 20
refused "ends before that sector" -d zero -g 100:16:63:512 write 0 50:0:0 10
refused "more sectors than one request" -d large read 0 0:0:0 2049
refused "no sectors" -d zero read 0 0:0:0 0
refused "the drive is read-only" -d zero -r write 0 0:0:0 10
refused "not as many bytes" -d zero write 0 0:0:0 9
refused "not as many bytes" -d zero write 0 0:0:0 11
refused "under that key: invalid" -d zero --address 1048065 read 0 0:0:0 1
refused "under that key: invalid" -d zero --address 18446744073709551615 read 0 0:0:0 1
refused "under that key: invalid" -d zero --foreign --address 1048065 read 0 0:0:0 1
refused "under that key: permission denied" -d zero --spoil-key read 0 0:0:0 1
refused "under that key: permission denied" -d zero --foreign --spoil-key read 0 0:0:0 1
SLMPM_RMA=ring refused "under that key: permission denied" -d zero --spoil-key read 0 0:0:0 1
SLMPM_RMA=ring refused "under that key: invalid" -d zero --address 1048065 read 0 0:0:0 1
cmp zero kept || fail "a refused write has written"

# A drive that cannot be one; the controller says why, before it serves anybody.
no_drive() { # no_drive STATUS WHAT ARGUMENTS...
	local status=$1 what=$2
	shift 2
	"$bin/disk_controller" "$@" >out 2>err
	[ $? = "$status" ] || fail "$*: exit status is not $status"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line"
	grep -q -- "$what" err || fail "$*: does not say \"$what\""
}
no_drive 2 "begin at 1" --list -d zero -g 0:16:63:512
no_drive 2 "a sector has 512" --list -d zero -g 10:16:63:500
no_drive 2 "more bytes than a file" --list -d zero -g 4294967295:4294967295:4294967295:65536
no_drive 2 "four numbers" --list -d zero -g 10:16:63
no_drive 2 "four numbers" --list -d zero -g 10:-1:63:512
no_drive 2 "name one with -d" --list -g 10:16:63:512
no_drive 2 "name one with -d" --list
no_drive 2 "named with -d" --list zero
no_drive 1 "some would be out of reach" --list -d zero -g 1:1:195:512
no_drive 1 "No such file" --list -d nowhere
no_drive 1 "neither a file" --list -d /dev/zero
no_drive 1 "Is a directory" --list -d .
no_drive 1 "started by a host" -d zero
"$bin/disk_controller" --list -d zero -d one -r >out 2>err || fail "--list: $?"
grep -q '^ *1 .* 3000000  one (read-only)$' out || fail "--list: $(cat out)"
"$bin/disk_copy" -g 1:1:2:512 from to 2>err && fail "a geometry that is too small for the copy"
grep -q "out of reach" err || fail "a geometry that is too small: why?"

wrong() { # wrong WHAT ARGUMENTS...: of disk_copy
	local what=$1
	shift
	"$bin/disk_copy" "$@" >out 2>err
	[ $? = 2 ] || fail "disk_copy $*: exit status is not 2"
	grep -q -- "$what" err || fail "disk_copy $*: does not say \"$what\""
}
wrong "FROM and TO" from
wrong "one too many" from to again
wrong "whole sectors" -b 1000 from to
wrong "whole sectors" -b 2m from to
wrong "from 1 to 64" -w 65 from to
for program in disk_copy disk_controller disk_ask; do
	"$bin/$program" --help >out 2>err || fail "$program --help: $?"
	grep -q 'Exit status' out || fail "$program --help tells no exit status"
done
cp from same
ln same again
for to in from again; do
	cp from "keep"
	"$bin/disk_copy" "$([ $to = from ] && echo from || echo same)" "$to" 2>err && fail "copied onto itself"
	grep -q 'the same file' err || fail "onto itself: why?"
done
cmp from keep || fail "onto itself: the file has changed"
"$bin/disk_copy" nowhere to 2>err && fail "copied nothing"
"$bin/disk_copy" from nowhere/to 2>err && fail "copied to nowhere"
[ "$(grep -c . err)" -le 3 ] || fail "to nowhere: too many words"

# ---- the medium fails ----

# A limit on file sizes stands in for a medium that has an end.
head -c 12M /dev/urandom >big
head -c 12M /dev/zero >to
(
	ulimit -f 10240
	"$bin/disk_copy" -b 64k -w 4 big to 2>err
	[ $? = 1 ]
) || fail "over the limit: exit status is not 1"
grep -q 'to, byte .*: input/output error: File too large' err || fail "over the limit: why?"
first=$(sed -n 's/.*to is not complete: its first \([0-9]*\) of 12582912 bytes are there/\1/p' err)
[ "${first:-0}" -gt 0 ] && cmp -n "$first" big to || fail "over the limit: how much of it is there?"
rm -f to

# ---- somebody is killed ----

slow=(-b 512 -w 1)
truncate -s 512M big
# Its length is set at once; a block of its own means that the controller is at work.
running() { [ "$(stat -c %b to 2>/dev/null || echo 0)" -gt 0 ] && [ -n "$(children "$copy")" ]; }
begin() {
	rm -f to
	"$bin/disk_copy" "${slow[@]}" big to 2>err &
	copy=$!
	await running || fail "no copy begins"
	controller=$(children "$copy")
	controller=${controller%% *}
}
begin
kill -KILL "$controller" || fail "no controller to kill"
wait "$copy"
[ $? = 1 ] || fail "controller killed: exit status is not 1"
grep -q 'the controller is lost: peer died' err || fail "controller killed: no clear message"
grep -q 'to is not complete' err || fail "controller killed: is it complete?"

begin
kill -KILL "$copy"
wait "$copy" 2>/dev/null
gone() { ! kill -0 "$controller" 2>/dev/null; }
await gone || fail "the controller outlives its host"

# The file ends while it is read.
begin
: >big
wait "$copy"
[ $? = 1 ] || fail "file cut off: exit status is not 1"
grep -q 'big, byte .*ends before that sector' err || fail "file cut off: why?"
end_of_terminal
