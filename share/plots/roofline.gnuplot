# SPDX-License-Identifier: MIT
# A roofline. Before this: style.gnuplot, peak (GFLOP/s), bandwidth (GB/s), points, name[], and
# $points: number, operations per byte, GFLOP/s.
set logscale xy
set xlabel "operations per byte of memory"
set ylabel "GFLOP/s"
set format xy "%.10g"
roof(x) = x * bandwidth < peak ? x * bandwidth : peak
ridge = peak / bandwidth
set xrange [ridge / 64:ridge * 16]
set yrange [*:peak * 1.5]
if (format eq "text") {
    plot roof(x) with lines title "roof", $points using 2:3 with points title "measured"
} else {
    set samples 500
    plot roof(x) with lines linecolor rgb "#444444" linewidth 2 \
            title sprintf("%.0f GFLOP/s, %.1f GB/s", peak, bandwidth), \
        for [i=1:points] $points every ::i-1::i-1 using 2:3 with points \
            linecolor rgb color_of(i) pointtype shape_of(i) pointsize 1.4 title name[i]
}
