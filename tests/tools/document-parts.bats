# SPDX-License-Identifier: MIT
# --part I/N: the parts together are one command.
load ../helper

setup() {
    cd "$T"
    for i in 0 1 2; do dt-synth -n 30 --seed $i -o f$i.jsonl; done
    jq -c '{text}' f1.jsonl | awk 'NR % 7 == 0 { print "" } NR % 11 == 0 { print " \t" } { print }' >unnamed.jsonl
}

# in_parts N COMMAND...: the outputs of the parts, one after the other.
in_parts() {
    local n=$1 i
    for ((i = 0; i < n; i++)); do "${@:2}" --part $i/$n || return; done
}

@test "parts of files, cut and whole ones, are the documents and ids of one command" {
    gzip -k f2.jsonl
    files="f0.jsonl unnamed.jsonl f2.jsonl.gz unnamed.jsonl f2.jsonl"
    dt-clean -q -o whole.jsonl $files
    grep -q '"id":"unnamed.jsonl:30"' whole.jsonl
    for n in 1 2 7 40; do
        in_parts $n dt-clean -q -j 1 $files >parts.jsonl # a file: no marks of streams
        cmp parts.jsonl whole.jsonl
    done
}

@test "lines and documents that end with NUL are cut, text and separators are not" {
    printf 'plain\n\nlines\r\nx' >l.txt
    tr '\n' '\0' <f0.jsonl >z.txt
    for format in "lines f0.jsonl l.txt" "nul z.txt l.txt" "text f0.jsonl l.txt" \
        "sep --separator lines l.txt f0.jsonl" "split --separator e l.txt f0.jsonl"; do
        dt-clean -q --min-chars 0 -o whole --from $format
        for n in 2 5; do
            in_parts $n dt-clean -q -j 1 --min-chars 0 --from $format >parts
            cmp parts whole
        done
    done
}

@test "bad lines have the file and line of one command, in whichever part they are" {
    sed '5s/^/x/; 17s/"text"/"test"/; 30s/$/x/' f0.jsonl >bad.jsonl
    sed -i '3s/^/x/' unnamed.jsonl
    dt-clean -q --on-error quarantine=whole -o o bad.jsonl unnamed.jsonl 2>/dev/null
    for i in 0 1 2 3 4 5 6; do
        dt-clean -q --on-error quarantine=bad.$i --part $i/7 -o o.$i bad.jsonl unnamed.jsonl 2>/dev/null
        touch bad.$i
    done
    cat bad.? | cmp - whole
    cat o.? | cmp - o
    run dt-clean -q --part 6/7 bad.jsonl bad.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" == *"bad.jsonl:30: "* ]]
}

@test "the shards of parts are those of one command, however many there are" {
    dt-vocab -q -s 300 -o tok.json f0.jsonl
    dt-tokenize -q -t tok.json f0.jsonl f1.jsonl | dt-shard -o whole
    for n in 2 5; do
        for ((i = 0; i < n; i++)); do
            dt-tokenize -q -t tok.json --part $i/$n f0.jsonl f1.jsonl | dt-shard --allow-empty -o part/$i
        done
        dt-shard -o joined-$n --join part/*
        dt-cat --ids joined-$n | cmp - <(dt-cat --ids whole)
        rm -r part
    done
}

@test "parts may be empty, also without any input left" {
    : >empty.jsonl
    in_parts 3 dt-clean -q empty.jsonl >o
    [ ! -s o ]
    dt-clean -q --part 0/1 empty.jsonl
    run dt-clean -q empty.jsonl
    assert_one_line_error dt-clean
    in_parts 100 dt-clean -q -j 1 f0.jsonl >o
    [ "$(wc -l <o)" -eq 30 ]
}

@test "a part records the bytes that it read, and is not replayed" {
    dt-clean -q --part 1/3 -o o.jsonl f0.jsonl f1.jsonl
    record=$(jq -c '.lineage[-1].inputs[0] | [.path, .first, .bytes, .sha256]' o.jsonl.lineage.json)
    first=$(jq '.[1]' <<<"$record")
    bytes=$(jq '.[2]' <<<"$record")
    [ "$first" -gt 0 ]
    sum=$(tail -c +$((first + 1)) f0.jsonl | head -c "$bytes" | sha256sum | cut -d ' ' -f 1)
    [ "$record" = "[\"f0.jsonl\",$first,$bytes,\"$sum\"]" ]
    [[ "$(jq -c '.lineage[-1].arguments' o.jsonl.lineage.json)" == *'"--part","1/3"'* ]]
    run dt-verify replay o.jsonl
    assert_one_line_error dt-verify
    [[ "$output" == *"--part read a part of its inputs"* ]]
}

@test "parts of pipes and what needs all documents are refused" {
    mkfifo pipe
    for input in - pipe; do
        run dt-clean -q --part 0/2 f0.jsonl $input </dev/null
        assert_one_line_error dt-clean
        [[ "$output" == *": is not a file, and only files and URLs are divided into parts" ]]
    done
    dt-clean -q f0.jsonl | cat >stream
    run dt-clean -q --part 0/2 stream # it has the begin mark, and no end
    [ "$status" -eq 1 ]
    run dt-clean -q --part 1/2 stream
    [ "$status" -eq 1 ]
    for options in --dedup "--dedup-parts lines" "--drop l"; do
        : >l
        run dt-clean -q --part 0/2 $options f0.jsonl
        [ "$status" -eq 2 ]
    done
    for part in 2/2 -1/2 x 1 1/0 1/2/3; do
        run dt-clean -q --part=$part f0.jsonl
        [ "$status" -eq 2 ]
    done
}
