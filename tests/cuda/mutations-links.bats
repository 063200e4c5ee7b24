# SPDX-License-Identifier: MIT
# Mistakes in how GPUs exchange memory, planted one by one: ranks that train with them must come
# to other bits than one rank.
load ../helper
load ../ranks
load links
load planting

setup() {
    need_mpi
    prepare_planting
    ln -s "$BUILT/lib/dt/mpi.so" "$T/engines"
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    reference=$BATS_FILE_TMPDIR/one
    [ -e "$reference.results" ] || DT_ENGINES=$BUILT/lib/dt over self 1 "$reference" "${invariant[@]}"
}

# train SOURCE WORD...: two ranks with what was planted in SOURCE, on an emulator told WORDs.
train() {
    make_engine "$1"
    emulator="${*:2}" over nccl 2 two "${invariant[@]}" --set distributed.zero_stage=2
}

# shows SOURCE WORD...: they come to something else.
shows() {
    train "$@"
    run cmp "$reference.results" two.results
    [ "$status" -eq 1 ]
}

@test "nothing planted: the bits of one rank, with messages late and at once" {
    train links.c
    cmp "$reference.results" two.results
    rm -r two
    train links.c hurry
    cmp "$reference.results" two.results
}

@test "messages that do not wait for ops" {
    plant links.c 'cudaStreamWaitEvent(l->stream, l->ready, 0)' 'cudaSuccess'
    shows links.c hurry
}

@test "ops that do not wait for messages" {
    plant links.c 'cudaStreamWaitEvent(dt_cuda_of(dev)->stream, l->ended[ticket % TICKETS], 0)' \
        'cudaSuccess'
    shows links.c
}

@test "an event that is not recorded" {
    plant links.c 'cudaEventRecord(l->ended[l->tickets % TICKETS], l->stream)' 'cudaSuccess'
    shows links.c
}

@test "a call of NCCL that nobody sees to its end" {
    plant links.c 'return rc < 0 ? rc : await(l, "transfers", err);' 'return rc;'
    run train links.c
    [ "$status" -ne 0 ]
    [[ "$output" == *"emulated NCCL: a group begins before the last one is over"* ]]
}

@test "a sum that is left out" {
    plant links-sum.cu 'sum[i] += x[i]' 'sum[i] += 0 * x[i]'
    shows links-sum
}

@test "a copy that is left out" {
    plant links.c 'cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, links_of(dev)->stream)' \
        'cudaSuccess'
    shows links.c
}
