# SPDX-License-Identifier: MIT
# Scaling. Before this: style.gnuplot, x_label, y_label, lines, name[], and $lines with a data
# set per line: x, median, low, high, per cent of the ideal, mfu in per cent, the ideal.
set xlabel x_label . ", log scale"
set logscale x 2
set format x "%.10g"
set offsets graph 0.05, graph 0.05, 0, 0
titled(i) = lines == 1 && name[i] eq "" ? y_label : name[i]
if (panels > 1) { set multiplot layout 1,panels title heading noenhanced }
set title y_label . ", log scale" noenhanced
set logscale y 10
set yrange [*:*] noextend
set ytics ()
do for [e=-6:15] { do for [m in "1 1.5 2 3 4 5 7"] {
    digits = m eq "1.5" && e % 3 == 0 ? "%.1s%c" : "%.0s%c"
    set ytics add (gprintf(digits, m * 10.0**e) m * 10.0**e)
} }
if (format ne "text") { set key inside top left vertical }
if (format eq "text") {
    set title heading noenhanced
    set ylabel y_label
    plot for [i=1:lines] $lines index i-1 using 1:2 with linespoints title titled(i), \
        $lines index 0 using 1:7 with lines title "ideal"
} else {
    plot for [i=1:lines] $lines index i-1 using 1:2:3:4 with yerrorlines \
            linecolor rgb color_of(i) dashtype dash_of(i) linewidth 1.6 \
            pointtype shape_of(i) pointsize 0.9 title titled(i), \
        for [i=1:lines] $lines index i-1 using 1:7 with lines \
            linecolor rgb i == 1 ? 0x444444 : light(i) dashtype 2 linewidth 1 \
            title i == 1 ? "ideal" : ""
    unset logscale y
    set ytics autofreq
    unset key
    set format y "%.10g"
    set yrange [0:*] extend
    set title "efficiency (%)"
    plot for [i=1:lines] $lines index i-1 using 1:5 with linespoints \
            linecolor rgb color_of(i) dashtype dash_of(i) linewidth 1.6 \
            pointtype shape_of(i) pointsize 0.9 notitle, \
        100 with lines linecolor rgb "#444444" dashtype 2 linewidth 1 notitle
    if (panels > 2) {
        set title "MFU (%)"
        plot for [i=1:lines] $lines index i-1 using 1:6 with linespoints \
            linecolor rgb color_of(i) dashtype dash_of(i) linewidth 1.6 \
            pointtype shape_of(i) pointsize 0.9 notitle
    }
    unset multiplot
}
