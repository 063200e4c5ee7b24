# SPDX-License-Identifier: MIT
# Masked accuracy and loss on the validation split over steps, side by side. Set format
# (svg or png), directory and output before.
if (format eq 'png') {
    set terminal pngcairo size 1000,440 font 'sans,12'
} else {
    set terminal svg size 1000,440 font 'sans,13' background 'white'
}
set output output
set multiplot layout 1,2
set grid ytics
set border 3
set tics nomirror
set xlabel 'step'
set xrange [0:*]
set linetype 1 lc rgb '#0072b2' lw 2 pt 7 ps 0.7
set title 'masked tokens found, of held-out documents'
set ylabel 'accuracy'
set format y '%.0f%%'
set yrange [0:*]
plot directory.'/mlm.dat' using 1:(100 * $2) with linespoints lt 1 notitle
set title 'loss on masked tokens, of held-out documents'
set ylabel 'loss (nats per masked token)'
set format y '%g'
set yrange [*:*]
plot directory.'/mlm.dat' using 1:3 with linespoints lt 1 notitle
unset multiplot
