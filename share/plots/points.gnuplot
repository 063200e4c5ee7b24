# SPDX-License-Identifier: MIT
# One value over another, a point per cell. Before this: style.gnuplot, x_label, y_label, log_x,
# log_y, points, name[], and $points: x, its low and high, y, its low and high.
set xlabel lines_of(x_label . (log_x ? ", log scale" : ""), int(0.7 * across)) # beside the key
set ylabel along(y_label . (log_y ? ", log scale" : ""))
set offsets graph 0.05, graph 0.05, graph 0.05, graph 0.05
# Marks of a logarithmic axis: powers of ten; below two decades more, and in a narrow range round
# numbers.
marks(low, high) = high / low < 300 ? "1 2 5" : "1"
first(low) = int(floor(log10(low)))
last(high) = int(ceil(log10(high)))
power(x) = 10.0**floor(log10(x))
round(x) = x >= 5 * power(x) ? 5 * power(x) : x >= 2 * power(x) ? 2 * power(x) : power(x)
apart(low, high) = high > low && high / low < 10 ? round((high - low) / 4) : 0
if (log_x) {
    stats $points using ($1 > 0 ? $1 : NaN) name "X" nooutput
    x_apart = apart(X_min, X_max)
    set logscale x
    set xrange [*:*] noextend
    set xtics ()
    if (x_apart > 0) {
        do for [k=0:int(X_max / x_apart) + 2] {
            set xtics add (sprintf("%.10g", k * x_apart) k * x_apart)
        }
    } else { do for [e=first(X_min):last(X_max)] { do for [m in marks(X_min, X_max)] {
        set xtics add (gprintf("%.0s%c", m * 10.0**e) m * 10.0**e)
    } } }
}
if (log_y) {
    stats $points using ($4 > 0 ? $4 : NaN) name "Y" nooutput
    y_apart = apart(Y_min, Y_max)
    set logscale y
    set yrange [*:*] noextend
    set ytics ()
    if (y_apart > 0) {
        do for [k=0:int(Y_max / y_apart) + 2] {
            set ytics add (sprintf("%.10g", k * y_apart) k * y_apart)
        }
    } else { do for [e=first(Y_min):last(Y_max)] { do for [m in marks(Y_min, Y_max)] {
        set ytics add (sprintf("%g", m * 10.0**e) m * 10.0**e)
    } } }
}
if (format eq "text") {
    plot for [i=1:points] $points every ::i-1::i-1 using 1:4 with points title name[i]
} else {
    set grid x y linecolor rgb "#DDDDDD" linetype 1 linewidth 0.5
    set key outside right top vertical Left reverse noenhanced
    plot for [i=1:points] $points every ::i-1::i-1 using 1:4:2:3:5:6 with xyerrorbars \
        linecolor rgb color_of(i) pointtype shape_of(i) pointsize 1.1 linewidth 1.2 title name[i]
}
