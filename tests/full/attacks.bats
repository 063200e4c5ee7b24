# SPDX-License-Identifier: MIT
# tests/comm/attacks.bats for 100 jobs.
load ../helper

@test "100 of 100 attacked jobs finish" {
    export ATTACKED_JOBS=100
    run bats --tap "$ROOT/tests/comm/attacks.bats"
    echo "$output"
    [ "$status" -eq 0 ]
}
