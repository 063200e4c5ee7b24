# SPDX-License-Identifier: MIT
# SHA-256 of parameters and optimizer state after 50 steps: one for each model, on any machine and
# in any layout.
load ../helper
load ../one-hash
steps=50

setup_file() {
    make_hash_data
}

setup() {
    cd "$T"
    compared=0
}

# every FAMILY: instruction sets, threads and layouts.
every() {
    local expected engine threads where
    need_mpi
    train first "$1" one -j 1
    expected=$(hash first)
    for engine in $(engines); do
        for threads in 1 2 3; do
            same "$expected" "$1" one --device "$engine" -j $threads
        done
    done
    for where in "${!layout[@]}"; do
        engine=$(engines | shuf -n 1)
        same "$expected" "$1" "$where" -j 1
        same "$expected" "$1" "$where" --device "$engine" -j 2
    done
    [ $compared -ge 19 ]
}

@test "GPT-2: the same hash on every instruction set, for 1 to 3 threads, in every layout" {
    every gpt2
}

@test "Llama with grouped queries: the same hash" {
    every llama
}

@test "Qwen3: the same hash" {
    every qwen3
}

@test "DistilBERT: the same hash" {
    every distilbert
}

@test "bf16, canonical: the same hash" {
    every bf16
}

@test "stopped by SIGKILL and resumed in another layout, on another engine: the same hash" {
    need_mpi
    for of in gpt2 llama distilbert; do
        train first $of one -j 1
        expected=$(hash first)
        for where in tp2 cp2 dp3 pp2; do
            rm -rf run
            train run $of $where -j 1 --set training.save_interval=10 &
            job=$!
            await $job test -e run/latest
            kill -KILL "$(cat rank-0)"
            wait $job || true
            flock run true
            for engine in $(engines); do
                rm -rf resumed && cp -a run resumed
                train resumed $of one -j 2 --device "$engine"
                [ "$(hash resumed)" = "$expected" ]
                compared=$((compared + 1))
            done
        done
        rm -rf first
    done
    [ $compared -ge 12 ]
}
