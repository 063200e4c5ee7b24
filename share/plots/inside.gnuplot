# SPDX-License-Identifier: MIT
# A heat map. Before this: style.gnuplot, value_label, rows, row[], every_row (of which one is
# labelled), low and high of the values, linear (1: colours are), and $cells: where it begins and
# ends, row, value.
set xlabel "step"
set format x "%.10g"
set yrange [rows + 0.5:0.5]
set ytics scale 0
set ytics ()
do for [i=1:rows:every_row] { set ytics add (row[i] i) }
unset grid
unset key
set style fill solid 1 noborder
set cbrange [low:high]
set format cb "%g"
if (!linear) {
    set logscale cb
    # At least three marks with numbers, and no more than fit.
    decades = log10(high) - log10(low)
    marks = decades > 3.5 ? "1" : decades > 1 ? "1 2 5" : "1 1.5 2 3 4 5 6 7 8 9"
    set cbtics ()
    do for [e=int(floor(log10(low))):int(ceil(log10(high))):decades > 8 ? int(decades / 6) : 1] {
        do for [m in marks] { set cbtics add (sprintf("%g", m * 10.0**e) m * 10.0**e) }
    }
    # Of a narrow range five round numbers.
    wanted = (high - low) / 5.0
    apart = decades < 0.4 ? 10.0**floor(log10(wanted)) : 0
    apart = wanted >= 5 * apart ? 5 * apart : wanted >= 2 * apart ? 2 * apart : apart
    if (apart > 0) {
        set cbtics ()
        do for [k=int(low / apart):int(high / apart) + 1] {
            set cbtics add (sprintf("%.10g", k * apart) k * apart)
        }
    }
}
set colorbox
set title value_label . (linear ? "" : ", log scale") noenhanced
# From light to dark in one direction, also in greyscale (viridis, reversed).
set palette defined (0 "#FDE725", 0.25 "#5EC962", 0.5 "#21918C", 0.75 "#3B528B", 1 "#440154")
set autoscale xfix
plot $cells using (($1 + $2) / 2):3:1:2:($3 - 0.5):($3 + 0.5):4 with boxxyerror fillcolor palette
