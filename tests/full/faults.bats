# SPDX-License-Identifier: MIT
load ../helper

@test "a hundred ranks killed and stopped at random moments" {
    need_mpi
    cd "$T"
    "$ROOT/tests/full/faults" 100
}
