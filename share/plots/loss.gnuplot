# SPDX-License-Identifier: MIT
# Loss curves. dt-plot writes before this style.gnuplot and: x_label, y_label, of_loss,
# log_x, log_y, runs, keyed, name[1..runs], has_train_I, has_valid_I, is_mean_I, is_smoothed_I,
# points_I (of training),
# floor_level (if any), leftmost and rightmost (if log_x), lowest and highest (if log_y), the data blocks $train, $smooth and $valid with a data set per run, and
# $band and $valid_band: x, mean, low, high of those that are means of runs.

has_train(i) = value(sprintf("has_train_%d", i))
has_valid(i) = value(sprintf("has_valid_%d", i))
is_mean(i) = value(sprintf("is_mean_%d", i))
means = 0
is_smoothed(i) = value(sprintf("is_smoothed_%d", i))
smoothed = 0
do for [i=1:runs] { means = means || is_mean(i); smoothed = smoothed || is_smoothed(i) }
# One run needs no name in the key, since the title has it. For many runs the key would not fit
# with two entries each: one entry explains the points of all.
many = runs > 3
shown(i) = middle_cut(name[i], int(0.6 * across))
label(i, what) = runs == 1 && of_loss ? what : many || !of_loss ? shown(i) : shown(i) . ", " . what

has_floor = exists("floor_level")
if (!keyed || runs == 1 && !of_loss && !means && !smoothed && !has_floor) { unset key }
set xlabel x_label . (log_x ? ", log scale" : "")
set ylabel along(y_label . (log_y ? ", log scale" : ""))
if (log_x) {
    set logscale x
    set autoscale xfix
    # Below two decades more marks than powers of ten; in a narrow range, round numbers.
    if (rightmost < 100 * leftmost && rightmost > leftmost) {
        wanted = (rightmost - leftmost) / 5.0
        power = 10.0**floor(log10(wanted))
        apart = wanted >= 5 * power ? 5 * power : wanted >= 2 * power ? 2 * power : power
        set xtics ()
        if (rightmost < 3 * leftmost) {
            do for [k=int(leftmost / apart):int(rightmost / apart) + 1] {
                set xtics add (sprintf("%.10g", k * apart) k * apart)
            }
        } else { do for [e=int(floor(log10(leftmost))):int(ceil(log10(rightmost)))] {
            do for [m in "1 2 5"] { set xtics add (sprintf("%.10g", m * 10.0**e) m * 10.0**e) }
        } }
    }
} else {
    set xrange [0:*] noextend
    set format x "%.10g"
    set offsets 0, graph 0.01, 0, 0
}
if (log_y) {
    set logscale y
    set autoscale yfix
    # At least three marks with numbers, and no more than fit.
    decades = log10(highest) - log10(lowest)
    marks = decades > 6 ? "1" : decades > 1.3 ? "1 2 5" : "1 1.5 2 3 4 5 6 8"
    # In a narrow range, round numbers.
    wanted = (highest - lowest) / 4.0
    power = wanted > 0 ? 10.0**floor(log10(wanted)) : 1
    apart = wanted >= 5 * power ? 5 * power : wanted >= 2 * power ? 2 * power : power
    every = decades > 12 ? int(decades / 6) : 1
    set ytics ()
    if (decades < 0.3 && wanted > 0) {
        do for [k=int(lowest / apart):int(highest / apart) + 1] {
            set ytics add (sprintf("%.10g", k * apart) k * apart)
        }
    } else { do for [e=int(floor(log10(lowest))) - 1:int(ceil(log10(highest))) + 1:every] {
        do for [m in marks] { set ytics add (sprintf("%g", m * 10.0**e) m * 10.0**e) }
    } }
}

level = has_floor ? floor_level : NaN
floor_name = has_floor ? sprintf("floor %.3f", level) : ""
train_label(i) = has_train(i) ? label(i, "training") : ""
valid_label(i) = has_valid(i) && !(many && has_train(i)) ? label(i, "validation") : ""
points = 0
do for [i=1:runs] { points = points || has_train(i) && has_valid(i) }
# Text has 7 symbols for lines, of which the floor has one: letters tell many runs apart, small ones
# along a line and capitals for the validation.
points_of(i) = value(sprintf("points_%d", i))
apart(i) = int(points_of(i) / 10) + 1
# A line of one point is invisible.
lone(i) = points_of(i) == 1 ? 0 : NaN
if (format eq "text" && many) {
    plot for [i=1:runs] $smooth index i-1 with linespoints linetype i \
             pointtype sprintf("%c", 97 + (i - 1) % 26) pointinterval apart(i) \
             title train_label(i) . (is_smoothed(i) ? ", running mean" : ""), \
         for [i=1:runs] $valid index i-1 with points pointtype sprintf("%c", 65 + (i - 1) % 26) \
             title valid_label(i), \
         NaN with points pointtype "A" title points ? "capitals: validation" : "", \
         level with lines linetype 7 title floor_name
}
if (format eq "text" && !many) {
    plot for [i=1:runs] $smooth index i-1 with lines \
             title train_label(i) . (is_smoothed(i) ? ", running mean" : ""), \
         for [i=1:runs] $valid index i-1 with points title valid_label(i), \
         level with lines linetype 7 title floor_name
}
if (format ne "text") {
    plot for [i=1:runs] $band index i-1 using 1:3:4 with filledcurves \
             fillcolor rgb light(i) fillstyle solid noborder notitle, \
         for [i=1:runs] $train index i-1 using 1:(is_mean(i) ? NaN : $2) with lines \
             linecolor rgb light(i) linewidth 0.7 notitle, \
         for [i=1:runs] $smooth index i-1 with lines \
             linecolor rgb color_of(i) dashtype dash_of(i) linewidth 1.6 title train_label(i), \
         for [i=1:runs] $smooth index i-1 using 1:($2 + lone(i)) with points \
             linecolor rgb color_of(i) pointtype 1 notitle, \
         for [i=1:runs] $valid index i-1 with linespoints \
             linecolor rgb color_of(i) linewidth 0.8 dashtype 3 \
             pointtype shape_of(i) pointsize 0.7 title valid_label(i), \
         for [i=1:runs] $valid_band index i-1 using 1:2:3:4 with yerrorbars \
             linecolor rgb color_of(i) linewidth 0.8 pointtype shape_of(i) pointsize 0.7 notitle, \
         NaN with lines linecolor rgb "#BBBBBB" linewidth 0.7 \
             title smoothed ? "light: each step" : "", \
         NaN with filledcurves fillcolor rgb "#BBBBBB" fillstyle solid noborder \
             title means ? "shaded, bars: 95% interval" : "", \
         NaN with points linecolor rgb "#444444" pointtype 7 pointsize 0.7 \
             title many && points ? "points: validation" : "", \
         level with lines linecolor rgb "#444444" dashtype (30, 10) linewidth 1.2 title floor_name, \
         0.95 * level with lines linecolor rgb "#FFFFFFFF" notitle # room below the floor
}
