# SPDX-License-Identifier: MIT
# Other orders and roundings, planted one by one in the canonical kernels: the tests that compare
# them with the definition must see each.
load ../helper
load planting

run_tests() {
    DT_TEST_ENGINE=cuda-emulated DT_TEST_CANONICAL=1 timeout 900 \
        "$BUILT/tests/device/test-canonical-$TEST" "$CASE"
}

setup() {
    prepare_planting
    CASE="*"
    case $BATS_TEST_DESCRIPTION in
    products:*) TEST=matmul CASE="other_chunks*" ;;
    attention:*) TEST=attention ;;
    norms:*) TEST=rows CASE="norms_*" ;;
    sums:*) TEST=rows CASE="bias_*" ;;
    embeddings:*) TEST=rows CASE="embedding_*" ;;
    losses:*) TEST=rows CASE="cross_entropy_*" ;;
    elements:*) TEST=rows CASE="gates_*" ;;
    *) TEST=rows CASE="*defined_bits*" ;;
    esac
}

@test "nothing planted: nothing is found" {
    nothing_found canonical-norm
}

@test "products: a multiplication and an addition that are rounded separately" {
    plant canonical-matmul.cu 'return DT_FMA(a, b, sum);' 'return a * b + sum;'
    caught canonical-matmul
}

@test "products: shorter chunks" {
    plant canonical-matmul.cu 'most_terms = 256' 'most_terms = 128'
    caught canonical-matmul
}

@test "products: chunks in a chain instead of a tree" {
    plant canonical.cuh 'x = present ? t->node[level] + x : t->node[level];' \
        'if (present) { t->node[level] += x; t->count++; return; }'
    caught canonical-matmul
}

@test "products: a part that begins elsewhere" {
    CASE="parts_may*"
    plant canonical-matmul.cu 'part == 0 ? 0 : part_ends[part - 1]' \
        'part == 0 ? 0 : part_ends[part - 1] / 2'
    caught canonical-matmul
}

@test "norms: halves of lanes in another order" {
    plant canonical.cuh 'half = dt_cuda_lanes / 2; half > 0; half /= 2' \
        'half = 1; half < dt_cuda_lanes; half *= 2'
    caught canonical-norm
}

@test "norms: another division" {
    plant canonical-norm.cu '1.0f / sqrtf(' 'rsqrtf('
    plant canonical.cuh '/* --- one element' 'static float rsqrtf(float x) { return sqrtf(1.0f / x); }
/* --- one element'
    caught canonical-norm
}

@test "sums: blocks of 32 rows" {
    plant canonical.cuh 'dt_cuda_block_rows = 64' 'dt_cuda_block_rows = 32'
    caught canonical-sums
}

@test "embeddings: rows of a token in one part" {
    plant canonical-sums.cu 'parts, part + 1), row = row_of' 'parts, parts), row = row_of'
    caught canonical-sums
}

@test "orthonormalize: projections that are rounded twice" {
    CASE="other_ops*"
    plant canonical-sums.cu 'DT_FMA(-part, unit[j], own[j])' 'own[j] - part * unit[j]'
    caught canonical-sums
}

@test "losses: the highest logit of all parts instead of each" {
    plant canonical-cross-entropy.cu 'highest = dt_cuda_fold(highest, higher);' \
        'highest = dt_cuda_fold(highest, higher) + 1;'
    caught canonical-cross-entropy
}

@test "losses: a gradient without the slope of the softcap" {
    plant canonical-cross-entropy.cu 'dx = dx * dt_logit_map_slope(l.how.map, logit);' ';'
    caught canonical-cross-entropy
}

@test "norms: factors without the offset in backward" {
    plant canonical-norm.cu 'factor_of(weight, weight_offset, j % n)' 'dt_cuda_element(weight, 0, j % n)'
    caught canonical-norm
}

@test "elements: an approximate exponential" {
    plant canonical.cuh '#include "device/functions.h"' '#include "device/functions.h"
#define dt_device_sigmoid(x) (1.0f / (1.0f + __expf(-(x))))'
    caught canonical-elements
}

@test "attention: blocks of 32 keys" {
    plant canonical-attention.cu 'key_block = 64' 'key_block = 32'
    caught canonical-attention
}

@test "attention: scores that are scaled instead of queries" {
    plant canonical-attention.cu 'q.column + d) * a.scale,' 'q.column + d),'
    plant canonical-attention.cu 'return {sum, 1};' 'return {sum * a.scale, 1};'
    caught canonical-attention
}

@test "attention: a window that is one key too long" {
    plant canonical-attention.cu 'q.t - a.band.before' 'q.t - a.band.before - 1'
    caught canonical-attention
}

@test "attention: a soft cap without its derivative" {
    plant canonical-attention.cu 'DT_FMA(-x, x, 1.0f)}' '1.0f}'
    caught canonical-attention
}

@test "attention: queries in descending order for a key" {
    plant canonical-attention.cu 'sequence * how.queries + t, head)' \
        'sequence * how.queries + how.queries - 1 - t, head)'
    caught canonical-attention
}

@test "attention: the dropout of another head" {
    plant canonical-attention.cu 'a.how.first_head + q.head' 'q.head'
    caught canonical-attention
}
