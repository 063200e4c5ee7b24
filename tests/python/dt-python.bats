# SPDX-License-Identifier: MIT
# The module dt of Python, over libdt.so.
load ../helper

# The id of a token of tok.json.
token_id() {
    python3 -c 'import json, sys; print(json.load(open("tok.json"))["model"]["vocab"][sys.argv[1]])' "$1"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 400 --split val=0.1
    dt-tokenize -q -t tok.json --frame none --ids docs.jsonl >ids.txt
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard --layout padded --length 32 -o masked
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard --loss-after "$(token_id .)" -o prompts
    dt-train -q -t tok.json -o run data --set model.num_layers=1 --set model.num_heads=2 \
        --set model.hidden_size=16 --set model.max_seq_len=32 --set training.max_steps=3 \
        --set training.warmup_steps=0 --set training.batch_size=4 --set training.log_interval=1
}

setup() {
    cd "$BATS_FILE_TMPDIR"
    export DT_LIBRARY="$DT_BUILD/lib/libdt.so.0"
}

# cases PYTHON NAME: the cases of a class of test_dt.py.
cases() {
    run "$1" "$ROOT/tests/python/test_dt.py" "$2"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "without numpy: tokenizers have the ids of dt-tokenize" {
    WITHOUT_NUMPY=1 cases python3 Tokenizers
}

@test "without numpy: data sets and batches are those of dt-train" {
    WITHOUT_NUMPY=1 cases python3 Data
}

@test "without numpy: cleaning and metrics" {
    WITHOUT_NUMPY=1 cases python3 Others
}

@test "with numpy: the same, and arrays" {
    need_python numpy
    for name in Tokenizers Data Others Numpy; do
        cases "$PYTHON" $name
    done
}

@test "in a locale of decimal commas: numbers have points" {
    command -v localedef >/dev/null && [ -e /usr/share/i18n/locales/de_DE ] || skip "no sources of locales"
    localedef -i de_DE -f UTF-8 "$T/de_DE.UTF-8"
    LOCPATH="$T" WITHOUT_NUMPY=1 cases python3 Locale
}

@test "with torch: tensors without a copy" {
    need_python torch numpy
    cases "$PYTHON" Torch
}

@test "ids and calls are those of tiktoken and tokenizers" {
    need_python tiktoken tokenizers
    need_data gpt2.tiktoken
    cases "$PYTHON" Peers
}

@test "a library that is missing is named" {
    export DT_LIBRARY=none.so PYTHONPATH="$ROOT/python"
    run python3 -c 'import dt'
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == "ImportError: dt needs none.so, which make builds"* ]]
}
