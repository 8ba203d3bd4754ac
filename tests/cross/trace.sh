#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 60
#
# The heads of all packets of a scripted exchange (tests/api/trace_script.c), every opcode of slmpm/base/wire.h among them, against
# doc/wire_dump.txt: the same on any machine. The order within a link's direction counts; which of both was first does
# not. GOLDEN=write makes the file again.
set -u
golden=$(dirname "$0")/../../doc/wire_dump.txt
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

# part NAME SETTINGS...: what the script's part NAME leaves under these settings, without the times.
part() {
	local name=$1 trace=$dir/trace
	shift
	echo "## $name ${*:2}"
	env SLMPM_TRACE="$trace" SLMPM_PACKET_MAX=256 SLMPM_EAGER_MAX=1k SLMPM_EAGER_CREDIT=64k SLMPM_MONITOR_MS=0 "${@:2}" \
		$SLMPM_EMULATOR "$SLMPM_BUILD/tests/api/trace_script" "$1" >"$dir/said" 2>&1 || fail "$name: $(cat "$dir/said")"
	$SLMPM_EMULATOR "$SLMPM_BUILD/bin/slmpm_perftest" --dump "$trace" >"$dir/text" || fail "$name: no dump"
	# A foreign machine's file is read by this one's program as well.
	"${SLMPM_NATIVE:-$SLMPM_BUILD}/bin/slmpm_perftest" --dump "$trace" | cmp - "$dir/text" || fail "$name: dumps differ"
	sed -E -e /^#/d -e 's/^ *[0-9.]* //' -e 's/ process [0-9]+/ process P/' "$dir/text" | sort -s -k1,2
}

{
	part messages messages SLMPM_ATTACH=n
	part checked checked SLMPM_ATTACH=n SLMPM_CHECK=1
	part addressed checked SLMPM_ATTACH=n SLMPM_HEADER=address
	part mapped one-sided SLMPM_ATTACH=n
	for way in ring am tag; do
		part "$way" one-sided SLMPM_ATTACH=n SLMPM_RMA=$way
	done
	part fifo fifo SLMPM_ATTACH=n
	part receive-queue receive-queue SLMPM_ATTACH=n
	part shared shared SLMPM_ATTACH=n SLMPM_SHARE=always SLMPM_SHARE_MIN=32k SLMPM_WAIT=spin
	part copied copied SLMPM_FABRIC=tcp
	part mirrored mirrored SLMPM_PACKET_MAX=4k
	part fetched fetched SLMPM_ATTACH=y SLMPM_FETCH=always SLMPM_FETCH_MIN=64k
	part fetched fetched-or-not SLMPM_ATTACH=y SLMPM_FETCH=always SLMPM_FETCH_MIN=4k SLMPM_EAGER_MAX=32k SLMPM_PACKET_MAX=4k SLMPM_WAIT=spin
	# Who copies what is another thing each time: only that it is said.
	part both both SLMPM_ATTACH=y SLMPM_FETCH=always SLMPM_SHARE=always SLMPM_WAIT=spin SLMPM_PACKET_MAX=8k |
		awk '/^##/ { print } { said[$4] = "- - " $3 " " $4 }
			END { print said["FETCH_GIVE"]; print said["SHARE_TAKE"] }' | grep .
	part echo echo SLMPM_MONITOR_MS=20 | awk '/^##/ { print } / ECHO/ && !said[$4]++ { print "- - " $3 " " $4 }' | sort
	part aggregate aggregate SLMPM_MONITOR_MS=5 | awk '/^##/ { print } / AGGREGATE/ && !said[$4]++ { print "- - " $3 " " $4 }'
} >"$dir/dump" || exit 1
[ "${GOLDEN:-}" != write ] || cp "$dir/dump" "$golden"
# An enumerator and its number may stand on two lines.
sed -n '/^enum wire_opcode/,/WIRE_OPCODES/p' slmpm/base/wire.h | tr '\t\n' '  ' |
	grep -oE 'WIRE_[A-Z_]+ = *[0-9]+,' | sed -E 's/WIRE_([A-Z_]+) = *([0-9]+),/\2 \1/' |
while read -r number name; do
	[ "$number" -lt 250 ] || continue # between bonds
	awk '!/^#/ { print $3, $4 }' "$golden" | grep -qx "$number $name" || fail "no $name ($number) in $golden"
done || exit 1
cp "$golden" "$dir/golden"
leave_out() { sed -i -E "$1" "$dir/dump" "$dir/golden"; echo "without $2"; }
# Where no process may reach into another long messages go in packets.
grep -q ' FETCH_DONE ' "$dir/dump" || leave_out '/^## fetched/,/^## both/d; / FETCH/d' "fetched messages"
# Where the processors are crowded nobody looks in time.
[ "$(grep -c '^- -' "$dir/dump")" = "$(grep -c '^- -' "$dir/golden")" ] || leave_out '/^- -/d' "what both sides copy"
diff "$dir/golden" "$dir/dump" || fail "< what it was, > what it is"
echo "$(grep -c '^[0-9]' "$dir/golden") packets, $(awk '/^[0-9]/ { print $3 }' "$dir/golden" | sort -u | wc -l) opcodes"
