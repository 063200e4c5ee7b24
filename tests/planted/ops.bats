# SPDX-License-Identifier: MIT
# Mistakes in the kernels of sums, norms, losses and sorts, planted one by one:
# tests/cuda/test-ops.c must find each, with its test of those kernels.
load ../helper
load planting

TEST=test-ops

# The tests that CASE names.
run_tests() {
    timeout 900 "$PROGRAMS/$TEST" "$CASE"
}

setup() {
    prepare_planting
    case $BATS_TEST_DESCRIPTION in
    norms:*) CASE=norms_* ;;
    sums:* | bias:*) CASE=sums_* ;;
    products:*) CASE=biases_* ;;
    losses:*) CASE=losses_* ;;
    sort:* | embedding:*) CASE=embedding_* ;;
    dropout:* | elements:*) CASE=what_lies_* ;;
    largest:*) CASE=the_largest_* ;;
    orthonormalize:*) CASE=rows_longer_* ;;
    *) CASE=* ;;
    esac
}

@test "nothing planted: nothing is found" {
    nothing_found norm
}

@test "norms: a barrier that is missing after the sums of warps" {
    plant reduction.cuh 'threadIdx.x / 32] = x[i];
    dt_barrier_threads(barrier, threads);' 'threadIdx.x / 32] = x[i];'
    caught norm 0 1 2 3
}

@test "norms: a barrier that is missing between two sums" {
    plant reduction.cuh 'dt_barrier_threads(barrier, threads); /* parts may' '/* parts may'
    caught norm 0 1 2 3 4 5
}

@test "norms: all threads write what is for one, the same number" {
    plant norm.cu 'if (threadIdx.x == 0 && row < f.rows)' 'if (row < f.rows)'
    nothing_found norm
    caught_by_tsan norm
}

@test "norms: a lane that is left out" {
    plant reduction.cuh 'unsigned bit = 16; bit > 0' 'unsigned bit = 8; bit > 0'
    caught norm
}

@test "norms: elements past the end of a row" {
    plant norm.cu 'dt_cuda_part<TYPE>(part) + i < n)' 'dt_cuda_part<TYPE>(part) < n)'
    caught norm
}

@test "norms: rows that are in no chunk" {
    plant norm.cu 'row < end' 'row < end - 1'
    caught norm
}

@test "norms: a team of the block that is not added" {
    plant row-team.cuh 'unsigned team = 0; team <' 'unsigned team = 1; team <'
    caught norm
}

@test "bias: a line of the block that is not added" {
    plant reduce.cu 'int line = 0; line < lines' 'int line = 1; line < lines'
    caught reduce
}

@test "products: algorithms that are chosen for another bias" {
    plant blas.c 'key.bias_alignment = alignment_of(p->bias.data);' ';'
    caught blas.c
}

@test "products: algorithms that are chosen before the bias is known" {
    plant blas.c '!point(p, c) ||' ''
    caught blas.c
}

@test "losses: a row that is read before it is there" {
    plant cross-entropy.cu 'dt_wait_copies<0>();' ''
    caught cross-entropy
}

@test "losses: the wrong column is the target" {
    plant cross-entropy.cu 'column + i == target' 'column + i + 1 == target'
    caught cross-entropy
}

@test "losses: sums that are not brought to a new highest" {
    plant cross-entropy.cu 'f->exp_sum *= __expf(f->most - zero);' ''
    caught cross-entropy
}

@test "losses: a gradient without the slope of the softcap" {
    plant cross-entropy.cu 'v[i] *= slope;' ';'
    caught cross-entropy
}

@test "norms: a factor without the offset" {
    plant rms-norm.cu 'f.weight_offset + w[i]' 'w[i]'
    caught rms-norm
}

@test "sort: ranks that forget the warps before" {
    plant sort.cu 'return digit >= 0 ? rank + of_warp[warp * digits + digit] : 0;' \
        'return digit >= 0 ? rank : 0;'
    caught sort
}

@test "embedding: parts of a token that are not added" {
    plant embedding.cu 'next = chunk + 1;' 'next = chunk + 2;'
    caught embedding
}

@test "dropout: words in the wrong order" {
    plant random.cuh 'number & 2 ? high : low' 'number & 2 ? low : high'
    caught dropout
}

@test "elements: a row too many that is written" {
    plant elements.cuh 'if (column + i < x.columns)
                dt_cuda_round' 'if (column + i <= x.columns)
                dt_cuda_round'
    caught combine
}

@test "largest: a tie that the last number wins" {
    plant largest.cu 'base[1] + before[1]' 'base[1] + sums[1] - 1 - before[1]'
    caught largest
}

@test "largest: output indices off by one" {
    plant largest.cu 'base[0] += s.taken[2 * c];' 'base[0] += s.taken[2 * c] + 1;'
    caught largest
}

@test "largest: counts of warps that are read too soon" {
    plant largest.cu '    __syncthreads();
#pragma unroll' '#pragma unroll'
    caught largest 0 1 2 3
}

@test "orthonormalize: a row that keeps its part along the one before" {
    plant orthonormalize.cu 'if (done >= 0) {' 'if (done >= 0 && blockIdx.x > 0) {'
    caught orthonormalize
}

@test "sums: too little shared memory" {
    plant reduce.cu 'DT_SHARED(float, part, lines * 32 * group)' \
        'DT_SHARED(float, part, lines * 31 * group)'
    caught_by_asan reduce
}
