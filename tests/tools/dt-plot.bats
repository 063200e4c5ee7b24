# SPDX-License-Identifier: MIT
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    mkdir "$T/run"
    awk 'BEGIN {
        print "{\"run\":\"tale\"}"
        for (s = 1; s <= 300; s++) {
            loss = 1 + 5 * exp(-s / 40)
            printf "{\"step\":%d,\"tokens\":%d,\"time\":%.2f,\"loss\":%.4f}\n", s, s * 1000, s / 5, loss
            if (s % 50 == 0)
                printf "{\"step\":%d,\"tokens\":%d,\"time\":%.2f,\"val_loss\":%.4f}\n", s, s * 1000, s / 5, loss
        }
    }' >"$T/run/metrics.jsonl"
}

@test "draws an SVG with both curves and the floor" {
    dt-plot loss "$T/run" -o "$T/a.svg" --floor 0.9 --title "A & B <c>"
    grep -q '</svg>' "$T/a.svg"
    grep -q '>training<' "$T/a.svg"
    grep -q '>validation<' "$T/a.svg"
    grep -q '>floor 0.900<' "$T/a.svg"
    grep -q 'A &amp; B &lt;c' "$T/a.svg"
}

@test "a run of one logged step is a point" {
    mkdir "$T/one"
    echo '{"step":1,"loss":2.5}' >"$T/one/metrics.jsonl"
    dt-plot loss "$T/one" -o "$T/a.svg"
    dt-plot loss "$T/run" -o "$T/b.svg" # has points of the validation only
    grep -q "xlink:href='#gpPt0'" "$T/a.svg"
    refute grep -q "xlink:href='#gpPt0'" "$T/b.svg"
}

@test "draws a PNG" {
    dt-plot loss "$T/run/metrics.jsonl" -o "$T/a.png" --x time --log xy
    [ "$(head -c 8 "$T/a.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    [ "$(wc -c <"$T/a.png")" -gt 5000 ]
}

@test "the type of PDF and EPS has 9 points" {
    dt-plot loss "$T/run" -o "$T/a.eps"
    [ "$(sed -nE 's/^([0-9.]+) 0 0 -[0-9.]+ .* Tm$/\1/p' "$T/a.eps" | sort -u)" = 9 ]
}

@test "draws PDF and EPS for print, without images, and marks a logarithmic axis" {
    dt-plot loss "$T/run" -o "$T/a.pdf" --log y
    [ "$(head -c 5 "$T/a.pdf")" = %PDF- ]
    tail -n 1 "$T/a.pdf" | grep -q EOF
    dt-plot loss "$T/run" -o "$T/a.eps" --log y
    [[ "$(head -n 1 "$T/a.eps")" == "%!PS-Adobe-"*EPSF* ]]
    tail -n 1 "$T/a.eps" | grep -q EOF
    refute grep -q /ImageType "$T/a.eps"
    dt-plot loss "$T/run" -o "$T/a.svg" --log xy
    grep -q '>step, log scale<' "$T/a.svg"
    grep -q '>loss (nats per token), log scale<' "$T/a.svg"
    [ "$(grep -cE '>(1|1.5|2|3|4|5|6)<' "$T/a.svg")" -ge 5 ]
}

@test "without -o draws 80 columns of text" {
    dt-plot loss "$T/run" --floor 0.9 >"$T/a"
    grep -q 'floor 0.900' "$T/a"
    [ "$(awk 'length > 80' "$T/a" | wc -l)" -eq 0 ]
    refute grep -q "$(printf '\f')" "$T/a"
    dt-plot loss "$T/run" --floor 0.9 -o "$T/a.txt"
    cmp "$T/a" "$T/a.txt"
}

@test "several runs carry their names, and each axis its unit" {
    mkdir "$T/second"
    sed 's/"tale"/"fable"/' "$T/run/metrics.jsonl" >"$T/second/metrics.jsonl"
    dt-plot loss "$T/run" "$T/second" -o "$T/a.svg" --x tokens
    grep -q 'tale, training' "$T/a.svg"
    grep -q 'fable, validation' "$T/a.svg"
    grep -q '>tokens<' "$T/a.svg"
    dt-plot loss "$T/run" -o "$T/b.svg" --x time
    grep -q '>time (seconds)<' "$T/b.svg"
}

@test "titles and names are never commands" {
    cat >"$T/run/metrics.jsonl" <<END
{"run":"'; system('touch pwned'); '\`touch pwned\`"}
{"step":1,"loss":2}
{"step":2,"loss":1}
END
    cp -r "$T/run" "$T/other"
    sed -i 1d "$T/other/metrics.jsonl"
    cd "$T"
    dt-plot loss "$T/run" other -o "$T/a.svg" --title "'.system('touch pwned').' \"\`touch pwned\`
set output 'pwned'"
    [ ! -e "$T/pwned" ]
    grep -q "system('touch pwned').' \"\`touch pwned\` set output" "$T/a.svg"
    grep -q "\`touch pwned\`" "$T/a.svg"
}

@test "validation alone, training alone and a single point are drawn" {
    for kind in loss val_loss; do
        echo "{\"step\":1,\"$kind\":2.5}" >"$T/one"
        dt-plot loss "$T/one" -o "$T/a.svg"
        dt-plot loss "$T/one" >/dev/null
        grep -q '</svg>' "$T/a.svg"
    done
}

@test "a long run gives a small drawing" {
    awk 'BEGIN {for (s = 1; s <= 200000; s++) printf "{\"step\":%d,\"loss\":%.3f}\n", s, 2 + s % 7 / 10}' >"$T/long"
    dt-plot loss "$T/long" -o "$T/a.svg"
    [ "$(wc -c <"$T/a.svg")" -lt 200000 ]
}

@test "bad metrics are one line, and leave no file" {
    echo nonsense >>"$T/run/metrics.jsonl"
    run dt-plot loss "$T/run" -o "$T/a.svg"
    assert_one_line_error dt-plot
    [[ "$output" == *"metrics.jsonl:308: "* ]]
    run dt-plot loss "$T/none" -o "$T/a.svg"
    assert_one_line_error dt-plot
    echo '{"step":1,"loss":2}' >"$T/plain"
    run dt-plot loss "$T/plain" -o "$T/a.svg" --x tokens
    assert_one_line_error dt-plot
    [[ "$output" == *"lacks 'tokens'"* ]]
    [ ! -e "$T/a.svg" ]
}

@test "a missing gnuplot is one line that names the package" {
    mkdir "$T/bin"
    ln -s "$(command -v dt-plot)" "$T/bin/dt-plot"
    PATH="$T/bin" run dt-plot loss "$T/run" -o "$T/a.svg"
    assert_one_line_error dt-plot
    [[ "$output" == *"gnuplot-nox"* ]]
    [ ! -e "$T/a.svg" ]
}

@test "a failing gnuplot is one line, and leaves no file" {
    mkdir "$T/bin"
    printf '#!/bin/sh\necho "line 7: out of ink" >&2\nexit 3\n' >"$T/bin/gnuplot"
    chmod +x "$T/bin/gnuplot"
    PATH="$T/bin:$PATH" run dt-plot loss "$T/run" -o "$T/a.svg"
    assert_one_line_error dt-plot
    [[ "$output" == *"out of ink"* ]]
    [ ! -e "$T/a.svg" ]
}

@test "a drawing that gnuplot lost the end of is an error, though gnuplot exits 0" {
    mkdir "$T/bin"
    cd "$T"
    gnuplot=$(command -v gnuplot)
    for kept in 0 1 1500; do
        printf '#!/bin/sh\n"%s" "$@" | head -c %d\n' "$gnuplot" $kept >bin/gnuplot
        chmod +x bin/gnuplot
        for kind in svg png txt; do
            PATH="$T/bin:$PATH" run dt-plot loss run -o "a.$kind"
            assert_one_line_error dt-plot
            [ "$output" = "dt-plot: gnuplot's drawing was cut off after $kept bytes" ]
            [ ! -e "a.$kind" ]
        done
    done
}

@test "a file size limit is an error of one line, and does not truncate a smaller drawing" {
    cd "$T"
    dt-plot loss run -o whole.svg
    [ "$(wc -c <whole.svg)" -gt 20000 ]
    for signal in "trap '' XFSZ" "trap - XFSZ"; do
        run bash -c "$signal; ulimit -f 19; dt-plot loss run -o a.svg"
        assert_one_line_error dt-plot
        [ "$output" = "dt-plot: cannot write 'a.svg': File too large" ]
        [ "$(ls -A)" = "$(printf 'run\nwhole.svg')" ]
    done
    dt-plot loss run -o whole.txt
    (ulimit -f 19 && dt-plot loss run -o a.txt) # itself below the limit
    cmp whole.txt a.txt
}

@test "wrong usage ends with status 2" {
    run dt-plot
    [ "$status" -eq 2 ]
    run dt-plot loss
    [ "$status" -eq 2 ]
    run dt-plot loss "$T/run" -o "$T/a.jpg"
    [ "$status" -eq 2 ]
    run dt-plot loss "$T/run" -o "$T/a.html"
    [ "$status" -eq 2 ]
    run dt-plot report "$T/run" -o "$T/a.svg"
    [ "$status" -eq 2 ]
    run dt-plot report
    [ "$status" -eq 2 ]
}

@test "a full disk is one line" {
    run bash -c "dt-plot loss '$T/run' >/dev/full"
    assert_one_line_error dt-plot
}

@test "points that are not finite are counted in a warning" {
    printf '%s\n' '{"step":1,"loss":2}' '{"step":2,"loss":NaN}' '{"step":3,"loss":Infinity}' \
        '{"step":4,"loss":1,"val_loss":null}' >"$T/m"
    dt-plot loss "$T/m" >"$T/out" 2>"$T/err"
    [ "$(cat "$T/err")" = "dt-plot: 3 points not drawn: no finite number up to 1e300" ]
    [ -s "$T/out" ]
    echo '{"step":2,"loss":NaN}' >"$T/m"
    run dt-plot loss "$T/m"
    assert_one_line_error dt-plot
    [[ "$output" == *"holds no finite loss" ]]
}

@test "any number in lines of training is drawn, under its name" {
    cd "$T"
    printf '{"step":%d,"loss":%d,"lr":%s}\n' 1 8 1e-3 2 4 2e-3 3 3 3e-3 >metrics.jsonl
    dt-plot lr metrics.jsonl -o lr.svg
    grep -q '>learning rate<' lr.svg
    refute grep -q 'nats' lr.svg
    dt-plot loss metrics.jsonl -o loss.svg
    grep -q 'nats per token' loss.svg
    run dt-plot grad_norm metrics.jsonl
    assert_one_line_error dt-plot
    [[ "$output" == "dt-plot: metrics.jsonl: holds no grad_norm" ]]
    for pair in los:loss grad_norms:grad_norm reprot:report; do
        run dt-plot "${pair%:*}" metrics.jsonl
        assert_one_line_error dt-plot
        [ "$output" = "dt-plot: metrics.jsonl: holds no ${pair%:*}: did you mean 'dt-plot ${pair#*:}'?" ]
    done
    mkdir latest
    run dt-plot loss latest
    assert_one_line_error dt-plot
    [ "$output" = "dt-plot: latest: contains no metrics.jsonl: name the directory of a run, not that of a checkpoint" ]
}

# Rows of a matrix: two kinds over 1 to 4 ranks; the second kind loses a tenth each time.
make_rows() {
    dt-bench matrix -q -o "$T/rows" -r 3 -w 0 -a kind=good,bad -a ranks=1,2,4 -- awk -v n={ranks} -v k={kind} \
        'BEGIN { e = k == "good" ? 1 : 0.9; for (r = 1000 * n; n > 1; n /= 2) r *= e; print "{\"tokens_per_second\":" r ",\"mfu\":0.4,\"gflops\":50,\"flops_per_byte\":4,\"weights\":10}" }' >/dev/null
}

@test "scaling draws throughput, efficiency and MFU of each line, beside the ideal" {
    make_rows
    dt-plot scaling -a ranks "$T/rows" -o "$T/a.svg" --title 'Two kinds'
    for text in good bad ideal 'ranks, log scale' 'tokens per second, log scale' 'efficiency (%)' 'MFU (%)' 'Two kinds'; do
        grep -qF ">$text<" "$T/a.svg" || { echo "no $text"; return 1; }
    done
    dt-plot scaling -a ranks "$T/rows" >"$T/a.txt"
    grep -q ideal "$T/a.txt"
    [ "$(awk 'length > 80' "$T/a.txt" | wc -l)" -eq 0 ]
    run dt-plot scaling -a kind "$T/rows"
    assert_one_line_error dt-plot
    [[ "$output" == *"the value 'good' of axis kind must be a number above 0" ]]
    run dt-plot scaling -a rank "$T/rows"
    assert_one_line_error dt-plot
    run dt-plot scaling -a ranks -v speed "$T/rows" -o "$T/b.svg"
    assert_one_line_error dt-plot
    [ ! -e "$T/b.svg" ]
}

@test "bars are of one value or stacked, and lines of text in a terminal" {
    make_rows
    dt-plot bars -v tokens_per_second "$T/rows" -o "$T/a.svg"
    grep -qF '>good<' "$T/a.svg"
    grep -qF '>ranks 4<' "$T/a.svg"
    dt-plot bars -v tokens_per_second "$T/rows" >"$T/a.txt"
    grep -qE '^good, ranks 4 +\|#{40} 4000$' "$T/a.txt"
    grep -qE '^good, ranks 1 +\|#{10} 1000$' "$T/a.txt"
    dt-plot bars -v weights -v gflops "$T/rows" -o "$T/b.svg"
    grep -qF '>bad, ranks 2<' "$T/b.svg"
    grep -qF '>weights<' "$T/b.svg"
}

@test "on a logarithmic axis, from a power of ten below the smallest, are points instead of bars" {
    rows="$ROOT/share/results/pictures/speed.jsonl"
    dt-plot bars --log y -v 'times as fast' "$rows" >"$T/log"
    dt-plot bars -v 'times as fast' "$rows" >"$T/linear"
    # log(1.85) / log(130) of 40 columns, and 1.85 / 130 of them
    grep -qE '^torch\.compile: training +\| {4}o 1\.85$' "$T/log"
    grep -qE '^torch\.compile: training +\|# 1\.85$' "$T/linear"
    head -n 1 "$T/log" | grep -qx 'times as fast, log scale'
    dt-plot bars --log y -v 'times as fast' "$rows" -o "$T/log.svg"
    grep -q '<tspan[^>]*> 10</tspan>\|<text>10</text>\|> *10 *<' "$T/log.svg"
    grep -q '>times as fast, log scale<' "$T/log.svg"
    grep -q '>1.5 to 2.2<' "$T/log.svg" # of two values, both
    refute grep -q 'polygon' "$T/log.svg"
    run dt-plot bars --log x "$rows"
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt-plot: bars have a logarithmic axis y alone" ]
    run dt-plot bars --log y -v a -v b "$rows"
    [ "$status" -eq 2 ]
}

@test "points are one value over another, and a report of a matrix is drawn as its rows are" {
    dt-bench matrix -q -o "$T/rows" -r 3 -w 0 -a way=all,few -- \
        sh -c 'case $1 in all) echo "{\"bytes_sent\":1e9,\"val_loss\":2}";; *) echo "{\"bytes_sent\":1e7,\"val_loss\":3}";; esac' {way} >/dev/null
    dt-plot points -v bytes_sent -v val_loss --log x "$T/rows" -o "$T/a.svg"
    for text in all few 'bytes that rank 0 sent, log scale' 'validation loss (nats per token)' 10M; do
        grep -qF ">$text<" "$T/a.svg" || { echo "no $text"; return 1; }
    done
    dt-bench report --json "$T/rows" >"$T/rows.json"
    dt-plot points -v bytes_sent -v val_loss --log x "$T/rows.json" -o "$T/b.svg"
    cmp "$T/a.svg" "$T/b.svg"
    dt-plot bars -v val_loss "$T/rows" >"$T/a.txt"
    dt-plot bars -v val_loss "$T/rows.json" | cmp "$T/a.txt" -
    run dt-plot points -v val_loss "$T/rows"
    [ "$status" -eq 2 ]
    run dt-plot points -v val_loss -v none "$T/rows"
    assert_one_line_error dt-plot
    for wrong in '{}' '[1]' '{"design":{"command":["x"],"axes":{"a":["1"]}},"cells":[{"cell":{"a":"2"},"values":{}}]}' x; do
        echo "$wrong" >"$T/wrong.json"
        run dt-plot bars -v val_loss "$T/wrong.json"
        assert_one_line_error dt-plot
    done
}

@test "a sweep whose lowest loss is at the edge of its range says so" {
    dt-bench matrix -q -o "$T/edge" -r 1 -w 0 -a rate=1e-3,2e-3,4e-3 -- \
        awk 'BEGIN { print "{\"val_loss\":" 3 - 100 * {rate} ",\"speed\":" 3 - 100 * {rate} "}" }' >/dev/null
    dt-bench matrix -q -o "$T/inside" -r 1 -w 0 -a rate=1e-3,2e-3,4e-3 -- \
        awk 'BEGIN { print "{\"val_loss\":" ({rate} == 2e-3 ? 1 : 2) "}" }' >/dev/null
    dt-plot bars -v val_loss "$T/edge" -o "$T/edge.svg"
    grep -q '>lowest at the edge of the range, rate 4e-3: the best may be beyond<' "$T/edge.svg"
    dt-plot bars -v val_loss "$T/edge" | head -n 1 | grep -q 'lowest at the edge of the range, rate 4e-3'
    dt-plot bars -v speed "$T/edge" | head -n 1 | grep -qx speed
    dt-plot bars -v val_loss "$T/inside" | head -n 1 | grep -qx 'validation loss (nats per token)'
    # The edges are those of the numbers, in whatever order they stand.
    for rates in 2e-3,1e-3,4e-3 4e-3,1e-3,2e-3; do
        dt-bench matrix -q -o "$T/$rates" -r 1 -w 0 -a rate=$rates -- \
            awk 'BEGIN { print "{\"val_loss\":" ({rate} == 2e-3 ? 1 : 2) ",\"other_loss\":" ({rate} == 1e-3 ? 1 : 2) "}" }' >/dev/null
        dt-plot bars -v val_loss "$T/$rates" | head -n 1 | grep -qx 'validation loss (nats per token)'
        dt-plot bars -v other_loss "$T/$rates" | head -n 1 | grep -q 'lowest at the edge of the range, rate 1e-3'
    done
}

@test "bars that leave out runs without the value are counted below the picture" {
    dt-bench matrix -q -o "$T/some" -r 2 -w 0 -a a=1,2 -- \
        sh -c 'echo "{\"x\":1$([ {a}{seed} = 11 ] || echo ,\"y\":2)}"' >/dev/null
    dt-plot bars -v y "$T/some" -o "$T/some.svg"
    grep -q '>1 of 2 bars leave out runs that lack the value<' "$T/some.svg"
    dt-plot bars -v x -v y "$T/some" | head -n 1 | grep -qx '1 of 4 bars leave out runs that lack the value'
    dt-plot bars -v x "$T/some" | head -n 1 | grep -qx x
}

@test "stacks that lack a value are counted, since they look like a smaller sum" {
    dt-bench matrix -q -o "$T/parts" -r 2 -w 0 -a a=1,2,3 -- \
        sh -c 'echo "{\"x\":1$([ {a} = 2 ] || [ {a}{seed} = 11 ] || echo ,\"y\":2)}"' >/dev/null
    dt-plot bars -v x -v y "$T/parts" | head -n 1 | grep -qx '1 of 3 stacks lack a value; 1 of 5 bars leave out runs that lack the value'
    dt-plot bars -v x -v y "$T/parts" -o "$T/parts.svg"
    grep -q '>1 of 3 stacks lack a value; ' "$T/parts.svg"
}

@test "many bars have upright labels, and a long title several lines, of which nothing is lost" {
    dt-bench matrix -q -o "$T/many" -r 1 -w 0 -a "name=$(seq -s , -f 'shape-%g' 40)" -- sh -c 'echo "{\"x\":1}"' {name} >/dev/null
    title=$(seq -s ' ' -f 'word%g' 20)
    dt-plot bars -v x "$T/many" --title "$title" -o "$T/many.svg"
    [ "$(grep -c 'rotate(-90).*' "$T/many.svg")" -ge 40 ]
    places "$T/many.svg" | sed 's/^[^ ]* //' | grep '^word' >"$T/lines"
    [ "$(wc -l <"$T/lines")" -eq 2 ]
    [ "$(tr -s '\n ' ' ' <"$T/lines" | sed 's/ $//')" = "$title" ]
    for text in shape-1 shape-40; do places "$T/many.svg" | grep -q " $text$"; done
}

@test "many long labels leave room for the bars, and keep their beginning and end" {
    dt-bench matrix -q -o "$T/long" -r 1 -w 0 -a "name=$(seq -s , -f 'a very long name of a thing that was measured with many words %g' 30)" -- \
        sh -c 'echo "{\"x\":3}"' {name} >/dev/null
    dt-plot bars -v x "$T/long" --title Heading -o "$T/long.svg"
    places "$T/long.svg" >"$T/places"
    cat "$T/places"
    grep -qE ' a very long name of a thin.*\.\.\..* with many words 30$' "$T/places"
    bottom=$(awk '$2 == "0" { print int($1) }' "$T/places") heading=$(awk '$2 == "Heading" { print int($1) }' "$T/places")
    [ "$bottom" -gt 200 ] && [ "$bottom" -lt 300 ] && [ "$heading" -lt 50 ]
}

@test "a long label of the y axis has several lines, of which nothing is lost" {
    name=val_loss_common-crawl-2024-quality-filtered-english
    printf '{"step":%d,"%s":%d}\n' 1 $name 3 2 $name 2 >"$T/run/metrics.jsonl"
    dt-plot $name "$T/run" -o "$T/a.svg"
    [ "$(places "$T/a.svg" | cut -d ' ' -f 2- | grep -A2 '^validation loss' | tr -s ' \n' ' ')" = \
        'validation loss of common-crawl-2024-quality-filtered-english (nats per token) ' ]
}

@test "logarithmic axes of curves have marks beside a far floor and below a decade, and the floor its name" {
    for s in {1..8}; do echo "{\"step\":$((s * 150)),\"val_loss_web\":$((600 - s)).5}"; done >"$T/run/metrics.jsonl"
    dt-plot val_loss_web "$T/run" --log xy --floor 500 -o "$T/a.svg"
    places "$T/a.svg" >"$T/places"
    cat "$T/places"
    for text in 'floor 500.000' run 200 500 1000 520 580; do grep -q " $text$" "$T/places"; done
    refute grep -q ' 598$' "$T/places"
}

@test "the key has the beginning and the end of long names" {
    name=a-model-of-a-hundred-million-parameters-on-many-words-of-the-web-and-books-with-seed
    for seed in 1 2; do
        mkdir "$T/$name-$seed"
        printf '{"step":%d,"loss":%d}\n' 1 3 2 2 >"$T/$name-$seed/metrics.jsonl"
    done
    dt-plot loss "$T/$name"-* -o "$T/a.svg"
    for seed in 1 2; do grep -qE ">a-model-of-.*\.\.\..*-books-with-seed-$seed, training<" "$T/a.svg"; done
}

@test "a title of any length is drawn" {
    printf '{"step":%d,"loss":%d}\n' 1 3 2 2 >"$T/run/metrics.jsonl"
    for n in 1000 1008 20000; do
        for word in x 'a ' 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy z '; do
            dt-plot loss "$T/run" -o "$T/a.svg" --title "$(yes "$word" | tr -d '\n' | head -c $n)"
        done
    done
}

@test "titles and labels of PDF, whose type is larger, do not overlap and are not cut" {
    command -v pdftotext >/dev/null || skip "no pdftotext (poppler-utils)"
    dt-bench matrix -q -o "$T/six" -r 1 -w 0 -a "name=$(seq -s , -f 'wide-name-%g' 6)" -- sh -c 'echo "{\"x\":3}"' {name} >/dev/null
    dt-plot bars -v x "$T/six" -o "$T/a.pdf" \
        --title 'Twenty models of a hundred million words measured with their moments under a window'
    pdftotext -bbox "$T/a.pdf" "$T/words"
    cat "$T/words"
    [ "$(sed -nE 's/.*xMin="([-0-9]+).*>Twenty<.*/\1/p' "$T/words")" -gt 5 ]
    # upright or tilted, which pdftotext sees as taller than one line
    sed -nE 's/.*yMin="([0-9.]+)".*yMax="([0-9.]+)">wide-name-1<.*/\1 \2/p' "$T/words" | awk '{ exit !($2 - $1 > 15) }'
}

@test "the order of the axis does not change the ideal and the efficiency of scaling" {
    for ranks in 1,2,4 4,1,2; do
        dt-bench matrix -q -o "$T/$ranks" -r 1 -w 0 -a ranks=$ranks -v tokens_per_second -- \
            awk 'BEGIN { print "{\"tokens_per_second\":" 100 * {ranks} ^ 0.9 "}" }' >/dev/null
        dt-plot scaling "$T/$ranks" -o "$T/$ranks.svg"
    done
    cmp "$T/1,2,4.svg" "$T/4,1,2.svg"
}

@test "a logarithmic axis without a value above 0 is refused by the name of the value" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a x=1,2 -v a -- \
        awk 'BEGIN { x = {x} - 1; print "{\"a\":" (-x) ",\"b\":" x ",\"tokens_per_second\":0}" }' >/dev/null
    while read -r name chart; do
        run dt-plot $chart "$T/rows" -o "$T/a.svg"
        [ "$status" -eq 1 ]
        [ "$output" = "dt-plot: $T/rows: no '$name' is above 0, as a logarithmic axis needs" ] || { echo "$output"; return 1; }
    done <<END
a points --log x -v a -v b
a points --log xy -v b -v a
tokens_per_second scaling -a x
END
    dt-plot points --log x -v b -v a "$T/rows" -o "$T/a.svg"
}

@test "labels as text are cut between characters" {
    cd "$T"
    name=a$(printf 'é%.0s' {1..40})
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a x=$name,é -v n -- sh -c 'echo "{\"n\":3}"' '{x}' >/dev/null
    dt-plot bars -v n "$T/rows" >text
    grep -qF "a$(printf 'é%.0s' {1..29}) |#" text
    grep -qF "é$(printf ' %.0s' {1..29}) |#" text
    mkdir -p run
    printf '{"step":1,"tensor":"%s","parameter_norm":1,"update_norm":1}\n' "$name" >run/tensors.jsonl
    dt-plot inside run | grep -qxF "$(printf 'é%.0s' {1..20}) |.|"
}

@test "a last line of tensors without its end is left out, as of metrics" {
    cd "$T"
    mkdir -p run
    printf '{"step":%d,"loss":%d}\n' 1 3 2 2 >run/metrics.jsonl
    printf '{"step":%d,"tensor":"a","parameter_norm":1,"update_norm":1}\n' 1 2 >run/tensors.jsonl
    dt-plot inside run >whole
    printf '{"step":3,"tensor":"a","param' >>run/tensors.jsonl
    dt-plot inside run | cmp - whole
    dt-plot report run | grep -qF 'L2 norm of the update over that of the parameters'
    sed -i 's/2,"tensor/2,tensor/' run/tensors.jsonl
    run dt-plot inside run
    [ "$status" -eq 1 ]
    [[ "$output" = *run/tensors.jsonl:2:* ]]
}

@test "a logarithmic scale of colours has marks in any range" {
    mkdir -p "$T/run"
    for range in '11 14' '14.1 14.1001' '1e-9 1e3' '0.03 0.4' '7 7'; do
        read -r low high <<<"$range"
        printf '{"step":%d,"tensor":"a","parameter_norm":%s,"update_norm":1}\n' 1 $low 2 $high >"$T/run/tensors.jsonl"
        dt-plot inside "$T/run" -v parameter_norm -o "$T/a.svg"
        # those beyond the map's right edge
        sed -nE 's/.*translate\(([0-9]+).*/\1/p; s/.*<text>([0-9][0-9.e+-]*)<.*/mark \1/p' "$T/a.svg" |
            awk '$1 != "mark" { x = $1; next } x > 690 { print $2 }' | sort -u >"$T/marks"
        [ "$(wc -l <"$T/marks")" -ge 3 ] || { echo "$range"; cat "$T/marks"; return 1; }
    done
}

@test "bars of one axis are labelled below, with medians above" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a rate=1e-3,2e-3 -- \
        awk 'BEGIN { r = {rate}; print "{\"val_loss\":" 3 + 123.4 * r ",\"speed\":" 12345678 * r "}" }' >/dev/null
    dt-plot bars -v val_loss "$T/rows" -o "$T/a.svg"
    dt-plot bars -v speed "$T/rows" -o "$T/b.svg"
    for text in 'rate 1e-3' 'rate 2e-3' 3.123 3.247 12346 24691; do
        grep -hqF ">$text<" "$T"/[ab].svg || { echo "no $text"; return 1; }
    done
}

@test "a logarithmic axis has marks in any range" {
    local low high
    for range in '1e-300 1e300' '5 5.0000001' '5 5' '0.99 1.01' '1 900' '1e-5 3e-3'; do
        read -r low high <<<"$range"
        printf '{"step":%d,"loss":%s}\n' 1 $high 2 $low >"$T/m"
        dt-plot loss "$T/m" --log y -o "$T/a.svg"
        [ "$range" = '5 5' ] || [ "$(places "$T/a.svg" | grep -E ' [0-9][0-9.e+-]*$' | cut -d ' ' -f 1 | sort -u | wc -l)" -ge 4 ] || { echo "$range"; places "$T/a.svg"; return 1; }
    done
}

@test "a percent sign in a label is not a number format" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a kind=50%s,%d%n,100% -a n=1,2 -- \
        sh -c 'echo "{\"x\":$1}"' {kind} {n} >/dev/null
    dt-plot bars -v x "$T/rows" -o "$T/a.svg"
    for text in '50%s' '%d%n' '100%'; do
        grep -qF ">$text<" "$T/a.svg" || { echo "no $text"; return 1; }
    done
    cat >"$T/trace.json" <<'END'
{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"50% of %s"}},
{"ph":"X","name":"forward","pid":1,"tid":0,"ts":30,"dur":30}]}
END
    dt-plot timeline "$T/trace.json" -o "$T/b.svg"
    grep -qF '>50% of %s<' "$T/b.svg"
}

@test "the key of a timeline with long names of lanes is not cut" {
    {
        echo '{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 0 operation of it"}}'
        for name in step backward forward loader head matmul norm_forward; do
            echo ",{\"ph\":\"X\",\"name\":\"$name\",\"pid\":1,\"tid\":0,\"ts\":30,\"dur\":30}"
        done
        echo ']}'
    } >"$T/trace.json"
    dt-plot timeline "$T/trace.json" -o "$T/a.svg"
    # of 800 pixels, of which this name needs 100
    grep -B 1 '<text>norm_forward<' "$T/a.svg" >"$T/place"
    [ "$(sed -nE 's/.*translate\(([0-9]+).*/\1/p' "$T/place")" -lt 700 ]
}

@test "values of dt-metrics have labels with units" {
    echo '{"step":1,"loss":2,"gradient_noise":3,"gradient_signal":1,"logit_rms":1,"logit_max":2,"val_accuracy":0.1,"reward":1,"other_thing":1}' >"$T/m"
    while IFS=: read -r name label; do
        dt-plot $name "$T/m" -o "$T/a.svg"
        grep -qF ">$label<" "$T/a.svg" || { echo "$name"; return 1; }
    done <<'END'
gradient_noise:variance of the gradient of one token, estimated
logit_max:largest magnitude of the logits
val_accuracy:validation accuracy (fraction of tokens)
other_thing:other_thing
END
}

@test "marks of scaling say where they are" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a n=1,2,4 -- \
        awk 'BEGIN { print "{\"tokens_per_second\":" {n} * 1100 "}" }' >/dev/null
    dt-plot scaling "$T/rows" -o "$T/a.svg"
    grep -qF '>1.5k<' "$T/a.svg"
    [ "$(grep -cF '>2k<' "$T/a.svg")" -eq 1 ]
}

@test "long labels of bars are not cut at the left" {
    for i in 1 2 3 4; do
        mkdir "$T/gpt2-124m-lr3e-4-wd0.1-seed$i"
        cp "$T/run/metrics.jsonl" "$T/gpt2-124m-lr3e-4-wd0.1-seed$i"
        sed -i 1d "$T/gpt2-124m-lr3e-4-wd0.1-seed$i/metrics.jsonl"
    done
    dt-plot target --target 2 "$T"/gpt2* -o "$T/a.svg"
    # 29 characters at 30 degrees end at the middle of the first bar, and need 200 of 800 pixels
    grep -B 1 '>gpt2-124m-lr3e-4-wd0.1-seed1<' "$T/a.svg" >"$T/place"
    [ "$(sed -nE 's/.*translate\(([0-9]+).*/\1/p' "$T/place")" -gt 200 ]
}

@test "the marks of a constant have different labels" {
    printf '{"step":%d,"loss":2,"lr":0.001}\n' 1 2 3 >"$T/m"
    dt-plot lr "$T/m" -o "$T/a.svg"
    for label in 0.00099 0.000995 0.001 0.001005 0.00101; do
        grep -qF ">$label<" "$T/a.svg" || { echo "no $label"; return 1; }
    done
}

@test "a roofline needs peak and bandwidth" {
    make_rows
    dt-plot roofline --peak 100 --bandwidth 20 "$T/rows" -o "$T/a.svg"
    grep -qF '>100 GFLOP/s, 20.0 GB/s<' "$T/a.svg"
    grep -qF '>good, ranks 1<' "$T/a.svg"
    run dt-plot roofline "$T/rows"
    assert_one_line_error dt-plot
    [[ "$output" == *"give --peak and --bandwidth" ]]
}

@test "a roofline shows all points, also with a peak below the bandwidth" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a n=1,64 -- \
        awk 'BEGIN { print "{\"gflops\":" 10 * {n} ",\"flops_per_byte\":" 5 * {n} "}" }' >/dev/null
    dt-plot roofline --peak 100 --bandwidth 120 "$T/rows" -o "$T/a.svg"
    grep -qF '>100 GFLOP/s, 120.0 GB/s<' "$T/a.svg"
    # in the drawing and in the key
    [ "$(grep -c "xlink:href='#gpPt[46]'" "$T/a.svg")" -eq 4 ] || { grep -n "#gpPt" "$T/a.svg"; return 1; }
    grep -qF '>GFLOP/s, log scale<' "$T/a.svg"
}

@test "logarithmic axes of points and bars have marks in a narrow range" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a n=1,2 -- \
        awk 'BEGIN { print "{\"a\":" 100 * {n} ",\"b\":" 2.5 + {n} / 10 "}" }' >/dev/null
    dt-plot points --log xy -v a -v b "$T/rows" -o "$T/a.svg"
    for mark in 120 160 200 2.62 2.66 2.7; do
        grep -qF ">$mark<" "$T/a.svg" || { echo "no $mark"; grep '<text>' "$T/a.svg"; return 1; }
    done
    dt-plot bars --log y -v a "$T/rows" -o "$T/a.svg"
    [ "$(grep -cE '<text>(100|200)<' "$T/a.svg")" -eq 4 ] || { grep '<text>' "$T/a.svg"; return 1; } # labels of bars, too
}

@test "target draws where runs reach a loss" {
    mkdir "$T/slow"
    sed 's/"tale"/"slow"/; s/"time":/"time":1/' "$T/run/metrics.jsonl" >"$T/slow/metrics.jsonl"
    dt-plot target --target 2 "$T/run" "$T/slow" >"$T/a.txt"
    [ "$(head -n 1 "$T/a.txt")" = "steps to loss 2" ]
    grep -qE '^tale +\|#{40} 100$' "$T/a.txt"
    dt-plot target --target 2 --x time "$T/run" "$T/slow" | grep -qE '^tale +\|#+ 20$'
    dt-plot target --target 0.5 "$T/run" | grep -qE '^tale +\| -$'
    # one low loss at the end is not the mean
    for s in $(seq 200); do echo "{\"step\":$s,\"loss\":$((s == 200 ? 2 : 4 + s % 2 * 2))}"; done >"$T/m"
    dt-plot target --target 3 "$T/m" | grep -qE '^m +\| -$'
    run dt-plot target "$T/run"
    [ "$status" -eq 2 ]
}

@test "a timeline has a row for each thread and a colour for each kind of event" {
    cat >"$T/trace.json" <<'END'
{"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"stage 1"}},
{"ph":"X","name":"backward 0","pid":1,"tid":0,"ts":30,"dur":30},
{"ph":"X","name":"forward 0","pid":0,"tid":0,"ts":0,"dur":30},
{"ph":"X","name":"forward 1","pid":0,"tid":0,"ts":30,"dur":30}]}
END
    dt-plot timeline "$T/trace.json" >"$T/a.txt"
    cat "$T/a.txt"
    f=$(printf 'F%.0s' {1..56}) dots=$(printf '.%.0s' {1..28}) b=$(printf 'B%.0s' {1..28})
    grep -qxE "0\.0 +\|$f\|" "$T/a.txt"
    grep -qxE "stage 1 +\|${dots//./\\.}$b\|" "$T/a.txt"
    [[ "$(tail -n 1 "$T/a.txt")" == "F forward, B backward; "* ]] # in the order of the threads
    dt-plot timeline "$T/trace.json" -o "$T/a.svg"
    for text in forward backward 'stage 1' 'time (microseconds)'; do
        grep -qF ">$text<" "$T/a.svg" || { echo "no $text"; return 1; }
    done
    local n=0 kind
    for kind in a b c d e f g h a g; do
        printf '{"ph":"X","name":"%s 1","pid":0,"ts":%d,"dur":1}\n' $kind $((n++))
    done | paste -sd , | sed 's/.*/[&]/' >"$T/trace.json" # eight kinds, of seven colours
    [[ "$(dt-plot timeline "$T/trace.json" | tail -n 1)" == "A a, G g, B b, C c, D d, E e, O other; "* ]]
    echo '[{"ph":null},{"ph":"X","name":null,"pid":0,"ts":0,"dur":1}]' >"$T/trace.json"
    [[ "$(dt-plot timeline "$T/trace.json" | tail -n 1)" == "O other; "* ]]
    for wrong in '{}' '[]' '{"traceEvents":[]}' '{"traceEvents":[{"ph":"X"}]}' '[1,2]' 'x'; do
        echo "$wrong" >"$T/trace.json"
        run dt-plot timeline "$T/trace.json"
        assert_one_line_error dt-plot
    done
}

@test "values of a schedule are not smoothed" {
    for s in $(seq 200); do echo "{\"step\":$s,\"lr\":$((s % 2)),\"loss\":$((s % 2))}"; done >"$T/m"
    [ "$(dt-plot lr "$T/m" | grep -cE '\*{10}')" -ge 15 ]
    [ "$(dt-plot loss "$T/m" | grep -cE '\*{10}')" -lt 10 ]
}

@test "the running mean is named where it is drawn, and a short run has none" {
    for s in $(seq 120); do echo "{\"step\":$s,\"loss\":$((200 - s)),\"grad_norm\":$s}"; done >"$T/m"
    head -n 20 "$T/m" >"$T/short"
    dt-plot loss "$T/m" | grep -q 'training, running mean'
    for what in loss grad_norm; do
        dt-plot $what "$T/m" -o "$T/a.svg"
        grep -q '>light: each step<' "$T/a.svg"
        dt-plot $what "$T/short" -o "$T/a.svg"
        refute grep -q "each step" "$T/a.svg"
    done
    refute grep -q 'running mean' <(dt-plot loss "$T/short")
}

# The texts of an SVG, one per line: distance from the top, and text.
places() {
    sed -nE 's/.*translate\([0-9.]+,([0-9.]+)\).*/y \1/p; s/.*>([^<>]+)<\/(text|tspan)>.*/text \1/p' "$1" |
        awk '$1 == "y" { y = $2; next } { sub(/^text */, ""); print y, $0 }'
}

@test "the title is above the key, and the key above the drawing" {
    printf '{"step":%d,"loss":%d}\n' 1 8 2 4 3 3 >"$T/run/metrics.jsonl"
    dt-plot loss "$T/run" --title "A heading" -o "$T/a.svg"
    places "$T/a.svg" >"$T/places"
    cat "$T/places"
    [ "$(sort -n "$T/places" | grep -E ' (A heading|training|8|step)$' | cut -d ' ' -f 2- | tr '\n' ' ')" = "A heading training 8 step " ]
}

@test "runs with equal names are labelled by path, and lines differ without colours" {
    mkdir -p "$T/a/1" "$T/b/1"
    printf '{"step":%d,"loss":%d}\n' 1 8 2 4 3 3 | tee "$T/a/1/metrics.jsonl" >"$T/b/1/metrics.jsonl"
    cd "$T"
    dt-plot loss a/1 b/1 -o both.svg
    places both.svg | grep -q 'a/1, training$'
    places both.svg | grep -q 'b/1, training$'
    grep -q 'stroke-dasharray' both.svg
    dt-plot target --target 5 a/1 b/1 | grep -q '^b/1 '
}

@test "many curves have an entry each, and their validation one together" {
    for run in a b c d; do
        mkdir -p "$T/$run"
        printf '{"step":1,"%s":%d}\n' loss 5 val_loss 5 loss 4 >"$T/$run/metrics.jsonl"
    done
    dt-plot loss "$T/a" "$T/b" "$T/c" "$T/d" -o "$T/four.svg"
    places "$T/four.svg" | grep -oE ' (a|d|points: validation)$' | sort | uniq -c | tr -s ' \n' ' ' >"$T/entries"
    grep -qx ' 1 a 1 d 1 points: validation ' "$T/entries" || { cat "$T/entries"; return 1; }
    dt-plot loss "$T/a" "$T/b" -o "$T/two.svg"
    places "$T/two.svg" | grep -q ' b, validation$'
    refute grep -q 'points: validation' "$T/two.svg"
}

@test "long labels below bars are slanted" {
    for name in short "$(printf 'long%.0s' {1..12})"; do
        dt-bench matrix -q -o "$T/$name" -r 1 -w 0 -a "way=${name}1,${name}2" -- \
            sh -c 'echo "{\"x\":1}"' {way} >/dev/null
        dt-plot bars -v x "$T/$name" -o "$T/$name.svg"
    done
    grep -B 3 '>long' "$T"/long*.svg | grep -q 'rotate(-30'
    refute grep -q 'rotate(-30' "$T/short.svg"
}

@test "large bars have a unit, and axis labels no trailing zeros" {
    dt-bench matrix -q -o "$T/rows" -r 1 -w 0 -a n=1,2 -- \
        awk 'BEGIN { printf "{\"rate\":%d}\n", {n} * 900000 }' >/dev/null
    dt-plot bars -v rate "$T/rows" -o "$T/bars.svg"
    places "$T/bars.svg" | grep -q 'rate (millions)$'
    places "$T/bars.svg" | grep -qE ' 1\.6$'
}

@test "an option that a drawing does not take is refused, and no file is made" {
    for wrong in "loss --peak 1" "loss -v x" "loss --target 2" "lr -a n" "target --target 2 --log x" \
        "target --target 2 --floor 1" "scaling --floor 1" "scaling -v a -v b" "bars -a n" "bars --x time" \
        "roofline -v x" "timeline --x time" "timeline --peak 1"; do
        run dt-plot $wrong "$T/run" -o "$T/a.svg"
        [ "$status" -eq 2 ] || { echo "$wrong: $status: $output"; return 1; }
        [ "${#lines[@]}" -eq 2 ]
        [[ "${lines[0]}" == "dt-plot: ${wrong%% *} takes no --"* || "$wrong" == "scaling -v"* ]]
    done
    for wrong in scaling bars roofline timeline; do
        run dt-plot $wrong "$T/run" "$T/run"
        [ "$status" -eq 2 ]
    done
    [ ! -e "$T/a.svg" ]
}

@test "a trace comes from a pipe, and each of its events is whole" {
    cd "$T"
    settings="--set model.vocab_size=1000 --set distributed.pp=2 --set training.gradient_accumulation_steps=4"
    dt-plan $settings --trace step.json >/dev/null
    dt-plot timeline step.json >file
    dt-plan $settings --trace - | dt-plot timeline - >piped
    cmp file piped
    gzip step.json
    dt-plot timeline step.json.gz | cmp file -
    run dt-plan $settings --trace - --json
    [ "$status" -eq 2 ]
    gzip -d step.json.gz
    for size in 0 1 100 $(($(wc -c <step.json) - 3)); do
        head -c $size step.json >cut.json
        run dt-plot timeline cut.json
        assert_one_line_error dt-plot
    done
    for event in '{"ph":"X","ts":1}' '{"ph":"X","dur":1}' '{"ph":"X","ts":"a","dur":1}' \
        '{"ph":"X","ts":1e999,"dur":1}' '{"ph":"X","ts":1,"dur":-1}'; do
        echo "[{\"ph\":\"X\",\"ts\":0,\"dur\":1},$event]" >bad.json
        run dt-plot timeline bad.json
        assert_one_line_error dt-plot
        [[ "$output" == "dt-plot: bad.json: event 2: "* ]]
    done
    seq 513 | sed 's/.*/{"ph":"X","pid":&,"ts":0,"dur":1}/' | paste -sd , | sed 's/.*/[&]/' >wide.json
    run dt-plot timeline wide.json
    assert_one_line_error dt-plot
    [[ "$output" == *": more than 512 lanes cannot be drawn" ]]
}

@test "points not above 0 on a logarithmic axis are counted in a warning" {
    printf '{"step":%d,"loss":%s}\n' 0 4 1 -1 2 0 3 2 4 1 >"$T/m"
    dt-plot loss "$T/m" --log y >"$T/out" 2>"$T/err"
    [ "$(cat "$T/err")" = "dt-plot: 2 points not drawn: not above 0, on a logarithmic axis" ]
    dt-plot loss "$T/m" --log xy >"$T/out" 2>"$T/err"
    [ "$(cat "$T/err")" = "dt-plot: 3 points not drawn: not above 0, on a logarithmic axis" ]
    dt-plot loss "$T/m" 2>"$T/err" >"$T/out"
    [ ! -s "$T/err" ]
    echo '{"step":1,"loss":0}' >"$T/m"
    run dt-plot loss "$T/m" --log y
    [ "$status" -eq 1 ]
    [ "${lines[1]}" = "dt-plot: nothing to draw: no point is above 0" ]
    run dt-plot loss "$T/run" --log y --floor 0
    [ "$status" -eq 2 ]
}

@test "numbers of any size are drawn, and beside huge ones small ones" {
    printf '{"step":%d,"loss":%s}\n' 1 1e300 2 1e300 3 -1e300 4 2 5 1e-300 >"$T/m"
    dt-plot loss "$T/m" >"$T/out"
    printf '{"step":%d,"loss":%s}\n' 1 1.7e308 2 2 3 1 >"$T/m"
    dt-plot loss "$T/m" 2>"$T/err" >"$T/out"
    [ "$(cat "$T/err")" = "dt-plot: 1 point not drawn: no finite number up to 1e300" ]
}

@test "many runs are drawn without their names" {
    mkdir "$T/many"
    for i in $(seq 25); do printf '{"step":%d,"loss":%d}\n' 1 $((i + 100)) 2 2 >"$T/many/run-$i"; done
    dt-plot loss "$T"/many/run-1? -o "$T/few.svg"
    places "$T/few.svg" | grep -q ' run-13'
    dt-plot loss "$T"/many/* -o "$T/many.svg" 2>"$T/err"
    [ "$(cat "$T/err")" = "dt-plot: 25 runs are drawn without their names: more than 24" ]
    refute grep -q ' run-13' <(places "$T/many.svg") # only as a tooltip
}

@test "in a terminal each of many runs has its own symbols, and the floor too" {
    mkdir "$T/many"
    for i in $(seq 24); do
        printf '{"step":%d,"loss":%d}\n' 1 $((i + 100)) 2 2 >"$T/many/run-$i"
        echo '{"step":2,"val_loss":3}' >>"$T/many/run-$i"
    done
    for count in 2 3 4 7 12 24; do
        files=()
        for i in $(seq $count); do files+=("$T/many/run-$i"); done
        dt-plot loss "${files[@]}" --floor 1 >"$T/plot"
        grep -oE '[^ ]{7}(run-|floor)' "$T/plot" | sed -E 's/run-|floor//' >"$T/symbols"
        [ "$(wc -l <"$T/symbols")" -eq $((count + 1)) ]
        [ -z "$(sort "$T/symbols" | uniq -d)" ]
        [ "$(grep -c 'A   capitals: validation' "$T/plot")" -eq $((count > 3)) ]
    done
}

@test "target counts points that are not finite, and names missing members" {
    printf '{"step":%d,"tokens":%s,"loss":%s}\n' 1 10 3 2 20 NaN 3 null 1 >"$T/m"
    dt-plot target --target 2 "$T/m" -o "$T/a.txt" 2>"$T/err"
    [ "$(cat "$T/err")" = "dt-plot: 1 point not drawn: no finite number up to 1e300" ]
    for tokens in null 1e400; do
        sed -i "3s/\"tokens\":[^,]*/\"tokens\":$tokens/" "$T/m"
        run dt-plot target --target 2 --x tokens "$T/m"
        [ "$status" -eq 1 ]
        [[ "$output" == *"run 'm' lacks 'tokens' at step 3" ]]
        run dt-plot loss --x tokens "$T/m"
        [ "$status" -eq 1 ]
    done
    echo '{"step":1e400,"loss":1}' >>"$T/m"
    run dt-plot loss "$T/m"
    assert_one_line_error dt-plot
    [[ "$output" == *"/m:4: member \"step\" is too large a number" ]]
}

@test "difference: an operation whose rate the plan lacks has no planned time" {
    cd "$T"
    cat >plan.json <<'EOF'
{"traceEvents":[{"ph":"X","name":"forward","cat":"phase","ts":0,"dur":1000,"pid":0,"tid":0}],
 "otherData":{"gemm_flops_per_second":1e9,"bytes_per_second":1e9}}
EOF
    cat >run.json <<'EOF'
{"traceEvents":[{"ph":"X","name":"attention","cat":"operation","ts":0,"dur":500,"pid":0,"tid":0,"args":{"operations":1e6,"bytes":8}},
 {"ph":"X","name":"matmul","cat":"operation","ts":500,"dur":500,"pid":0,"tid":0,"args":{"operations":1e6,"bytes":8}}]}
EOF
    dt-plot difference plan.json run.json >table
    grep -qE '^attention +- +0\.500 +\+0\.500 +-$' table
    grep -qE '^matmul +1\.000 +0\.500 +-0\.500 +0\.50$' table
}
