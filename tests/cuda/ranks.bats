# SPDX-License-Identifier: MIT
# Several ranks on a device whose memory the host cannot address: what they exchange goes
# through the host's, and the bits are those of one rank. The emulator closes the memory of
# the device, so that whoever touches it dies.
load ../helper
load ../ranks

small=(--device cuda-emulated --set model.hidden_size=16 --set model.num_layers=2
    --set model.num_heads=2 --set model.max_seq_len=8 --set training.batch_size=1
    --set training.gradient_accumulation_steps=3 --set training.max_steps=2
    --set training.warmup_steps=1 --set training.save_interval=1 --set training.log_interval=1
    --set training.eval_interval=0)
invariant=(--set distributed.invariant=true)

# run_ranks N NAME OPTION...: a run of N ranks; what it comes to is in NAME.results.
run_ranks() {
    ranks "$1" "${@:3}" -o "$2"
    results "$2" >"$2.results"
}

@test "invariant: two ranks of zero_stage 0, 2 and 3, and two stages, have the bits of one rank" {
    local -x DT_CUDA_GRAPH
    run_ranks 1 one "${invariant[@]}"
    [ "$(grep -c '"loss"' one.results)" -eq 2 ]
    # Launch by launch, and by graphs.
    for more in '0 zero_stage=0' '1 zero_stage=2' '1 zero_stage=3' '0 pp=2'; do
        read -r DT_CUDA_GRAPH more <<<"$more"
        run_ranks 2 two "${invariant[@]}" --set "distributed.$more"
        cmp one.results two.results
        rm -r two
    done
}

@test "data-parallel groups: the bits of one rank" {
    small+=(--set training.gradient_accumulation_steps=5)
    run_ranks 1 one "${invariant[@]}"
    for stage in 0 2 3; do
        run_ranks 4 four "${invariant[@]}" --set distributed.zero_stage=$stage \
            --set distributed.shard_ranks=2
        cmp one.results four.results
        rm -r four
    done
}

@test "16 bits, and without overlap" {
    small+=(--set training.precision=bf16)
    run_ranks 1 one "${invariant[@]}"
    run_ranks 2 two "${invariant[@]}" --set distributed.zero_stage=3 --set distributed.overlap=false
    cmp one.results two.results
}

@test "a micro-batch a rank: pieces have the bits of whole sums" {
    small+=(--set training.gradient_accumulation_steps=2)
    run_ranks 2 whole
    run_ranks 2 pieces --set distributed.zero_stage=2
    cmp whole.results pieces.results
}

@test "a sum that is left out shows" {
    inject_faults
    run_ranks 2 all --set distributed.zero_stage=2 "${invariant[@]}"
    export DT_DEBUG_SKIP_REDUCTION=1
    run_ranks 2 some --set distributed.zero_stage=2 "${invariant[@]}"
    run cmp all.results some.results
    [ "$status" -eq 1 ]
}

@test "stopped on two ranks, resumed on one: the same bits" {
    run_ranks 1 straight "${invariant[@]}"
    small+=(--set training.max_steps=1)
    run_ranks 2 parts "${invariant[@]}" --set distributed.zero_stage=3
    small+=(--set training.max_steps=2)
    run_ranks 1 parts "${invariant[@]}" --resume auto
    cmp straight.results parts.results
}

@test "ranks on GPUs of another name or capability are refused" {
    need_mpi
    for gpu in "name=another another (sm_90)" "sm=80 emulated (sm_80)"; do
        run timeout 900 mpirun -n 1 dt-train -q -j 1 "${small[@]}" -o run "$data" : \
            -n 1 env CUDA_EMULATOR="${gpu%% *}" dt-train -q -j 1 "${small[@]}" -o run "$data"
        echo "$output"
        [ "$status" -eq 1 ]
        [ "$(grep '^dt-train: ' <<<"$output")" = \
            "dt-train: rank 1: its engine is cuda, ${gpu#* }, that of rank 0 is cuda, emulated (sm_90): their results differ; choose one that all have with --device" ]
        [ ! -e run ]
    done
}

@test "what cannot reach into the device's memory says so" {
    run run_ranks 2 refused --set distributed.tp=2
    [ "$status" -ne 0 ]
    grep -q "distributed.tp on device 'cuda' needs a device communicator (distributed.backend nccl)" <<<"$output"
}
