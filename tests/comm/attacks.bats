# SPDX-License-Identifier: MIT
# Jobs that meet by address while a process without the key floods their port and forges calls.
load ../helper

setup() {
    cd "$T"
    unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!MASTER_@}" DT_KEY
    need_plugin crypto OpenSSL
    command -v python3 >/dev/null || skip "no python3"
}

teardown() {
    end_process ATTACKER HOLDER
}

@test "jobs finish, with the same weights, while strangers flood their port and forge calls" {
    local jobs=${ATTACKED_JOBS:-2} port expected ranks r n
    local small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
        --set model.max_seq_len=8 --set training.batch_size=1 --set training.max_steps=3
        --set training.gradient_accumulation_steps=4 --set training.warmup_steps=1
        --set training.eval_interval=0 --set training.save_interval=0 --set distributed.invariant=true)
    make_data 20 300
    expected=$(dt-train -q -j 1 "${small[@]}" -o one data)
    hold_port
    port=$(cat port)
    "$ROOT/tests/comm/attack" "$port" >attacked &
    ATTACKER=$!
    await $ATTACKER grep -q begun attacked
    for ((n = 0; n < jobs; n++)); do
        ranks=()
        for r in 0 1; do
            RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 DT_KEY=0123456789abcdef timeout 120 dt-train -q -j 1 "${small[@]}" \
                --set "distributed.rendezvous=tcp://127.0.0.1:$port" -o "run-$n" data >said.$r 2>&1 &
            ranks+=($!)
        done
        for r in "${ranks[@]}"; do
            wait "$r" || { cat said.?; return 1; }
        done
        [ "$(cat said.0)" = "$expected" ] || { cat said.0; return 1; }
        rm -r "run-$n"
    done
    kill "$ATTACKER"
    wait "$ATTACKER" || true
    ATTACKER=
    echo "# $jobs jobs: $(tail -n 1 attacked)" >&3
    [[ "$(tail -n 1 attacked)" =~ ^[1-9][0-9]*\ connections,\ [1-9] ]]
}
