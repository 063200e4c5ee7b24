# SPDX-License-Identifier: MIT
# Simulated power cuts: a sample. tests/full/power-cuts.bats examines 100,000 states.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    "$ROOT/tests/faults/make-inputs"
}

setup() {
    command -v strace >/dev/null || skip "strace is not installed"
    strace true 2>/dev/null || skip "strace may not trace here"
    cd "$T"
    cuts=("$ROOT/tests/faults/power-cuts" --states "${CUT_STATES:-200}" --programs "${CUT_PROGRAMS:-6}")
}

@test "after a power cut readers find the old or the new" {
    "${cuts[@]}" "$BATS_FILE_TMPDIR"
}

# scenario LINE: of which a state must be found that is neither old nor new.
scenario() {
    echo "$1" >scenarios
    run "${cuts[@]}" --programs 50 "$BATS_FILE_TMPDIR" scenarios
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"neither old nor new"* ]]
}

@test "a file renamed before it is synced, and one written in place, are found" {
    scenario 'unsynced | echo old >f | echo new >t; mv t f | cat f'
    scenario 'in-place | echo old >f | echo new >f | cat f'
    scenario 'removed-early | echo old >f | echo new >g; sync g; rm f | cat f g'
}
