# SPDX-License-Identifier: MIT
# Training on several ranks over MPI.
load ../helper
load ../ranks

LAUNCH=mpi

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=8 --set training.max_steps=20
    --set training.warmup_steps=2 --set training.eval_interval=10 --set training.eval_batches=3
    --set training.save_interval=5)

@test "invariant: 1, 2, 3, 4 and 8 ranks have the same bits, and print the same" {
    for count in 1 2 3 4 8; do
        ranks $count --set distributed.invariant=true -o run-$count >parameters-$count
        results run-$count >results-$count
        cmp parameters-1 parameters-$count
        cmp results-1 results-$count
    done
    [ "$(wc -l <results-1)" -ge 5 ]
}

@test "each kind of parallelism over MPI has the bits of ranks that meet without it" {
    for kind in zero_stage=2 zero_stage=3 pp=2 tp=2 cp=2 compress=topk; do
        ranks 2 --set distributed.$kind -o mpi >parameters
        LAUNCH= ranks 2 --set distributed.$kind -o path >got
        cmp parameters got || { echo "$kind"; return 1; }
        results mpi >expected
        results path | cmp expected
        rm -r mpi path
    done
}

@test "the host of every rank is printed at the start" {
    timeout 900 mpirun -n 2 --bind-to core dt-train -j 1 "${small[@]}" --set training.max_steps=1 \
        --set training.warmup_steps=0 -o run "$data" 2>said
    grep -qx "rank 0      $(hostname | cut -c1-39), processors 0" said
    grep -qx "rank 1      $(hostname | cut -c1-39), processors 1" said
    grep -qx "ranks       2; threads, peak and memory are those of rank 0" said # parameters, tokens and steps are of all
}

@test "invariant: any number of threads, and a batch ramp, of any type" {
    ramp=(--set distributed.invariant=true --set training.batch_ramp_tokens=5000
        --set training.batch_ramp_start=3 --set training.precision=bf16)
    for count in 1 2 3; do
        timeout 900 mpirun -n $count dt-train -q -j "$count" "${small[@]}" "${ramp[@]}" \
            -o run-$count "$data" >parameters-$count
        results run-$count >results-$count
        cmp results-1 results-$count
    done
}

@test "without invariant, results differ in their last bits only" {
    ranks 1 -o run-1 >parameters-1
    ranks 4 -o run-4 >parameters-4
    refute cmp -s parameters-1 parameters-4
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

@test "SIGTERM to one rank: all stop after the same step, and resume to the same bits" {
    small+=("${endless[@]}" --set distributed.invariant=true)
    ranks 2 -o run >got 2>messages &
    job=$!
    await $job test -e run/latest
    kill -TERM "$(cat rank-1)"
    refute wait $job
    grep -q "stopped by a signal; the same command resumes from here" messages
    [ ! -s got ]
    small+=(--set training.max_steps=$(($(reached run) + 10)))
    ranks 2 -o run >got
    ranks 2 -o straight >expected
    cmp expected got
}

@test "all ranks of a run that a signal stops end by that signal" {
    timeout 900 mpirun -n 2 bash -c '"$@" & echo $! >"rank-$OMPI_COMM_WORLD_RANK"
        wait $!; echo $? >"status-$OMPI_COMM_WORLD_RANK"' - \
        dt-train -q -j 1 "${small[@]}" "${endless[@]}" -o run "$data" >got 2>messages &
    job=$!
    await $job test -e run/latest
    kill -TERM "$(cat rank-1)"
    wait $job
    [ "$(cat status-0 status-1)" = "$(printf '143\n143')" ]
    [ "$(grep -c "stopped by a signal; the same command resumes from here" messages)" = 1 ]
}

@test "SIGKILL to one rank ends the job at once; the same command resumes" {
    small+=("${endless[@]}" --set distributed.invariant=true)
    ranks 3 -o run >got 2>messages &
    job=$!
    await $job test -e run/latest
    kill -KILL "$(cat rank-2)"
    refute wait $job
    released run
    small+=(--set training.max_steps=$(($(reached run) + 10)))
    ranks 2 -o run >got
    ranks 1 -o straight >expected
    cmp expected got
}

@test "a rank that hangs is named, during a checkpoint too, and the job ends" {
    ranks 2 "${endless[@]}" --set training.save_interval=1 --set distributed.timeout=10 -o run \
        >got 2>messages &
    job=$!
    await $job test -e run/latest
    kill -STOP "$(cat rank-1)"
    refute wait $job
    kill -KILL "$(cat rank-1)" 2>/dev/null || true
    grep -qE "^dt-train: rank 0: [a-z-]+ of [0-9]+ bytes, operation [0-9]+ of (all ranks|the data-parallel group of ranks 0 and 1): [0-9]+ bytes (from|to) rank 1 have not moved for 10 seconds; " messages
    refute grep -q "training continues" messages
    [ -d run/latest/trainer ]
}

# said OPTION...: four ranks print the error and exit with status 1.
said() {
    run ranks 4 -o run "$@"
    [ "$status" -eq 1 ]
    grep '^dt-train: ' <<<"$output"
}

@test "an error of all ranks is printed once" {
    [ "$(said --set training.gradient_accumulation_steps=3)" = \
        "dt-train: --set: a step has 3 micro-batches, and each of 4 data-parallel ranks needs one: raise training.gradient_accumulation_steps" ]
    [ "$(said --set training.batch_size=no)" = \
        "dt-train: --set: training.batch_size must be a whole number, not 'no'" ]
    [ "$(said -c missing.yaml)" = "dt-train: cannot open 'missing.yaml': No such file or directory" ]
    [ "$(said -t missing.json)" = "dt-train: cannot open 'missing.json': No such file or directory" ]
    cp "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" .
    [ "$(DT_ENGINES=$T said --device none)" = "dt-train: no engine 'none': there is no $T/none.so; 'dt doctor' lists those that work" ]
    [ "$(said --set distributed.backend=self)" = \
        "dt-train: distributed.backend self is for one rank alone, and there are 4" ]
    [ "$(data=missing said)" = "dt-train: cannot open 'missing': No such file or directory" ]
    [ ! -e run ]
}

@test "an error of one rank is printed with its name" {
    run timeout 900 mpirun -n 2 dt-train -q -j 1 "${small[@]}" -o run "$data" : \
        -n 1 dt-train -q -j 1 "${small[@]}" -c missing.yaml -o run "$data"
    [ "$status" -eq 1 ]
    [ "$(grep '^dt-train: ' <<<"$output")" = \
        "dt-train: rank 2: cannot open 'missing.yaml': No such file or directory" ]
    [ ! -e run ]
}

# odd WHAT DATA OPTION...: rank 1 of two has these, which is an error that names WHAT.
odd() {
    run timeout 900 mpirun -n 1 dt-train -q -j 1 "${small[@]}" -o run "$data" : \
        -n 1 dt-train -q -j 1 "${small[@]}" "${@:3}" -o run "$2"
    [ "$status" -eq 1 ]
    [ "$(grep '^dt-train: ' <<<"$output")" = "dt-train: rank 1: $1" ]
    [ ! -e run ]
}

@test "ranks with different settings are refused" {
    for other in training.learning_rate=1 training.batch_size=1 distributed.zero_stage=1 \
        training.max_steps=10; do
        odd "${other%=*} differs from that of rank 0" "$data" --set "$other"
    done
    mkdir others && (cd others && make_data 200 301 --split val=0.1)
    odd "its training data differ from those of rank 0" others/data
    odd "--dry-run must be given to all ranks or to none" "$data" --dry-run
    cp -r "$data" elsewhere
    timeout 900 mpirun -n 1 dt-train -q -j 1 "${small[@]}" -o run "$data" : \
        -n 1 dt-train -q -j 1 "${small[@]}" -o run elsewhere
}

@test "ranks with different initial parameters are refused" {
    for run in one other; do
        dt-train -q -j 1 "${small[@]}" --set training.max_steps=1 --set training.warmup_steps=0 \
            --set "training.seed=${#run}" -o $run "$data"
    done
    begin=(dt-train -q -j 1 "${small[@]}" --set training.max_steps=2 -o run "$data")
    for given in "" "--init-from one/latest"; do
        # shellcheck disable=SC2086
        run timeout 900 mpirun -n 1 "${begin[@]}" $given : -n 1 "${begin[@]}" --init-from other/latest
        [ "$status" -eq 1 ]
        [ "$(grep '^dt-train: ' <<<"$output")" = \
            "dt-train: rank 1: its initial parameters (--init-from) differ from those of rank 0" ]
        [ ! -e run/latest ]
    done
    cp -rL one/latest copy
    timeout 900 mpirun -n 1 "${begin[@]}" --init-from one/latest : -n 1 "${begin[@]}" --init-from copy
}

@test "ranks on engines with different results are refused" {
    own=$(dt-train -j 1 "${small[@]}" --set training.max_steps=1 --set training.warmup_steps=0 \
        -o one "$data" 2>&1 | sed -nE 's/^engine +(cpu, [^,]+),.*/\1/p')
    [ -n "$own" ]
    [ "$own" != "cpu, generic" ] || skip "this machine has but one instruction set"
    run timeout 900 mpirun -n 1 dt-train -q -j 1 "${small[@]}" -o run "$data" : \
        -n 1 dt-train -q -j 1 "${small[@]}" --device cpu-generic -o run "$data"
    [ "$status" -eq 1 ]
    [ "$(grep '^dt-train: ' <<<"$output")" = \
        "dt-train: rank 1: its engine is cpu, generic, that of rank 0 is $own: their results differ; choose one that all have with --device" ]
    [ ! -e run ]
}

@test "--dry-run and --print-config print once, as with one rank" {
    for what in --dry-run --print-config; do
        timeout 900 mpirun -n 3 dt-train -j 1 "${small[@]}" $what "$data" >printed 2>messages
        dt-train "${small[@]}" $what "$data" >expected
        cmp <(awk '{ print $1 }' expected) <(awk '{ print $1 }' printed)
        [ ! -s messages ]
    done
}

@test "a usage error of all ranks is printed by rank 0" {
    skip_sleeps "$T/slept"
    OMPI_COMM_WORLD_RANK=0 run dt-train --no-such
    [ "$status" -eq 2 ] && [ "${lines[0]}" = "dt-train: unknown option '--no-such'" ]
    [ ! -s slept ]
    OMPI_COMM_WORLD_RANK=1 run dt-train --no-such
    [ "$status" -eq 2 ] && [ "${lines[0]}" = "dt-train: unknown option '--no-such'" ]
    [ "$(cat slept)" = 5 ]
}

@test "one rank accepts any backend" {
    local backend
    for backend in auto self nccl mpi; do
        dt-train -q -j 1 "${small[@]}" --set training.max_steps=3 \
            --set distributed.backend=$backend -o run-$backend "$data" >parameters-$backend
        cmp parameters-auto parameters-$backend
    done
}

@test "bad input is reported before ranks meet" {
    DT_ENGINES=$T run ranks 1 -o run
    [[ "$output" == *"no transport 'mpi': there is no "* ]]
    run dt-train -q "${small[@]}" --set distributed.backend=carrier -o run "$data"
    assert_one_line_error dt-train
}
