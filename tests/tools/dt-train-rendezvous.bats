# SPDX-License-Identifier: MIT
# Ranks that no MPI has started: their environment numbers them, and they meet at a path.
load ../helper
load ../ranks

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=8 --set training.batch_size=1
    --set training.gradient_accumulation_steps=4 --set training.max_steps=3
    --set training.warmup_steps=1 --set training.log_interval=1 --set training.eval_interval=0
    --set training.save_interval=2 --set distributed.invariant=true)

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}"
}

# meet N OPTION...: N ranks; what they say is in said.RANK. Fails if one does.
meet() {
    local r failed=0
    local -a pids=()
    for ((r = 0; r < $1; r++)); do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=$1 timeout 120 dt-train -q -j 1 "${small[@]}" \
            --set distributed.rendezvous="$T/meet" "${@:2}" "$data" >said.$r 2>&1 &
        pids[r]=$!
    done
    for r in "${pids[@]}"; do
        wait "$r" || failed=1
    done
    cat said.*
    return $failed
}

@test "3 ranks have the bits of one, behind what an earlier job has left, and leave nothing" {
    dt-train -q -j 1 "${small[@]}" -o one "$data"
    results one >one.results
    echo '127.0.0.1 1 123' >meet.0
    echo 'no address' >meet.1
    meet 3 -o three --set distributed.zero_stage=3
    results three | cmp one.results -
    [ -z "$(ls meet* 2>/dev/null)" ]
    rm -r three
    meet 2 -o three --set distributed.pp=2
    results three | cmp one.results -
}

@test "numbers by Slurm" {
    SLURM_PROCID=0 SLURM_NTASKS=1 dt-train -q -j 1 "${small[@]}" \
        --set distributed.rendezvous="$T/meet" -o one "$data"
    [ -e one/latest/model.safetensors ]
}

@test "a rank that is killed ends the others, which name it" {
    local -a options=(-q -j 1 "${small[@]}" --set training.max_steps=1000000
        --set training.log_interval=1 --set distributed.rendezvous="$T/meet" -o run "$data")
    RANK=1 WORLD_SIZE=2 dt-train "${options[@]}" >said.1 2>&1 &
    local second=$!
    RANK=0 WORLD_SIZE=2 timeout 120 dt-train "${options[@]}" >said.0 2>&1 &
    local first=$!
    until [ -s run/metrics.jsonl ]; do
        kill -0 "$first"
        sleep 0.1
    done
    kill -KILL "$second"
    local status=0
    wait "$first" || status=$?
    [ "$status" -eq 1 ]
    grep -q '^dt-train: rank 0: rank 1 has left$' said.0
}

@test "what the environment and the settings lack is said in a line" {
    run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment has neither RANK nor SLURM_PROCID" ]]
    RANK=x WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment's RANK is no number: 'x'" ]]
    RANK=2 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"rank 2 of 2 ranks: they count from 0" ]]
    RANK=0 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/no/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"ranks cannot meet at '$T/no/meet.0.new': No such file or directory" ]]
    RANK=0 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" \
        --set distributed.timeout=1 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"rank 0: ranks have not met within 1 seconds: one has not started, or stands still" ]]
    run dt-train --set distributed.rendezvous=x --set distributed.backend=mpi -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.rendezvous does not go with distributed.backend mpi" ]]
}
