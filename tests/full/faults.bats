# SPDX-License-Identifier: MIT
load ../helper

@test "100 ranks killed or stopped at random times" {
    need_mpi
    cd "$T"
    "$ROOT/tests/full/faults" 100
}
