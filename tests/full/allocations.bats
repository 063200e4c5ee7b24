# SPDX-License-Identifier: MIT
# What tests/tools/allocations.bats does, for every allocation.
load ../helper

@test "no allocation that fails leaves other bytes, or no line" {
    export ALLOCATION_RUNS=10000
    run bats --tap "$ROOT/tests/tools/allocations.bats"
    echo "$output"
    [ "$status" -eq 0 ]
}
