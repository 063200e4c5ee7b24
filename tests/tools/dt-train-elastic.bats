# SPDX-License-Identifier: MIT
# Elastic runs: ranks that come and go between steps, and the bits of one rank.
load ../helper
load ../ranks

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=64 --set training.batch_size=2
    --set training.gradient_accumulation_steps=4 --set training.warmup_steps=1
    --set training.log_interval=1 --set training.eval_interval=50 --set training.eval_batches=2
    --set training.save_interval=50
    --set checkpoint.keep_last=2 --set distributed.invariant=true)
elastic=(--set distributed.elastic=1:4 --set distributed.rendezvous=meet
    --set distributed.timeout=20 --set distributed.join_timeout=20)

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    pids=()
    unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!MASTER_@}" DT_KEY RANK WORLD_SIZE
}

# member R OPTION...: process R of an endless run in the background; pids[R] is its id.
member() {
    dt-train -j 1 "${small[@]}" "${endless[@]}" "${elastic[@]}" "${@:2}" -o run "$data" \
        >said."$1" 2>&1 &
    pids[$1]=$!
}

teardown() {
    local r
    for r in "${!pids[@]}"; do
        kill -KILL "${pids[r]}" 2>/dev/null || true
    done
}

# The number of ranks of each generation in turn.
generations() { sed -nE 's/.*"ranks":([0-9]+),"generation".*/\1/p' run/metrics.jsonl; }

# ranks_are N: N ranks have done a step.
ranks_are() {
    [ -e run/metrics.jsonl ] && tail -n 1 run/metrics.jsonl | grep -q '"loss"' &&
        [ "$(generations | tail -n 1)" = "$1" ]
}

# ends R STATUS: process R has ended with it.
ends() {
    local status=0
    wait "${pids[$1]}" || status=$?
    [ "$status" -eq "$2" ] || { cat said.*; echo "status $status, not $2"; return 1; }
}

# finish R...: these processes leave one after the other, the last one with a checkpoint.
finish() {
    local r
    for r in "$@"; do
        kill -TERM "${pids[r]}"
        ends "$r" 143
    done
}

# The losses and the checkpoint are those of one rank, never disturbed.
is_undisturbed() {
    dt-train -q -j 1 "${small[@]}" --set training.schedule=constant "$@" \
        --set training.max_steps="$(reached run)" -o one "$data"
    for r in one run; do
        results $r | grep -E '"loss"|safetensors' >$r.results
    done
    cmp one.results run.results
    [ -z "$(ls meet* 2>/dev/null)" ]
}

@test "a rank is killed and the others go on; one joins; one leaves: the bits of one rank" {
    for r in 0 1 2; do
        member $r
    done
    await "${pids[0]}" ranks_are 3
    kill -KILL "${pids[1]}"
    await "${pids[0]}" ranks_are 2
    SLURM_JOB_ID=2 SLURM_STEP_ID=0 member 3 # of another job
    await "${pids[3]}" ranks_are 3
    finish 0 2 3
    ends 1 137
    generations | paste -sd ' ' | grep -qE '^3 2 3( 2( 1)?)?$'
    grep -q '^step .* 2 ranks from here on, 1 left, met in ' said.0 said.2
    grep -q '^dt-train: left the run by a signal; the same command joins it again$' said.0
    grep -q '^dt-train: stopped by a signal; the same command resumes from ' said.3
    is_undisturbed
}

@test "a sharded state: the shard of a lost rank is in its neighbour's memory, of two on the disk" {
    for r in 0 1 2 3; do
        member $r --set distributed.zero_stage=3 --set training.ema_decay=0.9 \
            --set distributed.timeout=10 --set training.save_interval=10
    done
    await "${pids[0]}" ranks_are 4
    kill -KILL "${pids[1]}"
    await "${pids[0]}" ranks_are 3
    await "${pids[0]}" test -e run/latest
    kill -KILL "${pids[0]}" "${pids[2]}"
    await "${pids[3]}" ranks_are 1
    finish 3
    is_undisturbed --set training.ema_decay=0.9
}

@test "a sharded state that is lost before the first checkpoint: the run begins again" {
    small+=(--set training.save_interval=0)
    for r in 0 1 2 3; do
        member $r --set distributed.zero_stage=3
    done
    await "${pids[0]}" ranks_are 4
    await "${pids[0]}" grep -q '"step":3,' run/metrics.jsonl
    kill -KILL "${pids[0]}" "${pids[1]}" "${pids[2]}"
    await "${pids[3]}" ranks_are 1
    finish 3
    is_undisturbed
}

# The memory of an elastic run less that of another run of two ranks: the whole state while ranks
# meet, which is three values for each parameter, and of two steps the shards of both ranks.
@test "copies of the state are planned to the byte" {
    local planned r two=(--set distributed.zero_stage=3)
    for r in 0 1; do
        member $r "${two[@]}" --set distributed.elastic=2:2
        RANK=$r WORLD_SIZE=2 dt-train -q -j 1 "${small[@]}" "${two[@]}" -o plain "$data" \
            --set training.max_steps=1 --set distributed.rendezvous=plain-meet >/dev/null &
        plain[r]=$!
    done
    wait "${plain[0]}" "${plain[1]}"
    await "${pids[0]}" ranks_are 2
    memory() { sed -nE 's/.*"device_memory":([0-9]+).*/\1/p' "$1/metrics.jsonl" | head -n 1; }
    dt-train "${small[@]}" --set distributed.elastic=1:2 --dry-run "$data" >dry
    planned=$(sed -nE 's/^copies +([0-9]+) .*/\1/p' dry)
    [ "$planned" -eq $((3 * 4 * $(sed -nE 's/^parameters +([0-9]+)$/\1/p' dry))) ]
    [ $(($(memory run) - $(memory plain))) -eq $((3 * planned + 2 * 2 * 4)) ]
    kill -KILL "${pids[@]}"
}

# The ranks' weights have the parameters of the lost shard; its neighbour's memory has the rest.
@test "zero_stage 2: the shard of a lost rank comes from the memory of the others" {
    small+=(--set training.save_interval=0)
    elastic+=(--set distributed.zero_stage=2)
    for r in 0 1 2; do
        member $r
    done
    await "${pids[0]}" ranks_are 3
    await "${pids[0]}" grep -q '"step":3,' run/metrics.jsonl
    kill -KILL "${pids[1]}"
    await "${pids[0]}" ranks_are 2
    member 3
    await "${pids[3]}" ranks_are 3
    finish 0 2 3
    grep -E '"step":[1-9][0-9]*,.*"generation":2,' run/metrics.jsonl # not from the beginning
    is_undisturbed
}

# Of two ranks each sends the moments of half of the parameters, of 8 bytes each.
@test "a copy of a shard is sent without the parameters that all ranks have" {
    local r out parameters members=()
    for out in fixed run; do
        for r in 0 1; do
            [ $out = fixed ] || members=(--set distributed.elastic=2:2)
            RANK=$r WORLD_SIZE=2 dt-train -q -j 1 "${small[@]}" --set training.max_steps=6 \
                --set distributed.zero_stage=2 --set distributed.rendezvous=$out-meet \
                "${members[@]}" -o $out "$data" >/dev/null &
            pids[r]=$!
        done
        wait "${pids[0]}"
        wait "${pids[1]}"
    done
    sent() { jq -s 'map(select(.loss)) | (.[4].bytes_sent - .[1].bytes_sent) / 3 | floor' "$1/metrics.jsonl"; }
    parameters=$(dt-train "${small[@]}" --dry-run "$data" | sed -nE 's/^parameters +([0-9]+)$/\1/p')
    for r in fixed run; do echo "$r $(sent $r) of $parameters"; done
    [ $((($(sent run) - $(sent fixed)) * 10 / parameters)) -ge 36 ]
    [ $((($(sent run) - $(sent fixed)) * 10 / parameters)) -lt 44 ]
}

# in_groups OPTION...: ranks in two groups of two, of which one loses a rank.
in_groups() {
    local r
    for r in 0 1 2 3; do
        member $r --set distributed.elastic=2:4 --set distributed.join_timeout=60 "$@"
    done
    await "${pids[0]}" ranks_are 4
    kill -KILL "${pids[1]}"
    await "${pids[0]}" ranks_are 2
    member 4 --set distributed.elastic=2:4 --set distributed.join_timeout=60 "$@"
    await "${pids[4]}" ranks_are 4
    unset 'pids[1]'
    kill -TERM "${pids[@]}"
    for r in 0 2 3 4; do
        ends $r 143
    done
    generations | paste -sd ' ' | grep -qE '^(2 )?4 2 4( 2)?$'
    is_undisturbed
}

@test "tensor-parallel groups: one that loses a rank waits until it is whole: the bits of one rank" {
    in_groups --set distributed.tp=2
}

@test "pipelines with a sharded state: one that loses a rank waits until it is whole" {
    in_groups --set distributed.pp=2 --set distributed.zero_stage=1
}

@test "one context-parallel group: the shard of a lost rank is in the other's memory" {
    small+=(--set distributed.sequence_parts=4 --set training.save_interval=0)
    elastic+=(--set distributed.elastic=2:2 --set distributed.cp=2)
    member 0
    member 1
    await "${pids[0]}" grep -q '"step":3,' run/metrics.jsonl # so that a copy of each shard is made
    kill -KILL "${pids[1]}"
    member 2
    await "${pids[2]}" grep -q '"generation":2,' run/metrics.jsonl
    await "${pids[2]}" ranks_are 2
    unset 'pids[1]'
    kill -TERM "${pids[@]}"
    ends 0 143
    ends 2 143
    grep -E '"step":[1-9][0-9]*,.*"generation":2,' run/metrics.jsonl # not from the beginning
    is_undisturbed
}

@test "a rank without a whole group waits for distributed.join_timeout, and then ends" {
    for r in 0 1 2; do
        member $r --set distributed.elastic=2:4 --set distributed.tp=2 \
            --set distributed.join_timeout=1
    done
    status=0
    wait -n -p gone "${pids[@]}" || status=$?
    [ "$status" -eq 75 ]
    for r in 0 1 2; do
        [ "${pids[r]}" -eq "$gone" ] || others=${pids[r]}
    done
    await "$others" ranks_are 2
    grep -qx "dt-train: the run at 'meet' has had no place for this rank for 1 s: it has its 4 ranks, or fewer than 2 wait for a place, or none of its steps ends" said.*
}

@test "rank 0 is killed, another one leads; a run of too few ranks waits, and then ends" {
    for r in 0 1; do
        member $r --set distributed.elastic=2:2 --set distributed.join_timeout=2
    done
    await "${pids[0]}" ranks_are 2
    leader=$(grep -l '^engine' said.*)
    other=$((1 - ${leader#said.}))
    kill -KILL "${pids[${leader#said.}]}"
    ends $other 75
    grep -q "^dt-train: 1 rank has met at 'meet' within 2 s, and distributed.elastic needs at least 2: 1 is missing$" said.$other
    [ -e run/metrics.jsonl ]
}

@test "an elastic run by address, with DT_KEY; a rank with other settings is refused alone" {
    local port
    hold_port
    port=$(cat port)
    export DT_KEY=0123456789abcdef
    elastic+=(--set distributed.rendezvous=tcp://localhost:"$port")
    member 0
    await "${pids[0]}" ranks_are 1
    run timeout 60 dt-train -q -j 1 "${small[@]}" "${endless[@]}" "${elastic[@]}" \
        --set training.seed=7 -o run "$data"
    assert_one_line_error dt-train
    [ "$output" = "dt-train: training.seed differs from that of the run" ]
    DT_KEY=fedcba9876543210 run timeout 60 dt-train -q -j 1 "${small[@]}" "${endless[@]}" "${elastic[@]}" \
        --set distributed.join_timeout=1 -o run "$data"
    assert_one_line_error dt-train 75
    [[ "$output" == *"no rank has answered at 'tcp://localhost:$port' within 1 s: it is not reachable, or has another DT_KEY" ]]
    member 1
    await "${pids[1]}" ranks_are 2
    kill -KILL "${pids[0]}"
    await "${pids[1]}" ranks_are 1
    finish 1
    kill "$HOLDER"
    is_undisturbed
}

@test "a stopped rank is left out, and joins again when it continues" {
    for r in 0 1 2; do
        member $r --set distributed.timeout=1
    done
    await "${pids[0]}" ranks_are 3
    kill -STOP "${pids[0]}"
    await "${pids[1]}" ranks_are 2
    kill -CONT "${pids[0]}"
    await "${pids[0]}" ranks_are 3
    finish 1 2 0
    grep -q '^dt-train: step .*: the run went on without this rank, which has joined it again$' said.0
    is_undisturbed
}

@test "a rank that was stopped holds the run: one that comes after all others waits for it" {
    for r in 0 1; do
        member $r --set distributed.timeout=1
    done
    await "${pids[0]}" ranks_are 2
    leader=$(grep -l '^engine' said.*)
    leader=${leader#said.}
    kill -STOP "${pids[leader]}"
    await "${pids[1 - leader]}" ranks_are 1
    finish $((1 - leader))
    member 2 --set distributed.timeout=1
    await "${pids[2]}" grep -qs " 1$" meet # generation 1 has begun: it needs the run
    kill -CONT "${pids[leader]}"
    await "${pids[2]}" ranks_are 2
    finish $leader 2
    is_undisturbed
}

@test "settings that do not fit an elastic run are named" {
    local -a train=(dt-train -q -j 1 "${small[@]}" "${elastic[@]}" -o run)
    local -A wrong=(
        [distributed.elastic=4]="distributed.elastic is the least and the most ranks, as 2:8, up to 1024, not '4'"
        [distributed.elastic=3:2]="not '3:2'"
        [distributed.elastic=1:5]="a step has 4 micro-batches, and each of 5 ranks needs one: raise training.gradient_accumulation_steps"
        [distributed.invariant=false]="distributed.elastic 1:4 needs distributed.invariant true"
        [distributed.pp=2]="distributed.elastic 1:4: both have to be multiples of distributed.pp times distributed.cp times distributed.tp, which is 2"
        [distributed.shard_ranks=1]="distributed.elastic 1:4 needs distributed.shard_ranks 0"
        [training.trace_steps=1]="distributed.elastic 1:4 needs training.trace_steps empty"
        [distributed.rendezvous=]="the environment does not say where the 4 ranks meet"
    )
    for set in "${!wrong[@]}"; do
        run "${train[@]}" --set "$set" "$data"
        assert_one_line_error dt-train
        [[ "$output" == *"${wrong[$set]}"* ]] || { echo "$set: $output"; return 1; }
    done
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 run "${train[@]}" "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.elastic is for ranks that no MPI has started"* ]]
    [ ! -e run ]
}
