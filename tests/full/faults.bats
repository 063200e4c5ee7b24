# SPDX-License-Identifier: MIT
load ../helper

@test "a hundred ranks killed and stopped at random moments" {
    command -v mpirun >/dev/null || skip "there is no mpirun"
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || skip "dt was built without MPI"
    cd "$T"
    "$ROOT/tests/full/faults" 100
}
