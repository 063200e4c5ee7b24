# SPDX-License-Identifier: MIT
# dt-classify: models that dt-clean applies, errors, damaged input.
load ../helper

setup() {
    cd "$T"
    dt-synth -n 300 | jq -c '{text, label: "story"}' >story.jsonl
    dt-synth -n 300 --seed 1 | jq -c '{text: (.text | split(" ") | sort | join(" ")), label: "sorted"}' >sorted.jsonl
    cat story.jsonl sorted.jsonl >labelled.jsonl
    dt-synth -n 100 --seed 2 | jq -c '{text, label: "story"}' >test.jsonl
    dt-synth -n 100 --seed 3 | jq -c '{text: (.text | split(" ") | sort | join(" ")), label: "sorted"}' >>test.jsonl
    train=(dt-classify train -q --dim 8 --word-ngrams 2 --buckets 20k --epochs 10 --rate 0.5)
}

@test "a model tells new texts apart by pairs of words, and dt-clean keeps what it takes for good" {
    "${train[@]}" -o m.bin labelled.jsonl
    dt-classify test m.bin test.jsonl
    [ "$(dt-classify test --json m.bin test.jsonl | jq '.accuracy >= 0.98')" = true ]
    [ "$(dt-classify test --json m.bin test.jsonl | jq -c '[.documents, .labels.story.documents]')" = '[200,100]' ]
    echo 'fasttext: m.bin story min 0.5' >m.rules
    dt-clean -q --rules ./m.rules -o kept.jsonl test.jsonl
    [ "$(jq -s 'map(select(.meta.label == "story")) | length >= 97' kept.jsonl)" = true ]
    [ "$(jq -s 'map(select(.meta.label == "sorted")) | length <= 3' kept.jsonl)" = true ]
    [ "$(dt-clean -q --identify --identifier m.bin test.jsonl | jq -r .meta.lang | sort -u | xargs)" = "sorted story" ]
}

@test "by words without pairs they are not distinguished" {
    dt-classify train -q --dim 8 --epochs 2 -o w.bin labelled.jsonl
    [ "$(dt-classify test --json w.bin test.jsonl | jq '.accuracy < 0.9')" = true ]
}

@test "the bytes do not depend on threads and pipes, but on the seed" {
    "${train[@]}" -j 1 -o a.bin labelled.jsonl
    "${train[@]}" -j 3 -o b.bin story.jsonl sorted.jsonl
    dt-clean -q labelled.jsonl | "${train[@]}" -o c.bin
    "${train[@]}" --seed 1 -o d.bin labelled.jsonl
    cmp a.bin b.bin
    cmp a.bin c.bin
    refute cmp -s a.bin d.bin
    [ "$(jq -r '.lineage[-1].program' b.bin.lineage.json)" = dt-classify ]
}

@test "numbers are labels, and another member may have them" {
    jq -c '{text, score: (if .label == "story" then 1 else 0 end)}' labelled.jsonl >scored.jsonl
    "${train[@]}" --label score -o m.bin scored.jsonl
    [ "$(dt-classify test --label score --json m.bin scored.jsonl | jq -r '.labels | keys | join(" ")')" = "0 1" ]
}

@test "a document without a label, with blanks in it, or with one that the model lacks is an error" {
    "${train[@]}" -o m.bin labelled.jsonl
    for line in '{"text":"a"}' '{"text":"a","label":["x"]}' '{"text":"a","label":null}' '{"text":"a","label":"x y"}' '{"text":"a","label":""}'; do
        run dt-classify train -q -o o.bin labelled.jsonl <(echo "$line")
        assert_one_line_error dt-classify
        [[ "$output" == *"document '"*"label"* ]]
        [ ! -e o.bin ]
    done
    run dt-classify test m.bin <(echo '{"text":"a","label":"poem"}')
    assert_one_line_error dt-classify
    [[ "$output" == *"does not have the label 'poem'"* ]]
}

@test "one label, no word, a rate that overflows and a cut stream leave no model" {
    run dt-classify train -q -o o.bin story.jsonl
    assert_one_line_error dt-classify
    [[ "$output" == *"two labels needed"* ]]
    run dt-classify train -q --min-count 1M -o o.bin labelled.jsonl
    assert_one_line_error dt-classify
    run "${train[@]}" --rate 1e30 -o o.bin labelled.jsonl
    [ "$status" -ne 0 ]
    run bash -c 'dt-clean -q labelled.jsonl | head -n 500 | dt-classify train -q -o o.bin'
    [ "$status" -eq 1 ]
    [ ! -e o.bin ]
}

@test "wrong uses are refused" {
    for use in "" train test "train -o o --json" "test --dim 3 m.bin" "train -o o --min-ngram 2" \
        "train -o o --min-ngram 5 --max-ngram 3" "train -o o --epochs 0"; do
        run dt-classify $use labelled.jsonl </dev/null
        echo "$use: $status $output"
        [ "$status" -ne 0 ]
    done
    run dt-classify test story.jsonl story.jsonl
    assert_one_line_error dt-classify
    [[ "$output" == *"not a model of fastText"* ]]
}
