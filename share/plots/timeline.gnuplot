# SPDX-License-Identifier: MIT
# Lanes of boxes. Before this: style.gnuplot, x_label, whole (its length), lanes, kinds, labelled,
# lane[], kind[], and for each kind $kind_I: begin, end, lane, label.
set xlabel x_label
set format x "%.10g"
set xrange [0:whole] noextend
set yrange [lanes + 0.5:0.5]
set ytics scale 0
set ytics ()
longest = 0
do for [i=1:lanes] {
    set ytics add (lane[i] i)
    longest = strlen(lane[i]) > longest ? strlen(lane[i]) : longest
}
# gnuplot lays out the key before it has made room for the lanes' names: its last column would be
# beyond the edge.
if (format ne "text" && longest <= 30) { set lmargin longest + 2 }
unset grid
set style fill solid 0.9 border rgb "white"
block(k) = sprintf("$kind_%d", k)
tall = 0.42
# White edges separate boxes; a box that the edges would hide is drawn as a line.
thin(begin, end) = end - begin < whole / 300 ? begin : NaN
array on_fill[7] = [0xFFFFFF, 0x000000, 0xFFFFFF, 0xFFFFFF, 0x000000, 0x000000, 0x000000]
plot for [k=1:kinds] block(k) using (($1 + $2) / 2):3:1:2:($3 - tall):($3 + tall) \
        with boxxyerror fillcolor rgb fill_of(k) linewidth 0.5 title kind[k], \
    for [k=1:kinds] block(k) using (thin($1, $2)):($3 - tall):(0):(2 * tall) \
        with vectors nohead linecolor rgb fill_of(k) linewidth 1 notitle, \
    for [k=1:kinds] block(k) using (($1 + $2) / 2):3:(labelled && strcol(4) ne "-" ? strcol(4) : "") \
        with labels textcolor rgb on_fill[(k - 1) % 7 + 1] font ",9" notitle
