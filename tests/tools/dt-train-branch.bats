# SPDX-License-Identifier: MIT
# Branches, staged data, damaged checkpoints, the best checkpoints.
load ../helper

small=(-q -j 1 --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2
    --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=4
    --set training.warmup_steps=5 --set training.eval_interval=0 --set training.save_interval=10
    --set training.log_interval=5)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
    dt-synth -n 300 --seed 7 | dt-tokenize -q -t tok.json | dt-shard -o better
    dt-train "${small[@]}" --set training.schedule=wsd --set training.decay_fraction=0 \
        --set training.max_steps=40 -t tok.json -o run "$PWD/data" >whole
}

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data better=$BATS_FILE_TMPDIR/better
    run=$BATS_FILE_TMPDIR/run tok=$BATS_FILE_TMPDIR/tok.json
}

# branch DIR OPTION ...: from step 20 of the run.
branch() {
    dt-train -q -j 1 --branch-from "$run/step-00000020" -o "$@"
}

@test "a branch without changes ends with the bits of the run" {
    branch same >hash
    cmp hash "$BATS_FILE_TMPDIR/whole"
    cmp same/latest/trainer/optimizer.safetensors "$run/latest/trainer/optimizer.safetensors"
    grep -q '"changes":{}' same/metrics.jsonl
    cmp same/latest/tokenizer.json "$tok"
    grep -q '"tokens":5120,' same/metrics.jsonl
}

@test "annealing onto other data, a longer context, other settings: twice the same bits" {
    for i in 1 2; do
        branch annealed$i --set training.schedule=linear --set training.schedule_start=20 \
            --set training.warmup_steps=0 --set training.min_learning_rate_ratio=0 \
            --set training.max_steps=30 "$better" >annealed-$i
        branch longer$i --set model.max_seq_len=128 --set training.sequence_length=128 \
            --set training.batch_size=1 --set model.rope_theta=50000 \
            --set training.max_steps=30 >longer-$i
        branch rewound$i --set training.learning_rate=1e-4 --set training.seed=3 \
            --set training.max_steps=30 >rewound-$i
        branch bf16$i --set training.precision=bf16 --set training.max_steps=30 >bf16-$i
    done
    for what in annealed longer rewound bf16; do
        cmp $what-1 $what-2
        grep -q '"step":20,"parameters":' ${what}1/metrics.jsonl
    done
    [ "$(sort -u ./*-1 | wc -l)" -eq 4 ]
    grep -q '"other_data":true,"changes":{.*"training.schedule":\["wsd","linear"\]' annealed1/metrics.jsonl
    grep -q '"training.sequence_length":\["32","128"\]' longer1/metrics.jsonl
    grep -q '"branch": *{' rewound1/latest/trainer/lineage.json
    grep -q '"lr":0,' annealed1/metrics.jsonl
    grep -q '"step":25,"tokens":3200,' longer1/metrics.jsonl
}

@test "a branch into the directory of another run is refused, with what to do" {
    cp -r "$run" copy
    run dt-train -q -j 1 --branch-from "$run/step-00000020" -o copy
    assert_one_line_error dt-train
    [[ "$output" == *"branch.step: 0, which cannot change to 20 on a resume: a branch begins in a directory without a run, so name another one" ]]
}

@test "epochs of a branch onto other data are of these data" {
    branch once --set training.max_epochs=0.01 --set training.log_interval=1 "$better"
    jq -es '.[-1] | .step > 25 and .step < 40 and .epoch >= 0.01 and .epoch < 0.0125' once/metrics.jsonl
}

@test "a branch that is stopped goes on with the same command to the same bits" {
    settings=(--set training.max_steps=50 --set training.max_tokens=6400 "$better")
    branch straight "${settings[@]}" >straight.hash
    branch parted "${settings[@]}" >/dev/null
    rm -r parted/step-00000050 parted/step-00000040 parted/latest
    branch parted "${settings[@]}" >parted.hash
    cmp straight.hash parted.hash
    run -1 dt-train "${small[@]}" -o parted "$data"
    [[ $output == *"branched from another at step 20: give the same --branch-from" ]]
    # A branch of a branch, which goes on in the other data.
    dt-train -q -j 1 --branch-from parted/step-00000030 -o again "$better" >again.hash
    cmp straight.hash again.hash
    grep -q 'samples: 120' again/latest/trainer/config.yaml
    grep -q 'data_start: 80' again/latest/trainer/config.yaml
}

@test "what a branch cannot change is refused by name" {
    for setting in model.hidden_size=64 model.num_layers=3 training.optimizer=lion \
        training.ema_decay=0.9 model.name=mistral; do
        run -1 branch refused --set "$setting"
        [[ $output == *"started with ${setting%=*}: "*", which cannot change to ${setting#*=}"* ]] ||
            { echo "$output" && return 1; }
    done
    run -1 branch refused --set branch.step=3
    [[ $output == *"section branch is set by --branch-from alone" ]]
    run -1 branch refused --set training.max_steps=20
    [[ $output == *"the run branches at step 20, and ends at step 20"* ]]
    run -1 branch refused --set training.schedule_start=21
    [[ $output == *"training.schedule_start is 21, but the run begins at step 20"* ]]
    run -1 dt-train -q -c "$run/latest/trainer/config.yaml" --set branch.step=3 -o new "$data"
    [[ $output == *"branch.step is 3, but a new run begins at step 0"* ]]
    run -2 branch refused --init-from "$run/latest"
    refute test -e refused/latest
}

@test "stages: each has its tokens, and no number of ranks or restarts changes the bits" {
    printf '{"version": 1, "mixture": [{"data": "%s", "weight": 1}, {"data": "%s", "weight": 1}]}' \
        "$data" "$better" >mixture.json
    staged=(-q -j 1 "${small[@]}" --set "data.stages=$data:1280,mixture.json:2k,$better"
        --set training.max_steps=40 --set training.save_interval=5 --set distributed.invariant=true)
    dt-train "${staged[@]}" -o staged >staged.hash
    # The first stage is the data alone.
    dt-train -q -j 1 "${small[@]}" --set training.max_steps=10 --set training.log_interval=5 \
        --set training.schedule=constant --set distributed.invariant=true -o alone "$data" >/dev/null
    [ "$(grep -o '"batch_hash":"[^"]*"' alone/metrics.jsonl | tail -n 1)" = \
        "$(grep '"step":10,' staged/metrics.jsonl | grep -o '"batch_hash":"[^"]*"')" ]
    cp -r staged parted
    rm -r parted/step-000000{20,25,30,35,40} parted/latest
    dt-train "${staged[@]}" -o parted >parted.hash
    cmp staged.hash parted.hash
    run -1 dt-train "${staged[@]}" --set "data.stages=$data:1k,$better" -o parted
    [[ $output == *"trained on other data, or in other data.stages: the fingerprint "* ]]
    grep -q "better" staged/latest/trainer/lineage.json
    for wrong in "$data" "$data:0,$better" "$data,$better" "$data:1k,$better:1k" "$data:1k,"; do
        [ "$wrong" = "$data" ] && continue
        run -1 dt-train -q -j 1 "${small[@]}" --set "data.stages=$wrong" -o wrong
        [[ $output == *"expected DATA:TOKENS,...,DATA"* ]]
    done
    run -2 dt-train "${staged[@]}" -o both "$data"
    [[ $output == *"data.stages names the data"* ]]
}

@test "stages and branches on two ranks have the bits of one" {
    ranked=("${small[@]}" --set training.gradient_accumulation_steps=2 --set training.batch_size=2
        --set distributed.invariant=true --set training.max_steps=25)
    stages=(--set "data.stages=$data:1000,$better")
    for size in 1 2; do
        for ((rank = 0; rank < size; rank++)); do
            RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank timeout 60 dt-train "${ranked[@]}" "${stages[@]}" \
                --set distributed.rendezvous="$T/meet$size" -o staged$size >staged$size.$rank &
        done
        wait
        for ((rank = 0; rank < size; rank++)); do
            RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank timeout 60 dt-train -q -j 1 \
                --branch-from staged1/step-00000010 --set distributed.invariant=true \
                --set training.max_steps=20 --set distributed.rendezvous="$T/again$size" \
                --set data.stages= -o branch$size "$data" >branch$size.$rank &
        done
        wait
    done
    grep -q parameters staged1.0
    cmp staged1.0 staged2.0
    grep -q parameters branch1.0
    cmp branch1.0 branch2.0
}

@test "what gradient compression has not sent has the scale of the branch's precision" {
    compressed() { # RUN OPTION ...
        for rank in 0 1; do
            RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank timeout 60 dt-train -q -j 1 --set distributed.compress=topk "${@:2}" \
                --set training.gradient_accumulation_steps=2 --set training.log_interval=1 \
                --set distributed.rendezvous="$T/meet" -o "$1" "$data" >said.$rank &
        done
        wait
    }
    compressed fp16 "${small[@]}" --set training.precision=fp16 --set training.max_steps=10
    compressed fp32 "${small[@]}" --set training.max_steps=10
    compressed lowered --branch-from fp32 --set training.precision=fp16 --set training.max_steps=11
    compressed raised --branch-from fp16 --set training.precision=fp32 --set training.max_steps=11
    compressed products "${small[@]}" --set distributed.compress=powersgd --set training.max_steps=10
    run -1 dt-train -q -j 1 --branch-from products --set distributed.rendezvous= \
        --set distributed.compress_rank=2 --set training.max_steps=11 -o other "$data"
    [[ $output == *"distributed.compress_rank: 4, which cannot change to 2 in a branch" ]]
    jq -es 'map(select(.step == 11) | .grad_norm) | length == 2 and (.[0] / .[1] | . > 0.99 and . < 1.01)' \
        lowered/metrics.jsonl raised/metrics.jsonl
}

@test "a damaged newest checkpoint is passed over for the one before, and said so" {
    resumed=("${small[@]}" --set training.schedule=wsd --set training.decay_fraction=0
        --set training.max_steps=40)
    for damage in 'truncate -s -1 d/latest/model.safetensors' \
        'rm d/latest/trainer/manifest.json' 'rm -r d/step-00000040' \
        'echo >>d/latest/trainer/state.json' "sed -i 's/\"seal\"/\"seam\"/' d/latest/trainer/manifest.json" 'rm d/latest/trainer/optimizer.safetensors'; do
        rm -rf d
        cp -r "$run" d
        eval "$damage"
        dt-train "${resumed[@]}" -o d "$data" >hash 2>messages
        cmp hash "$BATS_FILE_TMPDIR/whole"
        grep -q 'the checkpoint is damaged, and passed over' messages
        grep -q 'goes on from step 30, the checkpoint before' messages
        grep -q '^{"damaged":{"reason":".*","resumed":30}}' d/metrics.jsonl
    done
    # Two of them, all of them, and a setting that differs, which is another error.
    rm -r d/step-00000030/model.safetensors d/step-00000040/model.safetensors
    dt-train "${resumed[@]}" -o d "$data" 2>messages | cmp - "$BATS_FILE_TMPDIR/whole"
    grep -q 'goes on from step 20' messages
    run -1 dt-train "${resumed[@]}" --set training.seed=5 -o d "$data"
    [[ $output == *"training.seed"*"cannot change"* ]]
    rm d/step-*/model.safetensors
    run -1 dt-train "${resumed[@]}" -o d "$data"
    [[ $output == *"no checkpoint of 'd' is undamaged; the oldest: "* ]]
    # One that is named is not replaced by another.
    run -1 dt-train "${resumed[@]}" --resume d/step-00000030 -o other "$data"
}

@test "several validation sets have a loss each, and accuracy is measured on request" {
    sets=(--set training.eval_interval=5 --set training.max_steps=10 --set training.eval_batches=2)
    cp "$better/train-00000.dts" loose.dts # of no split
    dt-train "${small[@]}" "${sets[@]}" -o plain "$data" >plain.hash
    dt-train "${small[@]}" "${sets[@]}" --set training.eval_accuracy=true \
        --set "data.validation=same=$data,better=loose.dts" \
        -o run "$data" 2>messages >hash || { cat messages && return 1; }
    cmp plain.hash hash
    python3 - <<'EOF'
import json
lines = [json.loads(line) for line in open('run/metrics.jsonl')]
lines = [line for line in lines if 'val_loss' in line]
assert len(lines) == 2
for line in lines:
    assert line['val_loss_same'] == line['val_loss'] != line['val_loss_better'] > 0
    assert line['val_accuracy_same'] == line['val_accuracy'] and 0 <= line['val_accuracy'] < 1
EOF
    refute grep -q accuracy plain/metrics.jsonl
    # Without a split of the training data's own.
    dt-train "${small[@]}" "${sets[@]}" --set "data.validation=other=$data" -o without "$better"
    [ "$(grep -c '"val_loss_other":' without/metrics.jsonl)" -eq 2 ]
    refute grep -q '"val_loss":' without/metrics.jsonl
    for wrong in "$data" "a=" "a b=$data" "a=$data,a=$data"; do
        run -1 dt-train "${small[@]}" "${sets[@]}" --set "data.validation=$wrong" -o wrong "$data"
        [[ $output == *"data.validation"* ]]
    done
}

@test "checkpoint.keep_best writes and keeps the best checkpoints without patience" {
    dt-train "${small[@]}" --set training.max_steps=40 --set training.eval_interval=2 \
        --set training.save_interval=0 --set checkpoint.keep_last=1 --set checkpoint.keep_best=3 \
        --set training.learning_rate=3e-3 -o best "$data"
    mapfile -t expected < <(sed -nE 's/.*"step":([0-9]+),.*"val_loss":([0-9.]+).*/\2 \1/p' \
        best/metrics.jsonl | sort -g | head -n 3 | cut -d ' ' -f 2 | sort -n)
    [ "$(printf 'step-%08d\n' "${expected[@]}" 40 | sort -u)" = "$(cd best && ls -d step-*)" ]
    lowest=$(sed -nE 's/.*"step":([0-9]+),.*"val_loss":([0-9.]+).*/\2 \1/p' best/metrics.jsonl |
        sort -g | head -n 1 | cut -d ' ' -f 2)
    [ "$(readlink best/best)" = "$(printf 'step-%08d' "$lowest")" ]
    run -1 dt-train "${small[@]}" --set checkpoint.keep_best=1 -o none "$better"
    [[ $output == *"checkpoint.keep_best needs validation"* ]]
}
