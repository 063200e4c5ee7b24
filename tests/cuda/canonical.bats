# SPDX-License-Identifier: MIT
# With training.arithmetic: canonical the cuda engine, in emulation, has the bits of the cpu engine.
load ../helper

small=(model.hidden_size=32 model.num_layers=2 model.num_heads=4 model.max_seq_len=16
    training.batch_size=2 training.gradient_accumulation_steps=2 training.max_steps=3
    training.warmup_steps=1 training.learning_rate=0.003 training.eval_interval=2 training.eval_batches=2
    training.log_interval=1 training.arithmetic=canonical)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 200 -o docs.jsonl
    dt-vocab -q --size 300 --special '<|endoftext|>' --special '[MASK]' -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data --split val=0.1
}

# train DEVICE SETTING...: prints the hashes of parameters and of the optimizer's state.
train() {
    local device=$1 setting options=()
    shift
    rm -rf "${T:?}/$device"
    for setting in "${small[@]}" "$@"; do options+=(--set "$setting"); done
    dt-train -q -j 1 --device "$device" -t "$BATS_FILE_TMPDIR/tok.json" -o "$T/$device" \
        "${options[@]}" "$BATS_FILE_TMPDIR/data" >/dev/null || return 1
    (cd "$T/$device/latest" && sha256sum model.safetensors trainer/optimizer.safetensors)
}

# same SETTING...: both engines have one hash after the last step.
same() {
    local cpu emulated
    cpu=$(train cpu "$@")
    emulated=$(train cuda-emulated "$@")
    echo "$cpu" && echo "$emulated"
    [ "$(wc -l <<<"$cpu")" -eq 2 ]
    [ "$cpu" = "$emulated" ]
}

@test "products, norms, sums, losses and attention have the bits of dt-arithmetic(7)" {
    local t
    export DT_TEST_ENGINE=cuda-emulated DT_TEST_CANONICAL=1 CUDA_EMULATOR=eager
    for t in canonical-matmul canonical-rows canonical-attention matmul norms types attention; do
        "${DT_BUILD:-$ROOT/build}/tests/device/test-$t"
    done
}

@test "GPT-2 with dropout: one hash after three steps; without canonical another one" {
    local dropout=(model.dropout=0.1 model.attention_dropout=0.1)
    same "${dropout[@]}"
    cpu=$(train cpu "${dropout[@]}")
    fast=$(train cuda-emulated "${dropout[@]}" training.arithmetic=fast)
    [ "$(wc -l <<<"$fast")" -eq 2 ]
    [ "$cpu" != "$fast" ]
}

@test "Llama with parts of sequences: one hash, and one text" {
    same model.name=llama model.num_kv_heads=2 distributed.invariant=true \
        distributed.sequence_parts=4
    for device in cpu cuda-emulated; do
        dt-generate --device $device -m "$T/cpu/latest" --precision fp32 --arithmetic canonical \
            -p Once -n 12 --seed 3 >"$T/text-$device"
    done
    [ -s "$T/text-cpu" ]
    cmp "$T/text-cpu" "$T/text-cuda-emulated"
}

@test "bf16, norms of heads and tied weights: one hash" {
    same model.name=llama model.num_kv_heads=2 model.qk_norm=true training.precision=bf16
}

@test "fp16 with dropout, by graphs: one hash" {
    export DT_CUDA_GRAPH=1
    same training.precision=fp16 model.dropout=0.1 training.label_smoothing=0.1
}

@test "a masked model: one hash" {
    same model.name=distilbert
}
