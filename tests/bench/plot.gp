# SPDX-License-Identifier: BSD-3-Clause
# One picture of one metric: gnuplot -e "dir='...'; metric='...'; title='...'; where='...'; unit='...'" plot.gp
set terminal svg size 900,560 font "sans-serif,12" background "white"
set output dir."/".metric.".svg"
data = dir."/".metric.".dat"
stats data using 1:2 nooutput
set title title."\n".where
set xlabel exists("messages") ? "messages of the burst; the mean of those behind the first" : "bytes"
set ylabel unit
set logscale x
set logscale y 10
if (exists("messages")) set xtics ("the first" 1, "to the 10th" 10, "100th" 100, "1000th" 1000)
if (!exists("messages")) set xtics ("8" 8, "64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536, "256K" 262144, "1M" 1048576, "4M" 4194304)
set key outside right
set grid
# The first block is ours, when ours was there: drawn widest.
plot for [i = 0:STATS_blocks - 2] data index i using 1:2 with linespoints \
	linewidth (i == 0 ? 3 : 1) pointtype (i + 1) title columnheader(1)
