# SPDX-License-Identifier: MIT
# Runs whose ranks fail, are slow, or compute NaN.
load ../helper
load ../ranks

LAUNCH=mpi

small=(--set model.hidden_size=32 --set model.num_layers=4 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set training.max_steps=8
    --set training.gradient_accumulation_steps=4 --set training.warmup_steps=2
    --set training.eval_interval=0 --set training.save_interval=0 --set training.log_interval=1
    --set distributed.invariant=true --set distributed.check_interval=1)

# A few kills; `make check-full` runs a hundred.
@test "ranks killed and stopped at random: the job ends, and resumes to the same bits" {
    FAULTS_STOP_EVERY=3 "$ROOT/tests/full/faults" 3
}

@test "a rank that hangs before the rendezvous ends the job in time, with a line" {
    run timeout 900 mpirun -n 3 bash -c '
        [ "$OMPI_COMM_WORLD_RANK" != 1 ] || kill -STOP $$
        exec "$@"' - dt-train -q -j 1 "${small[@]}" --set distributed.timeout=2 -o run "$data"
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
    grep -qE "^dt-train: rank [02]: ranks have not met within 2 s: one has not started, or hangs$" <<<"$output"
    [ ! -e run ]
}

@test "NaN gradients on one rank: all ranks skip that update, and only that one" {
    inject_faults
    DT_DEBUG_POISON=4 dt-train -q -j 1 "${small[@]}" -o one "$data" >expected 2>messages
    grep -qE "^dt-train: step 4: loss [0-9.]+ and gradient norm nan are not finite; update skipped$" messages
    dt-train -q -j 1 "${small[@]}" -o sound "$data" >sound.parameters
    refute cmp -s sound.parameters expected
    for layout in "3 0 zero_stage=0" "3 1 zero_stage=1" "2 1 zero_stage=2" "2 1 zero_stage=3" "2 1 pp=2"; do
        read -r ranks poisoned option <<<"$layout"
        timeout 900 mpirun -n "$ranks" bash -c '
            [ "$OMPI_COMM_WORLD_RANK" != "$1" ] || export DT_DEBUG_POISON=4
            shift
            exec "$@"' - "$poisoned" dt-train -q -j 1 "${small[@]}" --set "distributed.$option" \
            -o run "$data" >got 2>messages || { cat messages && return 1; }
        cmp expected got || { echo "$layout" && return 1; }
        [ "$(grep -c "^dt-train: step 4: .* not finite; update skipped$" messages)" = 1 ]
        [ "$(grep -c '"skipped":1' run/metrics.jsonl)" = 1 ]
        rm -r run
    done
}

@test "ranks that take turns on too few processors are not called stragglers" {
    ranks=$(($(getconf _NPROCESSORS_ONLN) + 3))
    [ "$ranks" -le 8 ] || skip "$ranks ranks take long"
    mpirun -n "$ranks" dt-train -j 1 "${small[@]}" --set training.max_steps=40 \
        --set training.gradient_accumulation_steps="$ranks" -o run "$data" >got 2>messages
    factor=$(grep -o '"slowest_factor":[0-9.]*' run/metrics.jsonl | sed 's/.*://' | sort -g | tail -n 1)
    echo "factor $factor"
    awk -v f="$factor" 'BEGIN { exit !(f > 1.5) }' || skip "no rank waited for a processor"
    refute grep -F 'times as long' messages
}

@test "a straggler is named, in a line and in the metrics" {
    [ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || skip "two ranks need two processors"
    mpirun -n 2 "${as_rank[@]}" dt-train -j 1 "${small[@]}" "${endless[@]}" \
        --set training.log_interval=10 -o run "$data" >got 2>messages &
    job=$!
    await $job test -s run/metrics.jsonl
    slow=$(cat rank-1)
    pause=0.05
    until grep -q "rank 1 computes" messages; do # in the end, longer than ten steps take here
        kill -STOP "$slow"
        sleep $pause
        kill -CONT "$slow"
        sleep 0.05
        pause=$(awk "BEGIN { print $pause < 20 ? 1.5 * $pause : $pause }")
    done
    for _ in 1 2 3 4; do # as slow again: no line
        kill -STOP "$slow"
        sleep $pause
        kill -CONT "$slow"
        sleep 0.1
    done
    kill -TERM "$slow"
    refute wait $job
    sed -nE 's/.*: rank 1 computes ([0-9.]+) times .*/\1/p' messages >told
    awk 'NR > 1 && $1 < 1.9 * last { exit 1 } { last = $1 }' told # rounded
    grep -qE "^dt-train: step [0-9]+: rank 1 computes [0-9.]+ times as long as others, which wait for it$" messages
    factor=$(grep -o '"slowest_rank":1,"slowest_factor":[0-9.]*' run/metrics.jsonl | sed 's/.*://' | sort -g | tail -n 1)
    awk -v f="$factor" 'BEGIN { exit !(f > 1.5) }'
    # every line of a whole interval; the first is that of step 1
    [ "$(grep -c '"slowest_factor":[0-9.]*' run/metrics.jsonl)" = $(($(wc -l <run/metrics.jsonl) - 1)) ]
}
