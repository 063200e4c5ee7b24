# SPDX-License-Identifier: MIT
# torchrun starts dt-train: on one machine, and by two agents.
load ../helper

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=8 --set training.batch_size=1 --set training.max_steps=3
    --set training.gradient_accumulation_steps=4 --set training.warmup_steps=1
    --set distributed.invariant=true)

setup() {
    need_python torch
    cd "$T"
    make_data 200 300
    dt-train -q -j 1 "${small[@]}" -o one data
    torchrun=("$PYTHON" -m torch.distributed.run)
    export DT_KEY=0123456789abcdef
}

same() {
    cmp one/latest/model.safetensors "$1/latest/model.safetensors"
}

@test "two ranks of one machine have the bits of one, without a key" {
    unset DT_KEY
    "${torchrun[@]}" --standalone --nproc-per-node 2 --no-python dt-train -q -j 1 "${small[@]}" -o two data
    same two
}

@test "two agents, as of two machines" {
    hold_port # its next port is free with high probability
    local port
    port=$(cat port)
    kill "$HOLDER"
    for node in 0 1; do
        timeout 100 "${torchrun[@]}" --nnodes 2 --node-rank $node --nproc-per-node 1 \
            --master-addr 127.0.0.1 --master-port "$port" --no-python \
            dt-train -q -j 1 "${small[@]}" -o two data 2>said.$node &
        agents[node]=$!
    done
    wait "${agents[0]}"
    wait "${agents[1]}"
    same two
}

@test "a rank that is missing is named, and torchrun fails" {
    cat >rank <<'END'
#!/bin/sh
[ "$RANK" = 1 ] && exec sleep 100
exec dt-train "$@"
END
    chmod +x rank
    run "${torchrun[@]}" --standalone --nproc-per-node 2 --no-python ./rank -q -j 1 "${small[@]}" \
        --set distributed.timeout=2 -o two data
    [ "$status" -ne 0 ]
    grep -qE "^dt-train: ranks have not met at '.*' within 2 s: rank 1 of 2 is missing$" <<<"$output"
    [ ! -e two/latest ]
}
