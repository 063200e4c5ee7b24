# SPDX-License-Identifier: MIT
# Tokens per second of four ways to make samples, over batch sizes: reading alone, and
# in training. Set format (svg or png), directory and output before.
if (format eq 'png') {
    set terminal pngcairo size 1100,440 font 'sans,11'
} else {
    set terminal svg size 1100,440 font 'sans,11' background 'white'
}
set output output
set multiplot layout 1,2
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.85 border -1
set boxwidth 0.9
set grid ytics
set xlabel 'batch'
set key top left
set linetype 1 lc rgb '#e69f00'
set linetype 2 lc rgb '#d55e00'
set linetype 3 lc rgb '#56b4e9'
set linetype 4 lc rgb '#0072b2'
titles = "'padded, on the fly' 'list, on the fly' 'padded, pretokenized' 'list, pretokenized'"
set title 'reading alone, shuffled'
set ylabel 'tokens/s (logarithmic)'
set logscale y
set format y '10^{%T}'
plot for [i=2:5] directory.'/reading.dat' using i:xticlabels(1) title word(titles, i - 1)
unset logscale
set format y '%.0s%c'
set title 'in training'
set ylabel 'tokens/s'
set yrange [0:*]
plot for [i=2:5] directory.'/training.dat' using i:xticlabels(1) notitle
unset multiplot
