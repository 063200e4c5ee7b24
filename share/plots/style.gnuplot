# SPDX-License-Identifier: MIT
# Settings of all plots. dt-plot writes before this: format (svg, png, pdf, eps or text), heading,
# panels (number of plots side by side).

# Colours that are distinguishable with colour blindness (Okabe and Ito 2008), without the yellow,
# which is too light for lines on paper.
array color[7] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xE69F00, 0x000000]
color_of(i) = color[(i - 1) % 7 + 1]
# Of transparency EPS would make an image: a lighter colour instead.
mixed(c) = (c & 0xFF) * 0.3 + 178
lighter(c) = int(mixed(c)) + 256 * int(mixed(c / 256)) + 65536 * int(mixed(c / 65536))
light(i) = format eq "eps" ? lighter(color_of(i)) : color_of(i) + 0xB0000000
# In greyscale, lines differ by dashes and points, and areas by their lightness.
array dash[4] = [1, 2, 4, 5]
dash_of(i) = dash[(i - 1) % 4 + 1]
array fill[7] = [0x0072B2, 0xE69F00, 0x333333, 0xD55E00, 0x56B4E9, 0xCC79A7, 0xF0E442]
fill_of(i) = fill[(i - 1) % 7 + 1]
array shape[5] = [7, 5, 9, 13, 11]
shape_of(i) = shape[(i - 1) % 5 + 1]

if (format eq "svg") \
    set terminal svg size panels == 1 ? 800 : 400 * panels,panels == 1 ? 500 : 420 noenhanced \
        font "DejaVu Sans,14" background "white"
if (format eq "png" && strstrt(GPVAL_TERMINALS, "pngcairo")) \
    set terminal pngcairo size panels == 1 ? 1600 : 1040 * panels,1000 noenhanced \
        font "DejaVu Sans,13" fontscale 2 linewidth 2 pointscale 2
if (format eq "png" && !strstrt(GPVAL_TERMINALS, "pngcairo")) \
    set terminal png truecolor size panels == 1 ? 1600 : 1040 * panels,1000 noenhanced \
        font "DejaVuSans" 24 linewidth 2
# For print: the width of a text column and a half, with 9 points of type, which is a scale of 0.75.
if (format eq "pdf" || format eq "eps") \
    set terminal pdfcairo size (panels == 1 ? 5.6 : 2.9 * panels)in,3.5in noenhanced \
        font "DejaVu Sans,9" fontscale 0.75 linewidth 0.8 pointscale 0.7
if (format eq "eps") \
    set terminal epscairo size (panels == 1 ? 5.6 : 2.9 * panels)in,3.5in noenhanced \
        font "DejaVu Sans,9" fontscale 0.75 linewidth 0.8 pointscale 0.7
if (format eq "text") set terminal dumb 80 24 noenhanced

# Characters that fit across the picture: PNG, PDF and EPS have larger type than SVG.
across = format eq "text" ? 78 : format eq "svg" ? 84 : 66
# A long heading, or label of an axis, has several lines, which end at spaces; one that no picture
# has room for is left as it is, since gnuplot's functions call themselves only so often.
space_in(s, n, most) = n < 2 ? most : s[n:n] eq " " ? n : space_in(s, n - 1, most)
lines_of(s, most) = strlen(s) <= most || strlen(s) > 12 * most ? s : \
    s[1:space_in(s, most, most)] . "\n" . lines_of(s[space_in(s, most, most) + 1:*], most)
heading = lines_of(heading, across)
along(s) = format eq "text" ? s : lines_of(s, int(0.62 * across)) # the y axis
# A longer text loses its middle: its end may tell it apart.
half(most) = int((most - 3) / 2)
middle_cut(s, most) = strlen(s) <= most ? s : \
    s[1:half(most)] . "..." . s[strlen(s) - half(most) + 1:*]

# As many digits as numbers have: gnuplot's own format can give two marks one label.
set format xy "%.10g"

# Above the drawing, so that no curve runs through it.
set key outside above left horizontal Left reverse noenhanced
# The heading is above both; in text it is below the key, as gnuplot places it.
if (panels == 1 && format eq "text") set title heading noenhanced
if (panels == 1 && format ne "text" && heading ne "") \
    set multiplot layout 1,1 title heading noenhanced
if (format ne "text") {
    set border 3 linecolor rgb "#444444"
    set tics nomirror out textcolor rgb "black"
    set grid y linecolor rgb "#DDDDDD" linetype 1 linewidth 0.5
    set key samplen 2 spacing 1.2
}
