# SPDX-License-Identifier: MIT
# As mutations.bats, in the kernels of wgmma: what is asynchronous is found when it is not
# waited for, not shown, or not where it is looked for.
load ../helper
load planting

# The small test of attention by wgmma.
TEST=test-attention

run_tests() {
    "$PROGRAMS/$TEST" a_ring_of_tiles_matches_the_reference_by_wgmma
}

@test "nothing planted: nothing is found" {
    nothing_found attention-forward-wgmma
}

@test "products without a fence" {
    plant attention-wgmma.cuh 'dt_begin_products();' ''
    caught attention-forward-wgmma
}

@test "scores that are read before the wait" {
    plant attention-forward-wgmma.cu 'dt_wait_products<1>();' ''
    caught attention-forward-wgmma
}

@test "sums that are rescaled while products are added to them" {
    plant attention-forward-wgmma.cu '        dt_wait_products<0>();
        dt_pin(p.sums[0]), dt_pin(weights);' '        dt_wait_products<1>();'
    caught attention-forward-wgmma
}

@test "products of values and gradients that are read before the wait" {
    plant attention-backward-wgmma.cu 'dt_wait_products<1>();
            dt_pin(products[0]);' 'dt_wait_products<2>();'
    caught attention-backward-wgmma
}

@test "barriers that TMA does not see" {
    plant attention-wgmma.cuh 'dt_show_shared();' ''
    caught attention-backward-wgmma
}

@test "another swizzle" {
    plant wgmma.cuh 'swizzled = 1;' 'swizzled = 2;'
    caught attention-forward-wgmma
}

@test "channels that are looked for in other chunks" {
    plant attention-wgmma.cuh 'bytes = k % 4 * 32' 'bytes = k % 4 * 16'
    caught attention-forward-wgmma
}

@test "the second half of the channels, looked for in the first" {
    plant attention-wgmma.cuh 'dt_matrix(tile, dt_matrix_bytes(16 * PARTS))' 'dt_matrix(tile, 0)'
    caught attention-backward-wgmma
}

@test "a first phase that is waited for" {
    plant attention-forward-wgmma.cu 'dt_ring_place to = {0, 1}' 'dt_ring_place to = {0, 0}'
    caught attention-forward-wgmma
}

@test "a phase that does not change" {
    plant attention-wgmma.cuh 'parity ^= slot == 0;' ''
    caught attention-forward-wgmma
}

@test "fewer bytes than come" {
    plant attention-backward-wgmma.cu '2 * at::tile + more' '2 * at::tile'
    caught attention-backward-wgmma
}

@test "more bytes than come" {
    plant attention-forward-wgmma.cu 'dt_next_slot(ring, to, at::slot)' \
        'dt_next_slot(ring, to, at::slot + 16)'
    caught attention-forward-wgmma
}

@test "a slot that is filled again while it is read" {
    plant attention-forward-wgmma.cu '        dt_wait_products<1>();
        dt_pin(scores[0]);
        dt_release_slot(ring, keys);' '        dt_release_slot(ring, keys);
        dt_wait_products<1>();
        dt_pin(scores[0]);'
    caught attention-forward-wgmma 0 1 2 3 4
}

@test "outputs over queries that are still read" {
    plant attention-forward-wgmma.cu 'dt_await_warpgroup(row);' ''
    caught attention-forward-wgmma 0 1 2 3 4 5 6 7
}
