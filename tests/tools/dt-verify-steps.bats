# SPDX-License-Identifier: MIT
load ../helper

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2
    --set training.gradient_accumulation_steps=2 --set training.max_steps=20
    --set training.warmup_steps=5 --set training.save_interval=5 --set training.log_interval=1
    --set training.eval_interval=10 --set training.trace_steps=3:8
    --set distributed.invariant=true)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
    dt-train -q -j 1 "${small[@]}" -t tok.json -o run data
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR/data" "$BATS_FILE_TMPDIR/tok.json" .
    cp -a "$BATS_FILE_TMPDIR/run" .
}

train() {
    dt-train -q -j 1 "${small[@]}" "$@" data >/dev/null
}

verify() {
    run dt-verify steps -q -j 1 "$@"
    echo "$output"
}

# fingerprint DIR: names, contents and times of everything below it.
fingerprint() {
    find "$1" -printf '%p %T@ %s %l\n' | sort
    find "$1" -type f -print0 | sort -z | xargs -0 md5sum
}

@test "a run is verified from its start, from a checkpoint, and from another one, and is not changed" {
    fingerprint run >before
    verify run
    [ "$status" -eq 0 ]
    [ "$output" = "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations" ]
    verify run 8:12
    [ "$output" = "verified steps 8 to 12: 7 of metrics.jsonl, 1 checkpoint, 1 validation" ]
    verify --from 0 run 8
    [ "$output" = "verified steps 8 to 8: 8 of metrics.jsonl, 1 checkpoint" ]
    verify --from 15 run 18:20
    [ "$output" = "verified steps 18 to 20: 5 of metrics.jsonl, 1 checkpoint, 1 validation" ]
    verify --from 15 run
    [ "$output" = "verified steps 16 to 20: 5 of metrics.jsonl, 1 checkpoint, 1 validation" ]
    verify --deep run run
    [[ "$output" == "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations, "*" hashes of traced steps" ]]
    fingerprint run >after
    cmp before after
}

@test "a run in blocks resumes and is verified with its order, and no other" {
    train --set data.shuffle_block=640 --set data.shuffle_window=3 -o whole
    cp -a whole blocks
    ln -sfn step-00000010 blocks/latest
    run train --set data.shuffle_block=320 --set data.shuffle_window=3 -o blocks
    [[ "$output" == *"started with data.shuffle_block: 640, which cannot change to 320"* ]]
    train --set data.shuffle_block=640 --set data.shuffle_window=3 -o blocks
    cmp whole/latest/model.safetensors blocks/latest/model.safetensors
    refute cmp -s run/latest/model.safetensors blocks/latest/model.safetensors
    verify whole 1:3
    [ "$status" -eq 0 ]
    sed -i 's/shuffle_window: 3/shuffle_window: 2/' whole/step-00000005/trainer/config.yaml
    verify whole 1:3
    [[ "$output" == "step "[123]": batch differs: recorded "*": the data, or their order" ]]
}

@test "a run of two ranks is verified on one, and one of one rank on others" {
    need_mpi
    rm -r run
    mpirun -n 2 dt-train -q -j 1 "${small[@]}" -o run data >/dev/null
    grep -q bytes_sent run/metrics.jsonl
    verify --deep run run
    [ "$status" -eq 0 ]
    [[ "$output" == "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, "* ]]
    mpirun -n 2 dt-verify steps -j 1 --set distributed.zero_stage=3 --deep run \
        "$BATS_FILE_TMPDIR/run" >out
    mpirun -n 2 dt-verify steps -j 1 --set distributed.pp=2 run 7:20 >>out
    [ "$(grep -c '^verified steps' out)" -eq 2 ]
}

@test "16-bit weights, EMA, dropout, another optimizer and recomputed activations are verified" {
    train --set training.precision=bf16 --set training.ema_decay=0.9 --set model.dropout=0.1 \
        --set training.optimizer=lion -o other
    verify --set training.recompute=full --deep other other
    [ "$status" -eq 0 ]
    [[ "$output" == "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, "* ]]
}

@test "a flipped bit of a checkpoint is found by step and tensor, and none starts from it" {
    "$ROOT/tests/tools/flip-bit.py" run/step-00000010/model.safetensors transformer.h.1.mlp.c_fc.bias
    verify run
    [ "$status" -eq 1 ]
    [ "$output" = "step 10: tensor 'transformer.h.1.mlp.c_fc.bias' of run/step-00000010 differs" ]
    verify run 12:15
    assert_one_line_error dt-verify
    [[ "$output" == *"run/step-00000010/model.safetensors"* ]]
    cp -a "$BATS_FILE_TMPDIR/run/step-00000010" run/other
    rm -r run/step-00000010
    mv run/other run/step-00000010
    "$ROOT/tests/tools/flip-bit.py" run/step-00000010/trainer/optimizer.safetensors \
        transformer.h.0.ln_1.weight.second_moment
    verify run
    [ "$output" = "step 10: tensor 'transformer.h.0.ln_1.weight.second_moment' of run/step-00000010 differs" ]
}

@test "a checkpoint that another run has written is not that of the steps" {
    train --set training.learning_rate=7e-4 -o other
    rm -r run/step-00000010
    cp -a other/step-00000010 run
    sed -i 's/learning_rate: 0.0007/learning_rate: 0.0006/' run/step-00000010/trainer/config.yaml
    (cd run/step-00000010 && python3 - <<'END'
import json, os
m = json.load(open("trainer/manifest.json"))
config = m["files"]["trainer/config.yaml"]
config["bytes"] = os.path.getsize("trainer/config.yaml")
config["xxh3"] = json.load(open("../step-00000005/trainer/manifest.json"))["files"]["trainer/config.yaml"]["xxh3"]
del m["seal"]
json.dump(m, open("trainer/manifest.json", "w"))
END
    )
    verify run 11:15
    [ "$status" -eq 1 ]
    [[ "$output" == "step 10: hash of the parameters of its checkpoint differs: recorded "*": the checkpoint is not of these steps" ]]
    verify run 1:15
    [[ "$output" == "step 10: tensor 'transformer.wte.weight' of run/step-00000010 differs" ]]
}

@test "another learning rate, seed and batch are found by step and cause" {
    cp -a run rate
    sed -i 's/learning_rate: 0.0006/learning_rate: 0.0005/' rate/step-00000005/trainer/config.yaml
    verify rate
    [ "$status" -eq 1 ]
    [[ "$output" == "step 1: learning rate differs: recorded 0.00012, recomputed 0.0001: the settings" ]]
    cp -a run seed
    sed -i 's/seed: 1337/seed: 1338/' seed/step-00000005/trainer/config.yaml
    verify seed
    [[ "$output" == "step 1: batch differs: recorded "*": the data, or their order" ]]
    sed -i 's/num_heads: .*/num_heads: 5/' seed/step-00000005/trainer/config.yaml
    verify seed
    [ "$status" -eq 1 ]
    [[ "$output" == "dt-verify: seed/step-00000005/trainer/config.yaml: model.hidden_size "* ]]
    # One letter of the fifth document: the batches before it are the same.
    sed -E '5s/("text": ?"[^"]{20})[a-z]/\1q/' "$BATS_FILE_TMPDIR/docs.jsonl" >docs.jsonl
    refute cmp -s docs.jsonl "$BATS_FILE_TMPDIR/docs.jsonl"
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard --split val=0.1 -o changed
    train --set data.shuffle=false -o ordered
    verify --data changed ordered
    [ "$status" -eq 1 ]
    [[ "$output" =~ ^step\ ([0-9]+):\ batch\ differs:\ recorded ]]
    [ "${BASH_REMATCH[1]}" -gt 1 ]
    verify --data changed ordered "1:$((BASH_REMATCH[1] - 1))"
    [ "$status" -eq 0 ]
}

@test "a step whose gradients two ranks did not reduce is found by layer and tensor" {
    need_mpi
    inject_faults
    rm -r run
    DT_DEBUG_SKIP_REDUCTION=3 mpirun -n 2 dt-train -q -j 1 "${small[@]}" \
        --set training.trace_steps=1 -o run data >/dev/null
    verify run
    [ "$status" -eq 1 ]
    [[ "$output" == "step 1: gradient norm differs: recorded "* ]]
    verify --deep run run
    [ "$status" -eq 1 ]
    [[ "$output" == "step 1: gradient of 'transformer.h.1.ln_1.weight' differs: recorded "* ]]
}

@test "the first traced tensor that differs is named" {
    line=$(grep -n '"step":4,"operation":"forward","tensor":"layer.1.middle"' run/hashes.jsonl)
    sed -E "${line%%:*}s/\"hash\":\"[0-9a-f]{8}/\"hash\":\"00000000/" run/hashes.jsonl >changed
    verify --deep changed run
    [ "$status" -eq 1 ]
    [[ "$output" == "step 4: forward of 'layer.1.middle' differs: recorded 00000000"* ]]
    grep -v layer.1.middle run/hashes.jsonl >lacking
    verify --deep lacking run
    assert_one_line_error dt-verify
    [[ "$output" == *"lacking:5: has step 3, forward, 'final.output', expected step 3, forward, 'layer.1.middle'" ]]
    verify --deep run run 9:20
    assert_one_line_error dt-verify
    [[ "$output" == *"run/hashes.jsonl: has no hashes of steps 9 to 20: training.trace_steps writes them" ]]
}

@test "traced steps are compared after the steps of other settings before them" {
    train --set training.max_steps=10 --set training.trace_steps=16:18 -o long
    train --set training.trace_steps=16:18 -o long
    verify --from 0 --deep long long 15:18
    [[ "$output" == "verified steps 15 to 18: 18 of metrics.jsonl, 3 checkpoints, 1 validation, "*" hashes of traced steps" ]]
}

@test "steps between two lines are named where the second differs" {
    train --set training.log_interval=10 -o sparse
    verify sparse
    [ "$output" = "verified steps 1 to 20: 3 of metrics.jsonl, 4 checkpoints, 2 validations" ]
    sed -i -E '/"step":10,.*"loss"/s/"parameter_hash":"[0-9a-f]{2}/"parameter_hash":"00/' sparse/metrics.jsonl
    verify sparse
    [ "$status" -eq 1 ]
    [[ "$output" == "one of steps 2 to 10: hash of the parameters differs: recorded 00"* ]]
}

@test "a killed run that was resumed is verified, and so is one that was continued" {
    rm -r run
    dt-train -q -j 1 "${small[@]}" --set training.max_steps=400 -o run data >/dev/null &
    pid=$!
    # With the 5th checkpoint there, `latest` names the 4th or a later one, which stays.
    await $pid test -e run/step-00000025
    kill -9 $pid 2>/dev/null || true
    wait $pid || true
    rm -rf run/step-0000001*
    train --set training.max_steps=400 -o run
    train --set training.max_steps=410 -o run
    verify run
    [ "$status" -eq 0 ]
    [[ "$output" == "verified steps 1 to 410: 410 of metrics.jsonl, "*" checkpoints, 41 validations" ]]
    verify run 395:405
    [ "$output" = "verified steps 395 to 405: 15 of metrics.jsonl, 3 checkpoints, 1 validation" ]
}

results() {
    grep -o '"val_[^,}]*\|"parameter_hash":[^,}]*' "$1/metrics.jsonl"
}

@test "a run that was resumed with another validation, or other sums, is verified" {
    train --set distributed.invariant=false -o loose
    cp -a loose before
    for setting in training.eval_batches=1 training.eval_accuracy=true data.val_split=train \
        data.validation=more=data distributed.sequence_parts=4; do
        rm -r loose
        cp -a before loose
        ln -sfn step-00000010 loose/latest
        train --set distributed.invariant=false --set "$setting" -o loose
        refute cmp -s <(results loose) <(results before)
        verify loose
        [ "$output" = "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations" ]
    done
}

@test "the data of a run are those it recorded, or --data" {
    mv data elsewhere
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"the data 'data' of the run do not exist here: give their path with --data" ]]
    verify --data elsewhere run 19:20
    [ "$status" -eq 0 ]
    verify --data nowhere run
    [[ "$output" == *"the data 'nowhere' of the run do not exist" ]]
}

@test "a run with stages of data is verified with these" {
    dt-synth -n 100 --seed 5 | dt-tokenize -q -t tok.json | dt-shard --split val=0.1 -o more
    dt-train -q -j 1 "${small[@]}" --set data.stages=data:1280,more -o staged >/dev/null
    verify staged
    [ "$output" = "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations" ]
    verify --data data staged
    assert_one_line_error dt-verify
    [[ "$output" == *"its data are those of data.stages"* ]]
    run dt-verify document staged 0123456789abcdef
    assert_one_line_error dt-verify
    [[ "$output" == *"staged/latest: was trained on data.stages"* ]]
}

@test "a run that began with another model needs that model" {
    train --init-from run/latest -o tuned
    verify tuned
    assert_one_line_error dt-verify
    [[ "$output" == *"tuned began with the parameters of another model: name it with --init-from, "* ]]
    verify --init-from run/latest tuned
    [ "$status" -eq 0 ]
    verify tuned 6:10
    [ "$status" -eq 0 ]
}

@test "a run of preferences needs the model that it was compared with" {
    mkdir models && cd models
    make_preferences
    dpo() {
        dt-train -q -j 1 --set training.objective=dpo --set training.sequence_length=32 --set training.batch_size=4 \
            --set training.max_steps=4 --set training.save_interval=2 --set training.warmup_steps=0 \
            --set training.eval_interval=0 --init-from base1/latest "$@" p.dts >/dev/null
    }
    dpo --reference base2/latest -o two
    verify --init-from base1/latest two
    assert_one_line_error dt-verify
    [[ "$output" == *"two was compared with a reference model: name it with --reference" ]]
    verify --init-from base1/latest --reference base2/latest two
    [[ "$output" == "verified steps 1 to 4: "*", 2 checkpoints" ]]
    dpo -o one
    verify --from 2 one
    [ "$status" -eq 1 ]
    verify --from 2 --init-from base1/latest one
    [[ "$output" == "verified steps 3 to 4: "*", 1 checkpoint" ]]
    sed -i 's/objective: dpo/objective: grpo/; s/objective: .dpo./objective: grpo/' one/step-*/trainer/config.yaml
    verify one
    assert_one_line_error dt-verify
    [[ "$output" == *"one: steps with training.objective grpo are not recomputed"* ]]
}

@test "a run that began with a merged adapter needs it" {
    dt-train -q -j 1 --set training.max_steps=4 --set training.warmup_steps=0 --set lora.rank=2 --set training.batch_size=2 \
        --init-from run/latest -t tok.json -o adapter data >/dev/null
    dt-train -q -j 1 --set training.max_steps=4 --set training.warmup_steps=0 --set training.batch_size=2 \
        --init-from run/latest --adapter adapter/latest -t tok.json -o merged data >/dev/null
    verify --init-from run/latest merged
    assert_one_line_error dt-verify
    [[ "$output" == *"merged began with an adapter that was merged into another model: name it with --adapter" ]]
    verify --init-from run/latest --adapter adapter/latest merged
    [[ "$output" == "verified steps 1 to 4: "*", 1 checkpoint"* ]]
}

@test "a changed validation line is found" {
    verify run
    train --set training.max_steps=10 --set training.ema_decay=0.9 -t tok.json -o averaged
    sed -i 's/\("ema_val_loss":[0-9]*\)\.[0-9]*/\1.5/' averaged/metrics.jsonl
    verify averaged
    [ "$status" -eq 1 ]
    [[ "$output" == "step 10: validation loss of the average differs: recorded "*".5, recomputed "* ]]
    sed -i 's/\("val_loss":[0-9]*\)\.[0-9]*/\1.5/' run/metrics.jsonl
    verify run
    [[ "$output" == "step 10: validation loss differs: recorded "*".5, recomputed "* ]]
}

@test "a changed loss on a set of data.validation is found, also without a validation split" {
    for d in data data/train-*; do
        dt-train -q -j 1 "${small[@]}" --set data.validation=more=data -o sets "$d" >/dev/null
        verify sets
        [ "$output" = "verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations" ]
        sed -i 's/"val_loss_more":[0-9.]*/"val_loss_more":1.5/' sets/metrics.jsonl
        verify sets
        [ "$status" -eq 1 ]
        [[ "$output" == "step 10: val_loss_more differs: recorded 1.5, recomputed "* ]]
        sed -i /val_loss_more/d sets/metrics.jsonl
        verify sets
        [ "$output" = "step 10: metrics.jsonl has no validation line of it" ]
        rm -r sets
    done
}

@test "two ranks that find a changed validation line end without a crash" {
    need_mpi
    train --set training.max_steps=10 --set training.ema_decay=0.9 -t tok.json -o averaged
    sed -i 's/\("val_loss":[0-9]*\)\.[0-9]*/\1.5/' averaged/metrics.jsonl
    run mpirun -n 2 dt-verify steps -q -j 1 --set distributed.zero_stage=2 averaged
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"step 10: validation loss differs"* ]]
}

@test "a run of local SGD is verified on as many ranks" {
    need_mpi
    mpirun -n 2 dt-train -q -j 1 "${small[@]}" --set distributed.invariant=false \
        --set training.trace_steps= --set distributed.sync=local_sgd --set distributed.local_steps=5 \
        -o local data >/dev/null
    run timeout 60 mpirun -n 2 dt-verify steps -q -j 1 local
    echo "$output"
    [[ "$output" == *"verified steps 1 to 20: 20 of metrics.jsonl, 4 checkpoints, 2 validations"* ]]
    sed -i '/"step":8,/s/\("grad_norm":[0-9]*\)\.[0-9]*/\1.75/' local/metrics.jsonl
    run timeout 60 mpirun -n 2 dt-verify steps -q -j 1 local
    [ "$status" -eq 1 ]
    [[ "$output" == *"step 8: gradient norm differs: recorded "*".75, recomputed"* ]]
}

@test "lines that are missing are found, unless the run has reported them lost" {
    cp run/metrics.jsonl whole
    head -n 6 whole >run/metrics.jsonl
    verify run
    [ "$status" -eq 1 ]
    [ "$output" = "step 7: metrics.jsonl has no training line of it" ]
    tail -n 3 whole >run/metrics.jsonl
    verify run
    [ "$output" = "step 1: metrics.jsonl has no training line of it" ]
    grep -v val_loss whole >run/metrics.jsonl
    verify run
    [ "$output" = "step 10: metrics.jsonl has no validation line of it" ]
    sed '3,6d' whole >run/metrics.jsonl
    echo '{"lost":{"lines":4,"until":20}}' >>run/metrics.jsonl
    verify run
    [ "$status" -eq 0 ]
    [[ "$output" == *": 16 of metrics.jsonl, 4 checkpoints, 2 validations; the run reports 4 lines lost" ]]
}

@test "a run that continues one in another directory is verified from its first checkpoint" {
    train --set training.max_steps=30 --resume run/step-00000010 -t tok.json -o more
    verify more
    [ "$status" -eq 1 ]
    [[ "$output" == *"more continues another run, and has no line of step 1: start from a checkpoint with --from" ]]
    verify --from 20 more
    [[ "$output" == "verified steps 21 to 30: 10 of metrics.jsonl, "* ]]
}

@test "damaged metrics are refused by line" {
    cp run/metrics.jsonl good
    sed '4s/.$//' good >run/metrics.jsonl
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"run/metrics.jsonl:4"* ]]
    sed '5s/"batch_hash":"[0-9a-f]/"batch_hash":"x/' good >run/metrics.jsonl
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"run/metrics.jsonl:5: 'batch_hash' is 'x"*"', expected 32 hexadecimal digits" ]]
    sed -E '6s/,"parameter_hash":"[0-9a-f]*"//' good >run/metrics.jsonl
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"run/metrics.jsonl:6"*parameter_hash* ]]
    sed '7s/"step":7/"step":6/' good >run/metrics.jsonl
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"run/metrics.jsonl:7: step 6 is not above that of the line before"* ]]
    : >run/metrics.jsonl
    verify run
    assert_one_line_error dt-verify
    [[ "$output" == *"run/metrics.jsonl: has no training line to compare with" ]]
}

@test "what cannot be verified is refused" {
    verify run 21:30
    assert_one_line_error dt-verify
    [[ "$output" == *"no step of 21 to 30 is logged: the last line is of step 20" ]]
    run timeout 10 dt-verify steps -q -j 1 run 21:999999999999
    [[ "$output" == *"no step of 21 to 999999999999 is logged: the last line is of step 20" ]]
    verify run 5:3
    assert_one_line_error dt-verify
    verify --from 7 run 8
    assert_one_line_error dt-verify
    [[ "$output" == *"run: has no checkpoint of step 7" ]]
    verify --from 10 run 8
    assert_one_line_error dt-verify
    verify --set training.seed=3 run
    assert_one_line_error dt-verify
    [[ "$output" == *"training.seed is a setting of the run; only the layout may change"* ]]
    rm -r run/step-* run/latest
    verify run
    assert_one_line_error dt-verify
    verify nothing
    assert_one_line_error dt-verify
    run dt-verify steps
    [ "$status" -eq 2 ]
}

@test "a branch without a checkpoint before the steps is refused by name" {
    train --branch-from run/latest --set training.max_steps=24 -o branch
    verify branch
    [ "$status" -eq 1 ]
    [[ "$output" == *"branch branched from another run at step 20, and has no checkpoint before these steps"* ]]
}
