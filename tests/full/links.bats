# SPDX-License-Identifier: MIT
# Pipeline stages that send from GPU to GPU: more layouts and more planted mistakes than in
# tests/cuda/nccl.bats and tests/planted/links.bats, which `make check` runs.
load ../helper
load ../ranks

LAUNCH=mpi
load ../cuda/links
load ../planted/planting
load ../planted/two-ranks

@test "pp with dp, and every schedule: the bits of one rank" {
    local emulator
    export DT_ENGINES=$BUILT/lib/dt
    over self 1 one "${deep[@]}"
    for emulator in '' hurry; do
        stages 4 4
        stages 4 4 --set distributed.schedule=afab
        stages 2 2 --set distributed.schedule=model_parallel
        stages 4 2 --set distributed.zero_stage=2
        stages 4 2 --set distributed.schedule=interleaved --set distributed.virtual_stages=2
        stages 3 3
    done
}

@test "pp with tp and pp with cp: the bits of tp and cp alone" {
    local emulator way
    export DT_ENGINES=$BUILT/lib/dt
    local -a untied=(--set model.name=llama --set model.num_kv_heads=2
        --set model.tie_word_embeddings=false) # pp sums the gradients of a tied head in another order
    for way in "tp=2 ${untied[*]}" "cp=2 ${untied[*]}"; do
        way=(--set distributed.$way)
        over nccl 2 alone "${way[@]}"
        over nccl 4 late "${way[@]}" --set distributed.pp=2
        emulator=hurry over nccl 4 soon "${way[@]}" --set distributed.pp=2
        cmp alone.results late.results
        cmp alone.results soon.results
        rm -r alone late soon
    done
}

@test "pp in bf16: the bits of MPI" {
    local backend
    export DT_ENGINES=$BUILT/lib/dt
    for backend in mpi nccl; do
        over $backend 2 $backend --set distributed.pp=2 --set training.precision=bf16
    done
    cmp mpi.results nccl.results
}

# ended RANK SIGNAL: two stages without MPI; RANK gets SIGNAL, and the other one must end with an
# error.
ended() {
    local -a options=(-q -j 1 "${small[@]}" --set training.max_steps=100000
        --set distributed.pp=2 --set distributed.backend=nccl --set distributed.timeout=15
        --set distributed.rendezvous="$T/meet-$2" --set training.save_interval=0 -o "run-$2" "$data")
    local -a pids=()
    local r status
    for r in 0 1; do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 dt-train "${options[@]}" 2>"said-$r" &
        pids[r]=$!
    done
    await "${pids[0]}" grep -qs '"step":3,' "run-$2/metrics.jsonl"
    kill "-$2" "${pids[$1]}"
    status=0
    wait "${pids[$((1 - $1))]}" || status=$?
    kill -KILL "${pids[$1]}" || true
    wait "${pids[$1]}" || true
    [ "$status" -eq 75 ]
    [ "$(grep -c ^dt-train "said-$((1 - $1))")" -eq 1 ]
}

@test "a stage that is killed or hangs: the other reports it and ends" {
    export DT_ENGINES=$BUILT/lib/dt
    links
    ended 1 KILL
    ended 0 STOP
    grep -qE "^dt-train: .*(has not ended on the device|have not moved) for 15 seconds" said-1
}

@test "a buffer that is received into while it is still read" {
    layout=(--set distributed.pp=2)
    begins DT_LINK_FROM_BEFORE
}

@test "a gradient that is sent before it is computed" {
    layout=(--set distributed.pp=2)
    begins DT_LINK_TO_BEFORE
}

@test "a gradient that is used before it is received" {
    layout=(--set distributed.pp=2)
    plant_join DT_LINK_FROM_NEXT
    shows links.c
}

# waits SOURCE MESSAGE OPTION...: two stages deadlock, and one reports for what it waits.
waits() {
    layout=(--set distributed.pp=2 --set distributed.timeout=2 "${@:3}")
    run train "$1"
    echo "$output"
    grep -qE "^dt-train: (rank [01]: )?$2" <<<"$output"
    [ ! -e two/latest ]
}
operation='(send|receive) [a-z ]+ of [0-9]+ bytes, operation [0-9]+ of the pipeline group of ranks 0 and 1: '

@test "messages of both directions in one stream" {
    plant links.c 'DT_TRY(open_stream(lane, err));' 'DT_TRY(open_stream(lane, err));
        if (end->lane == DT_LINK_FROM_NEXT)
            lane->stream = l->lanes[DT_LINK_TO_NEXT].stream;
        if (end->lane == DT_LINK_FROM_BEFORE)
            lane->stream = l->lanes[DT_LINK_TO_BEFORE].stream;'
    waits links.c "${operation}has not ended on the device for 2 seconds"
}

@test "the communicator of the other direction" {
    plant links.c 'struct lane *lane = &l->lanes[which];' 'struct lane *lane =
        &l->lanes[which == DT_LINK_TO_NEXT ? DT_LINK_FROM_NEXT : which];'
    waits links.c "${operation}NCCL: transfers: other ranks have not come to it for 2 seconds"
}

@test "communicators without an exchange before the first micro-batch" {
    plant links.c 'rc = rc < 0 ? rc : greet(l, ends, count, err);' ''
    waits links.c "${operation}NCCL: transfers: other ranks have not come to it for 2 seconds"
}

# With this schedule a stage waits for the gradient of the next micro-batch before the peer has
# computed its hidden states.
@test "memory that is freed synchronously while messages are in flight" {
    plant device-memory.c 'cudaFreeAsync(cuda->scratch, dt_cuda_flush(dev))' 'cudaFree(cuda->scratch)'
    waits device-memory.c "${operation}has not ended on the device for 2 seconds" \
        --set distributed.schedule=model_parallel
}
