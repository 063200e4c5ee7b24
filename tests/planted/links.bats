# SPDX-License-Identifier: MIT
# Mistakes in how GPUs exchange memory, planted one by one: ranks that train with them must come
# to other bits than one rank.
load ../helper
load ../ranks
load ../cuda/links
load planting
load two-ranks

@test "nothing planted: the bits of one rank, with messages late and at once" {
    train links.c
    cmp "$reference.results" two.results
    rm -r two
    DT_CUDA_GRAPH=1 train links.c hurry
    cmp "$reference.results" two.results
}

@test "messages that do not wait for ops" {
    begins lane
}

@test "messages that do not wait for ops that were put off" {
    export DT_CUDA_GRAPH=1
    plant links.c 'cudaEventRecord(l->ready, dt_cuda_flush(dev))' \
        'cudaEventRecord(l->ready, dt_cuda_of(dev)->stream->stream)'
    if train links.c hurry; then refute cmp "$reference.results" two.results; fi
}

@test "ops that do not wait for messages" {
    plant links.c 'cudaStreamWaitEvent(dt_cuda_flush(dev), lane->ended[request % REQUESTS], 0)' \
        'cudaSuccess'
    shows links.c
}

@test "a stream that is sent before it is computed" {
    layout=(--set distributed.pp=2)
    begins DT_LINK_TO_NEXT
}

@test "a stream that is used before it has come" {
    layout=(--set distributed.pp=2)
    plant_join DT_LINK_FROM_BEFORE
    shows links.c
}

# All streams are sent before the first gradient comes, and most often so late that their boxes
# have others by then.
@test "a box that is used again before its stream was sent" {
    local attempt
    layout=(--set distributed.pp=2 --set distributed.schedule=afab)
    plant_join DT_LINK_TO_NEXT
    for attempt in 1 2 3 4 5; do
        rm -rf two
        train links.c
        cmp -s "$reference.results" two.results || break
    done
    run cmp "$reference.results" two.results
    [ "$status" -eq 1 ]
}

@test "an event that is not recorded" {
    plant links.c 'cudaEventRecord(lane->ended[lane->requests % REQUESTS], lane->stream)' 'cudaSuccess'
    shows links.c
}

@test "a call of NCCL that is not waited for" {
    plant links.c 'return rc < 0 ? rc : await(l, lane, what, err);' 'return rc;'
    run train links.c
    [ "$status" -ne 0 ]
    [[ "$output" == *"emulated NCCL: a group begins before the last one is over"* ]]
}

@test "a sum that is left out" {
    plant links-sum.cu 's[i] += v[i]' 's[i] += 0 * v[i]'
    shows links-sum
}

@test "a copy that is left out" {
    plant links.c '    dt_cuda_note(dev, "links",
                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,' '    dt_cuda_note(dev, "links", to == NULL ? cudaSuccess :
                 cudaMemcpyAsync(to, from, 0, cudaMemcpyDefault,'
    shows links.c
}
