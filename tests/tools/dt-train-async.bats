# SPDX-License-Identifier: MIT
# Asynchronous updates, and their replay.
load ../helper
load ../ranks

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=3 --set training.max_steps=40
    --set training.schedule=constant --set training.warmup_steps=2 --set training.eval_interval=20 --set training.eval_batches=3
    --set training.save_interval=10 --set training.log_interval=1)
async=(--set distributed.sync=async)

# A run of one rank, without MPI.
alone() { dt-train -q -j 1 "${small[@]}" "$@" "$data"; }

# The numbers of a record, as "step batch version".
updates() {
    sed -E 's/\{"step":([0-9]+),"batch":([0-9]+),"version":([0-9]+),.*/\1 \2 \3/' "$1/updates.jsonl"
}

# Members of metrics that a run and its replay have in common.
same() { results "$1" | sed -E 's/,"slowest_[a-z]+":[0-9.]+//g'; }

@test "an asynchronous run is replayed bit for bit, by any number of ranks" {
    ranks 4 "${async[@]}" -o run >parameters
    [ "$(updates run | awk '$1 - 1 > $3' | wc -l)" -gt 0 ]
    [ "$(updates run | cut -d' ' -f2 | sort -n | uniq | wc -l)" -eq 40 ]
    same run >expected
    for count in 1 2; do
        launch=(ranks 2)
        [ $count = 2 ] || launch=(alone)
        "${launch[@]}" "${async[@]}" --set distributed.replay=run/updates.jsonl -o again-$count >got
        cmp parameters got
        same again-$count | cmp expected
        [ "$(updates again-$count)" = "$(updates run)" ]
    done
}

@test "with a staleness of 0 an asynchronous run is that of one rank" {
    alone -o one >parameters
    ranks 3 "${async[@]}" --set distributed.staleness=0 -o run >got
    cmp parameters got
    results one >expected
    results run | cmp expected
}

@test "before checkpoints all gradients are applied; a resumed run is replayed as a whole" {
    need_mpi
    ranks 3 "${async[@]}" --set training.max_steps=20 -o run >/dev/null
    ranks 4 "${async[@]}" -o run >parameters
    updates run | awk '{ if ($2 > most) most = $2; if ($1 % 10 == 0 && most > $1) exit 1 }'
    alone "${async[@]}" --set distributed.replay=run/updates.jsonl -o again >got
    cmp parameters got
    dt-verify steps -q run >verified
    grep -q "verified steps 1 to 40: 40 of metrics.jsonl, 4 checkpoints, 2 validations" verified
    sed -i '30s/"loss":./&7/' run/updates.jsonl
    refute dt-verify steps -q run
    grep -qF "one rank verifies an asynchronous run, not 2" <<<"$(mpirun -n 2 dt-verify steps -q run 2>&1)"
    cp again/updates.jsonl run/updates.jsonl
    # A replay that was stopped goes on, too.
    ranks 3 "${async[@]}" --set distributed.replay=run/updates.jsonl --set training.max_steps=20 \
        -o parts >/dev/null
    alone "${async[@]}" --set distributed.replay=run/updates.jsonl -o parts >got
    cmp parameters got
}

teardown() {
    local pid
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# tcp RANK WORLD OPTION...: one rank over TCP.
tcp() {
    RANK=$1 WORLD_SIZE=$2 exec dt-train -q -j 1 "${small[@]}" "${async[@]}" \
        --set distributed.rendezvous="$T/meet" --set training.max_steps=1000000 "${@:3}" -o run "$data"
}

# Two workers, of which the first is stopped.
start_with_slow() {
    for r in 0 1 2; do
        tcp $r 3 --set training.save_interval=0 --set training.eval_interval=0 "$@" 2>log-$r 3>&- &
        pids[r]=$!
    done
    await "${pids[0]}" grep -qs '"step":5,' run/updates.jsonl
    kill -STOP "${pids[1]}"
}

@test "ranks wait for one that is slower than the bound of the staleness" {
    local before=-1 now=0
    start_with_slow --set distributed.staleness=4
    while [ "$now" -ne "$before" ]; do # until nothing is applied
        before=$now
        sleep 0.3
        now=$(wc -l <run/updates.jsonl)
    done
    kill -CONT "${pids[1]}"
    await "${pids[0]}" grep -q "\"step\":$((now + 50))," run/updates.jsonl
    kill -TERM "${pids[1]}"
    wait "${pids[0]}" || [ $? -eq 143 ]
    wait "${pids[1]}" "${pids[2]}" || true
    [ "$(updates run | awk '$1 - 1 - $3 > most { most = $1 - 1 - $3 } END { print most }')" -eq 4 ]
    [ -e run/latest ]
}

ends_with_75() { # PID
    local status=0
    wait "$1" || status=$?
    [ "$status" -eq 75 ]
}

@test "a worker that dies or does not answer is an error that names it, and the run resumes" {
    start_with_slow --set distributed.timeout=2
    for r in 0 2; do
        ends_with_75 "${pids[r]}"
    done
    grep -qF "from rank 1 have not moved for 2 seconds" log-0
    kill -KILL "${pids[1]}" # SIGTERM would wait for SIGCONT
    wait "${pids[1]}" || true
    rm -rf run meet
    start_with_slow
    kill -KILL "${pids[1]}"
    for r in 0 2; do
        ends_with_75 "${pids[r]}"
    done
    grep -qF "rank 1 has left" log-0
}

# All three ranks end with status 1, and this message is that of one or more.
fail_with_1() { # MESSAGE
    local r
    for r in 0 1 2; do
        local status=0
        wait "${pids[r]}" || status=$?
        [ "$status" -eq 1 ] || { echo "rank $r: status $status" && cat log-$r && return 1; }
    done
    cat log-? | grep -F "$1" || { cat log-? && return 1; }
}

@test "an error of the server or of a worker is that of all ranks, and no reason to try again" {
    for r in 0 1 2; do
        tcp $r 3 --set training.optimizer=sgd --set training.learning_rate=10 --set training.warmup_steps=0 \
            --set training.grad_clip=0 --set training.eval_interval=0 2>log-$r 3>&- &
        pids[r]=$!
    done
    fail_with_1 "not finite, after 10 skipped updates in a row"
    rm -rf run
    cp -r "$data" damaged
    printf 'damage' | dd of=damaged/train-00000.dts bs=1 conv=notrunc status=none \
        seek=$(($(stat -c %s damaged/train-00000.dts) / 2))
    for r in 0 1 2; do
        data=damaged tcp $r 3 2>log-$r 3>&- &
        pids[r]=$!
    done
    fail_with_1 "damaged/train-00000.dts"
}

@test "a record that is damaged, too short, or of another run is refused" {
    ranks 3 "${async[@]}" --set training.save_interval=0 -o run >/dev/null
    local replay=("${async[@]}" --set distributed.replay=bad -o again)
    refused() { # MESSAGE OPTION...
        run alone "${replay[@]}" "${@:2}"
        [ "$status" -ne 0 ]
        grep -qF "$1" <<<"$output" || { echo "$output" && return 1; }
        [ ! -e again/latest ]
    }
    sed 9d run/updates.jsonl >bad
    refused "bad:9: is update 10, not 9"
    sed '9s/"batch":[0-9]*/"batch":0/' run/updates.jsonl >bad
    refused "bad:9: update 9 cannot be of batch 0 with the parameters of update"
    sed -E "9s/\"batch\":[0-9]+,\"version\":[0-9]+/$(sed -nE '8s/.*("batch":[0-9]+,"version":[0-9]+).*/\1/p' run/updates.jsonl)/" \
        run/updates.jsonl >bad
    refused "bad: updates 8 and 9 are both of batch"
    sed '9s/"step"/"sTep"/' run/updates.jsonl >bad
    refused 'bad:9'
    sed '9s/"loss":./&7/' run/updates.jsonl >bad
    refused "step 9: the loss is"
    head -30 run/updates.jsonl >bad
    refused "bad has updates 1 to 30, but steps 1 to 40 are to be replayed"
    cp run/updates.jsonl bad
    refused "step 1: the loss is" --set training.seed=2
    refused "the run of bad did not validate or save after step" --set training.eval_interval=7
    refused "distributed.staleness must be" --set distributed.staleness=0
}
