# SPDX-License-Identifier: MIT
# SHA-256 of parameters and optimizer state after 20 steps, compared between layouts.
load ../helper
load ../ranks

LAUNCH=mpi
inject_faults

# A tied head; the number of layers is not divisible by 2, 3 or 4 stages.
small=(--set model.hidden_size=32 --set model.num_layers=5 --set model.num_heads=2
    --set model.max_seq_len=32 --set model.dropout=0.1 --set training.batch_size=1
    --set training.max_steps=20 --set training.warmup_steps=2 --set training.eval_interval=0
    --set training.save_interval=0 --set training.log_interval=1)

# sums N OPTION...: SHA-256 of the checkpoint after 20 steps on N ranks.
sums() {
    rm -rf run
    ranks "$@" -o run >/dev/null
    (cd run/latest && sha256sum model.safetensors trainer/optimizer.safetensors)
}

# each LIST: prints --set distributed.OPTION for each option.
each() {
    for option in $1; do printf -- '--set\ndistributed.%s\n' "$option"; done
}

# same EXPECTED N LIST OPTION...: N ranks with this list have these hashes.
same() {
    local expected=$1 count=$2 list=$3 options
    shift 3
    mapfile -t options < <(each "$list")
    [ "$(sums "$count" "${options[@]}" "$@")" = "$expected" ] || { echo "$count ranks: $list $*" && return 1; }
    compared=$((compared + 1))
}

# missed EXPECTED N LIST OPTION...: without the reduction of bucket 3 (the second layer), these
# ranks have other hashes.
missed() {
    DT_DEBUG_SKIP_REDUCTION=3 refute same "$@" >/dev/null
}

@test "ZeRO 0 to 3, one or several micro-batches, with and without overlap: the same hashes" {
    compared=0
    for micro in 4 12; do
        expected=$(sums 4 --set training.gradient_accumulation_steps=$micro)
        for zero in 0 1 2 3; do
            for overlap in true false; do
                same "$expected" 4 "zero_stage=$zero overlap=$overlap" \
                    --set training.gradient_accumulation_steps=$micro
                missed "$expected" 4 "zero_stage=$zero overlap=$overlap" \
                    --set training.gradient_accumulation_steps=$micro
            done
        done
    done
    [ $compared = 16 ]
}

@test "all schedules, also with fewer micro-batches than stages: the hashes of one stage" {
    compared=0
    for micro in 2 4 12; do
        batches=(--set training.gradient_accumulation_steps=$micro --set distributed.invariant=true)
        expected=$(sums 1 "${batches[@]}")
        for stages in 2 3 4; do
            for schedule in afab 1f1b model_parallel; do
                same "$expected" $stages "pp=$stages schedule=$schedule" "${batches[@]}"
            done
            DT_DEBUG_SKIP_TIED=1 refute same "$expected" $stages "pp=$stages" "${batches[@]}" >/dev/null
        done
        same "$expected" 2 "pp=2 schedule=interleaved virtual_stages=2" "${batches[@]}"
        same "$expected" 4 "pp=2 schedule=1f1b zero_stage=3" "${batches[@]}"
        missed "$expected" 4 "pp=2 schedule=1f1b zero_stage=3" "${batches[@]}"
    done
    [ $compared = 33 ]
}

@test "invariant: 1, 2, 3, 4 and 8 data-parallel ranks of 1, 2 and 3 threads: the same hashes" {
    compared=0
    batches=(--set training.gradient_accumulation_steps=8 --set distributed.invariant=true)
    expected=$(sums 1 "${batches[@]}")
    for count in 1 2 3 4 8; do
        for threads in 1 2 3; do
            same "$expected" $count "zero_stage=$((count % 4))" "${batches[@]}" -j $threads
        done
        [ $count = 1 ] || missed "$expected" $count "zero_stage=$((count % 4))" "${batches[@]}"
    done
    [ $compared = 15 ]
}

# dt uses only point-to-point messages of MPI: these choices must not change the results.
@test "every all-reduce algorithm of Open MPI: the same hashes" {
    compared=0
    ompi_info >/dev/null 2>&1 || skip "mpirun is not Open MPI's"
    batches=(--set training.gradient_accumulation_steps=8)
    expected=$(sums 4 "${batches[@]}")
    export OMPI_MCA_coll_tuned_use_dynamic_rules=1
    for algorithm in 0 1 2 3 4 5 6; do
        OMPI_MCA_coll_tuned_allreduce_algorithm=$algorithm same "$expected" 4 "" "${batches[@]}"
    done
    [ $compared = 7 ]
}

# grad_norm of every step, equal but for rounding.
@test "tp 1, 2 and 4 with GPT-2's vocabulary and 5 key/value heads: the gradient norms of tp 1" {
    sharded=(--set model.name=llama --set model.vocab_size=50257 --set model.hidden_size=40
        --set model.num_heads=10 --set model.num_kv_heads=5 --set model.intermediate_size=54
        --set model.num_layers=2 --set training.gradient_accumulation_steps=4)
    ranks 1 "${sharded[@]}" -o whole >/dev/null
    for tp in 2 4; do
        ranks $tp "${sharded[@]}" --set distributed.tp=$tp -o run-$tp >/dev/null
        paste <(numbers whole grad_norm) <(numbers run-$tp grad_norm) >pairs
        [ "$(wc -l <pairs)" = 20 ]
        awk '{ d = $1 / $2 - 1; if (!(d < 1e-5 && d > -1e-5)) { print; exit 1 } }' pairs
        DT_DEBUG_SKIP_EXCHANGE=3 ranks $tp "${sharded[@]}" --set distributed.tp=$tp \
            -o skipped-$tp >/dev/null
        paste <(numbers whole grad_norm) <(numbers skipped-$tp grad_norm) >pairs
        refute awk '{ d = $1 / $2 - 1; if (!(d < 1e-5 && d > -1e-5)) exit 1 }' pairs
    done
}

@test "invariant, masked models: tp, cp and both with dp have the hashes of one rank" {
    compared=0
    data=pieces
    dt-vocab -q --model wordpiece -s 300 -o pieces.json "$BATS_FILE_TMPDIR/docs.jsonl"
    dt-tokenize -q -t pieces.json "$BATS_FILE_TMPDIR/docs.jsonl" | dt-shard --split val=0.1 -o pieces
    for name in bert distilbert; do
        kind=(-t pieces.json --set model.name=$name --set model.num_heads=4
            --set training.gradient_accumulation_steps=4 --set distributed.invariant=true
            --set distributed.sequence_parts=8)
        expected=$(sums 1 "${kind[@]}")
        for layout in "2 tp=2" "4 tp=4 sequence_parallel=true" "2 cp=2" "4 cp=4 zero_stage=2" \
            "8 tp=2 cp=2 zero_stage=3"; do
            same "$expected" "${layout%% *}" "${layout#* }" "${kind[@]}"
        done
    done
    [ $compared = 10 ]
}
