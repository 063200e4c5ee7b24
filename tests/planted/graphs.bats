# SPDX-License-Identifier: MIT
# Mistakes in how launches are put off and come back as graphs, planted one by one:
# tests/cuda/test-graphs.c must find each.
load ../helper
load planting

TEST=test-graphs

run_tests() {
    timeout 300 "$PROGRAMS/$TEST" "${only:-*}"
}

@test "with room for one graph, and for few launches at a time: nothing is found" {
    plant graph.c 'MOST_GRAPHS  64' 'MOST_GRAPHS  1'
    plant graph.c 'MOST_ENTRIES 2048' 'MOST_ENTRIES 20'
    nothing_found graph.c
}

@test "what differs from the last time is not set" {
    local only='tokens*'
    plant graph.c 'set_node(dev, g, i);' ''
    caught graph.c
}

@test "arguments are not compared" {
    local only='tokens*'
    plant graph.c 'memcmp(last->bytes + e->at, now->bytes + e->at, e->bytes) == 0' 'true'
    caught graph.c
}

@test "grids stay what they were" {
    local only='launches*'
    plant graph.c 'last->entries[i] = *e;' ''
    caught graph.c
}

@test "a graph stands for others whose products are others" {
    local only='passes*'
    plant graph.c 'x->work && memcmp(' 'false && memcmp('
    caught graph.c
}

@test "an upload goes before what was put off" {
    local only='uploads*'
    plant staging.c 'dt_cuda_flush(dev)' 'dt_cuda_of(dev)->stream->stream'
    caught staging.c
}

@test "a download goes before what was put off" {
    local only='passes*'
    plant staging.c 'dt_cuda_flush(dev);
    struct slot *waiting' 'dt_cuda_of(dev)->stream->stream;
    struct slot *waiting'
    caught staging.c
}

@test "waiting leaves out what was put off" {
    local only='what*'
    plant device-memory.c '"step", cudaStreamSynchronize(dt_cuda_flush(dev))' '"step", cudaSuccess'
    caught device-memory.c
}

@test "memory goes that work which was put off has" {
    local only='uploads*'
    plant device-memory.c 'cudaStreamSynchronize(dt_cuda_flush(dev)));
    dt_cuda_note(dev, "release", cudaFree' 'cudaSuccess);
    dt_cuda_note(dev, "release", cudaFree'
    caught device-memory.c
}

@test "a call that a capture forbids is an error" {
    local only='tokens*'
    plant graph.c 'cudaStreamCaptureModeThreadLocal));' \
        'cudaStreamCaptureModeThreadLocal)); cudaDeviceSynchronize();'
    caught graph.c
}
