# SPDX-License-Identifier: MIT
# Main text compared with other extractors, on pages whose main text is known.
load ../helper

# f1 PROGRAM: of the table in scores.
f1() {
    jq -r --arg p "$1" 'select(.program == $p and .pages) | .f1' scores
}

@test "main text of held-out pages: F1 within 0.02 of trafilatura's" {
    need_python trafilatura
    cd "$T"
    "$PYTHON" "$ROOT/tests/oracles/make_pages.py" --pages 300 pages
    "$PYTHON" "$ROOT/tests/oracles/extract_scores.py" pages >scores
    cat scores >&3
    jq -ne --argjson a "$(f1 dt-extract)" --argjson b "$(f1 trafilatura)" '$a >= $b - 0.02'
    jq -ne --argjson a "$(f1 dt-extract)" --argjson b "$(f1 trafilatura-precision)" '$a >= $b - 0.02'
}
