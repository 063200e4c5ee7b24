# SPDX-License-Identifier: MIT
# dt built by clang (with libomp-dev): no warning but of loops that it does not vectorize, and the bits of the other compiler's programs.
load ../helper

setup_file() {
    clang=${DT_BUILD:-$ROOT/build}/clang
    export clang
    command -v clang >/dev/null || return 0
    make -s -C "$ROOT" B="$clang" CC=clang CXX=clang++ CFLAGS="-O2 -g -Wno-pass-failed" CUDA=0 all >"$BATS_FILE_TMPDIR/messages" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/messages"
        return 1
    }
}

setup() {
    command -v clang >/dev/null || skip "clang is not installed"
}

@test "clang: no warning" {
    run grep -E 'warning|error' "$BATS_FILE_TMPDIR/messages"
    [ "$output" = "" ]
}

@test "clang: documents, tokenizers, ids, shards and checkpoints of the other compiler" {
    "$ROOT/tests/bits" "${DT_BUILD:-$ROOT/build}" | sort -k 2 >"$T/one"
    "$ROOT/tests/bits" "$clang" | sort -k 2 >"$T/other"
    [ "$(wc -l <"$T/one")" -ge 21 ]
    diff "$T/one" "$T/other"
}
