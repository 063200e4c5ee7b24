# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q --size 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=48 --set training.batch_size=8 --set training.max_steps=60 \
        --set training.warmup_steps=5 --set training.learning_rate=5e-3 -t tok.json -o run data
}

setup() {
    cd "$T"
    model=$BATS_FILE_TMPDIR/run/latest
}

@test "the prompt comes first, and the same seed gives the same text" {
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 3 >a
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 3 >b
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 4 >c
    cmp a b
    ! cmp -s a c
    [[ "$(cat a)" == "Once upon"?* ]]
}

@test "samples differ, and the first does not depend on their number" {
    dt-generate -m "$model" -n 30 -s 3 >three
    dt-generate -m "$model" -n 30 >one
    [ "$(head -c "$(stat -c %s one)" three)" = "$(cat one)" ]
    dt-generate -m "$model" -n 30 -s 2 --temperature 0 >greedy
    half=$(($(stat -c %s greedy) / 2))
    [ "$(head -c $half greedy)" = "$(tail -c $half greedy)" ]
}

@test "temperature 0, top-k 1 and a tiny top-p all take the most probable token" {
    dt-generate -m "$model" -p One -n 30 --temperature 0 >greedy
    dt-generate -m "$model" -p One -n 30 --top-k 1 --seed 9 | cmp - greedy
    dt-generate -m "$model" -p One -n 30 --top-p 0.000001 --seed 9 | cmp - greedy
}

@test "text goes on beyond the context" {
    words=$(dt-generate -m "$model" -p One -n 400 --temperature 1.5 --seed 2 | wc -c)
    [ "$words" -gt 100 ]
}

@test "any number of threads gives the same text" {
    dt-generate -m "$model" -n 60 -j 1 >a
    dt-generate -m "$model" -n 60 -j 3 | cmp - a
}

@test "greedy text is that of transformers" {
    need_python torch transformers
    dt-generate -m "$model" -p 'Once upon a time' -n 30 --temperature 0 -o a
    "$PYTHON" "$ROOT/tests/oracles/greedy_oracle.py" "$model" 'Once upon a time' 30 | cmp - a
}

train_llama() {
    dt-train -q --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=4 --set model.num_kv_heads=1 --set model.max_seq_len=48 \
        --set model.tie_word_embeddings=false --set training.batch_size=8 \
        --set training.max_steps=60 --set training.warmup_steps=5 \
        --set training.learning_rate=5e-3 -t "$BATS_FILE_TMPDIR/tok.json" -o llama \
        "$BATS_FILE_TMPDIR/data"
}

@test "a llama writes the same text with any number of threads, and beyond its context" {
    train_llama
    dt-generate -m llama/latest -n 100 -j 1 >a
    dt-generate -m llama/latest -n 100 -j 3 | cmp - a
    [ "$(wc -c <a)" -gt 50 ]
}

@test "greedy text of a llama is that of transformers" {
    need_python torch transformers
    train_llama
    dt-generate -m llama/latest -p 'Once upon a time' -n 30 --temperature 0 -o a
    "$PYTHON" "$ROOT/tests/oracles/greedy_oracle.py" llama/latest 'Once upon a time' 30 | cmp - a
}

@test "bad input is named" {
    run dt-generate -m nowhere
    assert_one_line_error dt-generate
    cp -r "$BATS_FILE_TMPDIR/run" .
    rm run/latest/tokenizer.json
    run dt-generate -m run/latest
    assert_one_line_error dt-generate
    run dt-generate -m "$model" -o /dev/full
    assert_one_line_error dt-generate
    run dt-generate -m "$model" -o nowhere/file
    assert_one_line_error dt-generate
}

@test "usage errors end with status 2" {
    run dt-generate
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" --top-p 1.5
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" text
    [ "$status" -eq 2 ]
}

@test "variants of GPT-2 that compute something else are refused" {
    cp -r "$(readlink -f "$model")" other
    rm -r other/trainer
    for change in 's/"tie_word_embeddings": *true/"tie_word_embeddings":false/' \
        's/^{/{"scale_attn_weights":false,/' 's/^{/{"scale_attn_by_inverse_layer_idx":true,/'; do
        sed "$change" "$model/config.json" >other/config.json
        run dt-generate -m other -n 2
        assert_one_line_error dt-generate
        [[ "$output" == *"other/config.json: "*" must be "*", dt knows no other" ]]
    done
}
