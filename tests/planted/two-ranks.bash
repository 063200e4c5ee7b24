# SPDX-License-Identifier: MIT
# Loaded after planting.bash and links.bash: two ranks with mistakes in how GPUs exchange memory.

setup() {
    need_mpi
    prepare_planting
    ln -s "$BUILT"/lib/dt/{mpi,crypto}.so "$T/engines"
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    reference=$BATS_FILE_TMPDIR/one
    [ -e "$reference.results" ] || DT_ENGINES=$BUILT/lib/dt over self 1 "$reference" "${invariant[@]}"
}

# train SOURCE WORD...: two ranks with what was planted in SOURCE, on an emulator told WORDs.
layout=(--set distributed.zero_stage=2)
train() {
    make_engine "$1"
    emulator="${*:2}" over nccl 2 two "${invariant[@]}" --set distributed.timeout=120 "${layout[@]}"
}

# shows SOURCE WORD...: they come to something else.
shows() {
    train "$@"
    run cmp "$reference.results" two.results
    [ "$status" -eq 1 ]
}

# begins LANE: messages of it, or of all with lane, do not wait for ops.
begins() {
    plant links.c 'cudaStreamWaitEvent(l->lanes[lane].stream, l->ready, 0)' \
        "lane == $1 ? cudaSuccess : cudaStreamWaitEvent(l->lanes[lane].stream, l->ready, 0)"
    run train links.c hurry
    [[ "$output" == *"emulated NCCL: a message does not wait for what ops were to do before it"* ]]
}

# plant_join LANE: ops do not wait for messages of it.
plant_join() {
    plant links.c 'cudaStreamWaitEvent(dt_cuda_flush(dev), lane->ended[request % REQUESTS], 0)' \
        "which == $1 ? cudaSuccess :
         cudaStreamWaitEvent(dt_cuda_flush(dev), lane->ended[request % REQUESTS], 0)"
}
