# SPDX-License-Identifier: MIT
# One value over another, a point per cell. Before this: style.gnuplot, x_label, y_label, log_x,
# log_y, points, name[], and $points: x, its low and high, y, its low and high.
set xlabel x_label . (log_x ? ", log scale" : "")
set ylabel y_label . (log_y ? ", log scale" : "")
set offsets graph 0.05, graph 0.05, graph 0.05, graph 0.05
if (log_x) {
    set logscale x
    set format x "%.0s%c"
}
if (log_y) { set logscale y }
if (format eq "text") {
    plot for [i=1:points] $points every ::i-1::i-1 using 1:4 with points title name[i]
} else {
    set grid x y linecolor rgb "#DDDDDD" linetype 1 linewidth 0.5
    set key outside right top vertical Left reverse noenhanced
    plot for [i=1:points] $points every ::i-1::i-1 using 1:4:2:3:5:6 with xyerrorbars \
        linecolor rgb color_of(i) pointtype shape_of(i) pointsize 1.1 linewidth 1.2 title name[i]
}
