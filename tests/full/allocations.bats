# SPDX-License-Identifier: MIT
# tests/tools/allocations.bats for every allocation.
load ../helper

@test "every failed allocation leaves the same bytes or prints an error" {
    export ALLOCATION_RUNS=10000
    run bats --tap "$ROOT/tests/tools/allocations.bats"
    echo "$output"
    [ "$status" -eq 0 ]
}
