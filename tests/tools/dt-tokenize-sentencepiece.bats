#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SentencePiece's tokenizer.model, and Unigram in tokenizer.json. tests/token/pieces was made by
#   tests/oracles/sentencepiece_oracle.py make tests/token/pieces tests/token/golden/corpus.txt
# MODEL.ids and MODEL.texts by its `ids` and `texts`, MODEL.json by `json`, and MODEL.json.ids by
#   tests/oracles/tokenizers_oracle.py encode MODEL.json documents.jsonl
load ../helper

PIECES="$BATS_TEST_DIRNAME/../token/pieces"
ORACLES="$BATS_TEST_DIRNAME/../oracles"
MODELS="unigram unigram-lines unigram-bytes unigram-suffix unigram-across bpe bpe-bytes bpe-ties"

setup() {
    cd "$T"
}

@test "ids and texts of SentencePiece models are those of sentencepiece" {
    for model in $MODELS; do
        dt-tokenize -t "$PIECES/$model.model" --frame none --ids "$PIECES/documents.jsonl" | cmp - "$PIECES/$model.ids"
        dt-tokenize -t "$PIECES/$model.model" --frame none "$PIECES/documents.jsonl" >f.dts
        dt-tokenize -t "$PIECES/$model.model" -d --to jsonl f.dts | jq -c .text >texts
        jq -c .text "$PIECES/$model.texts" | cmp - texts
    done
}

@test "ids of Unigram in tokenizer.json are those of tokenizers, with the template" {
    for model in unigram unigram-bytes; do
        dt-tokenize -t "$PIECES/$model.json" --frame template --special --ids "$PIECES/documents.jsonl" |
            cmp - "$PIECES/$model.json.ids"
    done
}

@test "Nmt drops control characters and maps white space, as tokenizers" {
    jq '.normalizer = {"type": "Nmt"}' "$PIECES/unigram.json" >nmt.json
    jq '.normalizer = null' "$PIECES/unigram.json" >none.json
    printf '{"text": "the\\u0001\\u007f\\u009fring\\t\\u200b\\ufeff\\u2581the\\u0000\\u0080"}\n' >f.jsonl
    printf '{"text": "thering    the\\u0000\\u0080"}\n' >g.jsonl
    dt-tokenize -t nmt.json --frame none --ids f.jsonl >ids
    dt-tokenize -t none.json --frame none --ids g.jsonl | cmp - ids
}

@test "control symbols are text, unless --special is given" {
    printf '<2en>the</s>\n' >f
    dt-tokenize -t "$PIECES/unigram.model" --frame none --ids --from lines f >ids
    dt-tokenize -t "$PIECES/unigram.model" --frame none --special --ids --from lines f >special
    [ "$(wc -w <ids)" -gt "$(wc -w <special)" ]
    [ "$(cut -d' ' -f1 special)" = 3 ]
    [ "$(awk '{print $NF}' special)" = 2 ]
    [ "$(dt-tokenize -t "$PIECES/unigram.model" --frame eot --ids --from lines f | awk '{print $NF}')" = 2 ]
}

@test "offsets are those in the document, through the character map" {
    printf 'A\357\254\201  \303\251x\n' >f # "Afi" with a ligature, and an accent that becomes two characters
    dt-tokenize -t "$PIECES/unigram.model" --frame none --offsets --from lines f |
        tr ' ' '\n' | cut -d: -f2- >spans
    [ "$(head -1 spans)" = 0:0 ] || [ "$(head -1 spans)" = 0:1 ]
    [ "$(tail -1 spans | cut -d: -f2)" = 9 ]
    awk -F: '$1 > $2 || $1 < last {exit 1} {last = $1}' spans
}

@test "a model whose name ends in a version, as Mistral's, is read as one" {
    cp "$PIECES/bpe.model" tokenizer.model.v3
    dt-tokenize -t tokenizer.model.v3 --frame none --ids "$PIECES/documents.jsonl" | cmp - "$PIECES/bpe.ids"
    cp "$PIECES/bpe.model" bpe.model.vocab
    run dt-tokenize -t bpe.model.vocab --ids "$PIECES/documents.jsonl"
    assert_one_line_error dt-tokenize
}

@test "of pieces of spaces with one score the leftmost merges first" {
    printf 'a%11sb%5sc%60sd' '' '' '' >text
    [ "$(dt-tokenize -t "$PIECES/bpe-ties.model" --frame none --ids --from text text)" = \
        "268 599 597 296 598 306 599 599 599 599 599 599 599 602 276" ]
    python3 - "$PIECES/bpe-ties.model" <<'END' >two.model
import sys
data = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(data) # and a piece with the score of others that is not the lowest
sys.stdout.buffer.write(b"\x0a\x09\x0a\x02qz\x15\x00\x00\x00\x00" + b"\x0a\x09\x0a\x02zq\x15\x00\x00\x00\x00")
END
    run dt-tokenize -t two.model --ids text
    assert_one_line_error dt-tokenize
    [[ "$output" == *"has the score of others"* ]]
}

@test "a directory's tokenizer.model or spiece.model is found; threads and sizes do not matter" {
    for name in tokenizer.model spiece.model; do
        mkdir d
        cp "$PIECES/unigram.model" d/$name
        dt-tokenize -t d --frame none --ids "$PIECES/documents.jsonl" | cmp - "$PIECES/unigram.ids"
        rm -r d
    done
    yes 'the ferryman sang of a ring' | head -c 3000000 | tr '\n' ' ' >f
    for model in unigram bpe unigram-across; do
        dt-tokenize -t "$PIECES/$model.model" --frame none --from text -j 1 f | sha256sum >one
        dt-tokenize -t "$PIECES/$model.model" --frame none --from text -j 3 f | sha256sum | cmp - one
    done
}

refused() {
    run dt-tokenize -t "$1" --ids "$PIECES/documents.jsonl"
    assert_one_line_error dt-tokenize
    [[ "$output" == *"$2"* ]] || { echo "$output"; return 1; }
}

@test "damaged models, and those that dt does not support, are refused by one line" {
    for size in 2 5 100 1000 3000; do
        head -c $size "$PIECES/unigram.model" >x.model
        refused x.model x.model
    done
    cp "$PIECES/unigram.model" sentencepiece.bpe.model
    refused sentencepiece.bpe.model "use other ids"
    printf '\n\377\377\377\377\377\377\377\377\177' >x.model # a piece of 2^63 bytes
    refused x.model "damaged or cut off"
    printf '\n\t\n\005<unk>\030\002\n\006\n\002ab\030\007' >x.model
    refused x.model "piece 1 has type 7"
    printf '\n\t\n\005<unk>\030\002\n\004\n\002\377a' >x.model
    refused x.model "not UTF-8"
    printf '\n\t\n\005<unk>\030\002\n\003\n\001a\n\003\n\001a' >x.model
    refused x.model "pieces 1 and 2 have the same text"
    printf '\n\t\n\005<unk>\030\002\n\003\n\001a\022\002\030\003' >x.model
    refused x.model "model type 3 (word)"
    printf '\n\t\n\005<unk>\030\002\n\010\n\001a\025\000\000\300\177' >x.model
    refused x.model "no finite score"
    printf '\n\003\n\001a' >x.model
    refused x.model "no piece is the unknown piece"
    run dt-tokenize -t "$PIECES/bpe.model" --pattern gpt2 --ids "$PIECES/documents.jsonl"
    assert_one_line_error dt-tokenize
    [[ "$output" == *"takes no pattern"* ]]
}

@test "a Unigram model that is not whole is refused by name" {
    jq '.model.unk_id = 9999' "$PIECES/unigram.json" >x.json
    refused x.json '"unk_id" 9999'
    jq '.added_tokens = 12' "$PIECES/unigram.json" >x.json
    refused x.json '"added_tokens" is not an array'
    jq '.model.unk_id = null' "$PIECES/unigram.json" >x.json
    refused x.json unk_id
    jq '.model.vocab[7] = ["x"]' "$PIECES/unigram.json" >x.json
    refused x.json "element 7"
    jq '.model.vocab[7] = ["x", "y"]' "$PIECES/unigram.json" >x.json
    refused x.json "element 7"
    jq '.model.vocab[7] = .model.vocab[8]' "$PIECES/unigram.json" >x.json
    refused x.json "piece 8 of \"vocab\" is there twice"
    jq '.normalizer.normalizers[0].precompiled_charsmap = "AAAA"' "$PIECES/unigram.json" >x.json
    refused x.json "character map"
    jq '.model.vocab |= map(select(.[0] != "<0x41>"))' "$PIECES/unigram-bytes.json" >x.json
    refused x.json "255 of the tokens"
}

@test "dt-vocab trains Unigram: any bytes of text come back, threads do not matter" {
    dt-vocab --model unigram -s 700 --alphabet 40 --special '</s>' -q --from lines \
        -o t.json "$BATS_TEST_DIRNAME/../token/golden/corpus.txt"
    dt-vocab --model unigram -s 700 --alphabet 40 --special '</s>' -q --from lines -j 3 \
        "$BATS_TEST_DIRNAME/../token/golden/corpus.txt" | cmp - t.json
    dt-tokenize -t t.json "$PIECES/documents.jsonl" >f.dts
    dt-tokenize -t t.json -d --to jsonl f.dts | jq -c .text >texts
    jq -c '.text | gsub("\u2581"; " ")' "$PIECES/documents.jsonl" | cmp - texts
    [ "$(jq -c '[.model.vocab[0, 1, 2][0]]' t.json)" = '["<unk>","</s>","<0x00>"]' ]
    run dt-vocab --model unigram -s 280 -q --from lines "$BATS_TEST_DIRNAME/../token/golden/corpus.txt"
    assert_one_line_error dt-vocab
    [[ "$output" == *"a vocabulary of 280 is too small: characters, bytes and special tokens are "* ]]
    run dt-vocab --model unigram --pattern gpt2 -s 700 /dev/null
    [ "$status" -eq 2 ]
    run dt-vocab --model unigram --min-frequency 3 -s 700 /dev/null
    [ "$status" -eq 2 ]
}

@test "a vocabulary of dt-vocab has the ids of tokenizers" {
    need_python tokenizers
    dt-vocab --model unigram -s 700 -q --from lines -o t.json "$BATS_TEST_DIRNAME/../token/golden/corpus.txt"
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings 5 3000 >f.jsonl
    dt-tokenize -t t.json --frame none --special --ids f.jsonl >ids
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" encode t.json f.jsonl | cmp - ids
}

@test "words are at least as probable as under sentencepiece's vocabulary of the same size" {
    need_python sentencepiece tokenizers google.protobuf
    need_data grimm.txt
    grep . "$TESTDATA/grimm.txt" | head -3000 >train
    grep . "$TESTDATA/grimm.txt" | tail -1000 >test
    dt-vocab --model unigram -s 2000 -q --from lines -o t.json train
    "$PYTHON" "$ORACLES/sentencepiece_oracle.py" likelihood train test t.json 2000
}

@test "ids of models with SentencePiece's own options: 3,000 random strings" {
    need_python sentencepiece google.protobuf
    "$PYTHON" "$ORACLES/sentencepiece_oracle.py" published . "$BATS_TEST_DIRNAME/../token/golden/corpus.txt"
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings 21 3000 >f.jsonl
    for model in t5 xlnet nfkc llama gemma; do
        dt-tokenize -t $model.model --frame none --ids f.jsonl >ids
        "$PYTHON" "$ORACLES/kinds_oracle.py" $model.model f.jsonl ids
    done
}
