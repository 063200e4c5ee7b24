# SPDX-License-Identifier: MIT
# The pipes of README.md and the man pages, which pipes.py finds there. PIPE selects those with a text.
load ../helper

setup() {
    cd "$T"
}

@test "each program of each pipe killed at 200 random moments: the output is absent or whole" {
    python3 "$ROOT/tests/full/pipes.py" kill 200 1 "${PIPE:-}" | sed 's/^/# /' >&3
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

@test "one bad line in 10,000: each is in quarantine with its file and line, at a cost below 2%" {
    python3 "$ROOT/tests/full/pipes.py" bad 15 1 "${PIPE:-}" | sed 's/^/# /' >&3
    [ "${PIPESTATUS[0]}" -eq 0 ]
}
