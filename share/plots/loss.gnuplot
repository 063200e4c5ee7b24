# SPDX-License-Identifier: MIT
# Loss curves. dt-plot writes before this: format, heading, x_label, y_label, log_x,
# log_y, runs, name[1..runs], has_train_I, has_valid_I, floor_level (if any),
# and the data blocks $train, $smooth and $valid with a data set a run.

# Colours that remain distinct to the colour-blind (Okabe and Ito 2008).
array color[7] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xE69F00, 0x000000]
color_of(i) = color[(i - 1) % 7 + 1]
light(i) = color_of(i) + 0xB0000000
dash_of(i) = (i - 1) / 7 + 1
array shape[5] = [7, 5, 9, 13, 11]
shape_of(i) = shape[(i - 1) % 5 + 1]
has_train(i) = value(sprintf("has_train_%d", i))
has_valid(i) = value(sprintf("has_valid_%d", i))
# With one run its name is in the way: the title says which it is.
label(i, what) = runs == 1 ? what : name[i] . ", " . what

if (format eq "svg") \
    set terminal svg size 800,500 noenhanced font "DejaVu Sans,14" background "white"
if (format eq "png" && strstrt(GPVAL_TERMINALS, "pngcairo")) \
    set terminal pngcairo size 1600,1000 noenhanced font "DejaVu Sans,13" fontscale 2 \
        linewidth 2 pointscale 2
if (format eq "png" && !strstrt(GPVAL_TERMINALS, "pngcairo")) \
    set terminal png truecolor size 1600,1000 noenhanced font "DejaVuSans" 24 linewidth 2
if (format eq "text") set terminal dumb 80 24 noenhanced

set title heading noenhanced
set xlabel x_label
set ylabel y_label
set key top right noenhanced
if (format ne "text") {
    set border 3 linecolor rgb "#444444"
    set tics nomirror out textcolor rgb "black"
    set grid y linecolor rgb "#DDDDDD" linetype 1 linewidth 0.5
    set key samplen 2 spacing 1.2
}
if (log_x) {
    set logscale x
    set autoscale xfix
} else {
    set xrange [0:*] noextend
    set format x "%.10g"
    set offsets 0, graph 0.01, 0, 0
}
if (log_y) {
    set logscale y
    set autoscale yfix
    set ytics (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 1.5, \
               2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100)
}

has_floor = exists("floor_level")
level = has_floor ? floor_level : NaN
floor_name = has_floor ? sprintf("floor %.3f", level) : ""
train_label(i) = has_train(i) ? label(i, "training") : ""
valid_label(i) = has_valid(i) ? label(i, "validation") : ""
if (format eq "text") {
    plot for [i=1:runs] $smooth index i-1 with lines title train_label(i), \
         for [i=1:runs] $valid index i-1 with points title valid_label(i), \
         level with lines title floor_name
} else {
    plot for [i=1:runs] $train index i-1 with lines \
             linecolor rgb light(i) linewidth 0.7 notitle, \
         for [i=1:runs] $smooth index i-1 with lines \
             linecolor rgb color_of(i) dashtype dash_of(i) linewidth 1.6 title train_label(i), \
         for [i=1:runs] $valid index i-1 with linespoints \
             linecolor rgb color_of(i) linewidth 0.8 dashtype 3 \
             pointtype shape_of(i) pointsize 0.7 title valid_label(i), \
         level with lines linecolor rgb "#444444" dashtype 2 linewidth 1.2 title floor_name, \
         0.95 * level with lines linecolor rgb "#FFFFFFFF" notitle # room below the floor
}
