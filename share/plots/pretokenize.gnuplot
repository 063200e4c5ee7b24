# SPDX-License-Identifier: MIT
# Tokens per second of four ways to make samples, over batch sizes: reading alone, and
# in training. Set format (svg or png), directory and output before.
if (format eq 'png') {
    set terminal pngcairo size 1000,440 font 'sans,12'
} else {
    set terminal svg size 1000,440 font 'sans,13' background 'white'
}
set output output
set multiplot layout 1,2
set grid ytics linecolor rgb '#dddddd' linetype 1
set border 3
set tics nomirror out
set xlabel 'batch (sequences), log scale'
set logscale x 2
set offsets graph 0.05, graph 0.05, 0, 0
set linetype 1 lc rgb '#e69f00' lw 2 pt 7 ps 1
set linetype 2 lc rgb '#d55e00' lw 2 pt 5 ps 1 dt 2
set linetype 3 lc rgb '#56b4e9' lw 2 pt 9 ps 1 dt 4
set linetype 4 lc rgb '#0072b2' lw 2 pt 13 ps 1
titles = "'padded, tokenized while reading' 'list, tokenized while reading' 'padded, tokenized before' 'list, tokenized before'"
set title 'reading alone, shuffled, one core'
set ylabel 'tokens per core-second, log scale'
set logscale y
set yrange [*<5e7:5e9<*]
set ytics ('50 million' 50e6, '100 million' 100e6, '200 million' 200e6, '500 million' 500e6, \
    '1 billion' 1e9, '2 billion' 2e9, '20 million' 20e6, '10 million' 10e6, '1 million' 1e6, '5 billion' 5e9)
plot for [i=2:5] directory.'/reading.dat' using 1:i with linespoints lt i - 1 notitle
unset logscale y
set key inside bottom right vertical Left reverse
set ytics autofreq
set format y '%.0s%c'
set title 'in training'
set ylabel 'tokens per second'
set yrange [0:*]
plot for [i=2:5] directory.'/training.dat' using 1:i with linespoints lt i - 1 title word(titles, i - 1)
unset multiplot
