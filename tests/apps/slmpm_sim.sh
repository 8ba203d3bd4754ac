#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# native-only
# timeout: 180
#
# slmpm_sim: within 1 % of what a formula says where no two messages meet, exactly that of their sharing where they do;
# every algorithm ends over every network; as many nodes as it is made for, in the time and memory that they may take.
set -u
sim=$SLMPM_BUILD/bin/slmpm_sim
[ -e "$sim" ] || { echo "slmpm_sim was left out"; exit 77; }
fail() { echo "$*" >&2; exit 1; }
run() { ${SLMPM_EMULATOR:-} "$sim" "$@"; }
# field NAME: of the JSON on standard input; found NAME JSON: the same, a number, as $number.
field() { sed -E 's/.*"'"$1"'":(-?[0-9.e+]+|"[a-z_]*"|\[[0-9,]*\]).*/\1/'; }
found() { [[ $2 =~ \"$1\":(-?[0-9.e+]+) ]] && number=${BASH_REMATCH[1]} || fail "no $1: $2"; }
time_of() { run --json "$@" | field time_ns; }
# Thousands of nodes are simulated where that is fast.
large=yes
[ -z "${SLMPM_SAN:-}${SLMPM_EMULATOR:-}" ] || large=

# ---- formulas: with a latency of 1000 ns, 10 bytes and 5 combined ones a ns, 100 ns between messages ----

checked=0
# within PERCENT FORMULA OPTIONS...: k is log2 n, rounded up.
within() {
	local percent=$1 formula=$2 got n s
	shift 2
	got=$(time_of --fold 5g "$@") || fail "$*: exit status $?"
	[[ " $* " =~ \ -n\ ([0-9]+) ]] && n=${BASH_REMATCH[1]} || n=64
	[[ " $* " =~ \ -s\ ([0-9]+) ]] && s=${BASH_REMATCH[1]} || s=8
	awk -v got="$got" -v n="$n" -v s="$s" -v percent="$percent" 'BEGIN {
		L = 1000; B = 10; F = 5; gap = 100
		for (k = 0; 2 ^ k < n; k++)
			;
		want = '"$formula"'
		apart = (got - want) / want * 100
		if (apart > percent || apart < -percent) {
			printf "%s ns, not %s\n", got, want
			exit 1
		}
	}' >&2 || fail "$*: is not $formula"
	checked=$((checked + 1))
}
for n in 2 3 5 64 100 1000 ${large:+4096}; do
	within 1 'k * L' -c barrier -a dissemination -n $n
done
for n in 2 4 64 1024; do
	for s in 8 1024 65536; do
		within 1 'k * (L + s / B + s / F)' -a recursive_doubling -n $n -s $s
		within 1 'k * (2 * (L + s / B) + s / F)' -a reduce_broadcast -n $n -s $s
		within 1 'k * (L + s / B)' -c broadcast -a binomial -n $n -s $s
	done
done
for n in 2 7 64 250; do
	for piece in 8 1024 8192; do
		within 1 '2 * (n - 1) * (L + s / n / B) + (n - 1) * s / n / F' -a ring -n $n -s $((n * piece))
		within 1 '(n - 1) * (L + s / B)' -c allgather -a ring -n $n -s $piece
	done
done
# The sum of its distances goes round a ring of 8.
within 0.001 '(1 + 2 + 4) * L' -c barrier -a dissemination -n 8 -w torus -x 8x1x1
# A message in packets of 4096, from one end to the other, behind one to the middle.
within 0.001 's / B + 2 * L + s / B + 4096 / B' -c broadcast -a flat -n 3 -w mesh -x 3x1x1 -s 65536
# A tree over the network that is one: both children at once, and the right ones of all levels last. k is a level more than it has.
for n in 3 31 1023 ${large:+65535}; do
	within 1 '(k - 1) * (2 * L + 2 * s / B + 2 * s / F + gap)' -a binary -w tree -n $n -s 8
done
# Sockets take what is sent: the root's two messages share its link, a packet each in turn. Those to one node do not.
within 0.001 '2 * L + 3 * s / B - 4096 / B' -c broadcast -a binomial -n 4 -s 65536 --eager 64k
within 0.001 '2 * L + s / B + 8192 / B' -c broadcast -a chain -n 3 -s 65536 --piece 8192 --eager 64k
within 0.001 '2 * L + 2 * s / B' -c broadcast -a binomial -n 4 -s 65536 --eager 65535
# They meet at the root's link.
within 0.001 'L + (n - 1) * s / B' -c gather -a flat -n 64 -s 65536
# A node begins one message after the other.
within 1 '(n - 2) * gap + L' -c scatter -a flat -n 4096 -s 8
[ $checked -ge 60 ] || fail "only $checked formulas"

# ---- every algorithm, over every network ----

runs=0
for kind in barrier broadcast reduce allreduce scatter gather allgather alltoall reduce_scatter scan exscan; do
	algorithms=$(run -c $kind -a none 2>&1 | sed 's/.*there are: *//')
	for a in $algorithms; do
		for n in 1 2 5 12; do
			counts=
			for w in full torus mesh tree; do
				said=$(run -c $kind -a $a -n $n -w $w -s 5000 -r 0 --json 2>&1) ||
					{ [[ $said == *"is not done by $a"* ]] && continue 3; fail "$kind by $a of $n: $said"; }
				found messages "$said" && messages=$number
				found send "$said" && [ $number = $messages ] || fail "$kind by $a: $said"
				found recv "$said" && [ $number = $messages ] || fail "$kind by $a: $said"
				found message_bytes "$said"
				counts+="$messages/$number "
				runs=$((runs + 1))
			done
			[ "$(xargs -n 1 <<<"$counts" | sort -u | wc -l)" = 1 ] || fail "$kind by $a of $n: $counts"	# whatever the network
		done
	done
done
[ $runs -ge 300 ] || fail "only $runs simulations"
[ "$(run -n 36 -w torus --json | field extent)" = "[4,3,3]" ] || fail "the extents of 36"
diff <(run -c alltoall -n 27 -w torus --json) <(run -c alltoall -n 27 -w torus -x 3x3x3 --json) || fail "another time, other figures"
# What is busy is at the root of a tree, and shares its links.
[ "$(run -c alltoall -n 31 -w tree -s 4k --json | field node)" = 0 ] || fail "the busiest node of a tree"

# ---- what the clock cannot show ----

# too_long OPTIONS...: takes more than 2^64 picoseconds, in one step or in many.
too_long() {
	said=$(run "$@" 2>&1 >/dev/null)
	[ $? = 1 ] && [[ $said == "slmpm_sim: it would take longer than 213 days"* ]] || fail "$*: $said"
}
too_long -b 1 -s 1g -n 2 -c broadcast
too_long -b 40 -s 1g -n 2 -c broadcast -w mesh -p 1g
too_long -b 100 -s 1g -n 4 -c gather -a flat
too_long -b 80 -s 1g -n 3 -c scatter -a flat -w torus
too_long --fold 50 -s 1g -n 2 -b 0 -a flat
too_long --copy 50 -s 1g -n 1 -b 0
too_long -b 300 -s 256m -n 64 -c gather -a flat
# 2^30 bytes at 60 a second, and a second of latency: 207 days.
within 0.0000001 '2 ^ 30 / 60 * 1e9 + 1e9' -b 60 -s 1g -n 2 -c broadcast -a flat -l 1s
[[ $(run -n 1) == *" 1 node, "* ]] || fail "1 nodes"

# ---- a plan that is given ----

plan=apps/examples/allreduce.plan
[[ $(run -n 3 -s 64k --plan $plan) == "allreduce by text"* ]] || fail "$plan: $(run -n 3 -s 64k --plan $plan 2>&1)"
# As many bytes as the library's own ring sends, which cuts the vector, too.
[ "$(run -n 3 -s 48k --plan $plan --json | field message_bytes)" = "$(run -n 3 -s 48k -a ring --json | field message_bytes)" ] ||
	fail "$plan is no ring"
said=$(run -n 3 --plan <(sed '/^rank 2/,$s/^fold/#/' $plan) 2>&1) && fail "a plan without a step: all is well"
[[ $said == *"line "*", rank "* ]] || fail "a plan without a step: $said"

# ---- as many as may be ----

[ $large ] || exit 0
for w in full tree; do
	for a in binary reduce_broadcast; do
		(ulimit -v 1048576; timeout 5 "$sim" -a $a -n 65536 -w $w >/dev/null) || fail "65,536 nodes, $a, $w: more than 5 s, or 1 GiB"
	done
done
timeout 30 "$sim" -a ring -n 4096 -s 64k >/dev/null || fail "a ring of 4,096: more than 30 s"
