# SPDX-License-Identifier: MIT
# Bars with quartiles. Before this: style.gnuplot, y_label, groups, series, stacked, most (the
# largest value), base (of a logarithmic axis; 0: linear), note (or ""), group[], name[], and $bars: a line per group, with its index and median, low and
# high of each series.
power = most < 1e5 ? 0 : int(floor(log10(most) / 3))
power = power > 4 ? 4 : power
unit = 1000.0**power
array unit_name[5] = ["", " (thousands)", " (millions)", " (billions)", " (10^12)"]
set ylabel along(y_label . unit_name[power + 1] . (base > 0 ? ", log scale" : ""))
if (note ne "") { set xlabel lines_of(note, across) }
set yrange [0:*]
if (base > 0) {
    set logscale y
    set yrange [0.9999 * base / unit:2 * most / unit] noextend # with the mark at its end
    if (1.0 * most / base < 300) {
        set ytics ()
        do for [e=int(floor(log10(base / unit))):int(ceil(log10(most / unit)))] {
            do for [m in "1 2 5"] { set ytics add (sprintf("%g", m * 10.0**e) m * 10.0**e) }
        }
    }
}
set format y "%.10g"
set style fill solid 0.9 noborder
set xtics scale 0
set xtics ()
# Labels at 30 degrees need two lines' room each, upright ones a line's; more have smaller type, and
# so have upright ones that would take half of the height. What is longer loses its middle.
upright = groups > 0.29 * across
fits = int(across / 3) # characters of an upright label
do for [g=1:groups] {
    if (strstrt(group[g], "%") == 0) { group[g] = middle_cut(group[g], 2 * fits) }
}
longest = 0
# "A: B" has two lines.
colon(g) = strstrt(group[g], ": ")
first(g) = colon(g) ? group[g][1:colon(g) - 1] : group[g]
second(g) = colon(g) ? group[g][colon(g) + 2:*] : ""
do for [g=1:groups] {
    if (colon(g) && note eq "") { set xlabel " " } # room for the second line
    set xtics add (first(g) . (colon(g) ? "\n" . second(g) : "") g - 1)
    longest = strlen(first(g)) > longest ? strlen(first(g)) : longest
    longest = strlen(second(g)) > longest ? strlen(second(g)) : longest
}
type_size = format eq "svg" ? 14 : format eq "png" ? 13 : 9
if (upright) {
    tallest = 0
    do for [g=1:groups] { tallest = strlen(group[g]) > tallest ? strlen(group[g]) : tallest }
    wide = groups > 0.52 * across ? 0.52 * across / groups : 1
    tall = tallest > fits ? 1.0 * fits / tallest : 1
    smaller = wide < tall ? wide : tall
    label_font = sprintf(",%.3g", type_size * smaller)
    set xtics rotate by 90 right font label_font
    set xtics ()
    do for [g=1:groups] { set xtics add (group[g] g - 1) }
    # gnuplot makes room for labels of the plot's type.
    line = format eq "svg" ? 14 / 500.0 : 9 / 252.0
    note_lines = note eq "" ? 0 : 1 + int(strlen(note) / (0.9 * across))
    set bmargin at screen line * (0.62 * smaller * tallest + 1.5 + 1.5 * note_lines)
    unset xlabel
    if (note_lines > 0) {
        set label 1 lines_of(note, across) at screen 0.5, (1.4 * note_lines - 0.65) * line center
    }
}
if (!upright && groups * (longest + 2) > across) {
    set xtics rotate by 30 right
    # gnuplot makes room at the right; labels need it at the left. All are fractions of the width, of
    # which a character at 30 degrees takes half of the size of the type.
    type = format eq "svg" ? 14 / 800.0 : 9 / 403.0
    left = 7 * type
    do for [g=1:groups] {
        at = (g - 0.4) / (groups + 0.2)
        needed = (0.51 * type * (strlen(first(g)) + 1) - 0.985 * at) / (1 - at)
        left = needed > left ? needed : left
    }
    set lmargin at screen left > 0.5 ? 0.5 : left
    set rmargin at screen 0.985
}
if (series == 1) { unset key }
gap = 0.8
width = stacked ? gap : gap / series
place(g, s) = stacked ? g : g - gap / 2 + width * (s - 0.5)
set xrange [-0.6:groups - 0.4]
# Medians above the bars, if they fit.
medians = groups * series > 16 ? 0 : series
short(x) = x < 1000 ? sprintf("%.4g", x) : sprintf("%.0f", x)
label_of(x) = valid(x) ? short(column(x) / unit) : ""
set offsets 0, 0, graph 0.07, 0
# Of a point its interval, where that is wide enough to be seen.
range_of(low, high) = high > 1.05 * low ? short(low / unit) . " to " . short(high / unit) : ""
said(s) = base > 0 && range_of(column(3 * s), column(3 * s + 1)) ne "" ? \
    range_of(column(3 * s), column(3 * s + 1)) : label_of(3 * s - 1)
under(s) = s <= 1 ? 0 : under(s - 1) + (valid(3 * s - 4) ? column(3 * s - 4) / unit : 0)
if (stacked) {
    plot for [s=1:series] $bars using (column(1)):(width / 2):(under(s)) \
        with points pointsize 0 notitle, \
        for [s=1:series] $bars using (column(1)):(under(s)):(column(1) - width / 2):\
            (column(1) + width / 2):(under(s)):(under(s) + column(3 * s - 1) / unit) \
        with boxxyerror linecolor rgb fill_of(s) title name[s]
} else {
    # A bar has a length from 0, which a logarithmic axis lacks: a point.
    plot for [s=1:base > 0 ? 0 : series] $bars \
            using (place(column(1), s)):(column(3 * s - 1) / unit):(0.92 * width) \
            with boxes linecolor rgb fill_of(s) title name[s], \
        for [s=1:base > 0 ? series : 0] $bars \
            using (place(column(1), s)):(column(3 * s - 1) / unit) with points \
            linecolor rgb fill_of(s) pointtype shape_of(s) pointsize 1.1 title name[s], \
        for [s=1:series] $bars using (place(column(1), s)):(column(3 * s) / unit):(0):\
            ((column(3 * s + 1) - column(3 * s)) / unit) \
            with vectors nohead linecolor rgb "#999999" linewidth 1.5 notitle, \
        for [s=1:medians] $bars using (place(column(1), s)):(column(3 * s + 1) / unit):\
            (said(s)) with labels offset 0,0.7 notitle
}
