# SPDX-License-Identifier: MIT
# Training with distributed.invariant over MPI: the bits of one rank.
load ../helper
load ../ranks

# Grouped-query attention, norms of heads, dropout, and validation.
small=(--set model.name=llama --set model.hidden_size=32 --set model.num_layers=2
    --set model.num_heads=8 --set model.num_kv_heads=4 --set model.qk_norm=true
    --set model.max_seq_len=24 --set model.dropout=0.1 --set training.batch_size=2
    --set training.gradient_accumulation_steps=4 --set training.max_steps=6
    --set training.warmup_steps=2 --set training.eval_interval=3 --set training.eval_batches=3
    --set training.save_interval=0 --set training.log_interval=1
    --set distributed.invariant=true --set distributed.sequence_parts=8)

@test "tp 2, cp 2 and both with dp 2: the parameters of one rank" {
    one=$(ranks 1 -o run-1)
    [[ "$one" == "parameters "* ]]
    for mesh in "1 1 2 1" "1 1 1 2" "1 2 2 2"; do
        read -r pp dp tp cp <<<"$mesh"
        parameters=$(layout "$pp" "$((dp * cp))" "$tp" -o run --set distributed.cp="$cp" \
            --set distributed.zero_stage=$((dp == 2 ? 3 : 0)))
        [ "$parameters" = "$one" ]
        rm -r run
    done
}

@test "a run goes on with other layouts, and ends as one rank does" {
    one=$(ranks 1 -o run-1 --set training.schedule=constant)
    ranks 2 -o run --set training.schedule=constant --set training.max_steps=2 --set distributed.tp=2
    ranks 4 -o run --set training.schedule=constant --set training.max_steps=4 --set distributed.cp=4
    last=$(ranks 1 -o run --set training.schedule=constant)
    [ "$last" = "$one" ]
}

@test "another distributed.sequence_parts is refused on a resume" {
    ranks 1 -o run --set training.max_steps=2 --set training.schedule=constant
    run ranks 1 -o run --set training.schedule=constant --set distributed.sequence_parts=4
    [ $status = 1 ]
    [[ "$output" == *"distributed.sequence_parts: 8, which cannot change to 4 on a resume"* ]]
}

@test "layouts whose bits would depend on the ranks are refused" {
    run ranks 3 -o run --set distributed.tp=3
    [ $status = 1 ]
    [[ "$output" == *"distributed.tp that is a power of two up to 4 with this model, not 3"* ]]
    run ranks 2 -o run --set distributed.cp=2 --set distributed.sequence_parts=0
    [ $status = 1 ]
    [[ "$output" == *"distributed.cp above 1 with distributed.invariant needs a distributed.sequence_parts"* ]]
    [ ! -e run ]
}

@test "16 bits: canonical products have the bits of one rank, fast ones are refused" {
    bf16=(--set training.precision=bf16 --set training.max_steps=3)
    one=$(ranks 1 -o run-1 "${bf16[@]}" --set training.arithmetic=canonical)
    two=$(ranks 2 -o run "${bf16[@]}" --set training.arithmetic=canonical --set distributed.tp=2)
    [ "$one" = "$two" ]
    run ranks 2 -o fast "${bf16[@]}" --set distributed.tp=2
    [ $status = 1 ]
    [[ "$output" == *"above 1 needs training.arithmetic canonical"* ]]
    run ranks 1 -o run-1 "${bf16[@]}" --set training.max_steps=4
    [ $status = 1 ]
    [[ "$output" == *"training.arithmetic: canonical, which cannot change to fast on a resume"* ]]
}
