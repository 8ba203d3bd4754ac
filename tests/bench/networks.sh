#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The library's choice among links that are saturated against each of them alone, as Markdown: two hosts made of
# namespaces, with a cable in each of two networks, whose rate is limited: the limit, and not this machine, is what
# is measured. Where namespaces are not permitted it says so. The medians in GB/s go to DATA, too.
#	tests/bench/networks.sh PERFTEST [ROUNDS [DATA]]
set -u
ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$ROOT" || exit 1
. tests/lib/netns.sh
command -v tc >/dev/null || netns_skip "two networks: not measured: tc is missing"
netns_enter "$ROOT/tests/bench/networks.sh" "$@"
PERFTEST=$1 ROUNDS=${2:-3} DATA=${3:-/dev/null}
netns_host alpha
netns_host beta
netns_link alpha beta
netns_link alpha beta
export SLMPM_INSECURE=y SLMPM_SECRET=00112233445566778899aabbccddeeff
export SLMPM_LINKS=10.77.1.0/24,10.77.2.0/24 SLMPM_LINKS_AFTER=0
FIXED=SLMPM_MODE_LINK=never
DIR=$(mktemp -d /run/networks.XXXXXX)
: >"$DIR/ratios"

# The bucket holds a packet as the kernel makes them: else it is cut up, and that is work.
limit() { # limit CABLE RATE
	netns_on alpha tc qdisc replace dev "v$1-1" root tbf rate "$2" burst 128k limit 1m &&
		netns_on beta tc qdisc replace dev "v$1-2" root tbf rate "$2" burst 128k limit 1m ||
		netns_skip "two networks: not measured: tc refuses a limit"
}

# sample SETTINGS TEST SIZE COUNT: MB/s, or nothing
sample() {
	local far port
	rm -f "$DIR/far"
	mkfifo "$DIR/far"
	# shellcheck disable=SC2086
	netns_on beta env $1 timeout 20 "$PERFTEST" --listen tcp://10.77.1.2:0 2>"$DIR/far" >/dev/null &
	far=$!
	exec {hear}<"$DIR/far"
	while read -r port <&"$hear" && [[ $port != *--connect* ]]; do :; done
	port=${port##*tcp://10.77.1.2:}
	# shellcheck disable=SC2086
	netns_on alpha env $1 timeout 20 "$PERFTEST" --connect "tcp://10.77.1.2:${port%% *}" -t "$2" -s "$3" -n "$4" \
		--burst 16 --samples 1 --json 2>/dev/null | sed -n 's/.*"bytes_per_s":\([0-9.]*\).*/\1/p'
	exec {hear}<&-
	wait $far
}

# load NAME TEST SIZE COUNT: a row; modes take turns
load() {
	local name=$1 round mode
	shift
	: >"$DIR/samples"
	for ((round = 0; round < ROUNDS; round++)); do
		for mode in auto 0 1; do
			case $mode in
			auto) echo "auto $(sample SLMPM_MODE_LINK=auto "$@")" ;;
			*) echo "$mode $(sample "SLMPM_LINK=$mode $FIXED" "$@")" ;;
			esac >>"$DIR/samples"
		done
	done
	awk -v name="$name" -v rounds="$ROUNDS" -v data="$DATA" -v ratios="$DIR/ratios" '
		NF == 2 { v[$1, ++n[$1]] = $2 }
		function middle(who, over,    i, j, k, r) {
			k = n[who] < n[over] || !over ? n[who] : n[over]
			for (i = 1; i <= k; i++) {
				r = over != "" ? v[who, i] / v[over, i] : v[who, i]
				for (j = i; j > 1 && s[j - 1] > r; j--) s[j] = s[j - 1]
				s[j] = r
			}
			low = s[1]; high = s[k]
			return k % 2 ? s[(k + 1) / 2] : (s[k / 2] + s[k / 2 + 1]) / 2
		}
		END {
			if (n["auto"] < rounds || n[0] < rounds || n[1] < rounds) {
				printf "| %s | some lost | | | | undecided |\n", name
				exit
			}
			printf "| %s | %.3f GB/s |", name, middle("auto", "") / 1e9
			printf "%s\t%.4f\t%.4f\t%.4f\n", name, middle("auto", "") / 1e9,
				middle(0, "") / 1e9, middle(1, "") / 1e9 >>data
			worst = 9; verdict = "pass"
			for (f = 0; f < 2; f++) {
				m = middle("auto", f)
				printf " %.2f (%.2f-%.2f) |", m, low, high
				printf "%d\t%.2f\t%.2f\t%.2f\t%s\n", f, low, m, high, name >>ratios
				if (m < worst) { worst = m; best = f }
				if (high < 0.95) verdict = "FAIL"
				else if (low < 0.95 && verdict == "pass") verdict = "undecided"
			}
			printf " link %d | %s |\n", best, verdict
		}' "$DIR/samples"
}

printf 'load\tauto\tlink 0\tlink 1\n' >"$DATA"
echo
echo '| two networks | auto | over link 0 | over link 1 | best | within 5 % |'
echo '| --- | --: | --: | --: | --- | --- |'
limit 1 1gbit
limit 2 1gbit
load 'saturated, 64 KiB, 1 and 1 Gbit/s' send_bw 65536 400
load 'saturated, 256 KiB, 1 and 1 Gbit/s' send_bw 262144 100
load 'both ways, 256 KiB, 1 and 1 Gbit/s' duplex 262144 100
load 'puts, 256 KiB, 1 and 1 Gbit/s' put_bw 262144 100
limit 1 200mbit
load 'saturated, 64 KiB, 0.2 and 1 Gbit/s' send_bw 65536 400
load 'saturated, 256 KiB, 0.2 and 1 Gbit/s' send_bw 262144 100
load 'both ways, 256 KiB, 0.2 and 1 Gbit/s' duplex 262144 100
load 'puts, 256 KiB, 0.2 and 1 Gbit/s' put_bw 262144 100
echo
for link in 0 1; do
	grep "^$link" "$DIR/ratios" | sort -t$'\t' -k2,2gr | awk -F'\t' 'NR == 1 {
		printf "* %s of link %d of two networks: %.2f (%.2f-%.2f) under \"%s\"\n",
			($2 > 1) ? "ahead" : "NOT ahead", $1, $3, $2, $4, $5 }'
done
rm -rf "$DIR"
