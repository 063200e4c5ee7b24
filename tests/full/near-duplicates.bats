#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Recall of near duplicates in eleven languages, against the formula of MinHash.
load ../helper

@test "pairs in eleven languages are found as often as the formula says, within 2 points" {
    cd "$T"
    python3 "$BATS_TEST_DIRNAME/../oracles/near_duplicates_oracle.py" 20000 0.02 >&3
}
