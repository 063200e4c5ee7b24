#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
load ../helper

GOLDEN="$BATS_TEST_DIRNAME/../token/golden"
ORACLE="$BATS_TEST_DIRNAME/../oracles/tokenizers_oracle.py"

setup() {
    cd "$T"
    cp "$GOLDEN/tokenizer.json" t.json
}

# $2 bytes of the repeated string $1
repeat() {
    yes "$(printf "$1")" | tr -d '\n' | head -c "$2"
}

@test "ids of documents are those that tokenizers gives" {
    for name in tokenizer hugging-face; do
        dt-tokenize -t "$GOLDEN/$name.json" --ids --frame none "$GOLDEN/documents.jsonl" >ids
        cmp ids "$GOLDEN/$name.ids"
    done
}

@test "each document ends with the EOT token by default" {
    printf 'he\nhe he\n' >f
    [ "$(dt-tokenize -t t.json --ids --from lines f)" = "$(printf '256 419\n256 398 419')" ]
    [ "$(dt-tokenize -t t.json --ids --frame none --from lines f)" = "$(printf '256\n256 398')" ]
    printf '\n' | dt-tokenize -t t.json --ids --from lines >ids
    [ "$(cat ids)" = 419 ]
}

@test "decoding a stream restores the text, byte for byte" {
    head -c 300000 /dev/urandom >random
    cat "$GOLDEN/corpus.txt" random "$BATS_TEST_DIRNAME"/*.bats >f
    dt-tokenize -t t.json --from text f >f.dts
    dt-tokenize -t t.json -d f.dts | cmp - f
    dt-tokenize -t t.json -d <f.dts | cmp - f
    dt-tokenize -t t.json --frame none --from text f | dt-tokenize -t t.json -d | cmp - f
    dt-tokenize -t t.json --ids --from text f | dt-tokenize -t t.json -d --ids | cmp - f
}

@test "the stream is zstd, and its ids are those that --ids prints" {
    dt-tokenize -t t.json "$GOLDEN/documents.jsonl" | zstd -dcq | od -An -v -tu2 -w2 | tr -d ' ' >od
    dt-tokenize -t t.json --ids "$GOLDEN/documents.jsonl" | tr ' ' '\n' >ids
    cmp od ids
}

@test "JSON Lines are decoded to JSON Lines" {
    printf '{"text":"one\\n"}\n{"text":""}\n{"text":"tw\\u00f6 \\ud83d\\ude00"}\n' >f.jsonl
    dt-tokenize -t t.json f.jsonl | dt-tokenize -t t.json -d --to jsonl >out
    [ "$(cat out)" = '{"id":"stdin:1","text":"one\n"}
{"id":"stdin:2","text":""}
{"id":"stdin:3","text":"twö 😀"}' ]
}

@test "each input format" {
    printf 'he\n--\nan\n' >f
    [ "$(dt-tokenize -t t.json --ids --frame none --from lines f | wc -l)" -eq 3 ]
    [ "$(dt-tokenize -t t.json --ids --frame none --separator -- f)" = "$(printf '256\n259')" ]
    [ "$(printf 'he\0an\0' | dt-tokenize -t t.json --ids --frame none --from nul)" = "$(printf '256\n259')" ]
    printf 'he' | gzip >f.gz
    printf 'an' | zstd -q >f.zst
    [ "$(dt-tokenize -t t.json --ids --frame none f.gz f.zst)" = "$(printf '256\n259')" ]
}

@test "text that spells a special token is that token only where it is allowed" {
    printf 'he<|endoftext|>he' >f
    [ "$(dt-tokenize -t t.json --ids --special f)" = "256 419 256 419" ]
    [[ " $(dt-tokenize -t t.json --ids --frame none --from text f) " != *" 419 "* ]]
    dt-tokenize -t t.json --from text f | dt-tokenize -t t.json -d | cmp - f
    printf '<|endoftext|>' >f
    dt-tokenize -t t.json --special --frame none f | dt-tokenize -t t.json -d | cmp - f
    dt-tokenize -t t.json --special f | dt-tokenize -t t.json -d | cmp - f
}

@test "long text is not split inside a special token" {
    dt-vocab -s 257 --special 'a b' -o special.json --from text t.json
    repeat '1a b' 1000000 >f # the only letters before a blank are in the token
    dt-tokenize -t special.json --ids --special -j 2 f | tr ' ' '\n' | sort | uniq -c |
        awk '{ print $1, $2 }' >counts
    [ "$(cat counts)" = "$(printf '250000 16\n250000 256')" ]
}

@test "the output does not depend on the number of threads" {
    for i in $(seq 50); do cat "$GOLDEN"/*; done >large
    for i in $(seq 300); do cat "$GOLDEN/documents.jsonl"; done >many.jsonl
    for input in "--from text large" many.jsonl; do
        dt-tokenize -t t.json -j 1 $input >1.dts
        for threads in 2 4 7; do
            dt-tokenize -t t.json -j $threads $input >threads.dts
            cmp threads.dts 1.dts
        done
    done
}

@test "worst cases take linear time" {
    repeat a 1000000 >letters
    repeat ' ' 1000000 >blanks
    head -c 1000000 /dev/zero >nuls
    repeat 0 1000000 >digits
    repeat '\360\237\221\251\342\200\215' 999999 >emoji # the last one truncated
    repeat '\314\201' 1000000 >marks
    repeat '\341\204\222' 1000000 >jamo
    head -c 500000 /dev/zero | sed 's/\x00/\r\n/g' >crlf
    repeat '\327\251' 1000000 >hebrew
    repeat "'\305\277" 1000000 >long-s
    repeat '\377' 1000000 >invalid
    for f in letters blanks nuls digits emoji marks jamo crlf hebrew long-s invalid; do
        [ "$(stat -c %s $f)" -ge 999999 ]
        in_time 20 dt-tokenize -t t.json --from text $f >$f.dts
        dt-tokenize -t t.json -d $f.dts | cmp - $f
    done
}

@test "the tokenizer's files are found by directory and by vocab.json" {
    mkdir tokenizer
    cp t.json tokenizer/tokenizer.json
    [ "$(printf he | dt-tokenize -t tokenizer --ids --frame none)" = 256 ]
    run dt-tokenize -t . --ids t.json
    assert_one_line_error dt-tokenize
    [[ "$output" == *".: does not contain tokenizer.json or another tokenizer file: see dt-tokenizer(5)" ]]
}

@test "CLIP's vocab.json is refused, as its merges end words" {
    printf '{"!": 0, "e</w>": 1}' >vocab.json
    printf 'i n\n' >merges.txt
    run dt-tokenize -t . --ids f
    assert_one_line_error dt-tokenize
    [[ "$output" == *"vocab.json: has tokens that end in '</w>', as those of CLIP"*tokenizer.json* ]]
}

@test "ids of decoded documents have the path where two files have one base name" {
    mkdir a b
    for frame in "" --ids; do
        printf '{"text":"one"}\n{"text":"two"}\n' | dt-tokenize -t t.json $frame >a/f
        cp a/f b/f
        cp a/f g
        dt-tokenize -t t.json -d $frame --to jsonl a/f b/f ./g - <g >out
        [ "$(jq -r .id out | xargs)" = 'a/f:1 a/f:2 b/f:1 b/f:2 g:1 g:2 stdin:1 stdin:2' ]
    done
}

@test "a stream of another tokenizer is refused" {
    dt-tokenize -t t.json -o f.dts t.json --from text
    run dt-tokenize -t "$GOLDEN/hugging-face.json" -d f.dts
    assert_one_line_error dt-tokenize
    [[ "$output" == *"f.dts: was made with another tokenizer"* ]]
}

@test "damaged streams are refused, and no file is left" {
    dt-tokenize -t t.json -o f.dts --from text "$GOLDEN/corpus.txt"
    size=$(stat -c %s f.dts)
    for keep in 0 1 50 $((size / 2)) $((size - 1)); do
        head -c $keep f.dts >cut.dts
        run dt-tokenize -t t.json -d -o out cut.dts
        assert_one_line_error dt-tokenize
        [[ "$output" == *cut.dts* ]]
        [ ! -e out ]
    done
    for place in 100 $((size / 2)) $((size - 20)); do
        cp f.dts flipped.dts
        byte=$(od -An -tu1 -j $place -N 1 f.dts)
        printf "\\$(printf %o $((byte ^ 16)))" | dd of=flipped.dts bs=1 seek=$place conv=notrunc status=none
        run dt-tokenize -t t.json -d -o out flipped.dts
        if [ "$status" -eq 0 ]; then
            cmp out "$GOLDEN/corpus.txt" # a flip in the provenance's text
            rm out
        else
            assert_one_line_error dt-tokenize
        fi
        [ -z "$(ls -A | grep '^\.')" ]
    done
}

@test "lines without ids, and ids outside the vocabulary, are refused" {
    printf '256 259\n256 x\n' >lines
    run dt-tokenize -t t.json -d --ids -o out lines
    assert_one_line_error dt-tokenize
    [[ "$output" == *"lines:2: column 5: expected a token id, a number from 0 to 4294967295" ]]
    printf '256\n420\n' >lines
    run dt-tokenize -t t.json -d --ids -o out lines
    assert_one_line_error dt-tokenize
    [[ "$output" == *"lines: document 2: id 420 at index 0 is not in the vocabulary" ]]
    [ ! -e out ]
}

@test "missing, empty and wrong input is a one-line error" {
    : >empty
    echo '{"text": 1}' >wrong.jsonl
    for input in empty wrong.jsonl /nonexistent .; do
        run dt-tokenize -t t.json -o out "$input"
        assert_one_line_error dt-tokenize
        [ ! -e out ]
    done
    for tokenizer in empty wrong.jsonl /nonexistent; do
        run dt-tokenize -t $tokenizer --ids t.json
        assert_one_line_error dt-tokenize
        [[ "$output" == *$tokenizer* ]]
    done
}

@test "usage errors end with status 2" {
    for arguments in "--ids t.json" "-t t.json --to jsonl t.json" "-t t.json -d --from text t.json" \
        "-t t.json -d --frame none f" "-t t.json --from sep t.json" "-t t.json --to x t.json" \
        "-t t.json --from lines --separator -- t.json" "-t t.json -j 0 t.json"; do
        run dt-tokenize $arguments
        [ "$status" -eq 2 ]
    done
}

@test "a full disk and a closed pipe end the program" {
    for way in "" --ids; do
        run bash -c "dt-tokenize -t t.json $way --from text t.json >/dev/full"
        assert_one_line_error dt-tokenize
    done
    dt-tokenize -t t.json -o f.dts --from text t.json
    run bash -c "dt-tokenize -t t.json -d f.dts >/dev/full"
    assert_one_line_error dt-tokenize
    for i in $(seq 300); do cat t.json; done >large
    timeout 900 bash -c "dt-tokenize -t t.json --ids --from text large | head -c 1 >/dev/null"
}

@test "a stream is not written to a terminal" {
    need_terminal
    run script -qec "dt-tokenize -t t.json --from text t.json" /dev/null
    [ "$status" -eq 2 ]
    [[ "$output" == "dt-tokenize: a token stream cannot go to a terminal: "* ]]
    run script -qec "printf he | dt-tokenize -t t.json --ids --frame none" /dev/null
    [ "$status" -eq 0 ]
}

# Golden: tests/full/tokenize-exactness.bats compares these files with tokenizers and tiktoken.
@test "GPT-2's ids of real texts are those of tokenizers and tiktoken" {
    need_data gpt2.vocab.json
    cd "$TESTDATA"
    dt-tokenize -t gpt2.vocab.json --ids --frame none --from text grimm.txt multi30k.train.de.gz \
        multi30k.train.en.gz tinyshakespeare.txt wikitext2.test.txt wikitext2.valid.txt \
        lambada.test.jsonl gpt2.tiktoken >"$T/ids"
    [ "$(sha256sum <"$T/ids")" = "7cf04c9603738c3f70ae573649a5ba0d221b28fa2d9ddd1301758e085f04c9ad  -" ]
}

@test "GPT-2's ids are those of tokenizers and tiktoken: 20,000 random strings" {
    need_data gpt2.vocab.json
    need_python tokenizers tiktoken
    "$PYTHON" "$ORACLE" strings 7 20000 >strings.jsonl
    dt-tokenize -t "$TESTDATA/gpt2.vocab.json" --ids --frame none strings.jsonl >ids
    "$PYTHON" "$ORACLE" compare "$TESTDATA" strings.jsonl ids
}

@test "the golden ids are what tokenizers gives today" {
    need_python tokenizers
    for name in tokenizer hugging-face; do
        "$PYTHON" "$ORACLE" encode "$GOLDEN/$name.json" "$GOLDEN/documents.jsonl" >ids
        cmp ids "$GOLDEN/$name.ids"
    done
}

@test "decoding GPT-2's ids restores real text" {
    need_data gpt2.vocab.json
    for f in tinyshakespeare.txt gpt2.tiktoken multi30k.train.de.gz; do
        need_data $f
        dt-tokenize -t "$TESTDATA/gpt2.vocab.json" "$TESTDATA/$f" >f.dts
        zcat -f "$TESTDATA/$f" >f
        dt-tokenize -t "$TESTDATA/gpt2.vocab.json" -d f.dts | cmp - f
    done
}

@test "a text given as tokenizer is named in the error" {
    echo 'Once upon a time' >"$T/tale.txt"
    run dt-tokenize -t "$T/tale.txt" "$T/tale.txt"
    assert_one_line_error dt-tokenize
    [[ "$output" == "dt-tokenize: $T/tale.txt:"*": expected a complete tokenizer.json" ]]
}

@test "on a terminal text cannot move the cursor or hide; in a pipe it is unchanged" {
    command -v script || skip "no script(1)"
    printf 'a\033[2J\302\233 31m\233\342\200\256b\r\tc\303\251\n' >evil
    dt-tokenize -t t.json --from text evil >evil.dts
    dt-tokenize -t t.json -d evil.dts | cmp - evil
    run script -qec "dt-tokenize -t t.json -d evil.dts" /dev/null
    [ "$output" = $'a\\x1b[2J\\u009b 31m\\x9b\\u202eb\\x0d\tc\303\251\r' ]
    run script -qec "dt-cat --text -t t.json --doc 0 evil.dts" /dev/null
    [ "$output" = $'a\\x1b[2J\\u009b 31m\\x9b\\u202eb\\x0d\tc\303\251\r' ]
    run script -qec "dt-clean -q --invisible --from text --to text evil" /dev/null
    [ "$output" = $'a[2J 31m\357\277\275b\r\n\tc\303\251\r' ]
}

@test "names and ids in messages and lists cannot command a terminal" {
    name=$(printf 'x\033]0;t\007\302\233\233\342\200\256')
    run dt-tokenize -t t.json "$name"
    [[ "$output" == *"'x\x1b]0;t\x07\u009b\x9b\u202e'"* ]]
    run dt-tokenize -t t.json --ids "--from=$name" t.json
    [[ "$output" == *"x\x1b]0;t\x07\u009b\x9b\u202e"* ]]
    command -v script || skip "no script(1)"
    dt-tokenize -t t.json -o "$name" --from text t.json
    rm -- *.lineage.json
    run script -qec "dt-cat *x*; dt-cat --lineage *x*" /dev/null
    [ "$status" -eq 0 ]
    [[ "$output" == *'x\x1b]0;t\x07\u009b\x9b\u202e'* ]]
    refute grep -q $'\033\|\302\233' <<<"$output"
}

@test "an output that is the tokenizer or an input is refused" {
    dt-synth -n 50 >in.jsonl
    dt-vocab -q -s 300 -o own.json in.jsonl 2>/dev/null
    cp own.json kept.json
    cp in.jsonl kept.jsonl
    ln -s own.json link.json
    for options in "-t own.json -o own.json in.jsonl" "-t own.json -o link.json in.jsonl" \
        "-t link.json --ids -o own.json in.jsonl" "-t own.json -o ./in.jsonl in.jsonl"; do
        run dt-tokenize -q $options
        [ "$status" -eq 2 ] || { echo "$options: $status: $output"; return 1; }
        [[ "$output" == *"is also an input"* ]]
        cmp own.json kept.json
        cmp in.jsonl kept.jsonl
    done
}
