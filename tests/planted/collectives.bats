# SPDX-License-Identifier: MIT
# Mistakes in how the engine has NCCL sum and gather (distributed.collectives), planted one by one: two
# ranks that train with them must come to other bits than two without.
load ../helper
load ../ranks
load ../cuda/links
load planting
load two-ranks

setup() {
    prepare_planting
    ln -s "$BUILT/lib/dt/crypto.so" "$T/engines"
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    begin_reference nccl
}

# begin_reference COLLECTIVES: what trains from now on, and the run that is right.
begin_reference() {
    invariant=(--set distributed.collectives="$1") # of train
    reference=$BATS_FILE_TMPDIR/$1
    [ -e "$reference.results" ] ||
        DT_ENGINES=$BUILT/lib/dt over nccl 2 "$reference" "${invariant[@]}" "${layout[@]}"
}

@test "nothing planted: the same bits, late and at once" {
    train links.c
    cmp "$reference.results" two.results
    rm -r two
    begin_reference nccl_bf16
    train links.c hurry
    cmp "$reference.results" two.results
}

@test "sums that do not wait for gradients" {
    begins DT_LINK_DATA
}

@test "ops that do not wait for sums and weights" {
    plant_join DT_LINK_DATA
    shows links.c
}

@test "the piece of another rank" {
    plant links.c '(size_t)lane->rank * c->count' '(size_t)(lane->size - 1 - lane->rank) * c->count'
    shows links.c
}

@test "elements of another type" {
    plant links.c '{ncclFloat32, 4, "reduce-scatter"}' '{ncclBfloat16, 4, "reduce-scatter"}'
    shows links.c
}

@test "bf16 that is taken for bytes" {
    begin_reference nccl_bf16
    plant links.c '{ncclBfloat16, 2, "reduce-scatter"}' '{ncclUint8, 2, "reduce-scatter"}'
    run train links.c
    [ ! -e two/latest ]
    [[ "$output" == *"NCCL: reduce-scatter: "* ]]
}

@test "what pieces of one size leave is not reduced" {
    plant links.c 'c->rest > 0' 'c->rest > SIZE_MAX / 2'
    shows links.c
}

@test "what they leave is reduced to another rank" {
    plant links.c 'int root = lane->size - 1;' 'int root = 0;'
    shows links.c
}

@test "a collective that is not waited for" {
    plant links.c 'return rc < 0 ? rc : await(l, lane, what, err);' 'return rc;'
    run train links.c
    [ "$status" -ne 0 ]
    [[ "$output" == *"emulated NCCL: a group begins before the last one is over"* ]]
}
