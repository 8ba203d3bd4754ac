# SPDX-License-Identifier: BSD-3-Clause
# Links of two networks alone, and the choice among them: gnuplot -e "data='...'; picture='...'" networks.gp
set terminal svg size 900,560 font "sans-serif,12" background "white"
set output picture
set datafile separator tab
set title "Two networks: each link alone, and the library's choice"
set ylabel "GB/s"
set yrange [0:*]
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.7
set xtics rotate by -20
set key outside right
set grid ytics
plot for [i = 2:4] data using i:xtic(1) title columnheader(i)
