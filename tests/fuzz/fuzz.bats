#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A short run of each fuzzer, where clang is installed; `make fuzz` runs longer.
load ../helper

@test "fuzzers find nothing in a short run" {
    command -v clang >/dev/null || skip "clang is not installed"
    echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return !p && n; }' >"$T/probe.c"
    clang -fsanitize=fuzzer "$T/probe.c" -o "$T/probe" 2>/dev/null || skip "libFuzzer is not installed"
    # the same inputs each time, without a time limit each; make fuzz searches longer
    run make -s -C "$ROOT" B="${DT_BUILD:-$ROOT/build}" FUZZ_OPT='-O0 -g0' FUZZ_SECONDS=2 FUZZ_FLAGS='-seed=1 -timeout=900 -runs=2000' fuzz
    [ "$status" -eq 0 ] || { echo "$output" | tail -n 40; return 1; }
    [ "$(grep -c '^fuzz-.*: nothing found' <<<"$output")" -eq "$(ls "$ROOT"/tests/fuzz/fuzz-*.c | wc -l)" ]
}
