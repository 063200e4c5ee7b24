# SPDX-License-Identifier: MIT
# tests/faults/power-cuts.bats for 100,000 states and more.
load ../helper

@test "each of 100,000 states that a power cut may leave is the old or the new" {
    export CUT_STATES=60000 CUT_PROGRAMS=100000
    run bats --tap -f 'old or the new' "$ROOT/tests/faults/power-cuts.bats"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(sed -nE 's/.*[^0-9]([0-9]+) states, .*/\1/p' <<<"$output")" -ge 100000 ]
}
