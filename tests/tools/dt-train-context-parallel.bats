# SPDX-License-Identifier: MIT
# Training with context parallelism over MPI.
load ../helper
load ../ranks

# Grouped-query attention, and dropout.
small=(--set model.name=llama --set model.hidden_size=40 --set model.num_layers=2
    --set model.num_heads=10 --set model.num_kv_heads=5 --set model.intermediate_size=54
    --set model.max_seq_len=24 --set training.batch_size=2 --set model.dropout=0.1
    --set model.attention_dropout=0.1 --set training.gradient_accumulation_steps=4
    --set training.max_steps=20 --set training.warmup_steps=2 --set training.eval_interval=10
    --set training.eval_batches=3 --set training.save_interval=5)
logged=(--set training.log_interval=1)

@test "cp 2, 3 and 4, with tp, pp and dp: the curves of one rank over ten steps" {
    small+=(--set training.max_steps=10 --set training.eval_interval=5)
    one=$(ranks 1 -o run-1 "${logged[@]}")
    for mesh in "1 1 1 2" "1 2 1 3" "1 1 2 4" "2 2 1 2" "2 1 2 2"; do
        read -r pp dp tp cp <<<"$mesh"
        parameters=$(layout "$pp" "$((dp * cp))" "$tp" -o run "${logged[@]}" \
            --set distributed.cp="$cp" --set distributed.zero_stage=$((cp - 1)))
        [ "$parameters" != "$one" ] # results differ by rounding
        close run-1 run
        rm -r run
    done
}

@test "attention within documents, and 16 bits" {
    for more in "--set data.document_mask=true" "--set training.precision=bf16"; do
        ranks 1 -o run-1 "${logged[@]}" $more
        ranks 4 -o run "${logged[@]}" --set distributed.cp=4 $more
        tolerance=1e-2
        [[ "$more" == *bf16 ]] || tolerance=1e-4
        close run-1 run $tolerance
        rm -r run run-1
    done
}

@test "masked models" {
    dt-vocab -q --model wordpiece -s 300 -o pieces.json "$BATS_FILE_TMPDIR/docs.jsonl"
    dt-tokenize -q -t pieces.json "$BATS_FILE_TMPDIR/docs.jsonl" | dt-shard --split val=0.1 -o pieces
    data=pieces
    for name in bert distilbert; do
        kind=(-t pieces.json --set model.name=$name --set model.num_kv_heads=0 "${logged[@]}")
        ranks 1 -o run-1 "${kind[@]}"
        ranks 4 -o run "${kind[@]}" --set distributed.cp=2
        close run-1 run
        rm -r run run-1
    done
}

@test "a skipped block of keys changes the curves" {
    inject_faults
    ranks 1 -o run-1 "${logged[@]}"
    DT_DEBUG_SKIP_BLOCK=1 ranks 2 -o run "${logged[@]}" --set distributed.cp=2
    refute close run-1 run
}

@test "checkpoints of context-parallel runs are ordinary models" {
    ranks 2 --set distributed.cp=2 -o run >parameters
    ranks 1 -o run >again # the run is complete
    cmp parameters again
    dt-generate -m run/latest -t "$BATS_FILE_TMPDIR/tok.json" -n 5 -p Once >/dev/null
    ranks 6 --set distributed.cp=3 --set training.max_steps=30 -o run >further
    [ "$(readlink run/latest)" = step-00000030 ]
}

@test "the same bits in every run, killed or not, and with a parameter server" {
    contexts=(--set distributed.cp=2 "${logged[@]}")
    ranks 4 -o straight "${contexts[@]}" >expected
    ranks 4 -o server "${contexts[@]}" --set distributed.sync=parameter_server >got
    cmp expected got
    ranks 4 -o run "${contexts[@]}" --set training.max_steps=10 --set training.schedule=constant >/dev/null
    ranks 4 -o run "${contexts[@]}" --set training.schedule=constant >resumed
    ranks 4 -o whole "${contexts[@]}" --set training.schedule=constant >got
    cmp resumed got
}

@test "compressed gradients with context parallelism train" {
    ranks 4 -o run --set distributed.cp=2 "${logged[@]}" --set distributed.compress=topk \
        --set distributed.compress_share=0.1
    [ "$(numbers run loss | awk 'NR == 1 { first = $1 } END { print ($1 < first) }')" = 1 ]
}

@test "settings that exclude context parallelism are named" {
    run ranks 4 --set distributed.cp=4 --set training.sequence_length=20 -o run
    [ "$status" -ne 0 ]
    [[ "$output" == *"distributed.cp above 1 needs a training.sequence_length that is a multiple of 2 * distributed.cp"* ]]
    for set in sync=local_sgd sync=diloco; do
        run ranks 2 --set distributed.cp=2 --set distributed.$set -o run
        [ "$status" -ne 0 ]
        [[ "$output" == *"distributed.${set/=/ } needs distributed.cp 1"* ]]
    done
    run dt-train -q "${small[@]}" --set distributed.cp=2 -o run "$data"
    assert_one_line_error dt-train
}
