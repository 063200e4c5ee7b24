# SPDX-License-Identifier: MIT
# Lanes of boxes. Before this: style.gnuplot, x_label, lanes, kinds, labelled, lane[], kind[],
# and for each kind $kind_I: begin, end, lane, label.
set xlabel x_label
set xrange [0:*] noextend
set yrange [lanes + 0.5:0.5]
set ytics scale 0
set ytics ()
do for [i=1:lanes] { set ytics add (lane[i] i) }
unset grid
set style fill solid 0.9 border rgb "white"
block(k) = sprintf("$kind_%d", k)
tall = 0.42
plot for [k=1:kinds] block(k) using (($1 + $2) / 2):3:1:2:($3 - tall):($3 + tall) \
        with boxxyerror fillcolor rgb color_of(k) linewidth 0.5 title kind[k], \
    for [k=1:kinds] block(k) using (($1 + $2) / 2):3:(labelled && strcol(4) ne "-" ? strcol(4) : "") \
        with labels textcolor rgb "white" font ",9" notitle
