# SPDX-License-Identifier: MIT
# A run that is killed and resumed 100 times has the bits of an undisturbed one.
load ../helper

KILLS=${KILLS:-100}

setup() {
    cd "$T"
    make_data 300 300 --split val=0.1
}

settings=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set model.dropout=0.1 --set training.batch_size=4
    --set training.max_steps=1500 --set training.warmup_steps=10
    --set training.eval_interval=100 --set training.eval_batches=2
    --set training.save_interval=10 --set training.log_interval=10
    --set training.ema_decay=0.99 --set training.spike_threshold=8
    --set training.gradient_accumulation_steps=4 --set training.batch_ramp_tokens=100k
    --set checkpoint.keep_last=3)

# soak NAME [SETTING ...]: kills the run KILLS times, then lets it end.
soak() {
    local name=$1 kills=0 pid expected
    shift
    expected=$(dt-train -q -j 1 "${settings[@]}" "$@" --set training.save_interval=0 \
        -o "straight-$name" data)
    while [ "$kills" -lt "$KILLS" ]; do
        dt-train -q -j 1 "${settings[@]}" "$@" -o "$name" data >/dev/null &
        pid=$!
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        if kill -9 $pid 2>/dev/null; then
            kills=$((kills + 1))
        else
            rm -rf "$name" # it ended before the signal: start again
        fi
        wait $pid || true
    done
    [ "$(dt-train -q -j 1 "${settings[@]}" "$@" -o "$name" data)" = "$expected" ]
    [ -z "$(find "$name" -name '.*tmp*')" ]
    [ "$(sed -E 's/"time":[^,]*,|,"tokens_per_second.*//g' "$name/metrics.jsonl")" = \
      "$(sed -E 's/"time":[^,]*,|,"tokens_per_second.*//g' "straight-$name/metrics.jsonl")" ]
}

@test "AdamW, fp32: killed and resumed, the same bits" {
    soak adamw
}

@test "Muon, bf16, background checkpoints: killed and resumed, the same bits" {
    soak muon --set training.optimizer=muon --set training.precision=bf16 \
        --set checkpoint.background=true
}

@test "SGD, fp16, full recompute: killed and resumed, the same bits" {
    soak sgd --set training.optimizer=sgd --set training.precision=fp16 \
        --set training.recompute=full
}
