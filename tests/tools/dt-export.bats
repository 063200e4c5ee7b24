# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 200 >docs.jsonl
    dt-vocab -q --size 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    train() {
        dt-train -q --set model.hidden_size=64 --set model.num_layers=2 --set model.num_heads=4 \
            --set model.max_seq_len=48 --set training.batch_size=4 --set training.warmup_steps=1 \
            --set training.max_steps=40 --set training.learning_rate=3e-3 -t tok.json "$@" data
    }
    train -o gpt2
    train -o gpt2-b --set training.seed=7
    train -o llama --set model.name=llama --set model.num_kv_heads=2
    train -o tied --set model.name=llama --set model.tie_word_embeddings=true
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{gpt2,gpt2-b,llama,tied,docs.jsonl,tok.json} .
}

loss() { dt-eval -q --json -m "$1" ${2:+-t "$2"} perplexity docs.jsonl | sed -E 's/.*"loss":([0-9.]+).*/\1/'; }

@test "a directory comes back with the same weights, in one file or several" {
    for model in gpt2 llama tied; do
        dt-export -m $model/latest --verify -o out-$model | grep -q 'differ by 0 at most'
        [ "$(loss out-$model)" = "$(loss $model/latest)" ]
        cmp out-$model/model.safetensors $model/latest/model.safetensors
        dt-export -m $model/latest --max-shard 50k --verify -o cut-$model | grep -q 'differ by 0 at most'
        [ ! -e cut-$model/model.safetensors ]
        [ "$(ls cut-$model/model-0*-of-0*.safetensors | wc -l)" -gt 3 ]
        dt-export -m cut-$model -o again-$model
        cmp again-$model/model.safetensors $model/latest/model.safetensors
    done
}

@test "16 bits are half the size and nearly the same model" {
    for type in f16 bf16; do
        dt-export -m llama/latest --type $type --verify -o $type
        [ "$(stat -c %s $type/model.safetensors)" -lt $(($(stat -L -c %s llama/latest/model.safetensors) * 6 / 10)) ]
        awk -v a="$(loss $type)" -v b="$(loss llama/latest)" 'BEGIN { exit !((a - b) ^ 2 < 1e-4) }'
    done
}

@test "GGUF files of all types come back" {
    for model in gpt2 llama tied; do
        for type in f32 f16 bf16 q8_0; do
            dt-export -m $model/latest --to gguf --type $type --verify -o $model-$type.gguf
        done
        dt-export -m $model-f32.gguf -t tok.json -o back-$model
        cmp back-$model/model.safetensors $model/latest/model.safetensors
        [ "$(stat -c %s $model-q8_0.gguf)" -lt "$(stat -c %s $model-f16.gguf)" ]
    done
}

@test "transformers finds the same logits in directories and GGUF files" {
    need_python torch transformers gguf
    for model in gpt2 llama tied; do
        dt-export -m $model/latest --type bf16 --max-shard 50k -o $model-bf16
        "$PYTHON" "$ROOT/tests/oracles/export_oracle.py" $model/latest $model-bf16 0.08
        for type in f32:1e-5 q8_0:0.08; do
            dt-export -m $model/latest --to gguf --type ${type%:*} -o m.gguf
            "$PYTHON" "$ROOT/tests/oracles/export_oracle.py" $model/latest m.gguf ${type#*:}
        done
    done
}

@test "the mean of a model with itself is that model, and means do not depend on the order" {
    dt-export -m gpt2/latest -m gpt2/latest -o same
    cmp same/model.safetensors gpt2/latest/model.safetensors
    dt-export -m gpt2/latest -m gpt2-b/latest -o a
    dt-export -m gpt2-b/latest -m gpt2/latest -o b
    cmp a/model.safetensors b/model.safetensors
    ! cmp -s a/model.safetensors gpt2/latest/model.safetensors
    run dt-export -m gpt2/latest -m llama/latest -o c
    assert_one_line_error dt-export
    [ "$output" = "dt-export: llama/latest: is of another shape than the first model" ]
}

@test "what cannot be is refused, and no file is left" {
    run dt-export -m gpt2/latest -o gpt2/latest
    assert_one_line_error dt-export
    [[ "$output" == *"holds a model already" ]]
    run dt-export -m nowhere -o out
    assert_one_line_error dt-export
    [ ! -e out ]
    run dt-export -m gpt2/latest --to gguf -o /dev/full
    assert_one_line_error dt-export
    run bash -c "dt-export -m gpt2/latest --verify -o checked >/dev/full"
    assert_one_line_error dt-export
    run dt-export -m gpt2/latest --to gguf -o nowhere/m.gguf
    assert_one_line_error dt-export
    run dt-export -m gpt2/latest --type q8_0 -o out
    [ "$status" -eq 2 ]
    run dt-export -m gpt2/latest
    [ "$status" -eq 2 ]
    run dt-export -m gpt2/latest --to onnx -o out
    [ "$status" -eq 2 ]
    dt-export -m gpt2/latest --to gguf -o m.gguf
    for size in 0 3 8 20 100 5000; do
        head -c $size m.gguf >cut.gguf
        run dt-export -m cut.gguf -o out
        assert_one_line_error dt-export
        [[ "$output" == "dt-export: cut.gguf: "* ]]
    done
    [ ! -e out ]
}

@test "rotary positions of another kind are refused, and a terminal takes no model" {
    command -v script >/dev/null || skip "no script(1)"
    dt-export -m llama/latest --to gguf -o m.gguf
    at=$(grep -obaF llama.rope.dimension_count m.gguf | cut -d : -f 1)
    printf '\002' | dd of=m.gguf bs=1 seek=$((at + 26 + 4)) conv=notrunc status=none
    run dt-export -m m.gguf -o out
    assert_one_line_error dt-export
    [[ "$output" == *"llama.rope.dimension_count is 2, not "* ]]
    run script -qec "dt-export -m llama/latest --to gguf -o -" /dev/null
    [ "$status" -eq 2 ]
    [[ "$output" == *"not for a terminal"* ]]
}
