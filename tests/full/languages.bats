#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Languages and scores of dt-clean --identify compared with fastText's (pip install fasttext-wheel),
# by models of every kind; also by those in MODELS, such as lid.176.ftz, if that is set.
load ../helper

setup() {
    cd "$T"
}

@test "languages are those of fastText on all test data, and scores but for the last two bits" {
    need_python fasttext
    [ -d "${TESTDATA:-}" ] || skip "TESTDATA is not set"
    for file in "$TESTDATA"/*.txt "$TESTDATA"/*.gz; do
        dt-clean -q --from lines "$file"
    done | cat >lines.jsonl
    printf '__label__de a\n__label__none\na </s> b\n\tx\vy\fz\n\342\202\254\n' | dt-clean -q --from lines >>lines.jsonl
    dt-clean -q --from text "$ROOT"/man/man7/*.7 >>lines.jsonl
    for model in "$ROOT"/share/language/languages.ftz "$ROOT"/tests/language/golden/*.{bin,ftz} $MODELS; do
        dt-clean -q --identify --identifier "$model" lines.jsonl >identified.jsonl
        "$PYTHON" "$ROOT/tests/oracles/fasttext_oracle.py" check "$model" <identified.jsonl || { echo "$model"; return 1; }
    done
}

@test "fastText reads the models of dt-classify, and gives texts the same labels" {
    need_python fasttext
    for label in a b; do
        dt-synth -n 300 | jq -c --arg l $label '{text: (.text | if $l == "a" then . else split(" ") | sort | join(" ") end), label: $l}'
    done >labelled.jsonl
    for features in "" "--word-ngrams 2" "--max-ngram 4" "--word-ngrams 3 --min-ngram 2 --max-ngram 5"; do
        dt-classify train -q --dim 7 --buckets 20k --rate 0.5 $features -o m.bin labelled.jsonl
        dt-clean -q --identify --identifier m.bin labelled.jsonl -o identified.jsonl
        "$PYTHON" "$ROOT/tests/oracles/fasttext_oracle.py" check m.bin <identified.jsonl
    done
}

@test "in each of ten languages the shares of documents that dt-clean and datatrove keep are within 5 %" {
    need_python datatrove spacy
    [ -d "${DOCUMENTS:-}" ] || skip "DOCUMENTS is not set: a directory with LANGUAGE.jsonl"
    for file in "$DOCUMENTS"/*.jsonl; do
        name=${file##*/}
        echo "${name%.jsonl}=$file"
    done >operands
    xargs "$PYTHON" "$ROOT/tests/oracles/rules_by_language_oracle.py" --most 150 <operands >table
    cat table >&3
    jq -es 'all(.percent_apart <= 5)' table
}
