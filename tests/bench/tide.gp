# SPDX-License-Identifier: BSD-3-Clause
# What was chosen over time: gnuplot -e "data='...'; picture='...'; title='...'" tide.gp
set terminal svg size 900,640 font "sans-serif,12" background "white"
set output picture
set datafile separator tab
set key autotitle columnhead
set multiplot layout 2,1 title title
set key outside right
set grid
set lmargin 10
set rmargin 22
ms(us) = us / 1000
set ylabel "ring unread, %"
set yrange [0:105]
set y2label "requests queued"
set y2range [0:*]
set ytics nomirror
set y2tics
plot data using (ms($1)):(100 * $3) with steps linewidth 2 title "ring", \
	data using (ms($1)):2 axes x1y2 with steps title "queue"
unset y2label
unset y2tics
set xlabel "ms"
set ylabel ""
set yrange [0.5:10.5]
protocol(p) = p eq "smt" ? 2 : p eq "rget" ? 6 : 9
offset(r) = r eq "short" ? -0.6 : r eq "call" ? -0.3 : r eq "faster" ? 0 : r eq "trial" ? 0.3 : r eq "absent" ? 0.6 : r eq "ring" ? 0.9 : r eq "queue" ? 1.2 : 1.5
set ytics ("packets (smt)" 2, "fetched (rget)" 6, "others" 9)
plot for [r in "short call faster trial absent ring queue link"] data using (ms($1)):(strcol(6) eq r ? protocol(strcol(5)) + offset(r) : NaN) \
	with points pointtype 7 pointsize 0.4 title r
unset multiplot
