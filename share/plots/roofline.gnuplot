# SPDX-License-Identifier: MIT
# A roofline. Before this: style.gnuplot, peak (GFLOP/s), bandwidth (GB/s), points, name[], and
# $points: number, operations per byte, GFLOP/s.
set logscale xy
set xlabel "operations per byte of memory, log scale"
set ylabel "GFLOP/s, log scale"
set format xy "%.10g"
roof(x) = x * bandwidth < peak ? x * bandwidth : peak
ridge = 1.0 * peak / bandwidth
# With all points: above the roof too, if the peak is too low.
stats $points using 2:3 nooutput
least(a, b) = a < b ? a : b
most(a, b) = a > b ? a : b
set xrange [least(ridge / 64, STATS_min_x / 1.5):most(ridge * 16, STATS_max_x * 1.5)]
set yrange [*:1.5 * most(peak, STATS_max_y)]
if (format eq "text") {
    plot roof(x) with lines title "roof", $points using 2:3 with points title "measured"
} else {
    set samples 500
    plot roof(x) with lines linecolor rgb "#444444" linewidth 2 \
            title sprintf("%.0f GFLOP/s, %.1f GB/s", peak, bandwidth), \
        for [i=1:points] $points every ::i-1::i-1 using 2:3 with points \
            linecolor rgb color_of(i) pointtype shape_of(i) pointsize 1.4 title name[i]
}
