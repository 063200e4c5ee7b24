#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
load ../helper

GOLDEN="$BATS_TEST_DIRNAME/../token/golden"
ORACLE="$BATS_TEST_DIRNAME/../oracles/tokenizers_oracle.py"

setup() {
    cd "$T"
}

# The merges of a tokenizer.json that dt-vocab wrote, one per line.
merges_of() {
    sed -n '/"merges": \[/,/^    \]/p' "$1" | sed -nE 's/^      "(.*)",?$/\1/p' | sed 's/\\\(["\\]\)/\1/g'
}

@test "the golden corpus gives the golden tokenizer" {
    dt-vocab --size 420 --from text -o t.json "$GOLDEN/corpus.txt"
    cmp t.json "$GOLDEN/tokenizer.json"
    dt-vocab -s 420 <"$GOLDEN/corpus.txt" | cmp - t.json
}

@test "257 tokens are the bytes and the EOT token" {
    dt-vocab --size 257 -o bytes.json "$GOLDEN/corpus.txt"
    grep -F '"merges": []' bytes.json
    head -c 1000 /dev/urandom >f
    [ "$(dt-tokenize -t bytes.json --ids --from text f | wc -w)" -eq 1001 ]
    [ "$(printf '!"' | dt-tokenize -t bytes.json --ids)" = "0 1 256" ]
    dt-tokenize -t bytes.json --from text f | dt-tokenize -t bytes.json -d | cmp - f
}

@test "the result does not depend on threads or document boundaries" {
    for i in $(seq 40); do cat "$GOLDEN"/*; echo; done >f
    dt-vocab -s 1000 -j 1 --from text -o 1.json f
    for threads in 2 4 7; do
        dt-vocab -s 1000 -j $threads --from text f | cmp - 1.json
    done
    gzip -c f | dt-vocab -s 1000 --from text | cmp - 1.json
}

@test "each pattern can be trained with, and is saved" {
    for pattern in gpt2 llama3 cl100k qwen qwen35 o200k tekken; do
        dt-vocab -s 400 --pattern $pattern -o $pattern.json "$GOLDEN/corpus.txt"
        dt-tokenize -t $pattern.json --from text "$GOLDEN/corpus.txt" >f.dts
        dt-tokenize -t $pattern.json -d f.dts | cmp - "$GOLDEN/corpus.txt"
    done
    [ "$(cat ./*.json | grep -c '"Regex"')" -eq 6 ] # gpt2 is built in
    [ "$(cat ./*.json | sort -u | grep -c '"Regex"')" -eq 6 ]
}

@test "WordPiece: special tokens, characters, then merges; tokenizers gives the same ids" {
    dt-vocab --model wordpiece -s 200 --special '<x>' -o t.json "$GOLDEN/corpus.txt"
    grep -qF '{"id": 4, "content": "[MASK]"' t.json
    grep -qF '{"id": 5, "content": "<x>"' t.json
    refute grep -q '"[A-Z]": ' t.json
    [ "$(grep -c '^      "' t.json)" -eq 200 ]
    dt-vocab --model wordpiece -s 200 --special '<x>' -j 4 "$GOLDEN/corpus.txt" | cmp - t.json
    printf 'The zzz' >f
    [[ " $(dt-tokenize -t t.json --ids f) " == " 2 "*" 3 " ]]
    printf '[MASK]' >f
    [ "$(dt-tokenize -t t.json --special --ids f)" = "2 4 3" ]
    dt-vocab --model wordpiece --cased -s 200 -o cased.json "$GOLDEN/corpus.txt"
    grep -q '"[A-Z]": ' cased.json
    dt-vocab --model wordpiece --alphabet 3 --min-frequency 1 -s 12 -o few.json "$GOLDEN/corpus.txt" 2>/dev/null
    [ "$(grep -cE '^      "(##)?.": ' few.json)" -le 6 ]
    run dt-vocab --model wordpiece -s 20 -o out "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
    [ ! -e out ]
    need_python tokenizers
    "$PYTHON" "$ORACLE" strings 3 3000 >f.jsonl
    for t in t cased few; do
        dt-tokenize -t $t.json --ids --special f.jsonl >ours
        "$PYTHON" "$ORACLE" encode $t.json f.jsonl | cmp - ours
    done
}

@test "documents are counted in each input format" {
    printf 'he he he\n' >f
    printf '{"text":"he he"}\n{"text":"he\\n"}\n' >f.jsonl
    dt-vocab -s 300 --min-frequency 3 f 2>/dev/null >text.json
    dt-vocab -s 300 --min-frequency 3 f.jsonl 2>/dev/null >jsonl.json
    [ "$(merges_of text.json)" = "h e" ]
    [ "$(merges_of jsonl.json)" = "h e" ]
    printf 'ab\n--\nab\n' >sep
    [ "$(dt-vocab -s 300 --separator -- sep 2>/dev/null >sep.json; merges_of sep.json)" = "a b" ]
}

@test "the rarest merge occurs --min-frequency times" {
    printf 'abab abab abab xy xy q' >f
    for least in 1 2 3 4 5; do
        dt-vocab -s 300 --min-frequency $least -o $least.json f 2>warning
        grep -qx "dt-vocab: the vocabulary has [0-9]* tokens, not 300: no other pair occurs $least times\?" warning
    done
    [ "$(merges_of 5.json)" = "a b" ]
    [ "$(merges_of 3.json | wc -l)" -eq 2 ] # ab and abab
    merges_of 2.json | grep -x "x y"
    refute grep -x "x y" <(merges_of 3.json)
}

@test "special tokens come last, and replace the default" {
    dt-vocab -s 300 --special '<eos>' --special '<a "b">' -o t.json "$GOLDEN/corpus.txt"
    grep -qF '{"id": 298, "content": "<eos>",' t.json
    grep -qF '{"id": 299, "content": "<a \"b\">",' t.json
    refute grep -qF endoftext t.json
    [ "$(printf '<a "b">' | dt-tokenize -t t.json --ids --special)" = "299 298" ]
}

@test "impossible sizes and special tokens are a one-line error" {
    run dt-vocab -s 256 -o out "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
    run dt-vocab -s 300 --special é -o out "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
    run dt-vocab -s 300 --special '<a>' --special '<a>' -o out "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
    for special in the a '##e'; do
        run dt-vocab --model wordpiece -s 300 --special "$special" -o out "$GOLDEN/corpus.txt"
        assert_one_line_error dt-vocab
        [[ "$output" == *"the special token '$special' is also an ordinary one" ]]
    done
    [ ! -e out ]
}

@test "usage errors end with status 2" {
    for arguments in "" "-s 255" "-s x" "-s 5M" "-s 300 --pattern gpt5" "-s 300 --min-frequency 0" \
        "-s 300 --cased" "-s 300 --model wordpiece --pattern gpt2" "-s 300 --from sep" "-s 300 --from lines --separator x"; do
        run dt-vocab $arguments /dev/null
        [ "$status" -eq 2 ]
    done
}

@test "missing, empty and wrong input is a one-line error, and leaves no file" {
    : >empty
    echo '{"text": 1}' >wrong.jsonl
    gzip -c "$GOLDEN/corpus.txt" | head -c 500 >cut.gz
    for input in empty wrong.jsonl cut.gz /nonexistent .; do
        run dt-vocab -s 300 -o out "$input"
        assert_one_line_error dt-vocab
        [ -z "$(ls -A | grep -vE '^(empty|wrong.jsonl|cut.gz)$')" ]
    done
}

@test "a full disk and a missing directory are one line" {
    run dt-vocab -s 300 -o /dev/full "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
    run bash -c "dt-vocab -s 300 '$GOLDEN/corpus.txt' >/dev/full"
    assert_one_line_error dt-vocab
    run dt-vocab -s 300 -o nowhere/t.json "$GOLDEN/corpus.txt"
    assert_one_line_error dt-vocab
}

@test "merges equal those of tokenizers: golden corpus" {
    need_python tokenizers
    "$PYTHON" "$ORACLE" train 419 "$GOLDEN/corpus.txt" >theirs
    merges_of "$GOLDEN/tokenizer.json" | cmp - theirs
}

@test "merges equal those of tokenizers: real text" {
    need_data tinyshakespeare.txt
    need_python tokenizers
    for corpus in tinyshakespeare.txt grimm.txt; do
        "$PYTHON" "$ORACLE" train 7999 "$TESTDATA/$corpus" >theirs
        dt-vocab -s 8000 -o t.json "$TESTDATA/$corpus"
        merges_of t.json | cmp - theirs
    done
}

@test "trained tokenizers load in tokenizers and give the same ids" {
    need_data grimm.txt
    need_python tokenizers
    dt-vocab -s 3000 --special '<eos>' --special '<a "b">' -o t.json "$TESTDATA/grimm.txt"
    "$PYTHON" "$ORACLE" strings 3 5000 >f.jsonl
    dt-tokenize -t t.json --ids --frame none f.jsonl >ours
    "$PYTHON" "$ORACLE" encode t.json f.jsonl | cmp - ours
}

@test "with each pattern, trained tokenizers give the same ids in tokenizers" {
    need_data grimm.txt
    need_python tokenizers
    "$PYTHON" "$ORACLE" strings 4 5000 >f.jsonl
    for pattern in gpt2 llama3 cl100k qwen qwen35 o200k tekken; do
        { cat "$TESTDATA/grimm.txt" && seq 98000 100020; } >corpus.txt # merges of digits
        dt-vocab -s 2000 --pattern $pattern -o t.json corpus.txt
        dt-tokenize -t t.json --ids --frame none --special f.jsonl >ours
        "$PYTHON" "$ORACLE" encode t.json f.jsonl | cmp - ours
    done
}

@test "unigram: a size without room for the characters is refused with the smallest that has" {
    printf 'abcdefghij klm\n' >text
    for size in 200 257 262; do
        run dt-vocab --model unigram -s $size --from text -o v.json text
        [ "$status" -eq 1 ]
        [[ "$output" =~ "a vocabulary of $size is too small: "(.*)" tokens are "([0-9]+)$ ]]
        [ ! -e v.json ]
    done
    needed=${BASH_REMATCH[2]}
    refute dt-vocab --model unigram -s $((needed - 1)) --from text -o v.json text
    dt-vocab --model unigram -s $needed --from text -o v.json text
}

@test "counts of parts, added, give the tokenizer of all documents" {
    for i in 0 1; do dt-synth -n 40 --seed $i -o f$i.jsonl; done
    for model in bpe wordpiece unigram; do
        dt-vocab -q --model $model -s 400 -o whole.json f0.jsonl f1.jsonl
        for i in 0 1 2; do dt-vocab -q --model $model --count --part $i/3 -o $i.counts f0.jsonl f1.jsonl; done
        dt-vocab -q --model $model -s 400 --counts -o merged.json ?.counts
        cmp whole.json merged.json
    done
    dt-vocab -q --count -j 1 -o a.counts f0.jsonl
    dt-vocab -q --count -j 4 -o b.counts f0.jsonl
    cmp a.counts b.counts
    : >empty.jsonl
    dt-vocab -q --count -o none.counts empty.jsonl
    dt-vocab -q -s 300 --counts -o x.json none.counts a.counts
    dt-vocab -q -s 300 -o y.json f0.jsonl
    cmp x.json y.json
    dt-verify files x.json
}

@test "counts that are named twice are refused, and counts are not read as text" {
    dt-synth -n 40 -o docs.jsonl
    dt-vocab -q --count -o a.counts docs.jsonl
    ln a.counts hard
    for twice in "a.counts a.counts" "a.counts ./a.counts" "a.counts hard"; do
        run dt-vocab -q -s 300 --counts -o x $twice
        assert_one_line_error dt-vocab
        [[ "$output" == *": is named twice (also as "*"), which would duplicate its documents" ]]
    done
    run dt-vocab -q -s 300 -o x a.counts
    assert_one_line_error dt-vocab
    [[ "$output" == *"a.counts: is a file of counts of dt-vocab, not plain text; dt-vocab --counts reads it" ]]
    [ ! -e x ]
}

@test "counts of another model, damaged counts and other files are refused" {
    dt-synth -n 40 -o docs.jsonl
    dt-vocab -q --count -o bpe.counts docs.jsonl
    run dt-vocab -q --model unigram -s 400 --counts -o x bpe.counts
    assert_one_line_error dt-vocab
    [[ "$output" == *"bpe.counts: has counts for 'bpe gpt2', not for 'unigram'" ]]
    size=$(stat -c %s bpe.counts)
    for cut in 30 1000 $((size - 1)); do
        head -c $cut bpe.counts >cut.counts
        run dt-vocab -q -s 300 --counts -o x cut.counts
        assert_one_line_error dt-vocab
        [[ "$output" == *"cut.counts: is damaged or incomplete" ]]
    done
    for kind in unigram "wordpiece uncased"; do
        printf 'dt-counts 1 %s\n5 4 \xff\xff\xff\xff\nend 1 5\n' "$kind" >bytes.counts
        run dt-vocab -q --model "${kind% *}" -s 400 --counts -o x bytes.counts
        assert_one_line_error dt-vocab
        [[ "$output" == *"bytes.counts: is damaged: a word is not UTF-8" ]]
    done
    sed '3s/^[0-9]*/9/' bpe.counts >changed.counts
    for wrong in docs.jsonl changed.counts none; do
        run dt-vocab -q -s 300 --counts -o x $wrong
        assert_one_line_error dt-vocab
    done
    for options in "" "--count -s 300" "--counts -s 300" "-s 300 --counts --part 0/2 bpe.counts" \
        "--count --counts bpe.counts"; do
        run dt-vocab -o x $options </dev/null
        [ "$status" -eq 2 ]
    done
    printf 'dt-counts 1 bpe gpt2\n9300000000000000000 2 ab\nend 1 9300000000000000000\n' >many.counts
    run dt-vocab -q -s 300 --counts -o x many.counts
    assert_one_line_error dt-vocab
    for i in 0 1; do printf 'dt-counts 1 bpe gpt2\n9000000000000000 2 ab\nend 1 9000000000000000\n' >half$i.counts; done
    dt-vocab -q -s 257 --counts -o one half0.counts
    run dt-vocab -q -s 300 --counts -o x half0.counts half1.counts
    assert_one_line_error dt-vocab
    [[ "$output" == *"half1.counts: with it, more than 9007199254740991 pieces are counted" ]]
    for ignored in "--special <x>" "--alphabet 9" "--min-frequency 1"; do
        run dt-vocab --model wordpiece --count -o x $ignored docs.jsonl
        [ "$status" -eq 2 ]
        [[ "$output" == *"--count"*"${ignored% *}"* ]]
    done
    [ ! -e x ]
}
