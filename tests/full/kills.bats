# SPDX-License-Identifier: MIT
load ../helper

@test "1,000 kills of the pipeline and of training lose nothing" {
    cd "$T"
    mkdir inputs && (cd inputs && "$ROOT/tests/faults/make-inputs")
    "$ROOT/tests/faults/kills" 1000 inputs
}
