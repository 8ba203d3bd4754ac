# SPDX-License-Identifier: BSD-3-Clause
# For scripts that run slmpm_demo in the background and look at its table ($dir/err).

demo=$SLMPM_BUILD/bin/slmpm_demo
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; cat "$dir/err" >&2; exit 1; }

children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

stop_all() { for pid in $(children "$host"); do kill -STOP "$pid"; done; }

# Sparse files take no disk, and long enough to be in the middle of.
make_long() {
	local big=${SLMPM_SAN:+24} i
	for i in 1 2 3 4 5 6; do
		echo "file $i" >"$dir/file-$i"
		truncate -s "${big:-96}M" "$dir/file-$i"
	done
	head -c 100000 /dev/zero >"$dir/first"
}

# Runs the demo with the given options; the first digest on its way out shows that it is in its middle.
# Its standard output is then descriptor 3. Signals do what they do at a terminal.
begin() {
	mkfifo "$dir/pipe"
	env --default-signal "$demo" "$@" "$dir/first" "$dir"/file-* >"$dir/pipe" 2>"$dir/err" &
	host=$!
	exec 3<"$dir/pipe"
	rm "$dir/pipe"
	read -r _ <&3 || fail "no digest at all"
}

# gone WHAT PID...: or they are waited for, for a while.
gone() {
	local what=$1 pid tries
	shift
	for pid; do
		tries=0
		while kill -0 "$pid" 2>/dev/null; do
			[ $((tries += 1)) -lt 200 ] || fail "$what: accelerator $pid outlives its host"
			read -r -t 0.05 _ <><(:)
		done
	done
}

# What the table says: `row NAME` is the first number after NAME; `way FABRIC PROTOCOL` the count of that
# row of the second part, 0 without one; `why REASON` how often that was one, in all rows.
row() { sed -nE "s/^ +$1 +([0-9]+).*/\1/p" "$dir/err"; }
ways() { sed -n '/^  fabric .*because$/,/^$/p' "$dir/err" | sed '1d;/^$/d'; }
way() { ways | awk -v f="$1" -v p="$2" '$1 ~ f && $2 ~ p { n += $3 } END { print n + 0 }'; }
why() { ways | tr ',' '\n' | awk -v r="$1" '$(NF - 1) == r { n += $NF } END { print n + 0 }'; }

# Reasons add up to their row, rows to the messages sent and the puts.
adds_up() {
	local ballast_messages ballast_puts
	read -r ballast_messages ballast_puts < <(sed -nE 's/^ +ballast +([0-9]+) messages, ([0-9]+) puts.*/\1 \2/p' "$dir/err")
	ways | awk '{ n = 0; line = $0; sub(/^ *[a-z]+ +[a-z]+ +[0-9]+ +[0-9.]+ [kMGT]?B +/, "", line)
		split(line, why, /, /); for (i in why) { split(why[i], w, " "); n += w[2] }
		if (n != $3) bad = 1 } END { exit bad || !NR }' || fail "$1: reasons do not add up to their row"
	[ $(($(way . 'smt|rget|loan') + ${ballast_messages:-0})) = "$(row messages)" ] ||
		fail "$1: the rows are not the messages sent"
	[ $(($(way . 'put|request') + ${ballast_puts:-0})) = "$(row puts)" ] || fail "$1: the rows are not the puts"
}
