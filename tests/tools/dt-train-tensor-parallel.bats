# SPDX-License-Identifier: MIT
# Training with tensor parallelism over MPI.
load ../helper
load ../ranks

# 5 key heads, and vocabulary and MLP sizes not divisible by 2, 3 and 4.
small=(--set model.name=llama --set model.hidden_size=40 --set model.num_layers=2
    --set model.num_heads=10 --set model.num_kv_heads=5 --set model.intermediate_size=54
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=4 --set training.max_steps=20
    --set training.warmup_steps=2 --set training.eval_interval=10 --set training.eval_batches=3
    --set training.save_interval=5)

@test "tp 2, 3 and 4, with dp too: the curves of one rank over 20 steps" {
    one=$(ranks 1 -o run-1 --set training.log_interval=1)
    for layout in "2 2 false" "2 2 true" "3 3 true" "4 4 false" "4 2 true"; do
        read -r count slices sequence <<<"$layout"
        parameters=$(ranks "$count" -o run --set training.log_interval=1 \
            --set distributed.tp="$slices" --set distributed.sequence_parallel="$sequence")
        [ "$parameters" != "$one" ] # results differ by rounding
        close run-1 run
        rm -r run
    done
}

@test "data and tensor parallelism: the same bits with every zero_stage" {
    slices=(--set distributed.tp=2 --set distributed.sequence_parallel=true)
    ranks 4 "${slices[@]}" -o run-0 >expected
    for stage in 2 3; do
        ranks 4 "${slices[@]}" --set distributed.zero_stage=$stage -o run-$stage >got
        cmp expected got
        cmp run-0/latest/trainer/optimizer.safetensors run-$stage/latest/trainer/optimizer.safetensors
    done
}

@test "checkpoints of tensor-parallel runs are ordinary models" {
    ranks 3 --set distributed.tp=3 -o run >parameters
    ranks 1 -o run >again # the run is complete
    cmp parameters again
    dt-generate -m run/latest -t "$BATS_FILE_TMPDIR/tok.json" -n 5 -p Once >/dev/null
    ranks 2 --set distributed.tp=2 --set training.max_steps=30 -o run >further
    [ "$(readlink run/latest)" = step-00000030 ]
}

@test "a model that cannot be sharded is refused" {
    run ranks 3 --set distributed.tp=2 -o run
    [ "$status" -ne 0 ]
    [[ "$output" == *"distributed.pp (1) times distributed.cp (1) times distributed.tp (2) must divide the number of ranks, which is 3"* ]]
    run dt-train -q "${small[@]}" --set distributed.tp=2 -o run "$data"
    assert_one_line_error dt-train
    run ranks 2 --set distributed.tp=2 --set training.optimizer=muon -o run
    [[ "$output" == *"training.optimizer muon needs distributed.tp 1"* ]]
}
