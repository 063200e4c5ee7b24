# SPDX-License-Identifier: MIT
# tests/faults/power-cuts.bats for 100,000 states and more; CUT_STATES a scenario, and CUT_LEAST of all, shorten it.
load ../helper

@test "each of 100,000 states that a power cut may leave is the old or the new" {
    strace true 2>/dev/null || skip "strace is not installed, or may not trace here"
    cd "$T"
    "$ROOT/tests/faults/make-inputs"
    run "$ROOT/tests/faults/power-cuts" --states "${CUT_STATES:-60000}" --programs 100000 "$T"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[-1]}" =~ ^([0-9]+)' states, ' ]]
    [ "${BASH_REMATCH[1]}" -ge "${CUT_LEAST:-100000}" ]
}
