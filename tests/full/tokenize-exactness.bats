#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ids of 1,000,000 random strings for each kind of tokenizer, against its oracle.
load ../helper

KINDS="$BATS_TEST_DIRNAME/../token/kinds"
ORACLES="$BATS_TEST_DIRNAME/../oracles"

setup_file() {
    need_python tokenizers tiktoken
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings 77 1000000 >"$BATS_FILE_TMPDIR/strings.jsonl"
}

@test "a million random strings: files of tokenizers" {
    need_python tokenizers tiktoken
    for kind in llama3 nemo qwen bert bert-cased; do
        dt-tokenize -t "$KINDS/$kind.json" --frame none --ids "$BATS_FILE_TMPDIR/strings.jsonl" >"$T/ids"
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$KINDS/$kind.json" "$BATS_FILE_TMPDIR/strings.jsonl" "$T/ids"
    done
}

@test "a million random strings: ranks in each pattern" {
    need_python tokenizers tiktoken
    for pattern in gpt2 llama3 cl100k o200k tekken; do
        dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern $pattern --ids "$BATS_FILE_TMPDIR/strings.jsonl" >"$T/ids"
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$KINDS/ranks.tiktoken" "$BATS_FILE_TMPDIR/strings.jsonl" "$T/ids" \
            --pattern $pattern
    done
}
