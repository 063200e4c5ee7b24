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

@test "draws a PNG" {
    dt-plot loss "$T/run/metrics.jsonl" -o "$T/a.png" --x time --log xy
    [ "$(head -c 8 "$T/a.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    [ "$(wc -c <"$T/a.png")" -gt 5000 ]
}

@test "without -o draws 80 columns of text" {
    dt-plot loss "$T/run" --floor 0.9 >"$T/a"
    grep -q 'floor 0.900' "$T/a"
    [ "$(awk 'length > 80' "$T/a" | wc -l)" -eq 0 ]
    ! grep -q "$(printf '\f')" "$T/a"
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
{"run":"'; system('touch $T/pwned'); '\`touch $T/pwned\`"}
{"step":1,"loss":2}
{"step":2,"loss":1}
END
    cp -r "$T/run" "$T/other"
    cd "$T"
    dt-plot loss "$T/run" other -o "$T/a.svg" --title "'.system('touch pwned').' \"\`touch pwned\`
set output 'pwned'"
    [ ! -e "$T/pwned" ]
    grep -q "system('touch pwned').' \"\`touch pwned\` set output" "$T/a.svg"
    grep -q "\`touch $T/pwned\`" "$T/a.svg"
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
    [[ "$output" == *"does not say 'tokens'"* ]]
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

@test "wrong usage ends with status 2" {
    run dt-plot
    [ "$status" -eq 2 ]
    run dt-plot loss
    [ "$status" -eq 2 ]
    run dt-plot loss "$T/run" -o "$T/a.pdf"
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
    [ "$(cat "$T/err")" = "dt-plot: 3 points not drawn: a loss that is not a finite number" ]
    [ -s "$T/out" ]
    echo '{"step":2,"loss":NaN}' >"$T/m"
    run dt-plot loss "$T/m"
    assert_one_line_error dt-plot
    [[ "$output" == *"holds no finite loss" ]]
}

@test "any number in lines of training is drawn, under its name" {
    printf '{"step":%d,"loss":%d,"lr":%s}\n' 1 8 1e-3 2 4 2e-3 3 3 3e-3 >metrics.jsonl
    dt-plot lr metrics.jsonl -o lr.svg
    grep -q '>lr<' lr.svg
    ! grep -q 'nats' lr.svg
    dt-plot loss metrics.jsonl -o loss.svg
    grep -q 'nats per token' loss.svg
    run dt-plot grad_norm metrics.jsonl
    assert_one_line_error dt-plot
    [[ "$output" == "dt-plot: metrics.jsonl: holds no grad_norm" ]]
}
