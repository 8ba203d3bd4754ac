#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The programs of apps/examples that are texts: each does what it says, in real processes, over both fabrics, with an engine
# and without, once and again; without its ENABLEs the reduction goes wrong; doc/programs.md has these texts, and the
# drawings there are of them.
set -u
cd "$(dirname "$0")/../.." || exit 1
unset SLMPM_LINKS
program=$SLMPM_BUILD/bin/work_program
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

# runs ROUNDS NAME: what the processes have taken, without the lengths.
runs() { timeout 30 "$program" -n "$1" "$2" | sed 's/messages, [0-9]* bytes, //' | paste -sd' '; }

# is WANT ROUNDS NAME
is() {
	local said
	said=$(runs "$2" "apps/examples/$3.program")
	[ "$said" = "$1" ] || fail "$SLMPM_FABRIC, $SLMPM_ENGINE: $3, $2 rounds: $said"
}

without=$work/without.program
sed '/^enable/d; s/ managed / /' apps/examples/reduce.program >"$without"
sed 's/ 128/ 6/; s/=128/=6/; s/through=a,b,c,d/through=a/' apps/examples/pipe.program >"$work/one_buffer.program"
for SLMPM_FABRIC in shm tcp; do
	for SLMPM_ENGINE in inline thread; do
		export SLMPM_FABRIC SLMPM_ENGINE
		is "left took 1 08af2f6baea63000: 10 right took 1 08af2f6baea63000: 10" 1 maximum
		is "left took 3 2ab4bc616e720800: 10 20 30 right took 3 2ab4bc616e720800: 10 20 30" 3 maximum
		is "parent took 2 ebf67a65c5590400: 11 22" 1 reduce
		is "parent took 6 1dae22a006ef1c00: 11 22 33 44 55 66" 3 reduce
		is "target took 128 ce58cddfea100000: 1 2 3 4 5 6 7 8 ..." 1 pipe
		is "target took 6 152d96cb222d4000: 1 2 3 4 5 6" 1 pipe_enables
		is "a took 3 0000011b51ddd6b6: 1 2 3 b took 3 0000011b51ddd6b6: 1 2 3 c took 3 0000011b51ddd6b6: 1 2 3" 3 barrier
		# A PIPE has the same bytes as the ENABLEs.
		same=$(runs 1 "$work/one_buffer.program")
		[ "$same" = "target took 6 152d96cb222d4000: 1 2 3 4 5 6" ] || fail "$SLMPM_FABRIC, $SLMPM_ENGINE: one buffer: $same"
		# The left child's second message has come before the right one's first.
		wrong=$(runs 1 "$without")
		[[ $wrong == "parent took 2 "*": "* && $wrong != *": 11 "* ]] || fail "$SLMPM_FABRIC, $SLMPM_ENGINE: without ENABLE: $wrong"
	done
done
unset SLMPM_FABRIC SLMPM_ENGINE

# ---- mistakes ----

printf '%s\n' "#: queue main" "" "wait jump=1" >"$work/wrong.program"
said=$("$program" "$work/wrong.program" 2>&1) && fail "a wrong text: all is well"
[[ $said == *'line 3, "jump=1": no such word' ]] || fail "a wrong text: $said"
printf '%s\n' "#: queue main" "#: counter never" "wait ctr=never value=1" >"$work/wrong.program"
said=$("$program" "$work/wrong.program" 2>&1) && fail "a wait for ever: all is well"
[[ $said == *'line 3, "wait": it can never run'* ]] || fail "a wait for ever: $said"

# ---- drawings ----

# What is written in a drawing, and what its nodes and arrows are called; of a graph for dot, and of the SVG by dot.
words_of_graph() {
	awk -F'"' 'BEGIN { print "title program" }
	/subgraph/ { print "title " $2 }
	/^\t\tlabel=/ { print "text " $2 }
	/shape=box/ { print "title " $2; box[$2]; n = split($4, w, /\\n/); for (i = 1; i <= n; i++) print "text " w[i] }
	/ -> / { print "title " $2 "->" $4; end[$2]; end[$4]; if ($6 != "") print "text " $6 }
	END { for (e in end) if (!(e in box)) print "title " e "\ntext " e }' | sort
}
words_of_svg() {
	sed -n 's/.*<title>\(.*\)<.title>.*/title \1/p; s/.*<text [^>]*>\(.*\)<.text>.*/text \1/p' |
		sed 's/&#45;/-/g; s/&gt;/>/g; s/&#160;/ /g; s/&amp;/\&/g' | sort
}

drawn=0
for text in apps/examples/*.program; do
	name=$(basename "$text" .program)
	graph=$("$program" -g "$text" 2>&1) || fail "work_program -g $text: $graph"
	words_of_graph <<<"$graph" >"$work/graph"
	words_of_svg <"doc/programs/$name.svg" >"$work/svg"
	diff "$work/graph" "$work/svg" || fail "doc/programs/$name.svg is of another text: doc/programs/draw"
	grep -q "(programs/$name.svg)" doc/programs.md || fail "doc/programs.md does not show $name.svg"
	[[ $(<doc/programs.md) == *$'\n```\n'"$(<"$text")"$'\n```\n'* ]] || fail "doc/programs.md does not have $text as it is"
	drawn=$((drawn + 1))
done
[ $drawn -ge 5 ] || fail "only $drawn programs"
