# SPDX-License-Identifier: MIT
# Mistakes that kernels could have, planted one by one: the tests of ops, run by the
# emulator, must find each. So they would find it in a kernel that is yet to be written.
load ../helper
load planting

TEST=test-attention

# The small test of attention.
run_tests() {
    "$PROGRAMS/$TEST" a_few_tiles_match_the_reference
}

@test "nothing planted: nothing is found" {
    nothing_found attention-forward-tensor
}

@test "a program that is missing, and a kernel that does not build, catch nothing" {
    run_tests() { "$T/missing"; }
    run caught attention-forward-tensor
    [ "$status" -eq 1 ]
    [[ "$output" == *missing* ]]
    plant attention-forward-tensor.cu '__syncthreads(); /* this tile' 'nonsense; /* this tile'
    run caught attention-forward-tensor
    [ "$status" -eq 1 ]
    [[ "$output" == *"the engine does not build" ]]
}

@test "a barrier that is missing" {
    plant attention-forward-tensor.cu '__syncthreads(); /* this tile' '/* this tile'
    caught attention-forward-tensor 0 1 2 3 4
}

@test "a barrier that is missing between two uses of one tile" {
    plant attention-forward-general.cu '__syncthreads(); /* all threads are done with the keys' '/* all threads'
    caught attention-forward-general 0 1 2 3 4
}

@test "a barrier that not all threads come to" {
    plant attention-backward-tensor.cu '__syncthreads(); /* this tile' \
        'if (threadIdx.x) __syncthreads(); /*'
    caught attention-backward-tensor
}

@test "copies that are not waited for" {
    plant attention-forward-tensor.cu 'dt_wait_copies<0>();' 'dt_wait_copies<2>();'
    caught attention-forward-tensor
}

@test "copies that the wait does not include" {
    plant attention-backward-tensor.cu 'dt_wait_copies<1>();' 'dt_wait_copies<2>();'
    caught attention-backward-tensor
}

@test "a mask one too far" {
    plant attention-scores.cuh 'of::column(c);
            if (key < seen.begin || key >= seen.end)' 'of::column(c);
            if (key < seen.begin || key > seen.end)'
    caught attention-forward-tensor
}

@test "a mask one too far, in what goes back to the keys" {
    plant attention-scores.cuh 'of::row(r);
            if (key < seen.begin || key >= seen.end)' 'of::row(r);
            if (key < seen.begin || key > seen.end)'
    caught attention-backward-tensor
}

@test "queries that are taken for the first of their sequence" {
    run_tests() { "$PROGRAMS/$TEST" chunks_of_queries_match_the_cpu; }
    plant attention-backward.cuh 'max(first - a.past' 'max(first'
    caught attention-backward-tensor
}

@test "parts of a tile that are passed by as if no key were before the queries" {
    run_tests() { "$PROGRAMS/$TEST" chunks_of_queries_match_the_cpu; }
    plant attention-backward-tensor.cu 'a.past + t + part + PART' 't + part + PART'
    caught attention-backward-tensor
}

@test "gradients of keys at the rows of queries" {
    run_tests() { "$PROGRAMS/$TEST" chunks_of_queries_match_the_cpu; }
    plant attention-tile.cuh '(int64_t)sequence * x.rows + first' '(int64_t)sequence * a.queries + first'
    caught attention-backward-tensor
}

@test "registers of a fragment in the wrong order" {
    plant attention-tile.cuh 'products[m][n], a[m], b[0], b[1]' 'products[m][n], a[m], b[0], b[2]'
    caught attention-forward-tensor
}

@test "a fragment that should be transposed" {
    plant attention-tile.cuh 'dt_load_transposed(b' 'dt_load_matrices(b'
    caught attention-backward-tensor
}

@test "a tile that is not swizzled where it is read" {
    plant attention-tile.cuh '((chunk ^ (row & 7)) << 4)' '(chunk << 4)'
    caught attention-forward-tensor
}

@test "lanes that draw for each other, mixed up" {
    plant attention-tile.cuh '(other >> 2) | (mine >> 2) << 2' '(mine >> 2) | (other >> 2) << 2'
    caught attention-forward-tensor
}

@test "sums that are not brought to a new maximum" {
    plant attention-scores.cuh 'p.total[r] * factors[r] + sum' 'p.total[r] + sum'
    caught attention-forward-tensor
}

@test "a shuffle that not all lanes come to" {
    plant attention-scores.cuh 'most = fmaxf(most, __shfl_xor_sync(~0u, most, offset));' \
        'if (dt_lane() < 16) most = fmaxf(most, __shfl_xor_sync(~0u, most, offset));'
    caught attention-forward-tensor
}

@test "too little shared memory" {
    plant attention-forward-tensor.cu 'bytes = ranges + THREADS / 32' 'bytes = ranges + 3'
    caught_by_asan attention-forward-tensor
}

@test "a row too many that is read" {
    plant attention-tile.cuh 'limit - first - row' 'limit + 1 - first - row'
    caught_by_asan attention-backward-tensor
}

@test "a row too many that is written" {
    plant attention-tile.cuh 'r < rows && chunk' 'r <= rows && chunk'
    caught_by_asan attention-forward-tensor
}
