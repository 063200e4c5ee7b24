# SPDX-License-Identifier: MIT
# Document streams between programs: truncation is always detected; lines that are not documents
# are skipped or quarantined.
load ../helper

setup() {
    cd "$T"
    dt-synth -n 3000 -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl 2>/dev/null
    sed '2901s/"text":/"text":1,/' docs.jsonl >bad.jsonl
}

# marks FILE...: the stream marks of its documents, one per line.
marks() {
    jq -c 'select(has("dt_stream")) | .dt_stream' "$@"
}

# ends_early COMMAND...: fails on an incomplete document stream on standard input, with one line.
ends_early() {
    run "$@"
    echo "$status: $output"
    [ "$status" -eq 1 ]
    [ "$(grep -c . <<<"$output")" -eq 1 ]
    [[ "$output" == *"document stream"*"--partial"* ]]
}

no_shards() {
    [ ! -e "$1/index.json" ]
    [ -z "$(ls -A "$1" 2>/dev/null)" ]
}

@test "the last document of a pipe has the end record, and files do not" {
    dt-synth -n 3000 | cat >stream
    [ "$(wc -l <stream)" -eq 3000 ]
    [ "$(marks stream | head -n 1)" = '"begin"' ]
    [ "$(marks stream | sed -n 2p | jq .documents)" -eq 3000 ]
    [ "$(marks stream | wc -l)" -eq 2 ]
    jq -c 'del(.dt_stream)' stream | cmp - <(jq -c . docs.jsonl)
    [ -z "$(marks docs.jsonl)" ]
    dt-synth -n 3000 >redirected
    cmp redirected docs.jsonl
    dt-synth -n 1 | marks | jq -e '.documents == 1'
}

@test "every program that writes documents to a pipe writes the end record, also for rejects and decoded text" {
    dt-clean -q --min-chars 600 --rejects >(cat >rejects) docs.jsonl | cat >stream
    dt-clean -q --dedup-parts lines docs.jsonl | cat >parts
    dt-tokenize -t tok.json docs.jsonl | dt-tokenize -t tok.json -d --to jsonl | cat >decoded
    until [ "$(marks rejects 2>/dev/null | wc -l)" -eq 2 ]; do sleep 0.01; done # cat goes on for a while
    for f in stream parts decoded rejects; do
        [ "$(marks $f | tail -n 1 | jq .documents)" -eq "$(wc -l <$f)" ] || { echo $f; return 1; }
        dt-clean -q -o again $f
        [ "$(wc -l <again)" -eq "$(wc -l <$f)" ]
    done
    dt-clean -q --rules gopher --attributes docs.jsonl | cat >attributes
    [ -z "$(marks attributes)" ]
}

@test "shards from a pipe equal those from a file" {
    dt-clean -q docs.jsonl -o clean.jsonl
    dt-tokenize -t tok.json clean.jsonl -o file.dts
    dt-clean -q docs.jsonl | dt-tokenize -t tok.json | dt-shard -o piped
    dt-cat --ids piped | cmp - <(dt-cat --ids file.dts)
    [ "$(dt-clean -q docs.jsonl | dt-clean -q | jq -c 'del(.dt_stream)' | md5sum)" = \
        "$(jq -c . clean.jsonl | md5sum)" ]
}

@test "a program that fails in a pipe makes all programs after it fail, without shards" {
    run bash -c 'dt-clean -q -j 1 bad.jsonl | dt-tokenize -t tok.json | dt-shard -o out
        echo "${PIPESTATUS[*]}"'
    [ "${lines[-1]}" = "1 1 1" ]
    [[ "$output" == *"bad.jsonl:2901: "* ]]
    no_shards out
    run bash -c 'dt-tokenize -t tok.json bad.jsonl | dt-shard -o out; echo "${PIPESTATUS[*]}"'
    [ "${lines[-1]}" = "1 1" ]
    no_shards out
}

# written PID: whether the process has written more than fits in a pipe and its buffers.
written() {
    [ "$(awk '/^wchar/ { print $2 }' "/proc/$1/io" 2>/dev/null || echo 0)" -gt 300000 ]
}

# kill_in_pipe PROGRAM: kills it in an endless pipe, while it works.
kill_in_pipe() {
    cat >pipe.sh <<'END'
as() { echo $BASHPID >"$1.pid.new"; mv "$1.pid.new" "$1.pid"; shift; exec "$@"; }
as dt-synth dt-synth -n 100M | as dt-clean dt-clean -q -j 1 | as dt-tokenize dt-tokenize -q -j 1 -t tok.json |
    as dt-shard dt-shard -j 1 --tokens-per-shard 100k -o out
echo "${PIPESTATUS[*]}" >status
END
    rm -rf out status ./*.pid
    bash pipe.sh 2>errors &
    local pipe=$!
    await $pipe test -e "$1.pid"
    await $pipe written "$(cat "$1.pid")"
    kill -9 "$(cat "$1.pid")"
    wait $pipe
    cat status errors
}

@test "after kill -9 of any program of the pipe, the shards are incomplete" {
    for program in dt-synth dt-clean dt-tokenize dt-shard; do
        kill_in_pipe $program
        [ ! -e out/index.json ]
        [ "$(awk '{ print $NF }' status)" -ne 0 ]
        [ $program = dt-shard ] || no_shards out
    done
}

@test "every reader refuses a stream that was truncated or lost documents" {
    dt-synth -n 500 | cat >stream
    for part in "head -n 100" "head -c 100000" "tail -n 100" "sed 200d" "sed -n 500p" \
        "sed 200p" "sed 200s/the/The/"; do
        $part stream >part
        for reader in "dt-clean -q -o o" "dt-dedup sign -q -o o" "dt-vocab -q -s 300 -o o" \
            "dt-tokenize -q -t tok.json -o o"; do
            ends_early $reader <part
            [ ! -e o ]
        done
    done
}

@test "concatenated streams are read, compressed too, and with documents without marks between them" {
    dt-synth -n 20 | cat >a
    dt-synth -n 1 --seed 1 | cat >b
    cat a docs.jsonl b a b b docs.jsonl | dt-clean -q -o o
    [ "$(wc -l <o)" -eq 6043 ]
    gzip -k a
    zstd -q b
    dt-clean -q -o o a.gz b.zst a
    [ "$(wc -l <o)" -eq 41 ]
    zcat a.gz | dt-clean -q -o o
    head -n 10 a | zstd -q >cut.zst
    ends_early dt-clean -q -o o cut.zst
    cat <(head -n 10 a) a | ends_early dt-clean -q -o o
    ends_early dt-clean -q -o o cut.zst b
}

@test "a writer that fails before its first document is not taken for one without documents" {
    : >none
    for writer in "dt-clean -q missing" "dt-clean -q --from lines none" "dt-extract -q missing --part 0/2" \
        "dt-tokenize -d --to jsonl -t tok.json --allow-empty missing"; do
        for reader in "dt-clean -q --allow-empty -o o" "dt-tokenize -q --allow-empty -t tok.json -o o" \
            "dt-dedup sign -q --allow-empty -o o"; do
            run bash -c "$writer | $reader; echo \${PIPESTATUS[*]}"
            echo "$writer | $reader: $output"
            [ "${lines[-1]}" = "1 1" ]
            [[ "$output" == *"stdin: no byte arrived"*"--partial"* ]]
            [ ! -e o ]
        done
    done
    : | dt-clean -q --allow-empty --partial -o o
    [ ! -s o ]
}

@test "a finished stream without documents has a mark, which other programs take for blank lines" {
    : >none
    dt-clean -q --from lines --allow-empty none | cat >stream
    [ "$(jq -c . stream | wc -l)" -eq 0 ]
    dt-clean -q --allow-empty stream
    cat stream docs.jsonl stream | dt-clean -q | jq -c 'del(.dt_stream)' | cmp - <(dt-clean -q docs.jsonl | jq -c "del(.dt_stream)")
    dt-clean -q --part 0/2 none | dt-clean -q --allow-empty | dt-dedup substrings -q --allow-empty -o /dev/stdout |
        dt-tokenize -q --allow-empty -t tok.json | dt-shard --allow-empty -o out
    dt-cat --verify out
    dt-clean -q --rejects >(dt-clean -q --allow-empty -o rejects) -o o docs.jsonl
    await $! test -e rejects
    dt-clean -q --from lines --allow-empty none >redirected
    [ ! -s redirected ]
}

@test "programs between may rewrite lines and add to meta; documents without marks are not checked" {
    dt-synth -n 50 | jq -c . | dt-clean -q -o o
    dt-synth -n 50 | jq -c '.meta.source = "x"' | dt-clean -q -o o
    [ "$(jq -s 'map(select(.meta.source == "x")) | length' o)" -eq 50 ]
    dt-synth -n 50 | jq -c 'del(.dt_stream) | .text |= ascii_downcase' | dt-clean -q -o o
    dt-synth -n 50 | jq -c 'del(.dt_stream)' | head -n 7 | dt-clean -q -o o
    [ "$(wc -l <o)" -eq 7 ]
    [ -z "$(marks o)" ]
    dt-synth -n 50 | jq -c '.text |= ascii_downcase' | ends_early dt-clean -q -o o
}

@test "--partial accepts an incomplete stream, with a warning" {
    dt-synth -n 500 | cat >stream
    for part in "head -n 100" "head -c 100000" "tail -n 100" "sed 200d"; do
        $part stream >part
        dt-tokenize -t tok.json --ids --partial part >ids 2>messages
        [ "$(wc -l <ids)" -eq "$(grep -c '}$' part)" ]
        grep -q '^dt-tokenize: taken in part: part:.*document stream' messages
    done
    run dt-clean -q --partial -o o stream
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    head -n 100 stream | dt-clean -q --partial 2>/dev/null | dt-tokenize -t tok.json --ids -o o
}

@test "dt-train refuses a truncated text" {
    dt-synth -n 50 | head -n 20 >cut.jsonl
    run dt-train -t tok.json -o run cut.jsonl --set model.num_layers=1 --set model.hidden_size=8
    [ "$status" -eq 1 ]
    [[ "$output" == *"cut.jsonl: "*"end record"* ]]
    [ ! -e run ]
}

@test "bad lines end the program, are skipped, or are quarantined" {
    printf '{"text":"a"}\n{"text":\n\n{"text":"b"}\n[1]\n{"text":3}\n{"id":"c"}\n{"text":"d"}' >in
    for reader in "dt-clean -q" "dt-dedup sign -q" "dt-vocab -q -s 300" "dt-tokenize -q -t tok.json"; do
        run $reader -o o in
        [ "$status" -eq 1 ]
        [[ "$output" == *"in:2: byte 8: the JSON object ends too early; --on-error skip or quarantine=FILE passes over it" ]]
        run $reader -o o --on-error stop in
        [ "$status" -eq 1 ]
        run $reader -o o --on-error skip in
        echo "$output"
        [ "$status" -eq 0 ]
        [[ "${lines[0]}" == *": 4 lines skipped, the first of them in:2: byte 8: the JSON object ends too early" ]]
        rm o
        run $reader -o o --on-error quarantine=q in
        [ "$status" -eq 0 ]
        [ -e o ]
        sed -n 'n;p' q | cmp - <(sed -n '2p;5p;6p;7p' in)
        [ "$(sed -n 'p;n' q | jq -c '[.file, .line]' | tr '\n' ' ')" = \
            '["in",2] ["in",5] ["in",6] ["in",7] ' ]
        [ "$(sed -n 5p q | jq -r .reason)" = 'member "text" is not a string' ]
        rm o o.lineage.json q
    done
    [ "$(dt-clean -q --on-error skip in 2>/dev/null | jq -r '.id + .text' | tr '\n' ' ')" = \
        'in:1a in:3b in:7d ' ]
}

@test "the error of a bad record of any format names --on-error, unless the field is missing" {
    printf 'text,other\na\n' >in.csv
    printf '["a", "\\q"]\n' >in.json
    printf '{"text":3}\n' >in.jsonl
    for file in in.csv in.json in.jsonl; do
        run dt-clean -q -o o $file
        assert_one_line_error dt-clean
        [[ "$output" == *"; --on-error skip or quarantine=FILE passes over it" ]]
    done
    printf '{"other":"a"}\n' >in.jsonl
    run dt-clean -q -o o in.jsonl
    assert_one_line_error dt-clean
    [[ "$output" == *'no member "text"; --field '* && "$output" != *on-error* ]]
}

@test "a quarantined line is that of the input, byte for byte" {
    printf '{"text":"\377\000\r\\x"}\r\n{"text":"good"}\n{"text":"\001\200' >in
    dt-clean -q -o o --on-error quarantine=q in
    sed -n 'n;p' q | cmp - <(printf '{"text":"\377\000\r\\x"}\r\n{"text":"\001\200\n')
}

@test "more bad lines than --max-errors are an error, without output" {
    printf 'x\n{"text":"a"}\ny\nz\n' >in
    for most in 3 4; do
        run dt-clean -q -o o --from jsonl --on-error quarantine=q --max-errors $most in
        [ "$status" -eq 0 ]
        rm o o.lineage.json q
    done
    for most in 0 1 2; do
        run dt-clean -q -o o --from jsonl --on-error quarantine=q --max-errors $most in
        assert_one_line_error dt-clean
        [[ "$output" == *"in:"*"--max-errors allows $most bad line"* ]]
        [ -z "$(ls -A | grep -E '^(o|q|\.)')" ]
    done
}

@test "faults of an input, not of a line, are never skipped" {
    dt-synth -n 500 | gzip | head -c 20000 >cut.gz
    for input in cut.gz . nosuch; do
        run dt-clean -q -o o --on-error skip "$input"
        assert_one_line_error dt-clean
    done
    dt-synth -n 500 | head -n 100 | ends_early dt-clean -q --on-error skip -o o
    printf '{"id":"1"}\n' >none
    run dt-tokenize -t tok.json --on-error skip -o o none
    [ "$status" -eq 1 ]
    [[ "$output" == *"no document"* ]]
}

@test "skipped lines are counted in the statistics, and do not depend on the threads" {
    for j in 1 3; do
        dt-clean -q -j $j --on-error quarantine=q$j --stats s$j -o o$j bad.jsonl
        [ "$(jq .lines_skipped s$j)" -eq 1 ]
        [ "$(jq .documents.in s$j)" -eq 2999 ]
    done
    cmp q1 q3
    cmp o1 o3
    sed 2901d docs.jsonl | dt-clean -q | jq -c 'del(.dt_stream)' | cmp - <(jq -c . o1)
}

@test "in a stream, a line that is not a document is never skipped without --partial" {
    dt-synth -n 50 | cat >in
    for edit in '5s/^{/x/;40s/"text":"/&x/' '5s/^{/x/' '7s/"text"/"text/' '1s/"text"/"text/' '50s/}$//'; do
        sed "$edit" in >changed
        for reader in "dt-clean -q" "dt-dedup sign -q" "dt-vocab -q -s 300" "dt-tokenize -q -t tok.json"; do
            run $reader -o o --on-error skip changed
            assert_one_line_error "${reader%% *}"
            [[ "$output" == *"changed:"*"document stream"*"; if that was intended, see --partial"* ]]
            [ ! -e o ]
        done
        run dt-clean -q --partial --on-error skip -o o changed
        [ "$status" -eq 0 ]
        [ "$(wc -l <o)" -eq 49 ]
        [[ "$output" == *"1 line skipped: changed:"* ]]
        [[ "$output" == *"taken in part: changed:"* ]]
        rm o
    done
    run dt-clean -q --partial -o o changed
    [ "$status" -eq 1 ]
    { cat in; echo x; } >after
    dt-clean -q --on-error skip -o o after
    [ "$(wc -l <o)" -eq 50 ]
    printf '{"text":"a","dt_stream":1}\n' >in
    run dt-clean -q -o o in
    [[ "$output" == *'in:1: member "dt_stream" is neither "begin" nor an end record; --on-error '* ]]
}

@test "wrong uses of the options for bad lines end with status 2" {
    printf '{"text":"a"}\n' >in
    for options in "--on-error never" "--on-error quarantine=" "--on-error quarantine=-" \
        "--max-errors 3" "--on-error stop --max-errors 3" "--on-error skip --max-errors -1" \
        "-o q --on-error quarantine=q" "-o o --on-error quarantine=./in"; do
        run dt-clean $options in
        [ "$status" -eq 2 ] || { echo "$options: $status: $output"; return 1; }
    done
    run dt-tokenize -t tok.json -d --on-error skip in
    [ "$status" -eq 2 ]
    run dt-tokenize -t tok.json -o o --on-error quarantine=./in in
    [ "$status" -eq 2 ]
    [[ "$output" == *"--on-error: './in' is also an input"* ]]
    [ "$(cat in)" = '{"text":"a"}' ]
}

@test "a quarantine file that cannot be written ends the program" {
    run dt-clean -q -o o --on-error quarantine=/dev/full bad.jsonl
    assert_one_line_error dt-clean
    [ ! -e o ]
    run dt-clean -q -o o --on-error quarantine=no/such bad.jsonl
    assert_one_line_error dt-clean
}

@test "a stream whose first line was altered or preceded is not read as plain text" {
    dt-synth -n 50 >docs.jsonl
    { echo "starting job"; dt-clean -q docs.jsonl | head -n 20; } >preceded
    dt-clean -q docs.jsonl | sed '1s/^{/x/' >altered
    dt-clean -q docs.jsonl | jq -c .text >strings
    for input in preceded altered; do
        for reader in "dt-clean -q" "dt-dedup sign -q" "dt-vocab -q -s 300" "dt-tokenize -q -t tok.json"; do
            run $reader -o o "$input"
            assert_one_line_error "${reader%% *}"
            [[ "$output" == *"$input: is JSON Lines after a line that is not JSON, "*"--from jsonl --on-error skip "* ]]
        done
    done
    run dt-clean -q strings
    assert_one_line_error dt-clean
    [[ "$output" == *"strings: is JSON strings, one a line, not plain text; "*"jq -c '{text: .}'"* ]]
    [ "$(jq -c '{text: .}' strings | dt-clean -q | jq -r .text)" = "$(jq -r . strings)" ]
}

@test "skipped lines are reported also without any document" {
    printf 'x\ny\n' >in
    for reader in "dt-clean -q" "dt-dedup sign -q" "dt-vocab -q -s 300" "dt-tokenize -q -t tok.json"; do
        run $reader -o o --from jsonl --on-error skip in
        [ "$status" -eq 1 ] || { echo "$reader: $output"; return 1; }
        [ "${#lines[@]}" -eq 2 ]
        [[ "${lines[0]}" == *": 2 lines skipped, the first of them in:1: byte 0: '{' expected" ]]
        [ ! -e o ]
    done
}

@test "a separator that does not occur is a warning" {
    printf 'a\nb\n' >a
    printf 'a\n<sep>\nb\n' >b
    for options in "--from sep --separator <sep>" "--from split --separator <sep>" "--separator <sep>"; do
        for reader in "dt-clean -q" "dt-dedup sign -q" "dt-vocab -q -s 300" "dt-tokenize -q -t tok.json"; do
            run $reader -o o $options a
            [ "$status" -eq 0 ]
            [[ "$output" == *"${reader%% *}: separator '<sep>' not found: each input is one document"* ]]
            run $reader -o o $options a b
            [ "$status" -eq 0 ]
            [[ "$output" != *separator* ]]
        done
    done
}
