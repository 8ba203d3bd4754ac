# SPDX-License-Identifier: BSD-3-Clause
# Time over nodes, a line for each algorithm: gnuplot -e "data='...'; picture='...'; title='...'" simulate.gp
set terminal svg size 900,560 font "sans-serif,12" background "white"
set output picture
stats data using 1:2 nooutput
set title title
set xlabel "nodes"
set ylabel "microseconds, simulated"
set logscale x 2
set logscale y 10
set key outside right noenhanced
set grid
plot for [i = 0:STATS_blocks - 2] data index i using 1:2 with linespoints pointtype (i + 1) title columnheader(1)
