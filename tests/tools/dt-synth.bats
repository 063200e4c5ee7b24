# SPDX-License-Identifier: MIT
load ../helper

@test "writes documents with an id, a text and its log-probability" {
    dt-synth -n 20 >"$T/a"
    [ "$(wc -l <"$T/a")" -eq 20 ]
    [ "$(grep -cE '^\{"id":"0-[0-9]+","text":".{300,}","meta":\{"logprob":-[0-9.]+\}\}$' "$T/a")" -eq 20 ]
}

@test "the same seed gives the same bytes, another seed others" {
    dt-synth -n 50 --seed 3 >"$T/a"
    dt-synth -n 50 --seed 3 -o "$T/b"
    dt-synth -n 50 --seed 4 -o "$T/c"
    cmp "$T/a" "$T/b"
    refute cmp -s "$T/a" "$T/c"
}

@test "fewer documents are a prefix of more" {
    dt-synth -n 100 -o "$T/a"
    dt-synth -n 200 -o "$T/b"
    head -n 100 "$T/b" | cmp - "$T/a"
}

@test "--bytes stops at the first document that reaches the size" {
    dt-synth --bytes 100k --summary -o "$T/a" 2>"$T/said"
    bytes=$(grep -oE '[0-9]+ bytes' "$T/said" | cut -d' ' -f1)
    [ "$bytes" -ge 100000 ]
    [ "$bytes" -lt 101500 ]
    dt-synth -n "$(wc -l <"$T/a")" -o "$T/b"
    cmp "$T/a" "$T/b"
}

@test "--summary agrees with the documents, and the mean with --entropy" {
    dt-synth -n 5000 --summary -o "$T/a" 2>"$T/said"
    sum=$(sed 's/.*"logprob":-//; s/}}//' "$T/a" | awk '{s += $1} END {printf "%.3f", s / NR}')
    grep -q "^dt-synth: 5000 documents" "$T/said"
    grep -qF "$sum nats a document here" "$T/said"
    dt-synth --entropy | awk -v mean="$sum" '{d = $1 - mean; exit !(d > -1 && d < 1)}'
}

@test "the default is a thousand documents" {
    [ "$(dt-synth | wc -l)" -eq 1000 ]
}

@test "wrong usage ends with status 2" {
    run dt-synth -n 0
    [ "$status" -eq 2 ]
    run dt-synth -n 5 --bytes 5
    [ "$status" -eq 2 ]
    run dt-synth file
    [ "$status" -eq 2 ]
    run dt-synth --seed -1
    [ "$status" -eq 2 ]
}

@test "a full disk and a missing directory are one line, and leave no file" {
    run dt-synth -o /dev/full
    assert_one_line_error dt-synth
    run dt-synth -o "$T/none/a"
    assert_one_line_error dt-synth
    run bash -c "ulimit -f 64; dt-synth -n 5000 -o '$T/a'"
    assert_one_line_error dt-synth
    [ -z "$(ls -A "$T")" ]
}

@test "a closed pipe ends it silently" {
    run bash -c "dt-synth -n 100M | head -n 1 | wc -l"
    [ "$output" -eq 1 ]
}
