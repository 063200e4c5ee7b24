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
if (!linear) { set logscale cb }
set cbrange [low:high]
set format cb "%g"
set colorbox
set title value_label . (linear ? "" : ", log scale") noenhanced
# From light to dark in one direction, also in greyscale (viridis, reversed).
set palette defined (0 "#FDE725", 0.25 "#5EC962", 0.5 "#21918C", 0.75 "#3B528B", 1 "#440154")
set autoscale xfix
plot $cells using (($1 + $2) / 2):3:1:2:($3 - 0.5):($3 + 0.5):4 with boxxyerror fillcolor palette
