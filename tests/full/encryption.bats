# SPDX-License-Identifier: MIT
# What another host on the network of two ranks sees. Two network namespaces act as the hosts.
load ../helper
load ../ranks

LAUNCH=mpi

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=8 --set training.batch_size=1 --set distributed.zero_stage=1
    --set training.gradient_accumulation_steps=4 --set training.max_steps=3 --set training.warmup_steps=1
    --set training.eval_interval=0 --set training.save_interval=0 --set distributed.invariant=true)

setup() {
    cd "$T"
    unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!MASTER_@}" DT_KEY
    need_plugin crypto OpenSSL
    command -v python3 >/dev/null || skip "no python3"
    name=dt$$
    ip netns add "$name-0" 2>/dev/null && ip netns add "$name-1" || skip "no network namespaces"
    ip link add "$name-0" netns "$name-0" type veth peer name "$name-1" netns "$name-1"
    for r in 0 1; do
        ip -n "$name-$r" address add "10.98.0.$r/31" dev "$name-$r"
        ip -n "$name-$r" link set "$name-$r" up
        ip -n "$name-$r" link set lo up
    done
}

teardown() {
    end_process CAPTURE
    for r in 0 1; do
        ip netns del "$name-$r" 2>/dev/null || true
    done
}

# Writes all packets of an interface to a file until it is ended.
capture='
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
s.bind((sys.argv[1], 0))
with open(sys.argv[2], "wb", 0) as out:
    open("captures", "w").close()
    while True:
        out.write(s.recv(1 << 17))'

# How many pieces of 24 bytes of the final parameters are in a file.
count='
import json, struct, sys
wire, model = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read()
values = model[8 + struct.unpack("<Q", model[:8])[0]:]
pieces = [values[i:i + 24] for i in range(0, len(values) - 24, 240)]
pieces = [p for p in pieces if len(set(p)) > 12]
print(len(pieces), sum(p in wire for p in pieces))'

# train RUN OPTION...: two ranks, one per host, with what they send in RUN.wire.
train() {
    local r
    local -a pids=()
    rm -f captures
    ip netns exec "$name-0" python3 -c "$capture" "$name-0" "$1.wire" &
    CAPTURE=$!
    await $CAPTURE test -e captures
    for r in 0 1; do
        ip netns exec "$name-$r" env RANK=$r LOCAL_RANK=0 WORLD_SIZE=2 timeout 120 dt-train -q -j 1 "${small[@]}" \
            --set distributed.rendezvous="$T/meet" "${@:2}" -o "$1" data >said.$r 2>&1 &
        pids+=($!)
    done
    for r in "${pids[@]}"; do
        wait "$r" || { cat said.?; return 1; }
    done
    sleep 0.5 # of the last packets
    end_process CAPTURE
}

@test "who reads the wire reads parameters, but none with distributed.encrypt" {
    make_data 20 300
    train plain
    train secret --set distributed.encrypt=true
    results plain >expected
    results secret | cmp expected -
    read -r pieces visible < <(python3 -c "$count" plain.wire plain/latest/model.safetensors)
    read -r _ hidden < <(python3 -c "$count" secret.wire secret/latest/model.safetensors)
    echo "# of $pieces pieces of parameters $visible are on the wire, and $hidden with encryption" >&3
    [ "$pieces" -gt 10 ] && [ "$visible" -gt $((pieces / 2)) ] && [ "$hidden" -eq 0 ]
}
