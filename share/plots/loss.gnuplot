# SPDX-License-Identifier: MIT
# Loss curves. dt-plot writes before this style.gnuplot and: x_label, y_label, log_x,
# log_y, runs, keyed, name[1..runs], has_train_I, has_valid_I, floor_level (if any),
# and the data blocks $train, $smooth and $valid with a data set per run.

has_train(i) = value(sprintf("has_train_%d", i))
has_valid(i) = value(sprintf("has_valid_%d", i))
# One run needs no name in the key, since the title has it. For many runs the key would not fit
# with two entries each: one entry explains the points of all.
many = runs > 3 && format ne "text"
label(i, what) = runs == 1 ? what : many ? name[i] : name[i] . ", " . what

if (!keyed) { unset key }
set xlabel x_label
set ylabel y_label
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
valid_label(i) = has_valid(i) && !(many && has_train(i)) ? label(i, "validation") : ""
points = 0
do for [i=1:runs] { points = points || has_train(i) && has_valid(i) }
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
         NaN with points linecolor rgb "#444444" pointtype 7 pointsize 0.7 \
             title many && points ? "points: validation" : "", \
         level with lines linecolor rgb "#444444" dashtype (30, 10) linewidth 1.2 title floor_name, \
         0.95 * level with lines linecolor rgb "#FFFFFFFF" notitle # room below the floor
}
