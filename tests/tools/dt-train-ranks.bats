# SPDX-License-Identifier: MIT
# Training on several ranks, over real MPI on this machine.
load ../helper

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# MPI leaves much of its memory to the end of the process.
export ASAN_OPTIONS=detect_leaks=0

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=8 --set training.max_steps=20
    --set training.warmup_steps=2 --set training.eval_interval=10 --set training.eval_batches=3
    --set training.save_interval=5)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q --size 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard --split val=0.1 -o data
}

setup() {
    command -v mpirun >/dev/null || skip "there is no mpirun"
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || skip "dt was built without MPI"
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# ranks N OPTION...: a run of N ranks with a thread each.
ranks() {
    local count=$1
    shift
    timeout 100 mpirun -n "$count" dt-train -q -j 1 "${small[@]}" "$@" "$data"
}

# Parameters and all of the optimizer's state, and what was measured but for times.
results() {
    (cd "$1/latest" && sha256sum model.safetensors trainer/optimizer.safetensors.zst)
    sed -E 's/,"(time|tokens_per_second|mfu)":[^,}]*//g' "$1/metrics.jsonl"
}

@test "invariant: 1, 2, 3, 4 and 8 ranks come to the same bits, and say the same" {
    for count in 1 2 3 4 8; do
        ranks $count --set distributed.invariant=true -o run-$count >parameters-$count
        results run-$count >results-$count
        cmp parameters-1 parameters-$count
        cmp results-1 results-$count
    done
    [ "$(wc -l <results-1)" -ge 5 ]
}

@test "invariant: any number of threads, and a batch ramp, of any type" {
    ramp=(--set distributed.invariant=true --set training.batch_ramp_tokens=5000
        --set training.batch_ramp_start=3 --set training.precision=bf16)
    for count in 1 2 3; do
        timeout 100 mpirun -n $count dt-train -q -j "$count" "${small[@]}" "${ramp[@]}" \
            -o run-$count "$data" >parameters-$count
        results run-$count >results-$count
        cmp results-1 results-$count
    done
}

@test "without it the sums agree, but their last bits tell" {
    ranks 1 -o run-1 >parameters-1
    ranks 4 -o run-4 >parameters-4
    if cmp -s parameters-1 parameters-4; then false; fi
    loss() { sed -nE 's/.*"val_loss":([0-9.]+).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
    awk "BEGIN { d = $(loss run-1) - $(loss run-4); exit !(d < 1e-4 && d > -1e-4) }"
}

@test "stopped on two ranks, resumed on one and on four: the same bits" {
    invariant=(--set distributed.invariant=true)
    ranks 1 "${invariant[@]}" -o straight >expected
    ranks 2 "${invariant[@]}" --set training.max_steps=10 --set training.schedule=constant -o run
    for count in 1 4; do
        cp -r run run-$count
        ranks $count "${invariant[@]}" --set training.schedule=constant -o run-$count >got-$count
        results run-$count >results-$count
    done
    cmp got-1 got-4
    cmp results-1 results-4
    ranks 3 "${invariant[@]}" --set training.schedule=constant -o straight-constant >never-stopped
    cmp got-1 never-stopped
}

@test "SIGTERM to one rank: all stop behind the same step, and go on as if nothing was" {
    invariant=(--set distributed.invariant=true --set training.max_steps=400)
    ranks 2 "${invariant[@]}" -o straight >expected
    ranks 2 "${invariant[@]}" -o run >got 2>messages &
    job=$!
    until [ -e run/latest ]; do sleep 0.05; done
    second=$(pgrep -f "dt-train .* -o run $data" | tail -n 1)
    kill -TERM "$second"
    if wait $job; then false; fi
    grep -q "stopped by a signal; the same command goes on from here" messages
    [ ! -s got ]
    ranks 2 "${invariant[@]}" -o run >got
    cmp expected got
}

@test "SIGKILL to one rank ends the job at once; the same command goes on" {
    invariant=(--set distributed.invariant=true --set training.max_steps=400)
    ranks 3 "${invariant[@]}" -o run >got 2>messages &
    job=$!
    until [ -e run/latest ]; do sleep 0.05; done
    kill -KILL "$(pgrep -f "dt-train .* -o run $data" | tail -n 1)"
    if wait $job; then false; fi
    ranks 2 "${invariant[@]}" -o run >got
    ranks 1 "${invariant[@]}" -o straight >expected
    cmp expected got
}

@test "a rank that stands still is named, and the job ends" {
    ranks 2 --set training.max_steps=100000 --set distributed.timeout=2 -o run >got 2>messages &
    job=$!
    until [ -e run/latest ]; do sleep 0.05; done
    pids=$(pgrep -f "dt-train .* -o run $data" | tail -n 2)
    second=$(for p in $pids; do tr '\0' '\n' </proc/"$p"/environ |
        grep -q '^OMPI_COMM_WORLD_RANK=1$' && echo "$p"; done)
    kill -STOP "$second"
    if wait $job; then false; fi
    kill -KILL "$second" 2>/dev/null || true
    grep -qE "^dt-train: rank 0: [a-z-]+, operation [0-9]+ of group 0: [0-9]+ bytes (from|to) rank 1 have not moved for 2 seconds; " messages
    [ -d run/latest/trainer ]
}

@test "bad input is said, and by one rank where it is everyone's" {
    run ranks 4 --set training.gradient_accumulation_steps=3 -o run
    [ "$status" -ne 0 ]
    [ "$(grep -c '^dt-train: .*: a step of 3 micro-batches cannot be shared by 4 ranks: raise training.gradient_accumulation_steps$' <<<"$output")" -ge 1 ]
    DT_ENGINES=$T run ranks 1 -o run
    [[ "$output" == *"no transport 'mpi': there is no "* ]]
    run dt-train -q "${small[@]}" --set distributed.backend=carrier -o run "$data"
    assert_one_line_error dt-train
}
