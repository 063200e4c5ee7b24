# SPDX-License-Identifier: MIT
# ZeRO, and checkpoints that all ranks write.
load ../helper
load ../ranks

small=(--set model.hidden_size=32 --set model.num_layers=3 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=5 --set training.max_steps=10
    --set training.warmup_steps=2 --set training.eval_interval=5 --set training.eval_batches=3
    --set training.save_interval=5)

@test "zero_stage 0, 1, 2 and 3: the same parameters, state and measurements" {
    for type in fp32 bf16; do
        for stage in 0 1 2 3; do
            ranks 2 --set distributed.zero_stage=$stage --set training.ema_decay=0.9 \
                --set training.precision=$type -o $type-$stage >parameters-$type-$stage
            results $type-$stage >results-$type-$stage
            cmp parameters-$type-0 parameters-$type-$stage
            cmp results-$type-0 results-$type-$stage
        done
    done
    [ "$(grep -c ema_val_loss results-fp32-3)" -eq 2 ]
}

@test "hybrid sharding, with tensor parallelism too: the bits of one sharding group" {
    ranks 4 -o all >parameters
    results all >expected
    for layout in "0 2" "1 1" "2 2" "3 2"; do
        ranks 4 --set distributed.zero_stage="${layout% *}" --set distributed.check_interval=1 \
            --set distributed.shard_ranks="${layout#* }" -o run >got
        cmp parameters got
        results run | cmp expected
        rm -r run
    done
    ranks 8 --set distributed.tp=2 -o sliced >parameters
    ranks 8 --set distributed.tp=2 --set distributed.zero_stage=3 \
        --set distributed.shard_ranks=2 --set checkpoint.background=true -o grouped >got
    cmp parameters got
    results sliced >expected
    results grouped | cmp expected
}

@test "uneven sharding groups are refused in one line" {
    run ranks 2 --set distributed.shard_ranks=3 -o run
    [ "$status" -ne 0 ]
    grep -qF "distributed.shard_ranks (3) must divide the number of data-parallel ranks, which is 2" <<<"$output"
}

# Training state besides parameters and optimizer state.
@test "compressed and local SGD runs resume to the same bits" {
    local stop="--set training.schedule=constant --set training.max_steps" way
    for way in compress=topk compress=powersgd sync=diloco sync=local_sgd sync=streaming_diloco "compress=topk pp=2"; do
        read -ra settings <<<"--set distributed.${way// / --set distributed.}"
        [[ $way != sync=* ]] || settings+=(--set distributed.local_steps=5)
        [[ $way != *topk* ]] || settings+=(--set distributed.compress_share=0.1)
        settings+=(--set checkpoint.background=true --set training.log_interval=1)
        ranks 4 "${settings[@]}" $stop=10 -o straight >parameters
        ranks 4 "${settings[@]}" $stop=5 -o stopped >/dev/null
        ranks 4 "${settings[@]}" $stop=10 -o stopped >got
        cmp parameters got || { echo "$way"; return 1; }
        results straight >expected
        results stopped | cmp expected
        rm -r straight stopped
    done
}

@test "error feedback resumes with another dp size, and is refused with another pp" {
    local settings=(--set distributed.compress=topk --set training.schedule=constant)
    ranks 4 "${settings[@]}" --set training.max_steps=5 -o run >/dev/null
    ranks 3 "${settings[@]}" --set training.max_steps=6 -o run >/dev/null
    ranks 4 "${settings[@]}" --set training.max_steps=7 -o run >/dev/null
    tr -d ' \n' <run/latest/trainer/state.json | grep -qF '"errors":{"replicas":4}'
    run ranks 4 "${settings[@]}" --set distributed.pp=2 -o run
    [ "$status" -ne 0 ]
    grep -qF "the run was started with distributed.pp: 1, which cannot change to 2 on a resume" <<<"$output"
    run ranks 2 "${settings[@]}" --set distributed.tp=2 -o other
    [ "$status" -ne 0 ]
    grep -qF "distributed.compress topk needs distributed.tp 1" <<<"$output"
}

@test "background checkpoints of all ranks are those written synchronously" {
    for background in false true; do
        ranks 3 --set distributed.zero_stage=3 --set checkpoint.background=$background \
            --set training.save_interval=2 -o run-$background >parameters-$background
        [ "$(ls run-$background | grep -c '^step-')" -eq 5 ]
        (cd run-$background && sha256sum step-*/model.safetensors step-*/trainer/optimizer.safetensors) \
            >sums-$background
    done
    cmp parameters-false parameters-true
    cmp sums-false sums-true
}

@test "a rank that cannot write is named; the previous checkpoint stays" {
    need_mpi
    ranks 2 --set training.max_steps=5 --set training.schedule=constant -o run
    for background in false true; do
        run timeout 900 mpirun -n 1 dt-train -q -j 1 "${small[@]}" --set training.schedule=constant \
            --set training.save_interval=2 --set checkpoint.background=$background -o run "$data" : \
            -n 1 bash -c 'trap "" XFSZ; ulimit -f 20; exec "$@"' - dt-train -q -j 1 "${small[@]}" \
            --set training.schedule=constant --set training.save_interval=2 \
            --set checkpoint.background=$background -o run "$data"
        [ "$status" -ne 0 ]
        grep -qE "^dt-train: step [6-9]: rank 1: cannot write '.*': File too large; training continues, the last checkpoint stays$" <<<"$output"
        grep -qE "^dt-train: (rank [01]: )?rank 1: cannot write '.*': File too large$" <<<"$output"
        [ "$(readlink run/latest)" = step-00000005 ]
        [ "$(ls -A run | grep -c step)" -eq 1 ]
    done
    ranks 2 --set training.schedule=constant -o run
    [ "$(readlink run/latest)" = step-00000010 ]
}

@test "a run directory that disappears ends the run after its last step" {
    mkdir disk
    ln -s disk mounted
    small+=("${endless[@]}" --set training.eval_interval=0)
    ranks 2 -o mounted/run >got 2>messages &
    job=$!
    await $job test -e mounted/run/latest
    ln -s nowhere lost
    mv -T lost mounted # atomic, so that it cannot be created again in between
    await $job grep -q "training continues" messages
    kill -TERM "$(cat rank-0)"
    refute wait $job
    grep -qE "^dt-train: rank 0: cannot [^;]*$" messages
    grep -qE "^dt-train: step [0-9]+: rank [01]: cannot .*; training continues, the last checkpoint stays$" messages
    [ -d disk/run/latest/trainer ]
    ln -sfn disk mounted
    last=$(($(reached disk/run) + 10))
    ranks 2 --set training.max_steps=$last -o mounted/run
    [ "$(reached disk/run)" = $last ]
}
