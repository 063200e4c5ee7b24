# SPDX-License-Identifier: MIT
# An elastic run that is disturbed often: the bits of one rank.
load ../helper

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=64 --set training.batch_size=2
    --set training.gradient_accumulation_steps=6 --set training.warmup_steps=1
    --set training.log_interval=1 --set training.eval_interval=50 --set training.eval_batches=2
    --set training.save_interval=100 --set distributed.invariant=true "${endless[@]}")

setup() {
    cd "$T"
    pids=()
    make_data 300 301 --split val=0.1
    unset RANK WORLD_SIZE DT_KEY "${!MASTER_@}"
}

# The losses and the checkpoint are those of one rank, never disturbed.
is_undisturbed() {
    dt-train -q -j 1 "${small[@]}" --set training.max_steps="$(reached run)" "$@" -o one data
    for r in one run; do
        (cd $r/latest && find . -name '*.safetensors' | sort | xargs sha256sum) >$r.results
        grep '"loss"' $r/metrics.jsonl |
            sed -E 's/,"(time|[a-z]+_per_second|mfu|peak_gflops|[a-z]+_memory|threads|ranks|waited_seconds|loader_seconds|bytes_sent|slowest_[a-z]+)":[^,}]*//g' >>$r.results
    done
    cmp one.results run.results
}

teardown() {
    local r
    for r in "${pids[@]}"; do
        kill -KILL "$r" 2>/dev/null || true
    done
    if [ -n "${name:-}" ]; then
        ip netns del "$name-1" || true
        ip netns del "$name-2" || true
    fi
}

# The number of ranks of the newest generation.
ranks_are() {
    [ -e run/metrics.jsonl ] && tail -n 1 run/metrics.jsonl | grep -q '"loss"' &&
        [ "$(sed -nE 's/.*"ranks":([0-9]+),"generation".*/\1/p' run/metrics.jsonl | tail -n 1)" = "$1" ]
}

# lay_cable: two hosts, joined by 100 Mbit/s.
lay_cable() {
    name=dt$$
    ip netns add "$name-1" 2>/dev/null || { name='' && skip "no network namespaces (root)"; }
    ip netns add "$name-2"
    ip link add "$name-a" netns "$name-1" type veth peer name "$name-b" netns "$name-2"
    for host in 1:a 2:b; do
        ip -n "$name-${host%:*}" address add "10.99.1.${host%:*}/24" dev "$name-${host#*:}"
        ip -n "$name-${host%:*}" link set "$name-${host#*:}" up
        ip -n "$name-${host%:*}" link set lo up
        ip netns exec "$name-${host%:*}" tc qdisc add dev "$name-${host#*:}" root tbf \
            rate 100mbit burst 64kb latency 400ms || skip "no tbf"
    done
}

# on HOST: a rank there.
on() {
    ip netns exec "$name-$1" dt-train -q -j 1 "${small[@]}" --set distributed.elastic=1:4 \
        --set distributed.rendezvous=tcp://10.99.1.1:29400 --set distributed.timeout=2 \
        --set distributed.join_timeout=60 -o run data >said.${#pids[@]} 2>&1 &
    pids+=($!)
}

@test "two hosts, whose link is cut and comes back" {
    pids=()
    export DT_KEY=0123456789abcdef
    lay_cable
    on 1
    on 1
    on 2
    await "${pids[0]}" ranks_are 3
    for i in 1 2; do
        ip -n "$name-1" link set "$name-a" down
        await "${pids[0]}" ranks_are 2
        ip -n "$name-1" link set "$name-a" up
        await "${pids[2]}" ranks_are 3
    done
    on 2
    await "${pids[3]}" ranks_are 4
    for r in 0 2 3 1; do
        kill -TERM "${pids[r]}"
        wait "${pids[r]}" || [ $? -eq 143 ]
    done
    is_undisturbed
    grep -q 'the run went on without this rank, which has joined it again$' said.2
}

# disturb EVENTS REPEATED OPTION...
disturb() {
    timeout 900 python3 "$ROOT/tests/full/elastic.py" 7 "$1" "$2" run dt-train -q -j 1 "${small[@]}" \
        --set distributed.elastic=1:6 --set distributed.rendezvous=meet \
        --set distributed.timeout=2 --set distributed.join_timeout=60 "${@:3}" -o run data ||
        { cat said.* >&2; return 1; }
}

@test "50 random kills, stops, leaves and joins of 1 to 6 ranks" {
    disturb 50 1
    is_undisturbed
}

# Ranks that are lost at once may be neighbours, whose state is then read from disk.
@test "the same with a sharded state" {
    disturb 25 1000000 --set distributed.zero_stage=3
    is_undisturbed
}

# in_groups OPTION...: 25 events for ranks that come in groups of two. A rank that no other joins
# waits long.
in_groups() {
    disturb 25 1000000 --set distributed.elastic=2:6 --set distributed.join_timeout=600 "$@"
    is_undisturbed
}

@test "the same in tensor-parallel groups" {
    in_groups --set distributed.tp=2
}

@test "the same in pipelines" {
    in_groups --set distributed.pp=2
}

@test "the same in pipelines with a sharded state" {
    in_groups --set distributed.pp=2 --set distributed.zero_stage=1
}

@test "the same in context-parallel groups" {
    small+=(--set distributed.sequence_parts=4)
    in_groups --set distributed.cp=2
}
